"""Are rows as far from each other, and pairs on a line worth as much, as plain loops say?"""

import itertools
import math

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels.pairwise import (
    pairwise_distances,
    strip_matrix_product,
    sum_exponential_kernel,
    sum_pair_products,
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("absolute", [False, True])
def test_distances_equal_a_plain_loop(absolute, dtype, layout):
    rng = np.random.default_rng(0)
    P, Q = rng.random((5, 3)).astype(dtype), rng.random((4, 3)).astype(dtype)
    Q[2] = P[1]
    expected = [
        [sum(abs(x - y) if absolute else (x - y) ** 2 for x, y in zip(p, q, strict=True)) for q in Q] for p in P
    ]
    distances = pairwise_distances(layout(P), layout(Q), absolute=absolute)
    # a difference of two numbers below 1 is rounded once, its square again
    np.testing.assert_allclose(distances, np.array(expected, dtype=np.float64), rtol=0, atol=8 * np.finfo(dtype).eps)
    assert distances[1, 2] == 0


@pytest.mark.parametrize("shape", [(0, 2, 3), (1, 1, 1), (1, 0, 2), (2, 17, 1)])
def test_distances_of_few_rows(shape):
    a, b, m = shape
    P, Q = np.ones((a, m)), np.zeros((b, m))
    assert pairwise_distances(P, Q, absolute=True).tolist() == [[m] * b] * a


def by_loops(e, decay):
    sums = np.zeros(len(e))
    for b, row in enumerate(e.astype(np.float64)):
        for i, j in itertools.combinations(range(len(row)), 2):
            sums[b] += 2 * row[i] * row[j] * math.prod(decay[i + 1 : j + 1])
    return sums


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairs_on_a_line_equal_a_plain_loop(dtype, layout):
    rng = np.random.default_rng(0)
    e, decay = rng.normal(size=(3, 9)).astype(dtype), rng.random(9)
    decay[4] = 0  # nothing is felt across a gap
    np.testing.assert_allclose(
        sum_exponential_kernel(layout(e), layout(decay)), by_loops(e, decay), rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("draws", [1, 15, 16, 17, 33])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_pairs_on_a_line_at_the_boundaries_of_blocks(n, draws):
    e = np.random.default_rng(n).normal(size=(draws, n))
    np.testing.assert_allclose(sum_exponential_kernel(e, np.full(n, 0.5)), by_loops(e, np.full(n, 0.5)), rtol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("n", "m", "top"), [(1, 1, 0), (2, 3, 0), (7, 2, 3), (7, 2, 6)])
def test_pulls_and_products_of_a_strip_equal_a_plain_loop(n, m, top, layout):
    rng = np.random.default_rng(n)
    k, x = rng.random((n - top, n)), rng.normal(size=(m, n))
    expected, total = np.zeros((m, n)), 0.0
    for i in range(top, n):
        for j in range(i):  # rows behind the diagonal are not read
            expected[:, i] += k[i - top, j] * x[:, j]
            expected[:, j] += k[i - top, j] * x[:, i]
            total += k[i - top, j] * float(x[:, i] @ x[:, j])
    np.testing.assert_allclose(strip_matrix_product(layout(k), layout(x), top), expected, rtol=1e-12, atol=1e-13)
    assert sum_pair_products(layout(k), layout(x), top) == pytest.approx(total, rel=1e-12, abs=1e-13)
