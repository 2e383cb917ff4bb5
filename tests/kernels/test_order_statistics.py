"""Are the keys at given ranks those of a sort, and the sums of the bins between them those of all rows?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.core.typing import Array
from trueodds.kernels import sorting
from trueodds.kernels import sorting as ranks
from trueodds.kernels.bins import bin_sums_of_keys
from trueodds.kernels.sorting import select_order_statistics

SIZES = [1, 2, 3, 50, 3000]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted also where sorting would do."""
    monkeypatch.setattr(ranks, "_MAX_SAMPLE_SHARE", 1.0)


def ranked(x: Array, ranks: Array) -> Array | None:
    """The numbers at these ranks, None where sorting is advised."""
    selection = select_order_statistics(x, ranks)
    return None if selection is None else selection.select(ranks)


def row_keys(p: Array, y: Array) -> Array:
    """Scores and outcomes as keys."""
    keys = sorting.encode_rows(p, y)
    assert keys is not None
    return keys


def numbers(kind: str, n: int, dtype: Any) -> Array:
    """Equal, few and many distinct keys, all but one in one cell, the smallest and largest keys, keys of scores."""
    rng = np.random.default_rng([n, len(kind)])
    size: Any = np.float64 if dtype == np.uint64 else np.float32
    largest = int(row_keys(np.ones(1, dtype=size), np.ones(1))[0])
    if kind == "bits":
        return row_keys((rng.random(n) ** 3).astype(size), rng.random(n) < 0.5)
    drawn = {
        "alike": np.full(n, 7),
        "few": rng.integers(0, 3, n),
        "many": rng.integers(0, largest, n, dtype=dtype),
        "close": 5 + rng.integers(0, 90, n),
        "ends": rng.choice(np.array([0, 1, largest - 1, largest], dtype=dtype), n),
    }[kind].astype(dtype)
    if kind == "close":
        drawn[0] = largest
    return drawn


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("kind", ["alike", "few", "many", "close", "ends", "bits"])
@pytest.mark.parametrize("n", SIZES)
def test_every_rank_has_the_number_that_sorting_puts_there(n: int, kind: str, dtype: Any) -> None:
    x = numbers(kind, n, dtype)
    ordered = sorted(x.tolist())
    every = np.arange(n)
    some = np.random.default_rng(0).integers(0, n, 5)  # in any order, some of them twice
    for at in (every, every[-1:], every[:0], some):
        values = ranked(x, at)
        assert values is not None
        assert values.dtype == dtype
        assert values.tolist() == [ordered[i] for i in at]


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("kind", ["few", "many", "close", "bits"])
@pytest.mark.parametrize("n", [15, 16, 17, 32, 33, 1000])
def test_blocks_are_counted_together(n: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "_KEYS_PER_TASK", 16)
    x = numbers(kind, n, np.uint32)
    at = np.append(np.arange(1, 15) * n // 15, [0, n - 1])
    values = ranked(x, at)
    assert values is not None
    assert np.array_equal(values, np.sort(x)[at])


@pytest.mark.parametrize("kind", ["alike", "few", "ends"])
def test_where_most_numbers_share_a_cell_with_a_rank_sorting_is_advised(kind: str) -> None:
    assert ranked(numbers(kind, 3000, np.uint32), np.array([100, 1500, 2900])) is None
    assert ranked(numbers("bits", 3000, np.uint32), np.array([100, 1500, 2900])) is not None


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("layout", [f for f in LAYOUTS if f.__name__ != "fortran"], ids=lambda f: f.__name__)
def test_numbers_may_lie_anyhow_and_stay_as_they_are(layout: Any) -> None:
    x = numbers("many", 200, np.uint32)
    arranged = layout(x)
    values = ranked(arranged, np.arange(200))
    assert values is not None
    assert values.tolist() == sorted(x.tolist())
    assert np.array_equal(arranged, x)


def test_no_answer_depends_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "_KEYS_PER_TASK", 1000)
    x, at = numbers("bits", 5000, np.uint32), np.arange(0, 5000, 300)
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        results.append(ranked(x, at))
    assert np.array_equal(results[0], np.sort(x)[at])
    assert np.array_equal(results[1], results[0])
    assert np.array_equal(results[2], results[0])


def scored(kind: str, n: int, dtype: Any) -> tuple[Array, Array, Array]:
    """Scores with their outcomes, and both as keys."""
    rng = np.random.default_rng([n, len(kind)])
    p = {
        "even": rng.random(n),
        "tied": rng.integers(0, 8, n) / 8,
        "sure": 1 - 1e-3 * rng.random(n) ** 4,
        "ends": rng.choice([0.0, 1.0, 0.5], n),
    }[kind].astype(dtype)
    y = rng.random(n) < p
    return p, y, row_keys(p, y)


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["even", "tied", "sure", "ends"])
@pytest.mark.parametrize("n", [1, 2, 40, 5000])
@pytest.mark.parametrize("n_bins", [6, 100])  # of so many ranks the cells are smaller
def test_bins_between_ranks_have_the_sums_of_all_rows(n_bins: int, n: int, kind: str, dtype: Any, closed: str) -> None:
    p, y, keys = scored(kind, n, dtype)
    cuts = np.arange(1, n_bins) * n // n_bins
    ranks = np.concatenate((np.maximum(cuts - 1, 0), np.minimum(cuts, n - 1)))
    selection = select_order_statistics(keys, ranks)
    assert selection is not None
    last, following = np.sort(p)[ranks].astype(np.float64).reshape(2, -1)
    inner = np.unique((last + following) / 2)
    edges = np.concatenate(([0.0], inner[(inner > 0) & (inner < 1)], [1.0]))
    table = selection.sum_bins(edges, closed)
    if table is None:  # below the edge at a score that many rows share, no cell holds a rank
        assert (kind, n_bins, (last == following).any()) == ("sure", 100, True)
        return
    side = "left" if closed == "right" else "right"
    at = np.clip(np.searchsorted(edges, p.astype(np.float64), side) - 1, 0, len(edges) - 2)
    for outcome in (0, 1):
        for power in (0, 1, 2):
            terms = np.where(y == outcome, p.astype(np.float64) ** power, 0.0)
            assert table[:, outcome, power] == pytest.approx(
                np.bincount(at, terms, len(edges) - 1), rel=1e-12, abs=1e-12
            )


@pytest.mark.usefixtures("counted")
def test_bins_are_as_counting_all_rows_has_them_or_none_where_an_edge_cuts_a_segment() -> None:
    p, _, keys = scored("even", 20_000, np.float32)
    selection = select_order_statistics(keys, np.array([5000, 10_000]))
    assert selection is not None
    for inner, known in (([0.25], False), ([0.75], False), ([float(np.sort(p)[10_000])], True), ([], True)):
        edges = np.array([0.0, *inner, 1.0])
        table = selection.sum_bins(edges, "right")
        assert (table is not None) == known
        if table is not None:
            assert table == pytest.approx(bin_sums_of_keys(keys, edges, "right"), rel=1e-12)


@pytest.mark.usefixtures("counted")
def test_edges_beyond_all_keys_cut_nothing() -> None:
    p = np.linspace(0.4, 0.6, 3000, dtype=np.float32)
    keys = row_keys(p, np.zeros(3000, dtype=bool))
    selection = select_order_statistics(keys, np.array([1500]))
    assert selection is not None
    for above in (0.61, 0.99):
        table = selection.sum_bins(np.array([0.0, 0.1, 0.39, above, 1.0]), "right")
        assert table is not None
        assert table[:, :, 0].tolist() == [[0, 0], [0, 0], [3000, 0], [0, 0]]


@pytest.mark.usefixtures("counted")
def test_an_edge_where_no_key_lies_cuts_a_segment_all_the_same() -> None:
    p = np.repeat(np.array([0.1, 0.3, 0.9], dtype=np.float32), 1000)
    selection = select_order_statistics(row_keys(p, np.zeros(3000)), np.array([2500]))
    assert selection is not None
    assert selection.sum_bins(np.array([0.0, 0.2, 1.0]), "right") is None
