"""Do the calibrators keep scikit-learn's contract, behind features of any kind and, where possible, without them?"""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

import trueodds.calibrators
from tests.calibrators.rows import GROUP_SETTINGS
from trueodds.calibrators import CALIBRATORS, PriorShift, RecalibratedClassifier

# What the checks feed to a bare calibrator is made for models of any features.
NO_PROBABILITIES = "it feeds features that are no probabilities, which are refused with a code"
BARE = dict.fromkeys(
    [
        "check_fit_score_takes_y",
        "check_estimators_overwrite_params",
        "check_dont_overwrite_parameters",
        "check_estimators_fit_returns_self",
        "check_readonly_memmap_input",
        "check_n_features_in_after_fitting",
        "check_estimators_dtypes",
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_list",
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
        "check_dtype_object",
        "check_pipeline_consistency",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_classifier_data_not_an_array",
        "check_classifiers_classes",
        "check_classifiers_train",
        "check_supervised_y_2d",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
        "check_transformer_preserve_dtypes",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_dict_unchanged",
        "check_fit_idempotent",
        "check_fit_check_is_fitted",
        "check_n_features_in",
        "check_fit2d_predict1d",
    ],
    NO_PROBABILITIES,
) | {
    "check_positive_only_tag_during_fit": (
        "the error says that probabilities lie in [0, 1], not that values are negative"
    ),
    "check_all_zero_sample_weights_error": "the features are refused before the weights are looked at",
    "check_sample_weight_equivalence_on_dense_data": (
        "it calls fit(X, y=y), and here the labels are y_true, after the probabilities"
    ),
    "check_complex_data": "the error says which numbers are accepted, in other words than scikit-learn's",
    "check_estimators_empty_data_messages": "the error says that there are no rows, in other words than scikit-learn's",
    "check_estimators_nan_inf": "the features are refused for another reason first",
    "check_estimator_sparse_tag": "sparse matrices are refused as what they are not: arrays",
    "check_estimator_sparse_array": "the error says what is accepted, in other words than scikit-learn's",
    "check_estimator_sparse_matrix": "the error says what is accepted, in other words than scikit-learn's",
    "check_classifiers_one_label": (
        "one class is enough to fit a map of probabilities; the features are no probabilities"
    ),
    "check_classifiers_one_label_sample_weights": "one class is enough to fit a map of probabilities",
    "check_classifiers_regression_target": "labels that are no classes are refused in other words than scikit-learn's",
    "check_fit2d_1sample": "one row is enough to fit a map; the features are no probabilities",
    "check_fit2d_1feature": "one column of two classes is no row of probabilities",
    "check_requires_y_none": "a missing y is refused with a code, in other words than scikit-learn's",
}


# Checks that a member fails behind features: rows that are repeated are evidence to `auto`, and weights are none.
EXEMPT = {"auto": {"check_sample_weight_equivalence_on_dense_data"}}


def made(name):
    """The estimator of a member, with the settings that it cannot do without."""
    of = getattr(trueodds.calibrators, trueodds.calibrators.class_name(name))
    if name == "prior_shift":
        return of(target=np.array([0.3, 0.6, 0.8]))
    if name in GROUP_SETTINGS:
        return of(**GROUP_SETTINGS[name])
    return of(posterior=0.5) if name == "boldness" else of()  # a handful of rows makes nothing more probable


class OnAnyFeatures(TransformerMixin, ClassifierMixin, BaseEstimator):
    """Makes probabilities of the first feature, so that checks written for any features reach the calibrator."""

    def __init__(self, calibrator=None):
        self.calibrator = calibrator

    def fit(self, X, y, sample_weight=None):
        X = validate_data(self, X)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        calibrator = clone(made("temperature") if self.calibrator is None else self.calibrator)
        if calibrator.spec_type.two_classes and len(self.classes_) > 2:
            raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
        if isinstance(calibrator, PriorShift):  # any shares do, but there must be one for each class
            calibrator.set_params(target=None, priors=tuple(np.full(len(self.classes_), 1 / len(self.classes_))))
        calibrator.set_params(classes=self.classes_.tolist())
        self.calibrator_ = calibrator.fit(self._made(X), y, sample_weight)
        if hasattr(self.calibrator_, "n_iter_"):
            self.n_iter_ = max(1, self.calibrator_.n_iter_)
        return self

    def _made(self, X):
        e = np.exp(np.tanh(X[:, :1]) * np.arange(len(self.classes_)))
        return e / e.sum(axis=1, keepdims=True)

    def predict_proba(self, X):
        check_is_fitted(self)
        return self.calibrator_.predict_proba(self._made(validate_data(self, X, reset=False)))

    transform = predict_proba

    def predict(self, X):
        check_is_fitted(self)
        return self.calibrator_.predict(self._made(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # one feature cannot tell the classes apart
        tags.classifier_tags.multi_class = self.calibrator is None or not self.calibrator.spec_type.two_classes
        return tags


def failures(estimator):
    """The names of scikit-learn's own checks that fail, with what they say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks themselves provoke warnings
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 40
    return {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}


def with_reduced_candidates(name):
    """The estimator of a member; `auto` chooses between two, since all of its candidates are checked by themselves."""
    return trueodds.calibrators.Auto(candidates=["temperature", "isotonic"]) if name == "auto" else made(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALIBRATORS.names())
def test_behind_features_of_any_kind_the_contract_is_kept(name):
    failed_checks = failures(OnAnyFeatures(with_reduced_candidates(name)))
    assert {check: why for check, why in failed_checks.items() if check not in EXEMPT.get(name, ())} == {}


@pytest.mark.parametrize("name", CALIBRATORS.names())
def test_a_bare_calibrator_fails_where_it_is_fed_what_is_no_probability(name):
    assert set(failures(made(name))) - set(BARE) == set()


def test_every_failure_that_is_expected_is_one():
    assert set(failures(made("temperature"))) == set(BARE)


@pytest.mark.slow
@pytest.mark.parametrize("calibrator", ["isotonic", "auto"])
def test_recalibrated_classifiers_keep_the_estimator_contract(calibrator):
    # No linear model inside: the threads of its linear algebra spin for minutes where cores are shared.
    assert failures(RecalibratedClassifier(GaussianNB(), with_reduced_candidates(calibrator))) == {}
