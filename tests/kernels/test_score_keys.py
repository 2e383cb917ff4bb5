"""Are the sums by score those that a plain loop finds, however the rows lie in memory?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueodds.core.typing import Array
from trueodds.kernels import bins, sorting
from trueodds.kernels.bins import _KEYS_PER_PASS, bin_sums_of_keys, bin_sums_of_sorted_keys

BLOCK = sorting._VALUES_PER_TASK
SIZES = [1, 2, 5, 300]
LARGE = [BLOCK - 1, BLOCK + 1, 2 * BLOCK]


def rows(n: int, dtype: Any, *, ties: bool, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    p = (rng.integers(0, 21, n) / 20 if ties else rng.random(n)).astype(dtype)
    if ties:
        p[rng.random(n) < 0.1] = -0.0
    return p, (rng.random(n) < p).astype(float)


def looped(p: Array, y: Array, w: Array) -> tuple[list[float], list[float], list[float]]:
    """Σw and Σwy at each score, row by row."""
    totals: dict[float, list[float]] = {}
    for x, z, a in zip(p.tolist(), y.tolist(), w.tolist(), strict=True):
        if a > 0:
            sums = totals.setdefault(x, [0.0, 0.0])
            sums[0] += a
            sums[1] += a * z
    ordered = sorted(totals)
    return ordered, [totals[s][0] for s in ordered], [totals[s][1] for s in ordered]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_counts_are_those_of_a_loop_over_the_rows(n: int, ties: bool, dtype: Any) -> None:
    p, y = rows(n, dtype, ties=ties)
    keys = sorting.encode_and_sort(p, y)
    assert keys is not None
    assert [x.tolist() for x in sorting.count_by_score(keys)] == list(looped(p, y, np.ones(n)))
    assert not any(np.signbit(x).any() for x in sorting.count_by_score(keys))
    assert sorting.scores_of_keys(keys).tolist() == sorted(abs(p.astype(float)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [0, *SIZES])
def test_keys_of_rows_tell_what_the_rows_say(n: int, dtype: Any) -> None:
    p, y = rows(n, dtype, ties=True)
    keys = sorting.encode_rows(p, y)
    assert keys is not None
    assert bins.decode_scores(keys).tolist() == np.abs(p).tolist()
    assert (keys & keys.dtype.type(1)).tolist() == y.tolist()
    assert sorted(keys.tolist()) == sorting.encode_and_sort(p, y).tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_sums_are_those_of_a_loop_over_the_rows(n: int, ties: bool, dtype: Any) -> None:
    p, y = rows(n, dtype, ties=ties)
    rng = np.random.default_rng(1)
    w, votes = rng.integers(0, 4, n) / 2, rng.integers(0, 5, n) / 4
    for outcomes in (y, votes):
        actual, expected = (
            sorting.sum_by_score(p, outcomes, w, sorting.argsort_scores(p)),
            looped(p, outcomes, w),
        )
        assert [x.tolist() for x in actual] == list(expected)  # halves and quarters add up exactly in any order
        assert not np.signbit(actual[0]).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", LARGE)
def test_blocks_of_rows_are_put_together(n: int, dtype: Any) -> None:
    p, y = rows(n, dtype, ties=False)
    keys = sorting.encode_and_sort(p, y)
    assert keys is not None
    distinct, place = np.unique(p, return_inverse=True)
    s, count, n_events = sorting.count_by_score(keys)
    assert (s == distinct).all()
    assert (count == np.bincount(place)).all()
    assert (n_events == np.bincount(place, y)).all()
    assert (sorting.find_scores(p, s) == place).all()
    for one, other in zip(
        sorting.sum_by_score(p, y, np.ones(n), sorting.argsort_scores(p)), (s, count, n_events), strict=True
    ):
        assert (one == other).all()


def test_nothing_has_no_scores() -> None:
    for dtype in (np.float32, np.float64):
        none = np.empty(0, dtype=dtype)
        keys = sorting.encode_and_sort(none, np.empty(0))
        assert keys is not None
        assert [len(x) for x in sorting.count_by_score(keys)] == [0, 0, 0]
        assert [len(x) for x in sorting.sum_by_score(none, np.empty(0), np.empty(0), sorting.argsort_scores(none))] == [
            0,
            0,
            0,
        ]
        assert len(sorting.find_scores(none, np.array([0.5]))) == 0
    assert [len(x) for x in sorting.sum_by_score(np.ones(3), np.ones(3), np.zeros(3), np.arange(3))] == [
        0,
        0,
        0,
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_and_strided_rows_are_rows(dtype: Any) -> None:
    p, y = rows(90, dtype, ties=True)
    keys = sorting.encode_and_sort(p, y)
    wide, strided = np.empty((90, 3), dtype=dtype), np.repeat(y, 2)[::2]
    wide[:, 1] = p
    p.flags.writeable = strided.flags.writeable = False
    for scores in (p, wide[:, 1], p[::-1][::-1]):
        assert np.array_equal(sorting.encode_and_sort(scores, strided), keys)
        assert np.array_equal(sorting.encode_and_sort(scores, strided == 1), keys)
        assert np.array_equal(sorting.argsort_scores(scores), sorting.argsort_scores(p))
        assert np.array_equal(sorting.find_scores(scores, np.array([0.0, 0.5])), p >= 0.5)


def test_outcomes_that_are_no_yes_or_no_have_no_keys() -> None:
    p = np.array([0.2, 0.4, 0.4])
    assert sorting.encode_and_sort(p, np.array([0.0, 0.5, 1.0])) is None
    assert sorting.encode_and_sort(p, np.array([0.0, 2.0, 1.0])) is None
    assert sorting.encode_and_sort(p, np.array([0.0, 0.0, 1.0])) is not None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keys_order_neighbors_and_what_lies_a_hair_above_one(dtype: Any) -> None:
    one = dtype(1)
    near = [np.nextafter(one, dtype(0)), one, np.nextafter(one, dtype(2)), np.nextafter(dtype(0), one), dtype(0)]
    keys = sorting.encode_and_sort(np.array(near[::-1] + near, dtype=dtype), np.zeros(10))
    assert keys is not None
    s, n, _ = sorting.count_by_score(keys)
    assert s.tolist() == sorted(float(x) for x in near)
    assert n.tolist() == [2.0] * 5


@pytest.mark.parametrize("m", [1, 2, 3, 50, 5000])
def test_a_row_is_placed_at_the_last_score_that_it_reaches(m: int) -> None:
    rng = np.random.default_rng(m)
    for s in (np.unique(rng.random(m)), np.unique(rng.random(m) ** 30), np.unique(np.append(rng.random(m) / 5e3, 1.0))):
        p = np.concatenate((rng.random(200), s, np.nextafter(s, 0), np.nextafter(s, 2), [0.0, 1.0, 1.0 + 1e-7]))
        assert (sorting.find_scores(p, s) == np.maximum(np.searchsorted(s, p, "right") - 1, 0)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 60, _KEYS_PER_PASS + 1, 2 * BLOCK + 3])
@pytest.mark.parametrize("closed", ["right", "left"])
def test_bins_are_segments_of_sorted_rows(n: int, closed: str, dtype: Any) -> None:
    for ties in (True, False):
        p, y = rows(n, dtype, ties=ties)
        keys = sorting.encode_and_sort(p, y)
        assert keys is not None
        x = np.abs(p.astype(float))
        for edges in (
            np.arange(11) / 10,
            np.array([0, 1.0]),
            np.array([0, 0, 0.3, 0.3, 0.35, 1]),
            np.arange(201) / 200,
        ):
            place = np.searchsorted(edges[1:-1], x, "left" if closed == "right" else "right")
            actual = bin_sums_of_sorted_keys(keys, edges, closed)
            expected = [np.bincount(place, weights, len(edges) - 1) for weights in (np.ones(n), x, y, x * y, x * x)]
            assert actual == pytest.approx(
                np.stack(expected, axis=1), rel=n * 2**-53 + 1e-15
            )  # sums round in their order


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 60, 1023, 1024, 1025])
@pytest.mark.parametrize("closed", ["right", "left"])
def test_sums_of_keys_are_those_of_a_loop_over_the_rows(n: int, closed: str, dtype: Any) -> None:
    p, y = rows(n, dtype, ties=True)
    keys = sorting.encode_rows(p, y)
    assert keys is not None
    for edges in (np.arange(11) / 10, np.array([0, 1.0]), np.array([0, 0, 0.3, 0.3, 0.35, 1]), np.arange(201) / 200):
        expected = np.zeros((len(edges) - 1, 2, 3))
        for x, z in zip(np.abs(p.astype(float)), y.astype(int), strict=True):
            place = np.searchsorted(edges[1:-1], x, "left" if closed == "right" else "right")
            expected[place, z] += 1.0, x, x * x
        for arranged in (keys, np.repeat(keys, 2)[::2]):
            assert bin_sums_of_keys(arranged, edges, closed) == pytest.approx(expected, rel=1e-12)


def test_no_sum_depends_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    p, y = rows(3 * BLOCK, np.float32, ties=False)
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        keys = sorting.encode_and_sort(p, y)
        assert keys is not None
        edges = np.arange(16) / 15
        some = bin_sums_of_keys(keys, edges, "right"), bin_sums_of_sorted_keys(keys, edges, "right")
        results.append((keys, *some, sorting.find_scores(p, np.arange(9) / 10)))
    for other in results[1:]:
        assert all(np.array_equal(x, z) for x, z in zip(results[0], other, strict=True))
