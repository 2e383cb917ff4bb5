"""Are the sums seen through a Gaussian those of a plain loop, near and far?"""

import math

import numpy as np
import pytest

from trueodds.kernels.smoothing import gaussian_sums


def by_loop(x, s, w, wy, h):
    """The sums at one place, over the Gaussian of the nearest score."""
    u = (x - s) / h
    nearest = (u**2).min()
    g = np.exp((nearest - u**2) / 2)
    return [math.fsum(w * g), math.fsum(wy * g), math.fsum(-w * g * u) / h, math.fsum(-wy * g * u) / h, -nearest / 2]


@pytest.mark.parametrize("h", [0.001, 0.05, 2.0])
def test_the_sums_are_those_of_a_loop(h):
    rng = np.random.default_rng(0)
    s, w = np.sort(np.concatenate([rng.random(300), [5.0]])), rng.random(301) + 0.1
    wy = w * rng.random(301)
    at = np.concatenate([np.linspace(-1, 6, 150), s[:20]])
    want = np.array([by_loop(x, s, w, wy, h) for x in at])
    assert gaussian_sums(at, s, w, wy, h) == pytest.approx(want, rel=1e-10, abs=1e-10)


def test_far_from_every_score_the_nearest_says_all():
    # At 10 with h = 0.01 every Gaussian is 0 in floats; the one of the nearest is taken out first.
    sums = gaussian_sums(np.array([10.0]), np.array([0.2, 0.8]), np.ones(2), np.array([1.0, 0.0]), 0.01)[0]
    assert sums[:2].tolist() == [1.0, 0.0]
    assert sums[4] == pytest.approx(-((9.2 / 0.01) ** 2) / 2)


def test_the_derivatives_are_those_of_the_sums():
    s, w, wy, h = np.array([0.1, 0.3, 0.35, 0.9]), np.array([1.0, 2, 1, 1]), np.array([1.0, 0, 1, 0.5]), 0.2
    e = 1e-6  # central differences: e² of the third derivative, about 1e-10
    for x in (0.0, 0.33, 0.7):
        low, mid, high = gaussian_sums(np.array([x - e, x, x + e]), s, w, wy, h)
        sums = [v[:2] * np.exp(v[4]) for v in (low, high)]
        assert mid[2:4] * np.exp(mid[4]) == pytest.approx((sums[1] - sums[0]) / (2 * e), rel=1e-7)
