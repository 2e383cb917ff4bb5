"""Are sums over nested nodes squared and added as plain loops do it, at every scale?"""

import numpy as np
import pytest

from trueodds.kernels.variance_splits import nested_squares


def plain(x, starts, weights):
    out = np.zeros((len(x), len(starts)))
    for r, draw in enumerate(x):
        for s, first in enumerate(starts):
            for begin, end in zip(first, [*first[1:], len(draw)], strict=True):
                out[r, s] += (draw[begin:end].sum(axis=0) ** 2 * weights[s, end - 1]).sum()
    return out


def marks(starts, cells):
    is_last = np.zeros((len(starts), cells), dtype=bool)
    for s, first in enumerate(starts):
        is_last[s, [*(np.array(first[1:], dtype=int) - 1), cells - 1]] = True
    return is_last


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("starts", [[[0, 2, 3, 5]], [[0, 1, 2, 3, 4, 5, 6], [0, 3, 5], [0]], [[0]]])
def test_squares_equal_a_plain_loop(starts, m):
    rng = np.random.default_rng(m)
    x, weights = rng.normal(size=(4, 7, m)), rng.random((len(starts), 7, m))
    assert np.allclose(nested_squares(x, marks(starts, 7), weights), plain(x, starts, weights), rtol=1e-12)


def test_cells_without_any_scale_have_no_squares():
    # A kernel that wrote to the first scale regardless once corrupted memory.
    assert nested_squares(np.ones((5, 2, 1)), np.zeros((0, 2), dtype=bool), np.ones((0, 2, 1))).shape == (5, 0)
