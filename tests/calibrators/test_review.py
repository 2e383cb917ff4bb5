"""What once went wrong between the members and those who call them."""

import numpy as np
import pytest

import trueodds as to
from tests.calibrators.rows import draw_predictions, labels, made
from trueodds.calibrators import CALIBRATORS, RecalibratedClassifier, Temperature
from trueodds.calibrators.fitting import fit
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions


@pytest.mark.parametrize("name", CALIBRATORS.names())
def test_importance_weights_have_no_scale(name):
    # Twice, or a millionth of, the weight of every row says nothing about which rows matter more.
    k = 2 if CALIBRATORS.load(name).two_classes else 3
    P, y = draw_predictions(300, k, 1.6, 2)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 300)
    fits = [fit(made(name), Predictions(y, P, weight=w * c)).predict_proba(P) for c in (1.0, 1000.0, 1e-6)]
    assert fits[1] == pytest.approx(fits[0], abs=1e-7)
    assert fits[2] == pytest.approx(fits[0], abs=1e-7)


@pytest.mark.parametrize("name", ["platt", "bbq", "structured"])
def test_weights_of_ten_are_ten_rows_only_where_they_are_counts(name):
    P, y = draw_predictions(300, 2, 1.6, 2)
    ten = Predictions(y, P, weight=np.full(300, 10.0))
    plain = to.fit(Predictions(y, P), name).predict_proba(P)
    assert to.fit(ten, name).predict_proba(P) == pytest.approx(plain, abs=1e-7)
    many = to.fit(Predictions(np.repeat(y, 10), np.repeat(P, 10, axis=0)), name).predict_proba(P)
    assert to.fit(ten, name, weight_kind="frequency").predict_proba(P) == pytest.approx(many, abs=1e-7)


@pytest.mark.parametrize("truth", [10.0, 50.0])
def test_a_temperature_of_logits_far_apart_is_found(truth):
    # Gaps of hundreds: as probabilities most are below the floor of 1e-12, as logits they are not.
    rng = np.random.default_rng(3)
    z = rng.normal(size=(2000, 5))
    q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    preds = Predictions.from_logits(labels(q, rng), truth * z)
    # T̂/T has a standard error of about 1/√(2000 · Var z) ≈ .04; four of them.
    assert 1 / to.fit(preds, "temperature").calibration_map.beta == pytest.approx(truth, rel=0.16)


@pytest.mark.parametrize("name", ["platt", "beta", "spline", "llo"])
def test_a_tiny_probability_of_the_first_class_is_not_lost(name):
    rng = np.random.default_rng(4)
    z = rng.normal(size=400) * 60
    P = np.stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))], axis=1)
    y = (rng.random(400) < 1 / (1 + np.exp(-z / 60))).astype(int)
    q = to.fit(Predictions(y, P), name).predict_proba(P)
    assert (q[P > 0] > 0).all()


def test_irm_keeps_labels_of_scores_that_are_all_but_equal():
    rng = np.random.default_rng(5)
    half = rng.uniform(0.3, 0.45, 500)
    for gap in (1e-7, 1e-9, 1e-12):
        P = np.stack([half, half + gap, 1 - 2 * half - gap], axis=1)
        calibration_map = CALIBRATORS.make("irm", {}).fit(P, np.eye(3)[labels(P, rng)], np.ones(500))
        assert (calibration_map.apply(P).argmax(axis=1) == P.argmax(axis=1)).all()


def test_top_vs_all_says_where_no_temperature_is_best():
    P, y = np.array([[0.9, 0.1], [0.1, 0.9]] * 20), np.array([0, 1] * 20)
    calibrator = fit(made("top_vs_all"), Predictions(y, P))
    assert not calibrator.calibration_map.inner_map.converged
    assert "TN503" in [note.code for note in calibrator.notes]


def test_what_could_not_be_read_again_is_not_saved(tmp_path):
    from trueodds.calibrators.fitted_calibrator import FittedCalibrator
    from trueodds.calibrators.temperature import TemperatureMap

    with pytest.raises(InputError, match="TO505"):
        FittedCalibrator(TemperatureMap(1e9), ("a", "b"), 10).save(tmp_path / "cal.json")
    assert not list(tmp_path.iterdir())


def test_the_wrapper_hears_of_logits_and_refuses_repeats_and_scores_by_pair():
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import RepeatedKFold
    from sklearn.svm import SVC

    X, y = make_classification(200, n_informative=4, n_classes=3, random_state=0)
    model = LogisticRegression()
    by_logits = RecalibratedClassifier(model, Temperature(logits=True)).fit(X, y)
    by_probability = RecalibratedClassifier(model, Temperature()).fit(X, y)
    # The softmax of its decision function is what this model says anyway.
    assert by_logits.predict_proba(X) == pytest.approx(by_probability.predict_proba(X), abs=1e-6)
    with pytest.raises(InputError, match="TO203"):
        RecalibratedClassifier(model, "temperature", cv=RepeatedKFold(n_splits=3, n_repeats=2)).fit(X, y)
    X, y = make_classification(200, n_informative=4, n_classes=4, random_state=0)
    with pytest.raises(InputError, match="TO508"):
        RecalibratedClassifier(SVC(decision_function_shape="ovo"), "temperature").fit(X, y)


def test_costs_with_clusters_are_refused_before_anything_runs():
    P, y = draw_predictions(60, 2, 1.0, 0)
    preds = Predictions(y, P, cluster=np.arange(60) // 2)
    with pytest.raises(InputError, match="TO205"):
        to.audit(preds, cost=[[0, 1], [1, 0]])
    with pytest.raises(InputError, match="one row per cluster"):
        to.test(preds, "decision_regret", cost=[[0, 1], [1, 0]])
