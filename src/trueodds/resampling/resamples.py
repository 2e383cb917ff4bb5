"""Which rows does each resample hold? Rows, or whole clusters of them, drawn with replacement."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.kernels import in_blocks
from trueodds.kernels.multiplicities import Multiplicities

T = TypeVar("T")

ONE_BY_ONE = 2**20  # up to so many draws in all, rows are drawn as `rng.integers(0, n, (resamples, n))`
AT_ONCE = 128  # resamples that are made side by side
_TIMES = 2**25  # multiplicities held at a time by a thread
_NUMBERS = 2**19  # of one kind that a thread holds at a time


class Resamples:
    """How often each row or cluster comes in each resample; one set of resamples serves every question.

    Few draws are made one by one by the generator, which reference numbers follow; many are multiplicities that
    depend on the row, the resample and a key alone.
    """

    def __init__(self, n: int, cluster: Array | None, resamples: int, rng: np.random.Generator) -> None:
        self.n, self.cluster, self.count = n, cluster, resamples
        self.units = n if cluster is None else int(cluster.max()) + 1
        self._times: Array | None = None
        if self.units * resamples <= ONE_BY_ONE:
            drawn = rng.integers(0, self.units, (resamples, self.units))
            place = drawn + np.arange(resamples)[:, None] * self.units
            times = np.bincount(place.ravel(), minlength=place.size).reshape(place.shape).T
            self._times = times.astype(np.uint8)
        else:
            self._drawn = Multiplicities(self.units, stream_key(rng))

    def times(self, start: int, stop: int) -> Array:
        """How often each unit comes in the resamples start..stop−1, (units, stop − start) uint8."""
        if self._times is not None:
            return self._times[:, start:stop]
        return self._drawn.of(start, stop)

    def rows(self, start: int, stop: int) -> list[Array]:
        """The row numbers of these resamples, each in rising order."""
        times = self.times(start, stop)
        of_rows = times if self.cluster is None else times[self.cluster]
        return [np.repeat(np.arange(self.n), column) for column in of_rows.T]

    def mapped(self, work: Callable[[Array], T], numbers: int) -> list[T]:
        """What `work` makes of the multiplicities (units, draws) of each block of resamples, in their order.

        `numbers` says how many numbers of one kind it holds for each draw, which bounds the blocks.
        """
        side = max(16, min(AT_ONCE, _TIMES // self.units, _NUMBERS // numbers) // 2 * 2)
        return in_blocks(lambda start, stop: work(self.times(start, stop)), self.count, side)
