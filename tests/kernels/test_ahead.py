"""Does asking for memory leave everything as it is, wherever the place lies?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueodds.kernels import as_plain_array, compile_kernel
from trueodds.kernels.row_statistics import CACHE_LINE, prefetch


@compile_kernel
def _prefetched_sum(x, places):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(places.shape[0]):
        prefetch(x, places[i])
    for i in range(x.shape[0]):
        total += x[i]
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("n", [0, 1, 1000])
@pytest.mark.parametrize("index", [np.int64, np.uint64])
def test_places_beyond_the_end_are_harmless(n: int, index: Any, dtype: Any) -> None:
    x = np.arange(n, dtype=dtype)
    places = np.array([0, n - 1 if n else 0, n, n + 1, 2**20, 2**40], dtype=index)
    assert _prefetched_sum(as_plain_array(x), places) == x.sum()
    assert np.array_equal(x, np.arange(n))


def test_a_line_is_a_whole_number_of_every_number() -> None:
    assert all(CACHE_LINE % np.dtype(dtype).itemsize == 0 for dtype in (np.float32, np.float64))
