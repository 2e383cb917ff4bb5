"""What is Σ e_i k(p_i, p_j) e_j over the pairs of rows, for many vectors e at once?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels.pairs import along
from trueodds.estimators.smoothing.kernels import Kernel

Array = NDArray[Any]
Strip = tuple[slice, slice, Array]  # rows, the rows before them and they, their similarities below the diagonal

STRIP = 256  # rows whose similarities are made at once
HELD = 2 * 10**8  # bytes of similarities that are kept between calls: all pairs of 7,000 rows


class Forms(Protocol):
    """The sums over all i ≠ j of one block of rows."""

    def apart(self, e: Array) -> Array:
        """Σ e_i·e_j k_ij over the pairs i ≠ j of each block, for e (draws, n, m)."""
        ...

    def counted(self, c: Array) -> Array:
        """The same for c_i e_i of the e that was given first, for c (draws, n)."""
        ...


class Line:
    """Exponential kernels of one score: sorted once, each vector costs O(n), and there is no matrix."""

    def __init__(self, kernel: Kernel, p: Array, e: Array, edges: Array) -> None:
        block = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        self.order = np.lexsort((p, block))
        decay = kernel.decay(p[self.order])
        assert decay is not None
        decay[edges[:-1]] = 0.0  # blocks do not see each other
        self.decay, self.e, self.edges = decay, e, edges

    def apart(self, e: Array) -> Array:
        """All blocks together."""
        return along(e[:, self.order, 0], self.decay)

    def counted(self, c: Array) -> Array:
        """All blocks together."""
        return self.apart(c[..., None] * self.e)

    def by_block(self) -> Array:
        """Each block's sum for the first e."""
        e, decay = self.e[self.order, 0], self.decay
        ends = zip(self.edges[:-1], self.edges[1:], strict=True)
        return np.array([along(e[None, a:b], decay[a:b])[0] for a, b in ends])


class Gram:
    """Any kernel: all pairs, in strips below the diagonal; kept for the next call where they fit into the memory."""

    def __init__(self, kernel: Kernel, P: Array, e: Array, edges: Array, share: int = 1) -> None:
        self.kernel, self.P, self.e, self.edges = kernel, P, e, edges
        self.kept = float((np.diff(edges) ** 2).sum()) * 4 * share <= HELD
        self._similar: list[Strip] | None = None
        self._weighed: list[Strip] | None = None

    def apart(self, e: Array) -> Array:
        """All blocks together."""
        if self.kept and self._similar is None and len(e) > 1:
            self._similar = list(self._strips())
        draws, n, m = e.shape
        flat = np.ascontiguousarray(e.transpose(1, 0, 2)).reshape(n, draws * m)
        total = np.zeros(draws * m)
        for rows, earlier, k in self._similar or self._strips():
            total += np.einsum("ij,ij->j", flat[rows], k @ flat[earlier])
        return 2 * total.reshape(draws, m).sum(axis=1)

    def counted(self, c: Array) -> Array:
        """All blocks together: the vectors are multiplied once, so that each draw costs one number per pair."""
        if self.kept and self._weighed is None:
            self._weighed = list(self._products())
        flat = np.ascontiguousarray(c.T)
        total = np.zeros(len(c))
        for rows, earlier, h in self._weighed or self._products():
            total += np.einsum("ij,ij->j", flat[rows], h @ flat[earlier])
        return 2 * total

    def by_block(self) -> Array:
        """Each block's sum for the first e."""
        found = np.zeros(len(self.P))
        for rows, _, h in self._products():
            found[rows] = h.sum(axis=1)
        return 2 * np.add.reduceat(found, self.edges[:-1])

    def _strips(self) -> Iterator[Strip]:
        """Each row meets the rows before it in its own block; short blocks share a strip."""
        first = np.repeat(self.edges[:-1], np.diff(self.edges))
        top, n = 0, len(self.P)
        while top < n:
            bottom = min(top + STRIP, n)
            if first[bottom - 1] > top:  # the strip ends where its last block begins, unless that began before it
                bottom = int(first[bottom - 1])
            start = int(first[top])
            k = self.kernel.of(self.P[top:bottom], self.P[start:bottom])
            k[:, top - start :] = np.tril(k[:, top - start :], -1)
            if first[bottom - 1] > start:
                k[np.arange(start, bottom) < first[top:bottom, None]] = 0.0
            yield slice(top, bottom), slice(start, bottom), k
            top = bottom

    def _products(self) -> Iterator[Strip]:
        for rows, earlier, k in self._strips():
            k *= self.e[rows] @ self.e[earlier].T
            yield rows, earlier, k
