"""Are signs flipped as whole-number arithmetic flips them, and residuals summed where they belong?"""

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from tests.kernels.test_random_label_sums import KEY, WORD, mix, row_key
from trueodds.kernels import draws_per_block, random_labels

pytestmark = pytest.mark.usefixtures("integers_wrap_around")


def sign(unit, draw):
    bits = mix((row_key(KEY, unit) + (draw // 64 + 1) * 0x9E3779B97F4A7C15) % WORD)
    return 1.0 if bits >> draw % 64 & 1 else -1.0


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (62, 66), (64, 64), (120, 131)])
@pytest.mark.parametrize("clusters", [0, 1, 4])
def test_signs_equal_a_plain_loop(clusters, start, stop):
    expected = [[sign(g, r) for g in range(clusters)] for r in range(start, stop)]
    signs = random_labels.random_signs(clusters, KEY, start, stop)
    assert signs.shape == (stop - start, clusters)
    assert signs.tolist() == expected


def by_loops(cluster, slots, residuals, size, start, stop):
    out = np.zeros((stop - start, size))
    for r in range(start, stop):
        for i, row in enumerate(slots):
            for v, bin_index in enumerate(row):
                out[r - start, bin_index] += sign(int(cluster[i]), r) * residuals[i, v]
    return out


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_equal_a_plain_loop(dtype, layout):
    rng = np.random.default_rng(0)
    cluster, slots, residuals = np.arange(9) // 2, rng.integers(0, 5, (9, 2)), rng.normal(size=(9, 2)).astype(dtype)
    sums = random_labels.sum_sign_flips(layout(cluster), layout(slots), layout(residuals), 5, KEY, 60, 70)
    expected = by_loops(cluster, slots, residuals.astype(np.float64), 5, 60, 70)
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_sums_at_the_boundaries_of_blocks(n, beyond):
    count = draws_per_block(2) + beyond
    slots, residuals = np.ones((n, 1), dtype=np.int64), np.full((n, 1), 0.5)
    sums = random_labels.sum_sign_flips(np.arange(n), slots, residuals, 2, KEY, 0, count)
    assert sums.tolist() == by_loops(np.arange(n), slots, residuals, 2, 0, count).tolist()
