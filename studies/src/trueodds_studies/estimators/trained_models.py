"""Random Gaussian mixtures, scikit-learn classifiers trained on them, and bounds on their true calibration errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

from trueodds.api.fit import fit
from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.uniform import Uniform
from trueodds.calibrators.histogram import HistogramSpec
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.binned import BinnedError
from trueodds.estimators.cross_fitted import CrossFitted
from trueodds.estimators.debiased import DebiasedL2
from trueodds.lenses.view import View

MODES_PER_CLASS = 4
MAX_ENTRY = 0.3  # largest absolute entry of the matrices A
MAX_CLASS_RATIO = 10.0  # frequency of the first class divided by that of the last one, where classes are uneven


@dataclass(frozen=True)
class RandomMixture:
    """A random mixture of Gaussians with k classes in d dimensions and four modes per class.

    Means are uniform on [−1, 1]^d, covariances AᵀA with entries of A uniform on [−0.3, 0.3], and the modes of a class
    equally frequent. Source: Posocco & Bonnefoy (2021), section 5.1.
    """

    k: int
    d: int
    number: int  # distinguishes the distributions with the same k and d
    seed: int = 0
    even: bool = True  # whether classes are equally frequent

    @property
    def key(self) -> tuple[int, ...]:
        """The seeds of all random streams of this distribution."""
        return (self.seed, self.k, self.d, self.number, int(self.even))

    @cached_property
    def modes(self) -> tuple[Array, Array]:
        """Means (k · modes, d) and matrices A (k · modes, d, d), which do not depend on `even`."""
        rng = np.random.default_rng([*self.key[:-1], 1])
        size = self.k * MODES_PER_CLASS
        return rng.uniform(-1, 1, (size, self.d)), rng.uniform(-MAX_ENTRY, MAX_ENTRY, (size, self.d, self.d))

    @property
    def prior(self) -> Array:
        """The class probabilities, (k,)."""
        p = np.ones(self.k) if self.even else MAX_CLASS_RATIO ** -(np.arange(self.k) / (self.k - 1))
        return np.asarray(p / p.sum())

    def rows(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Features (n, d) and labels (n,) of n independent rows."""
        means, matrices = self.modes
        mode = rng.choice(self.k * MODES_PER_CLASS, n, p=np.repeat(self.prior / MODES_PER_CLASS, MODES_PER_CLASS))
        normal = rng.standard_normal((n, self.d))
        X = np.empty_like(normal)
        for m in range(len(means)):
            indices = np.flatnonzero(mode == m)
            X[indices] = means[m] + normal[indices] @ matrices[m]
        return X, mode // MODES_PER_CLASS

    def posterior(self, X: Array) -> Array:
        """The true class probabilities, (n, k), at features X (n, d)."""
        means, matrices = self.modes
        logs = np.empty((len(X), len(means)))
        for m, (mean, A) in enumerate(zip(means, matrices, strict=True)):
            z = np.linalg.solve(A.T, (X - mean).T)  # x = mean + z A, so that zᵀ = A⁻ᵀ (x − mean)ᵀ
            logs[:, m] = -0.5 * (z**2).sum(axis=0) - np.log(abs(np.linalg.det(A)))
        logs += np.repeat(np.log(self.prior), MODES_PER_CLASS)
        share = np.exp(logs - logs.max(axis=1, keepdims=True)).reshape(len(X), self.k, MODES_PER_CLASS).sum(axis=2)
        return np.asarray(share / share.sum(axis=1, keepdims=True))


RANDOM_STATE = 1  # of all models, as in the released code of Posocco & Bonnefoy (2021)


def probability_svc() -> Any:
    """A support vector classifier with probabilities.

    It is wrapped in `CalibratedClassifierCV` for versions of scikit-learn without `SVC(probability=True)`.
    """
    if "probability" in SVC().get_params():
        return SVC(probability=True, random_state=RANDOM_STATE)
    return CalibratedClassifierCV(SVC(random_state=RANDOM_STATE), ensemble=False)


MODELS: Mapping[str, Callable[[], Any]] = {
    "SVC": probability_svc,
    "naive Bayes": GaussianNB,
    "logistic": lambda: LogisticRegression(random_state=RANDOM_STATE),
    "forest": lambda: RandomForestClassifier(random_state=RANDOM_STATE, n_jobs=1),
}
RECALIBRATIONS = ("temperature", "isotonic")


def train(name: str, X: Array, y: Array) -> Any:
    """A model of MODELS with default settings, trained on features X (n, d) and labels y (n,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # SVC(probability=True) is deprecated
        return MODELS[name]().fit(X, y)


def predict_proba(model: Any, X: Array, k: int) -> Array:
    """Predicted probabilities of all classes, (n, k); a class without training rows gets 0."""
    P = np.zeros((len(X), k))
    P[:, model.classes_] = model.predict_proba(X)
    return P


def recalibrate(name: str, P: Array, y: Array, P_other: Array) -> Array:
    """Fit a calibrator on predictions P (n, k) and labels y (n,), and apply it to other predictions (m, k)."""
    return np.asarray(fit(Predictions(y, P), name).predict_proba(P_other))


BOUND_BINS = 100  # equal-mass bins of the bounds; within them, the calibration curve of a model is nearly straight
FINE_BINS = 10_000  # equal-mass bins, which reveal jumps of the event rate between neighboring scores
LEGACY_BINS = 2000  # uniform bins with which Posocco & Bonnefoy (2021) computed the true error


@dataclass(frozen=True)
class TrueErrorBounds:
    """Bounds on the mean distance of predicted and true probabilities: estimates with negative and positive bias."""

    low: float
    high: float
    l2: float  # the root mean square distance
    legacy: float  # the plug-in estimate with LEGACY_BINS
    fine: float  # as `low`, with FINE_BINS: above `high` only if the calibration curve is not smooth

    @property
    def l1(self) -> float:
        """The midpoint of the bounds, at least 0."""
        return max(0.0, (self.low + self.high) / 2)

    @classmethod
    def estimate(cls, views: Sequence[View]) -> TrueErrorBounds:
        """Estimate the bounds from views with very many rows, and average them over the views.

        The upper bound is the plug-in estimate with equal-mass bins, to which noise adds in every bin. For the lower
        bound, each half of the rows is evaluated with the direction of the deviation in the other half, which noise can
        only reverse. The squared distance has an unbiased estimate.
        """
        lower, lower_fine = (
            CrossFitted(calibrator=HistogramSpec(b, "equal-mass"), folds=2, fit_on="others")
            for b in (BOUND_BINS, FINE_BINS)
        )
        estimators = (
            lower,
            BinnedError(EqualMass(BOUND_BINS)),
            DebiasedL2(EqualMass(BOUND_BINS)),
            BinnedError(Uniform(LEGACY_BINS)),
            lower_fine,
        )
        return cls(*(float(np.mean([estimator.value(view) for view in views])) for estimator in estimators))

    def of_target(self, target: str) -> float:
        """The truth for estimators of the mean distance (`l1`), or of its root mean square (`l2`)."""
        return self.l2 if target == "l2" else self.l1
