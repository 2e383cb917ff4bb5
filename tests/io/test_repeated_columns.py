"""Is a column name that occurs twice an error only if one of the columns is read?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.io.test_columns import refusal
from trueodds import Predictions, audit, measure, read
from trueodds.io.recalibrated_files import rewrite

FORMS = ("pandas", "arrow table", "parquet", "arrow", "csv")
Y, RISK = [0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4]
BRIER = 0.1125  # (0.04 + 0.09 + 0.16 + 0.16) / 4


def with_repeated(form: str, folder: Path, repeated: str) -> Any:
    """Four rows with a label and two probabilities, an id, and once more a column of the name `repeated`."""
    columns = {"id": [1, 2, 3, 4], "label": Y, "p_0": [1 - p for p in RISK], "p_1": RISK}
    names, cells = [*columns, repeated], [*columns.values(), columns[repeated]]
    if form == "pandas":
        return pd.concat([pd.Series(column, name=name) for name, column in zip(names, cells, strict=True)], axis=1)
    table = pa.Table.from_arrays([pa.array(column) for column in cells], names=names)
    path = folder / f"{repeated}.{form}"
    if form == "arrow table":
        return table
    if form == "parquet":
        parquet.write_table(table, path)
    elif form == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        lines = [names, *zip(*cells, strict=True)]
        path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("form", FORMS)
def test_a_repeated_column_is_an_error_only_if_it_is_read(tmp_path: Path, form: str) -> None:
    unused = with_repeated(form, tmp_path, "id")
    assert float(measure(unused, "brier", interval=None)) == pytest.approx(BRIER, abs=1e-12)
    with refusal("TO313", "two columns of the same name", "'id'"):
        read(unused, group="id")
    for name in ("p_1", "label"):
        with refusal("TO313", "two columns of the same name", f"'{name}'"):
            read(with_repeated(form, tmp_path, name))


def test_the_csv_reader_without_arrow_finds_the_same_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueodds.io.files._has_pyarrow", lambda: False)
    assert read(with_repeated("csv", tmp_path, "id")).collect().p[:, 1].tolist() == RISK


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
def test_a_file_with_a_repeated_column_is_not_rewritten_without_it(tmp_path: Path, form: str) -> None:
    for out in ("out.parquet", "out.csv", "out.jsonl"):
        with refusal("TO313", "two columns of the same name", "'id'"):
            rewrite(read(with_repeated(form, tmp_path, "id"), label=None), lambda P: P, tmp_path / out)


def test_arrays_do_not_come_from_frames_with_equal_names() -> None:
    twice = pd.DataFrame(np.c_[np.subtract(1, RISK), RISK], columns=["a", "a"])
    with refusal("TO313", "two columns of the same name", "'a'"):
        Predictions(Y, twice)
    with refusal("TO313", "'a'"):
        Predictions(Y, RISK, group=twice)
    with refusal("TO313", "'a'"):
        Predictions.from_multilabel(np.c_[Y, Y], twice)
    with refusal("TO313", "'a'"):
        Predictions.from_logits(Y, twice)
    with refusal("TO313", "'a'"):
        Predictions(Y, pa.Table.from_arrays([pa.array(RISK), pa.array(RISK)], names=["a", "a"]))


def test_an_audit_reads_a_frame_with_an_unused_repeated_column(tmp_path: Path) -> None:
    report = audit(with_repeated("pandas", tmp_path, "id"), rng=0)
    assert report.to_dict()["data"]["n"] == 4
    with refusal("TO313", "'p_1'"):
        audit(with_repeated("pandas", tmp_path, "p_1"))


def test_numbers_of_a_text_file_have_their_form_beside_an_unused_repeated_column(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,id,label,p_0,p_1,p_note\n1,a,0,80%,20%,x\n2,b,1,30%,70%,y\n", encoding="utf-8")
    source = read(str(path))
    assert source.collect().p.tolist() == [[0.8, 0.2], [0.3, 0.7]]
    assert [note.code for note in source.notes] == ["TN314", "TN312"]


def test_a_repeated_column_of_text_is_not_left_out_of_a_pattern(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("label,p_0,p_1,p_2,p_2\n0,0.8,0.1,0.1,x\n1,0.2,0.7,0.1,y\n", encoding="utf-8")
    with refusal("TO313", "'p_2'"):
        read(str(path))
