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
        "ensemble_temperature": "trueodds.calibrators.ensemble_temperature:EnsembleTemperatureRule",
        "top_vs_all": "trueodds.calibrators.top_vs_all:TopVsAllRule",
        "bias_corrected_temperature": "trueodds.calibrators.bias_corrected_temperature:BiasCorrectedTemperatureRule",
        "llo": "trueodds.calibrators.llo:LloRule",
        "platt": "trueodds.calibrators.platt:PlattRule",
        "beta": "trueodds.calibrators.beta:BetaRule",
        "boldness": "trueodds.calibrators.boldness:BoldnessRule",
        "evidential": "trueodds.calibrators.evidential:EvidentialRule",
        "structured": "trueodds.calibrators.structured:StructuredRule",
        "mcllo": "trueodds.calibrators.mcllo:MclloRule",
        "vector": "trueodds.calibrators.vector:VectorRule",
        "dirichlet": "trueodds.calibrators.dirichlet:DirichletRule",
        "matrix": "trueodds.calibrators.matrix:MatrixRule",
        "spline": "trueodds.calibrators.spline:SplineRule",
        "kernel": "trueodds.calibrators.kernel:KernelRule",
        "prior_shift": "trueodds.calibrators.prior_shift:PriorShiftRule",
        "irm": "trueodds.calibrators.irm:IrmRule",
        "irova_ts": "trueodds.calibrators.irova_ts:IrovaTsRule",
        "centred_isotonic": "trueodds.calibrators.centred_isotonic:CentredIsotonicRule",
        "isotonic": "trueodds.calibrators.isotonic:IsotonicRule",
        "venn_abers": "trueodds.calibrators.venn_abers:VennAbersRule",
        "enir": "trueodds.calibrators.enir:EnirRule",
        "bbq": "trueodds.calibrators.bbq:BbqRule",
        "scaling_binning": "trueodds.calibrators.scaling_binning:ScalingBinningRule",
        "histogram": "trueodds.calibrators.histogram:HistogramRule",
        "simplex_histogram": "trueodds.calibrators.simplex_histogram:SimplexHistogramRule",
        "auto": "trueodds.calibrators.auto:AutoRule",
    },
)

# Acronyms are written as the literature writes them.
_ACRONYMS = {name: name.upper() for name in ("llo", "mcllo", "irm", "enir", "bbq")} | {"irova_ts": "IROvATS"}


def class_name(method: str) -> str:
    """What the scikit-learn estimator of a member is called, so that the table above stays the only list.

    >>> class_name("scaling_binning"), class_name("mcllo")
    ('ScalingBinning', 'MCLLO')
    """
    return _ACRONYMS.get(method) or "".join(part.capitalize() for part in method.split("_"))


_ESTIMATORS = {class_name(name): name for name in CALIBRATORS.names()}
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
