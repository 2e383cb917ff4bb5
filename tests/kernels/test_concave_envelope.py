"""Is the least concave function above lines on intervals what trying all pairs of points gives?"""

import itertools

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.estimators.decision_regret import DecisionRegret
from trueodds.kernels.concave_envelope import envelope_at_half
from trueodds.lenses.view import View


def points(low, high, height, slope):
    """Both limits of Σ height + slope · t wherever it may bend or jump, with zeros at the ends."""
    lines = [line for line in zip(low, high, height, slope, strict=True) if line[0] < line[1]]
    at = sorted({0.0, 0.5, 1.0, *(x for line in lines for x in line[:2])})
    corners = [(0.0, 0.0), (1.0, 0.0)]
    for a, b in itertools.pairwise(at):
        active = [line for line in lines if line[0] <= a and line[1] >= b]
        corners += [(t, max(0.0, sum(h + s * t for _, _, h, s in active))) for t in (a, b)]
    return corners


def enveloped(low, high, height, slope):
    """Twice the envelope at one half, and the largest share of the value that a single threshold reaches."""
    all_of = points(low, high, height, slope)
    left, right = [x for x in all_of if x[0] <= 0.5], [x for x in all_of if x[0] >= 0.5]
    largest = max(y + (z - y) * ((0.5 - a) / (b - a) if b > a else 0) for a, y in left for b, z in right)
    return 2 * largest, max(y / max(t, 1 - t) for t, y in all_of)


def checked(low, high, height, slope):
    out = np.zeros((len(low), 5))
    envelope_at_half(low, high, height, slope, out)
    for r, (value, ratio, where, a, b) in enumerate(out.tolist()):
        lines = low[r], high[r], height[r], slope[r]
        twice, largest = enveloped(*(x.tolist() for x in lines))
        assert value == pytest.approx(twice, abs=1e-13)
        assert ratio == pytest.approx(largest, abs=1e-13)
        corners = points(*(x.tolist() for x in lines))
        assert (
            any(t == where and y / max(t, 1 - t) == pytest.approx(ratio, abs=1e-13) for t, y in corners) or largest == 0
        )
        assert a <= 0.5 <= b
        assert {a, b} <= {t for t, _ in corners}


@pytest.mark.parametrize("k", [0, 1, 2, 3, 6])
def test_random_intervals(k):
    rng = np.random.default_rng(k)
    ends = np.sort(rng.random((12, k, 2)), axis=2)
    checked(ends[..., 0].copy(), ends[..., 1].copy(), rng.normal(size=(12, k)), rng.normal(size=(12, k)))


@pytest.mark.parametrize("k", [2, 5])
def test_intervals_that_meet_on_a_coarse_grid(k):
    rng = np.random.default_rng(k)
    ends = np.sort(
        rng.integers(0, 5, (30, k, 2)) / 4, axis=2
    )  # many are empty, end at 0, 1/2 or 1, or share their ends
    checked(
        ends[..., 0].copy(), ends[..., 1].copy(), rng.integers(-2, 3, (30, k)) / 2, rng.integers(-2, 3, (30, k)) / 2
    )


def test_no_draw_at_all():
    out = np.full((1, 5), 7.0)
    envelope_at_half(*np.zeros((4, 0, 3)), out[:0])
    assert (out == 7.0).all()  # nothing is written


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_layout_by_way_of_the_estimator(dtype, layout):
    rng = np.random.default_rng(0)
    p, y = rng.random(50).astype(dtype), (rng.random(50) < 0.4).astype(np.float64)
    assert float(DecisionRegret()(View(layout(p), layout(y)))) == float(DecisionRegret()(View(p, y)))
