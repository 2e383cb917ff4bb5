"""Does Spark give the sums that arrays give: dataframes and files, with Python workers, one of them killed?"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io.engines import answers, in_memory, same, table, voted
from trueodds import InputError, Predictions, audit, fit, measure, read, tally
from trueodds.tallies.tally import Tally

pyspark = pytest.importorskip("pyspark")

# Spark warns of pandas 3, which nothing here goes by; its sockets are closed by a finalizer of its own.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
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
    yield session
    session.stop()


def distribute(spark: Any, frame: Any, partitions: int) -> Any:
    """The rows as a Spark dataframe, without pandas on the way."""
    rows = [tuple(row) for row in frame.itertuples(index=False)]
    kinds = ", ".join(f"`{name}` {'string' if name in ('label', 'site') else 'double'}" for name in frame.columns)
    return spark.createDataFrame(rows, kinds).repartition(partitions)


@pytest.mark.parametrize("weight", [False, True])
def test_a_dataframe_gives_the_sums_of_its_rows(spark: Any, weight: bool) -> None:
    frame = table(900, weight=weight)
    source = read(distribute(spark, frame, 18), group="site", weight="w" if weight else None)
    same(source.reduce(Tally.from_predictions), in_memory(frame))


def test_every_estimator_and_test_of_a_tally_gives_the_same_number(spark: Any) -> None:
    frame = table(1_000)
    values = answers(tally(read(distribute(spark, frame, 5), group="site")))
    expected = answers(in_memory(frame))
    assert len(expected) > 40
    assert values.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-9, atol=1e-15, err_msg=name)


def test_votes_and_logits_are_read_together(spark: Any) -> None:
    frame, expected = voted()
    same(read(distribute(spark, frame, 3), votes="v_*", logits="z_*").reduce(Tally.from_predictions), expected)


def test_partitions_without_rows_add_nothing_and_no_rows_at_all_are_an_error(spark: Any) -> None:
    frame = table(100)
    rows = distribute(spark, frame, 4)
    same(read(rows.where("p_a > 2").union(rows), group="site").reduce(Tally.from_predictions), in_memory(frame))
    with pytest.raises(InputError, match="TO312"):
        read(rows.where("p_a > 2")).reduce(Tally.from_predictions)


def test_more_partitions_than_are_added_up_in_one_place_and_in_two(spark: Any) -> None:
    # Of 65 partitions neighbors went apart, since groups of them met where their hashes led: no sum came back.
    frame = table(120)
    rows = [tuple(row) for row in frame.itertuples(index=False)]
    kinds = ", ".join(f"`{name}` {'string' if name in ('label', 'site') else 'double'}" for name in frame.columns)
    source = read(spark.createDataFrame(spark.sparkContext.parallelize(rows, 65), kinds), group="site")
    same(source.reduce(Tally.from_predictions), in_memory(frame))
    assert (source.partitions, source.rows, source.n_probabilities) == (65, 120, 360)


def test_a_join_that_spark_plans_anew_while_it_runs_is_whole(spark: Any) -> None:
    # The frame alone had other partitions than its sums, so that one seemed to be lost.
    frame = table(200)
    frame["i"] = np.arange(200.0)
    left = distribute(spark, frame, 7)
    right = distribute(spark, frame[["i"]], 5)
    was = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.autoBroadcastJoinThreshold": "10MB"}
    for name, value in was.items():
        spark.conf.set(name, value)
    try:
        same(read(left.join(right, "i"), group="site").reduce(Tally.from_predictions), in_memory(frame))
    finally:
        for name in was:
            spark.conf.unset(name)


def test_a_shuffle_that_leaves_no_rows_is_an_error_of_ours(spark: Any) -> None:
    with pytest.raises(InputError, match="TO312"):
        read(distribute(spark, table(50), 3).where("p_a > 2").distinct()).reduce(Tally.from_predictions)


def test_lists_and_vectors_of_probabilities(spark: Any) -> None:
    from pyspark.ml.functions import array_to_vector

    frame = table(90)
    lists = distribute(spark, frame, 2).selectExpr("label", "site", "array(p_a, p_b, p_c) as probability")
    vectors = lists.withColumn("probability", array_to_vector("probability"))
    for rows in (lists, vectors):
        source = read(rows, probs="probability", classes=["a", "b", "c"], group="site")
        same(source.reduce(Tally.from_predictions), in_memory(frame))
        assert source.n_probabilities == source.n_probabilities == 270


def test_what_is_no_dataframe_is_refused(spark: Any) -> None:
    with pytest.raises(InputError, match=r"TO302.*RDD"):
        read(spark.sparkContext.parallelize([1]))


def test_a_worker_that_is_killed_loses_nothing_and_counts_nothing_twice(spark: Any, tmp_path: Path) -> None:
    frame = table(400)
    mark = tmp_path / "killed"

    def once_killed(batch: Predictions) -> Tally:
        if not mark.exists():
            mark.write_text(str(os.getpid()), encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)
        return Tally.from_predictions(batch)

    same(read(distribute(spark, frame, 8), group="site").reduce(once_killed), in_memory(frame))
    assert mark.exists()


def test_files_that_workers_read_one_each_and_a_broken_one_is_named(spark: Any, tmp_path: Path) -> None:
    frame = table(300)
    for number in range(3):
        frame[number * 100 : (number + 1) * 100].to_parquet(tmp_path / f"{number}.parquet")
    source = read(str(tmp_path / "*.parquet"), group="site", engine="spark")
    same(source.reduce(Tally.from_predictions), in_memory(frame))
    (tmp_path / "1.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"TO303.*1\.parquet"):
        source.reduce(Tally.from_predictions)


def test_a_row_that_is_wrong_is_reported_once_with_its_partition(spark: Any) -> None:
    frame = table(90)
    frame.loc[70, "p_a"] = 1.7
    with pytest.raises(InputError, match=r"TO102.*'p_a'.*of the spark dataframe"):
        read(distribute(spark, frame, 3)).reduce(Tally.from_predictions)


def test_a_column_with_a_name_of_its_own_kind(spark: Any) -> None:
    frame = table(60).rename(columns={"label": "the `true` class."})
    rows = [tuple(row) for row in frame.itertuples(index=False)]
    named = spark.createDataFrame(rows, list(frame.columns))
    assert read(named, label="the `true` class.").reduce(Tally.from_predictions).n == 60


def test_the_audit_and_the_measures_take_a_dataframe_as_it_is(spark: Any) -> None:
    frame = table(400)
    lying = distribute(spark, frame, 3)
    assert measure(lying, "ece").value == pytest.approx(measure(in_memory(frame), "ece").value, rel=1e-12)
    assert audit(lying, resamples=99).to_dict()["data"]["n"] == 400


def test_a_fit_where_the_rows_lie_has_the_parameters_of_a_fit_in_memory(spark: Any) -> None:
    frame = table(300)
    P = frame[["p_a", "p_b", "p_c"]].to_numpy()
    local = fit(Predictions(frame["label"].to_numpy(dtype=str), P, classes=["a", "b", "c"]), "temperature")
    distributed = fit(distribute(spark, frame, 3), "temperature")
    np.testing.assert_allclose(distributed.predict_proba(P), local.predict_proba(P), rtol=0, atol=1e-9)


def test_rows_are_brought_here_by_collect(spark: Any) -> None:
    frame = table(50)
    preds = read(distribute(spark, frame, 3), group="site").collect()
    assert preds.n == 50
    same(Tally.from_predictions(preds), in_memory(frame))
