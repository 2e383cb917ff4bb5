"""Are the sums of a likelihood along a spline those of a plain loop?"""

import numpy as np
import pytest

from trueodds.kernels.logistic_likelihood import N_SUMS, spline_likelihood


def pieces(x, knots):
    """The interval of one score, and what the values and second derivatives on both sides count for in the curve."""
    j = min(max(int(np.searchsorted(knots, x)) - 1, 0), len(knots) - 2)
    h = knots[j + 1] - knots[j]
    b = (x - knots[j]) / h
    a = 1 - b
    c, d = ((max(v, 0.0) ** 3 - v) * h * h / 6 for v in (a, b))
    return j, np.array([a, b, c, d])


def by_loop(x, events, nonevents, knots, f, curvature):
    out = np.zeros((len(knots) - 1, N_SUMS))
    for s, m, n in zip(x, events, nonevents, strict=True):
        j, part = pieces(s, knots)
        eta = part @ [f[j], f[j + 1], curvature[j], curvature[j + 1]]
        q = 1 / (1 + np.exp(-eta))
        out[j, 0] += m * np.log1p(np.exp(-eta)) + n * np.log1p(np.exp(eta))
        out[j, 1:5] += (n * q - m * (1 - q)) * part
        out[j, 5:] += ((m + n) * q * (1 - q) * np.outer(part, part))[np.tril_indices(4)]
    return out


@pytest.mark.parametrize("n", [1, 40, 40_000])
def test_the_sums_are_those_of_a_loop(n):
    rng = np.random.default_rng(n)
    knots = np.array([-2.0, -0.5, 0.1, 3.0])
    x = np.sort(rng.normal(size=n) * 2)  # some beyond the knots
    f, curvature = rng.normal(size=4), np.array([0.0, 0.4, -1.0, 0.0])
    rows = x, rng.random(n), rng.random(n)
    assert spline_likelihood(*rows, knots, f, curvature) == pytest.approx(
        by_loop(*rows, knots, f, curvature), rel=1e-10, abs=1e-12
    )


def test_where_outcomes_are_certain_the_slope_keeps_its_digits():
    # One score that came, η = 40: the slope is −1 / (1 + e⁴⁰), which 1 − q would round to 0.
    sums = spline_likelihood(
        np.zeros(1), np.ones(1), np.zeros(1), np.array([0.0, 1.0]), np.array([40.0, 41.0]), np.zeros(2)
    )
    assert sums[0, 1] == pytest.approx(-1 / (1 + np.exp(40)), rel=1e-12)
