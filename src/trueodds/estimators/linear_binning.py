"""Expected calibration error with linear binning: each score is shared between two neighboring bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from trueodds.binning.partition import BinRule, lowest_score
from trueodds.binning.sorted_scores import LinearShares, RowSelections, sort_by_partition_value
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount, check
from trueodds.core.typing import Array
from trueodds.estimators.distinct_scores import DistinctScoreError, DistinctScores, ScoreStatistic
from trueodds.kernels.bins import Bins, Closed
from trueodds.kernels.smoothing import sum_linear_shares, upper_share
from trueodds.lenses.effective_sample_size import effective_n, n_represented, unit_weight
from trueodds.lenses.view import View

Base = Literal["uniform", "equal-mass"]  # whose bin centers share the scores; `partition` in calls by name


@dataclass(frozen=True)
class LinearBinError(DistinctScoreError):
    r"""ECE with linear binning (ECE_c, ECE_ac): each score is shared between the two nearest bin centers.

    A score at one quarter of the way from one center to the next counts 3/4 in the first bin and 1/4 in the second. The
    error is therefore continuous in the scores, and no score lies on an edge.

    Parameters
    ----------
    bins : int or {"auto", "sqrt"}, default="auto"
        Number of bins. "auto" is ⌊√n⌋ below 100 rows and 10 otherwise: in a repetition of the authors' class-wise
        experiment the first was better on small samples and the second on larger ones. "sqrt" is always ⌊√n⌋.
    base : {"uniform", "equal-mass"}, default="uniform"
        The bins, called `partition` in the public functions: uniform (ECE_c) or equal-mass (ECE_ac). Equal-mass edges
        lie midway between neighboring rows after every ⌊n / bins⌋ rows, and the last bin takes the remainder. Bins with
        the same center count as one. There are never more bins than rows.
    range : "1/K", optional
        Bins cover [1/K, 1], the range of confidence. The default is [0, 1].
    mapping : {"convex", "one-bin"}, default="convex"
        "one-bin" counts each score in its own bin. With ``closed="left"`` this is the authors' ECE and ECE_a.
    closed : {"right", "left"}, default="right"
        Side of a bin that contains a score on its edge. Shared scores do not depend on it.
    weights : {"linear", "swapped"}, default="linear"
        "swapped" reproduces a bug of the authors' released code, which gives the nearer center the smaller weight. All
        values of ECE_c and ECE_ac in the paper were computed this way. (The code also assigned a score on the first
        center to the last bin, which is not reproduced.) Use it only to compare with these values.

    Notes
    -----
    .. math:: \sum_b \Big| \tfrac1w \sum_i w_i \omega_{ib} (y_i - p_i) \Big|, \quad
        \omega_{ib} = \frac{p_i - c_{b-1}}{c_b - c_{b-1}} = 1 - \omega_{i,b-1} \text{ for } c_{b-1} \le p_i \le c_b

    Scores beyond the first or last center :math:`c` have weight 1 in that bin. Shapes: one score per row, (n,).

    Units: probability, in [0, 1]; 0 is best. The value is at least the absolute mean gap.

    Bias: upward, but less than for ECE with as many bins, because neighboring bins share rows. `noise_floor` reports
    it.

    Cost: O(n log bins) time, O(n log n) for equal mass, and O(bins) memory. Draws distinguish 4,096 scores. Tallies
    merge exactly if the centers are cell edges, as with 10 uniform bins.

    References
    ----------
    .. [1] Posocco & Bonnefoy (2021).
    .. [2] Jones & Lotwick (1983), for linear binning.

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 1], [0.4, 0.9]  # centers .25, .75: .4 counts .7 and .3; |.7 · .6|/2 + |.3 · .6 + .1|/2
    >>> round(to.measure(y, p, "ece_linear", bins=2, interval=None).value, 4)
    0.35
    """

    name: ClassVar[str] = "ece_linear"
    is_bounded_by_mean_gap: ClassVar[bool] = True
    exemptions: ClassVar[dict[str, str]] = {"weight two": "the number of bins follows what the weights are worth"}
    bins: BinCount | BinRule = "auto"
    base: Base = "uniform"
    range: Literal["1/K"] | None = None
    mapping: Literal["convex", "one-bin"] = "convex"
    closed: Closed = "right"
    weights: Literal["linear", "swapped"] = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mapping == "one-bin" and self.weights == "swapped":
            raise InputError(
                "TO205",
                "With mapping='one-bin' there are no weights to swap.",
                "weights='swapped'",
                "Leave weights out.",
            )

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        return ("bins", "partition", "range", "mapping", "closed", "weights")

    @classmethod
    def from_settings(cls, _name: str, *, partition: str = "uniform", **settings: Any) -> LinearBinError:
        return cls(base=check("partition", partition, Base, "uniform"), **settings)

    def score_statistic(self, view: View) -> LinearSums:
        """The error, exact for rows and for cells that contain no center. Draws use at most 4,096 groups of scores."""
        return LinearSums(self, view)

    def evaluate_selections(self, selections: RowSelections) -> Array:
        """The errors of all selections, each with its own bins."""
        if not selections.is_vectorizable:
            return super().evaluate_selections(selections)
        edges = self.edges(selections.first_view, selections)
        if self.mapping == "one-bin":
            _, wp, wy = selections.sums_by_bin(edges[:, 1:-1], self.closed)
            residual = wy - wp
        else:
            centers = np.sort((edges[:, :-1] + edges[:, 1:]) / 2, axis=1)
            residual = sum_linear_shares(*selections.sorted_scores, centers, self.closed, self.weights == "swapped")
        return np.asarray(np.abs(residual).sum(axis=1) / selections.first_view.total)

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        """Sum over bins of the absolute residual of each bin."""
        weights = LinearWeights(self, self.edges(view), s)
        shares = LinearShares(weights.lower_bin, weights.upper_weight, weights.size + 1)
        return lambda _w, wp, wy: np.abs(shares.sums(wy - wp)).sum(axis=-1)

    def edges(self, view: View, selections: RowSelections | None = None) -> Array:
        """Lower end of the range, edges between bins, and 1. Equal-mass edges may coincide.

        With selections, the result has the edges of each selection, (selections or 1, bins + 1).
        """
        low, k = lowest_score(view, self.range), self.n_bins(view)
        if self.base == "uniform":
            edges = np.asarray(low + np.arange(k + 1) / k * (1 - low))
            return edges if selections is None else edges[None]
        unit = unit_weight(view)
        weight_per_bin = view.total / k if unit is None else round(view.total / unit) // k * unit  # ⌊n / k⌋ rows
        last_scores, next_scores = (selections or sort_by_partition_value(view)).scores_at_weight(
            np.arange(1, k) * weight_per_bin
        )
        ones = np.ones((*last_scores.shape[:-1], 1))
        return np.concatenate((low * ones, (last_scores + next_scores) / 2, ones), axis=-1)

    def n_bins(self, view: View) -> int:
        """Number of bins for this view. Equal-mass bins never exceed the number of rows."""
        if not isinstance(self.bins, str):
            k = int(self.bins)
        else:
            k = max(1, math.isqrt(round(effective_n(view))))
            if self.bins == "auto":
                k = min(k, 10)
        return min(k, max(round(n_represented(view)), 1)) if self.base == "equal-mass" else k

    def settings_used(self, view: View) -> dict[str, Any]:
        settings: dict[str, Any] = {"partition": f"{self.base} {self.bins}" + (" on [1/K, 1]" if self.range else "")}
        settings |= {"bins": self.n_bins(view), "mapping": self.mapping}
        if self.mapping == "one-bin":
            settings["closed"] = self.closed
        return settings | ({"weights": self.weights} if self.weights == "swapped" else {})

    def notes(self, view: View) -> list[Note]:
        if self.weights == "linear":
            return []
        return [Note("TN113", "The nearer center has the smaller weight, which reproduces a bug of the released code.")]


class LinearWeights:
    """The two bins of each score s (m,): `lower_bin` (m,), and the weight of the next one, `upper_weight` (m,).

    `size` is the number of bins, of which bins with the same center count as one.
    """

    def __init__(self, error: LinearBinError, edges: Array, s: Array) -> None:
        side: Literal["left", "right"] = "left" if error.closed == "right" else "right"
        if error.mapping == "one-bin":
            self.size = len(edges) - 1
            self.lower_bin = np.searchsorted(edges[1:-1], s, side)
            self.upper_weight = np.zeros(len(s))
            return
        centers = np.unique((edges[:-1] + edges[1:]) / 2)
        self.size = len(centers)
        # A score on a center may count in either gap, but a cell that ends there lies below.
        upper_bin = np.searchsorted(centers, s, side)
        self.lower_bin = np.maximum(upper_bin - 1, 0)
        inside = (upper_bin > 0) & (upper_bin < self.size)
        next_center = np.append(centers[1:], np.inf)[self.lower_bin]
        self.upper_weight = np.where(
            inside, upper_share(s, centers[self.lower_bin], next_center, error.weights == "swapped"), 0.0
        )


class LinearSums(DistinctScores):
    """Residual sums of one view for linear binning; the value is exact for the cells of a tally, too."""

    def value(self) -> float:
        """The error. Uniform centers use Σw(y − p) and Σwp(y − p), which determine how a cell is shared."""
        error, view = self.error, self.view
        assert isinstance(error, LinearBinError)
        edges = error.edges(view)
        if error.mapping == "one-bin":
            bins = view.binned(Bins(edges, error.closed))
            return float(np.abs(bins.w * (bins.y - bins.p)).sum() / view.total)
        if error.base != "uniform":
            # Centers can be so close that dividing by their distance is inaccurate. The error from the distinct scores
            # is exact for rows. A cell of a tally counts at its mean.
            return super().value()
        centers = np.unique((edges[:-1] + edges[1:]) / 2)
        gaps = view.binned(Bins(np.concatenate(([-np.inf], centers, [np.inf])), error.closed))
        upper_bin, residual = gaps.bin_index, gaps.w * (gaps.y - gaps.p)
        assert upper_bin is not None
        inside, lower_bin = (upper_bin > 0) & (upper_bin < len(centers)), np.maximum(upper_bin - 1, 0)
        width = np.append(np.diff(centers), 1.0)[lower_bin]
        upper_part = (gaps.sums("wpy") - gaps.sums("wpp") - centers[lower_bin] * residual) / width
        upper_residual = np.where(inside, residual - upper_part if error.weights == "swapped" else upper_part, 0.0)
        size = len(centers) + 1
        residual_sums = np.bincount(lower_bin, residual - upper_residual, size) + np.bincount(
            lower_bin + 1, upper_residual, size
        )
        return float(np.abs(residual_sums).sum() / view.total)
