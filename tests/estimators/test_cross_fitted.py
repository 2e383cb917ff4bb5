"""Does an out-of-sample calibrator recover what there is to recover, and nothing, exactly, where there is nothing?"""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.calibrators.histogram import HistogramSpec
from trueodds.calibrators.isotonic import IsotonicSpec
from trueodds.calibrators.temperature import TemperatureSpec
from trueodds.core.typing import Array
from trueodds.estimators.cross_fitted import CrossFitted
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

FIT_ON = ("earlier", "others")


def halves(n: int) -> Array:
    """Which rows of n are judged when two folds are dealt with seed 0."""
    return np.random.default_rng(0).permutation(n) % 2 == 1


# By hand


def test_over_and_under_confidence_by_hand() -> None:
    # The first half fits one rate for all, .5. Of the second half those who said .9 are told less and came once in two
    # (−(1 − .9) + .9 = .8), those who said .2 are told more and came both times (.8 + .8): (.8 + 1.6)/4 = .6.
    out_of_fold = halves(8)
    p, y = np.empty(8), np.empty(8)
    p[~out_of_fold], y[~out_of_fold] = [0.9, 0.9, 0.2, 0.2], [1, 0, 1, 0]
    p[out_of_fold], y[out_of_fold] = [0.9, 0.9, 0.2, 0.2], [1, 0, 1, 1]
    estimate = CrossFitted(calibrator=HistogramSpec(bins=1), folds=2)(View(p, y))
    assert estimate.value == pytest.approx(0.6, rel=1e-12)
    assert dict(estimate.parts) == pytest.approx({"over": 0.2, "under": 0.4})
    # On others, the first half is judged too, by a rate of 3/4: .9 down (−.1 + .9), .2 up (.8 − .2): 1.4 more of 8.
    both = CrossFitted(calibrator=HistogramSpec(bins=1), folds=2, fit_on="others").value(View(p, y))
    assert both == pytest.approx((2.4 + 1.4) / 8, rel=1e-12)


def test_distances_scale_a_score_as_a_vector_of_two() -> None:
    rng = np.random.default_rng(1)
    p, y = rng.random(100), rng.integers(0, 2, 100)
    one, two = View(p, y), View(np.stack([1 - p, p], axis=1), np.eye(2)[y])
    tv = CrossFitted(calibrator="isotonic").value(one)
    for distance, factor in (("tv", 1), ("max", 1), ("l1", 2), ("l2", 2**0.5), ("lp:4", 2**0.25)):
        error = CrossFitted(calibrator="isotonic", distance=distance)
        assert error.value(one) == pytest.approx(factor * tv, rel=1e-12)
        assert error.value(two) == pytest.approx(factor * tv, rel=1e-9)
        parts = error.parts(one)
        assert parts["over"] + parts["under"] == pytest.approx(factor * tv, rel=1e-12)


# The definition


@pytest.mark.parametrize("fit_on", FIT_ON)
@pytest.mark.parametrize("spec", [IsotonicSpec(), TemperatureSpec(), HistogramSpec(bins=4)], ids=lambda r: r.name)
def test_the_value_is_the_mean_of_signed_residuals(spec: Any, fit_on: str) -> None:
    rng = np.random.default_rng(2)
    p, y, w = rng.random(50), rng.integers(0, 2, 50), rng.random(50)
    fold = np.random.default_rng(7).permutation(50) % 4
    P, Y = np.stack([1 - p, p], axis=1), np.eye(2)[y]
    total = weight = 0.0
    for i in range(50):
        fit = fold < fold[i] if fit_on == "earlier" else fold != fold[i]
        if fit.any():
            r = spec.fit(P[fit], Y[fit], w[fit]).apply(P[i : i + 1])[0, 1]
            total += w[i] * np.sign(r - p[i]) * (y[i] - p[i])
            weight += w[i]
    error = CrossFitted(calibrator=spec, folds=4, fit_on=fit_on, rng=7)
    assert error.value(View(p, y, w)) == pytest.approx(total / weight, rel=1e-10)


@pytest.mark.parametrize(
    ("distance", "power"), [("l1", 1.0), ("l2", 2.0), ("max", np.inf), ("lp:3", 3.0), ("lp:1.5", 1.5)]
)
def test_the_direction_has_dual_norm_one_and_reaches_the_distance(distance: str, power: float) -> None:
    rng = np.random.default_rng(3)
    P, Q = rng.dirichlet([1] * 5, 200), rng.dirichlet([1] * 5, 200)
    Q[0] = P[0]
    s = CrossFitted(distance=distance)._direction(P, Q)
    dual = 1.0 if np.isinf(power) else np.inf if power == 1 else power / (power - 1)
    assert np.linalg.norm(s[1:], dual, axis=1) == pytest.approx(np.ones(199), rel=1e-12)
    assert (s * (Q - P)).sum(axis=1) == pytest.approx(np.linalg.norm(Q - P, power, axis=1), rel=1e-12, abs=1e-15)
    assert (s[0] == 0).all()
    half = CrossFitted(distance="tv")._direction(P, Q)
    assert (half * (Q - P)).sum(axis=1) == pytest.approx(np.abs(Q - P).sum(axis=1) / 2, rel=1e-12, abs=1e-15)


# Nothing to recover


@pytest.mark.parametrize("fit_on", FIT_ON)
@pytest.mark.parametrize("spec", [IsotonicSpec(), TemperatureSpec(), HistogramSpec(bins=2)], ids=lambda r: r.name)
def test_of_a_calibrated_model_nothing_is_recovered_in_expectation(spec: Any, fit_on: str) -> None:
    # Every outcome of seven rows with its probability: the expectation is 0 exactly, ties and all.
    p = np.array([0.1, 0.3, 0.3, 0.5, 0.6, 0.8, 0.8])
    error = CrossFitted(calibrator=spec, folds=3, fit_on=fit_on)
    mean = size = 0.0
    for y in product((0, 1), repeat=7):
        chance = float(np.prod(np.where(y, p, 1 - p)))
        value = error.value(View(p, y))
        mean, size = mean + chance * value, size + chance * abs(value)
    assert size > 0.05
    assert mean == pytest.approx(0, abs=1e-14)
    assert error.expected_if_calibrated(View(p, p)) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("distance", ["tv", "l2", "max"])
def test_nor_is_it_of_vectors(distance: str) -> None:
    P = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2], [0.2, 0.7, 0.1]])
    mean = size = 0.0
    error = CrossFitted(calibrator=TemperatureSpec(), folds=3, distance=distance)
    for y in product(range(3), repeat=5):
        chance = float(np.prod(P[np.arange(5), y]))
        value = error.value(View(P, np.eye(3)[list(y)]))
        mean, size = mean + chance * value, size + chance * abs(value)
    assert size > 0.05
    assert mean == pytest.approx(0, abs=1e-14)


def test_folds_take_no_notice_of_the_labels() -> None:
    # Folds stratified by label would tell a fit of the outcomes that it leaves out: with one score for all rows the
    # value would be the overall gap, as biased as ECE.
    p = np.full(40, 0.5)
    error = CrossFitted(calibrator=HistogramSpec(bins=1))
    out_of_fold = [error.out_of_fold(View(p, y)).row.tolist() for y in (np.arange(40) % 2, np.arange(40) < 10)]
    assert out_of_fold[0] == out_of_fold[1]


def test_what_is_recovered_is_at_most_the_error() -> None:
    # True rates p², so the error is E|p² − p| = 1/6; a mean of 4,000 terms of size at most 1 is within 4/√4000 of it.
    rng = np.random.default_rng(4)
    p = rng.random(4000)
    value = CrossFitted().value(View(p, rng.random(4000) < p**2))
    assert 1 / 6 - 4 * 4000**-0.5 < value < 1 / 6 + 4 * 4000**-0.5


# As the façade shows it


def test_measured_it_has_an_interval_a_floor_of_nothing_and_says_what_they_are_for() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(600)
    preds = Predictions((rng.random(600) < p**1.5).astype(int), p)
    estimate = to.measure(preds, "cross_fitted", resamples=300)
    assert estimate.interval is not None
    assert estimate.interval.method == "bca"
    assert estimate.interval.low < estimate.value < estimate.interval.high
    assert estimate.noise_floor == 0.0
    assert estimate.settings["calibrator"] == "isotonic"
    assert [note.code for note in estimate.notes] == ["TN135"]
    assert "lower bound on the full error" in estimate.notes[0].text
    plain = to.measure(preds, "cross_fitted", resamples=50, fit_on="others")
    assert [note.code for note in plain.notes] == ["TN135", "TN137", "TN211"]


def test_vectors_are_fitted_by_one_temperature_by_default() -> None:
    rng = np.random.default_rng(6)
    preds = Predictions(rng.integers(0, 3, 60), rng.dirichlet([1, 1, 1], 60))
    estimate = to.measure(preds, "cross_fitted", lens="canonical", resamples=50)
    assert (estimate.settings["calibrator"], dict(estimate.parts)) == ("temperature", {})
    assert (
        to.measure(preds, "cross_fitted", calibrator="histogram", interval=None).settings["calibrator"] == "histogram"
    )


def test_bootstrap_copies_are_never_fitted_on() -> None:
    # Resampled rows are averaged, not refitted: a copy of a row in the fit would betray the outcome it judges.
    fits = []

    class Counted(HistogramSpec):
        def fit(self, P: Array, Y: Array, w: Array) -> Any:
            fits.append(len(P))
            return super().fit(P, Y, w)

    rng = np.random.default_rng(7)
    preds = Predictions(rng.integers(0, 2, 100), rng.random(100))
    to.measure(preds, CrossFitted(calibrator=Counted(bins=3)), resamples=200)
    assert max(fits) == 80
    assert len(fits) <= 4 * 5  # four fits each for the value, its resamples, those with one left out, and the parts


# Edges


def test_one_row_recovers_nothing_and_says_why() -> None:
    estimate = CrossFitted()(View([0.7], [1]))
    assert estimate.value == 0.0
    assert [note.code for note in estimate.notes] == ["TN135", "TN136"]
    assert CrossFitted().value(View([0.7, 0.2], [1, 0], [1, 0])) == 0.0


def test_rows_of_weight_zero_are_no_rows() -> None:
    rng = np.random.default_rng(8)
    p, y = rng.random(60), rng.integers(0, 2, 60)
    w = (np.arange(60) < 40).astype(float)
    assert CrossFitted().value(View(p, y, w)) == CrossFitted().value(View(p[:40], y[:40]))
    assert (CrossFitted().row_scores(View(p, y, w))[40:] == 0).all()


def test_a_refit_that_agrees_but_for_rounding_has_no_direction() -> None:
    P = np.random.default_rng(11).dirichlet([1, 1, 1], 20)
    for distance in ("tv", "l2", "max"):
        assert (CrossFitted(distance=distance)._direction(P, P * (1 + 1e-14)) == 0).all()


def test_all_right_and_all_wrong() -> None:
    y = np.arange(40) % 2
    assert CrossFitted().value(View(y.astype(float), y)) == 0.0
    assert CrossFitted().value(View(1.0 - y, y)) == pytest.approx(1.0)


def test_cells_of_many_rows_are_refused() -> None:
    view = View([0.2, 0.3], [0, 1]).pool(np.array([0, 0]), 1)
    with refused("TO205"):
        CrossFitted().value(view)


@pytest.mark.slow
def test_measuring_loads_no_scikit_learn() -> None:
    code = (
        "import sys, trueodds as to; p = [.1, .4, .6, .9] * 5; y = [0, 0, 1, 1] * 5;[to.measure(to.Predictions(y, p),"
        " 'cross_fitted', calibrator=c, resamples=9) for c in ('isotonic', 'temperature')];sys.exit(any(m.split('.')[0]"
        " == 'sklearn' or m == 'scipy.stats' for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_through_a_lens_of_several_views_each_is_fitted_for_itself() -> None:
    rng = np.random.default_rng(10)
    preds = Predictions(rng.integers(0, 3, 90), rng.dirichlet([1, 1, 1], 90))
    estimate = to.measure(preds, "cross_fitted", lens="classwise", interval=None)
    values = [CrossFitted().value(view) for view in as_lens("classwise").views(preds)]
    assert estimate.value == pytest.approx(np.mean(values), rel=1e-12)


def test_a_map_for_two_classes_is_refused_for_more() -> None:
    rng = np.random.default_rng(9)
    preds = Predictions(rng.integers(0, 3, 60), rng.dirichlet([1, 1, 1], 60))
    for name, settings in (("cross_fitted", {}), ("decision_regret", {"cost": 1 - np.eye(3)})):
        with refused("TO511"):
            to.measure(preds, name, calibrator="llo", lens="canonical", **settings)


def test_one_view_is_fitted_once_for_value_parts_and_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    fits, fit = [], IsotonicSpec.fit

    def counted(self: IsotonicSpec, *rows: Array) -> Any:
        fits.append(len(rows[0]))
        return fit(self, *rows)

    monkeypatch.setattr(IsotonicSpec, "fit", counted)
    rng = np.random.default_rng(10)
    p = rng.random(100)
    view, error = View(p, rng.integers(0, 2, 100)), CrossFitted()
    error.value(view), error.parts(view), error.row_scores(view)
    assert len(fits) == 4  # the first of five parts is not judged
    CrossFitted(rng=1).value(view)  # other parts are dealt
    CrossFitted(calibrator=IsotonicSpec("step")).value(view)  # another rule is another fit
    assert len(fits) == 12
