"""Are partitions summed up so that nothing is lost and nothing counts twice, whatever an engine does with them?"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.io.rows import columns
from trueodds import InputError, Predictions
from trueodds.io.arrays import MappingTable
from trueodds.io.columns import ColumnSelection
from trueodds.io.partitioned_source import (
    SUMS_PER_TASK,
    PartitionedSource,
    PartitionSum,
    TableOpener,
    sum_parts,
)
from trueodds.io.source import RowProgress
from trueodds.io.table import ColumnSource
from trueodds.io.table_source import ReadingSettings
from trueodds.tallies.tally import Tally


class Restless(PartitionedSource):
    """An engine that answers in any order, some partitions twice, through pickles as real ones do."""

    def __init__(
        self,
        pieces: Sequence[dict[str, Any]],
        *,
        lost: int | None = None,
        selection: ColumnSelection | None = None,
        batch_rows: int = 100,
    ) -> None:
        self._pieces, self._lost = pieces, lost
        super().__init__(self._table(0), ReadingSettings(selection or ColumnSelection(), batch_rows=batch_rows))

    def _table(self, number: int) -> ColumnSource:
        table = MappingTable(self._pieces[number])
        table.name = f"partition {number}"
        return table

    @property
    def partitions(self) -> int:
        return len(self._pieces)

    def sum_partitions(
        self, work: Callable[[int, TableOpener], PartitionSum], progress: RowProgress | None
    ) -> PartitionSum:
        numbers = [number for number in reversed(range(self.partitions)) if number != self._lost]
        parts = [work(number, partial(self._opened, number)) for number in [*numbers, numbers[0], numbers[-1]]]
        return sum_parts(pickle.loads(pickle.dumps(part)) for part in parts)

    def iterate_tables(self) -> Iterator[ColumnSource]:
        yield from map(self._table, range(self.partitions))

    def _opened(self, number: int) -> Sequence[ColumnSource]:
        return [self._table(number)]


def cut(table: dict[str, Any], *sizes: int) -> list[dict[str, Any]]:
    ends = np.cumsum([0, *sizes])
    return [{name: cells[a:b] for name, cells in table.items()} for a, b in itertools.pairwise(ends)]


def plain(n: int = 60) -> dict[str, Any]:
    return {name: cells for name, cells in columns(n).items() if name == "label" or name.startswith("p_")}


def tally_all(table: dict[str, Any]) -> Tally:
    P = np.stack([cells for name, cells in table.items() if name != "label"], axis=1)
    return Tally.from_predictions(Predictions(table["label"], P))


def same(a: Tally, b: Tally) -> None:
    assert (a.n, a.classes) == (b.n, b.classes)
    np.testing.assert_array_equal(a.cells.index, b.cells.index)
    np.testing.assert_allclose(a.cells.sums, b.cells.sums, rtol=1e-12, atol=0)


def test_partitions_that_answer_twice_and_in_any_order_count_once() -> None:
    table = plain()
    source = Restless(cut(table, 10, 0, 35, 15), batch_rows=8)
    same(source.reduce(Tally.from_predictions), tally_all(table))
    assert source.rows == 60


def test_the_sum_does_not_depend_on_the_order_of_the_answers_not_even_in_its_last_bit() -> None:
    parts = [PartitionSum((number,), 1, value) for number, value in enumerate([1e16, 1.0, -1e16, 1.0])]
    assert sum_parts(parts).value == sum_parts(parts[::-1]).value == ((1e16 + 1.0) - 1e16) + 1.0


def test_a_partition_that_never_answered_is_no_smaller_answer_but_an_error() -> None:
    with pytest.raises(InputError, match=r"TO330.*returned no result where.*no answer of partition 2 of 3"):
        Restless(cut(plain(), 20, 20, 20), lost=2).reduce(Tally.from_predictions)


def test_a_partition_in_two_different_sums_is_an_error() -> None:
    with pytest.raises(InputError, match=r"TO330.*returned two results where.*partition 1 in several sums"):
        sum_parts([PartitionSum((0, 1), 2, 3.0), PartitionSum((1, 2), 2, 4.0)])


def test_the_first_partition_with_a_problem_is_the_one_that_is_reported() -> None:
    pieces = cut(plain(), 20, 20, 20)
    for number in (1, 2):
        pieces[number]["p_0"] = pieces[number]["p_0"] + 3.0
    with pytest.raises(InputError, match=r"TO102.*in partition 1"):
        Restless(pieces).reduce(Tally.from_predictions)


def test_partitions_whose_sums_cannot_be_added_are_named() -> None:
    with pytest.raises(InputError, match=r"TO401.*partition 1 and an earlier one"):
        Restless(cut(plain(), 30, 20)).reduce(lambda batch: Tally.from_predictions(batch, bins=batch.n))


def test_partitions_with_other_columns_are_named() -> None:
    pieces = cut(plain(), 30, 30)
    del pieces[1]["p_2"]
    with pytest.raises(InputError, match=r"TO309.*partition 0 and partition 1 differ.*'p_2'"):
        Restless(pieces).reduce(Tally.from_predictions)


def test_sums_over_partitions_that_do_not_follow_each_other_are_whole() -> None:
    # 100 partitions of Spark ended so: groups of them meet where a hash of their number leads.
    parts = [PartitionSum((0, 1, 4, 5), 4, 1.0), PartitionSum((2, 3), 2, 2.0)]
    assert sum_parts(parts).partition_numbers == (0, 1, 2, 3, 4, 5)
    assert sum_parts([sum_parts(parts), PartitionSum((6,), 1, 4.0)]) == PartitionSum((0, 1, 2, 3, 4, 5, 6), 7, 7.0)


def test_an_engine_without_any_partition_has_no_rows() -> None:
    assert sum_parts([]) == PartitionSum((), 0)


def test_a_partition_in_which_every_weight_is_0_adds_nothing() -> None:
    table = plain() | {"w": np.repeat([1.0, 0.0, 2.0], 20)}
    source = Restless(cut(table, 20, 20, 20), selection=ColumnSelection(weight="w"))
    names = [name for name in table if name.startswith("p_")]
    P = np.stack([table[name] for name in names], axis=1)
    same(
        source.reduce(Tally.from_predictions), Tally.from_predictions(Predictions(table["label"], P, weight=table["w"]))
    )
    with pytest.raises(InputError, match=r"TO110.*finite.*in partition 2"):
        Restless(cut(table | {"w": -table["w"] + 1}, 20, 20, 20), selection=ColumnSelection(weight="w")).reduce(
            Tally.from_predictions
        )
    with pytest.raises(InputError, match="TO312"):
        Restless(cut(table | {"w": np.zeros(60)}, 30, 30), selection=ColumnSelection(weight="w")).reduce(
            Tally.from_predictions
        )


def test_rows_that_changed_between_two_passes_are_an_error() -> None:
    pieces = cut(plain(), 20, 40)
    source = Restless(pieces)
    source.reduce(Tally.from_predictions)
    assert source.n_probabilities == 180
    pieces[1] = cut(plain(), 20, 30)[1]
    with pytest.raises(InputError, match=r"TO333.*60 rows, and then 50"):
        source.reduce(Tally.from_predictions)


def test_partitions_without_rows_add_nothing_and_all_of_them_are_an_error() -> None:
    with pytest.raises(InputError, match="TO312"):
        Restless(cut(plain(), 0, 0)).reduce(Tally.from_predictions)


def test_a_class_that_is_missing_from_some_partitions_keeps_its_place() -> None:
    table = plain(90)
    order = np.argsort(table["label"], kind="stable")
    table = {name: cells[order] for name, cells in table.items()}
    same(Restless(cut(table, 20, 20, 50)).reduce(Tally.from_predictions), tally_all(table))


def test_rows_are_brought_here_only_by_collect() -> None:
    table = plain()
    source = Restless(cut(table, 20, 40))
    assert source.collect_within(10**9) is None
    np.testing.assert_array_equal(source.collect().p, np.stack([table[f"p_{j}"] for j in range(3)], axis=1))
    assert sum(batch.n for batch in source.batches()) == 60


def test_more_partitions_than_are_added_up_in_one_place() -> None:
    sizes = [1] * (3 * SUMS_PER_TASK + 1)
    table = plain(sum(sizes))
    same(Restless(cut(table, *sizes)).reduce(Tally.from_predictions), tally_all(table))
