"""Calls of scikit-learn: temperature scaling of a frozen model, and isotonic regression class by class."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression

from benchmarks.data import Arrays
from benchmarks.timed import Timed

DISTRIBUTION = "scikit-learn"


class PredictionsAsModel(ClassifierMixin, BaseEstimator):
    """A fitted model whose input is its prediction."""

    def __init__(self, k: int = 2) -> None:
        self.k = k
        self.classes_ = np.arange(k)

    def fit(self, X: np.ndarray, y: np.ndarray) -> PredictionsAsModel:
        """Do nothing."""
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The predicted class."""
        return X.argmax(axis=1)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """The input probabilities."""
        return X


def temperature(arrays: Arrays) -> Timed:
    """Fit, and return the inverse temperature."""
    P, y = arrays["P"], arrays["y"]

    def ask() -> CalibratedClassifierCV:
        return CalibratedClassifierCV(FrozenEstimator(PredictionsAsModel(P.shape[1])), method="temperature").fit(P, y)

    return Timed(ask, value=lambda calibrator: calibrator.calibrated_classifiers_[0].calibrators[0].beta_)


def isotonic(arrays: Arrays) -> Timed:
    """One curve per class; the normalization of the rows is not timed."""
    P, y = arrays["P"], arrays["y"]

    def ask() -> list[IsotonicRegression]:
        return [IsotonicRegression(out_of_bounds="clip").fit(P[:, k], y == k) for k in range(P.shape[1])]

    def value(curves: list[IsotonicRegression]) -> float:
        q = np.stack([curve.predict(P[:1000, k]) for k, curve in enumerate(curves)], axis=1)
        return np.square(q / q.sum(axis=1, keepdims=True)).mean()

    return Timed(ask, value=value)


ANSWERS = {"temperature": temperature, "isotonic": isotonic}
