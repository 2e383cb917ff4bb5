"""Are ICI, E50, E90, Emax and observed : expected the published numbers, for rows, weights and draws?"""

from __future__ import annotations

import csv
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

import trueodds as to
from tests import reference
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.estimators._smoothing import local_regression
from trueodds.estimators._smoothing.local_regression import SMOOTHERS, LocalFit
from trueodds.estimators.binned import BinnedError
from trueodds.estimators.integrated_calibration_index import (
    IntegratedIndex,
    MedianDistance,
    NinthDecile,
    WorstDistance,
    weighted_quantile,
)
from trueodds.estimators.observed_expected import CalibrationInTheLarge, ObservedExpected
from trueodds.lenses.view import View

FAMILY = (IntegratedIndex, MedianDistance, NinthDecile, WorstDistance)
SMOOTH = ("loess", "lowess", "isotonic")


@cache
def reference_rows(name: str) -> tuple[Array, Array]:
    """Predictions and outcomes of a reference input."""
    if name.startswith("hockey"):
        with reference.path("golden/anchors/hockey.csv").open(encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        column = name.split("_")[1]
        return np.array([float(row[column]) for row in rows]), np.array([float(row["y"]) for row in rows])
    file = {
        "g2_300": "anchors/synthetic/g2_300",
        "foreclosure": "anchors/foreclosure",
        "c": "estimators/c_binary500",
        "c2": "estimators/c2_binary500_ties",
    }[name]
    table = reference.frame(f"{file}.csv")
    return table["x" if name == "foreclosure" else "p"], table["y"]


def some(n: int = 80, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p**1.5).astype(float)


def curve(name: str, p: Array, unit: float | None = None, span: float | None = None) -> tuple[LocalFit, Array]:
    """The local fit at the distinct scores of p, and how the rows share them."""
    s, counts = np.unique(p, return_counts=True)
    smoother = SMOOTHERS[name]
    if span is not None:
        smoother = local_regression.LocalSmoother(
            smoother.degree, span, smoother.min_relative_std, smoother.relative_spacing
        )
    return LocalFit(smoother, s, counts / len(p), 1 / len(p) if unit is None else unit), counts


# By hand


def test_a_straight_line_by_hand() -> None:
    # lowess over all of 0, .1, .2, .3, .4: at .2 the furthest scores lie at distance .2 and count nothing, those at
    # half of it (1 − 1/8)³ = .669921875; by symmetry the line's height there is the weighted mean.
    # At 0 the window reaches .4; weights (1 − i³/64)³ = 1, .953841…, .669922…, .193268…, 0 at i = 0 to 4.
    y = np.array([0.0, 0, 1, 0, 1])
    fit = curve("lowess", np.arange(5) / 10, span=1.0)[0](y / 5)
    assert fit[2] == pytest.approx(1 / (1 + 2 * 0.669921875), rel=1e-14)
    w = (1 - (np.arange(4) / 4) ** 3) ** 3
    x = np.arange(4) - (w @ np.arange(4)) / w.sum()
    slope = (w * x) @ y[:4] / (w @ x**2)
    assert fit[0] == pytest.approx((w @ y[:4]) / w.sum() + slope * x[0], rel=1e-13)


def test_a_parabola_by_hand() -> None:
    # loess over the same scores at .2: the three that count carry a parabola exactly, so the curve is the outcome.
    fit = curve("loess", np.arange(5) / 10, span=1.0)[0](np.array([0.0, 0, 1, 0, 1]) / 5)
    assert fit[2] == pytest.approx(1, rel=1e-13)


def test_the_isotonic_curve_by_hand() -> None:
    # .2 came, .4 did not, .8 came: rates 1/2, 1/2, 1, so the distances are .3, .1, .2.
    view = View([0.4, 0.8, 0.2], [0, 1, 1])
    expected = (0.2, 0.2, 0.2 + 0.8 * 0.1, 0.3)  # type 7: rank .9 · 2 = 1.8, between .2 and .3
    for estimator_type, number in zip(FAMILY, expected, strict=True):
        assert estimator_type(smoother="isotonic").value(view) == pytest.approx(number, rel=1e-14)


def test_observed_over_expected_by_hand() -> None:
    # 1 + 2·1 came of weight 4; .5 + 2·.9 + .1 = 2.4 were expected.
    estimate = ObservedExpected()(View([0.5, 0.9, 0.1], [1, 1, 0], [1, 2, 1]))
    assert estimate.value == pytest.approx(3 / 2.4, rel=1e-14)
    assert estimate.parts == pytest.approx({"observed": 0.75, "expected": 0.6}, rel=1e-14)


def test_calibration_in_the_large_by_hand() -> None:
    # 3 of weight 4 were observed and 2.4 expected.
    estimate = CalibrationInTheLarge()(View([0.5, 0.9, 0.1], [1, 1, 0], [1, 2, 1]))
    assert estimate.value == pytest.approx(0.15, rel=1e-13)
    assert estimate.parts == pytest.approx({"observed": 0.75, "expected": 0.6}, rel=1e-14)


def test_the_size_of_calibration_in_the_large_is_the_ece_of_one_bin() -> None:
    p, y = some(200)
    signed = CalibrationInTheLarge()
    assert signed.value(View(p, y)) < 0
    assert signed.as_loss(signed.value(View(p, y))) == pytest.approx(
        BinnedError(Uniform(1)).value(View(p, y)), rel=1e-13
    )
    assert signed.value(View(1 - p, 1 - y)) == pytest.approx(-signed.value(View(p, y)), rel=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "better"), [(0.8, 0.6, "b"), (0.2, 0.4, "b"), (0.8, 0.4, "b"), (0.6, 0.4, None), (0.52, 0.35, "a")]
)
def test_of_two_signed_values_the_one_nearer_to_zero_is_better(a: float, b: float, better: str | None) -> None:
    # Half of 400 outcomes are events, so the values are .5 − a and .5 − b with a standard error of .025. Of opposite
    # signs, −.3 and .1 have the sum −.2, −.1 and .1 the sum 0, and −.02 and .15 the sum .13; its standard error is .05.
    y = np.arange(400) % 2
    comparison = to.compare(
        Predictions(y, np.full(400, a)), Predictions(y, np.full(400, b)), "calibration_in_the_large", resamples=200
    )
    assert comparison.better == better


# By reference


@pytest.mark.reference
@pytest.mark.parametrize("name", ["hockey_x", "hockey_rand", "g2_300", "foreclosure"])
def test_val_prob_gives_the_same_eavg_e90_and_emax(name: str) -> None:
    # R 4.2.2, rms 6.5-0, val.prob: lowess(p, y, iter = 0), its step of 1 % of the range included.
    expected = reference.golden("anchors/golden.json")["r_packages"]["val_prob"][name]
    view = View(*reference_rows(name))
    for key, estimator_type in (("Eavg", IntegratedIndex), ("E90", NinthDecile), ("Emax", WorstDistance)):
        assert estimator_type(smoother="lowess").value(view) == pytest.approx(expected[key], rel=1e-10), key


# Cleveland & Grosse's Fortran by way of scikit-misc 0.5.3: loess(p, y, span=.75, degree=2, surface="direct"); mean,
# median, 90th percentile and maximum of |fit − p|. Its pseudo-inverse is good to 1e-9.
DIRECT = {
    "c": (0.0806465800905834, 0.08693191858014154, 0.14111339448992213, 0.14933994112796894),
    "c2": (0.08186188244369655, 0.0867714013686407, 0.1435941142040174, 0.14981023810007288),
    "g2_300": (0.11444428114946893, 0.10156505617151865, 0.21593146714010078, 0.23417617812547976),
    "hockey_x": (0.03933382362082032, 0.04096790343142276, 0.0631170237497947, 0.2777061360101142),
}


@pytest.mark.reference
@pytest.mark.parametrize("name", DIRECT)
def test_loess_computed_at_every_score_is_clevelands(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_regression, "MAX_EVALUATED_SCORES", 10**6)
    view = View(*reference_rows(name))
    for estimator_type, expected in zip(FAMILY, DIRECT[name], strict=True):
        assert estimator_type().value(view) == pytest.approx(expected, rel=1e-7)


@pytest.mark.reference
def test_straight_lines_between_two_hundred_scores_move_the_fourth_digit_at_most() -> None:
    for name in ("c", "hockey_x"):
        view = View(*reference_rows(name))
        for estimator_type, expected in zip(FAMILY, DIRECT[name], strict=True):
            assert estimator_type().value(view) == pytest.approx(expected, abs=1e-4)
    assert IntegratedIndex().value(View(*reference_rows("c2"))) == pytest.approx(DIRECT["c2"][0], rel=1e-7)


# Cells


@pytest.mark.parametrize("name", ["loess", "lowess"])
def test_cells_of_scores_move_a_curve_by_less_than_a_hundredth_of_its_size(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A cell holds at most 1/128 of the rows and of the range, so a row's weight in a window of .66 of the rows changes
    # by about 1/64 of itself and with random signs: far less than a hundredth of the curve.
    rng = np.random.default_rng(3)
    p = rng.beta(0.5, 12, 4000)
    residuals = (rng.random(4000) < p**1.2) - p
    order = np.argsort(p)
    by_scores = curve(name, p)[0](residuals[order] / 4000)
    monkeypatch.setattr(local_regression, "MAX_CELLS", 256)
    monkeypatch.setattr(local_regression, "MIN_CELLS_PER_WINDOW", 1)
    cells = curve(name, p)[0]
    assert 128 < len(cells.weights) <= 256
    by_cells = cells(residuals[order] / 4000)
    assert np.abs(by_cells - by_scores).mean() < 1e-2 * np.abs(by_scores).mean()
    s = p[order]
    assert cells((0.3 - 2 * s) / 4000) == pytest.approx(0.3 - 2 * s, abs=1e-12)  # straight lines are still exact
    monkeypatch.setattr(local_regression, "MAX_CELLS", 4000)
    assert np.array_equal(curve(name, p)[0](residuals[order] / 4000), by_scores)


def test_a_window_in_cells_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two cuts by weight, at 0 and at .5, in which the middle of the weight lies, and two by score, at 0 and at 1.
    s = np.array([0, 0.01, 0.5, 0.99, 1.0])
    monkeypatch.setattr(local_regression, "MAX_CELLS", 4)
    monkeypatch.setattr(local_regression, "MIN_CELLS_PER_WINDOW", 1)
    half_widths = local_regression._half_widths(s, np.arange(6) / 5, np.arange(5), 0.5)
    assert local_regression._cell_starts(s, np.full(5, 0.2), s, half_widths).tolist() == [0, 2, 4]
    # With two cells per window, each window is divided at its middle and ends at the border of a cell.
    monkeypatch.setattr(local_regression, "MIN_CELLS_PER_WINDOW", 3)
    assert local_regression._cell_starts(s, np.full(5, 0.2), s[:1], half_widths[:1]).tolist() == [0, 1, 2, 3, 4]
    # Three of five rows hold more than half of the weight: 0, .01 and .5 around 0 and .01, and .5, .99 and 1 above.
    assert half_widths == pytest.approx([0.5, 0.49, 0.49, 0.49, 0.5], rel=1e-14)


@pytest.mark.parametrize(("heavy", "smoother"), [(0.0, "loess"), (0.3, "loess"), (0.3, "lowess")])
@pytest.mark.parametrize("name", ["ici", "emax"])
def test_windows_beside_a_score_of_large_weight_have_enough_cells(
    name: str, heavy: float, smoother: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 75.757 % of the rows have one score: windows of its neighbors hold few scores, which must not share a cell.
    rng = np.random.default_rng(0)
    p = np.concatenate([np.full(75_757, heavy), rng.uniform(size=24_243)])
    y = (rng.uniform(size=len(p)) < p).astype(int)
    values = []
    for max_cells in (2**14, 10**9):  # the second has a cell for each score
        monkeypatch.setattr(local_regression, "MAX_CELLS", max_cells)
        values.append(to.measure(y, p, name, smoother=smoother, interval=None).value)
    assert values[0] == pytest.approx(values[1], rel=2e-3)


@pytest.mark.parametrize("estimator_type", FAMILY)
def test_a_score_of_most_of_many_rows_is_a_window_by_itself(estimator_type: type[IntegratedIndex]) -> None:
    # 80 % of the rows at .5 make up each window of that score: the curve there is their mean, .25 from .5.
    rng = np.random.default_rng(0)
    p = np.concatenate([np.full(80_000, 0.5), rng.random(20_000)])
    residuals = np.where(p == 0.5, -0.25, 0.0)
    fit, counts = curve("loess", p)
    s = np.unique(p)
    value = fit(np.where(s == 0.5, -0.25, 0.0) * counts / len(p))[np.searchsorted(s, 0.5)]
    assert len(fit.weights) < len(s)
    assert value == pytest.approx(-0.25, rel=1e-12)
    assert estimator_type().value(View(p, p + residuals)) > 0


# What must hold


@pytest.mark.parametrize("name", ["loess", "lowess"])
@pytest.mark.parametrize("n", [12, 300])
def test_local_curves_reproduce_straight_lines(name: str, n: int) -> None:
    # So smoothing y − p is smoothing y and taking p away; sums of a few hundred products round by 1e-12.
    p, y = some(n)
    fit, counts = curve(name, p)
    s = np.unique(p)
    assert fit(s * counts / n) == pytest.approx(s, abs=1e-12)
    assert fit((0.3 - 2 * s) * counts / n) == pytest.approx(0.3 - 2 * s, abs=1e-12)
    wy = np.bincount(np.searchsorted(s, p), y) / n
    assert fit(wy - s * counts / n) == pytest.approx(fit(wy) - s, abs=1e-12)
    assert IntegratedIndex(name).value(View(p, p)) == pytest.approx(0, abs=1e-15)
    assert IntegratedIndex(name).value(View(p, 0.1 + 0.5 * p)) == pytest.approx(np.abs(0.1 - 0.5 * p).mean(), rel=1e-12)


def test_loess_reproduces_parabolas() -> None:
    # Truth p² for p: the mean of p − p² over the rows themselves.
    p, _ = some(150)
    assert IntegratedIndex().value(View(p, p**2)) == pytest.approx((p - p**2).mean(), rel=1e-12)


@pytest.mark.parametrize("name", ["loess", "lowess"])
def test_ici_and_emax_are_norms_of_the_residuals(name: str) -> None:
    rng = np.random.default_rng(0)
    p, y = some()
    for estimator in (IntegratedIndex(name), WorstDistance(name)):
        assert estimator.is_norm
        linear = estimator.cell_statistic(View(p, y))
        w = wp = np.zeros(linear.size)
        a, b = rng.normal(size=(2, 30, linear.size))
        combined, one, other = (linear.statistic_at_groups(w, wp, wy) for wy in (a + b, a, b))
        assert (combined <= one + other + 1e-12).all()
        assert linear.statistic_at_groups(w, wp, -3 * a) == pytest.approx(3 * one, rel=1e-12)


@pytest.mark.parametrize("estimator_type", FAMILY)
def test_distances_of_an_isotonic_curve_are_not_treated_as_a_norm(estimator_type: type[IntegratedIndex]) -> None:
    p, y = some()
    for smoother, is_norm in (("isotonic", False), ("loess", True)):
        linear = estimator_type(smoother).cell_statistic(View(p, y))
        sums = [np.bincount(linear.index, weights, linear.size) for weights in (np.ones(len(p)), p, y)]
        norms = linear.centered_norms(*sums, tuple(x[None] for x in sums))
        assert (norms is not None) == is_norm  # differences of sums have no isotonic curve


@pytest.mark.parametrize("smoother", SMOOTH)
@pytest.mark.parametrize("estimator_type", FAMILY)
def test_the_value_is_that_of_its_own_draws(estimator_type: type[IntegratedIndex], smoother: str) -> None:
    p, y = some()
    p = p.round(1)
    w = np.random.default_rng(2).integers(0, 3, len(p)).astype(float)
    view = View(p, y, w)
    linear = estimator_type(smoother).cell_statistic(view)
    sums = [np.bincount(linear.index, weights, linear.size)[None] for weights in (w, w * p, w * y)]
    assert linear.statistic(*sums) == pytest.approx([estimator_type(smoother).value(view)], rel=1e-12)
    wy = np.repeat(sums[2], 3, axis=0) * [[1], [0.5], [0]]
    expected = [estimator_type(smoother).value(view.with_y(y * c)) for c in (1, 0.5, 0)]
    assert linear.statistic(sums[0], sums[1], wy) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("smoother", SMOOTH)
@pytest.mark.parametrize("estimator_type", FAMILY)
def test_one_score_has_the_distance_of_a_mean(estimator_type: type[IntegratedIndex], smoother: str) -> None:
    # With one score every summary of every curve is |ȳ − p|.
    n, p = 20, 0.3
    linear = estimator_type(smoother).cell_statistic(View([p] * n, [0.0] * n))
    k = np.arange(n + 1)
    values = linear.statistic(np.full((1, 1), float(n)), np.full((1, 1), p * n), k[:, None].astype(float))
    assert values == pytest.approx(np.abs(k / n - p), abs=1e-14)


def test_the_noise_floor_of_loess_is_that_of_its_weights() -> None:
    # For a calibrated model the curve of residuals at a score is a sum of independent terms with known variance; its
    # mean distance is that of a normal, √(2/π) sd, up to a skewness of order 1/√n. Over 4,000 draws the mean of ICI
    # has a standard error of 1 % (sd/mean about .5); 5 % is 4 of them and that.
    rng = np.random.default_rng(4)
    p = rng.uniform(0.2, 0.8, 400)
    linear = IntegratedIndex().cell_statistic(View(p, np.zeros(400)))
    s = np.sort(p)
    draws = (rng.random((4000, 400)) < s).astype(float)
    group_of_row = np.eye(linear.size)[np.sort(linear.index)]  # (400, groups): draws distinguish fewer scores
    mean = linear.statistic(*(x @ group_of_row for x in (np.ones((1, 400)), s[None], draws))).mean()
    fit, _ = curve("loess", p)
    weights = fit(np.eye(400))  # row j: what the outcome at score j adds to the curve
    sd = np.sqrt((weights**2 * (s * (1 - s))[:, None]).sum(axis=0)) / 400
    assert mean == pytest.approx(np.sqrt(2 / np.pi) * sd.mean(), rel=0.05)


def test_the_noise_floor_of_observed_over_expected_is_one() -> None:
    # 4,000 draws of Σy/Σp, whose sd is √Σp(1−p) / Σp: 4 standard errors.
    p, y = some(500)
    linear = ObservedExpected().cell_statistic(View(p, y))
    draws = (np.random.default_rng(5).random((4000, 500)) < p).sum(axis=1, dtype=float)
    values = linear.statistic(np.full((1, 1), 500.0), p.sum()[None, None], draws[:, None])
    sd = np.sqrt((p * (1 - p)).sum()) / p.sum()
    assert values.mean() == pytest.approx(1, abs=4 * sd / np.sqrt(4000))
    assert values.std() == pytest.approx(sd, rel=0.05)  # relative standard error 1/√8000 = 1.1 %
    assert ObservedExpected().expected_if_calibrated(View(p, y)) == 1


# Weights and quantiles


def test_whole_weights_count_rows_in_windows_and_quantiles() -> None:
    p, y = some(40)
    w = np.random.default_rng(1).integers(0, 4, 40).astype(float)
    many = np.repeat(np.arange(40), w.astype(int))
    for smoother in SMOOTH:
        for estimator_type in FAMILY:
            once, repeated = (
                estimator_type(smoother).value(View(p, y, w)),
                estimator_type(smoother).value(View(p[many], y[many])),
            )
            assert once == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_a_weighted_quantile_of_whole_weights_is_that_of_the_repeated_rows(level: float) -> None:
    rng = np.random.default_rng(6)
    for _ in range(50):
        x, w = rng.integers(0, 9, (3, 12)) / 8, rng.integers(0, 4, 12).astype(float)
        w[0] += 1
        quantile = weighted_quantile(x, w / w.sum(), level, 1 / w.sum())
        assert quantile == pytest.approx(np.quantile(np.repeat(x, w.astype(int), axis=1), level, axis=1), abs=1e-12)


def test_a_weighted_quantile_of_other_weights_is_the_inverse_of_the_law() -> None:
    # Weights .2, .3, .5 at 1, 2, 3: half of the weight does not exceed 2, nine tenths do not exceed 3.
    x, share = np.array([3.0, 1.0, 2.0]), np.array([0.5, 0.2, 0.3])
    assert weighted_quantile(x, share, 0.5, 0.0) == 2
    assert weighted_quantile(x, share, 0.5 + 1e-9, 0.0) == 3
    assert weighted_quantile(x, share, 0.9, 0.0) == 3


@pytest.mark.parametrize("smoother", SMOOTH)
def test_the_median_lies_below_the_ninth_decile_and_that_below_the_worst(smoother: str) -> None:
    for seed in range(10):
        view = View(*some(30, seed))
        mean, median, decile, worst = (estimator_type(smoother).value(view) for estimator_type in FAMILY)
        assert 0 <= median <= decile <= worst
        assert mean <= worst


# Edges


def test_a_row_predicted_with_certainty_still_counts() -> None:
    # val.prob takes rows of p = 0 and 1 out without a word: here the row of 0 that came is a distance of 1 of its own.
    view = View([0.0, 0.5, 0.5, 1.0], [1, 0, 1, 1])
    assert WorstDistance().value(view) == pytest.approx(1, rel=1e-12)
    assert IntegratedIndex("isotonic").value(View([0.0] * 3, [0, 0, 1])) == pytest.approx(1 / 3, rel=1e-14)


@pytest.mark.parametrize("smoother", SMOOTH)
def test_ties_everywhere_make_the_curve_the_rates(smoother: str) -> None:
    # 30 rows say .2 (a third came), 30 say .7 (all came): the window of one score that holds enough rows is that
    # score alone, and the other lies at its very end.
    view = View([0.2] * 30 + [0.7] * 30, [1, 0, 0] * 10 + [1] * 30)
    assert IntegratedIndex(smoother).value(view) == pytest.approx((1 / 3 - 0.2 + 0.3) / 2, rel=1e-12)


@pytest.mark.parametrize("smoother", SMOOTH)
@pytest.mark.parametrize("estimator_type", FAMILY)
def test_scores_an_ulp_apart_are_finite(estimator_type: type[IntegratedIndex], smoother: str) -> None:
    p = 0.3 + np.arange(20) * np.spacing(0.3)
    value = estimator_type(smoother).value(View(p, np.arange(20) % 2))
    assert 0 <= value <= 1


def test_few_outcomes_of_one_kind_are_noted() -> None:
    p, y = some(1000)
    assert [note.code for note in IntegratedIndex()(View(p, np.zeros(1000))).notes] == ["TN126"]
    assert "0 events" in IntegratedIndex()(View(p, np.zeros(1000))).notes[0].text
    assert min(y.sum(), 1000 - y.sum()) > 200
    assert not IntegratedIndex()(View(p, y)).notes


def test_nothing_expected_is_infinite_or_undefined_and_says_so() -> None:
    for y, expected in (([1, 0], np.inf), ([0, 0], np.nan)):
        estimate = ObservedExpected()(View([0.0, 0.0], y))
        assert estimate.value == pytest.approx(expected, nan_ok=True)
        assert [note.code for note in estimate.notes] == ["TN125"]
        assert estimate.to_dict()["value"] is None
        full = to.measure(Predictions(y, [0.0, 0.0]), "o_e", resamples=20)
        assert full.interval is None


@pytest.mark.parametrize(
    ("settings", "got"),
    [
        ({"smoother": "loes"}, "loes"),
        ({"smoother": 3}, "3"),
        ({"span": 0}, "0"),
        ({"span": 1.5}, "1.5"),
        ({"span": "wide"}, "wide"),
        ({"span": True}, "True"),
        ({"span": [0.5]}, "0.5"),
        ({"span": float("nan")}, "nan"),
        ({"smoother": "isotonic", "span": 0.5}, "0.5"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], got: str) -> None:
    with refused("TO203", got):
        IntegratedIndex(**settings)


# The full answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings", "method"),
    [
        ("ici", {}, "residual-norm"),
        ("ici", {"smoother": "isotonic"}, "noise-floor"),
        ("e50", {}, "residual-norm"),
        ("e90", {"smoother": "lowess", "span": 0.5}, "residual-norm"),
        ("emax", {"smoother": "lowess"}, "residual-norm"),
        ("o_e", {}, "bca"),
        ("calibration_in_the_large", {}, "bca"),
    ],
)
def test_a_full_answer_has_an_interval_around_the_truth(name: str, settings: dict[str, Any], method: str) -> None:
    # Truth p² for a uniform p: |p − p²| has the mean 1/6, the median 3/16, the ninth decile 1/4 − (1/20)² ≈ .2475
    # (p within .05 of 1/2) and the maximum 1/4; the rates are 1/3 and 1/2.
    # Intervals of 99.9 % may miss once in a thousand.
    rng = np.random.default_rng(8)
    p = rng.random(4500)  # more scores than draws tell apart
    preds = Predictions((rng.random(4500) < p**2).astype(int), p)
    estimate = to.measure(preds, name, resamples=200, level=0.999, **settings)
    truth = {"ici": 1 / 6, "e50": 3 / 16, "e90": 0.2475, "emax": 0.25, "o_e": 2 / 3}.get(name, -1 / 6)
    assert estimate.interval is not None
    assert estimate.interval.method == method
    assert estimate.interval.low < truth < estimate.interval.high
    assert estimate.noise_floor is not None
    if method == "bca":
        assert estimate.noise_floor == (1 if name == "o_e" else 0)
        assert estimate.debiased is None
    else:
        assert 0 < estimate.noise_floor < 0.2 * estimate.value
        assert estimate.settings["smoother"] == settings.get("smoother", "loess")


def test_the_isotonic_median_has_no_interval_and_says_why() -> None:
    p, y = some(100)
    estimate = to.measure(Predictions(y.astype(int), p), "e50", smoother="isotonic", resamples=20)
    assert estimate.interval is None
    assert "TN201" in [note.code for note in estimate.notes]
    assert estimate.noise_floor is not None


def test_isotonic_ici_is_the_mean_distance_to_isotonic_regression() -> None:
    p, y = some(200)
    order = np.argsort(p)
    fit = isotonic_regression(y[order]).x
    assert IntegratedIndex("isotonic").value(View(p, y)) == pytest.approx(np.abs(fit - p[order]).mean(), rel=1e-12)


def test_an_o_e_ratio_far_from_1_is_noted():
    """Risks in percent that are all below 1 %: 0.5 is 0.5 %, so about 1 of 200 rows has the event."""
    percent = np.linspace(0.2, 0.9, 400)
    (note,) = to.measure(np.arange(400) < 2, percent, "o_e").notes
    assert note.code == "TN154"
    assert "0.12 for 12 %" in note.text
    assert not to.measure(np.arange(400) < 2, percent / 100, "o_e").notes
