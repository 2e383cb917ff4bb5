"""The opening sentences of a report: events first, nothing confirmed that is not, and no number against them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax

import trueodds as to
from tests.few_candidates import few_candidates
from tests.reports.example import example, typed
from trueodds.reports.audit_sections import AuditData, AuditRecalibration
from trueodds.reports.html.audit_page import render_html
from trueodds.reports.html.methods_paragraph import describe_methods
from trueodds.reports.text import result_tables
from trueodds.reports.text.recalibration import describe_changed_classes
from trueodds.reports.text.summary import summary_lines
from trueodds.reports.text.terminal import render_text
from trueodds.reports.text.verdict_sentence import MAX_HEADLINE_LENGTH, recalibration_wordings


def simulated(slope: float, shift: float, mean: float, n: int = 3000, seed: int = 0, **extra: Any) -> to.Predictions:
    """Two classes with logit p ~ N(mean, 1.5²) and true log odds slope · logit p + shift."""
    rng = np.random.default_rng(seed)
    x = mean + 1.5 * rng.normal(size=n)
    return to.Predictions((rng.random(n) < expit(slope * x + shift)).astype(int), expit(x), **extra)


def test_twice_as_many_events_as_predicted_open_the_verdict_although_the_slope_is_off_too() -> None:
    # Log odds half as far from 0 and shifted: few events are predicted, far more occur, and the slope is 0.5.
    report = to.audit(simulated(0.5, -0.8, -3.5, n=1500), resamples=99)
    data, slope = report.to_dict()["data"], report.to_dict()["standard_measures"][1]
    ratio = data["event_rate"] / data["mean_prediction"]
    assert ratio > 1.25
    assert report.verdict["state"] == "too low"
    assert report.verdict["spread"] == "too extreme"
    words = rf"Too low \(O:E {ratio:.2f}, 95 % CI [\d.]+ to [\d.]+\) and too extreme \(slope {slope['value']:.2f}, "
    assert re.match(words, report.verdict["sentence"])


@pytest.mark.slow
def test_a_slope_that_contradicts_the_mean_confidence_is_stated_in_the_same_sentence() -> None:
    # The true probabilities are less extreme than predicted, except that the predicted class occurs more often.
    rng = np.random.default_rng(2)
    predicted = softmax(1.6 * rng.normal(size=(3000, 5)), axis=1)
    true = softmax(0.8 * np.log(predicted) + np.log(1.45) * (predicted == predicted.max(axis=1, keepdims=True)), axis=1)
    y = (true.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)
    report = to.audit(y, predicted, resamples=199)
    slope = report.to_dict()["standard_measures"][1]
    assert slope["interval"]["high"] < 1
    words = (
        rf"Underconfident, yet as a whole slightly too extreme \(slope {slope['value']:.2f}, 95 % CI .*?\): predicts "
    )
    assert re.match(words, report.verdict["sentence"])
    assert len(report.verdict["sentence"]) <= MAX_HEADLINE_LENGTH


@pytest.mark.slow
def test_the_headline_has_one_sentence_and_one_on_the_recalibration() -> None:
    rng = np.random.default_rng(1)
    for slope, shift, mean in ((0.5, 0.0, 0.0), (1.0, 1.0, -3.0), (1.0, 0.0, 0.0)):
        preds = simulated(slope, shift, mean, n=600, group={"site": rng.choice(["a", "b"], 600)})
        report = to.audit(preds, resamples=99)
        # A period that ends a sentence is followed by a blank and a capital letter, or by nothing.
        assert len(re.findall(r"\.(?= [A-Z]|$)", report.verdict["sentence"])) <= 2


@pytest.mark.parametrize("seed", [1, 5])
def test_calibration_that_is_not_rejected_is_no_green_page_beside_a_slope_whose_interval_excludes_1(seed: int) -> None:
    for attempt in range(60):
        report = to.audit(simulated(0.8, 0.0, 0.0, n=400, seed=100 * seed + attempt), resamples=99)
        if report.verdict["state"] == "inconclusive" and "calibration_slope" in report.verdict["excludes_ideal"]:
            break
    sentence, facts = report.verdict["sentence"], report.to_dict()
    assert sentence.startswith("Inconclusive: ")
    printed = re.search(r"95 % CI of the calibration slope, ([\d.]+) to ([\d.]+), excludes 1", sentence)
    limits = [float(number) for number in printed.groups()]
    assert not limits[0] <= 1 <= limits[1]  # 0.62 to 1.00 would not exclude 1
    assert limits == pytest.approx(
        [facts["standard_measures"][1]["interval"][end] for end in ("low", "high")], abs=0.01
    )
    assert "Calibration not rejected (family-wise p" in report.verdict["details"]
    page = report.to_html()
    assert '<header class="plain">' in page
    assert '<span class="badge">inconclusive</span>' in page
    (line,) = (line for line in summary_lines(typed(facts)) if line.label == "Miscalibration")
    assert (line.value, line.tone) == ("inconclusive", "plain")
    roles = []
    render_text(facts, style=lambda piece, role: roles.append((role, piece)) or piece)
    assert roles[0][0] == "sentence"


def test_an_infinite_log_loss_does_not_turn_an_unconfirmed_gain_into_a_confirmed_one() -> None:
    audit = example()
    audit["recalibration"] |= {"gain_low": -0.0005, "gain_high": 0.0139, "gain_percent": None, "alpha": 0.05}
    audit["recalibration"] |= {"gain": 0.0067, "outcome": "gain not established"}
    audit["recalibration"] |= {"gain_low_percent": None, "log_loss_before": None}
    (line,) = (line for line in summary_lines(typed(audit)) if line.label == "Recalibration")
    gain = "gain not established (0.0067 nats per row, 90 % CI −0.0005 to 0.0139)"
    assert gain in line.remark
    assert line.tone == "plain"
    sentence = recalibration_wordings(typed(audit).recalibration, typed(audit).data)[0].text
    assert sentence.startswith("Temperature scaling (")
    assert sentence.endswith(f": {gain}.")
    assert "reduces" not in sentence


def test_an_undefined_slope_refers_to_the_note_that_has_its_values_with_clipped_probabilities() -> None:
    rng = np.random.default_rng(3)
    p = np.round(rng.beta(0.3, 3, 1500) * 20) / 20  # a twentieth of the trees each: many exact zeros
    preds = to.Predictions((rng.random(1500) < p).astype(int), p)
    facts = to.audit(preds, resamples=99).to_dict()
    rows = {row[0]: row for row in result_tables.standard_measure_table(typed(facts)).rows}
    assert rows["calibration slope"][1] == rows["calibration intercept"][1] == "see TN268"
    note = next(note["text"] for note in facts["notes"] if note["code"] == "TN268")
    low, high = (f"{to.test(preds, 'cox', min_prob=limit).parts['joint']['slope']:.2f}" for limit in (1e-6, 1e-3))
    assert re.search(rf"Clipped at 1e-06, they are \S+ and {low}; clipped at 0.001, \S+ and {high}\.", note)
    assert "limited" not in note


def test_a_threshold_of_one_half_is_not_mentioned_for_rare_events() -> None:
    changes = AuditRecalibration(label_flips=13, accuracy_before=0.95)
    rare = AuditData(source="", n=999, k=2, kind="classes", event_rate=0.05)
    assert describe_changed_classes(changes, rare, only_relevant=True) == ""
    assert describe_changed_classes(changes, rare) == "13 predictions cross the 0.5 threshold"
    assert describe_changed_classes(changes, replace(rare, event_rate=0.4), only_relevant=True) != ""


@pytest.mark.slow
def test_the_methods_state_the_null_distribution_of_clusters_and_every_standard_measure() -> None:
    independent = to.audit(simulated(1.0, 0.0, 0.0, n=400), resamples=99).to_dict()
    clustered = to.audit(simulated(1.0, 0.0, 0.0, n=400, cluster=np.arange(400) // 8), resamples=99).to_dict()
    text = describe_methods(typed(independent)).text
    assert "labels drawn from the predicted probabilities (Bröcker & Smith 2007)" in text
    assert "normal (Wald) intervals for calibration intercept, calibration slope and AUC" in text
    text = describe_methods(typed(clustered)).text
    assert "residuals of whole clusters with their signs flipped at random" in text
    assert "labels drawn from the predicted probabilities" not in text
    assert "Brock" not in text.replace("ö", "o")
    assert (
        "Student t intervals for calibration intercept, calibration slope and AUC (intercept and slope have jackknife"
        in text
    )
    for name in ("calibration intercept", "calibration slope", "O:E ratio", "(ICI), from a loess curve", "AUC"):
        assert name in text


def test_the_caption_of_the_correction_counts_the_bins_outside_their_bars() -> None:
    report = to.audit(simulated(0.5, 0.0, 0.0), resamples=99)
    tables = [report.to_dict()["recalibration"]["diagrams"][time]["table"] for time in ("before", "after")]
    before, after = (sum(table["outside"]) for table in tables)
    page = " ".join(render_html(report.to_dict()).replace("\xa0", " ").split())
    assert f"{before} of {len(tables[0]['outside'])} bins lie outside their consistency bars; after" in page
    assert f", {after or 'none'} of {len(tables[1]['outside'])} " in page
    assert "comes from a map fitted and chosen without that row" in page


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["binary", "classes", "confidence"])
def test_no_quoted_bin_contradicts_the_word_for_the_direction(kind: str) -> None:
    # The true log odds are a slope times the stated ones, centered so that the mean prediction is about right: of two
    # classes, of the answer, or of the predicted class among three.
    rng = np.random.default_rng(88)
    n_quoted, is_too_extreme = (
        0,
        {"overconfident": True, "too extreme": True, "underconfident": False, "too moderate": False},
    )
    for seed in range(12):
        n, slope = 600, rng.choice([0.3, 0.6, 1.8, 3.0])
        P = rng.dirichlet([1, 1, 1], n)
        p = P.max(axis=1) if kind == "classes" else expit(rng.normal(rng.normal(0, 1), 1, n))
        log_odds = np.log(p / (1 - p))
        q = expit(log_odds.mean() + slope * (log_odds - log_odds.mean()))
        y = (rng.random(n) < q).astype(int)
        if kind == "classes":
            second_class = (P.argmax(axis=1) + 1 + (rng.random(n) < 0.5)) % 3
            preds = to.Predictions(np.where(y == 1, P.argmax(axis=1), second_class), P)
        else:
            preds = to.Predictions.from_confidence(p, y) if kind == "confidence" else to.Predictions(y, p)
        with few_candidates():
            verdict = to.audit(preds, resamples=99, rng=seed).verdict
        sentence = str(verdict["details"])
        numbers = re.search(
            r"(?:confidence|predicted at) ([\d.]+) % .*?(?:are right|event rate of) ([\d.]+) %", sentence
        )
        if verdict["state"] not in is_too_extreme or numbers is None:
            continue
        predicted, observed = (float(number) for number in numbers.groups())
        # Rows of two classes below the event rate are too extreme if they are predicted too low.
        is_above = kind != "binary" or predicted >= 100 * y.mean()
        n_quoted += 1
        assert is_too_extreme[verdict["state"]] == ((predicted > observed) == is_above), sentence
    assert n_quoted >= 3
