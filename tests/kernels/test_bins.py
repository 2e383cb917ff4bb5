"""Do the compiled sums by bin equal plain loops, for every dtype, layout, size and edge?"""

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS, c_order
from trueodds.kernels.bins import (
    MAX_COMPARED_EDGES,
    bin_search,
    bin_sums_by_label,
    class_bin_sums,
    decode_scores,
    find_bins,
    weighted_bin_sums,
)
from trueodds.kernels.row_statistics import (
    confidence_and_correctness,
    confidence_keys,
    confidence_moments,
    confidence_sums,
    row_maxima,
)
from trueodds.kernels.smoothing import cell_moments

DTYPES = (np.float16, np.float32, np.float64)
FIFTEEN = np.arange(16) / 15


def bin_of(x, edges, closed):
    """By definition: how many inner edges lie below x (or at most at x, where bins are closed on the left)."""
    x = float(x)
    return sum(x > e if closed == "right" else x >= e for e in edges[1:-1])


def table(n, k, dtype=np.float32, seed=0):
    """Rows with exact zeros, ones, ties, and values on edges and beside them."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k) / 2, n)
    P = np.where(rng.random((n, 1)) < 0.3, np.round(P * 15) / 15, P).astype(dtype)
    if n > 2:
        P[0], P[1], P[2] = 0, 1 / k, np.nextafter(dtype(1 / 15), dtype(1))
        P[0, k // 2] = 1
    return P, rng.integers(0, k, n)


def slow_largest(P, y, edges, closed):
    out, ties = np.zeros((len(edges) - 1, 2, 3)), 0
    for row, label in zip(P.tolist(), y.tolist(), strict=True):
        top = max(row)
        ties += row.count(top) > 1
        out[bin_of(top, edges, closed), int(row.index(top) == label)] += (1.0, top, top * top)
    return out, ties


def slow_classes(P, y, edges, closed):
    out = np.zeros((P.shape[1], len(edges) - 1, 4))
    for row, label in zip(P.tolist(), y.tolist(), strict=True):
        for c, x in enumerate(row):
            out[c, bin_of(x, edges, closed)] += (1.0, x, float(c == label), x * (c == label))
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("bins", [1, 2, 7, 15, MAX_COMPARED_EDGES + 1, MAX_COMPARED_EDGES + 2, 100])
def test_a_value_on_an_edge_and_its_neighbors_fall_where_comparing_puts_them(dtype, closed, bins):
    edges = np.arange(bins + 1) / bins
    at = edges.astype(dtype)
    x = np.concatenate((at, np.nextafter(at, dtype(-1)), np.nextafter(at, dtype(2)))).clip(0, 1)
    assert find_bins(x, edges, closed).tolist() == [bin_of(value, edges, closed) for value in x]


def test_edges_that_no_float32_meets_are_compared_exactly():
    # .1 lies between two float32: the one above is beyond it, the one below is not, whichever side is closed.
    edges = np.array([0.0, 0.1, 1.0])
    below = np.float32(0.1) if float(np.float32(0.1)) <= 0.1 else np.nextafter(np.float32(0.1), np.float32(0))
    x = np.array([below, np.nextafter(below, np.float32(1))])
    for closed in ("right", "left"):
        assert find_bins(x, edges, closed).tolist() == [0, 1]
        assert len(bin_search(edges, closed, np.float32)[0]) % 8 == 0


@pytest.mark.parametrize("bins", [*range(1, 101), 3840])
def test_arithmetic_is_trusted_only_where_every_edge_proves_it(bins):
    edges = np.arange(bins + 1) / bins
    assert bin_search(edges, "right", np.float32)[2] == bins  # known for float32: 24 bits and 12 make no rounding
    met = any(float(np.float32(x)) == x for x in edges[1:-1])  # 1/2 is a float32, and then belongs to the bin above
    assert bin_search(edges, "left", np.float32)[2] == (0 if met else bins)
    at = edges[1:-1]
    wrong = [np.ceil(x * bins) != i or np.ceil(np.nextafter(x, 2) * bins) != i + 1 for i, x in enumerate(at, 1)]
    assert bin_search(edges, "right", np.float64)[2] == (0 if any(wrong) else bins)
    assert bin_search(np.concatenate((edges[:-1] ** 2, [1.0])), "right", np.float32)[2] == (bins if bins == 1 else 0)


def test_values_above_1_by_rounding_are_in_the_last_bin():
    P = np.array([[1 + 1e-3, 0.0], [2.0, 0.0]], dtype=np.float32)  # of many classes in float16 the excess is no trifle
    y = np.array([0, 1])
    assert class_bin_sums(P, y, FIFTEEN, "right")[0, 14, 0] == 2
    assert confidence_sums(P, y, FIFTEEN, "right")[0][14, :, 0].tolist() == [1, 1]
    assert bin_sums_by_label(P[:, 0], y, 0, FIFTEEN, "right")[14, :, 0].tolist() == [1, 1]
    assert find_bins(P[:, 0], FIFTEEN, "right").tolist() == [14, 14]


@pytest.mark.parametrize("k", [2, 20, 300])
def test_rows_of_negative_zeros_say_zero(k):
    P = np.full((5, k), -0.0, dtype=np.float32)
    table, ties = confidence_sums(P, np.zeros(5, dtype=np.int64), FIFTEEN, "right")
    assert table[0].tolist() == [[0, 0, 0], [5, 0, 0]]
    assert ties == 5
    top, at, _ = row_maxima(P)
    assert (top.tolist(), at.tolist()) == ([0.0] * 5, [0] * 5)


def test_no_value_is_placed_of_none():
    assert find_bins(np.empty(0, dtype=np.float32), FIFTEEN, "right").tolist() == []


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 2, 3, 10, 16, 17, 40])
def test_largest_sums_equal_a_plain_loop(k, dtype, layout):
    P, y = table(41, k, dtype)
    expected, ties = slow_largest(P, y, FIFTEEN, "right")
    sums, tied = confidence_sums(layout(P), y, FIFTEEN, "right")
    np.testing.assert_allclose(sums, expected, rtol=1e-13)
    assert tied == ties
    top, at, tie_count = row_maxima(layout(P))
    assert top.tolist() == P.max(axis=1).tolist()
    assert at.tolist() == P.argmax(axis=1).tolist()
    assert tie_count == ties
    top, correct, tie_count = confidence_and_correctness(layout(P), y)
    assert top.tolist() == P.max(axis=1).tolist()
    assert correct.tolist() == (P.argmax(axis=1) == y).tolist()
    assert tie_count == ties
    keys, tie_count = confidence_keys(layout(P), y)
    assert decode_scores(keys).tolist() == top.tolist()
    assert (keys & 1).tolist() == correct.tolist()
    assert tie_count == ties
    top_moments, tie_count = confidence_moments(layout(P), y, 8, 4)
    expected_moments = cell_moments(top, lambda a, b: correct[a:b] - top[a:b].astype(np.float64), 8, 4)
    np.testing.assert_allclose(top_moments, expected_moments, rtol=1e-12, atol=1e-14)
    assert tie_count == ties


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [255, 256, 257, 512, 700])
def test_long_rows_are_seen_part_by_part(k, dtype):
    P, y = table(31, k, dtype, seed=k)
    P[5] = P[6] = 0
    P[5, [3, k - 1]] = 0.5  # tied between the first part and the last
    P[6, [k - 2, k - 1]] = 0.5
    y[5], y[6], y[7] = k - 1, k - 2, P[7].argmax()
    sums, tied = confidence_sums(P, y, FIFTEEN, "right")
    expected, ties = slow_largest(P, y, FIFTEEN, "right")
    np.testing.assert_allclose(sums, expected, rtol=1e-13)
    assert tied == ties >= 2


@pytest.mark.parametrize("n", [0, 1, 2, 239, 240, 241, 481])
@pytest.mark.parametrize("closed", ["right", "left"])
def test_largest_sums_at_the_boundaries_of_blocks(n, closed):
    P, y = table(n, 3)
    top, correct, _ = confidence_and_correctness(P, y)
    assert (top.tolist(), correct.tolist()) == (P.max(axis=1).tolist(), (P.argmax(axis=1) == y).tolist())
    sums, ties = confidence_sums(P, y, FIFTEEN, closed)
    expected, tied = slow_largest(P, y, FIFTEEN, closed)
    np.testing.assert_allclose(sums, expected, rtol=1e-13)
    assert ties == tied


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 2, 10, 33])
def test_class_sums_equal_a_plain_loop(k, dtype, layout):
    P, y = table(37, k, dtype)
    np.testing.assert_allclose(
        class_bin_sums(layout(P), y, FIFTEEN, "right"), slow_classes(P, y, FIFTEEN, "right"), rtol=1e-13
    )


@pytest.mark.parametrize("bins", [1, 15, MAX_COMPARED_EDGES + 6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_class_sums_of_many_classes_equal_a_plain_loop(dtype, bins):
    edges = np.arange(bins + 1) / bins
    P, y = table(9, 300, dtype)
    P[3, 7] = -0.0  # bits below those of 0
    for layout in (c_order, LAYOUTS[1]):
        np.testing.assert_allclose(
            class_bin_sums(layout(P), y, edges, "right"), slow_classes(P, y, edges, "right"), rtol=1e-13
        )


@pytest.mark.parametrize("n", [0, 1, 50, 51, 52, 102])
@pytest.mark.parametrize("closed", ["right", "left"])
def test_class_sums_at_the_boundaries_of_blocks(n, closed):
    P, y = table(n, 10)  # 512 values are placed at a time: 51 rows
    np.testing.assert_allclose(class_bin_sums(P, y, FIFTEEN, closed), slow_classes(P, y, FIFTEEN, closed), rtol=1e-13)


@pytest.mark.parametrize("layout", [f for f in LAYOUTS if f.__name__ != "fortran"], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_one_column_equal_a_plain_loop(dtype, layout):
    P, y = table(300, 4, dtype)
    rng = np.random.default_rng(1)
    p, z, w = P[:, 1], rng.random(300), rng.integers(0, 3, 300).astype(float)
    n = (w > 0).astype(float)
    labelled, weighted = np.zeros((15, 2, 3)), np.zeros((15, 10))
    for x, label, share, a in zip(p.astype(float), y, z, w, strict=True):
        b = bin_of(x, FIFTEEN, "right")
        labelled[b, int(label == 2)] += (1.0, x, x * x)
        weighted[b] += (
            a > 0, a, a * x, a * share, a * a, a * x * x, a * x * share, a * share * share,
            a * a * x * (1 - x), a * a * (share - x) ** 2,
        )  # fmt: skip
    np.testing.assert_allclose(bin_sums_by_label(layout(p), y, 2, FIFTEEN, "right"), labelled, rtol=1e-12)
    np.testing.assert_allclose(weighted_bin_sums(layout(p), z, w, n, FIFTEEN, "right"), weighted, rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025])
def test_sums_of_one_column_at_the_boundaries_of_blocks(n):
    rng = np.random.default_rng(n)
    p, y = rng.random(n), rng.integers(0, 2, n)
    sums = bin_sums_by_label(p, y, 1, FIFTEEN, "right")
    b = np.array([bin_of(x, FIFTEEN, "right") for x in p], dtype=int)
    for label in (0, 1):
        np.testing.assert_array_equal(sums[:, label, 0], np.bincount(b[y == label], minlength=15))
        np.testing.assert_allclose(sums[:, label, 1], np.bincount(b[y == label], p[y == label], 15), rtol=1e-12)
