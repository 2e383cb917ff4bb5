"""Expected calibration error with linear binning: each score is shared between two neighboring bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from trueodds.binning.partition import BinRule, lower_limit
from trueodds.binning.selections import Selections
from trueodds.binning.sorted_scores import by_place
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount, check
from trueodds.core.typing import Array
from trueodds.estimators.unbinned import Reader, Scores, UnbinnedError
from trueodds.kernels.batch_binning import sum_linear_shares, upper_share
from trueodds.kernels.bins import Bins, Closed
from trueodds.lenses.view import View

Base = Literal["uniform", "equal-mass"]


@dataclass(frozen=True)
class LinearBinError(UnbinnedError):
    r"""The binned error with each score shared between the two bins whose centers it lies between (ECE_c, ECE_ac).

    Answers: the same as ECE, without its jumps. A score at a quarter of the way from one bin's center to the next
    counts 3/4 here and 1/4 there, so the error moves smoothly as scores move, and no score sits on an edge.

    .. math:: \sum_b \Big| \tfrac1w \sum_i w_i \omega_{ib} (y_i - p_i) \Big|, \quad
        \omega_{ib} = \frac{p_i - c_{b-1}}{c_b - c_{b-1}} = 1 - \omega_{i,b-1} \text{ for } c_{b-1} \le p_i \le c_b

    and weight 1 in the first or last bin beyond its center :math:`c`. Shapes: one score per row, (n,). Units:
    probability, in [0, 1]; 0 is best; at least the mean gap. Bias: upward, less than ECE on as many bins, as
    neighbors share their rows; `noise_floor` reports it. Cost: O(n log bins) time (equal mass O(n log n)), O(bins)
    memory; draws tell 4,096 scores apart. Merges exactly where centers are cell edges, as with 10 uniform bins.
    Raises TO203 for other settings, TO205 for a vector per row.
    Source: Posocco & Bonnefoy (2021); linear binning, Jones & Lotwick (1983).

    Parameters
    ----------
    bins : int or str
        `auto` is ⌊√n⌋ below 100 rows and 10 from there on: in a repetition of the authors' class-wise experiment the
        first won on small samples and the second on larger ones. `sqrt` is ⌊√n⌋ always.
    base : str
        `partition` in the façade's words: `uniform` (ECE_c), or `equal-mass` (ECE_ac): edges midway between neighboring rows after every ⌊n / bins⌋
        rows, the last bin taking what is left. Bins of one center count as one; there are never more bins than rows.
    range : str, optional
        `1/K` bins [1/K, 1], where confidence lies; without it [0, 1].
    mapping : str
        `convex`, or `one-bin` to count each score in its own bin: with `closed="left"` the authors' ECE and ECE_a.
    closed : str
        To which bin a score on an edge belongs; a shared score does not depend on it.
    weights : str
        `swapped` repeats a fault of the authors' released code, which gives the nearer center the smaller weight; all
        numbers of ECE_c and ECE_ac in the paper were made so (a score on the first center went to the last bin besides,
        which is not repeated). Only for comparison with them.

    >>> view = View(p=[0.4, 0.9], y=[1, 1])  # centers .25, .75: .4 counts .7 and .3; |.7 · .6|/2 + |.3 · .6 + .1|/2
    >>> round(float(LinearBinError(bins=2)(view)), 4), round(float(LinearBinError(bins=2)(View([0.4], [1]))), 4)
    (0.35, 0.6)
    """

    name: ClassVar[str] = "ece_linear"
    exempt: ClassVar[dict[str, str]] = {"weight two": "the number of bins follows what the weights are worth"}
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
                "TO205", "One bin per score leaves no weights to swap.", "weights='swapped'", "Leave weights out."
            )

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return ("bins", "partition", "range", "mapping", "closed", "weights")

    @classmethod
    def from_settings(cls, _name: str, *, partition: str = "uniform", **settings: Any) -> LinearBinError:
        """The estimator from the façade's settings, where what is shared out is the partition."""
        return cls(base=check("partition", partition, Base, "uniform"), **settings)

    def scores(self, view: View) -> LinearSums:
        """The error, exact for rows and for cells that no center divides; for draws at most 4,096 groups of scores."""
        return LinearSums(self, view)

    def evaluate_selections(self, of: Selections) -> Array:
        """The errors of all selections, each in bins of its own."""
        if not of.alike:
            return super().evaluate_selections(of)
        edges = self.edges(of.first, of)
        if self.mapping == "one-bin":
            _, wp, wy = of.sums(edges[:, 1:-1], self.closed)
            residual = wy - wp
        else:
            centers = np.sort((edges[:, :-1] + edges[:, 1:]) / 2, axis=1)
            residual = sum_linear_shares(*of.sorted_scores, centers, self.closed, self.weights == "swapped")
        return np.asarray(np.abs(residual).sum(axis=1) / of.first.total)

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The sum over bins of the absolute residual that falls to each."""
        parts = Sharing(self, self.edges(view), s)
        starts = np.flatnonzero(np.diff(parts.bin, prepend=-1))
        own = parts.bin[starts]

        def reader(_w: Array, wp: Array, wy: Array) -> Array:
            residual = wy - wp
            up = residual * parts.up
            bins = np.zeros((*residual.shape[:-1], parts.size + 1))
            bins[..., own] = np.add.reduceat(residual - up, starts, axis=-1)
            bins[..., own + 1] += np.add.reduceat(up, starts, axis=-1)
            return np.asarray(np.abs(bins).sum(axis=-1))

        return reader

    def edges(self, view: View, of: Selections | None = None) -> Array:
        """The lower edge of the range, the edges between bins, and 1; equal-mass edges may coincide.

        Of selections that are alike, of which the view is one, the edges are those of each, (selections or 1, bins + 1).
        """
        low, k = lower_limit(view, self.range), self.count(view)
        if self.base == "uniform":
            edges = np.asarray(low + np.arange(k + 1) / k * (1 - low))
            return edges if of is None else edges[None]
        unit = view.unit
        step = view.total / k if unit is None else round(view.total / unit) // k * unit
        before, after = (of or by_place(view)).between(np.arange(1, k) * step)
        ends = np.ones((*before.shape[:-1], 1))
        return np.concatenate((low * ends, (before + after) / 2, ends), axis=-1)

    def count(self, view: View) -> int:
        """How many bins are asked of this view; equal mass makes no more of them than there are rows."""
        root = max(1, math.isqrt(round(view.effective_n)))
        k = int(self.bins) if not isinstance(self.bins, str) else root if self.bins == "sqrt" else min(root, 10)
        return min(k, max(round(view.counted), 1)) if self.base == "equal-mass" else k

    def settings_used(self, view: View) -> dict[str, Any]:
        """Bins, range and mapping as used."""
        settings: dict[str, Any] = {"partition": f"{self.base} {self.bins}" + (" on [1/K, 1]" if self.range else "")}
        settings |= {"bins": self.count(view), "mapping": self.mapping}
        if self.mapping == "one-bin":
            settings["closed"] = self.closed
        return settings | ({"weights": self.weights} if self.weights == "swapped" else {})

    def notes(self, view: View) -> list[Note]:
        """A word where the weights are those of the fault."""
        if self.weights == "linear":
            return []
        return [
            Note("TN113", "The nearer center has the smaller weight, a fault of released code that is repeated here.")
        ]


class Sharing:
    """Which bin each score lies in or above, and how much of it goes to the next one up."""

    def __init__(self, error: LinearBinError, edges: Array, s: Array) -> None:
        side: Literal["left", "right"] = "left" if error.closed == "right" else "right"
        if error.mapping == "one-bin":
            self.size = len(edges) - 1
            self.bin = np.searchsorted(edges[1:-1], s, side)
            self.up = np.zeros(len(s))
            return
        centers = np.unique((edges[:-1] + edges[1:]) / 2)
        self.size = len(centers)
        # On a center either gap will do for a score, but a cell that ends there lies below.
        above = np.searchsorted(centers, s, side)
        self.bin = np.maximum(above - 1, 0)
        inside = (above > 0) & (above < self.size)
        following = np.append(centers[1:], np.inf)[self.bin]
        self.up = np.where(inside, upper_share(s, centers[self.bin], following, error.weights == "swapped"), 0.0)


class LinearSums(Scores):
    """The sums of one view for linear binning; the value itself is exact for cells too."""

    def value(self) -> float:
        """The error; with even centers from Σw(y − p) and Σwp(y − p), which say how a whole cell is shared."""
        error, view = self.error, self.view
        assert isinstance(error, LinearBinError)
        edges = error.edges(view)
        if error.mapping == "one-bin":
            bins = view.binned(Bins(edges, error.closed))
            return float(np.abs(bins.w * (bins.y - bins.p)).sum() / view.total)
        if error.base != "uniform":  # centers as close as rounding, by which no sum can be divided
            return super().value()  # score by score; where they divide cells, each counts at its mean
        centers = np.unique((edges[:-1] + edges[1:]) / 2)
        gaps = view.binned(Bins(np.concatenate(([-np.inf], centers, [np.inf])), error.closed))
        above, residual = gaps.bin_index, gaps.w * (gaps.y - gaps.p)
        assert above is not None
        inside, below = (above > 0) & (above < len(centers)), np.maximum(above - 1, 0)
        width = np.append(np.diff(centers), 1.0)[below]
        upper_part = (gaps.sums("wpy") - gaps.sums("wpp") - centers[below] * residual) / width
        up = np.where(inside, residual - upper_part if error.weights == "swapped" else upper_part, 0.0)
        size = len(centers) + 1
        total = np.bincount(below, residual - up, size) + np.bincount(below + 1, up, size)
        return float(np.abs(total).sum() / view.total)
