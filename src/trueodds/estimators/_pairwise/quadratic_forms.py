"""Kernel quadratic forms over all pairs of rows, for many residual vectors or resampled labels at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators._pairwise.similarity_kernels import SimilarityKernel
from trueodds.kernels import map_blocks
from trueodds.kernels.pairs import (
    add_label_matches,
    label_differences,
    match_differences,
    pair_product,
    sum_exponential_kernel,
    symmetric_product,
)

Strip = tuple[slice, slice, Array]  # rows, earlier rows up to the last of these, kernel values below the diagonal
Span = tuple[int, int, int]  # start and stop of the rows of a strip, and the first row they are paired with

ROWS_PER_STRIP = 256  # number of rows whose kernel values are computed at once
MAX_CACHE_BYTES = 2 * 10**8  # bytes of kernel values that are kept between calls: all pairs of 7,000 rows


class QuadraticForms(Protocol):
    """Quadratic forms of a kernel: sums over the pairs i ≠ j of rows of the same block."""

    def pair_sums(self, e: Array) -> Array:
        """Σ e_i·e_j k_ij over the pairs i ≠ j within the blocks, for e (draws, n, m)."""
        ...

    @property
    def observed(self) -> Array:
        """`pair_sums` of the observed e, as one draw."""
        ...

    def weighted_pair_sums(self, c: Array) -> Array:
        """`pair_sums` of c_i e_i with the observed e, for c (draws, n)."""
        ...


class ExponentialForms:
    """Quadratic forms of an exponential kernel of one score: O(n) per vector after sorting, without a matrix."""

    def __init__(self, kernel: SimilarityKernel, p: Array, e: Array, edges: Array) -> None:
        block = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        self.order = np.lexsort((p, block))
        decay = kernel.decay(p[self.order])
        assert decay is not None
        decay[edges[:-1]] = 0.0  # no pairs across blocks
        self.decay, self.e, self.edges = decay, e, edges

    def pair_sums(self, e: Array) -> Array:
        """Sum over all blocks."""
        return sum_exponential_kernel(e[:, self.order, 0], self.decay)

    @cached_property
    def observed(self) -> Array:
        """Sum over all blocks."""
        return self.pair_sums(self.e[None])

    def weighted_pair_sums(self, c: Array) -> Array:
        """Sum over all blocks."""
        return self.pair_sums(c[..., None] * self.e)

    def by_block(self) -> Array:
        """Sum of each block for the observed e."""
        e, decay = self.e[self.order, 0], self.decay
        ends = zip(self.edges[:-1], self.edges[1:], strict=True)
        return np.array([sum_exponential_kernel(e[None, a:b], decay[a:b])[0] for a, b in ends])


class GramForms:
    """Quadratic forms of any kernel, by strips of its Gram matrix below the diagonal, cached if they are small."""

    def __init__(self, kernel: SimilarityKernel, P: Array, e: Array, edges: Array, share: int = 1) -> None:
        self.kernel, self.P, self.e, self.edges = kernel, P, e, edges
        self.use_cache = float((np.diff(edges) ** 2).sum()) * 4 * share <= MAX_CACHE_BYTES
        self._kernel_strips: list[Strip] | None = None
        self._product_strips: list[Strip] | None = None

    def pair_sums(self, e: Array) -> Array:
        """Sum over all blocks."""
        if self.use_cache and self._kernel_strips is None and len(e) > 1:
            self._kernel_strips = list(self._strips())
        draws, n, m = e.shape
        flat = np.ascontiguousarray(e.transpose(1, 0, 2)).reshape(n, draws * m)
        total = np.zeros(draws * m)
        for rows, earlier, k in self._strips():
            total += np.einsum("ij,ij->j", flat[rows], k @ flat[earlier])
        return 2 * total.reshape(draws, m).sum(axis=1)

    @cached_property
    def observed(self) -> Array:
        """Sum over all blocks, strip by strip on all cores."""
        eT = np.ascontiguousarray(self.e.T)

        def work(a: int, _b: int) -> tuple[float, Strip | None]:
            rows, earlier, k = strip = self.kernel_strip(a)
            return pair_product(k, eT[:, earlier], rows.start - earlier.start), strip if self.use_cache else None

        strip_sums = map_blocks(work, len(self.spans), 1)
        self._kernel_strips = [strip for _, strip in strip_sums if strip is not None]
        return np.array([2 * sum(total for total, _ in strip_sums)])

    def weighted_pair_sums(self, c: Array) -> Array:
        """Sum over all blocks. Products of vectors are computed once, so each draw costs one number per pair."""
        if self.use_cache and self._product_strips is None:
            self._product_strips = list(self._products())
            self._kernel_strips = None  # only one of the two is kept in memory
        flat = np.ascontiguousarray(c.T)
        total = np.zeros(len(c))
        for rows, earlier, h in self._product_strips or self._products():
            total += np.einsum("ij,ij->j", flat[rows], h @ flat[earlier])
        return 2 * total

    def by_block(self) -> Array:
        """Sum of each block for the observed e."""
        row_sums = np.zeros(len(self.P))
        for rows, _, h in self._products():
            row_sums[rows] = h.sum(axis=1)
        return 2 * np.add.reduceat(row_sums, self.edges[:-1])

    @cached_property
    def spans(self) -> list[Span]:
        """The strips: each row is paired with the previous rows of its block, and short blocks share a strip."""
        first = self.block_starts
        strips: list[Span] = []
        top, n = 0, len(self.P)
        while top < n:
            bottom = min(top + ROWS_PER_STRIP, n)
            if first[bottom - 1] > top:  # the strip ends where its last block begins, unless that began before it
                bottom = int(first[bottom - 1])
            strips.append((top, bottom, int(first[top])))
            top = bottom
        return strips

    @cached_property
    def block_starts(self) -> Array:
        """Start of the block of each row."""
        return np.repeat(self.edges[:-1], np.diff(self.edges))

    def kernel_strip(self, number: int) -> Strip:
        """Kernel values of a strip, read-only."""
        if self._kernel_strips:
            return self._kernel_strips[number]
        top, bottom, start = self.spans[number]
        first = self.block_starts
        k = self.kernel.of(self.P[top:bottom], self.P[start:bottom])
        k[:, top - start :] = np.tril(k[:, top - start :], -1)
        if first[bottom - 1] > start:
            k[np.arange(start, bottom) < first[top:bottom, None]] = 0.0
        return slice(top, bottom), slice(start, bottom), k

    def _strips(self) -> Iterator[Strip]:
        return (self.kernel_strip(number) for number in range(len(self.spans)))

    def _products(self) -> Iterator[Strip]:
        for rows, earlier, k in self._strips():
            yield rows, earlier, k * (self.e[rows] @ self.e[earlier].T)


VECTOR_WIDTH = 8  # draws are padded to a multiple, so that vectorized loops have no remainder


def relabeled_differences(gram: GramForms, P: Array, w: Array, own: Array, observed: Array, labels: Array) -> Array:
    """Σ w_i w_j k_ij (e_y − p)_i·(e_y − p)_j over the pairs i ≠ j of each draw, minus that of the observed labels.

    The product is 1{y_i = y_j} − p_i[y_j] − p_j[y_i] + p_i·p_j. Only the equality of labels must be computed for every
    pair and draw, in integers. The rest is looked up in a table of the contribution of each label of a row,
    Σ_j w_j k_ij p_j. Rows whose label equals the observed one in every draw are added to this table, so that confident
    predictions cost little. A draw of the observed labels gives exactly 0. Products of a kernel value and two weights
    are rounded to within 2⁻⁴³ of the squared largest weight.

    `labels` (n, draws) and `observed` (n,) are column numbers of P (n, m), kernel values lie in [0, 1], and `own` (n,)
    is the kernel value of a row with itself if that counts as a pair, else 0.
    """
    heaviest = float(w.max())
    v = w / heaviest
    even = bool((v == 1).all())
    n_padding = -(1 + labels.shape[1]) % VECTOR_WIDTH
    first = observed[:, None].astype(labels.dtype)
    padded_labels = np.concatenate([first, labels, np.repeat(first, n_padding, axis=1)], axis=1)
    changing = (labels != first).any(axis=1)
    all_change = bool(changing.all())
    rank = np.concatenate([[0], np.cumsum(changing)])  # number of changing rows before each row
    changing_labels, blocks = (
        (padded_labels, gram.block_starts)
        if all_change
        else (padded_labels[changing], rank[gram.block_starts[changing]])
    )
    XT = np.ascontiguousarray((P - np.where(changing[:, None], 0, observed[:, None] == np.arange(P.shape[1]))).T)

    def work(a: int, _b: int) -> tuple[Array, Array, slice]:
        rows, earlier, k = gram.kernel_strip(a)
        if not even:
            k = k * v[rows, None] * v[earlier]
        kernel_sums = symmetric_product(k, XT[:, earlier], rows.start - earlier.start)
        if not all_change:
            k = k[np.ix_(changing[rows], changing[earlier])]
        sums = np.zeros((2, padded_labels.shape[1]), dtype=np.int64)
        add_label_matches(k, int(rank[rows.start]), int(rank[earlier.start]), blocks, changing_labels, sums)
        return sums, kernel_sums, earlier

    sums = np.zeros((2, padded_labels.shape[1]), dtype=np.int64)
    table = (own * v**2)[:, None] * P
    for matched, kernel_sums, earlier in map_blocks(work, len(gram.spans), 1):
        sums += matched
        table[earlier] += kernel_sums.T
    change = match_differences(sums) - label_differences(table, padded_labels)
    return np.asarray(2 * heaviest**2 * change[: labels.shape[1]])
