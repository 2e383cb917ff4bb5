"""Calibrators (post-hoc recalibration methods) by name; the module of a method is loaded on first use."""

from __future__ import annotations

import importlib
from typing import Any

from trueodds.core.registry import Registry

# From the simplest to the most complex, as the simpler one of two equally good candidates is chosen; `auto` is last.
CALIBRATORS = Registry(
    "calibrator",
    {
        "identity": "trueodds.calibrators.uniform_mixture:IdentitySpec",
        "temperature": "trueodds.calibrators.temperature:TemperatureSpec",
        "ensemble_temperature": "trueodds.calibrators.temperature:EnsembleTemperatureSpec",
        "top_vs_all": "trueodds.calibrators.top_vs_all:TopVsAllSpec",
        "shift": "trueodds.calibrators.vector:ShiftSpec",
        "group_shift": "trueodds.calibrators.group_shift:GroupShiftSpec",
        "bias_corrected_temperature": "trueodds.calibrators.vector:BiasCorrectedTemperatureSpec",
        "llo": "trueodds.calibrators.llo:LloSpec",
        "platt": "trueodds.calibrators.logistic:PlattSpec",
        "beta": "trueodds.calibrators.logistic:BetaSpec",
        "boldness": "trueodds.calibrators.llo:BoldnessSpec",
        "evidential": "trueodds.calibrators.evidential:EvidentialSpec",
        "structured": "trueodds.calibrators.matrix:StructuredSpec",
        "mcllo": "trueodds.calibrators.mcllo:MclloSpec",
        "vector": "trueodds.calibrators.vector:VectorSpec",
        "dirichlet": "trueodds.calibrators.matrix:DirichletSpec",
        "matrix": "trueodds.calibrators.matrix:MatrixSpec",
        "spline": "trueodds.calibrators.spline:SplineSpec",
        "kernel": "trueodds.calibrators.kernel:KernelSpec",
        "prior_shift": "trueodds.calibrators.prior_shift:PriorShiftSpec",
        "irm": "trueodds.calibrators.isotonic:IrmSpec",
        "irova_ts": "trueodds.calibrators.isotonic:IrovaTsSpec",
        "centered_isotonic": "trueodds.calibrators.isotonic:CenteredIsotonicSpec",
        "isotonic": "trueodds.calibrators.isotonic:IsotonicSpec",
        "venn_abers": "trueodds.calibrators.venn_abers:VennAbersSpec",
        "enir": "trueodds.calibrators.isotonic:EnirSpec",
        "bbq": "trueodds.calibrators.histogram:BbqSpec",
        "scaling_binning": "trueodds.calibrators.histogram:ScalingBinningSpec",
        "histogram": "trueodds.calibrators.histogram:HistogramSpec",
        "simplex_histogram": "trueodds.calibrators.simplex_histogram:SimplexHistogramSpec",
        "multicalibrated": "trueodds.calibrators.multicalibrated:MulticalibratedSpec",
        "auto": "trueodds.calibrators.auto:AutoSpec",
    },
    synonyms={
        "temperature": ("temperature scaling", "temp scaling", "ts"),
        "platt": ("platt scaling", "sigmoid", "logistic", "logistic calibration", "logistic recalibration"),
        "isotonic": ("isotonic regression", "pav", "pava"),
        "centered_isotonic": (
            "centered isotonic regression", "centred isotonic", "centred isotonic regression", "cir",
        ),
        "beta": ("beta calibration", "betacal"),
        "histogram": ("histogram binning", "uniform mass binning", "histogram", "hist"),
        "vector": ("vector scaling",),
        "matrix": ("matrix scaling",),
        "dirichlet": ("dirichlet calibration",),
        "bbq": ("bayesian binning", "bayesian binning into quantiles"),
        "venn_abers": ("va", "ivap", "cvap", "venn abers predictor"),
        "ensemble_temperature": ("ets", "ensemble temperature scaling"),
        "shift": (
            "intercept only", "intercept recalibration", "intercept update", "recalibration in the large",
            "calibration intercept", "intercept", "citl", "calibration in the large",
        ),
        "bias_corrected_temperature": ("bcts", "bias corrected temperature scaling"),
        "scaling_binning": ("scaling binning calibrator", "platt binning"),
        "spline": ("spline calibration", "splines"),
        "prior_shift": ("label shift", "prior correction", "prior probability shift"),
        "identity": ("uncalibrated", "no calibration"),
    },
    # For the hint in the error on a setting that a calibrator does not have.
    method_of_setting=dict.fromkeys(("bins", "partition"), "histogram"),
    titles={
        "temperature": "temperature scaling",
        "ensemble_temperature": "ensemble temperature scaling",
        "bias_corrected_temperature": "bias-corrected temperature scaling",
        "platt": "Platt scaling",
        "group_shift": "shifts by group",
        "multicalibrated": "multicalibration by boosting",
        "llo": "linear-log-odds recalibration",
        "mcllo": "multicategory linear-log-odds recalibration",
        "beta": "beta calibration",
        "structured": "structured scaling",
        "matrix": "matrix scaling",
        "dirichlet": "Dirichlet calibration",
        "vector": "vector scaling",
        "spline": "spline calibration",
        "irm": "isotonic regression of all classes",
        "centered_isotonic": "centered isotonic regression",
        "isotonic": "isotonic regression",
        "venn_abers": "Venn–Abers calibration",
        "histogram": "histogram binning",
    },
)  # fmt: skip

# Acronyms are written as the literature writes them.
_ACRONYMS = {name: name.upper() for name in ("llo", "mcllo", "irm", "enir", "bbq")} | {"irova_ts": "IROvATS"}


def class_name(method: str) -> str:
    """The name of a method's scikit-learn class, so that the table above stays the only list.

    >>> class_name("scaling_binning"), class_name("mcllo")
    ('ScalingBinning', 'MCLLO')
    """
    return _ACRONYMS.get(method) or "".join(part.capitalize() for part in method.split("_"))


_MODULE_OF_NAME = {
    "Calibrator": "trueodds.calibrators.sklearn",
    "RecalibratedClassifier": "trueodds.calibrators.recalibrated_classifier",
    "FittedCalibrator": "trueodds.calibrators.fitted_calibrator",
    "fit": "trueodds.calibrators.fitting",
    "load": "trueodds.calibrators.fitted_calibrator",
}
_ESTIMATORS = {class_name(name): name for name in CALIBRATORS.names()}

__all__ = ["CALIBRATORS", *_MODULE_OF_NAME, *_ESTIMATORS]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF_NAME[name]), name)


def _load_estimator_class(method: str) -> Any:
    return getattr(importlib.import_module("trueodds.calibrators.sklearn"), class_name(method))


CALIBRATORS.publish(__name__, _ESTIMATORS, _load_estimator_class)
