"""Calls of scikit-learn: temperature scaling of a fitted model, and isotonic regression class by class."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression

from benchmarks.peers.job_data import Arrays
from benchmarks.peers.timing import TimedCall

DISTRIBUTION = "scikit-learn"


class PredictionsAsModel(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose input is its prediction, because scikit-learn calibrates models and not arrays."""

    def __init__(self, k: int = 2) -> None:
        self.k = k
        self.classes_ = np.arange(k)

    def fit(self, X: np.ndarray, y: np.ndarray) -> PredictionsAsModel:
        """Do nothing."""
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable class."""
        return X.argmax(axis=1)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the input."""
        return X


def prepare_temperature_fit(arrays: Arrays) -> TimedCall:
    """Return the call that fits a temperature; its value is the inverse temperature."""
    P, y = arrays["P"], arrays["y"]

    def fit_temperature() -> CalibratedClassifierCV:
        return CalibratedClassifierCV(FrozenEstimator(PredictionsAsModel(P.shape[1])), method="temperature").fit(P, y)

    return TimedCall(
        fit_temperature, extract_value=lambda calibrator: calibrator.calibrated_classifiers_[0].calibrators[0].beta_
    )


def prepare_isotonic_fit(arrays: Arrays) -> TimedCall:
    """Return the call that fits one curve per class; the normalization of the recalibrated rows is not timed."""
    P, y = arrays["P"], arrays["y"]

    def fit_curves() -> list[IsotonicRegression]:
        return [IsotonicRegression(out_of_bounds="clip").fit(P[:, k], y == k) for k in range(P.shape[1])]

    def mean_square(curves: list[IsotonicRegression]) -> float:
        q = np.stack([curve.predict(P[:1000, k]) for k, curve in enumerate(curves)], axis=1)
        return np.square(q / q.sum(axis=1, keepdims=True)).mean()

    return TimedCall(fit_curves, extract_value=mean_square)


CALLS_BY_TASK = {"temperature": prepare_temperature_fit, "isotonic": prepare_isotonic_fit}
