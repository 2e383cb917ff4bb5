"""Logits are said, kept and never guessed."""

import numpy as np
import pytest

from tests.calibrators.rows import draw_predictions, one_hot
from trueodds.calibrators import Temperature
from trueodds.calibrators._glm.log_probabilities import floored_logs, log_odds, softmax
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.temperature import TemperatureSpec
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions


def test_predictions_keep_the_logits_they_were_made_of_through_subsets():
    z = np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.25]])
    preds = Predictions.from_logits([0, 1, 1], z)
    assert (preds.logits == z).all()
    assert (preds[[2, 0]].logits == z[[2, 0]]).all()
    assert Predictions([0, 1], [0.2, 0.7]).logits is None
    with pytest.raises(ValueError, match="read-only"):
        preds.logits[0, 0] = 3.0


def test_a_map_of_probabilities_takes_logits_that_are_declared():
    P, y = draw_predictions(200, 3, 2.0, 0)
    z = np.log(P) + np.arange(200)[:, None]  # a constant per row changes no probability
    calibrator = fit(TemperatureSpec(), Predictions.from_logits(y, z))
    assert calibrator.predict_proba(z, logits=True) == pytest.approx(calibrator.predict_proba(P), abs=1e-12)
    with pytest.raises(InputError, match="TO102"):
        calibrator.predict_proba(z)
    with pytest.raises(InputError, match="TO501"):
        calibrator.predict_proba(z[:, :2], logits=True)
    with pytest.raises(InputError, match="TO103"):
        calibrator.predict_proba([[np.nan, 0.0, 0.0]], logits=True)


def test_log_odds_of_one_column_are_those_of_the_second_class():
    calibrator = fit(TemperatureSpec(), Predictions([1, 1, 1, 0], [0.9, 0.9, 0.9, 0.9]))
    assert calibrator.predict_proba([np.log(9)], logits=True).round(6).tolist() == [[0.25, 0.75]]  # T = 2


def test_the_estimator_reads_logits_that_are_declared():
    P, y = draw_predictions(200, 3, 2.0, 1)
    one, other = Temperature(logits=True).fit(np.log(P), y), Temperature().fit(P, y)
    assert one.predict_proba(np.log(P)) == pytest.approx(other.predict_proba(P), abs=1e-9)
    with pytest.raises(InputError, match="TO102"):
        Temperature().fit(np.log(P), y)


def test_only_some_methods_know_an_interval():
    calibrator = fit(TemperatureSpec(), Predictions([1, 1, 1, 0], [0.9, 0.9, 0.9, 0.9]))
    with pytest.raises(InputError, match="TO510"):
        calibrator.predict_interval([0.3])


def test_logs_are_floored_and_softmax_knows_both_infinities():
    logs = floored_logs(np.array([[0.5, 0.0], [2.0, 2.0]]), 1e-3)
    assert logs.tolist() == [[0.0, np.log(1e-3) - np.log(0.5)], [np.log(0.5), np.log(0.5)]]
    assert log_odds(np.array([0.0, 0.25]), 1e-6) == pytest.approx([np.log(1e-6), np.log(1 / 3)])
    # (−∞, 0): all on the second; (+∞, 0, +∞): halves of the infinite ones
    assert softmax(np.array([[-np.inf, 0.0]])).tolist() == [[0.0, 1.0]]
    assert softmax(np.array([[np.inf, 0.0, np.inf]])).tolist() == [[0.5, 0.0, 0.5]]


def test_newton_reaches_a_minimum_and_flags_one_at_infinity():
    from trueodds.calibrators._glm.newton import Ridge, minimize_newton
    from trueodds.tallies.softmax_likelihood import softmax_linear

    # Two classes, η = (0, θ): three of four came, so θ = log 3; with all four θ grows for ever.
    X, w = np.array([[[0.0], [1.0]]] * 4), np.ones(4)
    inside = minimize_newton(lambda t: softmax_linear(X, one_hot([1, 1, 1, 0]), w, t), np.zeros(1))
    assert inside.converged
    assert inside.theta[0] == pytest.approx(np.log(3), abs=1e-9)
    outside = minimize_newton(lambda t: softmax_linear(X, one_hot([1, 1, 1, 1]), w, t), np.zeros(1))
    assert not outside.converged
    assert np.isfinite(outside.theta).all()
    # With the ridge a(θ − 1)², a = 1: σ(θ) − 3/4 + 2(θ − 1) = 0.
    penalized = minimize_newton(
        lambda t: softmax_linear(X, one_hot([1, 1, 1, 0]), w, t), np.zeros(1), Ridge(np.ones(1), np.ones(1))
    )
    assert 1 / (1 + np.exp(-penalized.theta[0])) - 0.75 + 2 * (penalized.theta[0] - 1) == pytest.approx(0, abs=1e-9)
