"""Is a scorer what scikit-learn expects, and minus the error that measure gives?"""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB

import trueodds as to
from trueodds import InputError


@pytest.fixture(scope="module")
def rows():
    return make_classification(400, n_classes=3, n_informative=6, random_state=0)


def test_the_score_is_minus_the_error(rows):
    X, y = rows
    model = GaussianNB().fit(X, y)
    expected = to.measure(to.Predictions.from_estimator(model, X, y), "ece", lens="classwise", bins=10, interval=None)
    assert to.scorer("ece", lens="classwise", bins=10)(model, X, y) == -expected.value


def test_weights_reach_the_measure(rows):
    X, y = rows
    model, w = GaussianNB().fit(X, y), np.arange(len(y)) % 3
    twice = np.repeat(np.arange(len(y)), w)
    score = to.scorer("brier")
    assert score(model, X, y, sample_weight=w) == pytest.approx(score(model, X[twice], y[twice]), rel=1e-12)


def test_it_works_in_cross_validation_and_grid_search(rows):
    X, y = rows
    assert (cross_val_score(GaussianNB(), X, y, scoring=to.scorer("ece")) < 0).all()
    search = GridSearchCV(LogisticRegression(), {"C": [1e-3, 1.0]}, scoring=to.scorer("log_loss"), cv=3).fit(X, y)
    assert search.best_params_["C"] == 1.0  # a strong penalty flattens the probabilities


def test_it_travels_to_other_processes(rows):
    X, y = rows
    model = GaussianNB().fit(X, y)
    score = to.scorer("ece", bins=5)
    assert pickle.loads(pickle.dumps(score))(model, X, y) == score(model, X, y)


@pytest.mark.parametrize(
    ("estimator", "settings", "code"),
    [
        ("ecee", {}, "TO201"),
        ("ece", {"bin": 3}, "TO202"),
        ("ece", {"bins": 0}, "TO203"),
        ("ece", {"lens": "nope"}, "TO204"),
        ("ece", {"aggregate": "median"}, "TO203"),
        ("ece", {"weight_kind": "counts"}, "TO203"),
        ("ece", {"rng": -1}, "TO203"),
    ],
)
def test_a_wrong_setting_is_refused_before_the_first_fold(estimator, settings, code):
    with pytest.raises(InputError) as refusal:
        to.scorer(estimator, **settings)
    assert refusal.value.code == code


def test_a_model_without_probabilities_is_refused(rows):
    from sklearn.svm import LinearSVC

    X, y = rows
    with pytest.raises(InputError) as refusal:
        to.scorer("ece")(LinearSVC().fit(X, y), X, y)
    assert refusal.value.code == "TO117"


def test_a_forest_s_infinite_log_loss_is_noted_and_is_finite_with_min_prob():
    X, y = make_classification(300, flip_y=0.2, random_state=0)
    forest = RandomForestClassifier(20, random_state=0)
    with pytest.warns(UserWarning, match=r"log_loss is -inf.*TN104.*scorer\('log_loss', min_prob=1e-12\)"):
        scores = cross_val_score(forest, X, y, scoring=to.scorer("log_loss"), cv=3)
    assert np.isneginf(scores).any()
    # scikit-learn clips at the eps of float64, and so agrees with that floor.
    floored = cross_val_score(forest, X, y, scoring=to.scorer("log_loss", min_prob=np.finfo(np.float64).eps), cv=3)
    np.testing.assert_allclose(floored, cross_val_score(forest, X, y, scoring="neg_log_loss", cv=3), rtol=1e-9)
