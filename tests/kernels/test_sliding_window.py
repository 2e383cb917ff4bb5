"""Does a sliding window see what adding up all it holds, between any two of its stops, gives?"""

import itertools

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels import smoothing
from trueodds.kernels.smoothing import SlidingWindows, mean_absolute_window_sum


def by_loops(s, e, width):
    """The sum is constant while nothing enters or leaves: at the middle between two stops the window is looked at."""
    s = [float(x) for x in s]
    stops = sorted({*s, *(x - width for x in s)})
    total = 0.0
    for a, b in itertools.pairwise(stops):
        middle = (a + b) / 2
        total += (b - a) * abs(sum(float(z) for x, z in zip(s, e, strict=True) if middle <= x < middle + width))
    return total / width


def scores(m, dtype=np.float64):
    rng = np.random.default_rng(m)
    s = np.sort(rng.choice([0.0, 0.25, 0.5, 1.0, *rng.random(6)], m)).astype(dtype)
    return s, rng.normal(size=(3, m))


@pytest.mark.parametrize("width", [0.01, 0.25, 0.3, 2.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 2, 3, 20])
def test_the_integral_equals_a_plain_loop(m, dtype, width):
    s, e = scores(m, dtype)
    expected = [by_loops(s, row, width) for row in e]
    # Stops are x − width in float64; in float32 they round, each by half of its last bit.
    tolerance = 2 * m * m * np.finfo(dtype).eps / width
    np.testing.assert_allclose(SlidingWindows(s, width).mean_absolute_sums(e), expected, rtol=1e-12, atol=tolerance)
    np.testing.assert_allclose(
        [mean_absolute_window_sum(s, row, width) for row in e], expected, rtol=1e-12, atol=tolerance
    )


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_layout(dtype, layout):
    s, e = scores(12)
    e = e.astype(dtype)
    expected = [by_loops(s, row, 0.3) for row in e]
    np.testing.assert_allclose(SlidingWindows(layout(s), 0.3).mean_absolute_sums(layout(e)), expected, rtol=1e-12)
    values = [mean_absolute_window_sum(layout(s), layout(row), 0.3) for row in e.astype(np.float64)]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("draws", [1, 15, 16, 17, 33])
def test_draws_at_the_boundaries_of_blocks(draws):
    s, _ = scores(4)
    e = np.random.default_rng(0).normal(size=(draws, 4))
    np.testing.assert_allclose(
        SlidingWindows(s, 0.3).mean_absolute_sums(e), [by_loops(s, row, 0.3) for row in e], rtol=1e-12
    )


@pytest.mark.parametrize("block", [1, 2, 7, 19, 20, 21])
@pytest.mark.parametrize("width", [0.1, 0.25, 1.5])
def test_scores_at_the_boundaries_of_blocks(block, width, monkeypatch):
    monkeypatch.setattr(smoothing, "_SCORES_PER_TASK", block)
    s, e = scores(20)
    assert mean_absolute_window_sum(s, e[0], width) == pytest.approx(by_loops(s, e[0], width), rel=1e-12)


def test_a_window_over_nothing_sees_nothing():
    assert mean_absolute_window_sum(np.empty(0), np.empty(0), 0.1) == 0
