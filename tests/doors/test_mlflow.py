"""Does MLflow find the evaluator, and does its run hold metrics and page? `make doors` installs MLflow."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

import trueodds as to
from trueodds.core.errors import InputError

mlflow = pytest.importorskip("mlflow")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def problem(tmp_path_factory) -> Any:
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/runs.db")
    location = tmp_path_factory.mktemp("artifacts").as_uri()
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("doors", artifact_location=location))
    X, y = make_classification(2000, 5, n_informative=3, n_redundant=0, random_state=0)
    data = pd.DataFrame(X, columns=[f"x{i}" for i in range(5)])
    model = GaussianNB().fit(data[:1000], y[:1000])
    return model, data[1000:].assign(label=y[1000:]).reset_index(drop=True)


def evaluate(model: Any, data: Any, **more: Any) -> Any:
    if "evaluator_config" in more:
        more["evaluator_config"] = {"trueodds": more["evaluator_config"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mlflow.models.evaluate(model, data, model_type="classifier", evaluators=["trueodds"], **more)


def test_a_logged_model_gets_error_interval_noise_floor_and_page(problem):
    model, data = problem
    with mlflow.start_run() as run:
        uri = mlflow.sklearn.log_model(model, name="model", pip_requirements=["scikit-learn"]).model_uri
        result = evaluate(uri, data, targets="label")
    preds = to.Predictions(data["label"], model.predict_proba(data.drop(columns="label")), classes=[0, 1])
    error = to.measure(preds, "ece")
    expected = {
        "ece": error.value,
        "ece_low": error.interval.low,
        "ece_high": error.interval.high,
        "ece_noise_floor": error.noise_floor,
        "brier": to.measure(preds, "brier").value,
        "calibration_pvalue": to.test(preds).pvalue,
    }
    assert {name: result.metrics[name] for name in expected} == pytest.approx(expected)
    logged = mlflow.get_run(run.info.run_id).data.metrics
    assert {name: logged[name] for name in expected} == pytest.approx(expected)
    page = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="calibration_report.html")
    text = Path(page).read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert result.artifacts["calibration_report.html"].content == text


def test_a_column_of_probabilities_needs_no_model(problem):
    model, data = problem
    p = model.predict_proba(data.drop(columns="label"))[:, 1]
    config = {"estimators": ["log_loss"], "page": False}
    with mlflow.start_run():
        result = evaluate(None, data.assign(p=p), targets="label", predictions="p", evaluator_config=config)
    assert result.metrics["log_loss"] == pytest.approx(to.measure(data["label"], p, "log_loss", interval=None).value)
    assert not result.artifacts


def test_a_function_that_returns_labels_is_refused(problem):
    model, data = problem
    with mlflow.start_run(), pytest.raises(InputError, match="TO353"):
        evaluate(lambda X: np.asarray(model.predict(X)), data, targets="label")


def test_labels_that_are_floats_are_refused_as_labels_too(problem):
    model, data = problem
    labels = data.assign(label=data["label"].astype(float))
    with mlflow.start_run(), pytest.raises(InputError, match="TO353"):
        evaluate(lambda X: model.predict(X).astype(float), labels, targets="label")


@pytest.mark.usefixtures("problem")
def test_the_test_has_the_lens_of_the_estimates():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)  # of calibrated predictions, so that no p-value is the smallest possible one
    config = {"estimators": ["ece"], "lens": "confidence", "page": False}
    with mlflow.start_run():
        data = pd.DataFrame({"x": p, "p": p, "label": y})
        metrics = evaluate(None, data, targets="label", predictions="p", evaluator_config=config).metrics
    preds = to.Predictions(y, p)
    assert metrics["ece"] == pytest.approx(to.measure(preds, "ece", lens="confidence").value)
    assert metrics["calibration_pvalue"] == pytest.approx(to.test(preds, lens="confidence").pvalue)
    assert metrics["calibration_pvalue"] != pytest.approx(to.test(preds).pvalue)


@pytest.mark.parametrize("classes", [np.array([0, 1]), [0, 1], np.array([0.0, 1.0])])
def test_classes_of_the_configuration_may_be_an_array(problem, classes):
    model, data = problem
    config = {"estimators": ["brier"], "classes": classes, "page": False}
    with mlflow.start_run():
        uri = mlflow.sklearn.log_model(model, name="model", pip_requirements=["scikit-learn"]).model_uri
        result = evaluate(uri, data, targets="label", evaluator_config=config)
    P = model.predict_proba(data.drop(columns="label"))
    assert result.metrics["brier"] == pytest.approx(to.measure(data["label"], P, "brier", interval=None).value)


def test_an_empty_list_of_classes_is_refused(problem):
    model, data = problem
    config = {"estimators": ["brier"], "classes": [], "page": False}
    with mlflow.start_run():
        uri = mlflow.sklearn.log_model(model, name="model", pip_requirements=["scikit-learn"]).model_uri
        with pytest.raises(InputError, match="TO113"):
            evaluate(uri, data, targets="label", evaluator_config=config)


def test_an_unknown_setting_is_refused(problem):
    _, data = problem
    with mlflow.start_run(), pytest.raises(InputError, match=r"TO202.*estimators"):
        evaluate(None, data.assign(p=0.5), targets="label", predictions="p", evaluator_config={"bins": 10})
