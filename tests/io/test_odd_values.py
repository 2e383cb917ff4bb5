"""Are values that no array holds, or that Python reads in a way of its own, told by code and row?"""

from __future__ import annotations

import decimal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trueodds import InputError, Predictions, read
from trueodds.io import conversion
from trueodds.io.answers import read_answers

HUGE = [10**400, -(10**400), 10**5000, decimal.Decimal("sNaN")]


def refusal(code: str, *words: str) -> Any:
    return pytest.raises(InputError, match=rf"(?s)\[{code}\]" + "".join(f".*{word}" for word in words))


@pytest.fixture(params=["with pyarrow", "without"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    return str(request.param)


def read_text(path: Path, text: str, **settings: Any) -> Predictions:
    path.write_text(text, encoding="utf-8")
    return read(path, **settings).collect()


@pytest.mark.parametrize("value", HUGE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("column", ["p_1", "w"])
def test_a_number_that_no_float_holds_is_reported_by_row(value: Any, column: str) -> None:
    table: dict[str, list[Any]] = {"label": [0, 1, 1], "p_1": [0.5, 0.25, 0.5], "w": [1.5, 2, 1]}
    table[column][1] = value
    for data in (table, pd.DataFrame(table, dtype=object)) if isinstance(value, int) else (table,):
        with refusal("TO307", f"'{column}'", "in row 1"):
            read(data, weight="w").collect()


@pytest.mark.parametrize("column", ["label", "site"])
def test_a_whole_number_beyond_64_bits_is_no_name(column: str) -> None:
    table: dict[str, list[Any]] = {"label": [0, 1], "p_1": [0.5, 0.25], "site": [1, 2]}
    table[column][1] = 10**5000
    with refusal("TO307", f"'{column}'", "64 bits"):
        read(table, group="site").collect()


@pytest.mark.parametrize("cell", ["1" * 400, "9" * 5000, "-" + "9" * 5000], ids=len)
def test_thousands_of_digits_in_a_csv_file_are_beyond_every_float(tmp_path: Path, engine: str, cell: str) -> None:
    with refusal("TO103", "row 1"):
        read_text(tmp_path / "a.csv", f"label,p_1\n0,0.5\n1,{cell}\n")
    with refusal("TO106"):
        read_text(tmp_path / "a.csv", f"label,p_1\n0,0.5\n{cell},0.5\n")


def test_identifiers_beyond_64_bits_are_names_and_none_is_rounded_into_another(tmp_path: Path, engine: str) -> None:
    cells = ["12345678901234567890", "12345678901234567891", "1"]
    text = "label,p_1,site\n" + "".join(f"0,0.5,{cell}\n" for cell in cells)
    assert read_text(tmp_path / "a.csv", text, group="site").group["site"].tolist() == cells


def test_a_column_that_is_named_by_thousands_of_digits_is_a_class(tmp_path: Path, engine: str) -> None:
    preds = read_text(tmp_path / "a.csv", f"label,p_0,p_{'9' * 5000}\n0,0.5,0.5\n")
    assert preds.y is not None
    assert preds.y.tolist() == [0]


@pytest.mark.parametrize(
    ("cell", "code", "word"),
    [
        ("9" * 400, "TO307", "row 1"),
        ("9" * 5000, "TO311", "Line 2.*thousands of digits"),
        ("NaN", "TO103", "row 1"),
        ("Infinity", "TO103", "row 1"),
        ("-Infinity", "TO103", "row 1"),
        ("1e400", "TO103", "row 1"),
        ("null", "TO308", "row 1"),
        ("[" * 100_000, "TO311", "Line 2"),
    ],
)
@pytest.mark.parametrize("column", ["p_1", "w"])
def test_a_number_of_json_that_is_none_is_reported_by_row(
    tmp_path: Path, cell: str, code: str, word: str, column: str
) -> None:
    cells = {"p_1": "0.5", "w": "1.5", column: cell}
    line = f'{{"label": 1, "p_1": {cells["p_1"]}, "w": {cells["w"]}}}'
    code = "TO110" if (column, code) == ("w", "TO103") else code
    with refusal(code, word):
        read_text(tmp_path / "a.jsonl", '{"label": 0, "p_1": 0.5, "w": 1}\n' + line + "\n", weight="w")


@pytest.mark.parametrize("cell", ["NaN", "Infinity", "1e400"])
def test_a_label_of_json_that_is_no_number_is_reported_by_row(tmp_path: Path, cell: str) -> None:
    with refusal("TO103", "row 1"):
        read_text(tmp_path / "a.jsonl", '{"label": 0, "p_1": 0.5}\n{"label": ' + cell + ', "p_1": 0.5}\n')


@pytest.mark.parametrize("column", ["label", "site"])
@pytest.mark.parametrize("text", ["\\ud800", "a\\udfff", "a\\u0000"])
def test_half_a_surrogate_pair_and_a_character_that_numpy_drops_are_no_name(
    tmp_path: Path, column: str, text: str
) -> None:
    cells = {"label": '"a"', "site": '"x"', column: f'"{text}"'}
    line = f'{{"label": {cells["label"]}, "site": {cells["site"]}, "p_a": 0.5, "p_b": 0.5}}\n'
    with refusal("TO307", f"'{column}'", "row 1"):
        read_text(tmp_path / "a.jsonl", line.replace(text, "b") + line, group="site")


def test_whole_surrogate_pairs_are_text(tmp_path: Path) -> None:
    line = '{"label": 0, "site": "\\ud83d\\ude00", "p_1": 0.5}\n'
    assert read_text(tmp_path / "a.jsonl", line, group="site").group["site"].tolist() == ["\U0001f600"]


def test_half_a_surrogate_pair_in_the_name_of_a_column_is_refused(tmp_path: Path) -> None:
    with refusal("TO313", "ud800"):
        read_text(tmp_path / "a.jsonl", '{"label": 0, "p_\\ud800": 0.5, "p_1": 0.5}\n')


def test_surrogates_in_what_is_not_read_are_of_no_matter(tmp_path: Path) -> None:
    assert read_text(tmp_path / "a.jsonl", '{"label": 0, "p_1": 0.5, "text": "cut \\ud83d"}\n').n == 1


@pytest.mark.parametrize("points", [0xD800, 0x110000])
def test_numbers_that_are_no_character_in_an_array_of_text_are_refused(tmp_path: Path, points: int) -> None:
    site = np.array(["north", "south"])
    site.view(np.uint32)[6] = points
    np.savez(tmp_path / "a.npz", label=[0, 1], probs=[0.5, 0.5], site=site)
    with refusal("TO307", "'site'", "row 1"):
        read(tmp_path / "a.npz", group="site").collect()


@pytest.mark.parametrize("column", ["label", "p_1", "w", "site", "probs"])
@pytest.mark.parametrize("absent", [pd.NA, None, pd.NaT], ids=repr)
def test_pandas_words_for_nothing_are_missing_values(column: str, absent: Any) -> None:
    table: dict[str, list[Any]] = {"label": [0, 1], "p_1": [0.5, 0.5], "w": [1, 2], "site": ["x", "y"]}
    settings: dict[str, Any] = {"weight": "w", "group": "site"}
    if column == "probs":
        table["probs"] = [[0.5, 0.5], [0.5, absent]]
        settings["probs"] = "probs"
    else:
        table[column][1] = absent
    for data in (table, {name: np.array(cells, dtype=object) for name, cells in table.items() if name != "probs"}):
        if column in data:
            with refusal("TO308", f"'{column}'", "row 1"):
                read(data, **settings).collect()


def test_a_masked_value_is_missing_in_a_column_among_several() -> None:
    p = np.ma.array([0.5, 0.25], mask=[False, True])
    with refusal("TO308", "'p_1'", "row 1"):
        read({"label": [0, 1], "p_0": [0.5, 0.75], "p_1": p}).collect()
    assert read({"label": [0, 1], "p_0": [0.5, 0.75], "p_1": np.ma.array(p.data)}).collect().n == 2


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_one_long_text_does_not_take_the_memory_of_as_many_as_there_are_rows(
    tmp_path: Path, kind: str, engine: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(conversion, "MAX_TEXT_BYTES", 1 << 16)
    if engine == "with pyarrow":
        for module in ("arrow", "arrow_csv"):
            monkeypatch.setattr(f"trueodds.io.{module}.MAX_TEXT_BYTES", 1 << 16)
    cells = ["north"] * 100
    cells[70] = "x" * 1_000
    form = {"csv": "0,0.5,{}\n", "jsonl": '{{"label": 0, "p_1": 0.5, "site": "{}"}}\n'}[kind]
    text = ("label,p_1,site\n" if kind == "csv" else "") + "".join(map(form.format, cells))
    with refusal("TO307", "'site'", "1,000 characters in row 70"):
        read_text(tmp_path / f"a.{kind}", text, group="site")
    assert read_text(tmp_path / f"a.{kind}", text).n == 100


@pytest.mark.parametrize("value", [10**400, 10**5000], ids=["400 digits", "5,000 digits"])
def test_records_with_infinite_numbers_are_reported_by_row(value: int) -> None:
    record = {"confidence": 0.9, "correct": True, "id": 1}
    with refusal("TO307", "'confidence'", "row 1"):
        read_answers([record, record | {"confidence": value}], confidence="confidence", correct="correct")
    with refusal("TO116", "'correct'") if value < 10**4000 else refusal("TO307", "'correct'"):
        read_answers([record, record | {"correct": value}], confidence="confidence", correct="correct")
    options = {"z": [-1.0, -2.0], "y": value}
    with refusal("TO318") if value < 10**4000 else refusal("TO307", "'y'"):
        read_answers([options], options="z", answer="y")
    with refusal("TO307", "'z'"):
        read_answers([{"z": [-value, -1.0], "y": 0}], options="z", answer="y")


def test_groups_of_records_are_text_that_can_be_written() -> None:
    record = {"confidence": 0.9, "correct": True, "site": "\ud800"}
    with refusal("TO307", "'site'"):
        read_answers([record], confidence="confidence", correct="correct", group="site")
