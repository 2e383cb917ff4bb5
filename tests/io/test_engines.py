"""Does every engine give the sums that arrays give: dataframes and files, with worker processes, one of them killed?"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.io.engines import answers, in_memory, same, table, voted
from trueodds import InputError, Predictions, audit, fit, measure, read, tally
from trueodds.io.partitioned_source import SUMS_PER_TASK
from trueodds.tallies.tally import Tally

try:
    import dask
    import distributed
    from dask import bag
    from dask import dataframe as dd
except ImportError:
    dask = None
try:
    import pyspark
except ImportError:
    pyspark = None

needs_dask = pytest.mark.skipif(dask is None, reason="no dask")
# Spark warns of pandas 3, which nothing here goes by; its sockets are closed by a finalizer of its own.
SPARK_MARKS = [
    pytest.mark.skipif(pyspark is None, reason="no pyspark"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
]


class Engine(NamedTuple):
    """An engine with worker processes."""

    name: str
    session: Any  # the client of Dask, or the session of Spark
    distribute: Callable[[Any, int], Any]  # the rows of a frame as a dataframe of so many partitions


@contextmanager
def dask_engine() -> Iterator[Engine]:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "30s"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield Engine("dask", client, lambda frame, n: dd.from_pandas(frame, npartitions=n, sort=False))


@contextmanager
def spark_engine() -> Iterator[Engine]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        pyspark.sql.SparkSession.builder.master("local[2, 4]")  # two threads; a task that fails is tried again
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield Engine("spark", session, partial(distribute, session))
    session.stop()


def distribute(spark: Any, frame: Any, partitions: int) -> Any:
    """The rows as a Spark dataframe, without pandas on the way."""
    rows = [tuple(row) for row in frame.itertuples(index=False)]
    return spark.createDataFrame(rows, kinds(frame)).repartition(partitions)


def kinds(frame: Any) -> str:
    """The columns with their types, as Spark takes them."""
    return ", ".join(f"`{name}` {'string' if name in ('label', 'site') else 'double'}" for name in frame.columns)


ENGINES = [pytest.param("dask", marks=needs_dask), pytest.param("spark", marks=SPARK_MARKS)]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with {"dask": dask_engine, "spark": spark_engine}[request.param]() as engine:
        yield engine


def on(name: str) -> Callable[[Any], Any]:
    """Run a test of one engine with the fixture that the others use."""
    marks = {"dask": [needs_dask], "spark": SPARK_MARKS}[name]
    return pytest.mark.parametrize("engine", [pytest.param(name, marks=marks)], indirect=True)


# What every engine gives


@pytest.mark.parametrize("weight", [False, True])
def test_a_dataframe_gives_the_sums_of_its_rows(engine: Engine, weight: bool) -> None:
    frame = table(900, weight=weight)
    source = read(engine.distribute(frame, SUMS_PER_TASK + 1), group="site", weight="w" if weight else None)
    same(source.reduce(Tally.from_predictions), in_memory(frame))


@pytest.fixture(scope="module")
def answers_in_memory() -> dict[str, float]:
    return answers(in_memory(table(1_000)))


def test_every_estimator_and_test_of_a_tally_gives_the_same_number(
    engine: Engine, answers_in_memory: dict[str, float]
) -> None:
    values = answers(tally(read(engine.distribute(table(1_000), 5), group="site")))
    assert len(values) > 40
    assert values.keys() == answers_in_memory.keys()
    for name, value in answers_in_memory.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-9, atol=1e-15, err_msg=name)


def test_votes_and_logits_are_read_together(engine: Engine) -> None:
    frame, expected = voted()
    source = read(engine.distribute(frame, 3), votes="v_*", logits="z_*")
    same(source.reduce(Tally.from_predictions), expected)


def test_a_worker_that_is_killed_loses_nothing_and_counts_nothing_twice(engine: Engine, tmp_path: Path) -> None:
    frame = table(400)
    mark = tmp_path / "killed"

    def once_killed(batch: Predictions) -> Tally:
        if not mark.exists():  # the first to come here takes its whole process along
            mark.write_text(str(os.getpid()), encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)
        return Tally.from_predictions(batch)

    n_partitions = {"dask": 20, "spark": 8}[engine.name]
    same(read(engine.distribute(frame, n_partitions), group="site").reduce(once_killed), in_memory(frame))
    assert mark.exists()
    if engine.name == "dask":
        engine.session.wait_for_workers(2, timeout=30)


def test_files_that_workers_read_one_each_and_a_broken_one_is_named(engine: Engine, tmp_path: Path) -> None:
    frame = table(300)
    for number in range(3):
        frame[number * 100 : (number + 1) * 100].to_parquet(tmp_path / f"{number}.parquet")
    done: list[int] = []
    source = read(str(tmp_path / "*.parquet"), group="site", engine=engine.name)
    same(source.reduce(Tally.from_predictions, lambda rows, total: done.append(rows)), in_memory(frame))
    assert done[-1] == 300
    assert done == sorted(done)
    if engine.name == "dask":  # which tells after every file
        assert done == [100, 200, 300, 300]
    (tmp_path / "1.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"TO303.*1\.parquet"):
        source.reduce(Tally.from_predictions)


def test_a_row_that_is_wrong_is_reported_once_with_its_partition(engine: Engine) -> None:
    frame = table(90)
    frame.loc[70, "p_a"] = 1.7
    with pytest.raises(InputError, match=rf"TO102.*'p_a'.*partition \d of the {engine.name} dataframe"):
        read(engine.distribute(frame, 3)).reduce(Tally.from_predictions)


def test_the_audit_and_the_measures_take_a_dataframe_as_it_is(engine: Engine) -> None:
    frame = table(400)
    lying = engine.distribute(frame, 3)
    assert measure(lying, "ece").value == pytest.approx(measure(in_memory(frame), "ece").value, rel=1e-12)
    assert audit(lying, resamples=99).to_dict()["data"]["n"] == 400


def test_a_fit_where_the_rows_lie_has_the_parameters_of_a_fit_in_memory(engine: Engine) -> None:
    frame = table(300)
    P = frame[["p_a", "p_b", "p_c"]].to_numpy()
    local = fit(Predictions(frame["label"].to_numpy(dtype=str), P, classes=["a", "b", "c"]), "temperature")
    distributed_fit = fit(engine.distribute(frame, 3), "temperature")
    np.testing.assert_allclose(distributed_fit.predict_proba(P), local.predict_proba(P), rtol=0, atol=1e-9)


# Dask with worker processes


@on("dask")
def test_what_lies_on_the_workers_already_is_summed_up_there(engine: Engine) -> None:
    frame = table(200)
    same(
        read(dd.from_pandas(frame, npartitions=3).persist(), group="site").reduce(Tally.from_predictions),
        in_memory(frame),
    )
    records = bag.from_sequence(frame.to_dict("records"), npartitions=3).persist()
    same(read(records, group="site").reduce(Tally.from_predictions), in_memory(frame))


class Large:
    """Parameters of a large fit, which leave a mark wherever they are unpacked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        os.close(tempfile.mkstemp(dir=self.folder)[0])


def _beside(batch: Predictions, large: Large) -> int:
    return batch.n


@on("dask")
def test_a_step_is_sent_once_to_each_worker_and_not_with_every_partition(engine: Engine, tmp_path: Path) -> None:
    step = partial(_beside, large=Large(tmp_path))
    assert read(dd.from_pandas(table(200), npartitions=40)).reduce(step) == 200
    assert 1 <= len(list(tmp_path.iterdir())) < 10


@on("dask")
def test_columns_of_another_type_in_one_file_give_the_right_number(engine: Engine, tmp_path: Path) -> None:
    frame = table(300)
    exact = frame.copy()
    exact[["p_a", "p_b", "p_c"]] = frame[["p_a", "p_b", "p_c"]].astype("float32").astype("float64")
    exact[:150].to_parquet(tmp_path / "a.parquet")
    single = exact[150:].astype({"p_a": "float32", "p_b": "float32", "p_c": "float32"})
    single.to_parquet(tmp_path / "b.parquet")
    counted = read(str(tmp_path / "*.parquet"), group="site", engine="dask", sum_tolerance=1e-6).reduce(
        Tally.from_predictions
    )
    assert counted.n == 300
    np.testing.assert_allclose(counted.score("brier")["mean"], in_memory(exact).score("brier")["mean"], rtol=1e-12)


# Spark


@on("spark")
def test_partitions_without_rows_add_nothing_and_no_rows_at_all_are_an_error(engine: Engine) -> None:
    frame = table(100)
    rows = engine.distribute(frame, 4)
    same(read(rows.where("p_a > 2").union(rows), group="site").reduce(Tally.from_predictions), in_memory(frame))
    with pytest.raises(InputError, match="TO312"):
        read(rows.where("p_a > 2")).reduce(Tally.from_predictions)


@on("spark")
def test_more_partitions_than_are_added_up_in_one_place_and_in_two(engine: Engine) -> None:
    # Of 65 partitions neighbors went apart, since groups of them met where their hashes led: no sum came back.
    frame = table(120)
    rows = [tuple(row) for row in frame.itertuples(index=False)]
    spark = engine.session
    source = read(spark.createDataFrame(spark.sparkContext.parallelize(rows, 65), kinds(frame)), group="site")
    same(source.reduce(Tally.from_predictions), in_memory(frame))
    assert (source.partitions, source.rows, source.n_probabilities) == (65, 120, 360)


@on("spark")
def test_a_join_that_spark_plans_anew_while_it_runs_is_whole(engine: Engine) -> None:
    # The frame alone had other partitions than its sums, so that one seemed to be lost.
    frame = table(200)
    frame["i"] = np.arange(200.0)
    left = engine.distribute(frame, 7)
    right = engine.distribute(frame[["i"]], 5)
    was = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.autoBroadcastJoinThreshold": "10MB"}
    for name, value in was.items():
        engine.session.conf.set(name, value)
    try:
        same(read(left.join(right, "i"), group="site").reduce(Tally.from_predictions), in_memory(frame))
    finally:
        for name in was:
            engine.session.conf.unset(name)


@on("spark")
def test_a_shuffle_that_leaves_no_rows_is_an_error_of_ours(engine: Engine) -> None:
    with pytest.raises(InputError, match="TO312"):
        read(engine.distribute(table(50), 3).where("p_a > 2").distinct()).reduce(Tally.from_predictions)


@on("spark")
def test_lists_and_vectors_of_probabilities(engine: Engine) -> None:
    from pyspark.ml.functions import array_to_vector

    frame = table(90)
    lists = engine.distribute(frame, 2).selectExpr("label", "site", "array(p_a, p_b, p_c) as probability")
    vectors = lists.withColumn("probability", array_to_vector("probability"))
    for rows in (lists, vectors):
        source = read(rows, probs="probability", classes=["a", "b", "c"], group="site")
        same(source.reduce(Tally.from_predictions), in_memory(frame))
        assert source.n_probabilities == source.n_probabilities == 270


@on("spark")
def test_what_is_no_dataframe_is_refused(engine: Engine) -> None:
    with pytest.raises(InputError, match=r"TO302.*RDD"):
        read(engine.session.sparkContext.parallelize([1]))


@on("spark")
def test_a_column_with_a_name_of_its_own_kind(engine: Engine) -> None:
    frame = table(60).rename(columns={"label": "the `true` class."})
    rows = [tuple(row) for row in frame.itertuples(index=False)]
    named = engine.session.createDataFrame(rows, list(frame.columns))
    assert read(named, label="the `true` class.").reduce(Tally.from_predictions).n == 60


@on("spark")
def test_rows_are_brought_here_by_collect(engine: Engine) -> None:
    frame = table(50)
    preds = read(engine.distribute(frame, 3), group="site").collect()
    assert preds.n == 50
    same(Tally.from_predictions(preds), in_memory(frame))
