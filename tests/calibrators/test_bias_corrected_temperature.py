"""Temperature scaling with a bias for each class."""

import numpy as np
import pytest
from scipy.stats import chi2

from tests.calibrators.linear import derived_chance, reference, surplus
from tests.calibrators.rows import draw_predictions, labels, one_hot, powers
from tests.reference import golden
from trueodds.calibrators._glm import log_linear
from trueodds.calibrators._glm.newton import FALLBACK_RIDGE
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.temperature import TemperatureSpec
from trueodds.calibrators.vector import BiasCorrectedTemperatureSpec
from trueodds.data.predictions import Predictions
from trueodds.tallies.softmax_likelihood import softmax_linear


def fit_map(P, y):
    return BiasCorrectedTemperatureSpec().fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


def design(P):
    """(log p, 1 for each class) as a design (n, K, K + 1)."""
    n, k = P.shape
    return np.concatenate([np.log(P)[:, :, None], np.tile(np.eye(k), (n, 1, 1))], axis=2)


def test_two_kinds_of_rows_get_their_rates():
    # β and one bias for two kinds of rows: logit q = β logit p + b goes through both.
    # logit .8 = 2 ln 2, logit .5 = 0; rates ¾ and ⅖: β = (ln 3 − ln ⅔)/(2 ln 2), b = ln ⅔.
    P = np.array([[0.2, 0.8]] * 4 + [[0.5, 0.5]] * 5)
    m = fit_map(P, [1, 1, 1, 0, 1, 1, 0, 0, 0])
    assert m.weights == pytest.approx([np.log(4.5) / (2 * np.log(2))] * 2, abs=1e-9)
    assert m.bias[1] - m.bias[0] == pytest.approx(np.log(2 / 3), abs=1e-9)
    assert m.bias.sum() == pytest.approx(0, abs=1e-15)


def test_the_reference_numbers():
    # golden/recalibration/bias_corrected_ts.json: own program; inside MCLLO and vector scaling.
    want, rows = golden("recalibration/bias_corrected_ts.json"), reference()
    m = BiasCorrectedTemperatureSpec().fit(rows.P, rows.Y, rows.w)
    assert m.weights == pytest.approx([want["beta"]] * 4, abs=1e-8)
    assert m.bias - m.bias[3] == pytest.approx(want["bias_last0"], abs=1e-8)
    assert m.apply(rows.test) == pytest.approx(np.array(want["pred"]), abs=1e-8)
    assert m.describe() == "T = 1.96, biases -0.135 to 0.247"


def test_logits_say_the_same_as_probabilities():
    P, y = draw_predictions(300, 4, 1.7, 0)
    z = np.log(P) + np.arange(300)[:, None] / 7
    one, other = (fit(BiasCorrectedTemperatureSpec(), p) for p in (Predictions.from_logits(y, z), Predictions(y, P)))
    assert one.calibration_map.bias == pytest.approx(other.calibration_map.bias, abs=1e-9)
    assert one.predict_proba(z, logits=True) == pytest.approx(other.predict_proba(P), abs=1e-9)


@pytest.mark.parametrize("k", [2, 5])
def test_no_slope_is_left(k):
    rng = np.random.default_rng(k)
    P, _ = draw_predictions(500, k, 1.7, k)
    Y, w = rng.dirichlet(np.ones(k), 500), rng.random(500)
    m = BiasCorrectedTemperatureSpec().fit(P, Y, w)
    at = softmax_linear(design(P), Y, w, np.append(m.weights[0], m.bias))
    assert m.converged
    assert np.abs(at.gradient).max() / w.sum() <= 1e-8


def test_with_rates_as_predicted_no_bias_is_left():
    # Outcomes of exactly the shares p^½: temperature scaling is the answer, T = 2.
    P = draw_predictions(50, 3, 1.0, 1)[0]
    m = BiasCorrectedTemperatureSpec().fit(P, powers(P, 0.5), np.ones(50))
    assert m.weights == pytest.approx([0.5] * 3, abs=1e-8)
    assert m.bias == pytest.approx([0.0] * 3, abs=1e-8)


def test_the_parameters_are_within_their_errors_of_the_truth():
    rng, truth = np.random.default_rng(2), np.array([0.6, 0.5, 0.0, -0.5])
    P = draw_predictions(20_000, 3, 1.0, 2)[0]
    R = np.exp(design(P) @ truth)
    y = labels(R / R.sum(axis=1, keepdims=True), rng)
    m = fit_map(P, y)
    deviation = np.append(m.weights[0], m.bias) - truth
    H = softmax_linear(design(P), one_hot(y, 3), np.ones(20_000), truth + deviation).hessian
    assert deviation @ H @ deviation < chi2.isf(1e-4, 3)  # Wald's statistic: β and two biases


def test_a_shift_of_class_frequencies_is_undone():
    # Calibrated rows of which every second one of class 0 is lost: biases (−ln 2, 0, 0) up to a constant, β = 1.
    P, y = draw_predictions(30_000, 3, 1.0, 3)
    mask = (y != 0) | (np.random.default_rng(3).random(30_000) < 0.5)
    m = fit_map(P[mask], y[mask])
    # Standard errors are below .03 (three times 1/√10,000): four of them.
    assert m.bias[0] - m.bias[1] == pytest.approx(-np.log(2), abs=0.12)
    assert m.weights[0] == pytest.approx(1, abs=0.12)


def test_seven_classes_and_400_calibrated_rows_cost_no_more_than_chance():
    excess = surplus(BiasCorrectedTemperatureSpec(), 400, 7, games=20, seed=4)
    # A second-order term comes on top of the asymptotic mean m/(2n) without a penalty: a tenth of it at n = 57 m.
    assert excess.mean() < 1.1 * derived_chance(7, 400, 20)


def test_a_class_that_never_occurred_is_all_but_ruled_out():
    P, y = draw_predictions(300, 4, 1.5, 5)
    result = fit(BiasCorrectedTemperatureSpec(), Predictions(y[y != 2], P[y != 2], classes=range(4)))
    assert not result.calibration_map.converged
    assert {"TN501", "TN532"} <= {note.code for note in result.notes}
    Q = result.predict_proba(P[y != 2])
    assert Q[:, 2].sum() == pytest.approx(
        -2 * FALLBACK_RIDGE * result.calibration_map.bias[2], abs=1e-6
    )  # its slope vanishes


def test_uniform_rows_become_the_rates():
    m = fit_map(np.full((8, 4), 0.25), [0, 0, 0, 0, 1, 1, 2, 3])
    assert m.apply(np.full((1, 4), 0.25))[0] == pytest.approx([0.5, 0.25, 0.125, 0.125], abs=1e-9)


def test_predictions_that_point_the_wrong_way_are_noted():
    P = np.array([[0.2, 0.8], [0.8, 0.2], [0.7, 0.3]] * 20)
    result = fit(BiasCorrectedTemperatureSpec(), Predictions([0, 1, 0] * 20, P))
    assert result.calibration_map.weights[0] < 0
    assert "TN533" in [note.code for note in result.notes]
    assert result.calibration_map.describe().startswith("β = -")


def test_many_classes_go_without_the_curvature(monkeypatch):
    P, y = draw_predictions(2000, 5, 1.7, 6)
    one = fit_map(P, y)
    monkeypatch.setattr(log_linear, "MAX_NEWTON_PARAMETERS", 8)
    other = fit_map(P, y)
    assert other.converged
    assert other.apply(P) == pytest.approx(one.apply(P), abs=1e-7)


def test_it_undoes_classes_that_are_named_too_often_which_no_temperature_can():
    P, y = draw_predictions(4000, 3, 1.5, 7)
    Q = P * [3.0, 1.0, 1.0]
    Q /= Q.sum(axis=1, keepdims=True)
    first = TemperatureSpec().fit(Q, one_hot(y, 3), np.ones(4000))
    temperature, both, truth = (
        -np.log(R[np.arange(4000), y]).mean() for R in (first.apply(Q), fit_map(Q, y).apply(Q), powers(P, 1 / 1.5))
    )
    assert both <= truth < temperature  # the truth is one of the maps among which the most likely one is chosen
