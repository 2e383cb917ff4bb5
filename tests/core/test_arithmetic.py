"""Is a weighted sum exact to rounding, and the same however the linear algebra splits it?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from trueodds.core.arithmetic import ROWS_PER_BLOCK, weighted_sum


@pytest.mark.parametrize("n", [0, 1, 1000, ROWS_PER_BLOCK, ROWS_PER_BLOCK + 1, 5 * ROWS_PER_BLOCK - 3])
def test_a_weighted_sum_is_that_of_exact_arithmetic(n: int) -> None:
    rng = np.random.default_rng(n)
    weights, values = rng.random(n), rng.normal(size=n)
    bound = 2.0**-52 * (math.log2(n + 2) + 8) * math.sqrt(n + 1)
    assert weighted_sum(weights, values) == pytest.approx(math.fsum((weights * values).tolist()), abs=bound)


def test_columns_are_summed_by_themselves() -> None:
    rng = np.random.default_rng(0)
    weights, values = rng.random(20_000), rng.normal(size=(20_000, 3))
    sums = weighted_sum(weights, values)
    assert sums.shape == (3,)
    np.testing.assert_allclose(sums, [weighted_sum(weights, column) for column in values.T], rtol=1e-12)


def test_rows_of_weights_are_draws() -> None:
    rng = np.random.default_rng(1)
    weights, values = rng.random((4, 20_000)), rng.normal(size=(20_000, 3))
    by_draw = [weighted_sum(draw, values) for draw in weights]
    np.testing.assert_allclose(weighted_sum(weights, values), by_draw, rtol=1e-12)
    np.testing.assert_allclose(weighted_sum(weights, values[:, 0]), np.array(by_draw)[:, 0], rtol=1e-12)
