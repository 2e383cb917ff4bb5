"""Decomposition of proper scores into calibration and refinement on the cells of a partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import as_partition, default_for
from trueodds.core.errors import InputError, Note
from trueodds.core.registry import settings_of
from trueodds.core.settings import OneOf, check
from trueodds.core.typing import Array
from trueodds.estimators.base import ProperScore
from trueodds.estimators.binned import PARTITION_SETTINGS
from trueodds.lenses.view import View

Terms = dict[str, float]
Score = Callable[[Array, Array], Array]  # (said, seen), cell by cell, binary or joint


@dataclass(frozen=True)
class Decomposed(ProperScore):
    """A proper score that can say what it is made of, on the cells of a partition."""

    decompositions: ClassVar[tuple[str, ...]] = ()
    decomposition: str | None = field(default=None, kw_only=True)
    partition: Partition | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check("decomposition", self.decomposition, Annotated[str, OneOf(self.decompositions)] | None, None)
        if self.partition is not None and self.decomposition is None:
            raise InputError(
                "TO202",
                f"{self.name} pools no rows, so it takes no bins; only its decomposition does.",
                f"partition {self.partition}",
                f"Leave it out, or add decomposition='{self.decompositions[-1]}'.",
            )

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return (*PARTITION_SETTINGS, *(name for name in settings_of(cls) if name != "partition"))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> Decomposed:
        """The score from the façade's settings, where bins and partition are words."""
        partition_settings = {name: settings.pop(name) for name in PARTITION_SETTINGS if name in settings}
        return cls(partition=as_partition(**partition_settings), **settings)

    def terms(self, view: View, index: Array, binned: View) -> Terms:
        """The terms of the chosen decomposition; `index` puts each row into a cell of `binned`."""
        raise NotImplementedError

    def parts(self, view: View) -> Terms:
        """The terms of the decomposition, where one was asked for."""
        return self.terms(view, *self._cells(view)) if self.decomposition else {}

    def settings_used(self, view: View) -> dict[str, Any]:
        """The decomposition and its cells, where one was asked for."""
        if self.decomposition is None:
            return {}
        partition = self.partition or default_for(view)
        binned = self._cells(view)[1]
        return {
            "decomposition": self.decomposition,
            "partition": str(partition),
            "occupied_bins": len(binned.w),
            "smallest_bin": int(binned.n.min()),
        }

    def notes(self, view: View) -> list[Note]:
        """A word where cells of few rows bend the terms."""
        if self.decomposition is None:
            return []
        n = self._cells(view)[1].n
        single, n_small = int((n < 2).sum()), int((n < 10).sum())
        if self.decomposition == "ferro-fricker":
            text = f"{single:,} of {len(n):,} occupied bins hold one row, whose noise cannot be taken out of the terms."
            return [Note("TN127", text)] if single else []
        if not n_small:
            return []
        first, second = (
            ("reliability", "resolution") if self.decomposition == "murphy" else ("calibration", "resolution")
        )
        text = (
            f"{n_small:,} of {len(n):,} occupied bins hold fewer than 10 rows: {first} and {second} come out too large."
        )
        return [Note("TN128", text)]

    def _cells(self, view: View) -> tuple[Array, View]:
        """The occupied cell of each row (0 for rows of weight 0, which count nowhere), and the cells."""
        frozen = (self.partition or default_for(view)).freeze(view)
        index = frozen.index(view.at)
        occupied = np.unique(index[view.w > 0])
        place = np.minimum(np.searchsorted(occupied, index), len(occupied) - 1)
        return place, view.pool(place, len(occupied))


def murphy(view: View, index: Array, binned: View) -> Terms:
    r"""Reliability, resolution and uncertainty of Brier's score, and what varies inside the bins.

    .. math:: \text{BS} = \text{REL} - \text{RES} + \text{UNC} + \text{WBV} - \text{WBC}

    with :math:`\text{REL} = \sum_b \tfrac{w_b}{w} (\bar p_b - \bar y_b)^2`,
    :math:`\text{RES} = \sum_b \tfrac{w_b}{w} (\bar y_b - \bar y)^2`, :math:`\text{UNC} = \bar y (1 - \bar y)`,
    WBV the variance of the scores within bins, and WBC twice their covariance with the outcomes there. Without the
    last two the identity fails unless all scores of a bin are equal. Exact from rows and from cells.
    Source: Murphy (1973); Stephenson, Coelho & Jolliffe (2008).
    """
    share, p, y = binned.w / binned.w.sum(), binned.p, binned.y
    rate = float(share @ y)
    # Differences from the cell's means first: of a row both brackets are exactly 0, and nothing cancels.
    w, x, z = view.w, view.p.astype(np.float64, copy=False), view.y
    inside = (view.sums("wpp") - w * x * x) + w * (x - p[index]) ** 2
    common = (view.sums("wpy") - w * x * z) + w * (x - p[index]) * (z - y[index])
    return {
        "reliability": float(share @ (p - y) ** 2),
        "resolution": float(share @ (y - rate) ** 2),
        "uncertainty": rate * (1 - rate),
        "within_bin_variance": float(inside.sum() / w.sum()),
        "within_bin_covariance": float(2 * common.sum() / w.sum()),
    }


def ferro_fricker(view: View, index: Array, binned: View) -> Terms:
    r"""Murphy's terms without the bias that the noise of the outcome rates gives them.

    .. math:: \text{REL} - c, \quad \text{RES} - c + v, \quad \text{UNC} + v

    where v estimates the variance of :math:`\bar y` and c the mean over bins of those of :math:`\bar y_b`, which for
    n rows of equal weight is :math:`\bar y (1 - \bar y) / (n - 1)`; bins of one row leave nothing to estimate it
    from and are not corrected. They still add up to the score. A corrected term can be negative, and is left so:
    that is what makes it right on average. Source: Ferro & Fricker (2012).
    """
    terms = murphy(view, index, binned)
    share = binned.w / binned.w.sum()
    c = float(share @ _variance(binned.w, binned.sums("ww"), binned.y, binned.sums("wyy")))
    everything = np.zeros(len(view.w), dtype=np.intp)
    overall = view.pool(everything, 1)
    v = float(_variance(overall.w, overall.sums("ww"), overall.y, overall.sums("wyy"))[0])
    return terms | {
        "reliability": terms["reliability"] - c,
        "resolution": terms["resolution"] - c + v,
        "uncertainty": terms["uncertainty"] + v,
    }


def _variance(w: Array, ww: Array, y: Array, wyy: Array) -> Array:
    """The estimated variance of each weighted mean outcome; 0 where a single row carries the weight."""
    pairs = w**2 - ww  # the weight of all pairs of rows: n(n − 1) of them where all weigh alike
    enough = pairs > 1e-12 * w**2
    variance = np.maximum(wyy / w - y**2, 0.0)  # ȳ(1 − ȳ) but for votes; below 0 only by rounding
    return np.where(enough, variance * ww / np.where(enough, pairs, 1.0), 0.0)


def calibration_refinement(score: Score, binned: View, calibration: Array, inside: float) -> Terms:
    r"""Calibration and refinement of a score that is linear in the outcome.

    .. math:: S = \sum_b \tfrac{w_b}{w} d(\bar p_b, \bar y_b) + \sum_b \tfrac{w_b}{w} S(\bar y_b, \bar y_b)
        + \tfrac1w \sum_i w_i \big( S(p_i, y_i) - S(\bar p_{b(i)}, y_i) \big)

    with the score's own divergence d(p, y) = S(p, y) − S(y, y), given by cell as `calibration`: squared distance for
    Brier's score, Kullback–Leibler for log loss. `inside` is the last sum, 0 where the predictions of a cell are equal.
    Refinement is uncertainty, S of the overall rate, minus resolution, the mean divergence of the cells' rates from it.
    Source: DeGroot & Fienberg (1983); Bröcker (2009).
    """
    share, y = binned.w / binned.w.sum(), binned.y
    rate = np.broadcast_to(share @ y, y.shape)
    return {
        "calibration": float(share @ calibration),
        "refinement": float(share @ score(y, y)),
        "within_bins": inside,
        "uncertainty": float(score(rate[:1], rate[:1])[0]),
        "resolution": float(share @ (score(rate, y) - score(y, y))),
    }


def inside_cells(view: View, single: Array, mean: Array) -> float:
    """How much of the mean score comes from predictions that differ inside a cell, from the scores of rows and of cells.

    `single` (n,) scores each row's own prediction, `mean` (n,) the mean prediction of its cell.
    """
    with np.errstate(invalid="ignore"):
        # Both are infinite where the whole cell rules the observed outcome out: that is calibration.
        difference = np.where(single == mean, 0.0, single - mean)
    counted = view.w > 0
    return float(view.w[counted] @ difference[counted] / view.total)
