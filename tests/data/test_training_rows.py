"""Rows that a model or a calibrator was fitted to are recognized, and fresh rows rarely are."""

import numpy as np
import pytest

import trueodds as to
from trueodds.data.plausibility import training_row_notes

UNSEEN = "The model may have been fitted to these rows"


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def codes(result):
    return [note.code for note in result.notes]


def logistic_rows(n=500, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, n)
    return (rng.random(n) < sigmoid(slope * z)).astype(int), z


def fitted_by_newton(y, z):
    """Logistic regression of y on z without penalty."""
    X, b = np.column_stack([np.ones_like(z), z]), np.zeros(2)
    for _ in range(30):
        p = sigmoid(X @ b)
        b += np.linalg.solve(X.T @ (X * (p * (1 - p))[:, None]), X.T @ (y - p))
    return sigmoid(X @ b)


def test_exact_level_and_slope_are_noted_by_every_function_and_first_in_the_verdict():
    y, z = logistic_rows()
    preds = to.Predictions(y, fitted_by_newton(y, z))
    report = to.audit(preds, resamples=99)
    results = (to.measure(preds, resamples=20), to.test(preds, resamples=99), to.fit(preds, "platt"), report)
    assert all(codes(result).count("TN163") == 1 for result in results)
    assert "TN163" in codes(to.compare(preds, to.Predictions(y, sigmoid(z)), resamples=20))
    assert report.verdict["sentence"].startswith(UNSEEN)


def test_true_probabilities_are_not_noted():
    # The scores of level and slope are both below 0.01 standard deviations with probability 6·10⁻⁵.
    assert sum(len(training_row_notes(to.Predictions(*true_rows(seed)))) for seed in range(500)) == 0


def true_rows(seed):
    y, z = logistic_rows(200, seed)
    return y, sigmoid(z).round(3 - seed % 2)


def test_few_different_predictions_may_be_exact_by_chance():
    p = np.repeat([0.2, 0.4, 0.6, 0.8], 100)
    y = np.concatenate([np.arange(100) < events for events in (20, 40, 60, 80)]).astype(int)
    assert training_row_notes(to.Predictions(y, p)) == []


def test_an_error_below_all_null_draws_is_noted():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < p**2).astype(int)
    recalibrated = to.fit(to.Predictions(y, p), "histogram", bins=15).predict_proba(p)[:, 1]
    estimate = to.measure(to.Predictions(y, recalibrated), resamples=20)
    assert any(note.text.startswith("The error, ") for note in estimate.notes if note.code == "TN163")
    assert "TN163" not in codes(to.measure(to.Predictions(y, p), resamples=20))


@pytest.mark.slow
def test_a_steep_slope_with_high_accuracy_is_noted_as_a_possibility():
    rng = np.random.default_rng(0)
    z = rng.choice([-1, 1], 500) * rng.uniform(0.5, 2, 500)
    y = (rng.random(500) < sigmoid(5 * z)).astype(int)
    (note,) = training_row_notes(to.Predictions(y, sigmoid(z)))
    assert "If the model or a calibrator was fitted to these rows" in note.text
    assert to.audit(to.Predictions(y, sigmoid(z)), resamples=99).verdict["sentence"].startswith(UNSEEN)
    assert training_row_notes(to.Predictions((rng.random(500) < sigmoid(2 * z)).astype(int), sigmoid(z))) == []


def test_no_error_where_many_are_expected_is_noted_however_close_confidence_and_accuracy_are():
    # A calibrated model with confidence 0.98 makes no error in 461 rows, with 9.22 expected, with probability
    # .98^461 = 9e-5; 9.18 are expected in 459 rows, 4 in 200 clusters, and 6.1 in the 500·(1 + 9)²/(2·(1 + 81)) = 305
    # rows in effect of two weights.
    def noted(n, p=0.98, n_errors=0, **columns):
        y = np.arange(n) % 2
        probability = np.where(y == 1, p, 1 - p)
        y[:n_errors] = 1 - y[:n_errors]
        return [note.code for note in training_row_notes(to.Predictions(y, probability, **columns))] == ["TN163"]

    assert noted(461)
    assert not noted(459)
    assert not noted(461, n_errors=1)
    assert training_row_notes(to.Predictions(np.zeros(1000, dtype=int), np.full(1000, 0.02))) == []  # no event yet
    assert not noted(1000, cluster=np.arange(1000) // 5)
    assert noted(1000, cluster=np.arange(1000) // 2)
    assert not noted(500, weight=np.repeat([1.0, 9.0], 250))
    confidences = to.Predictions.from_confidence(np.full(461, 0.98), np.ones(461, dtype=int))
    assert len(training_row_notes(confidences)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, 1.0])
def test_the_rows_of_a_boosted_tree_are_noted_and_fresh_rows_are_not(weight):
    ensemble = pytest.importorskip("sklearn.ensemble")
    from sklearn.datasets import make_classification

    X, y = make_classification(1500, 20, n_informative=5, flip_y=0.2, class_sep=0.7, random_state=0)
    model = ensemble.GradientBoostingClassifier(random_state=0).fit(X[:500], y[:500])
    weights = None if weight is None else np.full(500, weight)
    own = to.Predictions(y[:500], model.predict_proba(X[:500]), weight=weights)
    verdict = to.audit(own, resamples=99).verdict
    assert verdict["sentence"].startswith(UNSEEN)
    assert verdict["sentence"].endswith("Pass held-out rows.")
    assert "No recalibration can be judged on rows that the model was trained on" in verdict["details"]
    assert training_row_notes(to.Predictions(y[500:], model.predict_proba(X[500:]))) == []


@pytest.mark.slow
def test_a_complete_fit_is_noted_and_fresh_rows_are_not():
    ensemble = pytest.importorskip("sklearn.ensemble")
    from sklearn.datasets import make_classification

    X, y = make_classification(1500, 20, n_informative=5, flip_y=0.1, random_state=100)
    model = ensemble.GradientBoostingClassifier(n_estimators=200, random_state=0).fit(X[:500], y[:500])
    (note,) = training_row_notes(to.Predictions(y[:500], model.predict_proba(X[:500])))
    assert "Accuracy, 100.0 %, is far above the mean confidence" in note.text
    assert training_row_notes(to.Predictions(y[500:], model.predict_proba(X[500:]))) == []


def test_a_forest_with_slope_four_on_held_out_digits_is_not_noted():
    ensemble = pytest.importorskip("sklearn.ensemble")
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    model = ensemble.RandomForestClassifier(random_state=0).fit(X[::2], y[::2])
    assert training_row_notes(to.Predictions(y[1::2], model.predict_proba(X[1::2]))) == []
    assert len(training_row_notes(to.Predictions(y[::2], model.predict_proba(X[::2])))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["temperature", "spline", "auto"])
def test_a_calibrator_recognizes_the_rows_that_it_was_fitted_to(method, tmp_path):
    y, z = logistic_rows(slope=0.5)
    preds, other = (
        to.Predictions(y, sigmoid(z)),
        to.Predictions(*logistic_rows(seed=1, slope=0.5)[:1], sigmoid(z[::-1])),
    )
    calibrator = to.fit(preds, method)
    calibrator.save(tmp_path / "cal.json")
    for recognizer in (calibrator, to.load(tmp_path / "cal.json")):
        own = recognizer.recalibrate(preds)
        assert "TN164" in codes(to.measure(own, resamples=20))
        assert "TN164" in codes(to.test(own, resamples=99))
        assert "TN164" in codes(to.compare(own, preds, resamples=20))
        assert codes(recognizer.recalibrate(other)).count("TN164") == 0
    assert "The calibrator was fitted to these rows" in to.audit(own, resamples=99).verdict["sentence"]


@pytest.mark.slow
def test_groups_that_are_formed_by_the_outcome_are_noted():
    y, z = logistic_rows()
    rng = np.random.default_rng(0)
    arm = np.where(y == 1, rng.choice(["a", "b"], 500), "c")
    preds = to.Predictions(y, sigmoid(z), group={"arm": arm, "site": rng.integers(0, 5, 500)})
    (text,) = [note.text for note in to.measure(preds, resamples=20).notes if note.code == "TN167"]
    assert text.startswith("All rows of a group of arm have the same outcome")
    assert "TN167" in codes(to.by_group(preds, resamples=99))
    assert to.audit(preds, resamples=99).verdict["sentence"].startswith("Groups seem to be formed by the outcome")


def test_groups_of_one_row_and_of_rare_events_have_one_class_by_chance():
    y, z = logistic_rows()
    for group in (np.arange(500), np.arange(500) // 500):
        assert "TN167" not in codes(to.measure(to.Predictions(y, sigmoid(z), group=group), resamples=20))
    rare = np.zeros(500, dtype=int)
    rare[-1] = 1
    # The last group of ten rows has the event and nine others; without the nine each group has one class by chance.
    group = np.r_[np.arange(499) // 10, 60]
    assert "TN167" not in codes(to.measure(to.Predictions(rare, np.full(500, 0.002), group=group), resamples=20))


def test_the_accuracy_of_answers_is_their_share_of_correct_ones():
    # Half of the answers have .35 and are wrong, half have .65 and are right: calibrated, if too moderate.
    confidence, correct = np.tile([0.35, 0.65], 500), np.tile([0, 1], 500)
    notes = training_row_notes(to.Predictions.from_confidence(confidence, correct))
    assert not [note for note in notes if "Accuracy" in note.text]
