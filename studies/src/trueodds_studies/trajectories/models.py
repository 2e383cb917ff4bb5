"""Who makes the predictions? Four models as scikit-learn has them, and what recalibration makes of what they say."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

from trueodds.api.verbs import fit
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

STATE = 1  # random_state of all, as in the authors' code


def vectors() -> Any:
    """Support vectors whose scores scikit-learn makes into probabilities; where it no longer does so by itself, wrapped."""
    if "probability" in SVC().get_params():
        return SVC(probability=True, random_state=STATE)
    return CalibratedClassifierCV(SVC(random_state=STATE), ensemble=False)


MODELS: Mapping[str, Callable[[], Any]] = {
    "SVC": vectors,
    "naive Bayes": GaussianNB,
    "logistic": lambda: LogisticRegression(random_state=STATE),
    "forest": lambda: RandomForestClassifier(random_state=STATE, n_jobs=1),
}
RECALIBRATED = ("temperature", "isotonic")


def trained(name: str, X: Array, y: Array) -> Any:
    """The model with all its defaults, trained on these rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of the parameter that `vectors` asks for while it exists
        return MODELS[name]().fit(X, y)


def predict_proba(model: Any, X: Array, k: int) -> Array:
    """What it says of every class, (n, k); a class that no row of the training had gets 0."""
    P = np.zeros((len(X), k))
    P[:, model.classes_] = model.predict_proba(X)
    return P


def recalibrated(name: str, P: Array, y: Array, others: Array) -> Array:
    """Other predictions, after a map fitted on these rows."""
    return np.asarray(fit(Predictions(y, P), name).predict_proba(others))
