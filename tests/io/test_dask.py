"""Does Dask give the sums that arrays give, for dataframes, bags and files, with worker processes, one killed?"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io.engines import answers, in_memory, same, table, voted
from trueodds import InputError, Predictions, audit, fit, measure, read, tally
from trueodds.tallies.reservoir import SampledTally
from trueodds.tallies.tally import Tally

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
bag = pytest.importorskip("dask.bag")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "30s"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("weight", [False, True])
def test_a_dataframe_on_worker_processes_gives_the_sums_of_its_rows(client: Any, weight: bool) -> None:
    frame = table(weight=weight)
    source = read(dd.from_pandas(frame, npartitions=37), group="site", weight="w" if weight else None)
    same(source.reduce(Tally.from_predictions), in_memory(frame))


def test_every_estimator_and_test_of_a_tally_gives_the_same_number(client: Any) -> None:
    frame = table(1_000)
    values = answers(tally(read(dd.from_pandas(frame, npartitions=5), group="site")))
    expected = answers(in_memory(frame))
    assert len(expected) > 40
    assert values.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-9, atol=1e-15, err_msg=name)


def test_without_a_cluster_the_threads_of_this_machine_do_it() -> None:
    frame = table(200)
    same(read(dd.from_pandas(frame, npartitions=3), group="site").reduce(Tally.from_predictions), in_memory(frame))


def test_votes_and_logits_are_read_together() -> None:
    frame, expected = voted()
    same(read(dd.from_pandas(frame, npartitions=3), votes="v_*", logits="z_*").reduce(Tally.from_predictions), expected)


def test_a_bag_of_records_is_read_like_lines_of_json() -> None:
    frame = table(200)
    records = bag.from_sequence(frame.to_dict("records"), npartitions=3)
    same(read(records, group="site").reduce(Tally.from_predictions), in_memory(frame))


def test_nothing_is_read_to_learn_the_columns_of_a_bag_only_its_first_records(tmp_path: Path) -> None:
    frame = table(100)

    def part(number: int, records: bool = False) -> Any:
        (tmp_path / str(number)).touch()
        piece = frame[number * 20 : (number + 1) * 20]
        return piece.to_dict("records") if records else piece

    read(dd.from_map(part, range(5), meta=frame[:0]))
    assert not list(tmp_path.iterdir())
    records = [dask.delayed(part)(number, records=True) for number in range(5)]
    assert read(bag.from_delayed(records)).reduce(len_of) == 100
    for file in tmp_path.iterdir():
        file.unlink()
    read(bag.from_delayed(records[1:] + records[:1]))
    assert [file.name for file in tmp_path.iterdir()] == ["1"]


def len_of(batch: Predictions) -> int:
    return batch.n


def test_what_lies_on_the_workers_already_is_summed_up_there(client: Any) -> None:
    frame = table(200)
    same(
        read(dd.from_pandas(frame, npartitions=3).persist(), group="site").reduce(Tally.from_predictions),
        in_memory(frame),
    )
    records = bag.from_sequence(frame.to_dict("records"), npartitions=3).persist()
    same(read(records, group="site").reduce(Tally.from_predictions), in_memory(frame))


def test_a_bag_that_is_still_to_be_mapped_and_filtered_is_read() -> None:
    frame = table(200)
    records = bag.from_sequence(frame.to_dict("records"), npartitions=3)
    none = records.filter(lambda record: record["p_a"] > 2)
    same(read(bag.concat([none, records.map(dict)]), group="site").reduce(Tally.from_predictions), in_memory(frame))
    with pytest.raises(InputError, match="TO312"):
        read(none)


def test_other_collections_are_refused() -> None:
    for other in (dask.delayed(len)([1]), dd.from_pandas(table(10), npartitions=1)["p_a"]):
        with pytest.raises(InputError, match=r"TO302.*dask"):
            read(other)


class Large:
    """Parameters of a large fit, which leave a mark wherever they are unpacked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        os.close(tempfile.mkstemp(dir=self.folder)[0])


def _beside(batch: Predictions, large: Large) -> int:
    return batch.n


def test_a_step_is_sent_once_to_each_worker_and_not_with_every_partition(client: Any, tmp_path: Path) -> None:
    step = partial(_beside, large=Large(tmp_path))
    assert read(dd.from_pandas(table(200), npartitions=40)).reduce(step) == 200
    assert 1 <= len(list(tmp_path.iterdir())) < 10


def test_a_worker_that_is_killed_loses_nothing_and_counts_nothing_twice(client: Any, tmp_path: Path) -> None:
    frame = table(400)
    mark = tmp_path / "killed"

    def slow(batch: Predictions) -> Tally:
        if not mark.exists():  # the first to come here takes its whole process along
            mark.write_text(str(os.getpid()), encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)
        return Tally.from_predictions(batch)

    same(read(dd.from_pandas(frame, npartitions=20), group="site").reduce(slow), in_memory(frame))
    assert mark.exists()
    client.wait_for_workers(2, timeout=30)


def test_files_that_workers_read_one_each(client: Any, tmp_path: Path) -> None:
    frame = table(300)
    for number in range(3):
        frame[number * 100 : (number + 1) * 100].to_parquet(tmp_path / f"{number}.parquet")
    done: list[int] = []
    source = read(str(tmp_path / "*.parquet"), group="site", engine="dask")
    same(source.reduce(Tally.from_predictions, lambda rows, total: done.append(rows)), in_memory(frame))
    assert done[-1] == 300
    assert done == sorted(done)


def test_a_broken_file_among_many_is_named(client: Any, tmp_path: Path) -> None:
    frame = table(300)
    for number in range(3):
        frame[number * 100 : (number + 1) * 100].to_parquet(tmp_path / f"{number}.parquet")
    (tmp_path / "1.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"TO303.*1\.parquet"):
        read(str(tmp_path / "*.parquet"), engine="dask").reduce(Tally.from_predictions)


def test_an_empty_file_adds_nothing_and_one_without_a_column_is_named(tmp_path: Path) -> None:
    frame = table(200)
    frame[:100].to_parquet(tmp_path / "0.parquet")
    frame[:0].to_parquet(tmp_path / "1.parquet")
    frame[100:].to_parquet(tmp_path / "2.parquet")
    source = read(str(tmp_path / "*.parquet"), group="site", engine="dask")
    same(source.reduce(Tally.from_predictions), in_memory(frame))
    frame[100:].drop(columns="p_b").to_parquet(tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"TO309.*0\.parquet and .*2\.parquet differ.*'p_b' in only one of them"):
        source.reduce(Tally.from_predictions)
    frame[100:].drop(columns="label").to_parquet(tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"TO304.*2\.parquet"):
        source.reduce(Tally.from_predictions)


def test_a_row_that_is_wrong_is_named_with_its_partition() -> None:
    frame = table(90)
    frame.loc[70, "p_a"] = 1.7
    with pytest.raises(InputError, match=r"TO102.*row 10.*'p_a'.*partition 2 of the dask dataframe"):
        read(dd.from_pandas(frame, npartitions=3, sort=False)).reduce(Tally.from_predictions)


def test_columns_of_another_type_in_one_file_give_the_right_number(client: Any, tmp_path: Path) -> None:
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


def test_the_audit_and_the_measures_take_a_dataframe_as_it_is() -> None:
    frame = table(400)
    lying = dd.from_pandas(frame, npartitions=3)
    assert measure(lying, "ece").value == pytest.approx(measure(in_memory(frame), "ece").value, rel=1e-12)
    assert audit(lying, resamples=99).to_dict()["data"]["n"] == 400


@pytest.mark.parametrize(
    "method", ["temperature", "bias_corrected_temperature", "vector", "mcllo", "dirichlet", "platt"]
)
def test_a_fit_where_the_rows_lie_has_the_parameters_of_a_fit_in_memory(method: str) -> None:
    frame = table(600)
    P = frame[["p_a", "p_b", "p_c"]].to_numpy()
    local = fit(Predictions(frame["label"].to_numpy(dtype=str), P, classes=["a", "b", "c"]), method)
    distributed = fit(dd.from_pandas(frame, npartitions=4), method)
    np.testing.assert_allclose(distributed.predict_proba(P), local.predict_proba(P), rtol=0, atol=1e-9)


def test_the_sample_behind_the_fix_does_not_depend_on_the_partitions_where_rows_have_ids() -> None:
    frame = table(500)
    frame["id"] = np.arange(500)

    def sampled(partitions: int) -> list[float]:
        source = read(dd.from_pandas(frame, npartitions=partitions, sort=False), row_id="id")
        counted = source.reduce(partial(SampledTally.from_predictions, max_probs=90), keyed=True)
        return counted.sample.rows.p[:, 0].tolist()

    assert len(sampled(1)) == 30
    assert sampled(1) == sampled(3) == sampled(11)


def test_an_engine_for_what_is_no_file_is_refused() -> None:
    with pytest.raises(InputError, match="TO205"):
        read(table(10), engine="dask")
    with pytest.raises(InputError, match="TO203"):
        read("a.parquet", engine="dusk")
