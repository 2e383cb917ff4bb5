"""The bin-by-bin test: the event count of each bin against its null distribution, corrected for the number of bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import HasPartition
from trueodds.core.errors import InputError, Note
from trueodds.core.holm import holm
from trueodds.core.typing import Array
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.lenses.view import View
from trueodds.resampling.bin_tails import CountTails, VectorTails
from trueodds.resampling.pvalues import pvalue

MAX_LISTED_BINS = 100  # maximum number of bins listed in the parts
MAX_COVARIANCE_ELEMENTS = 2e7  # maximum number of elements of all covariance matrices, 160 MB
MIN_EXPECTED_ROWS = 5.0  # expected rows of a class below which χ² is inaccurate


@dataclass(frozen=True, kw_only=True)
class BinByBin(HasPartition, ViewTest):
    r"""Test of every bin's event count against its null distribution, corrected for the number of bins.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"redraw", "asymptotic"}, default="redraw"
        Correction over the bins. "redraw" compares the smallest p-value with the smallest p-value of each null draw
        (min-p), which is exact for any bins and fills the column `joint` of the parts. "asymptotic" uses Holm's
        correction (column `holm`).
    partition : Partition, optional
        Bins. Default: as for `ece`, 15 uniform bins for a binary view, and for a joint one a median-variance tree of 16
        leaves (three outcomes) or cells by predicted class (more outcomes).

    Raises
    ------
    InputError
        TO203 for bins that depend on the outcomes. TO205 if the covariance matrices of all cells do not fit into
        memory.

    Notes
    -----
    .. math:: z_b = \frac{O_b - E_b}{\sqrt{\sum w^2 p (1 - p)}}, \quad O_b = \sum w y, \quad E_b = \sum w p

    The p-value of a bin is two-sided and uses the exact Poisson-binomial distribution of its count (normal if weights
    differ). A cell of vectors has :math:`X^2_b = d^\top V^+ d` with d = Σw(y − p) and the exact covariance
    V = Σw²(diag p − ppᵀ); X² is χ² with rank(V) degrees of freedom.

    Statistic: z, or X², of the bin with the smallest p-value. Effect: its gap, observed minus predicted, in probability
    units within [−1, 1]; for vectors the gap of the class with the largest gap. Parts: n, predicted, observed, gap,
    statistic, pvalue, holm and joint of each bin (the 100 smallest p-values if there are more bins, note TN225). If
    every probability of a bin is 0 or 1, one contradicting outcome makes its p-value 0 (note TN223). The χ²
    distribution is inaccurate in cells with fewer than 5 expected rows of a class, as is the normal distribution of few
    weighted rows (note TN212).

    Shapes: binary views (n,) and joint views (n, m). From a tally the rows of a fine cell share its mean.
    Cost: O(n log n + Σ min(n_b, 2000)²); with redraws, O(bins) per draw in addition to drawing the labels; for vectors
    O(cells · m²).

    References
    ----------
    .. [1] Bröcker & Smith (2007). Bins against their own null distribution.
    .. [2] Vaicenavicius et al. (2019). Cells of vectors.
    .. [3] Westfall & Young (1993). Min-p adjustment over bins.

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([1, 1, 1, 1], [0.5, 0.5, 0.5, 0.9], "bins", bins=2)
    >>> verdict.parts["[0, 0.5]"]["pvalue"], verdict.effect  # three heads of three: 2/8
    (0.25, 0.5)
    """

    name: ClassVar[str] = "bins"
    accepts_joint_views: ClassVar[bool] = True
    asymptotic_null: ClassVar[str] = (
        "the outcomes of each bin have their exact distribution (approximated for large, weighted or vector bins)"
    )
    joint_null: ClassVar[str] = "; the smallest p-value of all bins is compared with the smallest of each draw"
    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "a row of weight two is one row that counts double, not two independent rows"
    }
    null: str = "redraw"
    partition: Partition | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partition is not None and self.partition.uses_outcomes:
            raise InputError(
                "TO203",
                "The test is invalid for bins that depend on the outcomes.",
                f"partition {self.partition}",
                "Use equal-mass or uniform bins.",
            )

    def evaluate(self, view: View) -> ViewResult:
        """Test every bin, and report the one with the smallest p-value."""
        fitted_bins, tails = self._null_tails(view)
        binned = tails.binned
        wy = (binned.w[:, None] if view.joint else binned.w) * binned.y
        log_p = tails.log_p(wy)
        p = np.exp(log_p)
        table = {**_bin_gaps(binned), "statistic": tails.statistic(wy), "pvalue": p, "holm": np.array(holm(list(p)))}
        order = np.lexsort((-np.abs(table["statistic"]), log_p))  # by p-value, equal p-values by statistic
        notes = []
        if len(order) > MAX_LISTED_BINS:
            notes.append(
                Note(
                    "TN225",
                    f"The parts list the {MAX_LISTED_BINS} bins with the smallest p-values of {len(order):,} bins.",
                )
            )
        if (p == 0).any() and np.isinf(table["statistic"]).any():
            text = "All probabilities of a bin are 0 or 1, so one contradicting outcome makes p = 0."
            notes.append(Note("TN223", text))
        names, strongest = _bin_names(fitted_bins, tails.bin_index), order[0]
        parts = {names[b]: {key: float(x[b]) for key, x in table.items()} for b in np.sort(order[:MAX_LISTED_BINS])}
        partition = self.partition_for(view)
        settings = {"partition": str(partition), "occupied_bins": len(order), "smallest_bin": int(binned.n.min())}
        return ViewResult(
            statistic=float(table["statistic"][strongest]),
            pvalue=float(table["holm"][strongest]),
            effect=float(table["gap"][strongest]),
            parts=parts,
            settings_used=settings,
            notes=tuple(notes),
            asymptotic_warnings=_asymptotic_warnings(tails),
        )

    def cell_statistic(self, view: View) -> CellFunction:
        """The negative log of the smallest p-value of all bins, as a function of redrawn outcomes."""
        fitted_bins, tails = self._null_tails(view)
        bin_axis = -2 if view.joint else -1

        def largest_surprisal(_w: Array, _wp: Array, wy: Array) -> Array:
            """−log of the smallest p-value of each draw."""
            return np.asarray(-tails.log_p(np.take(wy, tails.bin_index, axis=bin_axis)).min(axis=-1))

        return CellFunction(view, view.assign(fitted_bins), fitted_bins.size, largest_surprisal)

    def add_draw_results(self, result: ViewResult, _view: View, values: Array, draws: Sequence[Array]) -> ViewResult:
        """Add the min-p adjusted p-value of each bin: of its surprisal −log p among the largest ones of the draws."""
        parts: dict[str, Mapping[str, float]] = {}
        for name, result_of_bin in result.parts.items():
            surprisal = -np.log(result_of_bin["pvalue"]) if result_of_bin["pvalue"] > 0 else np.inf
            joint_pvalue = max(pvalue(float(surprisal), null_draws) for null_draws in draws)
            parts[name] = {**result_of_bin, "joint": joint_pvalue}
        return replace(result, parts=parts)

    def _null_tails(self, view: View) -> tuple[FittedPartition, CountTails | VectorTails]:
        """The bins of the view, and the null distribution of the outcomes in them."""
        partition = self.partition_for(view)
        fitted_bins = view.cached(partition, lambda: partition.fit(view))
        if view.joint and (n_elements := fitted_bins.size * view.p.shape[1] ** 2) > MAX_COVARIANCE_ELEMENTS:
            raise InputError(
                "TO205",
                "The covariance matrices of all cells do not fit into memory.",
                f"{fitted_bins.size:,} cells of {view.p.shape[1]} outcomes, {n_elements:,} elements",
                "Use a larger ⟨min_size⟩, or ⟨lens='classwise'⟩.",
            )
        tails_class = VectorTails if view.joint else CountTails
        return fitted_bins, tails_class(view, view.assign(fitted_bins), fitted_bins.size)


def _bin_gaps(binned: View) -> dict[str, Array]:
    """Columns n, predicted, observed and gap, (bins,); for vectors those of the class with the largest gap."""
    p, y = binned.p, binned.y
    class_column = {}
    if binned.joint:
        worst_class = np.argmax(np.abs(y - p), axis=1)
        class_column = {"class": worst_class}
        bins = np.arange(len(p))
        p, y = p[bins, worst_class], y[bins, worst_class]
    return {"n": binned.n, **class_column, "predicted": p, "observed": y, "gap": y - p}


def _bin_names(fitted_bins: FittedPartition, bin_index: Array) -> dict[int, str]:
    """Names of the occupied bins by position in `bin_index` (bins,), which has their numbers among all bins.

    A bin of one score is named by its interval, of log odds if the bins are cut between these, and a cell of vectors by
    its number.
    """
    if not isinstance(fitted_bins, Bins):
        return {b: f"cell {number}" for b, number in enumerate(bin_index)}
    edges, scale = fitted_bins.edges, ""
    if fitted_bins.log_odds_edges is not None:  # several probabilities may be equal
        edges, scale = np.concatenate(([-np.inf], fitted_bins.log_odds_edges[1:-1], [np.inf])), "log odds "
    bin_names = {}
    left_bracket, right_bracket = ("(", "]") if fitted_bins.closed == "right" else ("[", ")")
    for b, number in enumerate(bin_index):
        opening = "[" if number == 0 else left_bracket
        closing = "]" if number == fitted_bins.size - 1 else right_bracket
        bin_names[b] = f"{scale}{opening}{edges[number]:.6g}, {edges[number + 1]:.6g}{closing}"
    return bin_names


def _asymptotic_warnings(tails: CountTails | VectorTails) -> tuple[str, ...]:
    binned = tails.binned
    if isinstance(tails, VectorTails):
        expected = np.where(tails.has_no_variance, np.inf, binned.p) * (binned.w**2 / binned.sums("ww"))[:, None]
        n_small = int((expected.min(axis=1) < MIN_EXPECTED_ROWS).sum())
        text = f"{n_small} of {len(binned.w)} cells have fewer than 5 expected rows of some class, so χ² is inaccurate."
    else:
        effective_n = binned.w**2 / binned.sums("ww") * np.minimum(binned.p, 1 - binned.p)
        n_small = int((effective_n[tails.normal_bins] < MIN_EXPECTED_ROWS).sum())
        text = (
            f"{n_small} of {len(binned.w)} bins have fewer than 5 expected weighted events or non-events, so the normal"
            " distribution is inaccurate."
        )
    return (text,) if n_small else ()
