"""Decompositions of proper scores on the cells of a partition, such as reliability, resolution and uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import HasPartition
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import OneOf, check
from trueodds.core.typing import Array
from trueodds.estimators.base import ProperScore
from trueodds.lenses.view import View

Terms = dict[str, float]  # terms of a decomposition by name
Score = Callable[[Array, Array], Array]  # from predictions and outcomes, (n,) or (n, m), to the score of each row, (n,)


@dataclass(frozen=True)
class DecomposableScore(HasPartition, ProperScore):
    """Base class of proper scores that can be decomposed on the cells of a partition."""

    decompositions: ClassVar[tuple[str, ...]] = ()
    decomposition: str | None = field(default=None, kw_only=True)  # one of `decompositions`; None: no terms
    partition: Partition | None = field(default=None, kw_only=True)  # cells of the decomposition; None: the default

    def __post_init__(self) -> None:
        super().__post_init__()
        check("decomposition", self.decomposition, Annotated[str, OneOf(self.decompositions)] | None, None)
        if self.partition is not None and self.decomposition is None:
            raise InputError(
                "TO202",
                f"{self.name} uses no bins. Only its decomposition does.",
                f"partition {self.partition}",
                f"Omit it, or add decomposition='{self.decompositions[-1]}'.",
            )

    def terms(self, view: View, index: Array, binned: View) -> Terms:
        """Terms of the selected decomposition. `index` maps each row to a cell of `binned`."""
        raise NotImplementedError

    def parts(self, view: View) -> Terms:
        """Terms of the decomposition, if one is selected."""
        return self.terms(view, *self._cells(view)) if self.decomposition else {}

    def settings_used(self, view: View) -> dict[str, Any]:
        if self.decomposition is None:
            return {}
        partition = self.partition_for(view)
        binned = self._cells(view)[1]
        return {
            "decomposition": self.decomposition,
            "partition": str(partition),
            "occupied_bins": len(binned.w),
            "smallest_bin": int(binned.n.min()),
        }

    def notes(self, view: View) -> list[Note]:
        if self.decomposition is None:
            return []
        n = self._cells(view)[1].n
        n_single, n_small = int((n < 2).sum()), int((n < 10).sum())
        if self.decomposition == "ferro-fricker":
            text = (
                f"{n_single:,} of {len(n):,} occupied bins contain{'s' if n_single == 1 else ''} one row, whose noise"
                " cannot be removed from the terms."
            )
            return [Note("TN127", text)] if n_single else []
        if not n_small:
            return []
        first_term = "reliability" if self.decomposition == "murphy" else "calibration"
        text = (
            f"{n_small:,} of {len(n):,} occupied bins {'contains' if n_small == 1 else 'contain'} fewer than 10 rows:"
            f" {first_term} and resolution are biased upward."
        )
        return [Note("TN128", text)]

    def _cells(self, view: View) -> tuple[Array, View]:
        """The occupied cell of each row, (n,), and the view of these cells. Rows of weight 0 may have any cell."""
        fitted_partition = self.partition_for(view).fit(view)
        index = view.assign(fitted_partition)
        occupied = np.unique(index[view.w > 0])
        cell = np.minimum(np.searchsorted(occupied, index), len(occupied) - 1)
        return cell, view.pool(cell, len(occupied))


def murphy_terms(view: View, index: Array, binned: View) -> Terms:
    r"""Reliability, resolution and uncertainty of the Brier score, and the variation within bins.

    .. math:: \text{BS} = \text{REL} - \text{RES} + \text{UNC} + \text{WBV} - \text{WBC}

    with :math:`\text{REL} = \sum_b \tfrac{w_b}{w} (\bar p_b - \bar y_b)^2`, :math:`\text{RES} = \sum_b \tfrac{w_b}{w}
    (\bar y_b - \bar y)^2`, :math:`\text{UNC} = \bar y (1 - \bar y)`, WBV the variance of the scores within bins, and
    WBC twice their covariance with the outcomes within bins. Without the last two the identity holds only if all scores
    of a bin are equal. Exact for rows and for cells. Source: Murphy (1973); Stephenson, Coelho & Jolliffe (2008).
    """
    share, p, y = binned.w / binned.w.sum(), binned.p, binned.y
    rate = float(share @ y)
    # Deviations from the means of the cells avoid cancellation; for single rows both brackets are exactly 0.
    w, row_p, row_y = view.w, view.p.astype(np.float64, copy=False), view.y
    within_variance = (view.sums("wpp") - w * row_p * row_p) + w * (row_p - p[index]) ** 2
    within_covariance = (view.sums("wpy") - w * row_p * row_y) + w * (row_p - p[index]) * (row_y - y[index])
    return {
        "reliability": float(share @ (p - y) ** 2),
        "resolution": float(share @ (y - rate) ** 2),
        "uncertainty": rate * (1 - rate),
        "within_bin_variance": float(within_variance.sum() / w.sum()),
        "within_bin_covariance": float(2 * within_covariance.sum() / w.sum()),
    }


def ferro_fricker_terms(view: View, index: Array, binned: View) -> Terms:
    r"""Murphy's terms, corrected for the bias from noisy event rates.

    .. math:: \text{REL} - c, \quad \text{RES} - c + v, \quad \text{UNC} + v

    where v estimates the variance of :math:`\bar y` and c the mean over bins of the variances of :math:`\bar y_b`,
    which for n rows of equal weight is :math:`\bar y (1 - \bar y) / (n - 1)`. Bins of one row are not corrected. The
    terms still add up to the score. Corrected terms can be negative and are not clipped, because clipping would bias
    them. Source: Ferro & Fricker (2012).
    """
    terms = murphy_terms(view, index, binned)
    share = binned.w / binned.w.sum()
    rate_variance = float(share @ _mean_outcome_variance(binned.w, binned.sums("ww"), binned.y, binned.sums("wyy")))
    single_cell = np.zeros(len(view.w), dtype=np.intp)
    overall = view.pool(single_cell, 1)
    overall_variance = float(_mean_outcome_variance(overall.w, overall.sums("ww"), overall.y, overall.sums("wyy"))[0])
    return terms | {
        "reliability": terms["reliability"] - rate_variance,
        "resolution": terms["resolution"] - rate_variance + overall_variance,
        "uncertainty": terms["uncertainty"] + overall_variance,
    }


def _mean_outcome_variance(w: Array, ww: Array, y: Array, wyy: Array) -> Array:
    """Estimated variance of the weighted mean outcome y of each cell; 0 if a single row has all the weight.

    w, ww and wyy are Σw, Σw² and Σwy² of the cells, (cells,) each.
    """
    pair_weight = w**2 - ww  # Σ w_i w_j over the pairs i ≠ j: n(n − 1) for n rows of weight 1
    has_pairs = pair_weight > 1e-12 * w**2
    variance = np.maximum(wyy / w - y**2, 0.0)  # ȳ(1 − ȳ) except for votes; below 0 only by rounding
    return np.where(has_pairs, variance * ww / np.where(has_pairs, pair_weight, 1.0), 0.0)


def calibration_refinement_terms(score: Score, binned: View, divergence: Array, within_cells: float) -> Terms:
    r"""Calibration and refinement of a score that is linear in the outcome.

    .. math:: S = \sum_b \tfrac{w_b}{w} d(\bar p_b, \bar y_b) + \sum_b \tfrac{w_b}{w} S(\bar y_b, \bar y_b)
        + \tfrac1w \sum_i w_i \big( S(p_i, y_i) - S(\bar p_{b(i)}, y_i) \big)

    where d(p, y) = S(p, y) − S(y, y) is the divergence of the score, passed per cell as `divergence`: squared distance
    for the Brier score, Kullback–Leibler for log loss. `within_cells` is the last sum, which is 0 if the predictions of
    a cell are equal. Refinement is uncertainty, S of the overall rate, minus resolution, the mean divergence of the
    rates of the cells from it. Source: DeGroot & Fienberg (1983); Bröcker (2009).
    """
    share, y = binned.w / binned.w.sum(), binned.y
    rate = np.broadcast_to(share @ y, y.shape)
    return {
        "calibration": float(share @ divergence),
        "refinement": float(share @ score(y, y)),
        "within_bins": within_cells,
        "uncertainty": float(score(rate[:1], rate[:1])[0]),
        "resolution": float(share @ (score(rate, y) - score(y, y))),
    }


def within_cells_score(view: View, row_scores: Array, cell_scores: Array) -> float:
    """Part of the mean score from predictions that differ within a cell.

    `row_scores` (n,) are the scores of the predictions of the rows, `cell_scores` (n,) those of the mean predictions of
    their cells.
    """
    with np.errstate(invalid="ignore"):
        # If all predictions of a cell exclude the observed outcome, both are infinite, and the difference counts as 0.
        difference = np.where(row_scores == cell_scores, 0.0, row_scores - cell_scores)
    counted = view.w > 0
    return float(weighted_sum(view.w[counted], difference[counted]) / view.total)
