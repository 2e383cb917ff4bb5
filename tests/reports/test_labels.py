"""Audits of independent labels: their errors by label are calibration errors, and they are called labels."""

from __future__ import annotations

import numpy as np
import pytest

import trueodds as to
from tests.reports.example import example, typed
from trueodds.reports.html.audit_page import render_html
from trueodds.reports.text import result_tables
from trueodds.reports.text.formatting import describe_lens


@pytest.fixture(scope="module")
def audited() -> tuple[to.Predictions, to.Audit]:
    rng = np.random.default_rng(5)
    p = rng.beta(1, 2, (800, 3))
    Y = (rng.random((800, 3)) < p).astype(int)
    p[:, 2] **= 0.5  # √p > p: too high
    preds = to.Predictions.from_multilabel(Y, p, classes=["red", "green", "blue"])
    return preds, to.audit(preds, resamples=199)


def test_the_errors_by_label_are_calibration_errors_and_not_the_brier_scores(
    audited: tuple[to.Predictions, to.Audit],
) -> None:
    preds, report = audited
    parts = to.measure(preds, "ece", lens="classwise", interval=None).parts
    shown = {row[0]: row[1] for row in result_tables.class_table(typed(report.to_dict())).rows}
    assert shown == {name.removeprefix("class:"): f"{value:.4f}" for name, value in parts.items()}
    assert list(shown) == ["blue", "red", "green"]  # the largest error first


def test_labels_are_not_called_classes(audited: tuple[to.Predictions, to.Audit]) -> None:
    _, report = audited
    table = result_tables.class_table(typed(report.to_dict()))
    assert (table.title, table.columns[0].name) == ("Errors by label", "label")
    assert "against the rest" not in str(report)
    assert describe_lens("classwise", typed(report.to_dict()).data) == "each label"
    assert "miscalibrated for label blue" in report.verdict["sentence"]
    page = render_html(report.to_dict())
    assert "against the rest" not in page
    assert "Search classes" not in page
    assert "<label>Search labels <" in page


def test_the_statistic_of_a_test_is_no_error_of_a_class() -> None:
    audit = example()
    ece = next(measure for measure in audit["measures"] if measure["lens"] == "classwise")
    ece["parts"] = {}
    assert "error" not in [column.name for column in result_tables.class_table(typed(audit)).columns]


def test_of_several_miscalibrated_labels_the_verdict_names_the_one_with_the_largest_error() -> None:
    rng = np.random.default_rng(5)
    p = rng.beta(2, 2, (2000, 3))
    Y = (rng.random((2000, 3)) < p).astype(int)
    report = to.audit(to.Predictions.from_multilabel(Y, p ** [1.5, 2.0, 3.0]), resamples=199)
    table = result_tables.class_table(typed(report.to_dict()))
    assert table.rows[0][0] == "2"
    assert "; miscalibrated for all 3 labels, most for label 2." in report.verdict["sentence"]
    report = to.audit(to.Predictions.from_multilabel(Y, p ** [1.5, 1.0, 3.0]), resamples=199)
    assert "; miscalibrated for 2 of 3 labels, most for label 2." in report.verdict["sentence"]
