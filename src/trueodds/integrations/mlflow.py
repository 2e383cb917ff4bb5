"""Evaluator for `mlflow.models.evaluate`: calibration error with interval and noise floor, and the report page."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.core.errors import InputError, describe, install_command
from trueodds.core.json_files import write_text
from trueodds.data.predictions import Predictions
from trueodds.integrations.loggers import result_scalars
from trueodds.reports.audit import audit

try:
    import mlflow
    from mlflow.models import EvaluationArtifact, EvaluationResult
    from mlflow.models.evaluation.base import ModelEvaluator
except ModuleNotFoundError:
    raise InputError("TO350", "This evaluator needs MLflow.", "no mlflow", install_command("mlflow")) from None

_PAGE = "calibration_report.html"


class ReportPage(EvaluationArtifact):
    """The page of an audit as an artifact, whose content is its HTML text."""

    def _load_content_from_file(self, local_artifact_path: str) -> str:
        return Path(local_artifact_path).read_text(encoding="utf-8")

    def _save(self, output_artifact_path: str) -> None:
        write_text(output_artifact_path, self._content, "TO703")


class CalibrationEvaluator(ModelEvaluator):
    """Log the calibration of a classifier with `mlflow.models.evaluate(..., evaluators=["trueodds"])`.

    MLflow finds it by its name. It logs the metrics of each estimator, such as `ece`, `ece_low`, `ece_high` and
    `ece_noise_floor`, the p-value of the test of calibration `calibration_pvalue`, and the page of an audit as the
    artifact `calibration_report.html`.

    Notes
    -----
    Probabilities are those of `predict_proba` of the model that MLflow wraps, or the predictions if they are numbers
    that are no labels: those of a model that was logged with ``pyfunc_predict_fn="predict_proba"``, of a function, or a
    column of the data that `predictions` names. One column of whole numbers is refused as labels. `evaluator_config`
    may have the keys `estimators` (names, by default ``["ece", "brier"]``), `lens` (of the estimates and the test; the
    page has those of an audit), `classes` (names in the order of the columns), and `page` (False to omit the page).

    Examples
    --------
    >>> config = {"trueodds": {"estimators": ["ece", "log_loss"]}}
    >>> # mlflow.models.evaluate(uri, data, targets="y", model_type="classifier",
    >>> #                        evaluators=["default", "trueodds"], evaluator_config=config)
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, **kwargs: Any) -> bool:  # noqa: ARG003 - MLflow may pass more
        """Return whether the model is a classifier."""
        return model_type == "classifier"

    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: Any,
        model: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Measure, test and audit the predictions, and log the results to the run."""
        config: dict[str, Any] = {"estimators": ["ece", "brier"], "lens": None, "classes": None, "page": True}
        if unknown := set(evaluator_config or {}) - set(config):
            fix = f"The keys are {', '.join(config)}."
            raise InputError("TO202", "evaluator_config has an unknown key.", ", ".join(sorted(unknown)), fix)
        config |= evaluator_config or {}
        preds = _read_predictions(dataset, model, config["classes"])
        results: dict[str, Any] = {name: measure(preds, name, lens=config["lens"]) for name in config["estimators"]}
        metrics = result_scalars(results) | {"calibration_pvalue": float(test(preds, lens=config["lens"]).pvalue)}
        mlflow.log_metrics(metrics, run_id=run_id)
        artifacts = {}
        if config["page"]:
            with tempfile.TemporaryDirectory() as folder:
                page = audit(preds).to_html(Path(folder, _PAGE))
                mlflow.log_artifact(str(Path(folder, _PAGE)), run_id=run_id)
            uri = f"{mlflow.get_run(run_id).info.artifact_uri}/{_PAGE}"
            artifacts[_PAGE] = ReportPage(uri=uri, content=page)
        return EvaluationResult(metrics=metrics, artifacts=artifacts, run_id=run_id)


def _read_predictions(dataset: Any, model: Any, classes: Any) -> Predictions:
    """The outcomes of a data set of MLflow, and the probabilities of the model or of the data set."""
    if model is None:
        P = dataset.predictions_data
    else:
        try:
            raw_model = model.get_raw_model()
        except (AttributeError, RuntimeError):  # of a function, or of a flavor without one
            raw_model = None
        data = dataset.features_data
        if hasattr(raw_model, "predict_proba"):
            P = raw_model.predict_proba(data)
            classes = getattr(raw_model, "classes_", None) if classes is None else classes
        else:
            P = model.predict(data)
    P = np.asarray(P.tolist() if hasattr(P, "tolist") else P)
    is_one_column = P.size == len(P) > 0
    if not np.issubdtype(P.dtype, np.floating) or (is_one_column and (np.round(P) == P).all()):
        fix = 'Log the model with pyfunc_predict_fn="predict_proba", or name a column of probabilities as predictions=.'
        raise InputError("TO353", "The model returns labels instead of probabilities.", describe(P), fix)
    return Predictions(np.asarray(dataset.labels_data), P, classes=None if classes is None else list(classes))
