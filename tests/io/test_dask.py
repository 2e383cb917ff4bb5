"""Does Dask give the sums that arrays give without a cluster, by threads, for dataframes, bags and files?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io.engines import in_memory, same, table
from trueodds import InputError, Predictions, fit, read
from trueodds.tallies.reservoir import SampledTally
from trueodds.tallies.tally import Tally

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
bag = pytest.importorskip("dask.bag")


def test_without_a_cluster_the_threads_of_this_machine_do_it() -> None:
    frame = table(200)
    same(read(dd.from_pandas(frame, npartitions=3), group="site").reduce(Tally.from_predictions), in_memory(frame))


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


@pytest.mark.parametrize("method", ["bias_corrected_temperature", "vector", "mcllo", "dirichlet", "platt"])
def test_a_fit_where_the_rows_lie_has_the_parameters_of_a_fit_in_memory(method: str) -> None:
    frame = table(600)
    P = frame[["p_a", "p_b", "p_c"]].to_numpy()
    local = fit(Predictions(frame["label"].to_numpy(dtype=str), P, classes=["a", "b", "c"]), method)
    fitted = fit(dd.from_pandas(frame, npartitions=4), method)
    np.testing.assert_allclose(fitted.predict_proba(P), local.predict_proba(P), rtol=0, atol=1e-9)


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
