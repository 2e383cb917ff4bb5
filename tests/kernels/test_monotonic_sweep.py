"""Is the number of bins found, and their error, what trying every number of bins with exact fractions gives?"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels.partitions import monotonic_sweep


def bins_of(mass, s, k, by_mass):
    """The bin of each score that has weight, from 1: by the weight below it; a cut that this meets lies behind."""
    if not by_mass:
        return [next(j for j in range(1, k + 1) if j == k or x <= j / k) for x in s]
    total, below, bins = sum(mass), 0, []
    for weight in mass:
        bins.append(math.floor(below * k / total) + 1)
        below += weight
    return bins


def bin_sums(mass, predicted, observed, bins):
    return [
        [sum(x for x, b in zip(column, bins, strict=True) if b == j) for column in (mass, predicted, observed)]
        for j in sorted(set(bins))
    ]


def by_loops(w, wp, wy, s, max_bins, by_mass, order):
    occupied = [i for i in range(len(s)) if w[i] > 0]
    mass, predicted, observed = ([Fraction(float(x[i])) for i in occupied] for x in (w, wp, wy))
    scores, k = [float(s[i]) for i in occupied], 1
    while k < max_bins:
        rates = [y / m for m, _, y in bin_sums(mass, predicted, observed, bins_of(mass, scores, k + 1, by_mass))]
        if any(b < a for a, b in itertools.pairwise(rates)):
            break
        k += 1
    parts = [
        (m / sum(mass), abs(p - y) / m)
        for m, p, y in bin_sums(mass, predicted, observed, bins_of(mass, scores, k, by_mass))
    ]
    if math.isinf(order):
        return float(max(gap for _, gap in parts)), k
    return sum(float(share) * float(gap) ** order for share, gap in parts) ** (1 / order), k


def problem(m, seed, draws=3):
    """Weights in whole numbers and outcomes in halves: every sum is exact, and rates are often equal."""
    rng = np.random.default_rng([m, seed])
    s = np.sort(rng.choice(21, m, replace=False) / 20) if m <= 21 else np.sort(rng.random(m))
    w = rng.integers(0, 3, (draws, m)).astype(np.float64)
    w[:, rng.integers(0, m)] = 1
    p = np.round(s * 64) / 64
    chance = rng.random((draws, m)) < (s if seed % 2 else rng.random(m))
    return w, w * p, w * chance, s


@pytest.mark.parametrize("by_mass", [False, True])
@pytest.mark.parametrize("order", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("m", [1, 2, 5, 20, 40])
def test_a_sweep_equals_trying_every_number(m, order, by_mass):
    for seed in range(6):
        w, wp, wy, s = problem(m, seed)
        values, bins = monotonic_sweep(w, wp, wy, s, max_bins=m, by_mass=by_mass, order=order)
        expected = [by_loops(*rows, s, m, by_mass, order) for rows in zip(w, wp, wy, strict=True)]
        assert bins.tolist() == [k for _, k in expected]
        np.testing.assert_allclose(values, [value for value, _ in expected], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_layout(dtype, layout):
    w, wp, wy, s = (x.astype(dtype) for x in problem(12, 1))
    actual = monotonic_sweep(*(layout(x) for x in (w, wp, wy, s)), max_bins=9, by_mass=True, order=1.0)
    expected = [by_loops(*rows, s, 9, True, 1.0) for rows in zip(w, wp, wy, strict=True)]
    assert actual[1].tolist() == [k for _, k in expected]
    np.testing.assert_allclose(actual[0], [value for value, _ in expected], rtol=1e-12)


@pytest.mark.parametrize("draws", [1, 3])
def test_what_all_draws_share_is_given_once(draws):
    w, wp, wy, s = problem(9, 1, draws)
    once = monotonic_sweep(w[:1], wp[:1], np.repeat(wy[:1], draws, axis=0), s, max_bins=9, by_mass=True, order=1.0)
    repeated = monotonic_sweep(
        *(np.repeat(x[:1], draws, axis=0) for x in (w, wp, wy)), s, max_bins=9, by_mass=True, order=1.0
    )
    assert [x.tolist() for x in once] == [x.tolist() for x in repeated]


@pytest.mark.slow
def test_draws_at_the_boundaries_of_blocks():
    m = 2**13  # 32 draws are then handed over at a time
    rng = np.random.default_rng(0)
    w, s = np.ones((1, m)), np.arange(m) / m
    wy = (rng.random((33, m)) < s).astype(np.float64)
    values, bins = monotonic_sweep(w, w * s, wy[:2], s, max_bins=3, by_mass=False, order=1.0)
    for r in range(2):
        assert (values[r], bins[r]) == pytest.approx(by_loops(w[0], s, wy[r], s, 3, False, 1.0), rel=1e-12)
