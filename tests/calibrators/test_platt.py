"""Platt scaling."""

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, one_hot
from tests.reference import frame, golden
from trueodds.calibrators._glm.log_probabilities import log_odds
from trueodds.calibrators._glm.logistic_regression import intercept_and_score, logistic_likelihood, smoothed_targets
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.llo import LloSpec
from trueodds.calibrators.logistic import PlattSpec
from trueodds.data.predictions import Predictions


def fit_map(P, y, **settings):
    return PlattSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


def test_held_shares_are_met_exactly_by_two_scores():
    # Said .9: all of two came; said .1: none of two. The shares (2 + 1)/(2 + 2) and 1/(2 + 2) are met:
    # b + s ln 9 = ln 3 and b − s ln 9 = −ln 3, so s = 1/2 and b = 0.
    m = fit_map(both([0.9, 0.9, 0.1, 0.1]), [1, 1, 0, 0])
    assert (m.curves[0].slope, m.curves[0].intercept) == (pytest.approx(0.5), pytest.approx(0, abs=1e-9))
    assert m.converged


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("score_smoothed", {}),
        ("score_plain", {"smooth": False}),
        ("p_smoothed", {"on": "raw"}),
        ("p_plain", {"on": "raw", "smooth": False}),
    ],
)
def test_the_reference_numbers(key, settings):
    # scikit-learn's _SigmoidCalibration 1e-10, LogisticRegression 3e-11 (golden/recalibration/platt.json).
    want, rows = golden("recalibration/platt.json"), frame("recalibration/binary.csv")
    m = fit_map(both(rows["p"]), rows["y"], **settings)
    assert m.curves[0].slope == pytest.approx(want[key]["slope"], abs=1e-8)
    assert m.curves[0].intercept == pytest.approx(want[key]["intercept"], abs=1e-8)
    assert m.apply(both(want["grid"]))[:, 1] == pytest.approx(np.array(want[key]["pred_grid"]), abs=1e-8)
    x = rows["p"] if "on" in settings else log_odds(rows["p"], 1e-12)
    y = rows["y"] if "smooth" in settings else smoothed_targets(rows["y"], np.ones(300))
    at = logistic_likelihood(
        intercept_and_score(x), y, np.ones(300), np.array([m.curves[0].intercept, m.curves[0].slope])
    )
    assert at.value == pytest.approx(want[key]["sum_loss"], rel=1e-10)
    assert np.abs(at.gradient).max() <= 1e-8 * 300


def test_unsmoothed_on_log_odds_it_is_llo():
    P, y = draw_predictions(400, 2, 2.0, 0)
    assert fit_map(P, y, smooth=False).apply(P) == pytest.approx(LloSpec().fit(P, one_hot(y), np.ones(400)).apply(P))


def test_the_sigmoid_of_p_cannot_leave_calibrated_probabilities_alone():
    # scikit-learn's "sigmoid" takes p itself where a model has no decision function. Uniform scores that are
    # calibrated: the best sigmoid of p is off by .03 and more near the ends, that of log odds by chance alone.
    rng = np.random.default_rng(0)
    P = both(rng.random(50_000))
    y = rng.random(50_000) < P[:, 1]
    grid = both([0.02, 0.98])
    # Near p = .02 one standard error of the fit is below .001.
    assert np.abs(fit_map(P, y).apply(grid) - grid).max() < 0.005
    assert np.abs(fit_map(P, y, on="raw").apply(grid) - grid).max() > 0.03


def test_the_estimate_is_within_its_standard_errors_of_the_truth():
    rng = np.random.default_rng(1)
    x = 2 * rng.normal(size=20_000)
    P, y = both(1 / (1 + np.exp(-x))), (rng.random(20_000) < 1 / (1 + np.exp(-(0.4 * x - 0.3)))).astype(float)
    curve = fit_map(P, y).curves[0]
    errors = np.sqrt(
        np.diag(
            np.linalg.inv(
                logistic_likelihood(intercept_and_score(x), y, np.ones(20_000), np.array([-0.3, 0.4])).hessian
            )
        )
    )
    # Four standard errors, once in 16,000 seeds; the held shares move the estimate by 1e-4 of one.
    assert abs(curve.intercept + 0.3) < 4 * errors[0]
    assert abs(curve.slope - 0.4) < 4 * errors[1]


def test_more_classes_are_one_against_the_rest_over_their_sum():
    P, y = draw_predictions(500, 3, 2.0, 2)
    m = fit_map(P, y)
    alone = [fit_map(both(P[:, c]), y == c).apply(both(P[:, c]))[:, 1] for c in range(3)]
    raw = np.stack(alone, axis=1)
    assert m.apply(P) == pytest.approx(raw / raw.sum(axis=1, keepdims=True), abs=1e-9)
    assert "3 curves" in m.describe()


def test_separation_is_tamed_or_noted():
    preds = Predictions([0, 0, 1, 1], [0.2, 0.3, 0.7, 0.9])
    smooth, plain = fit(PlattSpec(), preds), fit(PlattSpec(smooth=False), preds)
    assert smooth.calibration_map.converged
    assert smooth.notes == ()
    assert not plain.calibration_map.converged
    assert [note.code for note in plain.notes] == ["TN515"]
    assert plain.predict_proba([0.9]) == pytest.approx(smooth.predict_proba([0.9]))


def test_a_slope_that_is_not_positive_is_noted():
    P, y = draw_predictions(300, 2, 1.0, 3)
    assert "TN517" in [note.code for note in fit(PlattSpec(), Predictions(1 - y, P)).notes]
    constant = fit(PlattSpec(), Predictions([1, 0, 0], [0.4] * 3))
    assert [note.code for note in constant.notes] == ["TN517"]
    # The mean of the held shares 2/3, 1/4, 1/4, whatever the score.
    assert constant.predict_proba([0.1, 0.9])[:, 1] == pytest.approx([7 / 18] * 2)


def test_exact_zeros_and_ones_pass_through():
    P = np.concatenate([both([0.3, 0.4, 0.6, 0.7]), np.eye(2)])
    result = fit(PlattSpec(), Predictions([0, 1, 0, 1, 0, 1], P))
    assert result.predict_proba(np.eye(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert "TN502" in [note.code for note in result.notes]
    assert (fit(PlattSpec(on="raw"), Predictions([0, 1, 0, 1, 0, 1], P)).predict_proba(np.eye(2)) > 0).all()


def test_one_ulp_above_one_is_one():
    m = fit_map(both([0.3, 0.4, 0.6, 0.7]), [0, 1, 0, 1])
    above_one = np.nextafter(1.0, 2.0)
    assert m.apply(np.array([[0.0, above_one]])).tolist() == [[0.0, 1.0]]
