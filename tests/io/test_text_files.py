"""Are text files of other separators, decimal marks and forms of numbers read right, or refused with one remedy?"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueodds import InputError, Predictions, fit, read, read_answers
from trueodds.calibrators import fitted_calibrator
from trueodds.io import csv_files
from trueodds.io.recalibrated_files import rewrite

P = [0.25, 0.5, 0.125, 0.875]
Y = [0, 1, 0, 1]


@pytest.fixture(params=["with pyarrow", "without"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "pyarrow", None)


def written(path: Path, separator: str = ";", decimal: str = ".", *, before: str = "") -> str:
    """The rows of P and Y, with a column of text that is quoted."""
    lines = [separator.join(["label", "p_0", "p_1", "site"])]
    for y, p in zip(Y, P, strict=True):
        cells = [str(y), *(f"{x}".replace(".", decimal) for x in (1 - p, p)), '"a, b"']
        lines.append(separator.join(cells))
    path.write_text(before + "\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def note_codes(path: str, **settings: Any) -> list[str]:
    return [note.code for note in read(path, **settings).collect().notes]


@pytest.mark.parametrize("size", [8, 1 << 22])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_only_possible_separator_is_used_and_named(
    tmp_path: Path, monkeypatch: Any, separator: str, decimal: str, size: int
) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", size)
    preds = read(written(tmp_path / "a.csv", separator, decimal), group="site", batch_rows=3).collect()
    assert (preds.p[:, 1].tolist(), preds.y.tolist()) == (P, Y)
    assert set(preds.group["site"].tolist()) == {"a, b"}
    (note,) = (note for note in preds.notes if note.code == "TN310")
    assert f"the separator {separator!r}" in note.text
    assert ("the decimal comma" in note.text) == (decimal == ",")


def test_commas_and_the_tabs_of_a_tsv_file_need_no_note(tmp_path: Path) -> None:
    assert "TN310" not in note_codes(written(tmp_path / "a.csv", ","))
    assert "TN310" not in note_codes(written(tmp_path / "a.tsv", "\t"))
    assert "TN310" in note_codes(written(tmp_path / "a.txt", "\t"))
    assert "TN310" not in note_codes(written(tmp_path / "b.txt", ";", ","), separator=";", decimal=",")


def test_the_first_line_of_excel_names_the_separator(tmp_path: Path) -> None:
    preds = read(written(tmp_path / "a.csv", ";", ",", before="sep=;\r\n")).collect()
    assert preds.p[:, 1].tolist() == P


def test_a_separator_that_is_given_is_used_without_a_note(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", " ")
    with pytest.raises(InputError, match=r"TO304.*separated by ' ': pass separator=' '") as error:
        read(path)
    separator = re.search(r"pass separator='(.)'", error.value.fix)
    assert separator is not None
    assert read(path, separator=separator[1]).collect().p[:, 1].tolist() == P
    assert read(written(tmp_path / "b.csv", "\t"), separator="tab").collect().p[:, 1].tolist() == P
    assert read(written(tmp_path / "c.csv", "\t"), separator="\\t").collect().p[:, 1].tolist() == P


def test_a_wrong_separator_is_answered_with_the_right_one(tmp_path: Path) -> None:
    for right, wrong in ((",", ";"), (";", ","), ("\t", "|")):
        path = written(tmp_path / "a.csv", right)
        with pytest.raises(InputError, match="separator=") as error:
            read(path, separator=wrong).collect()
        assert f"separator={right!r}" in error.value.fix
        assert read(path, separator=right).collect().p[:, 1].tolist() == P


def test_a_header_with_two_possible_separators_is_answered_with_one_that_works(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label;risk|1\n0;0.25\n1;0.5\n", encoding="utf-8")
    with pytest.raises(InputError, match="TO304") as error:
        read(tmp_path / "a.csv", probs="risk|1")
    assert "separator=';'" in error.value.fix
    assert read(tmp_path / "a.csv", probs="risk|1", separator=";").collect().p.tolist() == [0.25, 0.5]


def test_a_quoted_decimal_comma_is_answered_with_the_option_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('label,p_1\n0,"0,25"\n1,"0,5"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"TO307.*'0,25' in row 0.*pass decimal=','"):
        read(tmp_path / "a.csv").collect()
    assert read(tmp_path / "a.csv", decimal=",").collect().p.tolist() == [0.25, 0.5]


def test_numbers_with_a_comma_for_thousands_are_never_read_as_decimals(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label;p_1;w\n0;0,25;1.000\n1;0,5;2.000\n", encoding="utf-8")
    assert read(tmp_path / "a.csv", decimal=",").collect().p.tolist() == [0.25, 0.5]
    with pytest.raises(InputError, match=r"TO307.*'1.000' in row 0.*the same decimal mark"):
        read(tmp_path / "a.csv", decimal=",", weight="w").collect()
    (tmp_path / "b.csv").write_text("label;p_1;w\n0;0;1,000\n1;1;2,000\n", encoding="utf-8")  # may be 1 or 1000
    with pytest.raises(InputError, match=r"TO307.*'1,000' in row 0.*pass decimal=','"):
        read(tmp_path / "b.csv", weight="w").collect()
    assert read(tmp_path / "b.csv", weight="w", decimal=",").collect().weight.tolist() == [1, 2]


def test_lines_with_a_number_sign_before_the_header_are_skipped_and_counted(tmp_path: Path) -> None:
    before = "# model v3, 2024\n# seed 1\n"
    for separator in (",", ";"):
        path = written(tmp_path / "a.csv", separator, before=before)
        assert read(path).collect().p[:, 1].tolist() == P
        assert any("2 lines that begin with #" in note.text for note in read(path).notes)
    (tmp_path / "b.csv").write_text("# one, two\nlabel,p_1\n0,0.5\n1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"TO311.*1 in row 1 \(line 4\)"):
        read(tmp_path / "b.csv").collect()


def test_a_header_that_begins_with_a_number_sign_is_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("#id,label,p_1\n7,0,0.5\n8,1,0.25\n", encoding="utf-8")
    source = read(tmp_path / "a.csv", row_id="#id")
    assert source.collect().p.tolist() == [0.5, 0.25]
    assert source.notes == ()


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (["25%", "50.0 %", "12.5%"], "TN312"),
        (["0.25", "*0.5", "0.125"], "TN313"),
        (["*0.25", "*0.5", "*0.125"], "TN313"),
    ],
)
def test_percentages_and_numbers_with_a_star_are_read_with_a_note(tmp_path: Path, cells: list[str], code: str) -> None:
    (tmp_path / "a.csv").write_text(
        "label,p_1\n" + "".join(f"{i % 2},{cell}\n" for i, cell in enumerate(cells)), encoding="utf-8"
    )
    preds = read(tmp_path / "a.csv").collect()
    assert preds.p.tolist() == [0.25, 0.5, 0.125]
    assert [note.code for note in preds.notes] == [code]


def test_a_percentage_is_the_nearest_float_to_its_fraction(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,p_1\n0,74.4%\n1,58.3%\n", encoding="utf-8")
    assert read(tmp_path / "a.csv").collect().p.tolist() == [0.744, 0.583]  # 58.3 / 100 is another float


@pytest.mark.parametrize("odd", ["0.5", "1"])
def test_a_fraction_among_percentages_is_refused(tmp_path: Path, monkeypatch: Any, odd: str) -> None:
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", 1 << 14)
    rows = [f"{i % 2},25%" for i in range(20_000)]
    rows[15_000] = f"1,{odd}"  # far behind the lines from which the form is inferred
    (tmp_path / "a.csv").write_text("label,p_1\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"TO307.*'{odd}' in row 15000, which is not a percentage"):
        read(tmp_path / "a.csv").collect()
    rows[5] = f"1,{odd}"
    (tmp_path / "a.csv").write_text("label,p_1\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"TO307.*'25%' in row 0.*remove the %"):
        read(tmp_path / "a.csv").collect()


@pytest.mark.parametrize("cell", ["[{} {}]", "[{}, {}]", "[ {}  {} ]"])
def test_a_list_in_brackets_is_the_probability_of_each_class(tmp_path: Path, cell: str) -> None:
    rows = "".join(f'{y},"{cell.format(1 - p, p)}"\n' for y, p in zip(Y, P, strict=True))
    (tmp_path / "a.csv").write_text("label,probs\n" + rows, encoding="utf-8")
    assert read(tmp_path / "a.csv", probs="probs").collect().p.tolist() == [[1 - p, p] for p in P]
    (tmp_path / "b.csv").write_text("label,probs\n" + rows + '1,"[0.5]"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"TO310.*1 values in row 4"):
        read(tmp_path / "b.csv", probs="probs").collect()


def test_row_names_without_a_header_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('"label" "p_1"\n"1" 0 0.25\n"2" 1 0.5\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"TO311.*row\.names = FALSE"):
        read(tmp_path / "a.txt", separator=" ").collect()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_recalibrated_files_have_decimal_points_whatever_is_read(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out{suffix}"
    path = tmp_path / "a.csv"
    path.write_text("label;p_1;w\n0;0,25;1,5\n1;0,5;2,5\n", encoding="utf-8")
    assert rewrite(read(path, label=None), lambda p: p, out)[0] == 2
    reread_rows = read(out, weight="w").collect()
    assert (reread_rows.p.tolist(), reread_rows.weight.tolist()) == ([0.25, 0.5], [1.5, 2.5])
    if suffix != ".jsonl":
        separator = {".csv": ",", ".tsv": "\t"}[suffix]
        assert out.read_text(encoding="utf-8").splitlines()[1] == separator.join(["0", "0.25", "1.5"])


def test_percentages_with_a_decimal_comma_are_read_and_written_as_fractions(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sep=;\nlabel;p_1\n0;25,0%\n1;74,4%\n", encoding="utf-8")
    assert read(tmp_path / "a.csv").collect().p.tolist() == [0.25, 0.744]
    assert rewrite(read(tmp_path / "a.csv", label=None), np.asarray, tmp_path / "out.csv")[0] == 2
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == "label,p_1\n0,0.25\n1,0.744\n"


def test_files_that_are_read_alike_have_one_note(tmp_path: Path) -> None:
    for name in "abc":
        written(tmp_path / f"{name}.csv", ";", ",")
    (note,) = read(tmp_path / "*.csv").notes
    assert note.text.endswith("a.csv (and 2 more files) was read with the separator ';' and the decimal comma.")


def test_a_separator_of_other_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"label": 0, "p_1": 0.5}\n', encoding="utf-8")
    for data in (tmp_path / "a.jsonl", {"label": [0], "p_1": [0.5]}):
        with pytest.raises(InputError, match=r"TO205.*separator is only for .csv"):
            read(data, probs="p_1", separator=";")
        assert read(data, probs="p_1").collect().n == 1
    for setting in ({"separator": ";;"}, {"decimal": "·"}, {"separator": '"'}):
        with pytest.raises(InputError, match="TO203"):
            read(written(tmp_path / "a.csv"), **setting)


def test_a_calibrator_of_a_semicolon_file_is_that_of_the_same_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(200).round(3)
    y = (rng.random(200) < p).astype(int)
    rows = "".join(f"{label};{str(x).replace('.', ',')}\n" for label, x in zip(y, p, strict=True))
    (tmp_path / "a.csv").write_text("label;p\n" + rows, encoding="utf-8")
    calibrator = fit(read(tmp_path / "a.csv", probs="p"), "platt")
    assert isinstance(calibrator, fitted_calibrator.FittedCalibrator)
    assert calibrator.predict_proba(p).tolist() == fit((y, p), "platt").predict_proba(p).tolist()


@pytest.mark.parametrize("odd", ["NA", "NULL", "None", "?", "Total", "unknown"])
@pytest.mark.parametrize("names", [["risk"], ["p_0", "p_1"]])
def test_a_label_that_is_no_number_as_the_others_is_named_with_its_row(
    tmp_path: Path, odd: str, names: list[str]
) -> None:
    """Regression: a single text made all labels texts, and the error showed the first label."""
    rows = [f"{i % 2}," + ",".join(["0.5"] * len(names)) for i in range(300)]
    rows[9] = rows[9].replace("1,", f"{odd},", 1)
    (tmp_path / "a.csv").write_text(f"label,{','.join(names)}\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"TO105.*'{re.escape(odd)}' in row 9 .*other 299 labels are numbers"):
        read(tmp_path / "a.csv", probs=names if len(names) > 1 else names[0]).collect()


def test_a_number_with_a_blank_is_the_label_of_that_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,p_1\n0,0.25\n1 ,0.5\n", encoding="utf-8")
    assert read(tmp_path / "a.csv").collect().y.tolist() == [0, 1]


def test_one_name_too_many_is_named_with_its_row(tmp_path: Path) -> None:
    rows = ["cat,0.5", "dog,0.5"] * 5
    rows[7] = "NA,0.5"
    (tmp_path / "a.csv").write_text("label,p_dog\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"TO106.*3 labels for 2 classes, such as 'NA' in row 7"):
        read(tmp_path / "a.csv").collect()


@pytest.mark.parametrize(
    ("true", "false"),
    [("CORRECT", "INCORRECT"), ("right", "wrong"), ("pass", "fail"), ("T", "F"), ("Y", "N"), ("Yes", "No")],
)
def test_correctness_may_be_a_text_in_any_source(tmp_path: Path, true: str, false: str) -> None:
    """Regression: a .csv file was refused where a .jsonl file was read."""
    texts = [true if y else false for y in Y]
    (tmp_path / "a.csv").write_text(
        "c,ok\n" + "".join(f"{p},{t}\n" for p, t in zip(P, texts, strict=True)), encoding="utf-8"
    )
    lines = [f'{{"c": {p}, "ok": "{text}"}}' for p, text in zip(P, texts, strict=True)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for data in (tmp_path / "a.csv", tmp_path / "a.jsonl", {"c": np.array(P), "ok": np.array(texts)}):
        assert read(data, confidence="c", correct="ok").collect().y.tolist() == Y
    assert Predictions.from_confidence(P, texts).y.tolist() == Y
    records = [{"c": p, "ok": text} for p, text in zip(P, texts, strict=True)]
    assert read_answers(records, confidence="c", correct="ok").predictions.y.tolist() == Y


@pytest.mark.parametrize("texts", [["C", "I", "C", "I"], ["1", "0", "NA", "1"]])
def test_correctness_of_an_unknown_text_is_refused_with_its_value(tmp_path: Path, texts: list[str]) -> None:
    (tmp_path / "a.csv").write_text(
        "c,ok\n" + "".join(f"{p},{t}\n" for p, t in zip(P, texts, strict=True)), encoding="utf-8"
    )
    row = {"C": 0, "1": 2}[texts[0]]
    with pytest.raises(InputError, match=rf"TO116.*'{texts[row]}' in row {row} .*true or false, 1 or 0, yes or no"):
        read(tmp_path / "a.csv", confidence="c", correct="ok").collect()
