"""Is what a calibrator wins back of a proper score a lower bound of what miscalibration loses?"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.calibrators.histogram import HistogramSpec
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.cross_fitted import CrossFitted, ScoreRegret
from trueodds.lenses.view import View


def test_halves_by_hand() -> None:
    # The first half has one of two, so the judge says .5; the second said .9 and came once in two:
    # (.81 + .01)/2 − .25 = .16.
    out_of_fold = np.random.default_rng(0).permutation(4) % 2 == 1
    y = np.empty(4)
    y[out_of_fold], y[~out_of_fold] = [0, 1], [0, 1]
    value = ScoreRegret(score="brier", calibrator=HistogramSpec(bins=1), folds=2).value(View([0.9] * 4, y))
    assert value == pytest.approx(0.16, rel=1e-12)
    # In nats, with 1/5 of the uniform mixed in: .9 becomes .82, .5 stays.
    value = ScoreRegret(calibrator=HistogramSpec(bins=1), folds=2).value(View([0.9] * 4, y))
    assert value == pytest.approx(-np.log(0.82 * 0.18) / 2 - np.log(2), rel=1e-12)


@pytest.mark.parametrize("score", ["log_loss", "brier"])
def test_of_a_calibrated_model_nothing_is_won_in_expectation(score: str) -> None:
    # Every outcome of six rows with its probability.
    p = np.array([0.1, 0.3, 0.3, 0.6, 0.8, 0.8])
    error = ScoreRegret(score=score, folds=3)
    mean = 0.0
    for y in product((0, 1), repeat=6):
        mean += float(np.prod(np.where(y, p, 1 - p))) * error.value(View(p, y))
    # Mixing moves the log loss's optimum by less than the share mixed in, 1/7, so the bound holds all the more.
    assert mean < 0


def test_it_is_at_most_what_the_truth_would_win() -> None:
    # True rate p², so the Brier score loses E(p − p²)² = 1/30; 4,000 terms of size at most 1, so 4/√4000 is far out.
    rng = np.random.default_rng(5)
    p = rng.random(4000)
    value = ScoreRegret(score="brier").value(View(p, rng.random(4000) < p**2))
    assert 1 / 30 - 4 * 0.25 * 4000**-0.5 < value < 1 / 30 + 4 * 0.25 * 4000**-0.5


def test_an_impossible_outcome_costs_a_finite_sum() -> None:
    value = ScoreRegret().value(View([0.0, 1.0, 0.5, 0.2], [1, 0, 1, 0]))
    assert np.isfinite(value)


def test_by_name_a_score_takes_the_place_of_the_distance() -> None:
    assert isinstance(ESTIMATORS.make("cross_fitted", {"score": "brier"}), ScoreRegret)
    assert isinstance(ESTIMATORS.make("cross_fitted", {"score": None}), CrossFitted)
    for settings in ({"score": "brier", "distance": "l2"}, {"score": "rps"}):
        with refused("TO203"):
            ESTIMATORS.make("cross_fitted", settings)


def test_measured_it_has_an_interval_and_says_what_it_bounds() -> None:
    rng = np.random.default_rng(6)
    P = rng.dirichlet([1, 1, 1], 500)
    preds = Predictions(P.argmax(axis=1), P)  # far too unsure
    estimate = to.measure(preds, "cross_fitted", score="log_loss", resamples=200)
    assert estimate.lens == "canonical"
    assert estimate.settings["calibrator"] == "temperature"
    assert estimate.interval.low > 0
    assert {"TN135", "TN139"} <= {note.code for note in estimate.notes}
