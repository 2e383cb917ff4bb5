"""Is whatever is wrong with a file told by code, file, column and row?"""

from __future__ import annotations

import io
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.io.rows import FILES, columns, write
from trueodds import InputError, read
from trueodds.io import Source, files
from trueodds.io.answers import read_answers

TEXT = ("csv", "jsonl")


def refusal(code: str, *words: str) -> Any:
    return pytest.raises(InputError, match=rf"(?s)\[{code}\]" + "".join(f".*{word}" for word in words))


def all_rows(source: Source) -> int:
    return sum(batch.n for batch in source.batches())


@pytest.fixture(params=["with pyarrow", "without"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    return str(request.param)


def test_a_missing_file_is_an_error_that_lists_near_names(tmp_path: Path) -> None:
    write(tmp_path / "preds.csv", columns())
    with refusal("TO301", "Did you mean preds.csv"):
        read(tmp_path / "pred.csv")
    with refusal("TO301", "matches"):
        read(tmp_path / "*.parquet")


def test_a_folder_is_an_error_that_says_what_it_contains(tmp_path: Path) -> None:
    with refusal("TO301", "a folder without files"):
        read(str(tmp_path))
    (tmp_path / "readme.md").write_text("x", encoding="utf-8")
    with refusal("TO301", "a folder with 1 other file"):
        read(str(tmp_path))
    for name in ("a.CSV", "b.csv", "c.parquet"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    with refusal("TO301", "a folder with 2 .csv files"):
        read(str(tmp_path))
    with refusal("TO301", r"for instance .*/\*\.csv"):
        read(str(tmp_path))


@pytest.mark.parametrize("data", ["a.xlsx", 3, None, object(), iter([1])])
def test_what_nobody_reads_is_an_error(tmp_path: Path, data: Any) -> None:
    if isinstance(data, str):
        data = tmp_path / data
        data.write_text("x", encoding="utf-8")
    with refusal("TO302"):
        read(data)


@pytest.mark.parametrize(
    ("name", "fix"),
    [("a.csv.gz", "Unpack it first"), ("a.json", "to .jsonl, one object"), ("a.npy", r"np\.savez")],
)
def test_a_related_format_gets_advice_on_conversion(tmp_path: Path, name: str, fix: str) -> None:
    (tmp_path / name).write_text("x", encoding="utf-8")
    with refusal("TO302", fix):
        read(tmp_path / name)


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow", "stream.arrow", "npz"])
@pytest.mark.parametrize("how", ["text", "empty", "truncated"])
def test_a_file_that_is_not_what_its_suffix_says_is_an_error(tmp_path: Path, kind: str, how: str) -> None:
    path = Path(write(tmp_path / f"a.{kind}", columns()))
    content = path.read_bytes()
    path.write_bytes(
        {"text": b"this is no such file\n" * 9, "empty": b"", "truncated": content[: len(content) // 2]}[how]
    )
    with refusal("TO303", str(path)):
        all_rows(read(path))


def test_a_broken_page_inside_a_parquet_file_gives_no_partial_result(tmp_path: Path) -> None:
    table = columns(n=5000)
    parquet.write_table(pa.table(table), tmp_path / "a.parquet", row_group_size=1000, write_page_checksum=True)
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4000] = b"\xff" * 4000
    (tmp_path / "a.parquet").write_bytes(content)
    with refusal("TO303", "a.parquet"):
        read(tmp_path / "a.parquet", batch_rows=500).reduce(lambda batch: batch.n)


def test_a_damaged_count_of_rows_in_a_parquet_file_loses_none_of_them(tmp_path: Path) -> None:
    parquet.write_table(pa.table(columns(n=150)), tmp_path / "a.parquet", row_group_size=61)
    content = (tmp_path / "a.parquet").read_bytes()
    # The footer is a Thrift record: 0x16 starts the next field, a number, here 61 as 2 * 61; 0x26 skips one field.
    content = content.replace(b"\x16\x7a\x26", b"\x16\x70\x26")  # 56 rows in the groups, still 61 in their columns
    (tmp_path / "a.parquet").write_bytes(content)
    assert sum(batch.num_rows for batch in parquet.ParquetFile(tmp_path / "a.parquet").iter_batches()) == 56 + 56 + 28
    with refusal("TO303", "a.parquet", "140 rows in its row groups, 150 in its footer"):
        all_rows(read(tmp_path / "a.parquet"))


@pytest.mark.parametrize("kind", TEXT)
def test_text_that_is_not_utf8_is_an_error(tmp_path: Path, kind: str, engine: str) -> None:
    row = {"csv": b"label,p_caf\xe9\n0,0.5\n", "jsonl": b'{"label": "caf\xe9", "p_1": 0.5}\n'}[kind]
    (tmp_path / f"a.{kind}").write_bytes(row)
    with refusal("TO303"):
        all_rows(read(tmp_path / f"a.{kind}"))


@pytest.mark.parametrize("kind", FILES)
def test_a_file_without_rows_is_an_error(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / f"a.{kind}", {"label": np.array([], dtype=int), "p_1": np.array([], dtype=float)})
    if kind in ("jsonl", "ndjson"):
        Path(path).write_text("\n", encoding="utf-8")
    with refusal("TO312"):
        read(path).collect()
    with refusal("TO312"):
        all_rows(read(path))


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow", "npz"])
def test_without_pyarrow_typed_files_say_what_to_install(tmp_path: Path, kind: str, monkeypatch: Any) -> None:
    path = write(tmp_path / f"a.{kind}", columns())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    if kind == "npz":
        assert read(path).collect().n == 50
    else:
        with refusal("TO306", r"pip install '\.\[files\]'"):
            read(path)


@pytest.mark.parametrize("kind", TEXT)
def test_without_pyarrow_text_files_give_the_same_predictions(tmp_path: Path, kind: str, monkeypatch: Any) -> None:
    path = write(tmp_path / f"a.{kind}", columns(n=200))
    with_it = read(path, weight="w", group="site").collect()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    without = read(path, weight="w", group="site", batch_rows=33)
    assert type(without.tables[0]).__name__ in ("CsvTable", "JsonLinesTable")  # type: ignore[attr-defined]
    for name in ("p", "y", "weight"):
        np.testing.assert_array_equal(getattr(without.collect(), name), getattr(with_it, name))
    assert all_rows(without) == 200


def test_without_pyarrow_a_duckdb_relation_says_what_to_install(monkeypatch: Any) -> None:
    relation = duckdb.sql("select 1 as label, 0.5::double as p_1")
    monkeypatch.setattr(files, "_has_pyarrow", lambda: False)
    with refusal("TO306"):
        read(relation).collect()


@pytest.mark.parametrize("kind", FILES)
def test_text_where_numbers_belong_is_reported_by_column_and_row(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / f"a.{kind}", {"label": [0, 1], "p_0": [0.5, 0.5], "p_1": ["high", "low"]})
    with refusal("TO307", "'p_1'", f"a.{kind}", "high", "row 0"):
        read(path).collect()


def test_a_word_in_a_later_row_of_a_csv_column_is_reported_by_row(tmp_path: Path, engine: str) -> None:
    rows = ["0,0.5"] * 30 + ["0,half"]
    (tmp_path / "a.csv").write_text("label,p_1\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with refusal("TO307", "'p_1'", "'half' in row 30"):
        all_rows(read(tmp_path / "a.csv", batch_rows=10))


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "feather"])
@pytest.mark.parametrize("column", ["label", "p_0", "w", "site"])
def test_a_missing_value_is_reported_by_column_and_row_of_the_file(tmp_path: Path, kind: str, column: str) -> None:
    table: dict[str, Any] = {name: cells[:9].tolist() for name, cells in columns().items()}
    table[column][7] = None
    path = write(tmp_path / f"a.{kind}", {name: np.array(cells, dtype=object) for name, cells in table.items()})
    if kind == "csv":
        Path(path).write_text(Path(path).read_text(encoding="utf-8").replace("None", ""), encoding="utf-8")
    with refusal("TO308", f"'{column}' of .*a.{kind}", "row 7"):
        all_rows(read(path, weight="w", group="site", batch_rows=5))


def test_a_key_that_a_later_line_lacks_is_a_missing_value(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"label": 0, "p_1": 0.5}\n\n{"label": 0}\n', encoding="utf-8")
    with refusal("TO308", "'p_1'", r"row 1 \(line 3\)"):
        read(tmp_path / "a.jsonl").collect()


@pytest.mark.parametrize("kind", TEXT)
def test_labels_that_turn_from_numbers_into_names_are_an_error(tmp_path: Path, kind: str, engine: str) -> None:
    path = tmp_path / f"a.{kind}"
    cells = ["0"] * 20 + ["cat"]
    if kind == "csv":
        path.write_text("label,p_1\n" + "".join(f"{cell},0.5\n" for cell in cells), encoding="utf-8")
    else:
        path.write_text(
            "".join(f'{{"label": {"0" if c == "0" else chr(34) + c + chr(34)}, "p_1": 0.5}}\n' for c in cells),
            encoding="utf-8",
        )
    with refusal("TO309", "'label'", "row 20"):
        all_rows(read(path, batch_rows=10))


def test_files_read_together_must_agree(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"label": [0], "p_0": [0.5], "p_1": [0.5]})
    write(tmp_path / "b.parquet", {"label": [0], "p_0": [0.5], "p_2": [0.5]})
    with refusal("TO309", "'p_1'"):
        read(tmp_path / "*.parquet")
    write(tmp_path / "b.parquet", {"label": ["a"], "p_0": [0.5], "p_1": [0.5]})
    with refusal("TO309", "'label' of .*b.parquet"):
        read(tmp_path / "*.parquet").collect()
    write(tmp_path / "b.parquet", {"label": [0], "p_0": np.array([0.5], "f4"), "p_1": np.array([0.5], "f4")})
    with refusal("TO309", "b.parquet", "float32"):
        read(tmp_path / "*.parquet").collect()


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "polars"])
@pytest.mark.parametrize("size", [2, 100])
def test_a_list_of_another_length_is_reported_by_row(tmp_path: Path, kind: str, size: int) -> None:
    table = {"label": [0, 0, 0, 0], "probs": [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.2, 0.3, 0.5]]}
    if kind == "jsonl":
        lines = [f'{{"label": 0, "probs": {cells}}}\n' for cells in table["probs"]]
        (tmp_path / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    else:
        parquet.write_table(pa.table(table), tmp_path / "a.parquet")
    data = pl.DataFrame(table) if kind == "polars" else tmp_path / f"a.{kind}"
    with refusal("TO310", "'probs'", "3 values in row 3"):
        all_rows(read(data, probs="probs", batch_rows=size))


def test_arrays_of_unequal_lengths_are_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", label=np.array([0, 1]), probs=np.array([0.5]))
    with refusal("TO310", "equal lengths", "1 rows", "2 rows"):
        read(tmp_path / "a.npz").collect()


def test_unequal_lengths_are_found_in_the_headers_before_an_array_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Compressed zeros: 2 MB may hold 2 GB.
    np.savez_compressed(tmp_path / "a.npz", label=np.zeros(100_000, dtype=np.int8), p=np.zeros(10))
    monkeypatch.setattr(np.lib.format, "read_array", None)
    with refusal("TO310", "equal lengths", "10 rows", "100,000 rows"):
        read(tmp_path / "a.npz", label="label", probs="p").collect()


def test_a_pickled_array_is_never_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", label=np.array(["a", None], dtype=object), probs=np.array([0.5, 0.5]))
    with refusal("TO307", "'label'", "objects"):
        read(tmp_path / "a.npz").collect()


def archived(path: Path, entries: dict[str, bytes], *, claim: int | None = None) -> Path:
    """An archive with these members; with a claim, its directory says that each is so long."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        for entry in archive.infolist() if claim else ():
            entry.file_size = entry.compress_size = claim
    return path


def as_npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def forged(shape: str, kind: str = "<f8") -> bytes:
    """An array of 32 bytes whose header says another shape."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + bytes(32)


def test_a_member_of_an_archive_that_is_no_array_is_no_column(tmp_path: Path) -> None:
    probs = as_npy(np.array([[0.5, 0.5], [0.2, 0.8]]))
    path = archived(tmp_path / "a.npz", {"label": b"\x00\x01", "probs.npy": probs})
    with refusal("TO307", "'label'", "not an .npy array"):
        read(path).collect()


def test_two_members_of_one_name_are_an_error(tmp_path: Path) -> None:
    label = as_npy(np.array([0, 1]))
    path = archived(tmp_path / "a.npz", {"label.npy": label, "label": label, "probs.npy": label})
    with refusal("TO313", "'label'"):
        read(path)


@pytest.mark.parametrize("claim", [None, 2**43], ids=["header alone", "header and directory"])
@pytest.mark.parametrize(
    "entry",
    [forged("(962072674304,)"), forged("(481036337152, 2)"), forged("(2,)", "<U240518168576"), forged("(-4,)")],
    ids=["rows", "matrix", "width", "negative"],
)
def test_a_header_that_asks_for_seven_tebibytes_is_refused_before_memory_is_taken(
    tmp_path: Path, entry: bytes, claim: int | None
) -> None:
    entries = {"label.npy": entry, "probs.npy": entry}
    with refusal("TO303", "a.npz"):
        read(archived(tmp_path / "a.npz", entries, claim=claim)).collect()
    (tmp_path / "a.npz").write_bytes(entry)
    with refusal("TO303", "a.npz"):
        read(tmp_path / "a.npz")


@pytest.mark.parametrize("entry", [forged("(962072674304,)", "<U0"), forged("(962072674304, 0)")])
def test_rows_that_take_no_room_are_none(tmp_path: Path, entry: bytes) -> None:
    path = archived(tmp_path / "a.npz", {"label.npy": entry, "probs.npy": entry})
    with refusal("TO303", "a.npz"):
        read(path).collect()


@pytest.mark.parametrize(
    "line", ['{"label": 0, "p_1": 0.9, "p_1": 0.1}', '{"label": 0, "p_1": 0.9, "x": [{"a": 1, "a": 2}]}']
)
def test_a_key_that_stands_twice_in_a_line_of_json_is_an_error(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"label": 0, "p_1": 0.5}\n' + line + "\n", encoding="utf-8")
    with refusal("TO313", "Line 2", "twice"):
        read(tmp_path / "a.jsonl").collect()


def test_a_question_that_stands_twice_in_a_document_of_json_is_an_error(tmp_path: Path) -> None:
    record = '"q1": {"confidence": 0.9, "correct": true}'
    (tmp_path / "a.json").write_text(f"{{{record}, {record}}}", encoding="utf-8")
    with refusal("TO313", "'q1'"):
        read_answers(tmp_path / "a.json", confidence="confidence", correct="correct")


def test_a_ragged_row_of_a_csv_file_is_reported_by_row_and_line(tmp_path: Path, engine: str) -> None:
    (tmp_path / "a.csv").write_text('label,p_0,p_1,"re\nmark"\n0,0.5,0.5,"a\nb"\n\n0,0.5\n', encoding="utf-8")
    with refusal("TO311", "4 cells", r"2 in row 1 \(line 6\)"):
        read(tmp_path / "a.csv").collect()


@pytest.mark.parametrize("line", ['{"label": 0, "p_1": 0.', "[0, 0.5]", "0.5"])
def test_a_broken_line_of_json_is_reported_by_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"label": 0, "p_1": 0.5}\n' * 3 + line + "\n", encoding="utf-8")
    with refusal("TO311", "Line 4"):
        read(tmp_path / "a.jsonl").collect()


@pytest.mark.parametrize("kind", FILES)
def test_what_predictions_refuse_is_reported_by_row_of_the_file(tmp_path: Path, kind: str) -> None:
    table = columns()
    table["p_1"][33] = -2.0
    path = write(tmp_path / f"a.{kind}", table)
    with refusal("TO102", r"row 33, class 1 \(column 'p_1'\)", f"a.{kind}, rows 30 to 39"):
        all_rows(read(path, batch_rows=10))
    with refusal("TO102", "row 33, class 1", f"a.{kind}"):
        read(path).collect()


def test_what_predictions_refuse_is_reported_by_row_of_the_right_file(tmp_path: Path) -> None:
    table = columns()
    write(tmp_path / "a.csv", table)
    table["label"][3] = 7
    write(tmp_path / "b.csv", table)
    with refusal("TO105", "7 in row 3", "b.csv"):
        read(tmp_path / "*.csv").collect()


def test_a_query_that_fails_is_an_error() -> None:
    with refusal("TO303", "polars"):
        read(pl.scan_parquet("nowhere/at-all.parquet"))
    broken = duckdb.sql("select cast(s as int) as label, 0.5::double as p_1 from (values ('1'), ('x')) t(s)")
    with refusal("TO303", "duckdb"):
        read(broken).collect()
