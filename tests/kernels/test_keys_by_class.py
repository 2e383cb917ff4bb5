"""Are the keys of every class those that each column alone has, whatever the layout and the number of threads?"""

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels import sorting

DTYPES = [np.float16, np.float32, np.float64]


def rows(n, k, dtype, seed=0):
    rng = np.random.default_rng([seed, n, k])
    P = rng.dirichlet(np.ones(k), n)
    decimal = rng.random((n, 1)) < 0.4
    P = np.where(decimal, np.round(P * 10) / 10, P).astype(dtype)
    P[P == 0] = -0.0
    return P, np.eye(k)[rng.integers(0, k, n)]


def columns(P, Y):
    """Column by column; where float32 holds all of them, as float32."""
    narrow = P.astype(np.float32)
    P = narrow if (narrow == P).all() else P
    return [sorting.encode_and_sort(P[:, c].copy(), Y[:, c].copy()) for c in range(P.shape[1])]


def same(actual, expected):
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(actual, expected, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 3), (2, 2), (70, 4), (300, 10), (40, 1500)])
def test_keys_are_those_of_each_column(n, k, dtype):
    P, Y = rows(n, k, dtype)
    assert same(sorting.map_sorted_keys(P, Y, np.copy), columns(P, Y))
    assert same(sorting.map_sorted_keys(P, Y.argmax(axis=1), np.copy), columns(P, Y))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_lie_in_memory_as_they_like(dtype, layout):
    P, Y = rows(90, 5, dtype)
    assert same(sorting.map_sorted_keys(layout(P), layout(Y), np.copy), columns(P, Y))
    assert same(sorting.map_sorted_keys(layout(P), layout(Y.astype(bool)), np.copy), columns(P, Y))
    assert same(sorting.map_sorted_keys(layout(P), layout(Y.argmax(axis=1)), np.copy), columns(P, Y))
    for y in (layout(Y), layout(Y.argmax(axis=1).astype(np.int32))):
        expected = columns(P.astype(np.float64), Y)[1:3]
        actual = sorting.map_sorted_keys(layout(P), y, np.copy, range(1, 3))
        if dtype == np.float64:
            assert same(actual, expected)
        assert [sorting.scores_of_keys(keys).tolist() for keys in actual] == [
            sorting.scores_of_keys(keys).tolist() for keys in expected
        ]
        assert [(keys & 1).tolist() for keys in actual] == [(keys & 1).tolist() for keys in expected]


def test_float64_that_holds_float32_is_sorted_as_such():
    P, Y = rows(500, 3, np.float32)
    assert same(sorting.map_sorted_keys(P.astype(np.float64), Y, np.copy), sorting.map_sorted_keys(P, Y, np.copy))
    # One value that float32 rounds, far behind those that are looked at first.
    wide = P.astype(np.float64)
    wide[400, 1] = 0.1
    actual = sorting.map_sorted_keys(wide, Y, np.copy)
    assert {keys.dtype for keys in actual} == {np.dtype(np.uint64)}
    assert same(actual, [sorting.encode_and_sort(wide[:, c].copy(), Y[:, c].copy()) for c in range(3)])


def test_outcomes_that_are_no_yes_or_no_have_no_keys():
    P, Y = rows(300, 3, np.float32)
    for wrong in (0.5, 2.0):
        other = Y.copy()
        other[299, 2] = wrong
        assert sorting.map_sorted_keys(P, other, np.copy) is None
        assert sorting.map_sorted_keys(P.astype(np.float64) / 3, other, np.copy) is None


def test_empty_data_have_empty_keys_for_every_class():
    assert [len(keys) for keys in sorting.map_sorted_keys(np.empty((0, 3)), np.empty((0, 3)), np.copy)] == [0, 0, 0]
    assert len(sorting.map_sorted_keys(np.empty((0, 3)), np.empty(0, dtype=np.int64), np.copy, range(1, 2))) == 1


def test_classes_that_do_not_fit_together_are_taken_in_turn(monkeypatch):
    P, Y = rows(50, 7, np.float64)
    monkeypatch.setattr(sorting, "_MAX_KEYS_IN_MEMORY", 100)
    monkeypatch.setenv("TRUEODDS_THREADS", "1")
    assert same(sorting.map_sorted_keys(P, Y, np.copy), columns(P, Y))


def test_no_key_depends_on_the_number_of_threads_or_blocks(monkeypatch):
    P, Y = rows(400, 3, np.float32)
    expected = sorting.map_sorted_keys(P, Y, np.copy)
    monkeypatch.setattr(sorting, "_VALUES_PER_TASK", 100)
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        assert same(sorting.map_sorted_keys(P, Y, np.copy), expected)
