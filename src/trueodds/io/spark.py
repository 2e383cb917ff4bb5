"""Sum up rows with Spark: data frames, or files read by its workers; only the sum reaches the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from trueodds.core.errors import InputError
from trueodds.io import files
from trueodds.io.arrow import arrow_batches
from trueodds.io.csv_format import CsvSettings
from trueodds.io.partitioned_source import (
    SUMS_PER_TASK,
    PartitionedSource,
    PartitionSum,
    TableOpener,
    open_file,
    sum_parts,
)
from trueodds.io.source import RowProgress
from trueodds.io.table import ColumnBatch, ColumnSource, check_column_names
from trueodds.io.table_source import ReadingSettings

SUM_SCHEMA = "id long, sum binary"  # of a data frame of pickled sums
NESTED_TYPES = ("StructType", "ArrayType", "MapType")  # of columns whose cells have fields
DATAFRAME_MODULES = ("pyspark.sql.dataframe", "pyspark.sql.classic.dataframe")  # before Spark 4, and since
NumberedSum = tuple[int, bytes]  # number of a partition (or group of partitions), and the pickle of a PartitionSum


class SparkTable(ColumnSource):
    """The columns of a Spark data frame and, on a worker, the record batches of one partition, iterated only once.

    `frame` is the data frame on the driver, from which only first cells are read.
    """

    format = "Spark dataframe"

    def __init__(self, columns: Sequence[str], batches: Iterable[Any], name: str, frame: Any = None) -> None:
        self.name = name
        self.columns = check_column_names(name, columns)
        self._batches = batches
        self._frame = frame

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        renamed = (batch.rename_columns(list(self.columns)) for batch in self._batches)
        return arrow_batches(self, renamed, size, names)

    def first_cell(self, column: str) -> Any:
        if self._frame is None or type(self._frame.schema[column].dataType).__name__ not in NESTED_TYPES:
            return None
        rows = self._frame.select(_quoted_column(column)).limit(1).collect()
        return next((next(iter(row.asDict(recursive=True).values())) for row in rows), None)


class SparkSource(PartitionedSource):
    """The partitions of a Spark data frame (3.5 or later), or files with one partition each."""

    def __init__(self, data: Any, reading: ReadingSettings) -> None:
        self._n_partitions: int | None = len(data) if isinstance(data, list) else None
        self._paths = data if isinstance(data, list) else None
        if self._paths is not None:
            self._spark = SparkSession.builder.getOrCreate()
            super().__init__(files.open_tables(self._paths[0], reading.csv_settings)[0], reading, self._paths)
            return
        if type(data).__module__ not in DATAFRAME_MODULES:
            got = f"{type(data).__module__} {type(data).__name__}"
            fix = "Give a dataframe; one of Spark Connect as files."
            raise InputError("TO302", "Data of this type cannot be read.", got, fix)
        head = SparkTable(data.columns, (), "the spark dataframe", data)
        head.text_columns = frozenset(name for name, kind in data.dtypes if kind == "string")
        super().__init__(head, reading)
        # Columns are renamed to c0, c1, …, because Spark does not support all names.
        kinds = {field.name: type(field.dataType).__name__ for field in data.schema.fields}
        self._columns = head.read_columns(self.roles.names)
        renamed_columns = (_readable_column(name, kinds[name]).alias(f"c{i}") for i, name in enumerate(self._columns))
        self._frame = data.select(*renamed_columns)

    @property
    def partitions(self) -> int:
        """Number of partitions; for a data frame, as Spark planned it in the last sum."""
        return self._frame.rdd.getNumPartitions() if self._n_partitions is None else self._n_partitions

    def sum_partitions(
        self, sum_partition: Callable[[int, TableOpener], PartitionSum], progress: RowProgress | None
    ) -> PartitionSum:
        """Sum the partitions on the workers, `SUMS_PER_TASK` sums at a time; Spark itself shows the progress."""
        if self._paths is not None:
            paths = self._spark.sparkContext.parallelize(list(enumerate(self._paths)), len(self._paths))
            sums = paths.map(partial(_sum_file, sum_partition=sum_partition, csv_settings=self.reading.csv_settings))
        else:
            sums = self._frame.mapInArrow(_make_row_summer(sum_partition, self._columns), SUM_SCHEMA).rdd.map(tuple)
            # From the sums and not the data frame: Spark plans partitions at run time, and differently for both.
            self._n_partitions = sums.getNumPartitions()
        n_sums = self.partitions
        while n_sums > 1:
            n_sums = -(-n_sums // SUMS_PER_TASK)
            # Neighbors are added first, so that the order of the sum is that of the partitions.
            sums = (
                sums.map(lambda pair: (pair[0] // SUMS_PER_TASK, pair[1]))
                .partitionBy(n_sums, int)
                .mapPartitions(_add_sums)
            )
        return sum_parts(pickle.loads(pickled) for _, pickled in sums.collect())

    def iterate_tables(self) -> Iterator[ColumnSource]:
        """Read files in this process; a data frame is collected in record batches, one partition at a time."""
        if self._paths is not None:
            yield from (table for path in self._paths for table in open_file(path, self.reading.csv_settings))
            return
        rows = self._frame.mapInArrow(_serialize_batches, "rows binary").toLocalIterator()
        batches = (batch for row in rows for batch in pa.ipc.open_stream(row["rows"]))
        yield SparkTable(self._columns, batches, "the spark dataframe")


def _make_row_summer(
    sum_partition: Callable[[int, TableOpener], PartitionSum], names: Sequence[str]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that sums up the record batches of a partition, for `mapInArrow`."""

    def sum_batches(batches: Iterator[Any]) -> Iterator[Any]:
        number = TaskContext.get().partitionId()
        table = SparkTable(names, batches, f"partition {number} of the spark dataframe")
        yield _to_record_batch(sum_partition(number, lambda: [table]))

    return sum_batches


def _sum_file(
    numbered: tuple[int, str], sum_partition: Callable[[int, TableOpener], PartitionSum], csv_settings: CsvSettings
) -> NumberedSum:
    number, path = numbered
    return number, pickle.dumps(sum_partition(number, partial(open_file, path, csv_settings)))


def _add_sums(sums: Iterable[NumberedSum]) -> Iterator[NumberedSum]:
    numbers, parts = zip(*sums, strict=True)
    yield numbers[0], pickle.dumps(sum_parts(map(pickle.loads, parts)))


def _to_record_batch(part: PartitionSum) -> Any:
    return pa.record_batch(
        [pa.array([part.partition_numbers[0]], pa.int64()), pa.array([pickle.dumps(part)], pa.binary())], ["id", "sum"]
    )


def _serialize_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield each record batch as a row of bytes, which the driver can collect one at a time."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["rows"])


def _quoted_column(name: str) -> Any:
    """Return the column of exactly this name; a dot in it does not select a field."""
    return fn.col("`" + name.replace("`", "``") + "`")


def _readable_column(name: str, kind: str) -> Any:
    """Return the column of this name, whatever its characters; vectors of Spark ML (type VectorUDT) become arrays."""
    column = _quoted_column(name)
    if kind != "VectorUDT":
        return column
    from pyspark.ml.functions import vector_to_array

    return vector_to_array(column)


def open_source(data: Any, reading: ReadingSettings) -> SparkSource:
    return SparkSource(data, reading)
