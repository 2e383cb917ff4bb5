"""Are masses spread over a grid as a plain loop spreads them, and seen through windows as plain sums see them?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueodds.kernels.smoothing import _ROWS_PER_MASS_BLOCK, SlidingWindows, cell_moments, mean_absolute_window_sum


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 300])
@pytest.mark.parametrize("middle", [0.0, 0.5])
def test_moments_are_those_of_a_loop_over_the_rows(n: int, middle: float, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    x, mass = (rng.integers(0, 21, n) / 20).astype(dtype), rng.normal(size=n)
    x[: n // 3] = rng.random(n // 3).astype(dtype)
    cells, powers, first, last = 7, 4, -0.25, 1.5
    expected = np.zeros((cells, powers))
    for one, weight in zip(x.astype(float).tolist(), mass.tolist(), strict=True):
        place = (one - first) * (cells / (last - first))
        expected[int(place)] += weight * (place - int(place) - middle) ** np.arange(powers)
    for values in (x, np.repeat(x, 2)[::2]):
        values.flags.writeable = False
        actual = cell_moments(values, lambda a, b: mass[a:b], cells, powers, first=first, last=last, middle=middle)
        assert actual == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_what_lies_beyond_the_ends_belongs_to_the_outer_cells() -> None:
    actual = cell_moments(np.array([-0.25, 1.0, 1.25]), lambda a, b: np.ones(b - a), 4, 2)
    assert actual.tolist() == [[1, -1], [0, 0], [0, 0], [2, 1 + 2]]  # u = −1 in the first, 1 and 2 in the last


@pytest.mark.parametrize(
    "n",
    [
        _ROWS_PER_MASS_BLOCK - 1,
        _ROWS_PER_MASS_BLOCK,
        _ROWS_PER_MASS_BLOCK + 1,
        5 * _ROWS_PER_MASS_BLOCK,
    ],
)
def test_blocks_of_rows_are_put_together(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n)
    x, mass = rng.random(n).astype(np.float32), rng.normal(size=n)
    place = x.astype(float) * 10
    u = place - place.astype(int)
    expected = np.stack([np.bincount(place.astype(int), mass * u**k) for k in range(3)], axis=1)
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        results.append(cell_moments(x, lambda a, b: mass[a:b], 10, 3))
    assert results[0] == pytest.approx(expected, rel=1e-9)
    assert np.array_equal(*results)


@pytest.mark.parametrize("m", [1, 2, 30, 70_000])
@pytest.mark.parametrize("width", [1.0, 0.25, 2.0**-9, 2.0**-20])
def test_windows_over_blocks_of_scores_are_windows(m: int, width: float) -> None:
    rng = np.random.default_rng(m)
    s = np.unique(rng.integers(0, 2**14, m) / 2**14 if m == 30 else rng.random(m))
    e = rng.normal(size=len(s))
    assert mean_absolute_window_sum(s, e, width) == pytest.approx(
        float(SlidingWindows(s, width).mean_absolute_sums(e[None])[0]), rel=1e-11
    )


def test_windows_by_hand() -> None:
    # .25 alone for a in (−.25, 0], both for (0, .25], .5 alone for (.25, .5]; width .5
    assert (
        mean_absolute_window_sum(np.array([0.25, 0.5]), np.array([1.0, -3.0]), 0.5)
        == (0.25 * 1 + 0.25 * 2 + 0.25 * 3) / 0.5
    )
