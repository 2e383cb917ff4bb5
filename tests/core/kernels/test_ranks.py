"""Are the numbers at given ranks those that sorting puts there, whatever the numbers are and however they lie?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.core.kernels.layouts import LAYOUTS
from trueodds.core.kernels import ranks
from trueodds.core.kernels.ranks import ranked

Array = NDArray[Any]

SIZES = [1, 2, 3, 50, 3000]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted also where sorting would do."""
    monkeypatch.setattr(ranks, "_NEAR", 1.0)


def numbers(kind: str, n: int, dtype: Any) -> Array:
    """All alike, few and many different ones, all but one in one cell, the ends of the dtype, bits of floats."""
    rng = np.random.default_rng([n, len(kind)])
    most = np.iinfo(dtype).max
    if kind == "bits":
        size = np.float64 if dtype == np.uint64 else np.float32
        return (rng.random(n) ** 3).astype(size).view(dtype)
    drawn = {
        "alike": np.full(n, 7),
        "few": rng.integers(0, 3, n),
        "many": rng.integers(0, most, n, dtype=dtype),
        "close": 5 + rng.integers(0, 90, n),
        "ends": rng.choice(np.array([0, 1, most - 1, most], dtype=dtype), n),
    }[kind].astype(dtype)
    if kind == "close":
        drawn[0] = most
    return drawn


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("kind", ["alike", "few", "many", "close", "ends", "bits"])
@pytest.mark.parametrize("n", SIZES)
def test_every_rank_has_the_number_that_sorting_puts_there(n: int, kind: str, dtype: Any) -> None:
    x = numbers(kind, n, dtype)
    rising = sorted(x.tolist())
    every = np.arange(n)
    some = np.random.default_rng(0).integers(0, n, 5)  # in any order, some of them twice
    for at in (every, every[-1:], every[:0], some):
        found = ranked(x, at)
        assert found is not None
        assert found.dtype == dtype
        assert found.tolist() == [rising[i] for i in at]


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("kind", ["few", "many", "close", "bits"])
@pytest.mark.parametrize("n", [15, 16, 17, 32, 33, 1000])
def test_blocks_are_counted_together(n: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "_BLOCK", 16)
    x = numbers(kind, n, np.uint32)
    at = np.append(np.arange(1, 15) * n // 15, [0, n - 1])
    found = ranked(x, at)
    assert found is not None
    assert np.array_equal(found, np.sort(x)[at])


def test_of_nothing_nothing_is_asked() -> None:
    found = ranked(np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int64))
    assert found is not None
    assert found.tolist() == []


@pytest.mark.parametrize("kind", ["alike", "few", "ends"])
def test_where_most_numbers_share_a_cell_with_a_rank_sorting_is_advised(kind: str) -> None:
    assert ranked(numbers(kind, 3000, np.uint32), np.array([100, 1500, 2900])) is None
    assert ranked(numbers("bits", 3000, np.uint32), np.array([100, 1500, 2900])) is not None


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("layout", [f for f in LAYOUTS if f.__name__ != "fortran"], ids=lambda f: f.__name__)
def test_numbers_may_lie_anyhow_and_stay_as_they_are(layout: Any) -> None:
    x = numbers("many", 200, np.uint32)
    given = layout(x)
    found = ranked(given, np.arange(200))
    assert found is not None
    assert found.tolist() == sorted(x.tolist())
    assert np.array_equal(given, x)


def test_no_answer_depends_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "_BLOCK", 1000)
    x, at = numbers("bits", 5000, np.uint32), np.arange(0, 5000, 300)
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        found.append(ranked(x, at))
    assert np.array_equal(found[0], np.sort(x)[at])
    assert np.array_equal(found[1], found[0])
    assert np.array_equal(found[2], found[0])
