"""Does a rewritten file hold the new probabilities, and everything else as it was?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import feather, parquet

from tests.io.rows import FILES, columns, write
from trueodds import InputError, read
from trueodds.io.recalibrated_files import rewrite
from trueodds.io.stated_confidence import PercentScale

OUT = ("parquet", "csv", "jsonl", "feather", "npz")


def flattened(P: NDArray[Any]) -> NDArray[Any]:
    return P * 0.5 + 0.5 / P.shape[1]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("out", OUT)
def test_every_format_becomes_every_format(tmp_path: Path, kind: str, out: str) -> None:
    table = columns()
    source = read(write(tmp_path / f"a.{kind}", table), label=None, batch_rows=20)
    assert rewrite(source, flattened, tmp_path / f"out.{out}")[0] == 50
    reread = read(tmp_path / f"out.{out}", weight="w", group=["site", "year"], cluster="patient").collect()
    P = flattened(np.stack([table[f"p_{j}"] for j in range(3)], axis=1))
    np.testing.assert_array_equal(reread.p, P)
    np.testing.assert_array_equal(reread.y, table["label"])
    np.testing.assert_array_equal(reread.w, table["w"])
    np.testing.assert_array_equal(reread.group["site"], table["site"])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"a.{kind}", f"out.{out}"])


def test_other_columns_keep_their_types_and_their_gaps(tmp_path: Path) -> None:
    when = pa.array([1, None, 3], pa.timestamp("us", tz="UTC"))
    nested = pa.array([{"a": 1}, None, {"a": 3}])
    table = pa.table(
        {"when": when, "p_1": pa.array([0.2, 0.4, 0.6], pa.float32()), "nested": nested, "id": [7, None, 9]}
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    for out, load in (("b.parquet", parquet.read_table), ("b.feather", feather.read_table)):
        rewrite(read(tmp_path / "a.parquet", label=None, batch_rows=2), flattened, tmp_path / out)
        new = load(tmp_path / out)
        assert new.column_names == table.column_names
        for name in ("when", "nested", "id"):
            assert new[name].to_pylist() == table[name].to_pylist()
        assert new.schema.field("p_1").type == pa.float64()


def test_the_text_of_other_csv_cells_is_kept(tmp_path: Path, monkeypatch: Any) -> None:
    text = 'zip,p_1,remark\n00123,0.5,"a ""b"", c"\n1e3,1,\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    rewrite(read(tmp_path / "a.csv", label=None), lambda P: P, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == text.replace(",1,", ",1.0,")
    with pytest.raises(InputError, match="TO306"):
        rewrite(read(tmp_path / "a.csv", label=None), lambda P: P, tmp_path / "a.parquet")


@pytest.mark.parametrize("out", ["parquet", "jsonl", "npz"])
def test_a_column_of_lists_stays_one(tmp_path: Path, out: str) -> None:
    P = np.array([[0.25, 0.75], [1.0, 0.0]])
    path = write(tmp_path / "a.parquet", {"label": [0, 1], "probs": P})
    rewrite(read(path, probs="probs"), flattened, tmp_path / f"b.{out}")
    np.testing.assert_array_equal(read(tmp_path / f"b.{out}", probs="probs").collect().p, flattened(P))


def test_logits_are_written_as_probabilities_under_their_own_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", {"label": ["a"], "z_a": [0.0], "z_b": [0.0]})
    rewrite(read(path, logits="z_*"), lambda P: P, tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text(encoding="utf-8") == "label,p_a,p_b\na,0.5,0.5\n"


def test_the_transform_gets_two_columns_for_one_of_the_second_class(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", {"p_1": [0.25, 0.5]})
    shapes = []
    rewrite(read(path, label=None), lambda P: (shapes.append(P.shape), P)[1], tmp_path / "b.csv")
    assert shapes == [(2, 2)]
    assert (tmp_path / "b.csv").read_text(encoding="utf-8") == "p_1\n0.25\n0.5\n"


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    table = columns()
    table["p_0"][40] = 3.0
    path = write(tmp_path / "a.parquet", table)
    (tmp_path / "b.csv").write_text("old", encoding="utf-8")
    with pytest.raises(InputError, match=r"TO102.*row 40"):
        rewrite(read(path, label=None, batch_rows=10), flattened, tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text(encoding="utf-8") == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", columns())
    source = read(path, label=None)
    for out in ("b.xlsx", "nowhere/b.csv"):
        with pytest.raises(InputError, match="TO314"):
            rewrite(source, flattened, tmp_path / out)
    with pytest.raises(InputError, match=r"TO314.*\(50, 2\)"):
        rewrite(source, lambda P: P[:, :2], tmp_path / "b.csv")
    with pytest.raises(InputError, match="TO314"):
        rewrite(read(columns(), label=None), flattened, tmp_path / "b.csv")
    with pytest.raises(InputError, match=r"TO304.*label"):
        source.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_a_confidence_in_percent_is_written_in_percent(tmp_path: Path) -> None:
    """Half of the way to one half: 90 % becomes 70 %, and 75 % becomes 62.5 %."""
    (tmp_path / "a.csv").write_text("c,ok\n90,yes\n75,no\n", encoding="utf-8")
    source = read(tmp_path / "a.csv", label=None, confidence="c")
    rewrite(source, flattened, tmp_path / "b.csv", percent=PercentScale())
    assert (tmp_path / "b.csv").read_text(encoding="utf-8") == "c,ok\n70.0,yes\n62.5,no\n"
