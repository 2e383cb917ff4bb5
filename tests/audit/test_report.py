"""Does the terminal say what the audit holds, first in words, and without letting the data steer it?"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.audit.example import example, unremarkable
from trueodds.audit import accounts, findings, report
from trueodds.audit.short import short


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
    assert facts["It is off by"].value == "25.1 points"  # 0.2507
    assert "average error of its confidence" in facts["It is off by"].remark
    assert "23.9 to 26.2 points" in facts["It is off by"].remark  # [0.2391, 0.2625]
    assert facts["Is that chance?"].remark.startswith("p ≤ 0.001")  # at its floor it may be smaller
    assert facts["What fixes it"].value == "temperature, T = 0.38"
    assert "on the held-out rows 0 answers change and accuracy stays 96.3 %" in facts["What fixes it"].remark
    assert facts["Groups that are off"].value == "2 of 2 groups"


def test_a_fix_that_is_not_justified_says_what_would_have_been_seen() -> None:
    said = " ".join(report.text(unremarkable()).split())
    assert "no fix is justified" in said
    assert "a gain of 0.0402 would have been found four times in five" in said


def test_a_choice_that_was_not_confirmed_is_named() -> None:
    audit = example()
    audit["recalibration"] |= {"confirmed": False, "applied": "identity", "pvalue": 0.31}
    said = " ".join(report.text(audit).split())
    assert "no fix is justified" in said
    assert "was not confirmed on 270 held-out rows (p = 0.31)" in said


def binary() -> dict[str, Any]:
    audit = example()
    audit["data"] |= {"k": 2, "classes": ["dry", "rain"], "mean_prediction": 0.301, "event_rate": 0.254}
    for each in (*audit["measures"], *audit["tests"]):
        if each["lens"] == "confidence":
            each["lens"] = "positive"
    return audit


def test_of_two_classes_the_predicted_one_is_named() -> None:
    facts = {fact.label: fact for fact in short(binary())}
    assert (facts["It predicts"].value, facts["It came"].value) == ("30.1 %", "25.4 %")
    assert facts["It is off by"].remark.startswith("average error of P(rain)")
    assert "accuracy" not in facts["What fixes it"].remark
    assert not {"It says", "It is right"} & set(facts)
    assert "share of rain" in report.text(binary())


def test_a_confidence_alone_has_no_answers_that_could_change() -> None:
    audit = example()
    audit["data"]["kind"] = "confidence"
    said = report.text(audit)
    assert "answers change" not in said
    assert "accuracy change" not in said
    assert dict(accounts.fix(audit).rows)["accuracy, answers changed"].startswith("not applicable")


def test_a_p_at_its_floor_is_a_bound_in_every_table() -> None:
    audit = example()
    rows = [line.split("  ") for line in report.text(audit).splitlines()]
    assert "≤ 0.001" in " ".join(" ".join(row) for row in rows)
    for table in (findings.errors(audit), findings.classes(audit), findings.groups(audit), findings.verdicts(audit)):
        cells = [
            row[i] for row in table.rows for i, c in enumerate(table.columns) if c.name in ("p", "Holm p", "family p")
        ]
        assert not {"0.001", "0.002", "0.003", "0.01"} & set(cells)
    # Class 9 has p = .042, and so has its Holm p: both are values, not bounds.
    assert [row[-2:] for row in findings.classes(audit).rows if row[0] == "9"] == [("0.042", "0.042")]
    assert "joint over all claims" in " ".join(report.text(audit).split())


def test_a_tiny_p_is_said_to_be_small() -> None:
    audit = example()
    audit["recalibration"]["pvalue"] = 1.74e-15
    said = " ".join(report.text(audit).split())
    assert "p < 0.0001" in said
    assert "e-15" not in said
    assert ("p of the gain", "< 0.0001") in accounts.fix(audit).rows


def test_each_claim_is_judged_once() -> None:
    assert [row[1] for row in findings.verdicts(example()).rows] == ["family", "confidence", "classwise", "canonical"]


def test_a_score_is_set_beside_what_it_expects_of_itself() -> None:
    table = findings.scores(example())
    assert "own expectation" in [column.name for column in table.columns]
    assert "either way, means miscalibration" in table.intro


def test_a_dash_of_a_tally_has_its_reason() -> None:
    audit = example()
    audit["measures"][1] |= {"value": 0.4, "notes": [{"code": "TN406", "text": "No entropy."}]}
    assert "a tally keeps no entropy" in findings.scores(audit).intro
    assert "entropy" not in findings.errors(audit).intro


def test_a_column_has_the_same_decimals_throughout() -> None:
    audit = example()
    audit["measures"][2]["interval"] = {"low": 0.000793, "high": 0.045, "level": 0.95, "method": "sun"}
    audit["recalibration"]["candidates"][1]["accuracy_change"] = 1.11e-16
    audit["data"] |= {"weighted": True, "weight": 7480.3}
    assert "[0.0008, 0.0450]" in report.text(audit)
    assert "e-" not in report.text(audit).replace("1e-12", "")
    assert "yes, 7,480 in all" in report.text(audit)
    assert ("temperature", "0") in {(row[0], row[7]) for row in accounts.candidates(audit).rows}


@pytest.mark.parametrize("width", range(48, 90))
def test_no_line_ends_between_a_number_and_its_unit(width: int) -> None:
    lines = report.text(example(), width).splitlines()
    assert not [line for line in lines if re.match(r" *(%|≤)", line) or re.search(r"\bp [≤=<]$", line)]


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


def test_the_terms_of_an_error_are_no_classes() -> None:
    audit = example()
    confidence = next(each for each in audit["measures"] if each["lens"] == "confidence" and each["estimator"] == "ece")
    confidence["parts"] = {"over": 0.01, "under": 0.2}
    assert not {"over", "under"} & {row[0] for row in findings.classes(audit).rows}


def test_columns_stand_under_each_other() -> None:
    table = report.text(example()).split("How far off")[1].split("\n\n")[0].splitlines()
    table = table[next(i for i, line in enumerate(table) if line.startswith("  lens")) :]
    assert len(table) == 4
    assert len({len(line) for line in table}) == 1  # the last column is n, to the right


def test_every_note_is_said_once_with_its_code() -> None:
    audit = example()
    audit["tests"][1]["notes"] = [{"code": "TN105", "text": "So is the smallest."}]
    said = report.text(audit)
    assert "fewer than 10 rows. So is the smallest." in " ".join(said.split())
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
