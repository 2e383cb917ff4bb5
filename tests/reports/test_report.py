"""Does the terminal say what the audit holds, first in words, and without letting the data steer it?"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.reports.example import example, typed
from trueodds.io.answers import read_answers
from trueodds.reports.audit_sections import AuditDiagram
from trueodds.reports.text import (
    diagram_tables,
    group_tables,
    recalibration,
    result_tables,
)
from trueodds.reports.text.summary import summary_lines
from trueodds.reports.text.terminal import render_text


def test_the_sentence_comes_first() -> None:
    audit = example()
    assert " ".join(render_text(audit).split("\n\n")[0].split()) == audit["verdict"]["sentence"]


def test_words_for_people_stand_before_the_tables() -> None:
    text = render_text(example())
    assert text.index("Accuracy") < text.index("Noise floor:") < text.index("Errors by class")


def test_an_infinite_log_loss_is_infinite_in_every_table() -> None:
    audit = example()
    audit["recalibration"] |= {"log_loss_before": None, "gain_percent": None, "gain_low_percent": None}
    text = " ".join(render_text(audit).split())
    change = "a gain of at least 0.2232 nats per row with 95 % confidence over original probabilities with the same"
    assert f"held-out log loss infinite before, 0.1578 after: {change}" in text
    assert ("log loss before", "infinite") in recalibration.recalibration_table(typed(audit)).rows


def binary() -> dict[str, Any]:
    audit = example()
    audit["data"] |= {"k": 2, "classes": ["dry", "rain"], "mean_prediction": 0.301, "event_rate": 0.254}
    for entry in (*audit["measures"], *audit["tests"]):
        if entry["lens"] == "confidence":
            entry["lens"] = "positive"
    return audit


def test_of_two_classes_the_predicted_one_is_named() -> None:
    facts = {fact.label: fact for fact in summary_lines(typed(binary()))}
    assert (facts["Mean predicted"].value, facts["Observed event rate"].value) == ("30.1 %", "25.4 %")
    assert facts["Expected calibration error"].remark.startswith("ECE of P(rain)")
    assert "calibration-in-the-large −4.7 percentage points" in facts["Observed event rate"].remark  # .254 − .301
    assert "accuracy" not in facts["Recalibration"].remark
    assert not {"Mean confidence", "Accuracy"} & set(facts)
    assert "event rate of rain" in render_text(binary())


def test_a_confidence_alone_has_no_answers_that_could_change() -> None:
    audit = example()
    audit["data"]["kind"] = "confidence"
    text = render_text(audit)
    assert "predicted class changes" not in text
    assert "accuracy change" not in text
    assert dict(recalibration.recalibration_table(typed(audit)).rows)["accuracy, changed classes"].startswith(
        "not applicable"
    )


def test_a_p_at_its_floor_is_a_bound_in_every_table() -> None:
    audit = example()
    rows = [line.split("  ") for line in render_text(audit).splitlines()]
    assert "≤ 0.001" in " ".join(" ".join(row) for row in rows)
    for table in (
        result_tables.error_table(typed(audit)),
        result_tables.class_table(typed(audit)),
        group_tables.group_table(typed(audit)),
        result_tables.test_table(typed(audit)),
    ):
        cells = [
            row[i]
            for row in table.rows
            for i, c in enumerate(table.columns)
            if c.name in ("p", "Holm p", "family-wise p")
        ]
        assert not {"0.001", "0.002", "0.003", "0.01"} & set(cells)
    # Class 9 has p = .042, and so has its Holm p: both are values, not bounds.
    assert [row[-2:] for row in result_tables.class_table(typed(audit)).rows if row[0] == "9"] == [("0.042", "0.042")]
    assert "family-wise p ≤ 0.001" in " ".join(render_text(audit).split())


def test_a_tiny_p_is_reported_as_small() -> None:
    audit = example()
    audit["recalibration"]["pvalue"] = 1.74e-15
    text = " ".join(render_text(audit).split())
    assert "p < 0.0001" in text
    assert "e-15" not in text
    assert (
        "p-value of the null hypothesis that the predictions are calibrated",
        "< 0.0001",
    ) in recalibration.recalibration_table(typed(audit)).rows


def test_each_claim_is_tested_once() -> None:
    assert [row[1] for row in result_tables.test_table(typed(example())).rows] == [
        "family",
        "confidence",
        "classwise",
        "canonical",
    ]


def test_a_score_is_compared_with_its_expectation_if_calibrated() -> None:
    table = result_tables.score_table(typed(example()))
    assert "expected if calibrated" in [column.name for column in table.columns]
    assert "in either direction indicates miscalibration" in table.intro


def test_a_dash_of_a_tally_has_its_reason() -> None:
    audit = example()
    audit["measures"][1] |= {"value": 0.4, "notes": [{"code": "TN406", "text": "No entropy."}]}
    assert "a tally has no entropy" in result_tables.score_table(typed(audit)).intro
    assert "entropy" not in result_tables.error_table(typed(audit)).intro


def test_a_column_has_the_same_decimals_throughout() -> None:
    audit = example()
    audit["measures"][2]["interval"] = {"low": 0.000793, "high": 0.045, "level": 0.95, "method": "sun"}
    audit["recalibration"]["candidates"][1]["accuracy_change"] = 1.11e-16
    audit["data"] |= {"weighted": True, "weight": 7480.3}
    assert "[0.0008, 0.0450]" in render_text(audit)
    assert not re.search(r"\de-\d", render_text(audit).replace("1e-12", ""))
    assert "yes, total 7,480" in render_text(audit)
    assert ("temperature", "0") in {(row[0], row[7]) for row in recalibration.candidate_table(typed(audit)).rows}


@pytest.mark.parametrize("width", range(48, 90))
def test_no_line_ends_between_a_number_and_its_unit(width: int) -> None:
    lines = render_text(example(), width).splitlines()
    assert not [line for line in lines if re.match(r" *(%|≤)", line) or re.search(r"\bp [≤=<]$", line)]


def test_classes_come_worst_first_and_at_most_twenty() -> None:
    audit = example()
    ece = next(measure for measure in audit["measures"] if measure["lens"] == "classwise")
    ece["parts"] = {f"class:{i}": i / 1000 for i in range(1, 26)}
    next(test for test in audit["tests"] if test["lens"] == "classwise")["parts"] = {}
    table = render_text(audit).split("Errors by class")[1].split("\n\n")[0]
    named = [line.split()[0] for line in table.splitlines() if line.split()[-1:] and line.split()[-1].startswith("0.0")]
    assert named == [str(i) for i in range(25, 5, -1)]
    assert "5 more rows" in table


def test_the_terms_of_an_error_are_no_classes() -> None:
    audit = example()
    confidence = next(
        measure for measure in audit["measures"] if measure["lens"] == "confidence" and measure["estimator"] == "ece"
    )
    confidence["parts"] = {"over": 0.01, "under": 0.2}
    assert not {"over", "under"} & {row[0] for row in result_tables.class_table(typed(audit)).rows}


def test_columns_stand_under_each_other() -> None:
    table = render_text(example()).split("Calibration errors")[1].split("\n\n")[0].splitlines()
    table = table[next(i for i, line in enumerate(table) if line.startswith("  lens")) :]
    assert len(table) == 4
    assert len({len(line) for line in table}) == 1  # the last column is n, to the right


def test_every_note_is_printed_once_with_its_code() -> None:
    audit = example()
    audit["tests"][1]["notes"] = [{"code": "TN105", "text": "So is the smallest."}]
    text = render_text(audit)
    assert "fewer than 10 rows. So is the smallest." in " ".join(text.split())
    for code in ("TN101", "TN105", "TN501"):
        assert text.count(f"[{code}]") == 1


@pytest.mark.parametrize("width", [48, 80, 110])
def test_sentences_keep_the_width(width: int) -> None:
    text = render_text(example(), width)
    assert max(len(line) for line in text.split("Scores")[0].splitlines()) <= width


def test_plain_text_has_no_escapes_and_style_receives_the_role() -> None:
    assert "\x1b" not in render_text(example())
    roles = set()
    render_text(example(), style=lambda piece, role: roles.add(role) or piece)
    assert {"bad", "good", "title", "dim"} <= roles


def test_style_changes_no_letter() -> None:
    assert render_text(example(), style=lambda piece, role: piece) == render_text(example())


def test_a_name_cannot_steer_the_terminal() -> None:
    audit = example()
    audit["data"]["source"] = "a\x1b[2Jb\rc\u202ed"
    audit["groups"][0]["value"] = "\x07bell\nline"
    text = render_text(audit)
    assert not any(c in text for c in "\x1b\r\x07\u202e")
    assert r"a\x1b[2Jb\rc\u202ed" in text


def test_nothing_computed_is_a_dash_not_a_crash() -> None:
    audit = example()
    for entry in audit["measures"]:
        entry |= {"value": None, "interval": None, "noise_floor": None, "debiased": None}
    for entry in audit["tests"]:
        entry |= {"statistic": None, "pvalue": None, "effect": None, "family_pvalue": None, "min_pvalue": None}
    audit["verdict"] |= {"pvalue": None, "rejected": None, "min_pvalue": None}
    audit["data"] |= {"accuracy": None, "mean_confidence": None, "zeros": None, "true_class_zeros": None}
    assert "not tested" in render_text(audit)


# What could be misread


def votes() -> dict[str, Any]:
    audit = example()
    audit["data"]["votes"] = True
    audit["people"] = None
    return audit


def test_a_share_of_votes_is_not_called_a_share_of_right_answers() -> None:
    facts = {fact.label: fact for fact in summary_lines(typed(votes()))}
    assert facts["Vote share"].value == "96.1 %"
    assert "Accuracy" not in facts
    assert "the vote share of the predicted class stays 96.3 %" in facts["Recalibration"].remark
    assert ("vote share, predicted class", "96.1 %") in result_tables.data_table(typed(votes())).rows
    assert "vote share" in [column.name for column in group_tables.group_table(typed(votes())).columns]


def test_abstentions_are_reported_beside_the_error() -> None:
    audit = example()
    rows = [{"c": 0.9, "ok": i % 3 > 0, "skip": False} for i in range(30)] + [
        {"c": None, "ok": None, "skip": True}
    ] * 10
    result = read_answers(rows, confidence="c", correct="ok", abstained="skip")
    audit["notes"] = [note.to_dict() for note in result.notes]
    fact = next(fact for fact in summary_lines(typed(audit)) if fact.label == "Coverage")
    assert fact.value == "75.0 %"  # 30 of 40
    assert fact.remark == "10 of 40 questions have no answer; the rest of the report covers the other answers"
    assert not [fact for fact in summary_lines(typed(example())) if fact.label == "Coverage"]


@pytest.mark.parametrize("n_skipped", [0, 10])
def test_answers_without_a_confidence_are_reported_beside_the_error(n_skipped: int) -> None:
    """Regression: there was no line on the coverage, because it stood in the other of two notes."""
    audit = example()
    rows = [{"c": 0.9, "ok": i % 3 > 0, "skip": False} for i in range(30)]
    rows += [{"c": None, "ok": i % 2, "skip": False} for i in range(10)]
    rows += [{"c": None, "ok": None, "skip": True}] * n_skipped
    result = read_answers(rows, confidence="c", correct="ok", abstained=["skip", "c"])
    audit["notes"] = [note.to_dict() for note in result.notes]
    (fact,) = (fact for fact in summary_lines(typed(audit)) if fact.label == "Coverage")
    assert fact.value == ("60.0 %" if n_skipped else "75.0 %")
    assert f"10 of {40 + n_skipped} answers have no confidence (50% of them are correct); the rest" in fact.remark
    assert fact.remark.startswith("10 of 50 questions have no answer; " if n_skipped else "10 of 40 answers have")


def test_the_interval_that_may_start_at_zero_is_explained_only_if_a_group_is_miscalibrated() -> None:
    audit = example()
    assert "miscalibrated group may start at 0" in group_tables.group_table(typed(audit)).intro
    for group in audit["groups"]:
        group["status"] = "undecided"
    assert "miscalibrated group may start at 0" not in group_tables.group_table(typed(audit)).intro


def test_each_group_says_which_way_it_is_off() -> None:
    table = group_tables.group_table(typed(example()))
    names = [column.name for column in table.columns]
    assert [(row[names.index("confidence")], row[names.index("accuracy")]) for row in table.rows] == [
        ("70.6 %", "96.7 %"),
        ("71.7 %", "95.3 %"),
    ]


def test_the_numbers_of_a_triangle_are_headed_by_its_corners() -> None:
    columns = {"view": ["canonical"], "cell": [0], "n": [7], "pvalue": [0.5], "beyond": [False], "low_0": [0.1]}
    columns |= {f"{name}_{k}": [0.5] for k in (0, 1) for name in ("outcome_frequency", "mean_prediction")}
    panels = {"view": ["canonical"], "corner_0": ["cat"], "corner_1": ["dog"], "n": [7], "share_log": [True]}
    diagram = AuditDiagram(
        diagram="simplex",
        lens="canonical",
        table=columns,
        panels=panels | {"smallest_pvalue": [5.5e-7]},
        settings={},
    )
    heads = [column.name for column in diagram_tables.diagram_table(diagram).columns]
    assert heads == [
        "predicted cat",
        "predicted dog",
        "observed cat",
        "observed dog",
        "n",
        "p",
        "significant",
        "cell",
        "cell: cat from",
    ]
    assert [column.name for column in diagram_tables.panel_table(diagram).columns] == ["n", "smallest p"]
    assert diagram_tables.panel_table(diagram).rows == (("7", "< 0.0001"),)


def test_the_table_of_tests_says_what_its_columns_are() -> None:
    table = result_tables.test_table(typed(votes()))
    assert {"effect", "smallest p"} <= {column.name for column in table.columns}
    assert "negative if it is smaller than the noise" in table.intro
    assert "votes" not in result_tables.test_table(typed(example())).intro


def test_a_smallest_p_of_the_family_above_that_of_its_tests_is_explained() -> None:
    audit = example()
    reason = "that of the family is larger, because groups and the recalibration get a part of alpha."
    assert reason not in result_tables.test_table(typed(audit)).intro
    audit["tests"] = [{**audit["tests"][0], "min_pvalue": 0.001 / 0.95}, *audit["tests"][1:]]
    assert reason in result_tables.test_table(typed(audit)).intro


def test_where_an_action_changes_the_event_rate_is_stated() -> None:
    audit = example()
    parts = {"stated": 0.2, "recalibrated": 0.1, "changed": 0.3}
    parts |= {"threshold:abstain → answer": 0.75, "rate there:abstain → answer": 0.557}
    method = {"lens": "canonical", "n": 899, "settings": {"calibrator": "isotonic"}}
    audit["decisions"] = {
        "regret": method | {"estimator": "decision_regret", "value": 0.1, "parts": parts},
        "test": method | {"test": "decision_regret", "statistic": 2.5, "pvalue": 0.01, "parts": {}},
    }
    for kind, classes, rate, phrase in (
        ("confidence", ["wrong", "correct"], None, "accuracy is 55.7 %"),
        ("classes", ["dry", "rain"], 0.3, "event rate of rain is 55.7 %"),
        ("classes", ["0", "1"], 0.3, "event rate of class 1 is 55.7 %"),
    ):
        audit["data"] |= {"kind": kind, "classes": classes, "event_rate": rate}
        sentence = dict(result_tables.regret_table(typed(audit)).rows)["abstain → answer"]
        assert sentence == f"at a predicted probability of 75.0 %, where the {phrase}"
