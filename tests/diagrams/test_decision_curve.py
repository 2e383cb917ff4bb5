"""Decision curves: net benefit by hand, bands, default strategies, thresholds, and what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.diagrams.decision_curve import DecisionCurve, format_ranges
from trueodds.lenses.view import View


def cohort(n=600, seed=0, **columns):
    rng = np.random.default_rng(seed)
    marker = rng.normal(0, 1, n)
    event = rng.random(n) < 1 / (1 + np.exp(1.6 - 0.9 * marker))
    return to.Predictions(event, 1 / (1 + np.exp(1.3 - 1.35 * marker)), **columns)


def curve_of(diagram, model=""):
    mask = (diagram.table["part"] == "curve") & (diagram.table["model"] == model)
    return {name: column[mask] for name, column in diagram.table.items()}


def test_the_curve_by_hand():
    # Thresholds .2 and .5, odds 1/4 and 1; a prediction at the threshold is treated.
    view = View([0.9, 0.5, 0.2, 0.1], [1, 0, 1, 0])
    curve = curve_of(DecisionCurve(thresholds=[0.5, 0.2], band=None)([view]))
    assert curve["threshold"].tolist() == [0.2, 0.5]
    assert curve["net_benefit"] == pytest.approx([2 / 4 - 1 / 16, 0], abs=1e-15)
    assert curve["treat_all"] == pytest.approx([1 / 2 - 1 / 8, 0], abs=1e-15)
    assert curve["difference"] == pytest.approx(curve["net_benefit"] - curve["treat_all"], abs=1e-15)


@pytest.mark.parametrize("clusters", [None, 60])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_limits_are_those_of_the_estimator(clusters, weighted):
    rng = np.random.default_rng(1)
    columns = {"cluster": np.arange(600) % clusters} if clusters else {}
    preds = cohort(**columns, **({"weight": rng.uniform(0.5, 2, 600)} if weighted else {}))
    curve = curve_of(to.draw(preds, "decision_curve", thresholds=[0.1, 0.2, 0.3]))
    for i, threshold in enumerate((0.1, 0.2, 0.3)):
        for reference, names in (
            ("none", ("net_benefit", "low", "high")),
            ("all", ("difference", "difference_low", "difference_high")),
        ):
            estimate = to.measure(preds, "net_benefit", threshold=threshold, reference=reference)
            expected = estimate.value, estimate.interval.low, estimate.interval.high
            # The same resamples; ties of resamples with the estimate may be broken by rounding.
            assert [curve[name][i] for name in names] == pytest.approx(expected, abs=5e-4)


def test_a_tally_has_nearly_the_same_band():
    preds = cohort(3000)
    rows, tallied = (curve_of(to.draw(data, "decision_curve", thresholds=[0.2])) for data in (preds, to.tally(preds)))
    width = (rows["high"] - rows["low"])[0]
    for name in ("low", "high", "difference_low", "difference_high"):
        assert tallied[name] == pytest.approx(rows[name], abs=0.1 * width)


def test_default_thresholds_are_round_numbers_up_to_a_quantile_of_the_predictions():
    for p_max, step, last in ((0.62, 0.01, 0.65), (0.999, 0.01, 0.95), (0.21, 0.005, 0.25), (0.004, 0.0002, 0.01)):
        p = np.linspace(0, p_max / 0.99, 1001).clip(0, 1)
        threshold = curve_of(DecisionCurve(band=None)([View(p, np.arange(1001) % 2)]))["threshold"]
        assert (threshold[0], threshold[1], threshold[-1]) == (0.0, step, last)
        assert 50 <= len(threshold) - 1 <= 125
    assert 0.3 in curve_of(to.draw(cohort(), "decision_curve", band=None))["threshold"]
    assert len(curve_of(to.draw(cohort(), "decision_curve", band=None, thresholds=20))["threshold"]) == 21


def test_the_band_ends_where_few_events_or_nonevents_are_treated():
    """Without an event among those treated, all resamples have none, and the band had no width."""
    p, y = np.repeat([0.1, 0.4, 0.8], 100), np.tile([1, 0, 0, 0], 75)
    y[200:] = 0
    y[:2] = 1
    curve = curve_of(to.draw(y, p, "decision_curve", thresholds=[0.05, 0.3, 0.7]))
    assert np.isfinite(curve["low"]).tolist() == [True, True, False]
    assert np.isfinite(curve["difference_low"]).tolist() == [False, True, True]
    assert curve["beyond"][2] == 0 or curve["difference_high"][2] < 0


def test_a_useful_and_a_harmful_model_are_found_significant():
    rng = np.random.default_rng(4)
    p = rng.beta(1, 3, 4000)
    y = rng.random(4000) < p
    useful = to.draw(y, p, "decision_curve")
    assert "significantly (95\u00a0%, pointwise)" in useful.finding
    curve = curve_of(useful)
    assert (curve["beyond"][np.searchsorted(curve["threshold"], [0.15, 0.25, 0.4])] == 1).all()
    harmful = to.draw(y, 1 - p, "decision_curve")
    assert "at no threshold" in harmful.finding
    assert "Significantly lower than one of them" in harmful.finding


def test_a_calibrated_model_without_information_is_rarely_significant():
    # At most 2.5 % at a threshold above or below the event rate; 60 data sets, of which more than 7 would differ with
    # probability 0.1 %.
    count = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.1, 0.5, 500)
        curve = curve_of(to.draw(rng.random(500) < 0.3, p, "decision_curve", thresholds=[0.3], resamples=399))
        count += curve["beyond"][0] == 1
    assert count <= 7


def test_several_models_are_ranked_by_threshold_and_bands_are_left_out_for_three():
    models = {"a": cohort(), "b": cohort(), "c": cohort()}
    diagram = to.draw(models, "decision_curve")
    assert diagram.finding.startswith("Highest net benefit: ")
    assert np.isnan(curve_of(diagram, "a")["low"]).all()
    assert np.isfinite(curve_of(to.draw(models, "decision_curve", band="bootstrap"), "c")["low"]).any()
    assert not diagram.notes
    assert "TN263" in [note.code for note in to.draw({"a": cohort(), "b": cohort(seed=5)}, "decision_curve").notes]


def test_the_axes_are_cropped_and_labeled_in_percent():
    diagram = to.draw(cohort(), "decision_curve")
    figure = diagram.draw()
    figure.draw_without_rendering()
    ax = figure.axes[0]
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels[:2] == ["0\u00a0%", "20\u00a0%"]
    assert diagram.table["treat_all"][diagram.table["part"] == "curve"].min() < -1
    assert -0.4 * diagram.panels["y_high"][0] <= diagram.panels["y_low"][0] < 0
    assert ax.get_ylim()[1] < 0.4


def test_ranges_are_named_by_width():
    x = np.arange(10) / 10
    mask = np.array([1, 0, 1, 1, 1, 1, 0, 1, 1, 0], dtype=bool)
    assert format_ranges(x, mask).replace("\u00a0", " ") == "mainly from 20 % to 50 % and from 70 % to 80 %"
    assert format_ranges(x, np.zeros(10, dtype=bool)) == ""


@pytest.mark.parametrize("settings", [{"thresholds": []}, {"thresholds": [1.0]}, {"thresholds": 1}, {"band": "exact"}])
def test_invalid_settings_are_refused(settings):
    with refused("TO203", ""):
        to.draw(cohort(50), "decision_curve", **settings)
