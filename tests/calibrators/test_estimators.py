"""The scikit-learn side: estimators over probabilities, and classifiers with a calibrator of their own."""

import doctest
import inspect
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import trueodds as to
from tests.calibrators.rows import both, draw_predictions, one_hot
from trueodds.calibrators import (
    CALIBRATORS,
    Auto,
    Calibrator,
    Histogram,
    Identity,
    Isotonic,
    RecalibratedClassifier,
    Temperature,
    class_name,
    load,
)
from trueodds.calibrators.isotonic import IsotonicSpec
from trueodds.calibrators.temperature import TemperatureSpec
from trueodds.core.errors import InputError

ALL = [Identity, Temperature, Isotonic, Histogram, Auto]


@pytest.mark.parametrize("made", ALL)
def test_the_estimator_says_what_the_map_says(made):
    P, y = draw_predictions(200, 3, 2.0, 0)
    calibrator = made().fit(P, y)
    assert calibrator.classes_.tolist() == [0, 1, 2]
    assert calibrator.n_features_in_ == 3
    Q = calibrator.predict_proba(P)
    assert (calibrator.calibrator_.predict_proba(P) == Q).all()
    assert (calibrator.transform(P) == Q).all()
    assert (made().fit_transform(P, y) == Q).all()
    assert (calibrator.predict(P) == Q.argmax(axis=1)).all()
    assert calibrator.score(P, y) == pytest.approx((Q.argmax(axis=1) == y).mean())


@pytest.mark.parametrize("made", ALL)
def test_pickle_and_clone_keep_everything(made):
    P, y = draw_predictions(100, 2, 2.0, 0)
    calibrator = made(classes=["no", "yes"]).fit(P, np.array(["no", "yes"])[y])
    restored = pickle.loads(pickle.dumps(calibrator))
    assert (restored.predict_proba(P) == calibrator.predict_proba(P)).all()
    assert restored.predict(P).tolist() == calibrator.predict(P).tolist()
    assert not hasattr(clone(calibrator), "fitted_")
    assert repr(made()) == f"{made.__name__}()"
    assert made.__module__ == "trueodds.calibrators.sklearn"


def test_the_signature_is_that_of_the_settings():
    assert str(inspect.signature(Histogram)) == "(*, bins=15, partition='uniform', classes=None, logits=False)"
    assert issubclass(Histogram, Calibrator)
    with pytest.raises(InputError, match=r"Histogram has no argument 'bin'\. Did you mean bins\?"):
        Histogram(bin=3)
    assert "Parameters" in Histogram.__doc__
    assert "event rate" in Histogram.__doc__


def test_settings_are_checked_when_fitting_not_before():
    odd = Histogram().set_params(bins=0)
    with pytest.raises(InputError, match="TO203"):
        odd.fit(both([0.2, 0.8]), [0, 1])


def test_an_iterative_fit_tells_its_passes():
    P, y = draw_predictions(200, 3, 2.0, 0)
    calibrator = Temperature().fit(P, y)
    assert 1 < calibrator.n_iter_ < 15
    assert calibrator.converged_
    assert not Temperature().fit(both([0.2, 0.8]), [0, 1]).converged_
    assert not hasattr(Isotonic().fit(P, y), "n_iter_")


def test_auto_tells_its_report():
    P, y = draw_predictions(500, 3, 2.0, 0)
    assert Auto(folds=3).fit(P, y).report_.to_dict()["confirmed"] is True


def test_one_probability_is_that_of_the_second_class():
    P, y = draw_predictions(200, 2, 2.0, 1)
    one, two = Temperature().fit(P[:, 1], y), Temperature().fit(P, y)
    assert one.n_features_in_ == 1
    assert one.predict_proba(P[:, 1]) == pytest.approx(two.predict_proba(P), abs=1e-9)


def test_classes_are_the_sorted_labels_or_the_given_ones():
    P = both([0.2, 0.7, 0.9])
    assert Isotonic().fit(P, ["no", "yes", "yes"]).classes_.tolist() == ["no", "yes"]
    assert Isotonic(classes=["yes", "no"]).fit(P, ["yes", "no", "no"]).classes_.tolist() == ["yes", "no"]
    assert Isotonic().fit(P, [-1, 1, 1]).predict([0.9]).tolist() == [1]


def test_a_class_without_rows_keeps_its_column():
    P, y = draw_predictions(50, 4, 1.0, 0)
    calibrator = Temperature().fit(P, np.minimum(y, 2))
    assert calibrator.classes_.tolist() == [0, 1, 2, 3]
    assert calibrator.predict_proba(P).shape == (50, 4)
    with pytest.raises(InputError, match="TO106"):
        Temperature().fit(P, np.array(["a", "b", "c"])[np.minimum(y, 2)])


def test_votes_are_outcomes_too():
    P, y = draw_predictions(100, 3, 2.0, 0)
    hard, votes = Temperature().fit(P, y), Temperature().fit(P, 5 * one_hot(y, 3))
    assert votes.predict_proba(P) == pytest.approx(hard.predict_proba(P), abs=1e-9)


def test_a_weight_of_two_is_two_rows():
    P, y = draw_predictions(100, 3, 2.0, 0)
    w = np.arange(100) % 3
    many = np.repeat(np.arange(100), w)
    one, other = Isotonic().fit(P, y, sample_weight=w), Isotonic().fit(P[many], y[many])
    assert one.predict_proba(P) == pytest.approx(other.predict_proba(P), abs=1e-12)


def test_errors_are_value_errors_with_a_code():
    with pytest.raises(ValueError, match="TO104"):
        Temperature().fit([[0.5, 0.6]], [0])
    with pytest.raises(NotFittedError):
        Temperature().predict([0.3])


def test_column_names_are_remembered():
    P, y = draw_predictions(30, 2, 1.0, 0)
    table = pd.DataFrame(P, columns=["p_a", "p_b"])
    calibrator = Temperature().fit(table, y)
    assert calibrator.feature_names_in_.tolist() == ["p_a", "p_b"]
    with pytest.raises(ValueError, match="feature names"):
        calibrator.predict_proba(table[["p_b", "p_a"]])


def test_output_can_be_a_frame_with_names():
    P, y = draw_predictions(30, 2, 1.0, 0)
    names = np.array(["no", "yes"])
    calibrator = Temperature().set_output(transform="pandas").fit(P, names[y])
    frame = calibrator.transform(P)
    assert frame.columns.tolist() == ["p_no", "p_yes"]
    assert (frame.to_numpy() == calibrator.predict_proba(P)).all()


def test_a_grid_search_chooses_settings_by_a_proper_score():
    # One rate for all rows loses to five bins, for the predictions say something.
    P, y = draw_predictions(600, 2, 1.0, 0)
    search = GridSearchCV(Histogram(), {"bins": [1, 5]}, scoring="neg_brier_score", cv=3).fit(P, y)
    assert search.best_params_ == {"bins": 5}
    assert search.predict_proba(P).shape == (600, 2)


def test_a_calibrator_ends_a_pipeline_and_stays_frozen():
    P, y = draw_predictions(200, 3, 2.0, 0)
    piped = make_pipeline(Temperature(), Isotonic()).fit(P, y)
    first = Temperature().fit(P, y)
    Q = first.predict_proba(P)
    assert (piped.predict_proba(P) == Isotonic().fit(Q, y).predict_proba(Q)).all()
    frozen = FrozenEstimator(first).fit(P[:5], y[:5])
    assert (frozen.predict_proba(P) == first.predict_proba(P)).all()


def test_weights_are_routed_and_the_data_are_no_metadata():
    P, y = draw_predictions(60, 3, 2.0, 0)
    w = np.random.default_rng(0).integers(1, 4, 60)
    with sklearn.config_context(enable_metadata_routing=True):
        first = Identity().set_fit_request(sample_weight=False)
        piped = make_pipeline(first, Temperature().set_fit_request(sample_weight=True))
        piped.fit(P, y, sample_weight=w)
        assert (piped.predict_proba(P) == Temperature().fit(P, y, sample_weight=w).predict_proba(P)).all()
        calibrator = Temperature().set_fit_request(sample_weight=True)
        assert calibrator.get_metadata_routing().fit.requests == {"sample_weight": True}
        assert not calibrator.get_metadata_routing().predict_proba.requests


def data(n=600, k=3, **more):
    return make_classification(
        n, n_features=12, n_informative=4, n_redundant=6, n_classes=k, random_state=0, **{"flip_y": 0.1, **more}
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["cross-fit", "split", "frozen"])
def test_an_oversure_classifier_gets_better(mode):
    X, y = data(3000)
    (X, X_new), (y, y_new) = np.split(X, [2000]), np.split(y, [2000])
    plain = GaussianNB().fit(X[:1000], y[:1000])
    rows = (X[1000:], y[1000:]) if mode == "frozen" else (X, y)
    model = RecalibratedClassifier(plain, mode=mode).fit(*rows)
    assert model.report_.confirmed
    assert log_loss(y_new, model.predict_proba(X_new)) < log_loss(y_new, plain.predict_proba(X_new)) - 0.05


def test_out_of_fold_predictions_calibrate_and_all_rows_train():
    X, y = data()
    model = RecalibratedClassifier(GaussianNB(), "temperature").fit(X, y)
    classifier = GaussianNB().fit(X, y)
    assert (model.estimator_.predict_proba(X) == classifier.predict_proba(X)).all()
    assert model.calibrator_.n == len(y)
    assert model.n_features_in_ == 12


def test_a_frozen_classifier_is_never_fitted_again():
    X, y = data()
    classifier = GaussianNB().fit(X[:300], y[:300])
    want = TemperatureSpec().fit(classifier.predict_proba(X[300:]), one_hot(y[300:], 3), np.ones(300))
    for model in (RecalibratedClassifier(classifier, "temperature", mode="frozen"),):
        assert model.fit(X[300:], y[300:]).calibrator_.calibration_map.beta == pytest.approx(want.beta, rel=1e-12)
        assert model.estimator_ is classifier
    wrapped = RecalibratedClassifier(FrozenEstimator(classifier), "temperature").fit(X[300:], y[300:])
    assert wrapped.calibrator_.calibration_map.beta == pytest.approx(want.beta, rel=1e-12)
    with pytest.raises(NotFittedError):
        RecalibratedClassifier(GaussianNB(), mode="frozen").fit(X, y)


def test_the_split_calibrates_on_its_share():
    X, y = data()
    model = RecalibratedClassifier(GaussianNB(), "isotonic", mode="split", test_size=0.3).fit(X, y)
    assert model.calibrator_.n == 180


def test_weights_reach_the_calibrator_and_the_classifier_that_takes_them():
    X, y = data(200)
    w = np.random.default_rng(0).integers(1, 3, 200).astype(float)
    classifier = GaussianNB().fit(X, y, sample_weight=w)
    model = RecalibratedClassifier(GaussianNB(), "temperature").fit(X, y, sample_weight=w)
    assert (model.estimator_.predict_proba(X) == classifier.predict_proba(X)).all()
    plain = RecalibratedClassifier(GaussianNB(), "temperature").fit(X, y)
    assert plain.calibrator_.calibration_map.beta != model.calibrator_.calibration_map.beta
    piped = make_pipeline(GaussianNB())  # its fit takes no sample_weight
    assert RecalibratedClassifier(piped, "temperature").fit(X, y, sample_weight=w).predict(X).shape == (200,)


def test_rows_that_belong_together_stay_together():
    X, y = data(200)
    groups = np.arange(200) // 4
    for cv in (4, GroupKFold(4)):
        model = RecalibratedClassifier(GaussianNB(), "temperature", cv=cv).fit(X, y, groups=groups)
        assert model.calibrator_.n == 200


def test_a_class_that_some_folds_lack_keeps_its_column():
    X, y = data(60)
    y = np.where(np.arange(60) == 0, 3, y)  # one row of class 3
    model = RecalibratedClassifier(GaussianNB(), "identity").fit(X, y)
    assert model.predict_proba(X).shape == (60, 4)


def test_a_classifier_with_scores_only_is_read_as_logits():
    X, y = data(300)
    model = RecalibratedClassifier(LinearSVC(), "temperature").fit(X, y)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1)
    two = RecalibratedClassifier(LinearSVC(), "temperature").fit(X, y == 1)
    assert two.predict_proba(X).shape == (300, 2)
    with pytest.raises(InputError, match="TO508"):
        RecalibratedClassifier(NoScores(), "temperature").fit(X, y)


def test_a_regressor_is_no_classifier():
    with pytest.raises(InputError, match="TO508"):
        RecalibratedClassifier(LinearRegression(), "temperature").fit(np.eye(4), [0, 1, 0, 1])


class NoScores(ClassifierMixin, BaseEstimator):
    """A classifier that gives labels and nothing else."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_it_works_on_frames_with_names_and_inside_cross_validation():
    X, y = data(300)
    frame, names = pd.DataFrame(X, columns=[f"x{i}" for i in range(12)]), np.array(["a", "b", "c"])[y]
    model = RecalibratedClassifier(GaussianNB(), IsotonicSpec("step")).fit(frame, names)
    assert set(model.predict(frame)) <= {"a", "b", "c"}
    assert model.feature_names_in_[0] == "x0"
    assert (cross_val_score(RecalibratedClassifier(GaussianNB()), frame, names, cv=3) > 0.4).all()


def test_the_calibrator_can_be_saved_without_pickle(tmp_path):
    X, y = data(300)
    model = RecalibratedClassifier(GaussianNB(), "temperature").fit(X, y)
    model.calibrator_.save(tmp_path / "cal.json")
    P = GaussianNB().fit(X, y).predict_proba(X)
    assert (load(tmp_path / "cal.json").predict_proba(P) == model.predict_proba(X)).all()


def test_the_calibrator_is_a_name_a_rule_or_an_estimator():
    X, y = data(300)
    fits = [
        RecalibratedClassifier(GaussianNB(), calibrator).fit(X, y).predict_proba(X)
        for calibrator in ("isotonic", IsotonicSpec(), Isotonic(between="linear"))
    ]
    assert (fits[0] == fits[1]).all()
    assert (fits[0] == fits[2]).all()


@pytest.mark.slow
def test_a_report_of_an_earlier_fit_does_not_stay():
    X, y = data(200)
    model = RecalibratedClassifier(GaussianNB()).fit(X, y)
    assert hasattr(model, "report_")
    assert not hasattr(model.set_params(calibrator="identity").fit(X, y), "report_")


def test_the_seed_decides_the_folds():
    X, y = data(200)

    def beta(seed):
        return (
            RecalibratedClassifier(GaussianNB(), "temperature", random_state=seed)
            .fit(X, y)
            .calibrator_.calibration_map.beta
        )

    assert beta(1) == beta(1) != beta(2)
    assert beta(None) == beta(None)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"mode": "prefit"}, "TO203"),
        ({"cv": 1}, "TO203"),
        ({"test_size": 0}, "TO203"),
        ({"calibrator": "temprature"}, "TO201"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, code):
    X, y = data(60)
    with pytest.raises(InputError, match=code):
        RecalibratedClassifier(GaussianNB(), **settings).fit(X, y)


@pytest.mark.parametrize("mode", ["cross-fit", "split"])
def test_one_row_cannot_be_split(mode):
    with pytest.raises(InputError, match="TO507"):
        RecalibratedClassifier(GaussianNB(), mode=mode).fit([[1.0, 2.0]], [1])


@pytest.mark.parametrize("name", CALIBRATORS.names())
def test_the_class_is_documented_in_numpydoc_sections_with_an_example_that_runs(name):
    import trueodds.calibrators as calibrators

    made = getattr(calibrators, class_name(name))
    titles = re.findall(r"^(\w[\w ]*)\n-{3,}$", made.__doc__, flags=re.M)
    order = ["Parameters", "Attributes", "See Also", "Notes", "References", "Examples"]
    assert titles == [title for title in order if title != "See Also" or title in titles]
    for parameter in list(inspect.signature(made).parameters):
        assert len(re.findall(rf"^{parameter} :", made.__doc__, flags=re.M)) == 1
    example = doctest.DocTestParser().get_doctest(made.__doc__, {}, name, None, 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_calibrator_of_a_classifier_is_also_named_method():
    X, y = data(200)
    named = to.RecalibratedClassifier(GaussianNB(), method="platt").fit(X, y)
    plain = RecalibratedClassifier(GaussianNB(), "platt").fit(X, y)
    assert to.RecalibratedClassifier is RecalibratedClassifier
    assert (named.predict_proba(X) == plain.predict_proba(X)).all()
    with pytest.raises(InputError, match=r"TO205.*calibrator='beta' and method='platt'"):
        RecalibratedClassifier(GaussianNB(), "beta", method="platt").fit(X, y)


def test_prefit_is_answered_with_the_mode_for_fitted_classifiers():
    X, y = data(200)
    with pytest.raises(InputError, match=r"TO203.*'prefit'.*calibrated with mode='frozen'"):
        RecalibratedClassifier(GaussianNB().fit(X, y), cv="prefit").fit(X, y)
