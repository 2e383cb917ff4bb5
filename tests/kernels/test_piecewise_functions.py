"""Do curves through knots say what numpy's interpolation and search say?"""

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels.sorting import _LOOKUPS_PER_TILE, Knots, are_all_or_none_below

DTYPES = [np.float16, np.float32, np.float64]


def curve(m, power, seed=0):
    rng = np.random.default_rng([seed, m])
    x = np.unique(rng.random(m) ** power)  # a high power crowds the knots near 0, many to a bucket
    return x, rng.random(len(x) + 1)


def around(x):
    rng = np.random.default_rng(1)
    return np.concatenate(
        (x, np.nextafter(x, 0), np.nextafter(x, 2), rng.random(50), rng.random(50) ** 9, [0, 1, 1.0001])
    )


@pytest.mark.parametrize("power", [1, 4, 30])
@pytest.mark.parametrize("m", [1, 2, 3, 17, 500])
def test_lines_are_those_of_numpy(m, power):
    x, y = curve(m, power)
    p = around(x)
    for values in (np.sort(y[:-1]), y[:-1]):  # curves that rise, and any
        interpolated = Knots(x).interpolate(p, values)
        assert interpolated == pytest.approx(np.interp(p, x, values), abs=1e-12)
        assert (interpolated[: len(x)] == values).all()


@pytest.mark.parametrize("power", [1, 4, 30])
@pytest.mark.parametrize("m", [0, 1, 2, 3, 17, 500])
def test_steps_are_those_of_a_search(m, power):
    x, y = curve(m, power)
    p = around(x)
    for right in (False, True):
        expected = y[np.searchsorted(x, p, "right" if right else "left")]
        assert (Knots(x).evaluate_steps(p, y, right=right) == expected).all()


def test_no_line_leaves_its_ends():
    # 0.1 + share · (0.3 − 0.1) may be rounded beyond 0.3, and a slope over the least of gaps overflows.
    x = np.array([0.0, 5e-324, 0.1, np.nextafter(0.1, 1), 1.0])
    y = np.array([0.1, 0.3, 0.3, 0.7, 1.0])
    p = np.concatenate((x, np.nextafter(x, 1), np.random.default_rng(0).random(300)))
    interpolated = Knots(x).interpolate(p, y)
    assert np.isfinite(interpolated).all()
    assert (np.diff(interpolated[np.argsort(p)]) >= 0).all()
    assert interpolated.max() <= 1.0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, _LOOKUPS_PER_TILE, _LOOKUPS_PER_TILE + 1])
def test_values_lie_in_memory_as_they_like(n, dtype, layout):
    x, y = curve(20, 1)
    p = np.random.default_rng(2).random(n).astype(dtype)
    wide = p.astype(np.float64)
    knots = Knots(layout(x))
    assert knots.interpolate(layout(p), layout(y[:-1])) == pytest.approx(np.interp(wide, x, y[:-1]), abs=1e-12)
    assert (knots.evaluate_steps(layout(p), layout(y), right=True) == y[np.searchsorted(x, wide, "right")]).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 90])
def test_rows_with_no_value_at_the_least_or_with_all_of_them(n, dtype, layout):
    P = np.random.default_rng(3).integers(0, 5, (n, 3)).astype(dtype) / 4
    lower = np.array([-1.0, 0.25, np.inf])
    low = P <= lower
    assert (are_all_or_none_below(layout(P), lower) == (~low.any(axis=1) | low.all(axis=1))).all()
    assert are_all_or_none_below(P, np.full(3, -1.0)).all()
