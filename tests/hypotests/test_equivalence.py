"""Equivalence margins: the decision depends on the interval and not on the p-value."""

import json

import numpy as np
import pytest

import trueodds as to
from trueodds.core.errors import InputError
from trueodds.hypotests.equivalence import classify_interval


def binary(n=3000, slope=1.0, seed=0):
    """Probabilities whose truth has a logit that is `slope` times published."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 2, n)
    r = p**slope / (p**slope + (1 - p) ** slope)
    return to.Predictions((rng.random(n) < r).astype(int), p)


def run_test(preds, margin, test="consistency", **settings):
    return to.test(preds, test, margin=margin, resamples=19, **settings)


def test_a_model_may_be_significantly_off_and_still_within_the_margin():
    # the truth is off by .033 on average: 20,000 rows reject it, and hold it below .06
    verdict = to.test(binary(20_000, slope=0.8), margin=0.06, resamples=99)
    assert verdict.pvalue == verdict.min_pvalue
    assert verdict.decision == "within"


def test_an_insignificant_p_does_not_make_a_model_good_enough():
    verdict = run_test(binary(60), 0.05)
    assert verdict.pvalue > 0.05
    assert verdict.decision == "undecided"


def test_a_model_that_is_off_by_more_is_beyond():
    assert run_test(binary(3000, slope=0.4), 0.02).decision == "beyond"


@pytest.mark.slow
def test_a_true_error_beyond_the_margin_is_hardly_ever_called_within():
    # truth |r − p| = .1226 on average, above the margin .1: `within` needs an interval that misses it from below, of
    # which 2.5 % do so by design. 60 sets: at most 6 with 99.9 % (Binomial(60, .025)). The other way round the
    # truth .0205 at slope .87 is hardly ever beyond .1.
    within = [run_test(binary(300, 0.4, seed), 0.1).decision == "within" for seed in range(60)]
    beyond = [run_test(binary(300, 0.87, seed), 0.1).decision == "beyond" for seed in range(60)]
    assert sum(within) <= 6
    assert sum(beyond) <= 6


def test_an_interval_that_ends_at_the_margin_lies_within_it():
    assert classify_interval(0.0, 0.02, 0.02) == "within"
    assert classify_interval(0.02, 0.03, 0.02) == "undecided"


@pytest.mark.parametrize(
    "settings", [{"bins": 10}, {"statistic": "smece"}, {"lens": "confidence", "level": 0.9}], ids=str
)
def test_the_interval_is_the_one_that_measure_gives(settings):
    preds = binary(400)
    settings_used = run_test(preds, 0.1, **settings).settings
    measure_settings = {key: value for key, value in settings.items() if key != "statistic"}
    interval = to.measure(preds, settings.get("statistic", "ece"), **measure_settings).interval
    assert (settings_used["low"], settings_used["high"], settings_used["level"]) == (
        interval.low,
        interval.high,
        interval.level,
    )


def test_a_margin_leaves_p_and_statistic_alone():
    preds = binary(300)
    with_it, without = run_test(preds, 0.05), to.test(preds, "consistency", resamples=19)
    assert (with_it.pvalue, with_it.statistic, with_it.effect) == (without.pvalue, without.statistic, without.effect)
    assert without.decision is None
    assert "margin" not in str(without)


def test_the_decision_is_in_the_line_in_a_note_and_in_the_json():
    verdict = run_test(binary(3000), 0.1)
    assert " · within the margin of 0.1 · n=3,000" in str(verdict)
    (note,) = [note for note in verdict.notes if note.code == "TN230"]
    assert "lies at or below the equivalence margin of 0.1" in note.text
    settings_used = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))["settings"]
    assert (settings_used["margin"], settings_used["decision"]) == (0.1, "within")
    assert settings_used["low"] <= settings_used["high"] <= 0.1
    assert " · undecided about the margin of 0.03 · " in str(run_test(binary(60), 0.03))


@pytest.mark.parametrize(
    ("test", "estimator", "settings"),
    [("ks", "ks", {"start": "both"}), ("ecce", "ecce_r", {}), ("debiased_l2", "debiased_l2", {})],
)
def test_tests_of_an_error_are_decided_by_its_interval(test, estimator, settings):
    preds = binary(500)
    settings_used = run_test(preds, 0.2, test).settings
    interval = to.measure(preds, estimator, **settings).interval
    assert (settings_used["low"], settings_used["high"]) == (interval.low, interval.high)


def test_tcal_is_decided_by_its_debiased_error():
    verdict = run_test(binary(500, slope=0.3), 0.01, "tcal")
    assert verdict.decision == "beyond"


def test_under_another_hypothesis_the_distance_to_it_is_compared():
    # the truth is p^slope normalized, so that under this hypothesis the model is right and under the identity not
    preds, slope = binary(6000, slope=0.4), 0.4

    def rho(P):
        return P**slope / (P**slope).sum(axis=1, keepdims=True)

    assert run_test(preds, 0.06, hypothesis=rho).decision == "within"
    assert run_test(preds, 0.06).decision == "beyond"
    for lens in ("classwise", "canonical"):
        assert run_test(preds, 0.06, hypothesis=rho, lens=lens).decision == "within"


def test_a_tally_has_a_decision_as_well():
    preds = binary(3000)
    assert run_test(to.tally(preds), 0.1).decision == "within"


def test_where_there_is_no_interval_nothing_is_decided():
    P = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    verdict = run_test(to.tally(to.Predictions(np.arange(200) % 3, P)), 0.9, lens="classwise")
    assert verdict.decision == "undecided"
    assert verdict.settings["low"] is None
    assert "No decision" in verdict.notes[-1].text
    one_row = run_test(to.Predictions([1], [0.9]), 0.5)
    assert one_row.decision == "undecided"


@pytest.mark.parametrize("margin", [0, -0.1, 1.5, "2%", True, float("nan")], ids=str)
def test_a_margin_is_a_share(margin):
    with pytest.raises(InputError, match="TO203"):
        run_test(binary(40), margin)


@pytest.mark.parametrize(
    "settings",
    [
        {"test": "spiegelhalter"},  # z is no error
        {"test": "consistency", "statistic": "skce"},  # a squared one
        {"test": "consistency", "statistic": "log_loss"},  # not 0 for a calibrated model
        {"test": "consistency", "statistic": "o_e"},  # 1 for a calibrated model
        {"lens": ["positive", "confidence"]},
    ],
    ids=str,
)
def test_a_margin_without_an_error_to_compare_is_refused(settings):
    with pytest.raises(InputError, match="TO205"):
        to.test(binary(40), margin=0.1, **settings)


def test_another_test_refers_to_consistency():
    with pytest.raises(InputError, match="Use consistency"):
        to.test(binary(40), "spiegelhalter", margin=0.1)


def test_a_margin_of_half_the_event_rate_is_noted():
    # Events of 4 %, all predicted as 2 %: the error of .02 is below the margin, although every risk is half of the
    # true one.
    y = np.arange(5000) % 25 == 0
    halved = to.Predictions(y.astype(int), np.full(5000, 0.02))
    verdict = run_test(halved, 0.05)
    assert verdict.decision == "within"
    (note,) = [note for note in verdict.notes if note.code == "TN240"]
    assert "at least half of the rate of the rarer outcome, 4 %" in note.text
    common = to.Predictions(1 - y.astype(int), np.full(5000, 0.98))  # the same for the complement
    for preds, settings, expected in (
        (common, {}, 1),
        (halved, {"lens": "confidence"}, 0),
        (halved, {"lens": "class:1"}, 1),
        (to.tally(halved), {}, 1),
        (binary(), {}, 0),
    ):
        codes = [note.code for note in run_test(preds, 0.05, **settings).notes]
        assert codes.count("TN240") == expected, settings
    beyond = run_test(to.Predictions(y.astype(int), np.full(5000, 0.2)), 0.05)
    assert (beyond.decision, "TN240" in [note.code for note in beyond.notes]) == ("beyond", False)
