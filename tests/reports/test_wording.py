"""The words of the report fit the data: weights, stated confidences, single rows, and notes on what is shown."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.reports.example import example, typed
from trueodds.reports.html.audit_page import render_html
from trueodds.reports.text import group_tables, result_tables
from trueodds.reports.text.summary import summary_lines
from trueodds.reports.text.terminal import render_text


def weighted() -> dict[str, Any]:
    audit = example()
    audit["data"] |= {"weighted": True, "weight": 7480.3}
    return audit


def facts_of(audit: dict[str, Any]) -> dict[str, Any]:
    return {fact.label: fact for fact in summary_lines(typed(audit))}


def test_weighted_means_are_called_weighted() -> None:
    facts = facts_of(weighted())
    assert facts["Accuracy"].remark == "weighted, 899 rows"
    assert facts["Mean confidence"].remark == "weighted, probability of the predicted class"
    assert ("accuracy, weighted", "96.1 %") in result_tables.data_table(typed(weighted())).rows
    assert "Means and errors are weighted." in group_tables.group_table(typed(weighted())).intro
    assert "weighted accuracy" in render_html(weighted()).replace("\xa0", " ")
    audit = weighted()
    audit["data"] |= {"k": 2, "classes": ["dry", "rain"], "mean_prediction": 0.301, "event_rate": 0.254}
    assert facts_of(audit)["Mean predicted"].remark == "weighted, probability of rain"
    assert facts_of(audit)["Observed event rate"].remark.startswith("rain in 899 rows, weighted; calibration-in-the-")


def test_without_weights_nothing_is_called_weighted() -> None:
    assert facts_of(example())["Accuracy"].remark == "899 rows"
    assert "weighted" not in render_text(example())


def test_a_confidence_is_stated_and_of_no_class() -> None:
    audit = example()
    audit["data"]["kind"] = "confidence"
    assert facts_of(audit)["Mean confidence"].remark == "stated confidence in the answer"


def test_a_dash_is_explained_only_in_a_column_that_is_shown() -> None:
    audit = example()
    audit["measures"][1] |= {"value": 0.4, "notes": [{"code": "TN201", "text": "No interval: one row."}]}
    assert result_tables.score_table(typed(audit)).intro.endswith(" A dash: no interval (TN201).")
    audit["measures"][0]["interval"] = None
    assert "A dash" not in result_tables.score_table(typed(audit)).intro


def test_a_small_p_beside_an_interval_that_includes_0_is_explained() -> None:
    intro = result_tables.error_table(typed(example())).intro
    assert "The test is more sensitive than the interval: p can be small although the interval includes 0." in intro


def test_the_level_of_the_groups_is_the_part_of_alpha_that_remains() -> None:
    audit = example()
    audit["among_groups"]["alpha"] = 0.0475
    intro = group_tables.group_table(typed(audit)).intro
    assert "joint p at most 0.0475 (alpha allocated to the groups)." in intro
    audit["among_groups"]["alpha"] = 0.05
    assert "remains" not in group_tables.group_table(typed(audit)).intro


def test_notes_on_diagrams_are_beside_the_diagrams_and_not_in_the_text() -> None:
    audit = example()
    audit["diagrams"][0]["notes"] = [{"code": "TN246", "text": "Bars are pointwise."}]
    assert "TN246" not in render_text(audit)
    assert "TN246" in render_html(audit)
    preds = to.Predictions([0, 1] * 50, [0.4, 0.6] * 50)
    report = to.audit(preds, resamples=99)
    assert "TN246" not in str(report)
    assert "TN246" in {note.code for note in report.notes}


@pytest.mark.parametrize(
    ("n", "verb"), [(9, r"The only occupied bin \w+s fewer"), (18, r"2 of 2 occupied bins \w+[^s] ")]
)
def test_the_verb_of_one_bin_is_singular(n: int, verb: str) -> None:
    p = np.where(np.arange(n) < 9, 0.1, 0.9)
    (text,) = (note.text for note in to.audit([0, 1, 0] * (n // 3), p, resamples=99).notes if note.code == "TN105")
    assert re.match(verb, text)
