"""Are folders of a partitioned table, other suffixes and remote paths read, or refused with one remedy?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.io.rows import columns, write
from trueodds import InputError, read
from trueodds.io.recalibrated_files import rewrite


@pytest.fixture
def parted(tmp_path: Path) -> Path:
    """Rows of two regions and two years, as Spark and pandas write them."""
    frame = pd.DataFrame({"label": [0, 1, 1, 0], "p_1": [0.25, 0.5, 0.75, 0.125]})
    frame["region"], frame["year"] = ["north", "south", "south", "north"], [2023, 2023, 2024, 2024]
    frame.to_parquet(tmp_path / "data", partition_cols=["region", "year"])
    (tmp_path / "data" / "_SUCCESS").write_text("", encoding="utf-8")
    return tmp_path / "data"


def test_a_partitioned_folder_is_read_with_the_columns_of_its_names(parted: Path) -> None:
    preds = read(parted, group=["region", "year"]).collect()
    rows = zip(preds.p, preds.y, preds.group["region"], preds.group["year"], strict=True)
    assert sorted((float(p), int(y), str(region), int(year)) for p, y, region, year in rows) == [
        (0.125, 0, "north", 2024),
        (0.25, 0, "north", 2023),
        (0.5, 1, "south", 2023),
        (0.75, 1, "south", 2024),
    ]


def test_a_pattern_of_files_in_a_partitioned_folder_has_the_columns_too(parted: Path) -> None:
    assert read(parted / "region=north" / "*" / "*.parquet", group="region").collect().n == 2
    with pytest.raises(InputError, match=r"TO304.*The columns are label, p_1, region, year"):
        read(parted, group="regoin" * 3)


def test_the_column_file_is_the_path_of_the_file_of_a_row(tmp_path: Path) -> None:
    for month, label in (("2025-01", 0), ("2025-02", 1)):
        pd.DataFrame({"label": [label], "p_1": [0.25]}).to_csv(tmp_path / f"{month}.csv", index=False)
    preds = read(tmp_path / "2025-*.csv", group="file").collect()
    assert list(preds.group["file"]) == [str(tmp_path / "2025-01.csv"), str(tmp_path / "2025-02.csv")]
    assert list(preds.y) == [0, 1]
    pd.DataFrame({"label": [1], "p_1": [0.5], "file": ["own"]}).to_csv(tmp_path / "a.csv", index=False)
    assert list(read(tmp_path / "a.csv", group="file").collect().group["file"]) == ["own"]


def test_a_partition_without_a_value_is_a_missing_value(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": [0, 1], "p_1": [0.25, 0.5], "region": ["north", None]})
    for region, name in (("north", "region=north"), (None, "region=__HIVE_DEFAULT_PARTITION__")):
        (tmp_path / name).mkdir()
        frame[frame["region"].isna() == (region is None)].drop(columns="region").to_csv(
            tmp_path / name / "a.csv", index=False
        )
    with pytest.raises(InputError, match=r"TO308.*'region'"):
        read(tmp_path, group="region").collect()
    assert read(tmp_path).collect().n == 2


def test_a_recalibrated_partitioned_folder_keeps_the_columns_of_its_names(parted: Path, tmp_path: Path) -> None:
    rewrite(read(parted, label=None), lambda p: p, tmp_path / "out.csv")
    assert sorted(pd.read_csv(tmp_path / "out.csv")["region"]) == ["north", "north", "south", "south"]


@pytest.mark.parametrize("name", ["a.pq", "a.parquet.gzip", "A.PARQUET.GZIP"])
def test_other_suffixes_of_parquet_are_read_and_written(tmp_path: Path, name: str) -> None:
    pd.DataFrame({"label": [0, 1], "p_1": [0.25, 0.5]}).to_parquet(tmp_path / name, compression="gzip")
    assert read(tmp_path / name).collect().p.tolist() == [0.25, 0.5]
    rewrite(read(tmp_path / name, label=None), lambda p: p, tmp_path / f"out.{name.partition('.')[2]}")
    assert read(tmp_path / f"out.{name.partition('.')[2]}").collect().p.tolist() == [0.25, 0.5]


@pytest.mark.parametrize("path", ["s3://bucket/a.parquet", "gs://bucket/*.csv", "https://host/a.csv", "hdfs://n/a.pq"])
def test_remote_paths_are_refused_with_what_to_do(path: str) -> None:
    with pytest.raises(InputError, match=r"TO301.*Remote paths are not read\..*Copy the file to this machine first"):
        read(path)


def test_a_home_folder_is_expanded_and_one_of_nobody_is_not_found(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "a.csv", columns())
    assert read("~/a.csv").collect().n == 50
    assert rewrite(read("~/a.csv", label=None), np.asarray, "~/b.csv")[0] == 50
    assert (tmp_path / "b.csv").exists()
    with pytest.raises(InputError, match="TO301"):
        read("~nosuchuser/a.csv")
    with pytest.raises(InputError, match="TO314"):
        rewrite(read("~/a.csv", label=None), np.asarray, "~nosuchuser/b.csv")
