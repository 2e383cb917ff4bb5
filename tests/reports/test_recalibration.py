"""What the audit says about a recalibration: whose gain it is, how certain it is, and what the map changes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.calibrators.rows import powers
from tests.reports.example import example, typed
from trueodds.core.formatting import format_error_range
from trueodds.reports.text import recalibration
from trueodds.reports.text.summary import summary_lines
from trueodds.reports.text.terminal import render_text
from trueodds.reports.text.verdict_sentence import recalibration_wordings


def drawn(n: int, power: float, seed: int) -> to.Predictions:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([1, 1, 1], n)
    return to.Predictions((P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), powers(P, power))


def fix_fact(audit: dict[str, Any]) -> Any:
    return next(fact for fact in summary_lines(typed(audit)) if fact.label == "Recalibration")


@pytest.mark.slow
def test_the_gain_of_choice_and_fit_is_not_called_that_of_the_chosen_method() -> None:
    report = to.audit(drawn(400, 1.6, 6), resamples=99)
    fix = report.to_dict()["recalibration"]
    assert (fix["applied"], fix["gain_of"]) == ("temperature", "procedure")
    assert (
        "Recalibration, here by temperature scaling (T = 1.40), reduces the log loss by" in report.verdict["sentence"]
    )
    remark = fix_fact(report.to_dict()).remark
    assert remark.startswith("held-out log loss ")
    assert "the gain is that of the whole selection procedure, because the folds chose different methods" in remark
    assert "the predicted class changes in no row, accuracy stays" in remark


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3, 4])
def test_calibrated_data_get_no_number_of_rows_that_is_extrapolated_from_noise(seed: int) -> None:
    report = to.audit(drawn(300, 1.0, seed), resamples=99)
    assert report.verdict["state"] == "no evidence"
    assert report.verdict["sentence"].endswith("No recalibration improves the held-out log loss significantly.")
    document = report.to_dict()
    assert (document["recalibration"]["outcome"], document["recalibration"]["required_rows"]) == ("no gain", None)
    assert "needed" not in str(report)
    assert "TN543" not in {note.code for note in report.notes}


@pytest.mark.slow
def test_an_unconfirmed_gain_beside_a_rejection_says_how_many_rows_it_needs() -> None:
    # Two groups are wrong in opposite directions: calibration is rejected, and one map for all rows gains little.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, site = rng.uniform(0.1, 0.9, 2000), rng.choice(["A", "B"], 2000)
        y = (rng.random(2000) < p + np.where(site == "A", 0.1, -0.1)).astype(int)
        report = to.audit(to.Predictions(y, p, group={"site": site}), resamples=199)
        fix = report.to_dict()["recalibration"]
        if fix["outcome"] == "too few rows":
            break
    assert report.verdict["rejected"]
    assert "No recalibration could be confirmed with 2,000 rows." in report.verdict["sentence"]


def test_the_lower_limit_of_the_gain_states_its_confidence() -> None:
    audit = example()
    audit["recalibration"]["alpha"] = 0.0025  # the tests do not reject: 5 % of alpha
    assert ("lower 99.75 % confidence limit of the gain", "0.2232") in recalibration.recalibration_table(
        typed(audit)
    ).rows


@pytest.mark.slow
def test_percentages_of_the_log_loss_have_the_same_digits_everywhere() -> None:
    report = to.audit(drawn(1500, 2.0, 2), resamples=99)
    fix = report.to_dict()["recalibration"]
    percent = f"{fix['gain_percent']:.1f} %"
    assert f"by {percent} (at least {fix['gain_low_percent']:.1f} % with" in report.verdict["sentence"]
    assert f": {percent} lower, at least " in fix_fact(report.to_dict()).remark
    assert (recalibration.format_gain_percent(78.0), recalibration.format_gain_percent(0.98)) == ("78.0 %", "1.0 %")


def test_a_temperature_has_two_decimals_in_the_sentence_and_in_the_summary() -> None:
    # Each class with probability 1/4 instead of 1/10: T = ln 9 / ln 3 = 2 exactly.
    P = np.array([[0.1, 0.9]] * 400)
    report = to.audit([1, 1, 1, 0] * 100, P, resamples=99)
    fix = report.to_dict()["recalibration"]
    assert fix["map_text"] == "T = 2.00"
    assert "emperature scaling (T = 2.00)" in report.verdict["sentence"]
    assert fix_fact(report.to_dict()).value in ("temperature scaling, T = 2.00", "hardly better than a constant")


@pytest.mark.slow
def test_a_gain_of_uncertain_size_is_not_said_to_be_a_reduction() -> None:
    for seed in range(40):
        report = to.audit(drawn(60, 2.0, seed), resamples=99)
        fix = report.to_dict()["recalibration"]
        if fix["confirmed"] and fix["gain_low"] <= 0:
            break
    assert re.search(
        r": gain not established \(\S+ nats per row, 90 % CI −0\.\d+ to 0\.\d+\)\.$",
        report.verdict["sentence"],
    )
    assert "Gain not established, although" in next(note.text for note in report.notes if note.code == "TN509")
    assert fix_fact(report.to_dict()).tone == "plain"
    assert ("outcome", "gain not established") in recalibration.recalibration_table(typed(report.to_dict())).rows
    assert fix["gain"] > 0  # the README: recommended only if it improves predictions for other rows


def test_too_few_rows_are_the_reason_after_a_colon() -> None:
    report = to.audit([0, 1] * 6, [0.3, 0.6] * 6, resamples=99)
    text = " ".join(str(report).split())
    assert "Recalibration not attempted: 12 rows are too few (at least 20 are required) Scores" in text


def test_the_limits_of_an_interval_have_the_same_decimals() -> None:
    assert format_error_range(0.00009, 0.503) == "0.000 to 0.503"
    audit = example()
    audit["measures"][2]["interval"] |= {"low": 0.00009, "high": 0.503}
    assert "0.000 to 0.503" in " ".join(render_text(audit).split())


def candidate(method: str, difference: float | None, se: float | None, **more: Any) -> dict[str, Any]:
    values = {
        "log_loss": 0.4,
        "brier": 0.1,
        "label_flips": 0,
        "accuracy_change": 0.0,
        "chosen": False,
        "parameters": "x",
    }
    return values | {"method": method, "difference": difference, "se": se} | more


def test_the_table_of_candidates_states_the_rule_that_chose() -> None:
    audit = example()
    fix = audit["recalibration"]
    intro = recalibration.candidate_table(typed(audit)).intro
    assert "within one standard error of the best, and that has at least half of its gain" in intro
    # Beyond one standard error of the best, temperature scaling was confirmed by itself.
    fix["candidates"] = [
        candidate("identity", 0.1, 0.02),
        candidate("temperature", 0.03, 0.02, chosen=True),
        candidate("vector", 0.01, 0.02),
        candidate("spline", 0.0, 0.0),
    ]
    intro = recalibration.candidate_table(typed(audit)).intro
    assert "Chosen: temperature scaling, which was specified in advance" in intro
    fix["candidates"][1]["difference"] = 0.02  # within one standard error
    assert "Chosen: the simplest candidate" in recalibration.candidate_table(typed(audit)).intro
    fix["candidates"][1]["chosen"], fix["candidates"][0]["chosen"] = False, True
    assert "Chosen: the original probabilities" in recalibration.candidate_table(typed(audit)).intro


def test_another_log_loss_of_the_original_probabilities_in_the_table_is_explained() -> None:
    audit = example()
    audit["recalibration"]["candidates"] = [candidate("identity", 0.1, 0.02), candidate("temperature", 0.0, 0.0)]
    audit["recalibration"]["log_loss_before"] = 0.4
    assert "TN508" not in recalibration.candidate_table(typed(audit)).intro
    audit["recalibration"]["log_loss_before"] = 0.4002
    assert "(TN508), so the log loss of the original ones" in recalibration.candidate_table(typed(audit)).intro
    audit["recalibration"]["log_loss_before"] = None  # infinite: once taken for the value in the table
    assert "(TN508), so the log loss of the original ones" in recalibration.candidate_table(typed(audit)).intro


def test_the_table_of_candidates_shows_those_that_were_compared_and_names_the_dropped_ones() -> None:
    table = recalibration.candidate_table(typed(example())).without_details()
    names = [column.name for column in table.columns]
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in table.rows}
    assert (rows["mcllo"]["difference"], rows["mcllo"]["standard error"]) == ("0.0032", "0.0119")
    assert rows["temperature"][""] == "chosen"
    candidates = [entry["method"] for entry in example()["recalibration"]["candidates"]]
    assert list(rows) == [name for name in candidates if name != "isotonic"]
    assert table.intro.endswith("to fewer rows: isotonic (0.1873).")


def test_a_candidate_that_is_chosen_and_not_applied_is_marked_so() -> None:
    audit = example()
    audit["recalibration"] |= {"confirmed": False, "outcome": "too few rows", "applied": "identity"}
    rows = {row[0]: row[-1] for row in recalibration.candidate_table(typed(audit)).rows}
    assert rows["temperature"] == "chosen, not confirmed"


def test_the_interval_of_a_gain_in_a_sentence_has_no_exponent_and_shows_on_which_side_of_0_it_ends() -> None:
    audit = example()
    audit["recalibration"] |= {"outcome": "gain not established", "gain_low": -2.27e-05, "gain_high": 0.0230}
    sentence = recalibration_wordings(typed(audit).recalibration, typed(audit).data)[0].text
    assert "nats per row, 90 % CI −0.00002 to 0.02300)" in sentence
