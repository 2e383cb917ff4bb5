"""scikit-learn estimators made from the calibrators, with their settings as constructor arguments."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from trueodds.calibrators import CALIBRATORS, class_name
from trueodds.calibrators.base import CalibratorSpec
from trueodds.calibrators.fitted_calibrator import FittedCalibrator, class_array
from trueodds.calibrators.fitting import fit, has_integer_weights
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.argument_order import with_called_order
from trueodds.data.arrays import as_array
from trueodds.data.predictions import Predictions


class Calibrator(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A calibrator as a scikit-learn estimator: its features are the probabilities of another model.

    Parameters
    ----------
    classes : sequence, optional
        The names of the classes in the order of the columns. Left out, they are the sorted labels; integer labels
        of which some are missing are 0..K−1.
    logits : bool, default False
        Whether y_prob holds logits (or log-probabilities) instead of probabilities, here and when predicting.

    Attributes
    ----------
    classes_ : array (K,)
    n_features_in_ : int
        Columns of y_prob: K, or 1 for a single probability.
    fitted_ : Fitted
        The map with its notes; it can be saved without pickle: `fitted_.save("cal.json")`.
    n_iter_, converged_ : int, bool
        Of an iterative fit: passes over the data, and whether the parameter lies inside its range.
    report_ : Recalibration
        Of `Auto`: candidates, choice and confirmation.
    """

    spec_type: ClassVar[type[CalibratorSpec]]

    # Routing takes every other argument of fit for metadata; these two are the data.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"y_prob": UNUSED, "y_true": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, str]] = {"y_prob": UNUSED}
    __metadata_request__predict_proba: ClassVar[dict[str, str]] = {"y_prob": UNUSED}
    __metadata_request__transform: ClassVar[dict[str, str]] = {"y_prob": UNUSED}

    def __init__(self, *, classes: Sequence[Any] | None = None, logits: bool = False) -> None:
        self.classes = classes
        self.logits = logits

    def fit(self, y_prob: ArrayLike, y_true: ArrayLike, sample_weight: ArrayLike | None = None) -> Calibrator:
        """Fit to probabilities y_prob (n, K), or (n,) for the second class, and labels (n,) or votes (n, K).

        Weights that are whole numbers count rows, as in scikit-learn; others say which rows matter more.

        Raises InputError (a ValueError): TO101 to TO116 for the data, TO2xx for settings.
        """
        spec = self.made()
        p, y = as_array(y_prob, "y_prob"), as_array(y_true, "y_true")
        classes = _classes(y, 2 if p.ndim == 1 else p.shape[-1]) if self.classes is None else list(self.classes)
        made = Predictions.from_logits if self.logits else Predictions
        try:  # with the columns of a data frame, whose names may tell another order than that of the classes
            preds = made(y_true, y_prob, weight=sample_weight, classes=classes)
        except InputError as problem:
            raise with_called_order(problem, "This fit takes (y_prob, y_true): swap the two arguments.") from None
        _check_feature_names(self, y_prob, reset=True)
        self.calibrator_: FittedCalibrator = fit(spec, preds, counts=has_integer_weights(preds.weight))
        self.classes_ = class_array(preds.classes)
        self.n_features_in_ = 1 if p.ndim == 1 else preds.k
        if self.calibrator_.calibration_map.n_passes is not None:
            self.n_iter_, self.converged_ = (
                self.calibrator_.calibration_map.n_passes,
                self.calibrator_.calibration_map.converged,
            )
        if self.calibrator_.report is not None:
            self.report_ = self.calibrator_.report
        return self

    def made(self) -> CalibratorSpec:
        """The rule with this estimator's settings."""
        return self.spec_type(**{field.name: getattr(self, field.name) for field in dataclasses.fields(self.spec_type)})

    def predict_proba(self, y_prob: ArrayLike) -> Array:
        """Recalibrated probabilities (n, K), float64, columns in the order of `classes_`."""
        check_is_fitted(self)
        _check_feature_names(self, y_prob, reset=False)
        return self.calibrator_.predict_proba(y_prob, logits=self.logits)

    def transform(self, y_prob: ArrayLike) -> Array:
        """The same as `predict_proba`, so that another step may follow."""
        return self.predict_proba(y_prob)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the columns that `transform` gives, `p_` and the class; `set_output` needs them."""
        check_is_fitted(self)
        return np.array([f"p_{name}" for name in self.classes_], dtype=object)

    def predict(self, y_prob: ArrayLike) -> Array:
        """The most probable class of each row; the first of several."""
        q = self.predict_proba(y_prob)
        return self.classes_[q.argmax(axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibrator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self.logits
        tags.target_tags.required = True
        return tags


def _classes(y: Array, k: int) -> list[Any] | None:
    """The sorted labels where each column has one; None lets integers count from 0."""
    if y.ndim != 1 or (y.dtype.kind == "f" and not np.isfinite(y).all()):
        return None
    labels = np.unique(y).tolist()
    return labels if len(labels) == k else None


def make_estimator_class(spec_type: type[CalibratorSpec]) -> type[Calibrator]:
    """The scikit-learn class of a rule: its settings become constructor arguments."""
    settings = [field for field in dataclasses.fields(spec_type) if field.init]
    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(inspect.Parameter(field.name, keyword, default=field.default) for field in settings),
            inspect.Parameter("classes", keyword, default=None),
            *(
                []
                if any(field.name == "logits" for field in settings)
                else [inspect.Parameter("logits", keyword, default=False)]
            ),
        ]
    )

    def __init__(self: Calibrator, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - becomes the class's
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name in list(bound.arguments)[1:]:
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    called = class_name(spec_type.name)
    __init__.__qualname__ = f"{called}.__init__"
    body = {"__init__": __init__, "__module__": __name__, "__doc__": _doc(spec_type), "spec_type": spec_type}
    return type(called, (Calibrator,), body)


def _doc(spec_type: type[CalibratorSpec]) -> str:
    """The rule's own text without its example, which is about plain arrays, and that of every estimator."""
    own = inspect.cleandoc(spec_type.__doc__ or "").split("\n>>>")[0].rstrip()
    shared = inspect.cleandoc(Calibrator.__doc__ or "").split("\n", 1)[1]
    return f"{own}\n{shared}"


def __getattr__(name: str) -> Any:
    # Pickle finds a class by its module and name, so each is kept here once it is made.
    for method in CALIBRATORS.names():
        if class_name(method) == name:
            return globals().setdefault(name, make_estimator_class(CALIBRATORS.load(method)))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
