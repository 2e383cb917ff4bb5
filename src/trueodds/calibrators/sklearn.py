"""The scikit-learn interface: one estimator class per calibrator, with its settings as constructor arguments."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from trueodds.calibrators import CALIBRATORS, class_name
from trueodds.calibrators.base import CalibratorSpec
from trueodds.calibrators.calibrator_predictions import class_names_array
from trueodds.calibrators.fitted_calibrator import FittedCalibrator
from trueodds.calibrators.fitting import fit
from trueodds.core.docstrings import docstring_sections
from trueodds.core.errors import InputError
from trueodds.core.signatures import argument_error, checks_arguments
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array, restate_called_order
from trueodds.data.prediction_arrays import Groups
from trueodds.data.predictions import Predictions
from trueodds.data.remedies import restate_own_arguments
from trueodds.data.weights import are_counts


class Calibrator(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A calibrator as a scikit-learn estimator, whose features are the probabilities of another model.

    Base class of `Temperature`, `Isotonic`, `Auto` and the others, which add their settings as parameters.

    Parameters
    ----------
    classes : sequence, optional
        Names of the classes in the order of the columns. By default the sorted labels; integer labels of which some
        are missing are 0 to K − 1.
    logits : bool, default=False
        Whether `y_prob` holds logits (or log-probabilities) instead of probabilities, in `fit` and when predicting.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Names of the classes.
    n_features_in_ : int
        Number of columns of `y_prob`: K, or 1 for a single probability.
    calibrator_ : FittedCalibrator
        The fitted map with its notes. `calibrator_.save("cal.json")` saves it without pickle.
    n_iter_ : int
        Passes over the data, of an iterative fit.
    converged_ : bool
        Whether an iterative fit has a finite optimum inside the range of its parameters.
    report_ : Recalibration
        Candidates, choice and confirmation, of `Auto`.

    Examples
    --------
    >>> from trueodds.calibrators import Temperature
    >>> calibrator = Temperature().fit([0.9] * 40, [1, 1, 1, 0] * 10)
    >>> calibrator.predict_proba([0.9]).round(2).tolist()
    [[0.25, 0.75]]
    """

    spec_type: ClassVar[type[CalibratorSpec]]  # of the calibrator, set by `make_estimator_class`

    # Routing takes every other argument of fit for metadata; these two are the data.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"y_prob": UNUSED, "y_true": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, str]] = {"y_prob": UNUSED}
    __metadata_request__predict_proba: ClassVar[dict[str, str]] = {"y_prob": UNUSED}
    __metadata_request__transform: ClassVar[dict[str, str]] = {"y_prob": UNUSED}

    def __init__(self, *, classes: Sequence[Any] | None = None, logits: bool = False) -> None:
        self.classes = classes
        self.logits = logits

    @checks_arguments
    def fit(self, y_prob: ArrayLike, y_true: ArrayLike, sample_weight: ArrayLike | None = None) -> Calibrator:
        """Fit the calibrator to predicted probabilities and outcomes.

        Parameters
        ----------
        y_prob : array-like of shape (n, K) or (n,)
            Predicted probabilities; of shape (n,) those of the second of two classes.
        y_true : array-like of shape (n,) or (n, K)
            Labels, or votes per class.
        sample_weight : array-like of shape (n,), optional
            Weights. Whole numbers count rows, as in scikit-learn; others are importance weights.

        Returns
        -------
        Calibrator
            The fitted estimator.

        Raises
        ------
        InputError
            TO101 to TO116 for the data, TO2xx for settings. It is a ValueError.
        """
        return self._fit_rows(self.make_spec(), y_prob, y_true, sample_weight, None)

    def _fit_rows(self, spec: CalibratorSpec, y_prob: Any, y_true: Any, sample_weight: Any, group: Any) -> Calibrator:
        """Fit the calibrator, with the group columns of the rows if it needs them."""
        p, y = as_array(y_prob, "y_prob"), as_array(y_true, "y_true")
        classes = (
            _classes_from_labels(y, 2 if p.ndim == 1 else p.shape[-1]) if self.classes is None else list(self.classes)
        )
        make_predictions = Predictions.from_logits if self.logits else Predictions
        try:  # with the columns of a data frame, whose names may show another order than that of the classes
            preds = make_predictions(y_true, y_prob, weight=sample_weight, group=group, classes=classes)
        except InputError as problem:
            order = "This fit takes (y_prob, y_true): swap the two arguments."
            restated = restate_own_arguments(problem, rounded_rows="each row divided by its sum")
            raise restate_called_order(restated, order) from None
        _check_feature_names(self, y_prob, reset=True)
        self.calibrator_: FittedCalibrator = fit(spec, preds, scale_weights=not are_counts(preds.w))
        self.classes_ = class_names_array(preds.classes)
        self.n_features_in_ = 1 if p.ndim == 1 else preds.k
        calibration_map = self.calibrator_.calibration_map
        if calibration_map.n_passes is not None:
            self.n_iter_, self.converged_ = calibration_map.n_passes, calibration_map.converged
        if self.calibrator_.report is not None:
            self.report_ = self.calibrator_.report
        return self

    def make_spec(self) -> CalibratorSpec:
        """Make the settings object of this estimator.

        Returns
        -------
        CalibratorSpec
            The calibrator with the parameters of this estimator.

        Raises
        ------
        InputError
            TO203 for an invalid parameter.
        """
        return self.spec_type(**{field.name: getattr(self, field.name) for field in dataclasses.fields(self.spec_type)})

    def predict_proba(self, y_prob: ArrayLike) -> Array:
        """Recalibrate predicted probabilities.

        Parameters
        ----------
        y_prob : array-like of shape (n, K) or (n,)
            Predicted probabilities, or logits with `logits=True`.

        Returns
        -------
        ndarray of shape (n, K)
            Recalibrated probabilities, float64, columns in the order of `classes_`.
        """
        check_is_fitted(self)
        _check_feature_names(self, y_prob, reset=False)
        return self.calibrator_.predict_proba(y_prob, logits=self.logits)

    def transform(self, y_prob: ArrayLike) -> Array:
        """Recalibrate predicted probabilities, as `predict_proba` does, so that another step may follow.

        Parameters
        ----------
        y_prob : array-like of shape (n, K) or (n,)
            Predicted probabilities, or logits with `logits=True`.

        Returns
        -------
        ndarray of shape (n, K)
            Recalibrated probabilities.
        """
        return self.predict_proba(y_prob)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that `transform` gives; `set_output` needs them.

        Parameters
        ----------
        input_features : object, optional
            Ignored.

        Returns
        -------
        ndarray of shape (K,)
            `p_` and the name of each class.
        """
        check_is_fitted(self)
        return np.array([f"p_{name}" for name in self.classes_], dtype=object)

    def predict(self, y_prob: ArrayLike) -> Array:
        """Predict the most probable class of each row after recalibration.

        Parameters
        ----------
        y_prob : array-like of shape (n, K) or (n,)
            Predicted probabilities, or logits with `logits=True`.

        Returns
        -------
        ndarray of shape (n,)
            Names of the classes; the first one where several are equally probable.
        """
        q = self.predict_proba(y_prob)
        return self.classes_[q.argmax(axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibrator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self.logits
        tags.target_tags.required = True
        return tags


class GroupCalibrator(Calibrator):
    """A calibrator of groups as a scikit-learn estimator, whose methods take the group columns of the rows too.

    Parameters
    ----------
    classes, logits : as in `Calibrator`

    Examples
    --------
    >>> from trueodds.calibrators import GroupShift
    >>> site = ["a", "b"] * 500
    >>> calibrator = GroupShift().fit([0.5] * 1000, [1, 0, 1, 0, 1, 0, 0, 1] * 125, group={"site": site})
    >>> calibrator.predict_proba([0.5, 0.5], group={"site": ["a", "b"]}).round(2).tolist()
    [[0.25, 0.75], [0.75, 0.25]]
    """

    @checks_arguments
    def fit(
        self,
        y_prob: ArrayLike,
        y_true: ArrayLike,
        sample_weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        features: Any = None,
    ) -> Calibrator:
        """Fit the calibrator to predicted probabilities, outcomes and groups.

        Parameters
        ----------
        y_prob, y_true, sample_weight
            As for `Calibrator.fit`.
        group : array-like of shape (n,) or mapping of name to array-like, optional
            Group columns of the rows, in one column or several named ones.
        features : data frame or mapping of name to array-like, optional
            Features of the rows, of `Multicalibrated`. They replace the parameter `features`.

        Returns
        -------
        GroupCalibrator
            The fitted estimator.
        """
        spec = self.make_spec()
        if features is not None:
            spec = replace(spec, features=features)  # type: ignore[call-arg] # which raises an error if it has none
        return self._fit_rows(spec, y_prob, y_true, sample_weight, group)

    def predict_proba(self, y_prob: ArrayLike, group: ArrayLike | Groups | None = None, features: Any = None) -> Array:
        """Recalibrate predicted probabilities.

        Parameters
        ----------
        y_prob : array-like of shape (n, K) or (n,)
            Predicted probabilities, or logits with `logits=True`.
        group : array-like of shape (n,) or mapping of name to array-like, optional
            Group columns of the rows, with the names of the fit.
        features : data frame or mapping of name to array-like, optional
            Features of the rows, with the names of the fit.

        Returns
        -------
        ndarray of shape (n, K)
            Recalibrated probabilities, float64, columns in the order of `classes_`.
        """
        check_is_fitted(self)
        _check_feature_names(self, y_prob, reset=False)
        return self.calibrator_.predict_proba(y_prob, logits=self.logits, group=group, features=features)

    def transform(self, y_prob: ArrayLike, group: ArrayLike | Groups | None = None, features: Any = None) -> Array:
        """Recalibrate predicted probabilities, as `predict_proba` does, so that another step may follow.

        Parameters
        ----------
        y_prob, group, features
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n, K)
            Recalibrated probabilities.
        """
        return self.predict_proba(y_prob, group, features)

    def predict(self, y_prob: ArrayLike, group: ArrayLike | Groups | None = None, features: Any = None) -> Array:
        """Predict the most probable class of each row after recalibration.

        Parameters
        ----------
        y_prob, group, features
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n,)
            Names of the classes; the first one where several are equally probable.
        """
        q = self.predict_proba(y_prob, group, features)
        return self.classes_[q.argmax(axis=1)]


def _classes_from_labels(y: Array, k: int) -> list[Any] | None:
    """Class names for labels y (n,) and K columns: the sorted labels if there is one per column.

    Otherwise None: `Predictions` then decides, for instance that integer labels are 0 to K − 1.
    """
    if y.ndim != 1 or (y.dtype.kind == "f" and not np.isfinite(y).all()):
        return None
    labels = np.unique(y).tolist()
    return labels if len(labels) == k else None


def make_estimator_class(spec_type: type[CalibratorSpec]) -> type[Calibrator]:
    """Make the scikit-learn class of a calibrator, whose settings become constructor arguments.

    scikit-learn reads the parameters of an estimator from the signature of `__init__`, so that it is made from the
    settings, with `classes` and `logits` of every estimator at the end.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(spec_type)}
    defaults["classes"] = None
    defaults.setdefault("logits", False)
    signature = inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name]) for name in defaults),
        ]
    )
    estimator_name = class_name(spec_type.name)

    def __init__(self: Calibrator, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - becomes the class's
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as problem:
            raise argument_error(estimator_name, signature, (self, *args), kwargs, str(problem)) from None
        bound.apply_defaults()
        for name in list(bound.arguments)[1:]:
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{estimator_name}.__init__"
    attributes = {
        "__init__": __init__,
        "__module__": __name__,
        "__doc__": _merge_docstrings(spec_type),
        "spec_type": spec_type,
    }
    base = GroupCalibrator if spec_type.example_columns else Calibrator
    return type(estimator_name, (base,), attributes)


_EXAMPLE = """\
>>> from trueodds.calibrators import {name}
>>> P, y = [[0.1, 0.9], [0.9, 0.1]] * 20, [1, 0, 1, 0, 0, 0, 1, 1] * 5
>>> calibrator = {name}({settings}).fit(P, y{columns})
>>> calibrator.predict_proba([[0.2, 0.8]]{columns_of_one_row}).shape
(1, 2)"""


def _merge_docstrings(spec_type: type[CalibratorSpec]) -> str:
    """The docstring of a calibrator's scikit-learn class.

    It has the sections of the calibrator's settings, the parameters and attributes that every estimator has, and an
    example of its own.
    """
    sections, shared_sections = docstring_sections(spec_type.__doc__), docstring_sections(Calibrator.__doc__)
    shared_entries = re.split(r"\n(?=\S)", shared_sections["Parameters"])
    names = {field.name for field in dataclasses.fields(spec_type)}
    parameter_entries = [sections["Parameters"]] if "Parameters" in sections else []
    parameter_entries += [entry for entry in shared_entries if entry.split(" :")[0] not in names]
    columns = f', group={{"{spec_type.example_columns}": ' if spec_type.example_columns else ""
    example = _EXAMPLE.format(
        name=class_name(spec_type.name),
        settings=spec_type.example_settings,
        columns=columns and f'{columns}["a", "b"] * 20}}',
        columns_of_one_row=columns and f'{columns}["a"]}}',
    )
    merged = {
        **sections,
        "Parameters": "\n".join(parameter_entries),
        "Attributes": shared_sections["Attributes"],
        "Examples": example,
    }
    order = ("Parameters", "Attributes", "See Also", "Notes", "References", "Examples")
    section_texts = [f"{title}\n{'-' * len(title)}\n{merged[title]}" for title in order if title in merged]
    return "\n\n".join([sections[""], *section_texts]) + "\n"


def __getattr__(name: str) -> Any:
    # Pickle finds a class by its module and name, so each is kept here once it is made.
    for method in CALIBRATORS.names():
        if class_name(method) == name:
            return globals().setdefault(name, make_estimator_class(CALIBRATORS.load(method)))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
