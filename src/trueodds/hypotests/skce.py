"""Test of the squared kernel calibration error (SKCE), with redrawn, bootstrap, block or distribution-free p-values.

In this module h_ij = k(p_i, p_j) (y_i − p_i)·(y_j − p_j) is the contribution of a pair of rows, U is its mean over
pairs of different rows (the unbiased SKCE), and V its mean over all n² pairs (the biased SKCE).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import ndtr

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.pvalues import pvalue
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.estimators._pairwise.similarity_kernels import Bandwidth, KernelName, Similarity, draw_multiplicities
from trueodds.estimators.skce import FORMS, MAX_DRAWN_ROWS, RowPairs, SquaredKernelError
from trueodds.hypotests.per_view import DEFAULT_RESAMPLES, ViewTest
from trueodds.hypotests.view_statistic import ViewResult
from trueodds.lenses.view import View

KERNEL_BOUND = 2.0  # upper bound of |k (e_y − p)·(e_z − q)| for a kernel k ≤ 1
MIN_EXPECTED_OUTCOMES = 10.0  # Σ p(1 − p) below which the asymptotic distributions reject too often
MIN_BLOCKS = 20  # blocks; t with 19 degrees of freedom exceeds the normal 5 % point with probability 5.8 %


def bootstrap_pvalue(pairs: RowPairs, resamples: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the statistic n U / (n − 1) − V and its bootstrap p-value.

    Under the null h is degenerate: its mean given one of the rows is 0. Resampled rows do not have this property, so
    the statistic of a resample is compared without its linear part (Arcones & Giné 1992). A weight is part of the
    residual of its row: Σ w_i w_j h_ij is as degenerate as Σ h_ij.
    """
    n = len(pairs.rows)
    blocks = draw_multiplicities(n, resamples, max(1, MAX_DRAWN_ROWS // n), rng)
    draws = np.concatenate([bootstrap_statistics(pairs, multiplicities) for multiplicities in blocks])
    statistic = centered_statistic(pairs)
    return statistic, pvalue(statistic, draws)


def centered_statistic(pairs: RowPairs) -> float:
    """Return n U / (n − 1) − V of the observed rows, divided by the squared mean weight."""
    n = len(pairs.rows)
    self_pair_sum = float((pairs.residual**2).sum(axis=1) @ pairs.diagonal)  # Σ h_ii
    pair_sum = float(pairs.quadratic_forms.observed[0])  # Σ h_ij over pairs of different rows
    return (
        pairs.residual_factor
        * (pair_sum / (n - 1) ** 2 - (pair_sum + self_pair_sum) / n**2)
        / float(pairs.w.mean()) ** 2
    )


def bootstrap_statistics(pairs: RowPairs, multiplicities: Array) -> Array:
    """Return n U / (n − 1) − V of resampled rows minus its linear part, (draws,).

    It is n⁻² [a Σ (c_i c_j − [i=j] c_i) h_ij − 2 Σ c_i h_ij] with a = n / (n − 1), where the `multiplicities` c (draws,
    n) count how often each row was drawn. The sum over pairs i ≠ j is a quadratic form in c − 1/a, because a c'Hc − 2
    c'H1 = a (c − 1/a)'H(c − 1/a) − 1'H1 / a.
    """
    n = len(pairs.rows)
    correction = n / (n - 1)
    float_multiplicities = multiplicities.astype(np.float64)
    self_pairs = (pairs.residual**2).sum(axis=1) * pairs.diagonal
    square = (
        correction * pairs.quadratic_forms.weighted_pair_sums(float_multiplicities - 1 / correction)
        - pairs.quadratic_forms.observed / correction
    )
    return np.asarray(
        pairs.residual_factor
        * (
            square
            + (correction * (float_multiplicities**2 - float_multiplicities) - 2 * float_multiplicities) @ self_pairs
        )
        / n**2
        / float(pairs.w.mean()) ** 2
    )


@dataclass(frozen=True)
class BlockStatistics:
    """Mean of h over the pairs of rows within blocks, and its standard error from the differences between blocks."""

    mean: float  # U over all blocks, each weighted by its pairs
    stderr: float  # its standard error; NaN for fewer than two blocks
    n_blocks: int  # number of blocks

    @classmethod
    def from_pairs(cls, pairs: RowPairs) -> BlockStatistics:
        """Create from the pairs within blocks; for equal block sizes the mean of their U and its standard error."""
        starts, w = pairs.edges[:-1], pairs.w
        pair_weights = np.add.reduceat(w, starts) ** 2 - np.add.reduceat(w**2, starts)
        block_sums, n_blocks = pairs.residual_factor * pairs.quadratic_forms.pair_sums_by_block(), len(starts)
        mean = float(block_sums.sum() / pair_weights.sum())
        if n_blocks < 2:
            return cls(mean, float("nan"), n_blocks)
        deviations = block_sums - mean * pair_weights
        stderr = float(np.sqrt(n_blocks / (n_blocks - 1) * (deviations**2).sum()) / pair_weights.sum())
        return cls(mean, stderr, n_blocks)

    @property
    def z(self) -> float:
        """The mean divided by its standard error."""
        return self.mean / self.stderr

    @property
    def pvalue(self) -> float:
        """One-sided normal p-value."""
        return float(ndtr(-self.z))

    def asymptotic_warnings(self) -> tuple[str, ...]:
        """Return a warning if there are too few blocks for a normal z."""
        if self.n_blocks >= MIN_BLOCKS:
            return ()
        text = (
            f"The standard error comes from only {self.n_blocks} blocks, so z has heavier tails than the normal"
            " distribution."
        )
        return (text,)


def pvalue_bound_unbiased(u: float, n: int) -> float:
    """Return Hoeffding's upper bound exp(−⌊n/2⌋ (U/B)² / 2) of the p-value of U, with B = KERNEL_BOUND ≥ |h|.

    It is 1 if U is negative. Source: Widmann, Lindsten & Zachariah (2019).
    """
    return float(np.exp(-(n // 2) * (max(0.0, u) / KERNEL_BOUND) ** 2 / 2))


def pvalue_bound_biased(v: float, n: int) -> float:
    """Return the upper bound exp(−max(0, √(nV/B) − 1)² / 2) of the p-value of V, with B = KERNEL_BOUND ≥ |h|.

    Source: Widmann, Lindsten & Zachariah (2019).
    """
    return float(np.exp(-(max(0.0, np.sqrt(n * max(0.0, v) / KERNEL_BOUND) - 1) ** 2) / 2))


def rare_outcome_warnings(view: View) -> tuple[str, ...]:
    """Return a warning if outcomes are so rare that the asymptotic distribution rejects too often."""
    mask = view.w > 0
    w, p = view.w[mask], np.asarray(view.p[mask], dtype=np.float64)
    variance = (1 - (p**2).sum(axis=1)) / 2 if view.joint else p * (1 - p)
    effective_sum = (
        float(weighted_sum(w, variance) ** 2 / weighted_sum(w**2, variance)) if (variance > 0).any() else 0.0
    )
    if effective_sum >= MIN_EXPECTED_OUTCOMES:
        return ()
    text = (
        f"Outcomes are rare: the effective Σ p(1 − p) is {effective_sum:.2g}, and the asymptotic distribution rejects"
        " too often."
    )
    return (text,)


NULL_DESCRIPTIONS = {
    "bootstrap": "the kernel of the pairs has mean 0, and n U / (n − 1) − V is distributed as on resampled rows",
    "block": "the mean of the blocks over its standard error is standard normal; one-sided for large values",
    "distribution-free": "the probability of a larger value has a bound that holds for any predictions",
}


@dataclass(frozen=True, kw_only=True)
class KernelTest(ViewTest):
    r"""Test of the squared kernel calibration error (SKCE) of probability vectors, without bins.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"redraw", "bootstrap", "block", "distribution-free"}, default="redraw"
        Null distribution. "redraw" draws labels from the predicted probabilities and keeps the kernel matrix; it is
        exact at any n. "bootstrap" resamples rows. "block" divides the mean over blocks by its standard error.
        "distribution-free" is a Hoeffding bound that is always valid and rarely small.
    resamples : int, default=999
        Number of null draws for "redraw" and "bootstrap".
    form : {"auto", "unbiased", "biased", "block"}, default="auto"
        Form of the estimator, as for the estimator `skce`. ``null="block"`` uses blocks, ``null="bootstrap"`` all
        pairs.
    kernel : {"exponential", "gaussian", "tv-exponential"} or callable, default="exponential"
        Kernel, as for the estimator `skce`.
    bandwidth : float or "median", default="median"
        Bandwidth of the kernel, as for the estimator `skce`.
    block_size : int, optional
        Rows per block, as for the estimator `skce`.

    Raises
    ------
    InputError
        TO203 for an unknown form, kernel or bandwidth. TO205 if `form` does not fit `null`, if ``null="bootstrap"``
        gets more rows than have all pairs compared, and for weights or a callable kernel with
        ``null="distribution-free"``.

    Notes
    -----
    The statistic

    .. math:: U = \frac{1}{n(n-1)} \sum_{i \ne j} k(p_i, p_j)\,(y_i - p_i)\cdot(y_j - p_j)

    has mean 0 under the null. It grows if rows with similar predictions have residuals in the same direction, so the
    test is one-sided. Among the tests of complete probability vectors it has the highest power against shifts of all
    probabilities. It detects local errors if the bandwidth is that narrow.

    Reported statistic: U, signed, for "redraw" and "distribution-free" (V if ``form="biased"``), n U / (n − 1) − V for
    "bootstrap", where V is the biased form, and z for "block". Effect: √max(0, U), the norm of the residual that rows
    with similar predictions share, in probability units. For two classes it is √2 times the residual of one class.

    "bootstrap" compares n U / (n − 1) − V with its values on resampled rows minus their linear part (Arcones & Giné).
    "block" depends on the order of the rows, and ``block_size=2`` costs O(n). Both reject too often if outcomes are
    rare: with Σ p(1 − p) below 10 they rejected 20 to 35 % of calibrated data sets at 5 % (n = 30, probabilities near
    .05), and up to 10 % (n = 100). A note reports this. Undefined (NaN) for one row (note TN118) and for blocks that do
    not differ (note TN221).

    Shapes: binary and joint views. Weights are importance weights; "distribution-free" does not accept weights. Cost:
    O(n²m) and O(n²) per draw for vectors (half a second for 999 draws of 5,000 rows); O(n log n) for one score with an
    exponential kernel. Requires rows, not a tally. Beyond 5,000 vectors only pairs within blocks are compared (note
    TN119).

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah (2019).
    .. [2] Widmann, Lindsten & Zachariah (2021).

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([1] * 4, [[0.5, 0.5]] * 4, "skce", null="distribution-free")
    >>> round(verdict.pvalue, 4)  # U = ½, so exp(−2 (½ / 2)² / 2)
    0.9394
    """

    name: ClassVar[str] = "skce"
    lens: ClassVar[str | None] = "canonical"
    accepts_joint_views: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = True
    null_distributions: ClassVar[tuple[str, ...]] = ("redraw", "bootstrap", "block", "distribution-free")
    simulated_nulls: ClassVar[tuple[str, ...]] = ("redraw", "bootstrap")
    exemptions: ClassVar[dict[str, str]] = SquaredKernelError.exemptions
    null: str = "redraw"
    form: Annotated[str, OneOf(FORMS)] = "auto"
    kernel: KernelName | Similarity = "exponential"
    bandwidth: Bandwidth = "median"
    block_size: Annotated[int, Range(2)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        required_form = {"bootstrap": "unbiased", "block": "block"}.get(self.null)
        if required_form is not None and self.form not in ("auto", required_form):
            raise InputError(
                "TO205",
                "This null distribution requires another form of the statistic.",
                f"form={self.form!r} with null={self.null!r}",
                f"Use form={required_form!r}, or omit it.",
            )
        if self.null == "distribution-free" and not isinstance(self.kernel, str):
            raise InputError(
                "TO205",
                "The distribution-free bound requires a bounded kernel, and the bound of a function is unknown.",
                "a function as kernel with null='distribution-free'",
                "Use ⟨null='redraw'⟩, or a kernel name.",
            )

    @property
    def asymptotic_null(self) -> str:  # type: ignore[override]
        """Description of the null distribution."""
        return NULL_DESCRIPTIONS.get(self.null, "")

    def evaluate(self, view: View) -> ViewResult:
        """The statistic, and the p-value of a null distribution without draws."""
        pairs, estimator = self.cell_statistic(view), self._estimator()
        value = pairs.value()
        # With null="block" the note TN119 on blocks is written by `_with_block_pvalue`.
        notes = [note for note in estimator.notes(view) if note.code != "TN119" or self.null != "block"]
        result = ViewResult(
            statistic=value,
            pvalue=float("nan"),
            effect=float(np.sqrt(max(0.0, value))),
            settings_used=estimator.settings_used(view),
            notes=tuple(notes),
        )
        if pairs.has_no_pairs:
            return replace(result, effect=float("nan"))
        if self.null == "block":
            return _with_block_pvalue(result, view, BlockStatistics.from_pairs(pairs))
        if self.null == "distribution-free":
            _require_equal_weights(view)
            n = len(pairs.rows)
            p = pvalue_bound_biased(value, n) if pairs.form == "biased" else pvalue_bound_unbiased(value, n)
            note = Note("TN222", "The p-value is an upper bound for any predictions. A large bound is not informative.")
            return replace(result, pvalue=p, notes=(*result.notes, note))
        return result

    def evaluate_with_draws(self, view: View, rng: np.random.Generator) -> ViewResult:
        """The result of `evaluate`, with the bootstrap p-value."""
        result = self.evaluate(view)
        if self.null != "bootstrap" or np.isnan(result.statistic):
            return result
        pairs = self.cell_statistic(view)
        if pairs.form != "unbiased":
            raise InputError(
                "TO205",
                "The bootstrap evaluates all pairs of rows in every draw, and there are too many rows.",
                f"{len(pairs.rows):,} rows",
                "Use ⟨null='redraw'⟩ or 'block', or form='unbiased' to evaluate all pairs anyway.",
            )
        statistic, p = bootstrap_pvalue(pairs, self.resamples or DEFAULT_RESAMPLES, rng)
        parts = {"skce": {"unbiased": pairs.value(), "biased": pairs.biased()}}
        return replace(
            result, statistic=statistic, pvalue=p, parts=parts, asymptotic_warnings=rare_outcome_warnings(view)
        )

    def cell_statistic(self, view: View) -> RowPairs:
        return self._estimator().cell_statistic(view)

    def _estimator(self) -> SquaredKernelError:
        """The SKCE estimator with the form and the kernel of this test."""
        form = "block" if self.null == "block" else self.form
        return SquaredKernelError(form, self.kernel, self.bandwidth, self.block_size)


def _with_block_pvalue(result: ViewResult, view: View, blocks: BlockStatistics) -> ViewResult:
    """Replace the statistic by z of the blocks, with its p-value; z is NaN without a standard error."""
    if not blocks.stderr > 0:
        note = Note("TN221", "z is undefined: fewer than two blocks, or equal blocks, have no standard error.")
        return replace(result, statistic=float("nan"), notes=(*result.notes, note))
    parts = {"blocks": {"mean": blocks.mean, "stderr": blocks.stderr, "count": blocks.n_blocks}}
    warnings = (*rare_outcome_warnings(view), *blocks.asymptotic_warnings())
    note = Note(
        "TN119",
        "Only pairs within blocks of consecutive rows were compared, so the statistic depends on the row order.",
    )
    return replace(
        result,
        statistic=blocks.z,
        pvalue=blocks.pvalue,
        parts=parts,
        asymptotic_warnings=warnings,
        notes=(*result.notes, note),
    )


def _require_equal_weights(view: View) -> None:
    """Raise InputError for unequal weights."""
    weights = view.w[view.w > 0]
    if len(weights) and (weights != weights[0]).any():
        raise InputError(
            "TO205",
            "The distribution-free bound requires equal weights.",
            "weights with null='distribution-free'",
            "Use ⟨null='redraw'⟩.",
        )
