"""Kernel quadratic forms over all pairs of rows, for many residual vectors or redrawn labels at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators._pairwise.similarity_kernels import Kernel
from trueodds.kernels import in_blocks
from trueodds.kernels.pairs import (
    add_matches,
    label_differences,
    match_differences,
    pair_product,
    sum_along_line,
    symmetric_product,
)

Strip = tuple[slice, slice, Array]  # rows, the rows before them and they, their similarities below the diagonal
Span = tuple[int, int, int]  # the first and last row of a strip, and the first that they meet

STRIP = 256  # rows whose similarities are made at once
MAX_CACHE_BYTES = 2 * 10**8  # bytes of similarities that are kept between calls: all pairs of 7,000 rows


class Forms(Protocol):
    """Quadratic forms: sums over all i ≠ j within the blocks of rows."""

    def pair_sums(self, e: Array) -> Array:
        """Σ e_i·e_j k_ij over the pairs i ≠ j of each block, for e (draws, n, m)."""
        ...

    @property
    def observed(self) -> Array:
        """The same for the observed e, as one draw."""
        ...

    def counted(self, c: Array) -> Array:
        """The same for c_i e_i of the observed e, for c (draws, n)."""
        ...


class Line:
    """Exponential kernels of one score: after sorting, each vector costs O(n) without a matrix."""

    def __init__(self, kernel: Kernel, p: Array, e: Array, edges: Array) -> None:
        block = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        self.order = np.lexsort((p, block))
        decay = kernel.decay(p[self.order])
        assert decay is not None
        decay[edges[:-1]] = 0.0  # blocks do not see each other
        self.decay, self.e, self.edges = decay, e, edges

    def pair_sums(self, e: Array) -> Array:
        """Sum over all blocks."""
        return sum_along_line(e[:, self.order, 0], self.decay)

    @cached_property
    def observed(self) -> Array:
        """Sum over all blocks."""
        return self.pair_sums(self.e[None])

    def counted(self, c: Array) -> Array:
        """Sum over all blocks."""
        return self.pair_sums(c[..., None] * self.e)

    def by_block(self) -> Array:
        """Sum of each block for the observed e."""
        e, decay = self.e[self.order, 0], self.decay
        ends = zip(self.edges[:-1], self.edges[1:], strict=True)
        return np.array([sum_along_line(e[None, a:b], decay[a:b])[0] for a, b in ends])


class Gram:
    """Any kernel: the Gram matrix in strips below the diagonal, cached if it fits into memory."""

    def __init__(self, kernel: Kernel, P: Array, e: Array, edges: Array, share: int = 1) -> None:
        self.kernel, self.P, self.e, self.edges = kernel, P, e, edges
        self.use_cache = float((np.diff(edges) ** 2).sum()) * 4 * share <= MAX_CACHE_BYTES
        self._similar: list[Strip] | None = None
        self._weighed: list[Strip] | None = None

    def pair_sums(self, e: Array) -> Array:
        """Sum over all blocks."""
        if self.use_cache and self._similar is None and len(e) > 1:
            self._similar = list(self._strips())
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
            rows, earlier, k = strip = self.strip(a)
            return pair_product(k, eT[:, earlier], rows.start - earlier.start), strip if self.use_cache else None

        strip_sums = in_blocks(work, len(self.spans), 1)
        self._similar = [strip for _, strip in strip_sums if strip is not None]
        return np.array([2 * sum(total for total, _ in strip_sums)])

    def counted(self, c: Array) -> Array:
        """Sum over all blocks. Products of vectors are computed once, so each draw costs one number per pair."""
        if self.use_cache and self._weighed is None:
            self._weighed, self._similar = list(self._products()), None  # one or the other is held
        flat = np.ascontiguousarray(c.T)
        total = np.zeros(len(c))
        for rows, earlier, h in self._weighed or self._products():
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
            bottom = min(top + STRIP, n)
            if first[bottom - 1] > top:  # the strip ends where its last block begins, unless that began before it
                bottom = int(first[bottom - 1])
            strips.append((top, bottom, int(first[top])))
            top = bottom
        return strips

    @cached_property
    def block_starts(self) -> Array:
        """Start of the block of each row."""
        return np.repeat(self.edges[:-1], np.diff(self.edges))

    def strip(self, number: int) -> Strip:
        """Kernel values of a strip, read-only."""
        if self._similar:
            return self._similar[number]
        top, bottom, start = self.spans[number]
        first = self.block_starts
        k = self.kernel.of(self.P[top:bottom], self.P[start:bottom])
        k[:, top - start :] = np.tril(k[:, top - start :], -1)
        if first[bottom - 1] > start:
            k[np.arange(start, bottom) < first[top:bottom, None]] = 0.0
        return slice(top, bottom), slice(start, bottom), k

    def _strips(self) -> Iterator[Strip]:
        return (self.strip(number) for number in range(len(self.spans)))

    def _products(self) -> Iterator[Strip]:
        for rows, earlier, k in self._strips():
            yield rows, earlier, k * (self.e[rows] @ self.e[earlier].T)


VECTOR_WIDTH = 8  # draws are filled up to a multiple, so that few stand alone behind the last vector


def relabeled_differences(gram: Gram, P: Array, w: Array, own: Array, observed: Array, labels: Array) -> Array:
    """Σ w_i w_j k_ij (e_y − p)_i·(e_y − p)_j over the pairs i ≠ j of each draw, minus that of the observed labels.

    The product is 1{y_i = y_j} − p_i[y_j] − p_j[y_i] + p_i·p_j. Only the equality of labels must be computed for every
    pair and draw, in integers. The rest is a table of the contribution of each label of a row, Σ_j w_j k_ij p_j. Rows
    whose label equals the observed one in every draw are added to this table, so that confident predictions cost
    little. Equal labels give exactly 0, and the rounding is that of kernel values at 2⁻⁴³ of the largest weights.

    `labels` (n, draws) and `observed` (n,) are column numbers of P (n, m), kernel values lie in [0, 1], and `own` (n,)
    is the kernel value of a row with itself if that counts as a pair, else 0.
    """
    heaviest = float(w.max())
    v = w / heaviest
    even = bool((v == 1).all())
    ends = -(1 + labels.shape[1]) % VECTOR_WIDTH
    first = observed[:, None].astype(labels.dtype)
    joined = np.concatenate([first, labels, np.repeat(first, ends, axis=1)], axis=1)
    moving = (labels != first).any(axis=1)
    every = bool(moving.all())
    rank = np.concatenate([[0], np.cumsum(moving)])  # how many moving rows come before each
    among, blocks = (joined, gram.block_starts) if every else (joined[moving], rank[gram.block_starts[moving]])
    XT = np.ascontiguousarray((P - np.where(moving[:, None], 0, observed[:, None] == np.arange(P.shape[1]))).T)

    def work(a: int, _b: int) -> tuple[Array, Array, slice]:
        rows, earlier, k = gram.strip(a)
        if not even:
            k = k * v[rows, None] * v[earlier]
        pulled = symmetric_product(k, XT[:, earlier], rows.start - earlier.start)
        if not every:
            k = k[np.ix_(moving[rows], moving[earlier])]
        sums = np.zeros((2, joined.shape[1]), dtype=np.int64)
        add_matches(k, int(rank[rows.start]), int(rank[earlier.start]), blocks, among, sums)
        return sums, pulled, earlier

    sums = np.zeros((2, joined.shape[1]), dtype=np.int64)
    table = (own * v**2)[:, None] * P
    for matched, pulled, of in in_blocks(work, len(gram.spans), 1):
        sums += matched
        table[of] += pulled.T
    change = match_differences(sums) - label_differences(table, joined)
    return np.asarray(2 * heaviest**2 * change[: labels.shape[1]])
