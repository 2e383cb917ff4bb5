"""How are rows summed up that Spark holds: dataframes, or files that its workers read? Only the sum comes to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from trueodds.sources import files
from trueodds.sources.arrow import converted
from trueodds.sources.parted import FAN, Opened, Part, PartedSource, Reading, opened_file, together
from trueodds.sources.source import Progress
from trueodds.sources.table import Batch, Table, once

SUMS = "id long, sum binary"


class SparkTable(Table):
    """The columns of a Spark dataframe and, on a worker, the record batches of one partition, which pass by once."""

    format = "Spark dataframe"

    def __init__(self, columns: Sequence[str], batches: Iterable[Any], name: str) -> None:
        self.name = name
        self.columns = once(name, columns)
        self._batches = batches

    def batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[Batch]:
        """Views of the memory in which Spark hands the rows over."""
        renamed = (batch.rename_columns(list(self.columns)) for batch in self._batches)
        return converted(self.name, (batch.select(list(names)) for batch in renamed), size)


class SparkSource(PartedSource):
    """The partitions of a Spark dataframe (3.5 or later), or files, one to a partition."""

    def __init__(self, data: Any, reading: Reading, spark: Any = None) -> None:
        self._paths = data if isinstance(data, list) else None
        if self._paths is not None:
            self._spark = spark or SparkSession.builder.getOrCreate()
            super().__init__(files.opened(self._paths[0])[0], reading, self._paths)
            return
        self._spark = data.sparkSession
        super().__init__(SparkTable(data.columns, _sample(data), "the spark dataframe"), reading)
        # Under plain names, since Spark stumbles over some that others allow
        self._frame = data.select(*(fn.col(_quoted(name)).alias(f"c{i}") for i, name in enumerate(self.plan.names)))

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self._paths) if self._paths is not None else self._frame.rdd.getNumPartitions()

    def run(self, work: Callable[[int, Opened], Part], progress: Progress | None) -> Part:
        """The sums are added up by the workers, some at a time, and one comes back. Spark shows its own progress."""
        many = self.partitions
        if self._paths is not None:
            rows = self._spark.createDataFrame(list(enumerate(self._paths)), "id long, path string")
            sums = rows.repartitionByRange(many, "id").mapInArrow(_of_files(work), SUMS)
        else:
            sums = self._frame.mapInArrow(_of_rows(work, self.plan.names), SUMS)
        while many > 1:
            many = -(-many // FAN)
            sums = sums.repartition(many, fn.floor(fn.col("id") / FAN)).mapInArrow(_added, SUMS)
        return together(pickle.loads(row["sum"]) for row in sums.collect())

    def gathered(self) -> Iterator[Table]:
        """Files are read here; a dataframe comes in record batches, a partition at a time."""
        if self._paths is not None:
            yield from (table for path in self._paths for table in opened_file(path))
            return
        rows = self._frame.mapInArrow(_serialized, "rows binary").toLocalIterator()
        batches = (batch for row in rows for batch in pa.ipc.open_stream(row["rows"]))
        yield SparkTable(self.plan.names, batches, "the spark dataframe")


def _of_rows(work: Callable[[int, Opened], Part], names: Sequence[str]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def each(batches: Iterator[Any]) -> Iterator[Any]:
        number = TaskContext.get().partitionId()
        table = SparkTable(names, batches, f"partition {number} of the spark dataframe")
        yield _row(work(number, lambda: [table]))

    return each


def _of_files(work: Callable[[int, Opened], Part]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def each(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for row in batch.to_pylist():
                yield _row(work(row["id"], partial(opened_file, row["path"])))

    return each


def _added(batches: Iterator[Any]) -> Iterator[Any]:
    parts = [pickle.loads(each) for batch in batches for each in batch.column("sum").to_pylist()]
    if parts:
        yield _row(together(parts))


def _row(part: Part) -> Any:
    return pa.record_batch(
        [pa.array([part.ids[0]], pa.int64()), pa.array([pickle.dumps(part)], pa.binary())], ["id", "sum"]
    )


def _serialized(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["rows"])


def _sample(frame: Any) -> Iterator[Any]:
    """The first row, read only where a single column of lists must tell how many classes there are."""
    yield pa.RecordBatch.from_pandas(frame.limit(1).toPandas())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def opened(data: Any, reading: Reading) -> SparkSource:
    """The source of a collection, or of a list of files."""
    return SparkSource(data, reading)
