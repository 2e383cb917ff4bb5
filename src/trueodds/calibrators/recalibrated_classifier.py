"""RecalibratedClassifier: a scikit-learn classifier followed by a calibrator fitted on out-of-sample predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, has_fit_parameter

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.base import CalibratorSpec
from trueodds.calibrators.calibrator_predictions import logit_columns
from trueodds.calibrators.cross_validation import count_units, stratified_folds, stratified_holdout
from trueodds.calibrators.fitted_calibrator import FittedCalibrator
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.sklearn import Calibrator
from trueodds.core.errors import InputError, describe
from trueodds.core.settings import Folds, OneOf, Probability, check
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.data.weights import are_counts, check_clusters

_MODES = ("cross-fit", "split", "frozen")


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A classifier followed by a calibrator that was fitted on out-of-sample predictions.

    Parameters
    ----------
    estimator : classifier
        A scikit-learn classifier with `predict_proba`, or else `decision_function`, which is read as logits of any size
        and unit: a map that is fitted to them, such as `"platt"` or `"isotonic"`, does not depend on their unit.
        `"histogram"` then has bins of equal mass.
    calibrator : str, CalibratorSpec or Calibrator, default="auto"
        A name, or an instance such as `Temperature()`. `"auto"` changes nothing unless held-out rows confirm a gain.
    cv : int, splitter or iterable, default=5
        Folds of `mode="cross-fit"`. A number means stratified folds that keep `groups` whole.
    mode : {"cross-fit", "split", "frozen"}, default="cross-fit"
        With `"cross-fit"` the calibrator is fitted on out-of-fold predictions of clones, then the classifier on all
        rows. With `"split"` the classifier is fitted on all but `test_size` of the rows, the calibrator on the rest.
        With `"frozen"` the classifier is already fitted and stays so; all rows calibrate. A `FrozenEstimator` is always
        frozen.
    test_size : float, default=0.25
        Share of the rows that calibrate, for `mode="split"`.
    random_state : int, RandomState or None, default=None
        Seed of the split or the folds. None is a fixed seed, so that the same call gives the same model.
    method : str, CalibratorSpec or Calibrator, optional
        Another name of `calibrator`, which `CalibratedClassifierCV` of scikit-learn and `fit` have.

    Attributes
    ----------
    estimator_ : classifier
        The classifier that predicts.
    calibrator_ : FittedCalibrator
        The fitted map with its notes. `calibrator_.save("cal.json")` saves it without pickle.
    classes_ : ndarray of shape (K,)
        Names of the classes.
    report_ : Recalibration
        Candidates, choice and confirmation, of `calibrator="auto"`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(600, n_redundant=10, random_state=0)
    >>> model = RecalibratedClassifier(GaussianNB(), "temperature").fit(X, y)
    >>> print(model.calibrator_.calibration_map.describe())
    T = 2.86
    """

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = "auto",
        *,
        cv: Any = 5,
        mode: str = "cross-fit",
        test_size: float = 0.25,
        random_state: Any = None,
        method: Any = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.mode = mode
        self.test_size = test_size
        self.random_state = random_state
        self.method = method

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> RecalibratedClassifier:
        """Fit the classifier and the calibrator.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features, as the classifier takes them.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights, passed to the calibrator, and to the classifier if its `fit` takes them.
        groups : array-like of shape (n,), optional
            Clusters: rows with the same entry stay together in every split.

        Returns
        -------
        RecalibratedClassifier
            The fitted estimator.

        Raises
        ------
        InputError
            TO203 for settings, TO205 for both `calibrator` and `method`, TO507 for a single row or group, TO508 for an
            estimator that cannot be calibrated, TO1xx for its output.
        """
        if isinstance(self.cv, str):
            fix = "A classifier that is already fitted is calibrated with ⟨mode='frozen'⟩."
            if self.mode == "frozen":
                fix = "Omit cv, which ⟨mode='frozen'⟩ does not use."
            raise InputError("TO203", "cv must be a number of folds, a splitter or an iterable.", repr(self.cv), fix)
        check("test_size", self.test_size, Probability, 0.25)
        check("mode", self.mode, Annotated[str, OneOf(_MODES)], _MODES[0])
        spec = self._make_spec()
        check_classification_targets(y)
        y_true: Array = column_or_1d(y, warn=True)
        X, y_true = indexable(X, y_true)
        w = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        cluster = check_clusters(groups, len(y_true))
        n_units = count_units(len(y_true), cluster)
        is_frozen = self.mode == "frozen" or isinstance(self.estimator, FrozenEstimator)
        if is_frozen:
            check_is_fitted(self.estimator)
            self.estimator_, rows = self.estimator, np.arange(len(y_true))
            P = self._predict_scores(self.estimator_, X)
        elif n_units < 2:
            raise InputError(
                "TO507",
                "Training and calibration need different rows: at least two rows (or groups).",
                f"{n_units} sample" if groups is None else f"{n_units} group",
                "Get more rows, or calibrate a fitted classifier with ⟨mode='frozen'⟩.",
            )
        elif self.mode == "split":
            rows, P = self._predict_held_out_rows(X, y_true, w, cluster)
        else:
            rows, P = self._predict_out_of_fold(X, y_true, w, cluster)
        self.classes_ = _class_names(self.estimator_)
        cluster = None if cluster is None else cluster[rows]
        weight = None if w is None else w[rows]
        make_predictions = Predictions.from_logits if self._uses_logits() else Predictions
        preds = make_predictions(y_true[rows], P, weight=weight, cluster=cluster, classes=list(self.classes_))
        if not hasattr(self.estimator_, "predict_proba"):
            spec = spec.unit_free()
        self.calibrator_: FittedCalibrator = fit(
            spec, preds, scale_weights=not are_counts(preds.w), trained_on_rows=None if is_frozen else False
        )
        if self.calibrator_.report is not None:
            self.report_ = self.calibrator_.report
        elif hasattr(self, "report_"):
            del self.report_  # left from an earlier fit by another method
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _predict_held_out_rows(self, X: Any, y: Array, w: Array | None, groups: Array | None) -> tuple[Array, Array]:
        """Fit the classifier to all rows but a holdout; return the indices of the held-out rows and their scores."""
        held_out = stratified_holdout(_one_hot_labels(y), self.test_size, groups, self._make_rng())
        self.estimator_ = _fit_clone(self.estimator, X, y, w, np.flatnonzero(~held_out))
        rows = np.flatnonzero(held_out)
        return rows, self._predict_scores(self.estimator_, _safe_indexing(X, rows))

    def _predict_out_of_fold(self, X: Any, y: Array, w: Array | None, groups: Array | None) -> tuple[Array, Array]:
        """Fit the classifier to all rows; return the indices of the rows in test folds and their out-of-fold scores."""
        all_rows = np.arange(len(y))
        self.estimator_ = _fit_clone(self.estimator, X, y, w, all_rows)
        classes = _class_names(self.estimator_)
        P = np.full((len(y), len(classes)), -np.inf if self._uses_logits() else 0.0)
        is_predicted = np.zeros(len(y), dtype=bool)
        for train, test in self._iterate_folds(X, y, groups):
            if is_predicted[test].any():
                raise InputError(
                    "TO203",
                    "Each row must be in one test fold only.",
                    type(self.cv).__name__,
                    "Use a splitter without repeats.",
                )
            model = _fit_clone(self.estimator, X, y, w, train)
            # A class that is missing in the training fold has no column; its probability is 0.
            P[np.ix_(test, np.searchsorted(classes, model.classes_))] = self._predict_scores(
                model, _safe_indexing(X, test)
            )
            is_predicted[test] = True
        return all_rows[is_predicted], P[is_predicted]

    def _iterate_folds(self, X: Any, y: Array, groups: Array | None) -> Iterator[tuple[Array, Array]]:
        """Iterate over pairs of row indices: those of the training folds and those of the test fold."""
        if not isinstance(self.cv, (int, np.integer)) or isinstance(self.cv, bool):
            yield from check_cv(self.cv, y, classifier=True).split(X, y, groups)
            return
        n_folds = min(check("cv", self.cv, Folds, 5), count_units(len(y), groups))
        fold = stratified_folds(_one_hot_labels(y), n_folds, groups, self._make_rng())
        for f in range(n_folds):
            yield np.flatnonzero(fold != f), np.flatnonzero(fold == f)

    def _uses_logits(self) -> bool:
        """Whether the scores are logits: if the calibrator takes them, or if the classifier has no probabilities."""
        return bool(
            getattr(self.calibrator if self.method is None else self.method, "logits", False)
            or self._make_spec().logits
            or not hasattr(self.estimator_, "predict_proba")
        )

    def _make_spec(self) -> CalibratorSpec:
        calibrator = self.calibrator if self.method is None else self.method
        if self.method is not None and self.calibrator != "auto":
            got = f"calibrator={describe(self.calibrator)} and method={describe(self.method)}"
            raise InputError("TO205", "calibrator and method are two names of one setting.", got, "Omit one of them.")
        if isinstance(calibrator, Calibrator):
            return calibrator.make_spec()
        spec: CalibratorSpec = (
            calibrator if isinstance(calibrator, CalibratorSpec) else CALIBRATORS.make(calibrator, {})
        )
        return spec

    def _predict_scores(self, model: Any, X: Any) -> Array:
        """Predict the scores (n, K) that the calibrator takes: logits or probabilities of a fitted classifier."""
        return _predict_logits(model, X) if self._uses_logits() else np.asarray(model.predict_proba(X))

    def _make_rng(self) -> np.random.Generator:
        """A generator seeded by `random_state`; None is a fixed seed."""
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31))
        return np.random.default_rng(seed)

    def predict_proba(self, X: Any) -> Array:
        """Predict recalibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n, K)
            Recalibrated probabilities, float64, columns in the order of `classes_`.
        """
        check_is_fitted(self)
        return self.calibrator_.predict_proba(self._predict_scores(self.estimator_, X), logits=self._uses_logits())

    def predict(self, X: Any) -> Array:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n,)
            Names of the classes; the first one where several are equally probable.
        """
        q = self.predict_proba(X)
        return self.classes_[q.argmax(axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibrator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _one_hot_labels(y: Array) -> Array:
    """The labels as shares, (n, K) with one column per sorted label."""
    labels, class_index = np.unique(y, return_inverse=True)
    return np.eye(len(labels))[class_index.reshape(-1)]


def _fit_clone(estimator: Any, X: Any, y: Array, w: Array | None, rows: Array) -> Any:
    """Fit a clone of the classifier to these rows, with weights if it takes them."""
    takes_weights = w is not None and has_fit_parameter(estimator, "sample_weight")
    fit_params = {"sample_weight": w[rows]} if takes_weights and w is not None else {}
    return clone(estimator).fit(_safe_indexing(X, rows), y[rows], **fit_params)


def _class_names(model: Any) -> Array:
    """Names of the classes of a fitted classifier; raises TO508 if it has none."""
    if not hasattr(model, "classes_"):
        raise InputError(
            "TO508",
            "estimator must be a classifier with classes_.",
            type(model).__name__,
            "Choose a classifier.",
        )
    return np.asarray(model.classes_)


def _predict_logits(model: Any, X: Any) -> Array:
    """Decision function of a fitted classifier as logits (n, K); raises TO508 if there is none for each class."""
    if not hasattr(model, "decision_function"):
        required = "decision_function" if hasattr(model, "predict_proba") else "predict_proba or decision_function"
        raise InputError(
            "TO508",
            f"estimator must be a classifier with {required}.",
            type(model).__name__,
            "Choose a classifier that has it, or a calibrator without ⟨logits=True⟩.",
        )
    z = np.asarray(model.decision_function(X), dtype=np.float64)
    if z.ndim == 2 and z.shape[1] != len(_class_names(model)):
        raise InputError(
            "TO508",
            "The decision_function of the estimator must return one score per class.",
            f"{z.shape[1]} scores for {len(model.classes_)} classes",
            "For SVC set decision_function_shape='ovr'.",
        )
    return logit_columns(z)
