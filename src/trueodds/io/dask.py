"""Sum up rows with Dask: data frames, bags of records, or files read by its workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import dask

from trueodds.core.errors import InputError
from trueodds.io import files
from trueodds.io.nested_fields import paths_by_column
from trueodds.io.partitioned_source import (
    SUMS_PER_TASK,
    PartitionedSource,
    PartitionSum,
    TableOpener,
    open_file,
    open_frame,
    sum_parts,
)
from trueodds.io.source import RowProgress
from trueodds.io.table import ColumnSource
from trueodds.io.table_source import ReadingSettings


class DaskSource(PartitionedSource):
    """The partitions of a Dask data frame or bag of records, or files with one partition each.

    They run on the active scheduler: the client of `dask.distributed`, else local threads.
    """

    def __init__(self, data: Any, reading: ReadingSettings) -> None:
        if isinstance(data, list):
            super().__init__(files.open_tables(data[0], reading.csv_settings)[0], reading, data)
            self._openers: list[Any] = [partial(open_file, path, reading.csv_settings) for path in data]
            return
        kind = type(data).__name__.lower()
        if kind not in ("dataframe", "bag"):
            raise InputError(
                "TO302", "Data of this type cannot be read.", f"dask {kind}", "Convert it to a data frame or a bag."
            )
        first_rows = data._meta if kind == "dataframe" else _first_record(data)
        super().__init__(open_frame(first_rows, f"the dask {kind}")[0], reading)
        if kind == "dataframe":
            columns = [str(column) for column in data.columns]
            names_to_read = paths_by_column(self.roles.names, columns)
            read_columns = data[[column for column in data.columns if str(column) in names_to_read]]
            parts = read_columns.to_delayed()
        else:
            parts = [dask.delayed(list)(part) for part in data.to_delayed()]
        self._openers = [
            dask.delayed(partial)(open_frame, part, f"partition {number} of the dask {kind}")
            for number, part in enumerate(parts)
        ]

    @property
    def partitions(self) -> int:
        return len(self._openers)

    def sum_partitions(
        self, sum_partition: Callable[[int, TableOpener], PartitionSum], progress: RowProgress | None
    ) -> PartitionSum:
        """Sum the partitions on the workers, `SUMS_PER_TASK` sums at a time, and return one sum."""
        delayed_sum = dask.delayed(sum_partition, pure=False, traverse=False)  # sent once, not with every partition
        leaves = level = [
            dask.delayed(_run_task, pure=False)(delayed_sum, number, opener)
            for number, opener in enumerate(self._openers)
        ]
        while len(level) > 1:
            level = [
                dask.delayed(sum_parts, pure=False)(level[i : i + SUMS_PER_TASK])
                for i in range(0, len(level), SUMS_PER_TASK)
            ]
        client = _active_client()
        if client is None:
            (result,) = dask.compute(level[0])
            return result
        future, *counts = client.compute([level[0], *(dask.delayed(attrgetter("rows"))(leaf) for leaf in leaves)])
        if progress is not None:
            _report_progress(counts, progress)
        return future.result()

    def iterate_tables(self) -> Iterator[ColumnSource]:
        for opener in self._openers:
            (open_tables,) = dask.compute(opener)
            yield from open_tables()


def _active_client() -> Any:
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def _report_progress(counts: Sequence[Any], progress: RowProgress) -> None:
    from distributed import as_completed

    done = 0
    for future in as_completed(counts):
        if future.status != "finished":
            return
        done += future.result()
        progress(done, None)


def _run_task(
    sum_partition: Callable[[int, TableOpener], PartitionSum], number: int, open_tables: TableOpener
) -> PartitionSum:
    """Sum partition `number` on a worker; Dask computes `sum_partition` and `open_tables`, as arguments of a task."""
    return sum_partition(number, open_tables)


def _first_record(bag: Any) -> list[Any]:
    """Return the first record, for its columns; later partitions are not computed."""
    for part in bag.to_delayed():
        (first_records,) = dask.compute(dask.delayed(lambda records: list(itertools.islice(records, 1)))(part))
        if first_records:
            return list(first_records)
    raise InputError("TO312", "The dask bag is empty.", "no record", "Give at least one row.")


def open_source(data: Any, reading: ReadingSettings) -> DaskSource:
    return DaskSource(data, reading)
