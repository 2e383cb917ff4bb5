"""A bias for each class, without a slope."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit, softmax

import trueodds as to
from tests.calibrators.rows import both, draw_predictions, labels, one_hot
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators._glm import log_linear
from trueodds.calibrators._glm.newton import FALLBACK_RIDGE
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.vector import ShiftSpec
from trueodds.data.predictions import Predictions


def shift_of(m):
    """The shift of the log odds of two classes."""
    return m.bias[1] - m.bias[0]


def test_a_constant_prediction_is_shifted_to_the_event_rate():
    # One row value p = .3, 6 events in 10 rows: b = logit .6 − logit .3 = log(3/2) − log(3/7) = log(7/2).
    m = ShiftSpec().fit(both([0.3] * 10), one_hot([1] * 6 + [0] * 4), np.ones(10))
    assert shift_of(m) == pytest.approx(np.log(3.5), abs=1e-9)
    assert m.apply(both([0.3]))[0] == pytest.approx([0.4, 0.6], abs=1e-9)
    assert m.describe() == "log odds +1.25"


def test_a_constant_row_of_several_classes_becomes_the_frequencies():
    # Frequencies (.5, .3, .2) for the row (.2, .3, .5): b = log(.5/.2, 1, .2/.5) = log(2.5, 1, .4), whose sum is 0.
    m = ShiftSpec().fit(np.tile([0.2, 0.3, 0.5], (10, 1)), one_hot([0] * 5 + [1] * 3 + [2] * 2, 3), np.ones(10))
    assert m.bias == pytest.approx(np.log([2.5, 1.0, 0.4]), abs=1e-9)
    assert m.apply(np.array([[0.2, 0.3, 0.5]]))[0] == pytest.approx([0.5, 0.3, 0.2], abs=1e-9)


def test_weights_and_vote_shares_count_as_such():
    # Event share (3 · .8 + 1 · .2)/4 = .65 for p = .5: b = log(13/7).
    m = ShiftSpec().fit(both([0.5, 0.5]), both([0.8, 0.2]), np.array([3.0, 1.0]))
    assert shift_of(m) == pytest.approx(np.log(13 / 7), abs=1e-9)


def test_two_classes_agree_with_a_root_of_the_score_equation():
    rng = np.random.default_rng(0)
    p, y, w = rng.random(300), rng.random(300), rng.exponential(size=300)
    m = ShiftSpec().fit(both(p), both(y), w)
    b = brentq(lambda b: w @ (expit(logit(p) + b) - y), -5, 5, xtol=1e-13)
    # A remaining gradient of 1e-10 per row, over a curvature of more than .1.
    assert shift_of(m) == pytest.approx(b, abs=1e-9)


@pytest.mark.parametrize("k", [3, 6])
def test_several_classes_agree_with_another_optimizer(k):
    rng = np.random.default_rng(k)
    P, Y, w = rng.dirichlet(np.ones(k), 400), rng.dirichlet(np.ones(k), 400), rng.exponential(size=400)

    def loss_and_gradient(b):
        q = softmax(np.log(P) + b, axis=1)
        return -w @ (Y * np.log(q)).sum(axis=1) / w.sum(), w @ (q - Y) / w.sum()

    optimum = minimize(loss_and_gradient, np.zeros(k), jac=True, method="BFGS", options={"gtol": 1e-9})
    m = ShiftSpec().fit(P, Y, w)
    # A gradient of 1e-9 per row, over a curvature of more than .01.
    assert m.bias == pytest.approx(optimum.x - optimum.x.mean(), abs=1e-7)
    assert m.converged


@pytest.mark.parametrize("k", [2, 4])
def test_the_mean_of_each_class_becomes_its_frequency(k):
    P, y = draw_predictions(500, k, 1.7, k)
    m = ShiftSpec().fit(P, one_hot(y, k), np.ones(500))
    assert m.apply(P).mean(axis=0) == pytest.approx(np.bincount(y, minlength=k) / 500, abs=1e-9)


def test_a_change_of_class_frequencies_is_undone():
    # Labels drawn from p · (4, 1, 2): biases log(4, 1, 2) minus their mean, log 2. Standard errors are below .03.
    P = draw_predictions(20_000, 3, 1.0, 3)[0]
    R = P * [4.0, 1.0, 2.0]
    y = labels(R / R.sum(axis=1, keepdims=True), np.random.default_rng(4))
    m = ShiftSpec().fit(P, one_hot(y, 3), np.ones(20_000))
    assert m.bias == pytest.approx(np.log([2, 0.5, 1]), abs=0.12)  # four of them


def test_two_classes_keep_the_order_of_their_scores():
    P, y = draw_predictions(200, 2, 1.7, 5)
    calibrator = fit(ShiftSpec(), Predictions(y, P * [0.2, 0.8] / (P * [0.2, 0.8]).sum(axis=1, keepdims=True)))
    grid = np.sort(np.random.default_rng(5).random(1000))
    assert (np.diff(calibrator.predict_proba(grid)[:, 1]) > 0).all()


def test_an_exact_zero_stays_zero_and_is_noted():
    P = np.array([[0.0, 1.0], [0.5, 0.5], [0.5, 0.5], [0.25, 0.75]] * 10)
    calibrator = fit(ShiftSpec(), Predictions([1, 0, 1, 0] * 10, P))
    assert calibrator.predict_proba(P[:1])[0].tolist() == [0.0, 1.0]
    assert {"TN502", "TN505"} <= {note.code for note in calibrator.notes}


def test_logits_whose_probabilities_underflow_are_shifted_as_logits():
    # Three quarters of the rows with log odds 0 are events: a shift of log 3, also of log odds far from 0.
    calibrator = fit(ShiftSpec(), Predictions.from_logits([1, 1, 1, 0] * 10, np.zeros((40, 2))))
    assert calibrator.predict_proba(np.array([[0.0, 0.0]]), logits=True)[0] == pytest.approx([0.25, 0.75], abs=1e-9)
    tiny = calibrator.predict_proba(np.array([[0.0, -700.0]]), logits=True)[0, 1]
    assert np.log(tiny) == pytest.approx(-700 + np.log(3), abs=1e-6)


def test_a_class_that_was_never_observed_is_all_but_ruled_out():
    P, y = draw_predictions(300, 4, 1.5, 6)
    result = fit(ShiftSpec(), Predictions(y[y != 2], P[y != 2], classes=range(4)))
    assert not result.calibration_map.converged
    assert {"TN501", "TN532"} <= {note.code for note in result.notes}
    # The slope of the loss, Σ q₂, balances that of the ridge, 2 · FALLBACK_RIDGE · b₂ (biases around 0).
    assert result.predict_proba(P[y != 2])[:, 2].sum() == pytest.approx(
        -2 * FALLBACK_RIDGE * result.calibration_map.bias[2], abs=1e-6
    )


def test_many_classes_go_without_the_curvature(monkeypatch):
    P, y = draw_predictions(2000, 5, 1.7, 7)
    one = ShiftSpec().fit(P, one_hot(y, 5), np.ones(2000))
    monkeypatch.setattr(log_linear, "MAX_NEWTON_PARAMETERS", 4)
    other = ShiftSpec().fit(P, one_hot(y, 5), np.ones(2000))
    assert other.converged
    assert other.bias == pytest.approx(one.bias, abs=1e-7)


def test_auto_tries_it_only_if_it_is_named():
    P, y = draw_predictions(2000, 2, 1.0, 8)
    shifted = P * [0.25, 0.75] / (P * [0.25, 0.75]).sum(axis=1, keepdims=True)
    assert "shift" not in CALIBRATORS.load("auto")().settings()["candidates"]
    chosen = to.fit(Predictions(y, shifted), "auto", candidates=("temperature", "shift", "llo")).report.choice.spec.name
    assert chosen == "shift"


@pytest.mark.parametrize("word", ["intercept", "calibration intercept", "calibration-in-the-large", "intercept update"])
def test_its_names_in_the_literature_are_suggestions(word):
    with pytest.raises(to.InputError, match="TO2") as raised:
        CALIBRATORS.load(word)
    assert "shift" in str(raised.value)
