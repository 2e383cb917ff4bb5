"""Does every kind of file and frame give the same Predictions?"""

from __future__ import annotations

import decimal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.io.rows import FILES, TYPED, columns, write
from trueodds import InputError, Predictions, read
from trueodds.io import Source
from trueodds.io.files import FORMATS

EXTRAS: dict[str, Any] = {"weight": "w", "group": ["site", "year"], "cluster": "patient"}
CLI_PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_every_format_is_tested_here_and_with_broken_files():
    assert {file_format.suffixes[0][1:] for file_format in FORMATS} <= set(FILES)


def test_the_page_and_the_docstring_list_every_suffix():
    page = CLI_PAGE.read_text(encoding="utf-8")
    for file_format in FORMATS:
        assert f"| {', '.join(f'`{suffix}`' for suffix in file_format.suffixes)} |" in page
        assert ", ".join(file_format.suffixes) in read.__doc__


def expected(table: dict[str, Any]) -> Predictions:
    P = np.stack([table[name] for name in table if name.startswith("p_")], axis=1)
    groups = {"site": table["site"], "year": table["year"]}
    return Predictions(table["label"], P, weight=table["w"], group=groups, cluster=table["patient"])


def assert_same(a: Predictions, b: Predictions) -> None:
    assert (a.n, a.k, a.kind, a.classes, a.dtype) == (b.n, b.k, b.kind, b.classes, b.dtype)
    for name in ("p", "y", "votes", "weight", "cluster"):
        one, two = getattr(a, name), getattr(b, name)
        assert (one is None) == (two is None), name
        if one is not None:
            assert one.dtype == two.dtype, name
            np.testing.assert_array_equal(one, two, err_msg=name)
    assert a.group.keys() == b.group.keys()
    for name in a.group:
        np.testing.assert_array_equal(a.group[name], b.group[name])


def joined(source: Source) -> Predictions:
    """The batches below each other, as one would put them together by hand."""
    parts = list(source.batches())
    groups = {name: np.concatenate([part.group[name] for part in parts]) for name in parts[0].group}
    weight = None if parts[0].weight is None else np.concatenate([part.weight for part in parts])
    y, p = np.concatenate([part.y for part in parts]), np.concatenate([part.p for part in parts])
    return Predictions(y, p, weight=weight, group=groups)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_any_kind_gives_the_same_predictions_bit_by_bit(tmp_path: Path, kind: str) -> None:
    table = columns()
    source = read(write(tmp_path / f"a.{kind}", table), **EXTRAS)
    assert_same(source.collect(), expected(table))


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_short_floats_stay_what_they_are(tmp_path: Path, kind: str, dtype: Any) -> None:
    table = columns(dtype=dtype)
    preds = read(write(tmp_path / f"a.{kind}", table), **EXTRAS).collect()
    assert_same(preds, expected(table))
    assert preds.dtype == np.dtype(dtype).name


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_any_batching_gives_the_same_rows_and_can_be_read_again(tmp_path: Path, kind: str, size: int) -> None:
    table = columns()
    source = read(write(tmp_path / f"a.{kind}", table), weight="w", group=["site", "year"], batch_rows=size)
    for _ in range(2):
        assert all(batch.n <= size for batch in source.batches())
        rows = joined(source)
        np.testing.assert_array_equal(rows.p, source.collect().p)
        np.testing.assert_array_equal(rows.y, table["label"])
        np.testing.assert_array_equal(rows.w, table["w"])
        np.testing.assert_array_equal(rows.group["site"], table["site"])


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": lambda table: duckdb.from_arrow(pa.table(table)),
    "mapping": dict,
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_frame_of_any_kind_gives_the_same_predictions(kind: str, dtype: Any) -> None:
    table = columns(dtype=dtype)
    source = read(FRAMES[kind](table), batch_rows=7, **EXTRAS)
    assert_same(source.collect(), expected(table))
    assert [batch.n for batch in source.batches()] == [7] * 7 + [1]
    np.testing.assert_array_equal(joined(source).p, expected(table).p)


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars lazy", "pyarrow", "duckdb"])
def test_a_frame_with_names_lists_and_categories_is_read(kind: str) -> None:
    lists = [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]
    names = ["no", "yes", "no"]
    data = pd.DataFrame({"label": names, "probs": lists, "site": pd.Categorical(["a", "b", "a"])})
    frame = data if kind == "pandas" else FRAMES[kind]({"label": names, "probs": lists, "site": ["a", "b", "a"]})
    if kind == "polars":
        frame = frame.with_columns(pl.col("site").cast(pl.Categorical))
    preds = read(frame, probs="probs", group="site", classes=["no", "yes"]).collect()
    assert preds.p.tolist() == lists
    assert preds.y.tolist() == [0, 1, 0]
    assert preds.group["site"].tolist() == ["a", "b", "a"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars lazy", "pyarrow", "duckdb"])
def test_a_missing_value_in_a_frame_is_reported_by_column_and_row(kind: str) -> None:
    table = pa.table({"label": [0, 1, None], "p_0": [0.5] * 3, "p_1": [0.5] * 3})
    made = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table), "pyarrow": lambda: table}
    made |= {"polars lazy": lambda: pl.from_arrow(table).lazy(), "duckdb": lambda: duckdb.from_arrow(table)}
    with pytest.raises(InputError, match=r"TO308.*'label'.*row 2"):
        read(made[kind](), batch_rows=2).collect()


def test_predictions_and_pairs_are_sources_too() -> None:
    table = columns()
    preds = expected(table)
    source = read(preds, batch_rows=20)
    assert source.collect() is preds
    assert [batch.n for batch in source.batches()] == [20, 20, 10]
    assert source.n_probabilities == 150
    pair = read((table["label"], preds.p), weight=table["w"]).collect()
    np.testing.assert_array_equal(pair.p, preds.p)
    assert read(([1], [[0.0, 0.0]]), logits=True).collect().p.tolist() == [[0.5, 0.5]]
    assert read(source) is source


def test_several_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    table = columns()
    for part, rows in enumerate([slice(0, 20), slice(20, 20), slice(20, 50)]):
        write(tmp_path / f"part-{part}.parquet", {name: cells[rows] for name, cells in table.items()})
    source = read(tmp_path / "part-*.parquet", **EXTRAS)
    assert_same(source.collect(), expected(table))
    assert source.rows == 50
    assert source.n_probabilities == 150


def test_decimals_become_the_nearest_floats(tmp_path: Path) -> None:
    cents = [decimal.Decimal(i).scaleb(-2) for i in range(101)]
    table = pa.table({"label": [0] * 101, "p_1": pa.array(cents, pa.decimal128(30, 12))})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    # The float nearest to i/100 is what the text "0.01 i" parses to.
    assert read(tmp_path / "a.parquet").collect().p.tolist() == [float(str(cent)) for cent in cents]


def test_whole_numbers_are_probabilities_in_float64(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", {"label": [0, 1], "p_0": [1, 0], "p_1": [0, 1]})
    preds = read(path).collect()
    assert preds.p.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert preds.dtype == "float64"


def test_floats_in_a_csv_file_after_a_block_of_whole_numbers_are_exact(tmp_path: Path) -> None:
    values = ["0"] * 30 + ["0.1", "0.30000000000000004", "1e-320", "0.1234567890123456789"]
    (tmp_path / "a.csv").write_text("label,p_1\n" + "".join(f"0,{value}\n" for value in values), encoding="utf-8")
    assert read(tmp_path / "a.csv", batch_rows=10).collect().p.tolist() == [float(value) for value in values]


@pytest.mark.slow
def test_reading_imports_no_pandas(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"a.{kind}", columns()) for kind in FILES]
    script = (
        "import sys\nfrom trueodds import read\n"
        f"for path in {paths!r}:\n"
        "    read(path, weight='w', group='site', cluster='patient').collect()\n"
        "    list(read(path, batch_rows=9).batches())\n"
        "assert not {'pandas', 'polars', 'duckdb', 'sklearn'} & set(sys.modules), sorted(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-500:]
