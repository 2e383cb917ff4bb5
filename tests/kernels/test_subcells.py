"""Do the rows of each bin in each fine cell equal plain loops?"""

from collections import defaultdict

import numpy as np
import pytest

from trueodds.kernels.fine_grid import CELL_EDGES, N_CELLS, count_subcells


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_pairs_of_bin_and_cell_equal_plain_loops(dtype, n):
    rng = np.random.default_rng(n)
    p = rng.choice([0.0, 1.0, 0.5, 1e-6, *rng.random(5)], n).astype(dtype)
    index = rng.integers(0, 6, n)
    index[index == 3] = 2  # a bin without rows
    groups = defaultdict(list)
    for x, b in zip(p.astype(np.float64), index, strict=True):
        cell = int(np.clip(np.searchsorted(CELL_EDGES, x, "left") - 1, 0, N_CELLS - 1))
        groups[int(b), cell].append(x)
    bins, count, mean = count_subcells(p, index, 6)
    assert bins.tolist() == [b for b, _ in sorted(groups)]
    assert count.tolist() == [len(groups[pair]) for pair in sorted(groups)]
    np.testing.assert_allclose(mean, [np.mean(groups[pair]) for pair in sorted(groups)], rtol=1e-15)
