"""Sum up partitioned rows on the workers that hold them; the base class of the Dask and Spark sources."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.data.weights import ALL_WEIGHTS_ZERO_TEXT
from trueodds.io.columns import ColumnRoles
from trueodds.io.csv_format import CsvSettings
from trueodds.io.source import RowProgress, Source
from trueodds.io.table import ColumnSource
from trueodds.io.table_source import ReadingSettings, TableHeader, TableSource, notes_on_reading

SUMS_PER_TASK = 16  # number of sums added in one task
CHANGED_ROWS_REMEDY = "Save the rows and read the saved file; if rows were added, create a new source."
TableOpener = Callable[[], Sequence[ColumnSource]]  # returns the tables of one partition, on its worker


def open_file(path: str, csv_settings: CsvSettings) -> Sequence[ColumnSource]:
    from trueodds.io import files

    return files.open_tables(path, csv_settings)


def open_frame(data: Any, name: str) -> Sequence[ColumnSource]:
    from trueodds.io.frames import open_table
    from trueodds.io.json_lines import RecordTable

    table = RecordTable(data) if isinstance(data, list) else open_table(data)
    table.name = name
    return [table]


@dataclass(frozen=True, slots=True)
class PartitionSum:
    """The sum over some partitions, with the numbers of these partitions."""

    partition_numbers: tuple[int, ...]  # numbers of the partitions, sorted
    rows: int
    value: Any = None  # the sum; None if no partition has rows
    problem: InputError | None = None  # error of the first partition that has one
    n_probabilities: int = 0  # number of rows times number of classes

    def __add__(self, other: PartitionSum) -> PartitionSum:
        problem, value = self.problem or other.problem, None
        values = [part.value for part in (self, other) if part.value is not None]
        try:
            value = reduce(lambda a, b: a + b, values) if values and problem is None else None
        except InputError as error:  # the sums have different classes, for instance
            got = error.got + f", in partition {other.partition_numbers[0]} and an earlier one"
            problem = InputError(error.code, error.problem, got, error.fix)
        numbers = tuple(sorted((*self.partition_numbers, *other.partition_numbers)))
        return PartitionSum(
            numbers, self.rows + other.rows, value, problem, self.n_probabilities + other.n_probabilities
        )


def sum_partition(
    reading: ReadingSettings, step: Callable[..., Any], keyed: bool, number: int, open_tables: TableOpener
) -> PartitionSum:
    """Sum `step` over a partition, on its worker; an InputError is in the result, so that the engine does not retry."""
    result, rows, n_probabilities = None, 0, 0
    try:
        tables = open_tables()
        if all(table.rows == 0 for table in tables):
            return PartitionSum((number,), 0)
        source = reading.make_source(tables)
        for step_args in source.batches_with_ids(number) if keyed else ((batch,) for batch in source.batches()):
            step_result, batch = step(*step_args), step_args[0]
            result = step_result if result is None else result + step_result
            rows += batch.n
            n_probabilities += batch.n * batch.k
    except InputError as problem:
        # The partition is empty, or all of its rows have weight 0.
        if rows == 0 and (problem.code == "TO312" or problem.problem == ALL_WEIGHTS_ZERO_TEXT):
            return PartitionSum((number,), 0)
        return PartitionSum((number,), 0, None, problem)
    return PartitionSum((number,), rows, result, None, n_probabilities)


def sum_parts(parts: Iterable[PartitionSum]) -> PartitionSum:
    """Add sums in the order of the partitions, so that the result is reproducible.

    The same partition may be summed twice, because an engine may repeat a task; it is counted once.

    >>> one, two = PartitionSum((0,), 3, 5), PartitionSum((1,), 1, 2)
    >>> sum_parts([two, one, two])
    PartitionSum(partition_numbers=(0, 1), rows=4, value=7, problem=None, n_probabilities=0)
    """
    distinct_parts = {part.partition_numbers: part for part in sorted(parts, key=lambda part: part.partition_numbers)}
    result = reduce(lambda a, b: a + b, distinct_parts.values()) if distinct_parts else PartitionSum((), 0)
    if len(set(result.partition_numbers)) < len(result.partition_numbers):
        repeated = next(number for number in result.partition_numbers if result.partition_numbers.count(number) > 1)
        raise _result_count_error(f"partition {repeated} in several sums", "two results")
    return result


class PartitionedSource(Source):
    """Rows in numbered partitions of an engine, which runs a function on each partition and sums the results.

    `head` is a table with the columns of all partitions, of which no rows are read; `files` are the paths, if any.
    """

    roles: ColumnRoles

    def __init__(self, head: ColumnSource, reading: ReadingSettings, files: Sequence[str] = ()) -> None:
        self.roles = reading.selection.resolve(head)
        self.reading = replace(reading, first_table=TableHeader(head.name, self.roles))
        self.name = head.name if len(files) < 2 else f"{head.name} and {len(files) - 1:,} more"
        self.notes = (*self.roles.notes, *notes_on_reading([head], self.roles))
        self.rows, self.files = None, list(files)
        self.format = head.format
        self._n_probabilities: int | None = None

    def with_unlabeled(self) -> PartitionedSource:
        new = copy.copy(self)
        new.reading = replace(self.reading, unlabeled=True)
        return new

    @abstractmethod
    def sum_partitions(
        self, sum_partition: Callable[[int, TableOpener], PartitionSum], progress: RowProgress | None
    ) -> PartitionSum:
        """Return `sum_parts` of `sum_partition(number, open_tables)` over all partitions."""

    @property
    @abstractmethod
    def partitions(self) -> int: ...

    @abstractmethod
    def iterate_tables(self) -> Iterator[ColumnSource]:
        """Yield the tables of each partition in this process, one partition at a time."""

    def reduce(self, step: Callable[..., Any], progress: RowProgress | None = None, *, keyed: bool = False) -> Any:
        total = self.sum_partitions(partial(sum_partition, self.reading, step, keyed), progress)
        if total.problem is not None:
            raise total.problem
        if total.partition_numbers != tuple(range(self.partitions)):
            missing = set(range(self.partitions)) - set(total.partition_numbers)
            number = min(missing) if missing else max(total.partition_numbers)
            answer, n_results = ("no answer", "no result") if missing else ("an answer", "a result too many")
            raise _result_count_error(f"{answer} of partition {number} of {self.partitions:,}", n_results)
        if total.rows == 0:
            raise InputError("TO312", f"{self.name} is empty.", "0 rows", "Give at least one row that has weight.")
        if self.rows not in (None, total.rows):
            got = f"{self.rows:,} rows, and then {total.rows:,}"
            raise InputError("TO333", f"{self.name} changed between two passes.", got, CHANGED_ROWS_REMEDY)
        self.rows, self._n_probabilities = total.rows, total.n_probabilities
        if progress is not None:
            progress(total.rows, total.rows)
        return total.value

    def batches(self) -> Iterator[Predictions]:
        return self._local_source().batches()

    def batches_with_ids(self) -> Iterator[tuple[Predictions, Array]]:
        return self._local_source().batches_with_ids()

    def _collect(self, limit: int | None, progress: RowProgress | None) -> Predictions | None:
        """Return None with any limit: rows on workers are collected only by `collect`."""
        return self._local_source().collect(progress) if limit is None else None

    @property
    def n_probabilities(self) -> int | None:
        return self._n_probabilities

    def _local_source(self) -> TableSource:
        tables = [table for table in self.iterate_tables() if table.rows != 0]
        if not tables:
            raise InputError("TO312", f"{self.name} is empty.", "0 rows", "Give at least one row.")
        return self.reading.make_source(tables)


def _result_count_error(got: str, n_results: str) -> InputError:
    return InputError(
        "TO330",
        f"The engine returned {n_results} where there must be one result per partition.",
        got,
        "Run it again; report it if it persists.",
    )
