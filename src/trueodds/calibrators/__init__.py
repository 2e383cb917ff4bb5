"""What fixes it: one line per calibrator; a module is loaded when its member is first asked for."""

from __future__ import annotations

import importlib
from typing import Any

from trueodds.core.registry import Registry

CALIBRATORS = Registry(
    "calibrator",
    {
        "identity": "trueodds.calibrators.identity:IdentityRule",
        "temperature": "trueodds.calibrators.temperature:TemperatureRule",
        "isotonic": "trueodds.calibrators.isotonic:IsotonicRule",
        "histogram": "trueodds.calibrators.histogram:HistogramRule",
        "auto": "trueodds.calibrators.auto:AutoRule",
    },
)

# The scikit-learn estimator of a member is its name in capitals, so that the table above stays the only list.
_ESTIMATORS = {"".join(part.capitalize() for part in name.split("_")): name for name in CALIBRATORS.names()}
_WHERE = {
    "Calibrator": "trueodds.calibrators.estimator",
    "RecalibratedClassifier": "trueodds.calibrators.recalibrated",
    "Fitted": "trueodds.calibrators.fitted",
    "fit": "trueodds.calibrators.fitted",
    "load": "trueodds.calibrators.wire",
    **dict.fromkeys(_ESTIMATORS, "trueodds.calibrators.estimator"),
}

__all__ = ["CALIBRATORS", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
