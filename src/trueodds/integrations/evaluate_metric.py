"""Calibration error as a metric of Hugging Face's `evaluate`, which loads this file by its path."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate

from trueodds.api.measure import measure
from trueodds.integrations.loggers import result_scalars

_DESCRIPTION = "Calibration error of predicted probabilities, with its interval and noise floor, computed by trueodds."
_INPUTS = """
predictions: probabilities of the second class (n,), or of every class (n, K).
references: class numbers, from 0.
estimator: name of the estimator, "ece" by default.
"""


class CalibrationErrorMetric(evaluate.Metric):
    """Calibration error with its interval and noise floor.

    Load it with ``evaluate.load(trueodds.integrations.evaluate_metric.__file__)``.
    """

    def _info(self) -> Any:
        labels = datasets.Value("int64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=[
                datasets.Features({"predictions": datasets.Value("float64"), "references": labels}),
                datasets.Features({"predictions": datasets.List(datasets.Value("float64")), "references": labels}),
            ],
        )

    def _compute(self, predictions: Any, references: Any, estimator: str = "ece", **settings: Any) -> dict[str, float]:
        return result_scalars({estimator: measure((references, predictions), estimator, **settings)})
