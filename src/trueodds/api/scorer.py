"""Use any estimator as a scorer for scikit-learn's model selection."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueodds.api.measure import measure
from trueodds.core.errors import InputError
from trueodds.core.results import Estimate
from trueodds.core.settings import check
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.lenses.lens import as_lens


@dataclass(frozen=True)
class Scorer:
    """An estimator called as scikit-learn calls a scorer, `scorer(model, X, y)`; greater is better."""

    estimator: str | Estimator
    lens: Any = None
    aggregate: str | None = None
    region: Any = None
    weight_kind: str = "importance"
    rng: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, model: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The score of a fitted classifier on these rows: minus the error."""
        preds = Predictions.from_estimator(model, X, y, weight=sample_weight)
        estimate = measure(
            preds, self.estimator, lens=self.lens, aggregate=self.aggregate, region=self.region, interval=None,
            weight_kind=self.weight_kind, rng=self.rng, **self.settings,
        )  # fmt: skip
        estimator = self.estimator
        if isinstance(estimator, str):
            estimator = ESTIMATORS.make(estimator, self.settings)
        score = -float(estimator.as_loss(np.float64(estimate.value)))
        if not np.isfinite(score):
            warnings.warn(self._explain(score, estimate), stacklevel=2)
        return score

    def _explain(self, score: float, estimate: Estimate) -> str:
        """Why the score is not finite, and what makes it so."""
        why = " ".join(str(note) for note in estimate.notes)
        has_min_prob = isinstance(self.estimator, str) and ESTIMATORS.takes(self.estimator, "min_prob")
        fix = (
            f" scorer({self.estimator!r}, min_prob=1e-12) takes smaller probabilities for 1e-12."
            if has_min_prob
            else ""
        )
        return f"The score {estimate.estimator} is {score}. {why}{fix}"


def scorer(
    estimator: str | Estimator,
    *,
    lens: Any = None,
    aggregate: str | None = None,
    region: Any = None,
    weight_kind: str = "importance",
    rng: int = 0,
    **settings: Any,
) -> Scorer:
    """A scorer for `cross_val_score`, `GridSearchCV` and whatever else takes `scoring=`.

    The score is minus the error (minus the distance to the best value where that is not 0), so that the largest is
    the best calibrated. Everything is checked here, not in the first fold. Beware: on few rows every error is pulled
    up by noise, the more so for models that spread their scores; a proper score (`"log_loss"`, `"brier"`) or a
    debiased error (`"debiased_l2"`, `"skce"`) chooses better than ECE.

    Nothing is clipped unasked: one outcome with predicted probability 0, as pure leaves of trees give it, makes
    `"log_loss"` infinite, and a warning says so. `scorer("log_loss", min_prob=1e-12)` is finite. scikit-learn's own
    `neg_log_loss` always clips, at 2.2e-16 for float64.

    Parameters
    ----------
    estimator : str or Estimator
        A name of `trueodds list estimators`, or an instance.
    lens, aggregate, region, weight_kind, rng
        As for `measure`.
    **settings
        The estimator's own.

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(300, random_state=0)
    >>> bool((cross_val_score(GaussianNB(), X, y, scoring=scorer("ece", bins=10)) <= 0).all())
    True
    """
    if isinstance(estimator, str):
        ESTIMATORS.make(estimator, settings)
    elif settings:
        raise InputError(
            "TO202",
            "A member given as an instance has its own settings.",
            ", ".join(settings),
            "Set them on the instance, or give its name.",
        )
    if lens is not None:
        as_lens(lens)
    aggregate = check("aggregate", aggregate, Aggregate | None)
    return Scorer(estimator, lens, aggregate, region, weight_kind, rng, settings)
