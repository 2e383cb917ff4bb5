"""Is the utility of answering or not the integral it stands for, and is truthful confidence the best?"""

from __future__ import annotations

import math

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.estimators.selective_prediction import AnswerOrAbstain
from trueodds.lenses.view import View


def test_by_hand() -> None:
    # right at .9: .9; wrong at .5: .5 + log .5 = −.19315; wrong at 0: 0; right at 1: 1
    view = View([0.9, 0.5, 0.0, 1.0], [1, 0, 0, 1])
    assert float(AnswerOrAbstain()(view)) == pytest.approx((0.9 + 0.5 + math.log(0.5) + 0 + 1) / 4, rel=1e-14)
    weighted = View([0.9, 0.5], [1, 0], [1, 3])
    assert float(AnswerOrAbstain()(weighted)) == pytest.approx((0.9 + 3 * (0.5 + math.log(0.5))) / 4, rel=1e-14)


def test_it_is_the_mean_utility_over_all_thresholds() -> None:
    """At price t, answers of confidence ≥ t are given: 1 if right, −t/(1 − t) if wrong; midpoints of 200,000 steps."""
    c, y = np.array([0.3, 0.62, 0.85, 0.97]), np.array([0, 1, 0, 1])
    t = (np.arange(200_000) + 0.5) / 200_000
    utility = np.where(y[:, None] == 1, 1.0, -t / (1 - t)) * (c[:, None] >= t)
    # one step has height at most 1 + .85/.15 < 7, so an end is off by at most 7/200,000
    assert AnswerOrAbstain().value(View(c, y)) == pytest.approx(utility.mean(), abs=7 / 200_000)


def test_truthful_confidence_earns_the_most() -> None:
    rng = np.random.default_rng(0)
    q = rng.uniform(0.05, 0.95, 2000)
    truth = AnswerOrAbstain().value(View(q, q))  # outcomes as shares: the expectation itself
    for bent in (q**0.8, q**1.25, np.clip(q + 0.02, 0, 1), np.full(2000, q.mean())):
        assert AnswerOrAbstain().value(View(bent, q)) < truth
    assert AnswerOrAbstain().expected_if_calibrated(View(q, rng.random(2000) < q)) == pytest.approx(truth, rel=1e-12)


def test_the_noise_floor_is_the_mean_of_calibrated_data() -> None:
    # Over 400 data sets of 100 rows: the mean's standard error is the sd of one over √400; 4 of them.
    rng = np.random.default_rng(1)
    c = rng.uniform(0, 0.99, 100)
    values = [AnswerOrAbstain().value(View(c, rng.random(100) < c)) for _ in range(400)]
    assert abs(np.mean(values) - AnswerOrAbstain().expected_if_calibrated(View(c, c > 0.5))) < 4 * np.std(values) / 20


def test_too_much_confidence_costs_more_than_too_little() -> None:
    q = np.full(1, 0.5)
    overconfident, underconfident = (AnswerOrAbstain().value(View([c], q)) for c in (0.9, 0.1))
    assert overconfident < underconfident < AnswerOrAbstain().value(View(q, q))


def test_one_wrong_answer_that_was_called_certain_is_evidence_and_kept() -> None:
    preds = to.Predictions.from_confidence([1.0, 1.0, 0.5], [1, 0, 1])
    estimate = to.measure(preds, "bas")
    assert estimate.value == -math.inf
    assert [note.code for note in estimate.notes] == ["TN104", "TN201"]  # and no interval
    assert estimate.notes[0].text.startswith("1 answer with confidence 1")
    assert "−∞. min_prob=0.01 assumes" in estimate.notes[0].text
    assert estimate.to_dict()["value"] is None
    floored = to.measure(preds, "bas", min_prob=0.01)
    assert floored.value == pytest.approx((1 + 1 + math.log(0.01) + 0.5) / 3, rel=1e-14)
    assert [note.code for note in floored.notes] == ["TN104", "TN106"]
    assert "min_prob" not in floored.notes[0].text  # it is there already
    assert "2 rows" in floored.notes[1].text
    assert floored.settings["min_prob"] == 0.01


def test_the_confidence_in_the_predicted_class_is_the_default() -> None:
    P, y = [[0.2, 0.7, 0.1], [0.4, 0.3, 0.3]], [1, 2]
    estimate = to.measure(to.Predictions(y, P), "bas", interval=None)
    assert (estimate.lens, estimate.value) == ("confidence", pytest.approx((0.7 + 0.4 + math.log(0.6)) / 2, rel=1e-14))


def test_more_is_better_for_scorers_and_comparisons() -> None:
    rng = np.random.default_rng(2)
    q = rng.uniform(0.5, 0.95, 500)
    z = rng.random(500) < q
    good, bad = to.Predictions.from_confidence(q, z), to.Predictions.from_confidence(q**0.2, z)
    assert float(to.measure(good, "bas", interval=None)) > float(to.measure(bad, "bas", interval=None))
    assert AnswerOrAbstain().as_loss(0.4) < AnswerOrAbstain().as_loss(-0.2)


def test_settings_and_lenses_without_meaning_are_refused() -> None:
    for min_prob in (-0.1, 1, "a", True):
        with refused("TO203"):
            AnswerOrAbstain(min_prob=min_prob)
    with refused("TO205"):
        to.measure(to.Predictions([0, 1, 2], np.full((3, 3), 1 / 3)), "bas", lens="canonical")
