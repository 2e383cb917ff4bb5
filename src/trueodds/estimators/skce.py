"""Squared kernel calibration error (SKCE), by sums over all pairs of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.estimators._pairwise import similarity_kernels
from trueodds.estimators._pairwise.similarity_kernels import (
    Bandwidth,
    KernelName,
    Similarity,
    SimilarityKernel,
    draw_multiplicities,
    prediction_matrix,
)
from trueodds.estimators.base import CellStatistic, Estimator, require_single_rows
from trueodds.kernels import map_blocks
from trueodds.kernels.pairwise import (
    add_label_matches,
    label_differences,
    match_differences,
    strip_matrix_product,
    sum_exponential_kernel,
    sum_pair_products,
)
from trueodds.lenses.view import View

Strip = tuple[slice, slice, Array]  # rows, earlier rows up to the last of these, kernel values below the diagonal
Span = tuple[int, int, int]  # start and stop of the rows of a strip, and the first row they are paired with

ROWS_PER_STRIP = 256  # number of rows whose kernel values are computed at once
MAX_CACHE_BYTES = 2 * 10**8  # bytes of kernel values that are kept between calls: all pairs of 7,000 rows


class ExponentialForms:
    """Quadratic forms of an exponential kernel of one score: O(n) per draw after sorting, without a matrix.

    `p` (n,) are the scores, `residuals` (n, 1) the observed residuals and `edges` the starts of the blocks and n.
    """

    def __init__(self, kernel: SimilarityKernel, p: Array, residuals: Array, edges: Array) -> None:
        block = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        self.order = np.lexsort((p, block))
        decay = kernel.decay(p[self.order])
        assert decay is not None  # the kernel is exponential
        decay[edges[:-1]] = 0.0  # no pairs across blocks
        self.decay, self.residuals, self.edges = decay, residuals, edges

    def pair_sums(self, residuals: Array) -> Array:
        """Sum over the pairs of all blocks, (draws,), for residuals (draws, n, 1)."""
        return sum_exponential_kernel(residuals[:, self.order, 0], self.decay)

    @cached_property
    def observed(self) -> Array:
        """`pair_sums` of the observed residuals, (1,)."""
        return self.pair_sums(self.residuals[None])

    def weighted_pair_sums(self, row_weights: Array) -> Array:
        """`pair_sums` of reweighted observed residuals, (draws,), for weights (draws, n)."""
        return self.pair_sums(row_weights[..., None] * self.residuals)

    def pair_sums_by_block(self) -> Array:
        """Sum over the pairs of each block for the observed residuals, (blocks,)."""
        residuals, decay = self.residuals[self.order, 0], self.decay
        blocks = zip(self.edges[:-1], self.edges[1:], strict=True)
        return np.array(
            [sum_exponential_kernel(residuals[None, start:stop], decay[start:stop])[0] for start, stop in blocks]
        )


class GramForms:
    """Quadratic forms of any kernel, by strips of its Gram matrix below the diagonal, cached if they are small.

    `P` (n, m) are the predictions, `residuals` (n, m) the observed residuals, `edges` the starts of the blocks and n.
    `n_views` similar objects may exist at a time, and share the memory for cached strips.
    """

    def __init__(self, kernel: SimilarityKernel, P: Array, residuals: Array, edges: Array, n_views: int = 1) -> None:
        self.kernel, self.P, self.residuals, self.edges = kernel, P, residuals, edges
        self.use_cache = float((np.diff(edges) ** 2).sum()) * 4 * n_views <= MAX_CACHE_BYTES
        self._kernel_strips: list[Strip] | None = None
        self._product_strips: list[Strip] | None = None

    def pair_sums(self, residuals: Array) -> Array:
        """Sum over the pairs of all blocks, (draws,), for residuals (draws, n, m)."""
        if self.use_cache and self._kernel_strips is None and len(residuals) > 1:
            self._kernel_strips = list(self._strips())
        draws, n, m = residuals.shape
        stacked = np.ascontiguousarray(residuals.transpose(1, 0, 2)).reshape(n, draws * m)
        sums = np.zeros(draws * m)
        for rows, earlier, k in self._strips():
            sums += np.einsum("ij,ij->j", stacked[rows], k @ stacked[earlier])
        return 2 * sums.reshape(draws, m).sum(axis=1)

    @cached_property
    def observed(self) -> Array:
        """`pair_sums` of the observed residuals, (1,), strip by strip on all cores."""
        residuals_T = np.ascontiguousarray(self.residuals.T)

        def sum_strip(number: int, _stop: int) -> tuple[float, Strip | None]:
            """Sum over the pairs of a strip, and the strip if it is cached."""
            rows, earlier, k = strip = self.kernel_strip(number)
            pair_sum = sum_pair_products(k, residuals_T[:, earlier], rows.start - earlier.start)
            return pair_sum, strip if self.use_cache else None

        strip_sums = map_blocks(sum_strip, len(self.spans), 1)
        self._kernel_strips = [strip for _, strip in strip_sums if strip is not None]
        return np.array([2 * sum(strip_sum for strip_sum, _ in strip_sums)])

    def weighted_pair_sums(self, row_weights: Array) -> Array:
        """`pair_sums` of reweighted observed residuals; their products are computed once, so a draw costs O(n²)."""
        if self.use_cache and self._product_strips is None:
            self._product_strips = list(self._products())
            self._kernel_strips = None  # only one of the two is kept in memory
        transposed_weights = np.ascontiguousarray(row_weights.T)
        sums = np.zeros(len(row_weights))
        for rows, earlier, products in self._product_strips or self._products():
            sums += np.einsum("ij,ij->j", transposed_weights[rows], products @ transposed_weights[earlier])
        return 2 * sums

    def pair_sums_by_block(self) -> Array:
        """Sum over the pairs of each block for the observed residuals, (blocks,)."""
        row_sums = np.zeros(len(self.P))
        for rows, _, products in self._products():
            row_sums[rows] = products.sum(axis=1)
        return 2 * np.add.reduceat(row_sums, self.edges[:-1])

    @cached_property
    def spans(self) -> list[Span]:
        """The rows of each strip, each paired with the previous rows of its block. Short blocks share a strip."""
        block_starts = self.block_starts
        strips: list[Span] = []
        start, n = 0, len(self.P)
        while start < n:
            stop = min(start + ROWS_PER_STRIP, n)
            # If the last block of the strip begins within it, the strip ends there, so that no block is cut needlessly.
            if block_starts[stop - 1] > start:
                stop = int(block_starts[stop - 1])
            strips.append((start, stop, int(block_starts[start])))
            start = stop
        return strips

    @cached_property
    def block_starts(self) -> Array:
        """Start of the block of each row, (n,)."""
        return np.repeat(self.edges[:-1], np.diff(self.edges))

    def kernel_strip(self, number: int) -> Strip:
        """Kernel values of a strip, read-only."""
        if self._kernel_strips:
            return self._kernel_strips[number]
        start, stop, first_earlier = self.spans[number]
        block_starts = self.block_starts
        k = self.kernel.gram_matrix(self.P[start:stop], self.P[first_earlier:stop])
        k[:, start - first_earlier :] = np.tril(k[:, start - first_earlier :], -1)
        if block_starts[stop - 1] > first_earlier:
            k[np.arange(first_earlier, stop) < block_starts[start:stop, None]] = 0.0
        return slice(start, stop), slice(first_earlier, stop), k

    def _strips(self) -> Iterator[Strip]:
        """Kernel values of all strips, one after the other."""
        return (self.kernel_strip(number) for number in range(len(self.spans)))

    def _products(self) -> Iterator[Strip]:
        """Strips of k_ij e_i·e_j for the observed residuals."""
        for rows, earlier, k in self._strips():
            yield rows, earlier, k * (self.residuals[rows] @ self.residuals[earlier].T)


VECTOR_WIDTH = 8  # draws per vector instruction; draws are padded to a multiple, so that no loop has a remainder


def relabeled_differences(
    gram: GramForms, P: Array, w: Array, diagonal: Array, observed: Array, labels: Array
) -> Array:
    """Change of a quadratic form if the observed labels are replaced by redrawn labels, (draws,).

    The form is Σ w_i w_j k_ij (1_y − p)_i·(1_y − p)_j over i ≠ j, with the one-hot vector 1_y of the label of a row.
    The product of two residuals is 1{y_i = y_j} − p_i[y_j] − p_j[y_i] + p_i·p_j. Only the first term must be computed
    for every pair and draw, in integers. The others are looked up in a table of the contributions of a row by label,
    Σ_j w_j k_ij p_j. Rows whose label equals the observed one in every draw are included in this table, so that
    confident predictions cost little. A draw of the observed labels gives exactly 0. Products of a kernel value and two
    weights are rounded to within 2⁻⁴³ of the squared largest weight.

    `labels` (n, draws) and `observed` (n,) are column numbers of P (n, m), w (n,) the weights, and kernel values lie in
    [0, 1]. `diagonal` (n,) is the kernel value of a row with itself if that counts as a pair, else 0.
    """
    max_weight = float(w.max())
    relative_weight = w / max_weight
    has_equal_weights = bool((relative_weight == 1).all())
    n_padding = -(1 + labels.shape[1]) % VECTOR_WIDTH
    observed_column = observed[:, None].astype(labels.dtype)
    padded_labels = np.concatenate([observed_column, labels, np.repeat(observed_column, n_padding, axis=1)], axis=1)
    changing = (labels != observed_column).any(axis=1)
    all_change = bool(changing.all())
    rank = np.concatenate([[0], np.cumsum(changing)])  # number of changing rows before each row
    changing_labels, blocks = padded_labels, gram.block_starts
    if not all_change:
        changing_labels, blocks = padded_labels[changing], rank[gram.block_starts[changing]]
    fixed_labels = np.where(changing[:, None], 0, observed[:, None] == np.arange(P.shape[1]))
    adjusted_T = np.ascontiguousarray((P - fixed_labels).T)

    def sum_strip(number: int, _stop: int) -> tuple[Array, Array, slice]:
        """Matches of labels over the pairs of a strip, contributions to the table, and the rows of the table."""
        rows, earlier, k = gram.kernel_strip(number)
        if not has_equal_weights:
            k = k * relative_weight[rows, None] * relative_weight[earlier]
        kernel_sums = strip_matrix_product(k, adjusted_T[:, earlier], rows.start - earlier.start)
        if not all_change:
            k = k[np.ix_(changing[rows], changing[earlier])]
        sums = np.zeros((2, padded_labels.shape[1]), dtype=np.int64)
        add_label_matches(k, int(rank[rows.start]), int(rank[earlier.start]), blocks, changing_labels, sums)
        return sums, kernel_sums, earlier

    sums = np.zeros((2, padded_labels.shape[1]), dtype=np.int64)
    table = (diagonal * relative_weight**2)[:, None] * P
    for strip_sums, kernel_sums, earlier in map_blocks(sum_strip, len(gram.spans), 1):
        sums += strip_sums
        table[earlier] += kernel_sums.T
    change = match_differences(sums) - label_differences(table, padded_labels)
    return np.asarray(2 * max_weight**2 * change[: labels.shape[1]])


FORMS = ("auto", "unbiased", "biased", "block")


@dataclass(frozen=True)
class SquaredKernelError(Estimator):
    r"""Squared kernel calibration error (SKCE): kernel-weighted mean product of residual vectors.

    Two rows with similar predictions and residuals in the same direction increase the value. It measures the
    calibration of whole probability vectors without bins.

    Parameters
    ----------
    form : {"auto", "unbiased", "biased", "block"}, default="auto"
        "unbiased" uses all pairs of two different rows. "biased" is the squared norm, including the pairs of each row
        with itself. "block" uses pairs within blocks of consecutive rows, so it depends on the row order. "auto" is
        "unbiased" up to 5,000 rows (200,000 for one score with an exponential kernel) and "block" beyond.
    kernel : str or callable, default="exponential"
        "exponential", "gaussian" or "tv-exponential", or a function k(P, Q) of the vectors.
    bandwidth : float or "median", default="median"
        Bandwidth of the kernel. "median" is the median distance of the predictions, which uses no labels. It is
        that of all ordered pairs of rows, including each row with itself at the distance 0, so that a weight of 2 has
        the effect of two rows; without these n of n² pairs it is slightly larger. Above 1,000 rows it uses 1,000.
    block_size : int, optional
        Rows per block. The default is a hundredth of all rows up to 1,000, or fewer if there would be more than 10⁸
        pairs. An incomplete last block counts with the pairs that it has.

    Raises
    ------
    InputError
        TO203 if the form, the kernel or the bandwidth is invalid. TO205 if the view holds cells of many rows.

    Notes
    -----
    .. math:: h_{ij} = k(p_i, p_j)\,(y_i - p_i)\cdot(y_j - p_j), \quad
        \mathrm{SKCE} = \frac{1}{n(n-1)} \sum_{i \ne j} h_{ij}

    y is one-hot (or shares of votes), and the matrix-valued kernel is k ⊗ δ. A binary view is the vector (p, 1 − p), so
    its products are 2 (y − p)(y' − p'), twice the scalar form and the same as for two columns. Weights are importance
    weights: the pairs of "unbiased" are divided by (Σw)² − Σw². Shapes: a binary view (n,) or a joint view (n, m).

    Units: squared probability, at most 2; 0 is best. The size depends on the kernel, so use the value for comparisons
    and tests.

    Bias: "unbiased" and "block" are unbiased. They may be negative and are reported with their sign (their noise floor
    is 0). "biased" is biased upward by about Σ p(1 − p) / n.

    Cost: O(n²m) time; O(n log n) for one score with an exponential kernel. Tallies are not supported. With
    ``interval=None`` only the value is computed, which allows ``form="unbiased"`` for vectors beyond 5,000 rows.

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah (2019).
    .. [2] Widmann, Lindsten & Zachariah (2021).

    Examples
    --------
    >>> import trueodds as to
    >>> error = to.measure([1, 0], [0.9, 0.9], "skce", bandwidth=0.5, interval=None)
    >>> round(error.value, 4)  # 2 · (.1)(−.9) · k(0)
    -0.18
    """

    name: ClassVar[str] = "skce"
    quantity: ClassVar[str] = "squared kernel calibration error"
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"
    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "two equal rows are a pair, and the unbiased form counts pairs: weights are importance weights",
    }
    form: Annotated[str, OneOf(FORMS)] = "auto"
    kernel: KernelName | Similarity = "exponential"
    bandwidth: Bandwidth = "median"
    block_size: Annotated[int, Range(2)] | None = None

    @property
    def interval(self) -> str:  # type: ignore[override]
        """Type of interval: the biased form is a squared norm, the other forms scatter around a plug-in value."""
        return "noise-floor" if self.form == "biased" else "debiased"

    @property
    def norm_power(self) -> float:  # type: ignore[override]
        """2 if the interval is computed on the root, else 1."""
        return 2.0 if self.form == "biased" else 1.0

    @property
    def is_in_probability_units(self) -> bool:
        """False: a mean over pairs of rows is a squared probability, also where no root is taken."""
        return False

    def value(self, view: View) -> float:
        return self.cell_statistic(view).value()

    def cell_statistic(self, view: View) -> RowPairs:
        """The statistic with each row as a cell: kernel values are fixed, outcomes or row counts change."""
        return RowPairs(self, view)

    def plug_in_value(self, view: View) -> float:
        """Plug-in (V-statistic) value on which bootstrap replicates are centered. The block form has no self-pairs."""
        pairs = self.cell_statistic(view)
        return pairs.value() if pairs.form == "block" else pairs.biased()

    def expected_if_calibrated(self, view: View) -> float | None:
        """Expected value of a calibrated model, if known without draws."""
        return None if self.form == "biased" else 0.0

    def resample_units(
        self, views: Sequence[View], resamples: int, rng: np.random.Generator
    ) -> tuple[Array, str] | None:
        """Resamples of rows, or of whole blocks for the block form. Several views are resampled jointly elsewhere."""
        if len(views) > 1:
            return None
        pairs = self.cell_statistic(views[0])
        if pairs.form == "block" and len(pairs.edges) > 2:
            return pairs.draw_block_errors(resamples, rng)[None], "blocks"
        return pairs.draw_row_errors(resamples, rng)[None], "rows"

    def settings_used(self, view: View) -> dict[str, Any]:
        pairs = self.cell_statistic(view)
        kernel_name = self.kernel if isinstance(self.kernel, str) else getattr(self.kernel, "__name__", "given")
        return {
            "form": pairs.form,
            "kernel": kernel_name,
            **({"bandwidth": pairs.kernel.bandwidth} if isinstance(self.kernel, str) else {}),
            **({"block_size": pairs.block_size} if pairs.form == "block" else {}),
        }

    def notes(self, view: View) -> list[Note]:
        pairs = self.cell_statistic(view)
        if pairs.has_no_pairs:
            return [Note("TN118", "The error is undefined for a single row, because it compares pairs of rows.")]
        if self.form == "auto" and pairs.form == "block":
            text = (
                f"{len(pairs.rows):,} rows have too many pairs. Only pairs within blocks of {pairs.block_size:,} "
                "consecutive rows were compared, so the value depends on the row order."
            )
            return [Note("TN119", text)]
        return []


MAX_MATRIX_ROWS = 5_000  # number of rows above which only pairs within blocks are compared, if a matrix is needed
MAX_SORTED_ROWS = 200_000  # the same limit for the O(n log n) algorithm for one score with an exponential kernel
DEFAULT_N_BLOCKS = 100  # number of blocks; with 50 the intervals cover 92 %
MAX_BLOCK_SIZE = 1_000  # maximum number of rows per block, if a matrix is needed
MAX_BLOCK_PAIRS = 10**8  # maximum number of rows times rows per block
MAX_DRAWN_ROWS = 2**21  # maximum number of row numbers drawn at once: 16 MB


class RowPairs(CellStatistic):
    """Cell statistic of the SKCE, whose cells are the rows of positive weight.

    `rows` (n,) are the numbers of these rows in the view, `P` (n, m) their predictions and `w` (n,) their weights.
    """

    def __init__(self, error: SquaredKernelError, view: View) -> None:
        require_single_rows(view, error.name)
        self.rows = np.flatnonzero(view.w > 0)
        self.index = np.maximum(np.cumsum(view.w > 0) - 1, 0)
        self.size = max(1, len(self.rows))
        self.error, self.view = error, view
        self.w = view.w[self.rows]
        self.P = prediction_matrix(view)[self.rows]
        self.residual_factor = 1.0 if view.joint else 2.0  # the product of residuals of (p, 1 − p) has two equal terms

    @cached_property
    def kernel(self) -> SimilarityKernel:
        """The kernel with its bandwidth."""
        error, view = self.error, self.view
        key = ("kernel", error.kernel, error.bandwidth)
        return view.cached(key, lambda: similarity_kernels.kernel_for_view(error.kernel, error.bandwidth, view))

    @property
    def uses_fast_algorithm(self) -> bool:
        """Whether the O(n log n) algorithm for one score applies."""
        return not self.view.joint and self.error.kernel in ("exponential", "tv-exponential")

    @property
    def form(self) -> str:
        """The form of the error: "unbiased", "biased" or "block"."""
        if self.error.form != "auto":
            return self.error.form
        max_rows = MAX_SORTED_ROWS if self.uses_fast_algorithm else MAX_MATRIX_ROWS
        return "unbiased" if len(self.rows) <= max_rows else "block"

    @property
    def block_size(self) -> int:
        """Rows per block; all rows for forms without blocks."""
        n = len(self.rows)
        if self.form != "block":
            return n
        if self.error.block_size:
            return int(self.error.block_size)
        block_size = n // DEFAULT_N_BLOCKS
        if not self.uses_fast_algorithm:
            block_size = min(block_size, MAX_BLOCK_SIZE, MAX_BLOCK_PAIRS // max(n, 1))
        return max(2, block_size)

    @cached_property
    def edges(self) -> Array:
        """Start of each block, and n, (blocks + 1,). A single remaining row joins the last block."""
        n = len(self.rows)
        starts = np.arange(0, max(n - 1, 1), max(self.block_size, 1))
        return np.append(starts, n)

    @property
    def has_no_pairs(self) -> bool:
        """Whether there is no pair of rows."""
        return self.form != "biased" and not self.w.sum() ** 2 > (self.w**2).sum()

    @cached_property
    def residual(self) -> Array:
        """Residuals w (y − p), (n, m). Binary residuals are one of two equal entries."""
        y = self.view.y[self.rows]
        return self.w[:, None] * ((y if self.view.joint else y[:, None]) - self.P)

    @cached_property
    def quadratic_forms(self) -> ExponentialForms | GramForms:
        """Sums over pairs, cached for the view."""
        return self.view.cached(("pairs", self.kernel, self.edges.tobytes()), self._build_quadratic_forms)

    def _build_quadratic_forms(self) -> ExponentialForms | GramForms:
        """Quadratic forms of the observed residuals, by the fastest algorithm for this kernel."""
        if self.uses_fast_algorithm:
            return ExponentialForms(self.kernel, self.P[:, 0], self.residual, self.edges)
        n_views = 1 if self.view.joint else max(1, self.view.classes)  # number of such objects at a time
        return GramForms(self.kernel, self.P, self.residual, self.edges, n_views)

    @cached_property
    def diagonal(self) -> Array:
        """Kernel value of each row with itself, (n,)."""
        return self.kernel.diagonal(self.P)

    def value(self) -> float:
        return self._observed_error(self.form)

    def biased(self) -> float:
        """The biased form of the error, a squared norm, of the same rows."""
        return self._observed_error("biased")

    def _observed_error(self, form: str) -> float:
        if not len(self.rows):
            return float("nan")
        return float(
            self._error_from_pair_sums(
                form, self.w[None], self.quadratic_forms.observed, (self.residual[None] ** 2).sum(axis=-1)
            )[0]
        )

    @property
    def statistic_from_labels(self) -> Callable[[Array], Array] | None:
        """The error of drawn labels, from (n, draws) outcome numbers; None if this is not faster."""
        if not (self.view.joint and isinstance(self.error.kernel, str) and len(self.rows)):
            return None
        y = self.view.y[self.rows]
        return self._errors_from_labels if bool(((y.max(axis=1) == 1) & (y.sum(axis=1) == 1)).all()) else None

    def _errors_from_labels(self, labels: Array) -> Array:
        """The error (draws,) of redrawn labels (n, draws), as its difference from that of the observed labels."""
        assert isinstance(self.quadratic_forms, GramForms)
        diagonal = self.diagonal if self.form == "biased" else np.zeros(len(self.rows))
        row_labels = labels if len(self.rows) == len(labels) else labels[self.rows]
        difference = relabeled_differences(
            self.quadratic_forms, self.P, self.w, diagonal, self.view.y[self.rows].argmax(axis=1), row_labels
        )
        return np.asarray(self.value() + self.residual_factor * difference / self._pair_weight(self.form, self.w[None]))

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        if not len(self.rows):
            return np.full(len(wy), np.nan)
        residuals = (wy - wp) if self.view.joint else (wy - wp)[..., None]
        if len(w) == 1:
            return self._error_from_pair_sums(
                self.form, w, self.quadratic_forms.pair_sums(residuals), (residuals**2).sum(axis=-1)
            )
        multiplicity = w / self.w
        squared_residuals = multiplicity**2 * (self.residual**2).sum(axis=-1)
        return self._error_from_pair_sums(
            self.form, w, self.quadratic_forms.weighted_pair_sums(multiplicity), squared_residuals
        )

    def _error_from_pair_sums(self, form: str, w: Array, pair_sums: Array, squares: Array) -> Array:
        """The error (draws,) from weights (draws, n), sums over pairs (draws,) and squares |w (y − p)|² (draws, n)."""
        if form == "biased":
            pair_sums = pair_sums + weighted_sum(squares, self.diagonal)
        elif form == "unbiased":  # the copies of a row are rows: c of them have c² − c pairs
            with np.errstate(divide="ignore", invalid="ignore"):
                self_pairs = np.where(w > 0, squares * self.w / w, 0.0)
            pair_sums = pair_sums + weighted_sum(squares - self_pairs, self.diagonal)
        return self.residual_factor * pair_sums / self._pair_weight(form, w)

    def _pair_weight(self, form: str, w: Array) -> Array:
        """Total weight of the pairs for weights (draws, n), (draws,); NaN without pairs."""
        if form == "biased":
            pair_weight = w.sum(axis=-1) ** 2
        elif form == "unbiased":
            pair_weight = w.sum(axis=-1) ** 2 - weighted_sum(w, self.w)
        else:
            pair_weight = (np.add.reduceat(w, self.edges[:-1], axis=-1) ** 2).sum(axis=-1) - (w**2).sum(axis=-1)
        return np.asarray(np.where(pair_weight > 0, pair_weight, np.nan))

    def draw_block_errors(self, resamples: int, rng: np.random.Generator) -> Array:
        """The error when whole blocks are drawn with replacement."""
        numerators = self.residual_factor * self.quadratic_forms.pair_sums_by_block()
        starts = self.edges[:-1]
        denominators = np.add.reduceat(self.w, starts) ** 2 - np.add.reduceat(self.w**2, starts)
        counts = rng.multinomial(len(starts), np.full(len(starts), 1 / len(starts)), size=resamples)
        return (counts @ numerators) / (counts @ denominators)

    def draw_row_errors(self, resamples: int, rng: np.random.Generator) -> Array:
        """The error when rows are drawn with replacement; a draw is stored as the multiplicities of the rows."""
        if not len(self.rows):
            return np.full(resamples, np.nan)
        n, squared_residuals = len(self.index), (self.residual**2).sum(axis=-1)
        errors = []
        for block in draw_multiplicities(n, resamples, max(1, min(256, MAX_DRAWN_ROWS // n)), rng):
            # Of an array in another order, BLAS adds in another order.
            multiplicity = block[:, self.rows].astype(np.float64, order="C")
            errors.append(
                self._error_from_pair_sums(
                    self.form,
                    multiplicity * self.w,
                    self.quadratic_forms.weighted_pair_sums(multiplicity),
                    multiplicity**2 * squared_residuals,
                )
            )
        return np.concatenate(errors)
