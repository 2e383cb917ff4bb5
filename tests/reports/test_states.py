"""Which state does the verdict of an audit have: a reversed ranking, a direction, or too few rows to judge?"""

from __future__ import annotations

import numpy as np
import pytest

import trueodds as to
from tests.reports.example import example, typed
from tests.test_schemas import assert_valid
from trueodds.reports.audit_sections import AuditInterval, StandardMeasure
from trueodds.reports.html.audit_page import render_html
from trueodds.reports.text import result_tables


@pytest.fixture(scope="module")
def swapped() -> to.Audit:
    rng = np.random.default_rng(1)
    p = rng.random(1000)
    return to.audit((rng.random(1000) < p).astype(int), 1 - p, resamples=199)


def test_a_reversed_column_is_reversed_and_not_overconfident(swapped: to.Audit) -> None:
    assert swapped.verdict["state"] == "reversed"
    sentence = swapped.verdict["sentence"]
    assert sentence.startswith(
        "The columns of the classes seem to be in a different order than the labels. Reversed (slope −1.0"
    )
    text = f"{sentence} {swapped.verdict['details']}"
    assert "igher predicted probabilities go with lower event rates" in text
    assert "extreme" not in sentence
    assert_valid(swapped.to_dict(), "audit")


def test_the_reason_for_no_recalibration_is_a_clause_after_a_colon(swapped: to.Audit) -> None:
    text = " ".join(str(swapped).split())
    assert "not attempted: the columns of the classes seem to be in a different order than the labels Scores" in text


def test_a_reversed_rare_event_is_reversed_although_the_level_is_further_off() -> None:
    # 5 % events predicted by one minus their probability: 45 points too high, and the ranking is reversed.
    rng = np.random.default_rng(2)
    p = rng.beta(1, 9, 3000)
    report = to.audit((rng.random(3000) < p).astype(int), 1 - p, resamples=199)
    assert report.verdict["state"] == "reversed"
    assert report.verdict["calibration_in_the_large"] < -0.7


def test_permuted_classes_and_reversed_confidences_have_their_own_words() -> None:
    rng = np.random.default_rng(3)
    P = rng.dirichlet([0.5, 0.5, 0.5], 1500)
    y = (P.cumsum(axis=1) > rng.random((1500, 1))).argmax(axis=1)
    permuted = to.audit(y, P[:, [1, 2, 0]], resamples=199).verdict
    assert permuted["state"] == "reversed"
    assert permuted["details"].startswith("Classes with higher predicted probabilities are observed less often. ")
    c = rng.uniform(0.05, 0.95, 1500)
    confidence = to.audit(to.Predictions.from_confidence(c, rng.random(1500) > c), resamples=199).verdict
    assert confidence["state"] == "reversed"
    assert "): higher confidences go with lower accuracy." in confidence["sentence"]


def test_a_slope_below_1_and_above_0_is_no_reversed_ranking() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(0, 2, 3000)
    y = (rng.random(3000) < 1 / (1 + np.exp(-0.2 * x))).astype(int)
    assert to.audit(y, 1 / (1 + np.exp(-x)), resamples=199).verdict["state"] == "too extreme"


@pytest.mark.parametrize("n", [1, 12, 19])
def test_fewer_than_twenty_rows_are_too_few_to_judge(n: int) -> None:
    y, p = ([1, 0] * 10)[:n], [0.5] * n
    report = to.audit(y, p, resamples=199)
    assert (report.verdict["state"], report.verdict["rejected"]) == ("too few rows", False)
    assert report.verdict["sentence"].startswith("Too few rows to judge: mean predicted")
    assert to.audit([1, 0] * 10, [0.5] * 20, resamples=199).verdict["state"] == "no evidence"


def test_few_clusters_are_too_few_however_many_rows_they_have() -> None:
    rng = np.random.default_rng(5)
    p = rng.uniform(0.2, 0.8, 360)
    y = (rng.random(360) < p).astype(int)
    report = to.audit(to.Predictions(y, p, cluster=np.arange(360) // 30), resamples=199)
    assert report.verdict["state"] == "too few rows"
    assert report.verdict["sentence"].startswith("Too few clusters to judge: mean predicted")


def test_few_rows_that_reject_are_judged() -> None:
    report = to.audit([0] * 15, [0.9] * 15, resamples=199)
    assert (report.verdict["state"], report.verdict["rejected"]) == ("too high", True)


def test_a_distance_has_the_sign_of_the_difference() -> None:
    interval = AuditInterval(low=0.6, high=1.2, level=0.95)
    measure = StandardMeasure(name="calibration_slope", value=0.8, interval=interval)
    assert measure.distance_in_se(1.0) == pytest.approx(-0.2 * 1.959964 / 0.3, rel=1e-6)
    assert StandardMeasure(name="calibration_slope", value=0.8, interval=None).distance_in_se(0.0) == 0.0


@pytest.mark.slow
def test_calibration_in_the_large_has_one_sign_everywhere() -> None:
    # Confidence too high: accuracy minus mean confidence is below 0, in the verdict, the table and the JSON.
    rng = np.random.default_rng(6)
    P = rng.dirichlet([1, 1, 1], 800)
    Q = P**2 / (P**2).sum(axis=1, keepdims=True)
    document = to.audit((P.cumsum(axis=1) > rng.random((800, 1))).argmax(axis=1), Q, resamples=99).to_dict()
    expected = document["data"]["accuracy"] - document["data"]["mean_confidence"]
    assert expected < 0
    (measure,) = (entry for entry in document["standard_measures"] if entry["name"] == "calibration_in_the_large")
    assert document["verdict"]["calibration_in_the_large"] == pytest.approx(expected)
    assert measure["value"] == pytest.approx(expected)
    assert document["verdict"]["calibration_in_the_large_z"] < 0
    table = result_tables.standard_measure_table(typed(document))
    assert table.rows[0][:2] == ("calibration-in-the-large", f"{expected:.4f}")
    assert "Calibration-in-the-large: accuracy minus mean confidence" in table.intro


def test_the_page_is_red_for_a_reversed_ranking_and_neutral_for_too_few_rows() -> None:
    audit = example()
    audit["verdict"] |= {"state": "reversed"}
    assert '<header class="bad">' in render_html(audit)
    audit["verdict"] |= {"state": "too few rows", "rejected": False, "pvalue": 0.4}
    assert '<header class="plain">' in render_html(audit)
