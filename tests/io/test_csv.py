"""Do both CSV readers, with Arrow and without, agree on quotes, lines and types, whatever the chunks they read?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from trueodds import InputError, read
from trueodds.io import csv_files


@pytest.fixture(params=["with pyarrow", "without"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "pyarrow", None)


def written(path: Path, cells: list[str], *, end: str = "\n", read_as: str = "site") -> str:
    """Rows of a label, a probability and a last column of text with these cells."""
    lines = [f"label,p_1,{read_as}"] + [f"{i % 2},0.5,{cell}" for i, cell in enumerate(cells)]
    path.write_text(end.join(lines) + end, encoding="utf-8", newline="")
    return str(path)


@pytest.mark.parametrize(("rows", "odd"), [(200, 19), (200_000, 999)])
@pytest.mark.parametrize("settings", [{"group": "site"}, {}], ids=["read", "not read"])
def test_a_stray_quote_in_the_last_column_is_reported_by_its_line(
    tmp_path: Path, rows: int, odd: int, settings: dict[str, Any]
) -> None:
    cells = ["north"] * rows
    cells[odd] = '"north'
    with pytest.raises(InputError, match=rf"TO311.*opens in line {odd + 2} and is not closed"):
        read(written(tmp_path / "a.csv", cells), **settings).collect()


@pytest.mark.parametrize("size", [16, 1 << 22])
def test_a_stray_quote_among_quoted_cells_does_not_swallow_a_row(tmp_path: Path, monkeypatch: Any, size: int) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", size)
    cells = ['"north"'] * 9
    cells[4] = '"north'
    with pytest.raises(InputError, match=r"TO311.*opens in line 6 and closes in line 7 before 'north\"'"):
        read(written(tmp_path / "a.csv", cells)).collect()


def test_a_quote_that_is_open_for_too_long_is_refused_without_looking_for_its_end(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", 100)
    monkeypatch.setattr(csv_files, "MAX_RECORD_BYTES", 1000)
    (tmp_path / "a.csv").write_text("label,p_1,site\n0,0.5," + '"' + "1,0.5,north\n" * 20_000 + '"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"TO311.*opens in line 2 and is not closed"):
        read(tmp_path / "a.csv", batch_rows=1).collect()


def test_a_line_that_never_ends_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", 100)
    monkeypatch.setattr(csv_files, "MAX_RECORD_BYTES", 1000)
    (tmp_path / "a.csv").write_text("label,p_1\n0,0.5\n1," + "0" * 200_000, encoding="utf-8")
    with pytest.raises(InputError, match=r"TO311.*more than 1,000 bytes.*line 3"):
        read(tmp_path / "a.csv", batch_rows=1).collect()


@pytest.mark.parametrize("size", [8, 60, 1 << 22])
def test_quotes_inside_of_bare_cells_mean_themselves(tmp_path: Path, monkeypatch: Any, size: int) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", size)
    cells = ['5" pipe', '"a ""b"", c"', 'x""', '"two\nlines"', '"6"" pipe"', '""', "x"]
    path = written(tmp_path / "a.csv", cells[:5] + cells[6:])
    assert read(path, group="site").collect().group["site"].tolist() == [
        '5" pipe',
        'a "b", c',
        'x""',
        "two\nlines",
        '6" pipe',
        "x",
    ]
    with pytest.raises(InputError, match=r"TO308.*'site'.*row 5"):
        read(written(tmp_path / "a.csv", cells), group="site").collect()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n", "\r\n\r\n"])
@pytest.mark.parametrize("size", [1, 7, 1 << 22])
def test_every_line_end_is_one_and_blank_lines_are_none(tmp_path: Path, monkeypatch: Any, end: str, size: int) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", size)
    preds = read(written(tmp_path / "a.csv", ["x", '"y"', "z"], end=end), group="site").collect()
    assert preds.group["site"].tolist() == ["x", "y", "z"]


def test_a_broken_line_is_reported_by_its_line_behind_line_ends_of_every_kind(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", 3)
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbf\r\nlabel,p_1\r\n0,0.5\r\r\n1,"0.\r\n5"\n1\n')
    with pytest.raises(InputError, match=r"TO311.*1 in row 2 \(line 7\)"):
        read(tmp_path / "a.csv").collect()


def test_a_cell_of_a_megabyte_is_read(tmp_path: Path) -> None:
    cells = ["x" * 1_000_000, '"' + "y, " * 300_000 + '"']
    groups = read(written(tmp_path / "a.csv", cells), group="site").collect().group["site"].tolist()
    assert groups == [cells[0], cells[1].strip('"')]


def test_numbers_that_arrow_does_not_read_are_numbers(tmp_path: Path) -> None:
    cells = ["+0.5", " 0.25", "\u00a00.5", "\u0660.5", "1e-400", "0.1"]
    (tmp_path / "a.csv").write_text("label,p_1\n" + "".join(f"0,{cell}\n" for cell in cells), encoding="utf-8")
    assert read(tmp_path / "a.csv", batch_rows=4).collect().p.tolist() == [0.5, 0.25, 0.5, 0.5, 0.0, 0.1]


def test_what_only_arrow_takes_for_a_number_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,p_1\n0,0.5\n0,nan(x)\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"TO307.*'nan\(x\)' in row 1"):
        read(tmp_path / "a.csv").collect()


def test_what_a_column_holds_is_settled_by_its_first_batch_whatever_is_read_at_a_time(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", 32)
    path = written(tmp_path / "a.csv", ["1"] * 30 + ["north"])
    assert read(path, group="site").collect().group["site"].tolist() == ["1"] * 30 + ["north"]
    with pytest.raises(InputError, match=r"TO309.*'north' in row 30"):
        read(path, group="site", batch_rows=20).collect()


@pytest.mark.parametrize("cell", ["caf\xe9".encode("latin-1"), b"\xed\xa0\x80", b"a\0b"])
def test_bytes_that_are_no_text_are_refused_in_columns_that_are_not_read(tmp_path: Path, cell: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(b"label,p_1,site\n0,0.5,north\n1,0.5," + cell + b"\n")
    with pytest.raises(InputError, match=r"TO303.*line 3"):
        read(tmp_path / "a.csv").collect()


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_quoted_cells_of_another_separator_are_read_as_with_commas(tmp_path: Path, separator: str) -> None:
    """Regression: the error asked to correct the quotes, which were right."""
    path = tmp_path / "rows.csv"
    path.write_text(
        separator.join(['"a note"', "label", "p"]) + "\n" + separator.join(['"x\ny"', "1", "0.4"]) + "\n",
        encoding="utf-8",
    )
    preds = read(str(path), probs="p", group="a note").collect()
    assert (preds.p.tolist(), preds.y.tolist(), preds.group["a note"].tolist()) == ([0.4], [1], ["x\ny"])
    with pytest.raises(InputError, match=r"TO311.*pass separator="):
        read(str(path), separator=",")
