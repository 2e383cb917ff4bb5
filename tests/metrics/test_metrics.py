"""Is every metric the value of `measure`, whatever the form of the data, and do scikit-learn's tools take it?"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB

import trueodds as to
from trueodds import metrics
from trueodds.core.docstrings import docstring_sections

# The estimator that each metric is by default, and its lens; then the same for other arguments.
DEFAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "adaptive_calibration_error": ("ace", {}),
    "brier_score_loss": ("brier", {}),
    "calibration_in_the_large": ("calibration_in_the_large", {}),
    "calibration_intercept": ("calibration_intercept", {}),
    "calibration_slope": ("calibration_slope", {}),
    "classwise_calibration_error": ("ece", {"lens": "classwise"}),
    "debiased_calibration_error": ("debiased_l2", {}),
    "expected_calibration_error": ("ece", {}),
    "integrated_calibration_index": ("ici", {}),
    "kernel_calibration_error": ("skce", {}),
    "log_loss": ("log_loss", {}),
    "maximum_calibration_error": ("mce", {}),
    "observed_expected_ratio": ("o_e", {}),
    "ranked_probability_score": ("rps", {}),
    "smooth_calibration_error": ("smece", {}),
}
OTHERS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("expected_calibration_error", {"n_bins": 7}, "ece", {"bins": 7}),
    ("expected_calibration_error", {"strategy": "quantile"}, "ece", {"partition": "equal-mass"}),
    ("expected_calibration_error", {"norm": "l2"}, "rmsce", {}),
    ("expected_calibration_error", {"norm": "max", "n_bins": 4}, "mce", {"bins": 4}),
    ("maximum_calibration_error", {"n_bins": 4, "strategy": "quantile"}, "mce", {"bins": 4, "partition": "equal-mass"}),
    ("classwise_calibration_error", {"norm": "l2", "n_bins": 5}, "rmsce", {"lens": "classwise", "bins": 5}),
    ("classwise_calibration_error", {"strategy": "quantile"}, "ece", {"lens": "classwise", "partition": "equal-mass"}),
    ("adaptive_calibration_error", {"n_bins": 4}, "ace", {"bins": 4}),
    ("debiased_calibration_error", {"norm": "l1"}, "debiased_l1", {}),
    ("debiased_calibration_error", {"n_bins": 5}, "debiased_l2", {"bins": 5}),
    ("debiased_calibration_error", {"strategy": "uniform"}, "debiased_l2", {"bins": "auto", "partition": "uniform"}),
    ("integrated_calibration_index", {"summary": "e50"}, "e50", {}),
    ("integrated_calibration_index", {"summary": "e90"}, "e90", {}),
    ("integrated_calibration_index", {"summary": "emax"}, "emax", {}),
    ("calibration_slope", {"min_prob": 0.1}, "calibration_slope", {"min_prob": 0.1}),
    ("calibration_intercept", {"min_prob": 0.1}, "calibration_intercept", {"min_prob": 0.1}),
    ("log_loss", {"min_prob": 0.1}, "log_loss", {"min_prob": 0.1}),
]
CALLS = [*((name, {}, *default) for name, default in DEFAULTS.items()), *OTHERS]
OF_COLUMNS = {"adaptive_calibration_error", "classwise_calibration_error"}
N = 300


def data(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident predictions of K classes and their labels, of which each is observed."""
    rng = np.random.default_rng(k)
    truth = rng.dirichlet(np.ones(k), N)
    y = (truth.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    return y, truth**1.5 / (truth**1.5).sum(axis=1, keepdims=True)


def value(estimator: str, rows: to.Predictions, settings: dict[str, Any]) -> float:
    return to.measure(rows, estimator, interval=None, **settings).value


def test_every_metric_has_a_law() -> None:
    assert sorted(DEFAULTS) == sorted(metrics.__all__) == dir(to.metrics)
    settings = {"y_true", "y_prob", "sample_weight", "pos_label", "labels"}
    tested = {name: set() for name in DEFAULTS}
    for name, arguments, *_ in OTHERS:
        tested[name] |= arguments.keys()
    assert tested == {name: set(inspect.signature(getattr(metrics, name)).parameters) - settings for name in DEFAULTS}


@pytest.mark.parametrize(("name", "arguments", "estimator", "settings"), CALLS)
def test_a_metric_is_the_value_of_measure(
    name: str, arguments: dict[str, Any], estimator: str, settings: dict[str, Any]
) -> None:
    metric: Callable[..., float] = getattr(metrics, name)
    w = np.random.default_rng(0).integers(0, 4, N) / 2
    for k in (2, 3):
        y, P = data(k)
        names = np.array(["ant", "bee", "cat"])[y]
        expected = value(estimator, to.Predictions(y, P), settings)
        assert isinstance(metric(y, P, **arguments), float)
        assert metric(y, P, **arguments) == expected
        assert metric(names, P, **arguments) == expected
        assert metric(y.tolist(), P.tolist(), labels=range(k), **arguments) == expected
        assert metric(pd.Series(names), pd.DataFrame(P), **arguments) == expected
        weighted = value(estimator, to.Predictions(y, P, weight=w), settings)
        assert metric(y, P, sample_weight=w, **arguments) == weighted
        assert weighted != expected
    if name in OF_COLUMNS:
        return
    y, P = data(2)
    p = P[:, 1]
    expected = value(estimator, to.Predictions(y, p), settings)
    assert metric(y, p, **arguments) == expected
    assert metric(y == 1, p, **arguments) == expected
    assert metric(2 * y - 1, p, **arguments) == expected
    assert metric(np.array(["no", "yes"])[y], p, pos_label="yes", **arguments) == expected
    assert metric(3 - y, p, pos_label=2, **arguments) == expected
    assert metric(y, p, sample_weight=w, **arguments) == value(estimator, to.Predictions(y, p, weight=w), settings)
    # The event is the class of `pos_label`, whose probability is p, or its column.
    event = value(estimator, to.Predictions(1 - y, 1 - p), settings)
    assert metric(y, 1 - p, pos_label=0, **arguments) == event
    two_columns = value(estimator, to.Predictions(1 - y, P[:, ::-1]), settings)
    assert metric(y, P, pos_label=0, **arguments) == two_columns
    assert metric(np.array(["no", "yes"])[y], P, pos_label="no", **arguments) == two_columns


@pytest.mark.parametrize("name", ["brier_score_loss", "log_loss"])
def test_scores_are_those_of_scikit_learn(name: str) -> None:
    # Their sums of 300 terms are added in another order: 300 ulp bound the difference.
    ours, theirs = getattr(metrics, name), getattr(sklearn.metrics, name)
    w = np.random.default_rng(1).random(N)
    # The Brier score of scikit-learn 1.6 takes one column.
    for k in (2, 3) if "labels" in inspect.signature(theirs).parameters else ():
        y, P = data(k)
        names = np.array(["ant", "bee", "cat"])[y]
        for labels in (y, names):
            assert ours(labels, P) == pytest.approx(theirs(labels, P), rel=300 * np.finfo(float).eps)
            assert ours(labels, P, sample_weight=w) == pytest.approx(
                theirs(labels, P, sample_weight=w), rel=300 * np.finfo(float).eps
            )
        subset = y < k - 1 if k > 2 else y == 1
        expected = theirs(y[subset], P[subset], labels=range(k))
        assert ours(y[subset], P[subset], labels=range(k)) == pytest.approx(expected, rel=300 * np.finfo(float).eps)
    y, P = data(2)
    assert ours(y, P[:, 1]) == pytest.approx(theirs(y, P[:, 1]), rel=300 * np.finfo(float).eps)
    assert ours(-y, P[:, 1], pos_label=-1) == pytest.approx(ours(y, P[:, 1]))


def test_a_brier_score_has_the_event_of_scikit_learn() -> None:
    y, P = data(2)
    names = np.array(["ham", "spam"])[y]
    for event, column in (("ham", 0), ("spam", 1)):
        expected = sklearn.metrics.brier_score_loss(names, P[:, column], pos_label=event)
        assert metrics.brier_score_loss(names, P[:, column], pos_label=event) == pytest.approx(expected, rel=1e-13)
    # A fold without events.
    assert metrics.brier_score_loss(["ham"] * 3, [0.1, 0.2, 0.3], pos_label="spam") == pytest.approx(0.14 / 3)


@pytest.mark.slow
def test_scikit_learn_makes_scorers_of_metrics_for_any_labels() -> None:
    for k in (2, 3):
        X, y = make_classification(400, n_classes=k, n_informative=6, random_state=0)
        for labels in (y, np.array(["ant", "bee", "cat"])[y]):
            event = {"pos_label": np.unique(labels)[1]} if k == 2 else {}
            scoring = {
                "ece": make_scorer(
                    metrics.expected_calibration_error, response_method="predict_proba", greater_is_better=False,
                    n_bins=10, **event,
                ),
                "classwise": make_scorer(
                    metrics.log_loss, response_method="predict_proba", greater_is_better=False, **event
                ),
            }  # fmt: skip
            found = cross_validate(GaussianNB(), X, labels, scoring=scoring, cv=3, error_score="raise")
            same = {"ece": to.scorer("ece", bins=10), "classwise": to.scorer("log_loss")}
            expected = cross_validate(GaussianNB(), X, labels, scoring=same, cv=3, error_score="raise")
            for name in scoring:
                np.testing.assert_allclose(found[f"test_{name}"], expected[f"test_{name}"], rtol=1e-12)
            search = GridSearchCV(LogisticRegression(), {"C": [1e-3, 1.0]}, scoring=scoring, refit="classwise", cv=3)
            assert search.fit(X, labels).best_params_ == {"C": 1.0}


def test_a_value_that_is_not_finite_is_explained_where_the_metric_is_called() -> None:
    with pytest.warns(UserWarning, match=r"log_loss is inf\. \[TN104\]") as caught:
        assert metrics.log_loss([1, 1], [0.5, 0.0]) == np.inf
    assert caught[0].filename == __file__
    assert metrics.log_loss([1, 1], [0.5, 0.0], min_prob=0.5) == pytest.approx(np.log(2))
    with pytest.warns(UserWarning, match=r"calibration_slope is nan\. \[TN268\].*min_prob="):
        assert np.isnan(metrics.calibration_slope([0, 1, 1, 0], [0.2, 1.0, 0.4, 0.6]))


@pytest.mark.parametrize("name", metrics.__all__)
def test_a_metric_states_its_range_best_value_bias_and_source(name: str) -> None:
    sections = docstring_sections(getattr(metrics, name).__doc__)
    assert list(sections)[1:4] == ["Parameters", "Returns", "Raises"]
    assert "is best" in sections["Returns"]
    assert "Bias: " in sections["Notes"] or "without bias" in sections[""] or "unbiased" in sections["Notes"]
    assert "math::" in sections["Notes"]
    assert ".. [1]" in sections["References"]
