"""Are pooled blocks those that a plain loop and scipy find, whatever ties, weights and layouts?"""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels import isotonic, sorting
from trueodds.kernels.isotonic import added_row_means

DTYPES = [np.float16, np.float32, np.float64]
SIZES = [0, 1, 2, 3, 30, 400]


def rows(n, dtype, *, ties, seed=0):
    rng = np.random.default_rng([seed, n])
    p = (rng.integers(0, 11, n) / 10 if ties else rng.random(n)).astype(dtype)
    if ties:
        p[rng.random(n) < 0.1] = -0.0
    return p, (rng.random(n) < 0.2 + 0.6 * p).astype(float)


def looped(p, y, w):
    """Blocks as lists [low, high, mass, seen]: the lowest pair that falls, or is level, joins until none is left."""
    sums = {}
    for x, z, a in zip(p.tolist(), y.tolist(), w.tolist(), strict=True):
        if a > 0:
            sums[x + 0.0] = [sums.get(x + 0.0, [0, 0])[0] + a, sums.get(x + 0.0, [0, 0])[1] + a * z]
    blocks = [[x, x, *sums[x]] for x in sorted(sums)]
    j = 0
    while j + 1 < len(blocks):
        a, b = blocks[j], blocks[j + 1]
        if a[3] * b[2] >= b[3] * a[2]:
            blocks[j : j + 2] = [[a[0], b[1], a[2] + b[2], a[3] + b[3]]]
            j = max(j - 1, 0)
        else:
            j += 1
    return np.array(blocks).reshape(-1, 4)


def by_scipy(p, y, w):
    """The fitted mean of every row that has weight."""
    live = w > 0
    _, where = np.unique(p[live].astype(float), return_inverse=True)
    mass, events = np.bincount(where, w[live]), np.bincount(where, (w * y)[live])
    return isotonic_regression(events / mass, weights=mass).x[where]


def at_rows(blocks, p):
    """The mean of the block that each score lies in."""
    return (blocks.events / blocks.mass)[np.searchsorted(blocks.high, p.astype(float))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_blocks_of_keys_are_those_of_a_loop_and_of_scipy(n, ties, dtype):
    for seed in range(5):
        p, y = rows(n, dtype, ties=ties, seed=seed)
        blocks = isotonic.fit_sorted_keys(sorting.encode_and_sort(p, y))
        assert (np.stack(blocks, axis=1) == looped(p, y, np.ones(n))).all()  # whole numbers: nothing is rounded
        assert all(column.dtype == np.float64 for column in blocks)
        if n:
            assert at_rows(blocks, p) == pytest.approx(by_scipy(p, y, np.ones(n)), abs=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_blocks_of_rows_are_those_of_a_loop_and_of_scipy(n, ties, dtype):
    rng = np.random.default_rng(n)
    p, y = rows(n, dtype, ties=ties)
    for observed, w in (
        (y, np.ones(n)),
        (y, rng.integers(0, 3, n) / 2),  # halves and quarters add up exactly in any order
        (rng.integers(0, 5, n) / 4, rng.integers(0, 3, n).astype(float)),
    ):
        blocks = isotonic.fit_rows(p, observed, w)
        assert (np.stack(blocks, axis=1) == looped(p, observed, w)).all()
        if (w > 0).any():
            assert at_rows(blocks, p[w > 0]) == pytest.approx(by_scipy(p, observed, w), abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_any_weights_and_votes_give_what_scipy_gives(seed):
    rng = np.random.default_rng(seed)
    n = 200
    p = rng.integers(0, 60, n) / 60
    y, w = rng.random(n), rng.random(n) * (rng.random(n) < 0.8)
    assert at_rows(isotonic.fit_rows(p, y, w), p[w > 0]) == pytest.approx(by_scipy(p, y, w), abs=1e-12)


def test_rows_of_keys_and_rows_of_weight_one_are_the_same():
    p, y = rows(3000, np.float32, ties=False)
    for one, other in zip(
        isotonic.fit_sorted_keys(sorting.encode_and_sort(p, y)), isotonic.fit_rows(p, y, np.ones(3000)), strict=True
    ):
        assert (one == other).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_lie_in_memory_as_they_like(dtype, layout):
    p, y = rows(50, dtype, ties=True)
    w = np.random.default_rng(1).random(50)
    expected = isotonic.fit_rows(p, y, w)
    for one, other in zip(isotonic.fit_rows(layout(p), layout(y), layout(w)), expected, strict=True):
        assert (one == other).all()
    keys = sorting.encode_and_sort(p, y)
    for one, other in zip(isotonic.fit_sorted_keys(layout(keys)), isotonic.fit_sorted_keys(keys), strict=True):
        assert (one == other).all()


def test_rows_without_weight_are_absent():
    assert [len(column) for column in isotonic.fit_rows(np.ones(3), np.ones(3), np.zeros(3))] == [0, 0, 0, 0]
    blocks = isotonic.fit_rows(np.array([0.1, 0.2, 0.9]), np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0]))
    assert [column.tolist() for column in blocks] == [[0.2], [0.2], [1.0], [0.0]]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_tiny_and_huge_weights_pool_like_others(scale):
    # The products of such weights are 0 or infinite.
    p, y = rows(40, np.float64, ties=False)
    w = np.random.default_rng(2).integers(1, 5, 40).astype(float)
    one, other = isotonic.fit_rows(p, y, w), isotonic.fit_rows(p, y, w * scale)
    assert (one.low == other.low).all()
    assert other.events / other.mass == pytest.approx(one.events / one.mass, rel=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_means_of_many_draws_are_those_of_each(layout):
    rng = np.random.default_rng(3)
    w, y = rng.integers(0, 3, (4, 3, 20)).astype(float), rng.random((4, 3, 20))
    w[..., 0] = 1.0
    means = isotonic.isotonic_means(layout(w), layout(w * y))
    for a in range(4):
        for b in range(3):
            live = w[a, b] > 0
            expected = isotonic_regression(y[a, b, live], weights=w[a, b, live]).x
            assert means[a, b, live] == pytest.approx(expected, abs=1e-12)
            # A cell without weight shows what the one below shows.
            assert means[a, b] == pytest.approx(expected[np.cumsum(live) - 1], abs=1e-12)


def test_means_of_no_weight_are_unknown_and_leading_cells_show_the_next():
    assert np.isnan(isotonic.isotonic_means(np.zeros(3), np.zeros(3))).all()
    assert isotonic.isotonic_means(np.array([0.0, 1.0]), np.array([0.0, 1.0])).tolist() == [1.0, 1.0]


def cells(m, kind, seed):
    rng = np.random.default_rng([seed, m])
    mass = {"rows": np.ones(m), "counts": rng.integers(1, 5, m).astype(float), "weights": rng.random(m) * 4 + 0.01}[
        kind
    ]
    share = rng.integers(0, 2, m) if kind == "rows" else rng.integers(0, 5, m) / 4
    return mass, np.rint(mass * share) if kind == "counts" else mass * share


def refitted(mass, events, at, outcome):
    """The mean at `at` after one more row there: at j with score j, at j − 1/2 between j − 1 and j."""
    scores = np.arange(len(mass), dtype=float)
    x, where = np.unique(np.append(scores, at), return_inverse=True)
    m, s = np.bincount(where, np.append(mass, 1.0)), np.bincount(where, np.append(events, outcome))
    return isotonic_regression(s / m, weights=m).x[np.searchsorted(x, at)]


@pytest.mark.parametrize("kind", ["rows", "counts", "weights"])
@pytest.mark.parametrize("m", [1, 2, 3, 8, 40])
def test_means_are_those_of_a_fit_with_the_row(m, kind):
    for seed in range(4):
        mass, events = cells(m, kind, seed)
        low, high = added_row_means(mass, events)
        for j in range(m):
            for offset in (0.0, 0.5):  # at the score, and on the side where the mean holds on
                assert low[j] == pytest.approx(refitted(mass, events, j + offset, 0.0), abs=1e-12)
                assert high[j] == pytest.approx(refitted(mass, events, j - offset, 1.0), abs=1e-12)


def test_means_of_separated_rows_are_exact():
    # 0 0 1 1: a 0 at the third joins it, 1/2; at the fourth it joins both, 2/3. Mirrored for a 1.
    low, high = added_row_means(np.ones(4), np.array([0.0, 0.0, 1.0, 1.0]))
    assert low == pytest.approx([0.0, 0.0, 1 / 2, 2 / 3])
    assert high == pytest.approx([1 / 3, 1 / 2, 1.0, 1.0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_lie_in_memory_as_they_like(layout):
    mass, events = cells(30, "weights", 0)
    for one, other in zip(added_row_means(layout(mass), layout(events)), added_row_means(mass, events), strict=True):
        assert (one == other).all()


def test_no_scores_have_no_means():
    assert [len(means) for means in added_row_means(np.empty(0), np.empty(0))] == [0, 0]


@pytest.mark.parametrize("kind", ["rows", "weights"])
def test_means_rise_and_do_not_cross(kind):
    low, high = added_row_means(*cells(3000, kind, 1))
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    assert (low <= high).all()


def test_weights_that_swallow_the_row_leave_numbers():
    low, high = added_row_means(np.full(5, 1e18), np.array([0.0, 1e18, 0.0, 1e18, 1e18]))
    assert ((low >= 0) & (high <= 1)).all()
