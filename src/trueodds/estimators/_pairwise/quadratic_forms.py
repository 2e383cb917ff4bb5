"""Quadratic forms Σ k_ij e_i·e_j of a kernel over all pairs of rows, for many draws of the residuals e at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators._pairwise.similarity_kernels import SimilarityKernel
from trueodds.kernels import map_blocks
from trueodds.kernels.pairwise import (
    add_label_matches,
    label_differences,
    match_differences,
    strip_matrix_product,
    sum_exponential_kernel,
    sum_pair_products,
)

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
