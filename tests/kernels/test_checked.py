"""Does one compiled look at a table see what looking for each thing sees?"""

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels.row_statistics import check_table


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(1, 2), (255, 3), (257, 16), (40, 17), (3, 300)])
def test_a_look_sees_the_extremes_and_the_worst_row(n, k, dtype, layout):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(k), n).astype(dtype)
    P[n // 2, 0] += dtype(0.01)
    check = check_table(layout(P), 1e-3)
    assert (check.lowest, check.highest) == (P.min(), P.max())
    assert (check.worst_row, check.n_inexact) == (n // 2, 1)
    assert check.largest_deviation == pytest.approx(abs(P[n // 2].sum(dtype=np.float64) - 1), rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf, -1e-30, -0.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [4, 20])
def test_what_is_no_probability_is_the_lowest_or_no_finite_highest(bad, dtype, k):
    P = np.full((300, k), 1 / k, dtype=dtype)
    P[77, 2] = bad
    check = check_table(P, 1e-3)
    assert not (check.lowest >= 0 and np.isfinite(check.highest) and not np.signbit(check.lowest))


def test_of_equally_bad_rows_the_first_is_reported():
    P = np.full((600_000, 2), 0.5, dtype=np.float32)
    P[[70_000, 400_000], 0] = 0.75
    assert check_table(P, 1e-3)[2:] == (70_000, 0.25, 2)
