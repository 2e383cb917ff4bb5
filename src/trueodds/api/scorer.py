"""Create a scorer for scikit-learn's model selection from any estimator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from trueodds.api.arguments import resolve_method
from trueodds.api.measure import measure
from trueodds.core.errors import InputError
from trueodds.core.results import Estimate
from trueodds.core.settings import Seed, check
from trueodds.core.signatures import checks_arguments
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.lenses.lens_by_name import as_lens


@dataclass(frozen=True)
class Scorer:
    """An estimator that is called like a scikit-learn scorer, ``scorer(model, X, y)``; greater is better.

    The fields are the arguments of `scorer`, and what `set_score_request` sets.
    """

    estimator: str | Estimator
    lens: Any = None
    aggregate: str | None = None
    region: Any = None
    weight_kind: str = "importance"
    rng: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    weight_request: bool | str | None = None

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Scorer:
        """Request weights, or not, from scikit-learn's metadata routing.

        Parameters
        ----------
        sample_weight : bool or str, optional
            Whether weights are requested; a string is the name under which they are passed. With None, passing weights
            raises an error.

        Returns
        -------
        Scorer
            This scorer.

        Raises
        ------
        InputError
            TO203 for an invalid value, TO205 if metadata routing is not enabled, so that the request had no effect.
        """
        from sklearn import get_config

        request = check("sample_weight", sample_weight, bool | str | None, None)
        if not get_config()["enable_metadata_routing"]:
            fix = "Call sklearn.set_config(enable_metadata_routing=True) first."
            raise InputError("TO205", "Requests need scikit-learn's metadata routing.", "which is off", fix)
        object.__setattr__(self, "weight_request", request)  # as scikit-learn's scorers change themselves
        return self

    def get_metadata_routing(self) -> Any:
        """Return the request for weights, which scikit-learn reads.

        Returns
        -------
        MetadataRequest
            The request of the method `score`.
        """
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self.weight_request)
        return request

    def _accept_sample_weight(self) -> bool:
        """Return True: scikit-learn asks scorers of a dictionary whether they take weights."""
        return True

    def __call__(self, model: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of a fitted classifier on these rows: minus the error."""
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
            warnings.warn(self._explain_nonfinite_score(score, estimate), stacklevel=2)
        return score

    def _explain_nonfinite_score(self, score: float, estimate: Estimate) -> str:
        """Return the text of the warning on a score that is not finite: the reasons, and how to make it finite."""
        text = f"The score {estimate.estimator} is {score}. {' '.join(str(note) for note in estimate.notes)}"
        if ESTIMATORS.is_setting_of(self.estimator, "min_prob"):
            text += f" scorer({self.estimator!r}, min_prob=1e-12) replaces smaller probabilities by 1e-12."
        return text


@checks_arguments
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
    """Return a scorer for `cross_val_score`, `GridSearchCV` and other functions with a `scoring` parameter.

    The score is minus the error (minus the distance to the best value if that is not 0), so greater is better. All
    arguments but `region`, which depends on the classes, are validated here, not in the first fold.

    Parameters
    ----------
    estimator : str or Estimator
        Name of an estimator (``trueodds list estimators`` prints them), or an instance with its settings.
    lens : str, Lens or callable, optional
        Which predicted probability is examined: ``"positive"``, ``"confidence"``, ``"classwise"``, ``"class:NAME"``,
        ``"top-label"``, ``"canonical"`` or another one. The default is that of the method if it has one
        (``"canonical"`` for proper scores), else ``"positive"`` for two classes and ``"confidence"`` for more.
    aggregate : {"mean", "max", "sum", "prevalence", "weight"}, optional
        How the values of several views, such as the classes of ``"classwise"``, are combined into one number. The
        default is the mean (``"weight"`` for ``"top-label"``).
    region : str, mapping or callable, optional
        Restrict the analysis to rows whose predictions lie in a region: ``"confidence > 0.9"``,
        ``{"class:cat": (0.2, 0.8)}``, or a function that maps the probabilities (n, K) to a boolean mask.
    weight_kind : {"importance", "frequency"}, default="importance"
        Whether a row of weight 2 is one row that counts double (``"importance"``) or two observed rows
        (``"frequency"``).
    rng : int, default=0
        Seed. The same call with the same seed returns the same result.
    **settings
        Settings of the estimator, such as `bins`, `partition`, `min_size`, `closed`, `range`, `distance`, `order` or
        `min_prob`.

    Returns
    -------
    Scorer
        A callable ``scorer(model, X, y, sample_weight=None)`` that returns a float.

    Raises
    ------
    InputError
        TO201 for an unknown name, TO202 for an unknown setting or settings beside an instance, TO203 for an invalid
        value, TO204 for an unknown lens.

    Notes
    -----
    With few rows, noise increases every calibration error, and more so for models with widely spread predictions. For
    model selection a proper score (``"log_loss"``, ``"brier"``) or a debiased error (``"debiased_l2"``, ``"skce"``) is
    therefore better than ECE.

    Probabilities are not clipped unless requested. One outcome with predicted probability 0, which trees with pure
    leaves produce, makes ``"log_loss"`` infinite, and a warning reports it. ``scorer("log_loss", min_prob=1e-12)`` is
    finite. The scorer ``neg_log_loss`` of scikit-learn always clips, at 2.2e-16 for float64.

    With scikit-learn's metadata routing, ``scorer("ece").set_score_request(sample_weight=True)`` gets the weights that
    are passed as ``params={"sample_weight": w}``.

    Examples
    --------
    >>> import trueodds as to
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(300, random_state=0)
    >>> bool((cross_val_score(GaussianNB(), X, y, scoring=to.scorer("ece", bins=10)) <= 0).all())
    True
    """
    if "sample_weight" in settings:
        fix = "Pass it with the rows: scorer(model, X, y, sample_weight=…)."
        raise InputError("TO202", "A scorer is made without data.", "sample_weight", fix)
    resolve_method(ESTIMATORS, Estimator, estimator, settings)
    if lens is not None:
        as_lens(lens)
    aggregate = check("aggregate", aggregate, Aggregate | None, None)
    check("weight_kind", weight_kind, Literal["importance", "frequency"], "importance")
    check("rng", rng, Seed, 0)
    return Scorer(estimator, lens, aggregate, region, weight_kind, rng, settings)
