"""Are logs and powers those of the library, wherever a number stands?"""

import math

import numpy as np
import pytest

from trueodds.kernels.softmax_log_loss import exp2, exp2_scaled, log2, log2_clipped


def numbers():
    """Of every size, close to 1, at the cut of the mantissa, and whole powers of two."""
    rng = np.random.default_rng(0)
    near = 1 + 1e-6 * rng.normal(size=200)
    cut = np.sqrt([0.5, 2.0, 8.0]) * (1 + 1e-15 * np.arange(-4, 5)[:, None])
    return np.concatenate(
        [10.0 ** rng.uniform(-300, 300, 1000), near, cut.ravel(), 2.0 ** np.arange(-1022, 1024, 31.0)]
    )


def test_logs_are_those_of_the_library():
    x = numbers()
    out = np.empty(len(x))
    log2_clipped(x, 1e-308, out)
    assert out == pytest.approx(np.array([math.log2(value) for value in x.tolist()]), rel=1e-15)
    assert [log2(value) for value in (0.25, 0.5, 1.0, 2.0)] == [-2.0, -1.0, 0.0, 1.0]


def test_a_number_below_the_floor_has_the_log_of_the_floor():
    out = np.empty(3)
    log2_clipped(np.array([0.0, 0.125, 0.5]), 0.25, out)
    assert out.tolist() == [-2.0, -2.0, -1.0]


def test_powers_are_those_of_the_library():
    rng = np.random.default_rng(1)
    y = -np.concatenate([rng.uniform(0, 1000, 1000), rng.random(500), np.arange(0, 1021, 0.5)])
    out = np.empty(len(y))
    exp2_scaled(y, 1.0, out)
    # Half a rounding unit from the library, some from the polynomial and its product with the power of two.
    assert out == pytest.approx(np.exp2(y), rel=1e-15, abs=0)
    exp2_scaled(y[:100], 0.25, out[:100])
    assert out[:100] == pytest.approx(np.exp2(y[:100] / 4), rel=1e-15, abs=0)
    assert [exp2(exponent) for exponent in (0.0, -1.0, -2.0)] == [1.0, 0.5, 0.25]


def test_what_is_too_small_for_a_normal_number_is_nothing():
    assert [exp2(exponent) for exponent in (-1021.5, -1e300, -np.inf)] == [0.0, 0.0, 0.0]
    assert exp2(-1020.0) == 2.0**-1020


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 31, 33, 65])
def test_equal_numbers_have_equal_logs_and_powers_wherever_they_stand(n):
    # Equal scores are told by their bits, so the end of a loop may not round otherwise than its middle.
    for x in (0.3, 1e-7, 0.9999999, 5e-13):
        log, power = np.empty(n), np.empty(n)
        log2_clipped(np.full(n, x), 1e-300, log)
        exp2_scaled(log, 0.7, power)
        assert set(log.tolist()) == {log2(x)}
        assert len(set(power.tolist())) == 1
