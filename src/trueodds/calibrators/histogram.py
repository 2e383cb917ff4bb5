"""Histogram binning: the event rate of each bin of the predicted probability."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from trueodds.binning.equal_mass import EqualMass, cut_weights, midpoints_at_cuts
from trueodds.binning.partition import BinRule, Partition, resolve_n_bins
from trueodds.binning.sorted_scores import SortedScores
from trueodds.binning.uniform import Uniform
from trueodds.calibrators._curves.one_vs_rest import (
    OneVsRest,
    fit_curves,
    zero_probability_notes,
    zero_probability_notes_of_cells,
)
from trueodds.calibrators._curves.score_scale import (
    LOGIT,
    PROBABILITY,
    SCORE_RANGE,
    Scale,
    score_scale,
)
from trueodds.calibrators._glm.log_probabilities import Probabilities, to_probabilities
from trueodds.calibrators.base import TalliedSpec
from trueodds.calibrators.saved_parameters import Key, Numbers, Saved, invalid_value_error
from trueodds.core.errors import Note
from trueodds.core.formatting import format_count
from trueodds.core.settings import BinCount, OneOf, Range
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View

_PARTITIONS: dict[str, Callable[[int | str], Partition]] = {
    "uniform": Uniform,
    "equal-mass": partial(EqualMass, cut="floor"),
}


class StepCurve(Saved):
    """A step function of the score, with one value per bin (a, b]; the first bin also contains its lower edge.

    Two first edges of 0 make a bin [0, 0] of exact zeros.
    """

    # (b + 1,) over the `SCORE_RANGE` of the scale, strictly increasing except for the first two
    edges: Annotated[Array, Numbers(*SCORE_RANGE[LOGIT], ("b+1",), increasing="weakly")]
    values: Annotated[Array, Numbers(0, 1, ("b",))]
    n_empty: Annotated[int, Range(0), Key("empty")] = 0  # number of empty bins, which predict their midpoint
    scale: Scale = PROBABILITY  # of the edges; "logit" for equal-mass bins of logits

    def __call__(self, x: Array) -> Array:
        return self.values[Bins(self.edges).index(x)]

    def check_saved(self, k: int) -> None:
        low, high = SCORE_RANGE[self.scale]
        if self.edges[0] != low or self.edges[-1] != high or (np.diff(self.edges[1:]) <= 0).any():
            raise invalid_value_error("edges", f"increasing from {low:g} to {high:g}", self.edges.tolist())


class HistogramMap(OneVsRest):
    """The event rate of each bin, for the second of two classes, or for every class."""

    curves: tuple[StepCurve, ...]

    def describe(self) -> str:
        return format_bins(self.curves)


def format_bins(curves: Sequence[StepCurve]) -> str:
    """The number of bins as text, such as `15 bins`, or `12 to 15 bins in 4 curves`."""
    sizes = sorted({len(curve.values) for curve in curves})
    text = format_count(sizes[0], "bin") if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} bins"
    return text + (f" in {len(curves)} curves" if len(curves) > 1 else "")


class HistogramSpec(TalliedSpec):
    r"""Histogram binning: the event rate of the bin of a score.

    Two classes have one set of bins, for the second class. With more classes each has bins against the rest, and rows
    are divided by their sums. Probabilities may become exactly 0 or 1, predicted classes may change, and scores in one
    bin become equal.

    Parameters
    ----------
    bins : int or str, default=15
        Number of bins, or the name of a rule that chooses it.
    partition : {"uniform", "equal-mass"}, default="uniform"
        Bins of equal width, where an empty bin predicts its midpoint, or of equal mass, where none is empty. Equal-mass
        group i ends after ⌊n i / bins⌋ rows; tied scores are never split, so there may be fewer bins than requested.

    Notes
    -----
    .. math:: \theta_b = \frac{\sum_{i \in b} w_i y_i}{\sum_{i \in b} w_i}

    Cost: O(nK), with equal-mass bins O(K n log n).

    References
    ----------
    .. [1] Zadrozny & Elkan (2001).
    .. [2] Guo et al. (2017).

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.7, 0.8]), np.array([0, 0, 0, 1])
    >>> HistogramSpec(bins=2).fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4)).curves[0].values.tolist()
    [0.0, 0.5]
    """

    name, map_type = "histogram", HistogramMap
    exemptions: ClassVar[Mapping[str, str]] = {
        "two classes swapped": "bins are closed on the right, so a score on an edge changes its bin when mirrored"
    }
    bins: BinCount | BinRule = 15
    partition: Annotated[str, OneOf(tuple(_PARTITIONS))] = "uniform"
    takes_logs = True

    def _make_partition(self) -> Partition:
        return _PARTITIONS[self.partition](self.bins)

    def unit_free(self) -> HistogramSpec:
        """Bins of equal mass, because the probabilities in which uniform bins are equally wide depend on the unit."""
        return replace(self, partition="equal-mass")

    def fit(self, P: Probabilities, Y: Array, w: Array) -> HistogramMap:
        if self.partition == "uniform":  # whose edges are probabilities
            P = to_probabilities(P)
        elif score_scale(P) == LOGIT:
            return HistogramMap(fit_curves(partial(_fit_curve_to_log_odds, bins=self.bins), P, Y, w))
        return HistogramMap(fit_curves(partial(_fit_curve_to_rows, partition=self._make_partition()), P, Y, w))

    def fit_from_views(self, views: Sequence[View]) -> HistogramMap:
        """Event rates from cells; equal to those of the rows where edges of bins are edges of cells."""
        return HistogramMap(tuple(_fit_curve_to_view(view, self._make_partition()) for view in views))

    def notes(self, calibration_map: HistogramMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        return [*self._empty_bin_notes(calibration_map), *zero_probability_notes(calibration_map.apply(P))]

    def notes_from_views(self, calibration_map: HistogramMap, views: Sequence[View]) -> list[Note]:
        return [
            *self._empty_bin_notes(calibration_map),
            *zero_probability_notes_of_cells(calibration_map.curves, views),
        ]

    def _empty_bin_notes(self, calibration_map: HistogramMap) -> list[Note]:
        n_empty = sum(curve.n_empty for curve in calibration_map.curves)
        n_bins = sum(len(curve.values) for curve in calibration_map.curves)
        text = f"{n_empty:,} of {n_bins:,} bins are empty and predict their midpoint."
        return [Note("TN506", text)] if n_empty else []


def _fit_curve_to_rows(x: Array, y: Array, w: Array, partition: Partition) -> StepCurve:
    """Event rates of the bins of scores x (n,) with outcome shares y (n,) and weights w (n,)."""
    return _fit_curve_to_view(View(x, y, w), partition)


def _fit_curve_to_log_odds(x: Array, y: Array, w: Array, bins: int | str) -> StepCurve:
    """Event rates of equal-mass bins of log odds x (n,) with outcome shares y (n,) and weights w (n,)."""
    view = View(x, y, w)
    n_bins = resolve_n_bins(bins, view)
    inner_edges = midpoints_at_cuts(SortedScores(x, y, w), cut_weights(view, n_bins, "floor"))
    low, high = SCORE_RANGE[LOGIT]
    edges = edges_between_scores(np.concatenate(([low], inner_edges, [high])), np.unique(x), low, high)
    bin_index = Bins(edges).index(x)
    values = np.bincount(bin_index, w * y, len(edges) - 1) / np.bincount(bin_index, w, len(edges) - 1)
    return StepCurve(edges, np.clip(values, 0.0, 1.0), scale=LOGIT)


def _fit_curve_to_view(view: View, partition: Partition) -> StepCurve:
    bins, x, y, w = partition.fit(view), view.partition_values, view.y, view.w
    assert isinstance(bins, Bins)
    if isinstance(partition, EqualMass):
        bins = Bins(edges_between_scores(bins.edges, np.unique(np.minimum(x, 1.0, dtype=np.float64))))
    bin_index = bins.index(x)
    mass = np.bincount(bin_index, w, bins.size)
    bin_midpoints = (bins.edges[:-1] + bins.edges[1:]) / 2
    values = np.divide(np.bincount(bin_index, w * y, bins.size), mass, out=bin_midpoints, where=mass > 0)
    return StepCurve(bins.edges, np.clip(values, 0.0, 1.0), int((mass == 0).sum()))


def edges_between_scores(edges: Array, scores: Array, low: float = 0.0, high: float = 1.0) -> Array:
    """Edges from `low` to `high` that group distinct scores (m,) as `edges` do, but lie midway between two scores.

    An edge on a score could put rows of that score into different bins, because computed scores have rounding errors.
    Edges between the same two scores, as after a tie that spans several groups, become one.

    >>> edges_between_scores(np.array([0, 0.2, 0.4, 0.6, 1]), np.array([0.2, 0.6])).tolist()
    [0.0, 0.4, 1.0]
    """
    upper_index = np.unique(np.searchsorted(scores, edges[1:-1], "right"))
    upper_index = upper_index[(upper_index > 0) & (upper_index < len(scores))]
    return np.concatenate(([low], midpoints_of_scores(scores[upper_index - 1], scores[upper_index]), [high]))


def midpoints_of_scores(low: Array, high: Array) -> Array:
    """Edges (m,) midway between pairs of neighboring scores, `low` (m,) and `high` (m,).

    A score on an edge belongs to the bin below, so the edge must be smaller than `high`.
    """
    midpoint = (low + high) / 2
    return np.where(midpoint < high, midpoint, low)  # of two neighboring floats it may be the upper one
