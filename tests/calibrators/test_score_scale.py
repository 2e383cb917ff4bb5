"""Curves that are fitted to logits: their knots are log odds, and their unit does not matter."""

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

import trueodds as to
from trueodds import Predictions
from trueodds.calibrators import RecalibratedClassifier
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict

UNITS = (1, 10, 30, 100, 1000, 1e5)
UNIT_FREE = {
    "platt": {},
    "llo": {},
    "isotonic": {},
    "centered_isotonic": {},
    "enir": {},
    "venn_abers": {},
    "bbq": {},
    "spline": {},
    "kernel": {},
    "scaling_binning": {},
    "histogram": {"partition": "equal-mass"},
}


def draw_margins(n=1500, seed=0):
    """Margins, and labels that follow them with log odds of 1.5 times the margin."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1, n)
    return z, (rng.random(n) < expit(1.5 * z)).astype(int)


Z, Y = draw_margins()
FIT, HELD_OUT = slice(0, 1000), slice(1000, None)


class Margin(ClassifierMixin, BaseEstimator):
    """A classifier with a decision function only: the first feature in some unit."""

    def __init__(self, unit=1.0):
        self.unit = unit

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] * self.unit

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


@pytest.mark.parametrize("name", UNIT_FREE)
def test_the_map_does_not_depend_on_the_unit_of_the_margins(name):
    expected = None
    for unit in UNITS:
        calibrator = to.fit(Predictions.from_logits(Y[FIT], unit * Z[FIT]), name, **UNIT_FREE[name])
        q = calibrator.predict_proba(unit * Z[HELD_OUT], logits=True)
        expected = q if expected is None else expected
        assert q == pytest.approx(expected, abs=1e-8)


def test_platt_of_large_margins_is_the_logistic_regression_on_them():
    reference = LogisticRegression(C=np.inf, tol=1e-12).fit(Z[FIT, None], Y[FIT])
    calibrator = to.fit(Predictions.from_logits(Y[FIT], 1e5 * Z[FIT]), "platt", smooth=False)
    q = calibrator.predict_proba(1e5 * Z[HELD_OUT], logits=True)
    assert q == pytest.approx(reference.predict_proba(Z[HELD_OUT, None]), abs=1e-6)


def test_isotonic_of_margins_is_linear_between_margins_as_in_scikit_learn():
    z = 100 * Z
    reference = IsotonicRegression(out_of_bounds="clip").fit(z[FIT], Y[FIT]).predict(z[HELD_OUT])
    calibrator = to.fit(Predictions.from_logits(Y[FIT], z[FIT]), "isotonic")
    assert calibrator.predict_proba(z[HELD_OUT], logits=True)[:, 1] == pytest.approx(reference, abs=1e-12)


@pytest.mark.parametrize("mode", ["cross-fit", "split", "frozen"])
@pytest.mark.parametrize("method", ["platt", "isotonic", "venn_abers", "histogram", "auto"])
def test_a_classifier_with_margins_only_is_recalibrated_in_any_unit(method, mode):
    X, predictions = Z[:, None], []
    for unit in (1, 1e5):
        model = RecalibratedClassifier(Margin(unit).fit(X, Y), method, mode=mode).fit(X[FIT], Y[FIT])
        predictions.append(model.predict_proba(X[HELD_OUT])[:, 1])
    # auto gets log p too, whose curvature at 0 vanishes against large margins.
    assert predictions[1] == pytest.approx(predictions[0], abs=0.02 if method == "auto" else 1e-8)
    # A fifteenth of all pairs is in one of 15 bins; a pair whose order was right then counts half.
    loss = 1 / 30 if method == "histogram" else 0.01
    assert roc_auc_score(Y[HELD_OUT], predictions[1]) > roc_auc_score(Y[HELD_OUT], Z[HELD_OUT]) - loss


def test_a_linear_support_vector_machine_is_recalibrated_on_its_margins():
    rng = np.random.default_rng(4)
    X = rng.normal(0, 1, (1200, 3))
    y = (rng.random(1200) < expit(X @ [1.0, -0.5, 0.0])).astype(int)
    svm = LinearSVC().fit(X[:600], y[:600])
    model = RecalibratedClassifier(svm, "isotonic", mode="frozen").fit(X[:600], y[:600])
    margins = svm.decision_function(X)
    reference = IsotonicRegression(out_of_bounds="clip").fit(margins[:600], y[:600]).predict(margins[600:])
    assert model.predict_proba(X[600:])[:, 1] == pytest.approx(reference, abs=1e-9)


@pytest.mark.parametrize("method", ["platt", "isotonic", "venn_abers", "enir"])
def test_large_margins_of_several_classes_keep_the_order_within_each_class(method):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 900)
    z = 1e4 * (np.eye(3)[y] + rng.normal(0, 0.7, (900, 3)))
    calibrator = to.fit(Predictions.from_logits(y[:600], z[:600]), method)
    q = calibrator.predict_proba(z[600:], logits=True)
    log_odds = z[600:, 1] - np.maximum(z[600:, 0], z[600:, 2])  # log sums of large numbers are their maximum
    own_curve = roc_auc_score(y[600:] == 1, log_odds)
    assert roc_auc_score(y[600:] == 1, q[:, 1]) > own_curve - 0.02
    assert len(np.unique(q[:, 1])) > 20


@pytest.mark.parametrize("name", ["isotonic", "centered_isotonic", "enir", "venn_abers", "bbq", "histogram"])
def test_a_curve_of_log_odds_is_saved_and_read_again_with_its_scale(name):
    settings = UNIT_FREE[name]
    calibrator = to.fit(Predictions.from_logits(Y[FIT], 1e5 * Z[FIT]), name, **settings)
    saved = json.loads(json.dumps(calibrator.to_dict()))
    assert all(curve["scale"] == "logit" for curve in saved["parameters"]["curves"])
    q = calibrator.predict_proba(1e5 * Z, logits=True)
    assert np.array_equal(calibrator_from_dict(saved).predict_proba(1e5 * Z, logits=True), q)
    of_probabilities = to.fit(Predictions(Y[FIT], expit(Z[FIT])), name, **settings).to_dict()
    assert all("scale" not in curve for curve in of_probabilities["parameters"]["curves"])
    saved["parameters"]["curves"][0]["scale"] = "odds"
    with pytest.raises(to.InputError, match="TO505"):
        calibrator_from_dict(saved)


@pytest.mark.parametrize("name", ["isotonic", "venn_abers", "enir"])
def test_a_curve_of_log_odds_takes_probabilities_too_even_0_and_1(name):
    calibrator = to.fit(Predictions.from_logits(Y[FIT], Z[FIT]), name)
    p = expit(Z[HELD_OUT])
    by_logits = calibrator.predict_proba(Z[HELD_OUT], logits=True)
    assert np.median(np.abs(calibrator.predict_proba(p) - by_logits)) < 1e-9
    ends = calibrator.predict_proba([0.0, 1.0])[:, 1]
    assert ends == pytest.approx(calibrator.predict_proba([-1e6, 1e6], logits=True)[:, 1])


def test_venn_abers_of_pairs_of_classes_compares_their_logits():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 3, 600)
    z = np.eye(3)[y] + rng.normal(0, 0.7, (600, 3))
    one, large = (
        to.fit(Predictions.from_logits(y, unit * z), "venn_abers", multiclass="one-vs-one").predict_proba(
            unit * z, logits=True
        )
        for unit in (1, 1e5)
    )
    assert large == pytest.approx(one, abs=1e-8)


def test_an_exact_zero_among_logits_does_not_move_the_center_of_its_block():
    # Scores −∞, 0, 1 with outcomes 0, 1, 0: the block of 0 and 1 has its center at log odds 0.5.
    z = np.array([[0.0, -np.inf], [0.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    curve = to.fit(Predictions.from_logits([0, 1, 0, 1], z), "centered_isotonic").calibration_map.curves[0]
    assert curve.x[1] == pytest.approx(0.5)
    assert np.isfinite(curve.x).all()
