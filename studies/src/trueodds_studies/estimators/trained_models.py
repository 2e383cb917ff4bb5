"""Random Gaussian mixtures, scikit-learn classifiers trained on them, and bounds on their true calibration error."""

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

MODES_PER_CLASS = 4  # of each class
MAX_ENTRY = 0.3  # entries of the matrix that a mode's normal numbers are multiplied by lie in ± this
MAX_CLASS_RATIO = 10.0  # how many times as often the first class comes as the last one, where classes are uneven


@dataclass(frozen=True)
class RandomMixture:
    """A distribution of the experiment: K classes in d dimensions.

    Means are uniform on [−1, 1]^d, covariances AᵀA with entries of A uniform on [−.3, .3], modes of a class equally
    frequent. Source: Posocco & Bonnefoy (2021), section 5.1.
    """

    k: int
    d: int
    number: int  # of the distributions of this shape
    seed: int = 0
    even: bool = True  # whether classes are equally frequent

    @property
    def key(self) -> tuple[int, ...]:
        """What seeds everything that is drawn from it."""
        return (self.seed, self.k, self.d, self.number, int(self.even))

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        """Means (K·modes, d) and matrices (K·modes, d, d); uneven classes have the same."""
        rng = np.random.default_rng([*self.key[:-1], 1])
        size = self.k * MODES_PER_CLASS
        return rng.uniform(-1, 1, (size, self.d)), rng.uniform(-MAX_ENTRY, MAX_ENTRY, (size, self.d, self.d))

    @property
    def prior(self) -> Array:
        """How often each class comes, (K,)."""
        p = np.ones(self.k) if self.even else MAX_CLASS_RATIO ** -(np.arange(self.k) / (self.k - 1))
        return np.asarray(p / p.sum())

    def rows(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Features (n, d) and labels (n,) of n independent rows."""
        means, matrices = self.parts
        mode = rng.choice(self.k * MODES_PER_CLASS, n, p=np.repeat(self.prior / MODES_PER_CLASS, MODES_PER_CLASS))
        normal = rng.standard_normal((n, self.d))
        X = np.empty_like(normal)
        for m in range(len(means)):
            indices = np.flatnonzero(mode == m)
            X[indices] = means[m] + normal[indices] @ matrices[m]
        return X, mode // MODES_PER_CLASS

    def posterior(self, X: Array) -> Array:
        """The true probability of each class at X (n, d), (n, K)."""
        means, matrices = self.parts
        logs = np.empty((len(X), len(means)))
        for m, (mean, A) in enumerate(zip(means, matrices, strict=True)):
            z = np.linalg.solve(A.T, (X - mean).T)  # x = mean + z A, so that zᵀ = A⁻ᵀ (x − mean)ᵀ
            logs[:, m] = -0.5 * (z**2).sum(axis=0) - np.log(abs(np.linalg.det(A)))
        logs += np.repeat(np.log(self.prior), MODES_PER_CLASS)
        share = np.exp(logs - logs.max(axis=1, keepdims=True)).reshape(len(X), self.k, MODES_PER_CLASS).sum(axis=2)
        return np.asarray(share / share.sum(axis=1, keepdims=True))


RANDOM_STATE = 1  # random_state of all, as in the authors' code


def probability_svc() -> Any:
    """Support vector classifier with probabilities, wrapped if scikit-learn no longer provides them by itself."""
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
    """The model with all its defaults, trained on these rows."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", FutureWarning
        )  # of the parameter that `probability_svc` asks for while it exists
        return MODELS[name]().fit(X, y)


def predict_proba(model: Any, X: Array, k: int) -> Array:
    """Predicted probabilities of all classes, (n, k); a class without training rows gets 0."""
    P = np.zeros((len(X), k))
    P[:, model.classes_] = model.predict_proba(X)
    return P


def recalibrate(name: str, P: Array, y: Array, others: Array) -> Array:
    """Other predictions, after a map fitted on these rows."""
    return np.asarray(fit(Predictions(y, P), name).predict_proba(others))


BOUND_BINS = 100  # of equal mass; within them a curve of a model is all but straight
FINE_BINS = 10_000  # of equal mass, which see what jumps between neighboring scores
LEGACY_BINS = 2000  # uniform bins of the authors' truth


@dataclass(frozen=True)
class TrueErrorBounds:
    """The mean distance of said and true between an estimate that errs upward and one that errs downward."""

    low: float
    high: float
    l2: float
    legacy: float
    fine: float  # errs downward on the finest bins: above the bracket only where a model's curve is not smooth

    @property
    def l1(self) -> float:
        """The middle; no distance is below 0."""
        return max(0.0, (self.low + self.high) / 2)

    @classmethod
    def of(cls, views: Sequence[View]) -> TrueErrorBounds:
        """The mean over the views.

        Above: the plug-in on equal-mass bins, to whose every bin chance adds. Below: each half of the rows judged in
        the direction that the other half shows, which chance can only turn the wrong way. The squared error has an
        unbiased estimate.
        """
        folds = [
            CrossFitted(calibrator=HistogramSpec(b, "equal-mass"), folds=2, fit_on="others")
            for b in (BOUND_BINS, FINE_BINS)
        ]
        estimators = (
            folds[0],
            BinnedError(EqualMass(BOUND_BINS)),
            DebiasedL2(EqualMass(BOUND_BINS)),
            BinnedError(Uniform(LEGACY_BINS)),
            folds[1],
        )
        return cls(*(float(np.mean([one.value(view) for view in views])) for one in estimators))

    def of_target(self, target: str) -> float:
        """The truth for estimators of the mean distance (`l1`), or of its root mean square (`l2`)."""
        return self.l2 if target == "l2" else self.l1
