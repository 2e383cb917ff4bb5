"""Integrated calibration index and quantiles of the distance to a smooth calibration curve (ICI, E50, E90, Emax)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.estimators._smoothing.local_regression import SMOOTHERS, LocalFit, Smoother
from trueodds.estimators.unbinned import Reader, UnbinnedError
from trueodds.kernels.isotonic import isotonic_means
from trueodds.lenses.view import View

KINDS = (*SMOOTHERS, "isotonic")
STEADY = 200  # outcomes of each kind from which flexible curves are steady


@dataclass(frozen=True)
class IntegratedIndex(UnbinnedError):
    r"""Mean distance between predictions and a smooth curve of outcome rates (ICI, Eavg).

    Answers: by how much, on average over the people who were given predictions, does the stated risk miss the
    risk that a smooth curve through the outcomes finds?

    .. math:: \tfrac1w \sum_i w_i\, |\hat r(p_i) - p_i|

    The curve :math:`\hat r` is not made of bins. `loess`: in the nearest rows that make up `span` of all weight (by
    default .75) a parabola is fitted by least squares with tricube weights; `lowess`: straight lines, `span` 2/3, without
    robustness passes, which is R's `val.prob`; `isotonic`: the best non-falling rates. Both local curves are linear
    in the outcomes and reproduce straight lines, so the residuals y − p are smoothed: what is reported is 0 where
    they are, and the interval uses the norm of their own noise. Beyond 200 scores the loess curve is computed at 200
    of them and joined by straight lines (R interpolates between the corners of a tree by default, which moves the
    third digit; its `surface="direct"` agrees). Weights multiply the tricube; whole weights count rows. The interval
    is for the smooth curve's own distance: what a wide span flattens, it does not contain.

    Shapes: a binary view (n,). Units: probability, in [0, 1] (a parabola may leave it a little); 0 is best.
    Bias: upward, about 1.6 sqrt(mean p(1-p) / n) for a calibrated model (`lowess` 1.3), which `noise_floor` reports;
    and downward where the truth bends sharply. Cost: O(n log n + 200 n) time, O(n) memory; draws tell 4,096 scores
    apart. Merges from sums per distinct score, on a grid up to its resolution.
    Raises TO203 for an unknown smoother or a span outside (0, 1], TO205 for a lens with a vector per row.
    Source: Austin & Steyerberg (2019); Harrell (2015); Cleveland (1979).

    Parameters
    ----------
    smoother : str
        `loess`, `lowess` or `isotonic`.
    span : float, optional
        The share of the rows in each window of `loess` or `lowess`.

    Of two scores each window of .75 holds one, so the curve is the outcome itself.

    >>> round(float(IntegratedIndex()(View(p=[0.2, 0.8], y=[0, 1]))), 4)
    0.2
    """

    name: ClassVar[str] = "ici"
    exempt: ClassVar[dict[str, str]] = {"cells": "a smooth curve moves with each score, and cells keep only their mean"}
    smoother: Annotated[str, OneOf(KINDS)] = "loess"
    span: Annotated[float, Range(0, 1, closed="right")] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.span is not None and self.smoother == "isotonic":
            raise InputError("TO203", "The isotonic curve has no span.", repr(self.span), "Leave span out.")
        if self.smoother == "isotonic":  # refitted to every draw, it is not linear in the outcomes
            object.__setattr__(self, "norm", False)
            object.__setattr__(self, "interval", "noise-floor")

    def summarize(self, gap: Array, share: Array, unit: float) -> Array:
        """One number from the distances at each score (…, m) that holds a share of the rows (…, m)."""
        return (share * gap).sum(axis=-1)

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The summary of the distances between curve and scores."""
        unit = _row(view)
        if self.smoother == "isotonic":
            return lambda w, _wp, wy: self.summarize(np.abs(isotonic_means(w, wy) - s), w, unit)
        curve = LocalFit(self._local(), s, share, unit)
        return lambda _w, wp, wy: self.summarize(np.abs(curve(wy - wp)), share, unit)

    def _local(self) -> Smoother:
        smoother = SMOOTHERS[self.smoother]
        return (
            smoother if self.span is None else Smoother(smoother.degree, float(self.span), smoother.flat, smoother.step)
        )

    def settings_used(self, view: View) -> dict[str, Any]:
        """The smoother and its span."""
        return {"smoother": self.smoother, **({} if self.smoother == "isotonic" else {"span": self._local().span})}

    def notes(self, view: View) -> list[Note]:
        """A word where few outcomes of one kind bend the curve."""
        n_events = float((view.n * view.y).sum())
        rarer = round(min(n_events, view.n_rows - n_events))
        if rarer >= STEADY:
            return []
        text = f"{rarer:,} outcomes of the rarer kind bend a smooth curve easily; from about {STEADY} of each it is steady."
        return [Note("TN126", text)]


@dataclass(frozen=True)
class Quantile(IntegratedIndex):
    """A quantile over the rows of the distances between predictions and the curve.

    It is no norm, but where a curve's noise is of one size along the scores, the same quantile of that noise bounds
    what it adds; null draws alone understate it for predictions that are too sharp. Coverage was measured.
    """

    smooth: ClassVar[bool] = False
    below: ClassVar[float]

    def summarize(self, gap: Array, share: Array, unit: float) -> Array:
        """The quantile of the distances, rows in proportion to their weight."""
        return weighted_quantile(gap, share, self.below, unit)


@dataclass(frozen=True)
class MedianDistance(Quantile):
    r"""The median over rows of the distance between predictions and a smooth curve of outcome rates (E50).

    Answers: by how much does the stated risk miss at least half of the time?

    .. math:: \operatorname{median}_i |\hat r(p_i) - p_i|

    Curve, settings, bias, cost and errors as for `ici`. Units: probability, in [0, 1]; 0 is best. Rows of whole
    weight count as that many, between two of them the quantile is interpolated (type 7); other weights give the
    smallest distance that half of the weight does not exceed. With `isotonic` there is no interval. Source: Austin & Steyerberg (2019).

    >>> round(float(MedianDistance()(View(p=[0.2, 0.7], y=[0, 1]))), 4)
    0.25
    """

    name: ClassVar[str] = "e50"
    below: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smoother == "isotonic":  # intervals of 95 % covered 82 %: a flat step's median distance falls short
            object.__setattr__(self, "interval", None)


@dataclass(frozen=True)
class NinthDecile(Quantile):
    r"""The distance between predictions and a smooth curve that nine in ten rows do not exceed (E90).

    Answers: how far off is the stated risk for the tenth of people for whom it is worst?

    .. math:: q_{.9}\{|\hat r(p_i) - p_i|\}

    Curve, settings, bias, cost and errors as for `ici`; the quantile as for `e50`. Units: probability, in [0, 1];
    0 is best. Source: Harrell (2015); Austin & Steyerberg (2019).

    >>> round(float(NinthDecile()(View(p=[0.2, 0.7], y=[0, 1]))), 4)
    0.29
    """

    name: ClassVar[str] = "e90"
    below: ClassVar[float] = 0.9


@dataclass(frozen=True)
class WorstDistance(IntegratedIndex):
    r"""The largest distance between predictions and a smooth curve of outcome rates (Emax).

    Answers: how far off is the stated risk at worst, among the predictions that were made?

    .. math:: \max_i |\hat r(p_i) - p_i|

    Curve, settings, cost and errors as for `ici`. Units: probability, in [0, 1] (a parabola may leave it a little);
    0 is best. Bias: strongly upward: the curve's ends, where few rows are, decide.
    Source: Harrell (2015); Austin & Steyerberg (2019).

    >>> round(float(WorstDistance()(View(p=[0.2, 0.7], y=[0, 1]))), 4)
    0.3
    """

    name: ClassVar[str] = "emax"
    smooth: ClassVar[bool] = False

    def summarize(self, gap: Array, share: Array, unit: float) -> Array:
        """The maximum over scores that hold any weight."""
        return np.where(share > 0, gap, 0.0).max(axis=-1)


def _row(view: View) -> float:
    """The share of one row where weights are multiples of one row's; 0 where they are not."""
    return (view.unit or 0.0) / view.total


def weighted_quantile(x: Array, share: Array, level: float, unit: float) -> Array:
    """The quantile of x (…, m) along the last axis: type 7 for rows of share `unit`, else the inverse of the law.

    >>> weighted_quantile(np.array([3.0, 1.0]), np.array([0.5, 0.5]), 0.5, 0.5).tolist()
    2.0
    """
    order = np.argsort(x, axis=-1)
    sorted_values = np.take_along_axis(x, order, axis=-1)
    upto = np.cumsum(np.take_along_axis(np.broadcast_to(share, x.shape), order, axis=-1), axis=-1)
    rank = level * (1 / unit - 1) if unit > 0 else 0.0
    low = np.floor(rank + 1e-9)
    after = (low + 0.5) * unit if unit > 0 else level - 1e-12  # half a row off, so that sums may round
    lower = _reached(sorted_values, upto, after)
    if unit == 0 or rank - low < 1e-9:
        return lower
    return lower + (rank - low) * (_reached(sorted_values, upto, after + unit) - lower)


def _reached(sorted_values: Array, upto: Array, share: float) -> Array:
    place = np.minimum((upto < share).sum(axis=-1, keepdims=True), sorted_values.shape[-1] - 1)
    return np.take_along_axis(sorted_values, place, axis=-1)[..., 0]
