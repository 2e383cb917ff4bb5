"""Is a scorer what scikit-learn expects, and minus the error that measure gives?"""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.metadata_routing import get_routing_for_object

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


@pytest.mark.slow
def test_a_forest_s_infinite_log_loss_is_noted_and_is_finite_with_min_prob():
    X, y = make_classification(300, flip_y=0.2, random_state=0)
    forest = RandomForestClassifier(20, random_state=0)
    with pytest.warns(UserWarning, match=r"log_loss is -inf.*TN104.*scorer\('log_loss', min_prob=1e-12\)"):
        scores = cross_val_score(forest, X, y, scoring=to.scorer("log_loss"), cv=3)
    assert np.isneginf(scores).any()
    # scikit-learn clips at the eps of float64, and so agrees with that floor.
    floored = cross_val_score(forest, X, y, scoring=to.scorer("log_loss", min_prob=np.finfo(np.float64).eps), cv=3)
    np.testing.assert_allclose(floored, cross_val_score(forest, X, y, scoring="neg_log_loss", cv=3), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_several_scorers_by_name_search_models_of_classes_with_names(n_classes):
    X, y = make_classification(300, n_classes=n_classes, n_informative=6, random_state=0)
    names = np.array(["ant", "bee", "cat"])[y]
    scoring = {"ece": to.scorer("ece"), "brier": to.scorer("brier"), "accuracy": "accuracy"}
    found = cross_validate(GaussianNB(), X, names, scoring=scoring, cv=3, error_score="raise")
    numbered = cross_validate(GaussianNB(), X, y, scoring=scoring, cv=3, error_score="raise")
    for name in scoring:
        assert found[f"test_{name}"].tolist() == numbered[f"test_{name}"].tolist()
    for fold, (train, test) in enumerate(cross_folds(y)):
        rows = to.Predictions.from_estimator(GaussianNB().fit(X[train], names[train]), X[test], names[test])
        assert found["test_ece"][fold] == -to.measure(rows, "ece", interval=None).value
    grid = {"C": [1e-3, 1.0]}
    search = GridSearchCV(LogisticRegression(), grid, scoring=scoring, refit="brier", cv=3).fit(X, names)
    assert search.best_params_ == {"C": 1.0}
    assert search.best_score_ == search.cv_results_["mean_test_brier"].max()
    assert np.isfinite(search.cv_results_["mean_test_ece"]).all()


def cross_folds(y):
    """The folds of `cv=3`, which have the same share of each class."""
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(3).split(y, y)


def test_weights_are_routed_to_scorers_that_request_them(rows):
    X, y = rows
    w, folds = np.random.default_rng(0).random(len(y)), KFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        model = GaussianNB().set_fit_request(sample_weight=False)
        weighted = to.scorer("brier").set_score_request(sample_weight=True)
        scoring = {"weighted": weighted, "plain": to.scorer("brier").set_score_request(sample_weight=False)}
        found = cross_validate(model, X, y, scoring=scoring, cv=folds, params={"sample_weight": w})
        search = GridSearchCV(model, {"var_smoothing": [1e-9]}, scoring=weighted, cv=folds)
        assert search.fit(X, y, sample_weight=w).best_score_ == pytest.approx(found["test_weighted"].mean())
        named = to.scorer("brier").set_score_request(sample_weight="cost")
        same = cross_validate(model, X, y, scoring=named, cv=folds, params={"cost": w})
        assert same["test_score"].tolist() == found["test_weighted"].tolist()
        with pytest.raises(UnsetMetadataPassedError):
            cross_validate(model, X, y, scoring=to.scorer("brier"), cv=folds, params={"sample_weight": w})
    for fold, (train, test) in enumerate(folds.split(X)):
        fitted = GaussianNB().fit(X[train], y[train])
        assert found["test_weighted"][fold] == to.scorer("brier")(fitted, X[test], y[test], sample_weight=w[test])
        assert found["test_plain"][fold] == to.scorer("brier")(fitted, X[test], y[test])


@pytest.mark.parametrize("make", [lambda: to.scorer("ece"), lambda: make_scorer(brier_score_loss)])
def test_a_request_changes_the_scorer_itself_as_in_scikit_learn(make):
    with sklearn.config_context(enable_metadata_routing=True):
        score = make()
        assert score.set_score_request(sample_weight=True) is score
        assert get_routing_for_object(score).score.requests == {"sample_weight": True}
        score.set_score_request(sample_weight="cost")
        assert get_routing_for_object(score).score.requests == {"sample_weight": "cost"}
    with pytest.raises((InputError, RuntimeError), match="enable_metadata_routing=True"):
        score.set_score_request(sample_weight=False)


def test_an_invalid_request_is_refused():
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(InputError, match="TO203"):
        to.scorer("ece").set_score_request(sample_weight=3)


def test_importances_of_several_scorers_take_weights(rows):
    X, y = rows
    model, w = GaussianNB().fit(X, y), np.arange(len(y)) % 3
    scoring = {"brier": to.scorer("brier"), "log_loss": to.scorer("log_loss")}
    found = permutation_importance(model, X, y, scoring=scoring, n_repeats=2, random_state=0, sample_weight=w)
    alone = permutation_importance(model, X, y, scoring=scoring["brier"], n_repeats=2, random_state=0, sample_weight=w)
    assert found["brier"].importances.tolist() == alone.importances.tolist()
