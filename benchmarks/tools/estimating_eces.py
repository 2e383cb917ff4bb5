"""Calls of `explicalib`, the code of the 2021 experiment (github.com/euranova/estimating_eces).

Not on any index of packages: PYTHONPATH names the folder where it lies. On NumPy 2 one assertion about types has to be
relaxed. Its class-wise kernel estimate by Silverman's rule takes the first class's bandwidth for all, so that one is
made but not compared.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from explicalib.calibration.evaluation import metrics

from benchmarks.data import Arrays
from benchmarks.timed import Timed

DISTRIBUTION = ""

SETTINGS = [
    *((family, {"n_bins": bins}) for family in ("ece", "ece_a", "ece_c", "ece_ac") for bins in (10, 30, "sqrt")),
    *(("direct", {"bandwidth": bandwidth}) for bandwidth in ("silverman", 0.1, 0.033)),
]


def experiment(arrays: Arrays) -> Timed:
    """15 estimators in both settings for every set of rows."""
    return Timed(lambda: inner_loop(arrays["P"], arrays["y"], arrays["rows"]), value=lambda estimates: estimates.mean())


def inner_loop(P: np.ndarray, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The estimates of every set of rows, (sets, 29)."""
    model = SimpleNamespace(classes_=np.arange(P.shape[1]))
    guess, confidence = P.argmax(axis=1), P.max(axis=1)
    table = []
    for sample in rows:
        estimates = []
        takes: dict[str, dict[str, Any]] = {
            "confidence": {"confidence_scores": confidence[sample], "predictions": guess[sample]},
            "classwise": {"scores": P[sample]},
        }
        for setting, scores in takes.items():
            for family, chosen in SETTINGS:
                name = f"direct_{setting}_ece" if family == "direct" else f"{setting}_{family}"
                value = getattr(metrics, name)(model=model, Y=y[sample], **scores, **chosen)
                if (setting, chosen.get("bandwidth")) != ("classwise", "silverman"):
                    estimates.append(value)
        table.append(estimates)
    return np.array(table)


ANSWERS = {"experiment": experiment}
