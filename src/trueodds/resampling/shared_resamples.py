"""The resamples of a bootstrap: how often each row or cluster occurs in each of them, shared by all estimands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.kernels import map_blocks
from trueodds.kernels.bootstrap_multiplicities import BootstrapMultiplicities

T = TypeVar("T")  # result of one block of resamples

MAX_SEQUENTIAL_DRAWS = 2**20  # up to this total number of draws, rows are drawn as `rng.integers(0, n, (resamples, n))`
RESAMPLES_PER_BLOCK = 128  # resamples that a thread evaluates at once
MAX_BLOCK_MULTIPLICITIES = 2**25  # multiplicities in memory per thread
MAX_BLOCK_ACCUMULATORS = 2**19  # accumulators of each kind in memory per thread


class SharedResamples:
    """Multiplicities of the units (rows or clusters) in each resample; all estimands share one set of resamples.

    A small number of draws comes from the generator one by one, which reference values rely on. A large number uses
    multiplicities that depend only on the row, the resample and a key. `order` (n,) is the row number at each position
    of the multiplicities, by default that of the rows.
    """

    def __init__(
        self, n: int, cluster: Array | None, resamples: int, rng: np.random.Generator, order: Array | None = None
    ) -> None:
        self.n, self.cluster, self.n_resamples, self.order = n, cluster, resamples, order
        self.n_units = n if cluster is None else int(cluster.max()) + 1
        self._stored_multiplicities: Array | None = None
        if self.n_units * resamples <= MAX_SEQUENTIAL_DRAWS:
            drawn = rng.integers(0, self.n_units, (resamples, self.n_units))
            flat_index = drawn + np.arange(resamples)[:, None] * self.n_units
            counts = np.bincount(flat_index.ravel(), minlength=flat_index.size).reshape(flat_index.shape).T
            self._stored_multiplicities = counts.astype(np.uint8)
        else:
            self._multiplicity_generator = BootstrapMultiplicities(self.n_units, stream_key(rng), order)

    @property
    def unit(self) -> Array | None:
        """Position of each row's unit among the multiplicities, (n,); None if it is the number of the row."""
        if self.cluster is not None or self.order is None:
            return self.cluster
        position = np.empty(self.n, dtype=np.int64)
        position[self.order] = np.arange(self.n)
        return position

    def multiplicities(self, start: int, stop: int) -> Array:
        """Multiplicities of each unit in the resamples start..stop−1, (units, stop − start) uint8."""
        if self._stored_multiplicities is not None:
            return self._stored_multiplicities[:, start:stop]
        return self._multiplicity_generator.draw(start, stop)

    def row_indices(self, start: int, stop: int) -> list[Array]:
        """Row indices of these resamples, each sorted."""
        multiplicities = self.multiplicities(start, stop)
        assert self.order is None
        row_multiplicities = multiplicities if self.cluster is None else multiplicities[self.cluster]
        return [np.repeat(np.arange(self.n), column) for column in row_multiplicities.T]

    def map_blocks(self, evaluate: Callable[[Array], T], n_accumulators: int) -> list[T]:
        """Apply `evaluate` to the multiplicities (units, draws) of each block of resamples, in order."""
        max_resamples = min(
            RESAMPLES_PER_BLOCK, MAX_BLOCK_MULTIPLICITIES // self.n_units, MAX_BLOCK_ACCUMULATORS // n_accumulators
        )
        block_size = max(16, max_resamples // 2 * 2)  # an even number
        return map_blocks(lambda start, stop: evaluate(self.multiplicities(start, stop)), self.n_resamples, block_size)
