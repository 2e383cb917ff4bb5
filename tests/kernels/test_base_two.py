"""Are logarithms and powers of base 2 those of the library, to the last digits?"""

import math

import numpy as np
import pytest

from trueodds.kernels.base_two import exp2, log2
from trueodds.kernels.likelihood import temper_probabilities


def numbers():
    """Of every size, close to 1, at the cut of the mantissa, and whole powers of two."""
    rng = np.random.default_rng(0)
    near = 1 + 1e-6 * rng.normal(size=200)
    cut = np.sqrt([0.5, 2.0, 8.0]) * (1 + 1e-15 * np.arange(-4, 5)[:, None])
    sizes = 10.0 ** rng.uniform(-300, 300, 1000)
    return np.concatenate([sizes, near, cut.ravel(), 2.0 ** np.arange(-1022, 1024, 31.0)]).tolist()


def test_logs_are_those_of_the_library():
    for x in numbers():
        assert log2(x) == pytest.approx(math.log2(x), rel=1e-15)
    assert [log2(x) for x in (0.25, 0.5, 1.0, 2.0)] == [-2.0, -1.0, 0.0, 1.0]


def test_powers_are_those_of_the_library():
    rng = np.random.default_rng(1)
    for y in (-np.concatenate([rng.uniform(0, 1000, 1000), rng.random(500), np.arange(0, 1021, 0.5)])).tolist():
        # Half a rounding unit from the library, some from the polynomial and its product with the power of two.
        assert exp2(y) == pytest.approx(2.0**y, rel=1e-15, abs=0)
    assert [exp2(y) for y in (0.0, -1.0, -2.0, -1020.0)] == [1.0, 0.5, 0.25, 2.0**-1020]


def test_a_power_that_is_no_normal_number_is_zero():
    assert [exp2(y) for y in (-1021.5, -1e300, -np.inf)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 31, 33, 65])
def test_equal_rows_have_equal_powers_wherever_they_stand(n):
    # Equal scores are told by their bits, so the end of a loop may not round otherwise than its middle.
    P = np.tile(np.random.default_rng(0).dirichlet(np.ones(7)), (n, 1))
    assert (temper_probabilities(P, 0.37) == temper_probabilities(P[:1], 0.37)).all()
