"""Displays as users of scikit-learn know them."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, cross_validate

import trueodds as to
from trueodds.api import displays
from trueodds.core.errors import InputError
from trueodds.diagrams import DIAGRAMS, PREDICTION_DIAGRAMS


def data(seed=0, n=200):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, (rng.random(n) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)


def test_every_diagram_has_a_display_named_for_it():
    assert displays.DIAGRAM_OF_DISPLAY["ConfidenceHistogramDisplay"] == "confidence_histogram"
    assert sorted(displays.DIAGRAM_OF_DISPLAY.values()) == sorted(PREDICTION_DIAGRAMS)
    assert all(getattr(displays, name).method == method for name, method in displays.DIAGRAM_OF_DISPLAY.items())


def test_a_display_is_one_class_each_time():
    assert displays.ReliabilityDisplay is displays.ReliabilityDisplay


def test_an_estimator_is_drawn_as_its_predictions_are():
    X, y = data()
    model = LogisticRegression().fit(X, y)
    one = displays.ReliabilityDisplay.from_estimator(model, X, y, bins=5)
    other = displays.ReliabilityDisplay.from_predictions(y, model.predict_proba(X)[:, 1], bins=5)
    assert one.diagram.to_dict() == other.diagram.to_dict()
    assert one.diagram.to_dict() == to.draw(to.Predictions(y, model.predict_proba(X)[:, 1]), bins=5).to_dict()


def test_axes_that_are_given_are_drawn_on_and_kept():
    ax = Figure().subplots()
    X, y = data()
    shown = displays.ConfidenceHistogramDisplay.from_predictions(y, np.clip(X[:, 0] / 8 + 0.5, 0, 1), ax=ax)
    assert shown.ax_ is ax
    assert shown.figure_ is ax.figure
    assert shown.plot().ax_ is not ax


def test_a_display_has_title_and_size_as_the_diagram_has():
    _, y = data()
    p = np.linspace(0.01, 0.99, len(y))
    shown = displays.ReliabilityDisplay.from_predictions(y, p, bins=5, title="Mine", figsize=(4, 3.5))
    assert tuple(shown.figure_.get_size_inches()) == (4, 3.5)
    assert "Mine" in [text.get_text() for text in shown.figure_.texts]
    assert shown.diagram.settings["style"] == "diagonal"
    ax = Figure().subplots()
    assert shown.plot(ax, title="Other", legend=False).ax_.get_title() == "Other"
    assert ax.get_legend() is None


def test_weights_are_the_predictions_weights():
    _, y = data()
    p = np.linspace(0.01, 0.99, len(y))
    w = 1.0 + (p > 0.5)
    shown = displays.ReliabilityDisplay.from_predictions(y, p, sample_weight=w, bins=5)
    assert shown.diagram.to_dict() == to.draw(to.Predictions(y, p, weight=w), bins=5).to_dict()


def test_a_mapping_of_models_is_drawn_as_to_draw_draws_it():
    X, y = data()
    p, w = 1 / (1 + np.exp(-X[:, 0])), np.linspace(1, 2, len(y))
    shown = displays.ComparisonDisplay.from_predictions(y, {"nb": p, "rf": p**2}, sample_weight=w, bins=5)
    preds = {"nb": to.Predictions(y, p, weight=w), "rf": to.Predictions(y, p**2, weight=w)}
    assert shown.diagram.to_dict() == to.draw(preds, "comparison", bins=5).to_dict()
    curves = displays.MurphyDisplay.from_predictions(y, {"nb": p, "rf": p**2}, thresholds=[0.5], resamples=99)
    assert curves.diagram.settings["models"] == ["nb", "rf"]


def test_a_mapping_of_epochs_is_a_training():
    X, y = data()
    P = {epoch: 1 / (1 + np.exp(-epoch * X[:, 0])) for epoch in (1, 2, 10)}
    shown = displays.TrainingDisplay.from_predictions(y, P, resamples=99)
    assert shown.diagram.table["epoch"].tolist() == [1, 2, 10]
    runs = {f"{run}/{epoch}": p for run in "ab" for epoch, p in P.items()}
    assert displays.TrainingDisplay.from_predictions(y, runs, resamples=99).diagram.panels["runs"][0] == 2


def test_a_mapping_is_refused_where_it_is_empty_or_one_model_is_drawn():
    with pytest.raises(InputError, match=r"TO205.*must not be empty"):
        displays.ComparisonDisplay.from_predictions([0, 1], {})
    with pytest.raises(InputError, match=r"TO205.*one model at a time"):
        displays.ReliabilityDisplay.from_predictions([0, 1], {"a": [0.1, 0.9], "b": [0.2, 0.8]})


def test_displays_that_are_not_made_yet_are_completed():
    assert set(displays.DIAGRAM_OF_DISPLAY) <= set(dir(displays))
    assert "Display" in dir(displays)


def test_a_display_tells_what_its_diagram_answers_without_the_diagrams_own_example():
    for name, method in displays.DIAGRAM_OF_DISPLAY.items():
        own, doc = DIAGRAMS.load(method).__doc__, getattr(displays, name).__doc__
        assert len(doc) > 200
        assert own.startswith(doc)
        assert ">>>" not in doc


def test_a_name_that_is_none_lists_the_near_ones():
    with pytest.raises(AttributeError, match="ReliabilityDisplay"):
        _ = displays.ReliabiltyDisplay


def test_wrong_settings_are_refused_as_everywhere():
    with pytest.raises(InputError, match="TO202"):
        displays.ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.9], bin=3)


def cross_validated(seed=0, n=300, **more):
    """Data, and the result of their cross-validation."""
    X, y = data(seed, n)
    options = {"cv": 3, "return_estimator": True, "return_indices": True} | more
    return X, y, cross_validate(LogisticRegression(), X, y, **options)


def out_of_fold(X, y, found):
    """Probabilities of the event by the model of the fold that tested each row, in the order of the folds."""
    tested = found["indices"]["test"]
    p = np.concatenate(
        [model.predict_proba(X[rows])[:, 1] for model, rows in zip(found["estimator"], tested, strict=True)]
    )
    return np.concatenate(tested), p


def test_a_cross_validation_is_drawn_as_its_out_of_fold_predictions():
    X, y, found = cross_validated()
    rows, p = out_of_fold(X, y, found)
    w = np.random.default_rng(0).random(len(y))
    shown = displays.ReliabilityDisplay.from_cv_results(found, X, y, sample_weight=w, bins=5)
    assert shown.diagram.to_dict() == to.draw(to.Predictions(y[rows], p, weight=w[rows]), bins=5).to_dict()
    frame = displays.ReliabilityDisplay.from_cv_results(found, pd.DataFrame(X), pd.Series(y), bins=5)
    assert frame.diagram.to_dict() == to.draw(to.Predictions(y[rows], p), bins=5).to_dict()
    ax = Figure().subplots()
    assert displays.ReliabilityDisplay.from_cv_results(found, X, y, ax=ax).ax_ is ax


def test_the_smooth_curve_of_a_cross_validation_is_the_mean_of_the_curves_of_its_folds():
    X, y, found = cross_validated()
    rows, p = out_of_fold(X, y, found)
    shown = displays.ReliabilityCurveDisplay.from_cv_results(found, X, y)
    pooled = to.draw(to.Predictions(y[rows], p), "reliability_curve")
    table = shown.diagram.frame()
    curves = table[table["part"] == "fold"]
    pd.testing.assert_frame_equal(table[table["part"] != "fold"], pooled.frame())
    assert curves["piece"].nunique() >= 3
    # A curve is Σ w y K(s, p) / Σ w K(s, p), so that of all rows is the mean of those of the folds by Σ K(s, p).
    h, logits = float(pooled.panels["bandwidth"][0]), np.log(p / (1 - p))
    fold_of_row = np.repeat(np.arange(3), [len(test) for test in found["indices"]["test"]])
    score = 0.5
    kernel = np.exp(-((np.log(score / (1 - score)) - logits) ** 2) / (2 * h**2))
    weights = np.bincount(fold_of_row, kernel)
    rates = []
    for _, curve in curves.groupby("piece"):
        if curve["score"].min() < score < curve["score"].max():
            rates.append(np.interp(score, curve["score"], curve["rate"]))
    assert len(rates) == 3
    curve = pooled.frame()
    curve = curve[curve["part"] == "curve"]
    # Points are half a bandwidth apart, so linear interpolation has an error of the second order.
    expected = np.interp(score, curve["score"], curve["rate"])
    assert weights @ rates / weights.sum() == pytest.approx(expected, abs=2e-3)
    lines = [line.get_label() for line in shown.ax_.get_lines()]
    assert len(lines) > len(displays.ReliabilityCurveDisplay(pooled).plot().ax_.get_lines())


def test_a_fold_without_a_point_that_enough_rows_support_has_no_curve():
    few = {
        "part": np.array(["strip", "curve"], dtype=object),
        "effective": np.array([np.nan, np.nan]),
        "piece": np.array([0, 0]),
    }
    enough = few | {"effective": np.array([np.nan, 20.0])}
    assert displays.fold_curves([few, enough, few, enough])["piece"].tolist() == [0, 1]
    none = displays.fold_curves([few, few])
    assert {name: len(column) for name, column in none.items()} == {"part": 0, "effective": 0, "piece": 0}


@pytest.mark.slow
@pytest.mark.parametrize("smoother", ["kernel", "loess"])
def test_folds_of_one_row_are_drawn(smoother):
    X, y, found = cross_validated(n=16, cv=KFold(16))
    shown = displays.ReliabilityCurveDisplay.from_cv_results(found, X, y, smoother=smoother)
    assert len(shown.diagram.panels["view"]) == 1


def test_several_classes_of_a_cross_validation_are_drawn_without_single_folds():
    X, y = make_classification(300, n_classes=3, n_informative=4, random_state=0)
    names = np.array(["ant", "bee", "cat"])[y]
    found = cross_validate(LogisticRegression(), X, names, cv=3, return_estimator=True, return_indices=True)
    shown = displays.ReliabilityCurveDisplay.from_cv_results(found, X, names, lens="classwise")
    assert shown.diagram.panels["view"].tolist()
    assert set(shown.diagram.table["part"]) == {"curve", "strip"}
    confidence = displays.ReliabilityCurveDisplay.from_cv_results(found, X, names, smoother="loess")
    assert set(confidence.diagram.table["part"]) == {"curve", "strip", "fold"}


def test_what_is_no_cross_validation_of_these_rows_is_refused():
    X, y, found = cross_validated()
    draw = displays.ReliabilityDisplay.from_cv_results
    for name in ("return_estimator", "return_indices"):
        with pytest.raises(InputError, match=r"TO202.*return_estimator=True, return_indices=True"):
            draw(cross_validated(**{name: False})[2], X, y)
    with pytest.raises(InputError, match="TO107"):
        draw(found, X[:-1], y[:-1])
    with pytest.raises(InputError, match="TO107"):
        draw(found, X, y[:-1])
    with pytest.raises(InputError, match=r"TO107.*sample_weight"):
        draw(found, X, y, sample_weight=y[:-1])
    with pytest.raises(InputError, match=r"TO205.*several folds"):
        draw(cross_validated(cv=ShuffleSplit(3, test_size=0.5, random_state=0))[2], X, y)
    tested = [*found["indices"]["test"][:-1], np.array([], dtype=int)]
    with pytest.raises(InputError, match=r"TO205.*A fold has no rows.*none in fold 2"):
        draw(found | {"indices": found["indices"] | {"test": tested}}, X, y)
    unfitted = [*found["estimator"][:-1], LogisticRegression()]  # as cross_validate returns one whose fit failed
    with pytest.raises(InputError, match=r"TO205.*fit of a fold failed.*error_score='raise'"):
        draw(found | {"estimator": unfitted}, X, y)
    labels = np.sort(np.arange(300) % 3)
    lacking = cross_validate(LogisticRegression(), X, labels, cv=KFold(3), return_estimator=True, return_indices=True)
    with pytest.raises(InputError, match=r"TO205.*different classes.*StratifiedKFold"):
        draw(lacking, X, labels)
