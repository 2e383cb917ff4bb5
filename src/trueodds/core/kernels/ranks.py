"""Which numbers have given ranks? Counted cell by cell, so that only those few near a rank are put in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled, in_blocks, plain, summed

Array = NDArray[Any]

_BITS = 13
_CELLS = 2**_BITS  # of equal width between the least number and the largest; their counts stay in a core's own cache
_BLOCK = 2**18
_SAMPLE = 1000  # numbers that tell where cells are wanted
_NEAR = 0.25  # of the sample: if more than that shares a cell with a rank, to sort everything is no slower


@compiled
def _counted(x, low, shift, out):  # type: ignore[no-untyped-def]
    """Adds to out (cells,) how many numbers each cell holds."""
    count = np.zeros(out.shape[0], dtype=np.int64)
    for i in range(x.shape[0]):
        count[(x[i] - low) >> shift] += 1
    for c in range(out.shape[0]):
        out[c] += np.float64(count[c])


@compiled
def _taken(x, low, shift, wanted, out):  # type: ignore[no-untyped-def]
    """Lists the numbers in wanted cells; how many they are."""
    m = 0
    for i in range(x.shape[0]):
        out[np.uint32(m)] = x[i]
        m += wanted[(x[i] - low) >> shift]
    return m


def ranked(x: Array, ranks: Array) -> Array | None:
    """The numbers at these ranks, from 0, when x (n,) of unsigned whole numbers is put in order; None: better sort it."""
    if not len(ranks):
        return x[:0]
    x = plain(x)
    low, high = x.min(), x.max()
    shift = x.dtype.type(max(0, int(high - low).bit_length() - _BITS))
    some = np.sort((x[:: max(1, len(x) // _SAMPLE)] - low) >> shift)
    if _held(some[ranks * len(some) // len(x)])[some].mean() > _NEAR:
        return None
    count = summed(lambda a, b, out: _counted(x[a:b], low, shift, out), len(x), (_CELLS,), block=_BLOCK)
    cells = np.searchsorted(np.cumsum(count), ranks, "right")
    wanted = _held(cells)

    def near(start: int, stop: int) -> Array:
        out = np.empty(stop - start, dtype=x.dtype)
        return out[: _taken(x[start:stop], low, shift, wanted, out)]

    found = np.concatenate(in_blocks(near, len(x), _BLOCK))
    found.sort()
    left_out = np.cumsum(np.where(wanted, 0.0, count)).astype(np.int64)
    return found[ranks - left_out[cells]]


def _held(cells: Array) -> Array:
    """Which of all cells are among these."""
    found = np.zeros(_CELLS, dtype=np.bool_)
    found[cells] = True
    return found
