"""Does the terminal say what the audit holds, first in words, and without letting the data steer it?"""

from __future__ import annotations

import pytest

from tests.audit.example import example, unremarkable
from trueodds.audit import report
from trueodds.audit.words import short


def test_the_sentence_comes_first() -> None:
    audit = example()
    assert " ".join(report.text(audit).split("\n\n")[0].split()) == audit["verdict"]["sentence"]


def test_words_for_people_stand_before_the_tables() -> None:
    said = report.text(example())
    assert said.index("It is right") < said.index("noise floor is") < said.index("Class by class")


def test_every_scale_of_the_answer_is_said_once_in_the_short_part() -> None:
    facts = {fact.label: fact for fact in short(example())}
    assert facts["It says"].value == "71.0 %"  # 0.7104
    assert facts["It is right"].value == "96.1 %"  # 0.9611
    assert facts["It is off by"].value == "25.1 %"  # 0.2507
    assert "23.9 % to 26.2 %" in facts["It is off by"].remark  # [0.2391, 0.2625]
    assert facts["Is that chance?"].remark.startswith("p ≤ 0.001")  # at its floor it may be smaller
    assert facts["What fixes it"].value == "temperature, T = 0.38"
    assert "0 answers change, accuracy stays 96.3 %" in facts["What fixes it"].remark
    assert facts["Groups that are off"].value == "2 of 2 groups"


def test_a_fix_that_is_not_justified_says_what_would_have_been_seen() -> None:
    said = " ".join(report.text(unremarkable()).split())
    assert "no fix is justified" in said
    assert "a gain of 0.0402 in log loss would have been seen" in said


def test_a_choice_that_was_not_confirmed_is_named() -> None:
    audit = example()
    audit["recalibration"] |= {"confirmed": False, "applied": "identity", "pvalue": 0.31}
    said = " ".join(report.text(audit).split())
    assert "no fix is justified" in said
    assert "was not confirmed on 270 held-out rows (p = 0.31)" in said


def test_no_fix_at_all_is_said() -> None:
    audit = example()
    audit["recalibration"] = None
    assert "not looked for (see the notes)" in report.text(audit)


def test_classes_come_worst_first_and_at_most_twenty() -> None:
    audit = example()
    ece = next(each for each in audit["measures"] if each["lens"] == "classwise")
    ece["parts"] = {f"class:{i}": i / 1000 for i in range(1, 26)}
    next(each for each in audit["tests"] if each["lens"] == "classwise")["parts"] = {}
    table = report.text(audit).split("Class by class")[1].split("\n\n")[0]
    named = [line.split()[0] for line in table.splitlines() if line.split()[-1:] and line.split()[-1].startswith("0.0")]
    assert named == [str(i) for i in range(25, 5, -1)]
    assert "and 5 more" in table


def test_columns_stand_under_each_other() -> None:
    table = report.text(example()).split("How far off")[1].split("\n\n")[0].splitlines()[2:]
    assert len({len(line) for line in table}) == 1  # the last column is n, to the right


def test_every_note_is_said_once_with_its_code() -> None:
    said = report.text(example())
    for code in ("TN101", "TN105", "TN501"):
        assert said.count(f"[{code}]") == 1


@pytest.mark.parametrize("width", [48, 80, 110])
def test_sentences_keep_the_width(width: int) -> None:
    said = report.text(example(), width)
    assert max(len(line) for line in said.split("Scores")[0].splitlines()) <= width


def test_plain_text_has_no_escapes_and_style_is_told_the_role() -> None:
    assert "\x1b" not in report.text(example())
    roles = set()
    report.text(example(), style=lambda piece, role: roles.add(role) or piece)
    assert {"bad", "good", "title", "dim"} <= roles


def test_style_changes_no_letter() -> None:
    assert report.text(example(), style=lambda piece, role: piece) == report.text(example())


def test_a_name_cannot_steer_the_terminal() -> None:
    audit = example()
    audit["data"]["source"] = "a\x1b[2Jb\rc\u202ed"
    audit["groups"][0]["value"] = "\x07bell\nline"
    said = report.text(audit)
    assert not any(c in said for c in "\x1b\r\x07\u202e")
    assert "a\N{REPLACEMENT CHARACTER}[2Jb" in said


def test_nothing_computed_is_a_dash_not_a_crash() -> None:
    audit = example()
    for each in audit["measures"]:
        each |= {"value": None, "interval": None, "noise_floor": None, "debiased": None}
    for each in audit["tests"]:
        each |= {"statistic": None, "pvalue": None, "effect": None, "family_pvalue": None, "floor": None}
    audit["verdict"] |= {"pvalue": None, "rejected": None, "floor": None}
    audit["data"] |= {"accuracy": None, "mean_confidence": None, "zeros": None, "true_class_zeros": None}
    assert "not tested" in report.text(audit)
