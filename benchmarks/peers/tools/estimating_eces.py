"""Calls of `explicalib`, the code of a 2021 experiment on estimators of the ECE (github.com/euranova/estimating_eces).

It is on no package index: PYTHONPATH must contain its folder. With NumPy 2, one of its assertions about types has to be
relaxed.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from explicalib.calibration.evaluation import metrics

from benchmarks.peers.job_data import Arrays
from benchmarks.peers.timing import TimedCall

DISTRIBUTION = ""

# Families of estimators with settings. Suffix of the binned ones: a adaptive bins, c convex weights.
FAMILIES_AND_SETTINGS: list[tuple[str, dict[str, Any]]] = [
    *((family, {"n_bins": bins}) for family in ("ece", "ece_a", "ece_c", "ece_ac") for bins in (10, 30, "sqrt")),
    *(("direct", {"bandwidth": bandwidth}) for bandwidth in ("silverman", 0.1, 0.033)),
]


def prepare_experiment(arrays: Arrays) -> TimedCall:
    """Return the call that computes 15 estimators of confidence and of class-wise calibration for every sample."""
    return TimedCall(
        lambda: estimate_samples(arrays["P"], arrays["y"], arrays["rows"]),
        extract_value=lambda estimates: estimates.mean(),
    )


def estimate_samples(P: np.ndarray, y: np.ndarray, sample_rows: np.ndarray) -> np.ndarray:
    """Return the estimates (n_samples, 29) of samples with these row numbers.

    One of the 30 estimates, the class-wise kernel estimate by Silverman's rule, is computed but left out, because
    explicalib uses the bandwidth of the first class for all classes.
    """
    model = SimpleNamespace(classes_=np.arange(P.shape[1]))
    top_class, confidence = P.argmax(axis=1), P.max(axis=1)
    table = []
    for rows in sample_rows:
        estimates = []
        inputs_by_lens: dict[str, dict[str, Any]] = {
            "confidence": {"confidence_scores": confidence[rows], "predictions": top_class[rows]},
            "classwise": {"scores": P[rows]},
        }
        for lens, inputs in inputs_by_lens.items():
            for family, settings in FAMILIES_AND_SETTINGS:
                name = f"direct_{lens}_ece" if family == "direct" else f"{lens}_{family}"
                value = getattr(metrics, name)(model=model, Y=y[rows], **inputs, **settings)
                if (lens, settings.get("bandwidth")) != ("classwise", "silverman"):
                    estimates.append(value)
        table.append(estimates)
    return np.array(table)


CALLS_BY_TASK = {"experiment": prepare_experiment}
