"""The CME test agrees with the published one and keeps its level."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

import trueodds as to
from tests import reference
from tests.data.refused import refused
from trueodds.core.typing import Array
from trueodds.hypotests.cme import MeanEmbedding, choose_locations
from trueodds.kernels.random_labels import draw_labels_by_row
from trueodds.lenses.view import View

CORNERS = ([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [0, 0, 1])


@cache
def anchors() -> Any:
    return reference.golden("anchors/golden.json")["kernel_and_ece"]


def one_hot(P: Array, y: Array) -> View:
    return View(P, np.eye(P.shape[1])[np.asarray(y, dtype=int)], classes=P.shape[1])


def calibrated(n: int, seed: int, k: int = 3) -> to.Predictions:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return to.Predictions((P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), P)


def codes(verdict: Any) -> list[str]:
    return [note.code for note in verdict.notes]


@pytest.mark.parametrize(
    ("labels", "ucme"),
    [
        ((0, 1), 0.0),  # sure and right
        # Only row 1 is wrong, residual (1, −1): μ = ± ½ k(p₁, t), so the mean of k²/4 = (e⁻² + e^(−½) + 1) / 12
        ((0, 0), (math.exp(-2) + math.exp(-0.5) + 1) / 12),
        ((1, 1), (math.exp(-2) + math.exp(-0.5) + 1) / 12),
        # Both wrong: μ = ± ½ (k(p₁, t) − k(p₀, t)), which is 0 in the middle: 2 (1 − 1/e)² / 12
        ((1, 0), (1 - math.exp(-1)) ** 2 / 6),
    ],
)
@pytest.mark.parametrize("joint", [True, False])
def test_ucme_by_hand(labels: tuple[int, int], ucme: float, joint: bool) -> None:
    # Also the literals of CalibrationErrors.jl's own tests, for k = exp(−‖p − q‖² / 2).
    view = one_hot(np.eye(2), np.array(labels)) if joint else View([0.0, 1.0], np.array(labels, dtype=float))
    result = MeanEmbedding(locations=CORNERS, kernel="gaussian", bandwidth=1.0).evaluate(view)
    assert result.effect**2 == pytest.approx(ucme, rel=1e-14)
    assert result.parts["ucme"]["squared"] == pytest.approx(ucme, rel=1e-14)


@pytest.mark.reference
@pytest.mark.parametrize("key", ["(0, 1)", "(0, 0)", "(1, 0)", "(1, 1)"])
def test_the_literals_of_the_julia_package(key: str) -> None:
    truth = anchors()["g3cal_200"]["calibrationerrors_jl_literals"][key]
    labels = np.array([int(c) for c in key if c.isdigit()])
    result = MeanEmbedding(locations=CORNERS, kernel="gaussian", bandwidth=1.0).evaluate(one_hot(np.eye(2), labels))
    assert result.effect**2 == pytest.approx(truth["expected_ucme"], rel=1e-12)


@pytest.mark.reference
@pytest.mark.parametrize("data", ["g3_200", "g3cal_200"])
@pytest.mark.parametrize(
    ("key", "kernel"), [("exp_euclid", "exponential"), ("exp_tv", "tv-exponential"), ("sqexp_euclid", "gaussian")]
)
def test_the_numbers_of_the_julia_package_s_formulas(data: str, key: str, kernel: str) -> None:
    table = reference.frame(f"anchors/synthetic/{data}.csv")
    at = reference.frame("anchors/synthetic/g3_ucme_locations.csv")
    locations = (reference.columns(at, "t"), at["y"].astype(int))
    truth = anchors()[data]["ucme"][key]
    result = MeanEmbedding(locations=locations, kernel=kernel, bandwidth=1.0).evaluate(
        one_hot(reference.columns(table), table["y"])
    )
    assert result.statistic == pytest.approx(truth["Q"], rel=1e-10)
    assert result.pvalue == pytest.approx(truth["pvalue_chi2"], rel=1e-9)
    assert result.effect == pytest.approx(math.sqrt(truth["ucme_sq"]), rel=1e-10)
    assert result.parts["ucme"]["df"] == truth["df"] == 5


def test_one_location_is_a_t_test() -> None:
    # One place far from nothing: Q is the square of the t statistic of k (y − p).
    rng = np.random.default_rng(0)
    p, y = rng.random(40), (rng.random(40) < 0.5).astype(float)
    result = MeanEmbedding(locations=([0.3], [1]), kernel="tv-exponential", bandwidth=0.5).evaluate(View(p, y))
    t = stats.ttest_1samp(np.exp(-np.abs(p - 0.3) / 0.5) * (y - p), 0.0)
    assert result.statistic == pytest.approx(t.statistic**2, rel=1e-12)
    other = MeanEmbedding(locations=([0.3], [0]), kernel="tv-exponential", bandwidth=0.5).evaluate(View(p, y))
    assert other.statistic == pytest.approx(result.statistic, rel=1e-13)  # the other outcome's residual is the negative


def test_weights_enter_the_variance_as_squares() -> None:
    # Rows of weights 1 and 0: those of weight 0 are none. All of weight 3: nothing changes.
    preds = calibrated(60, 0)
    view = one_hot(preds.P, preds.y)
    w = np.repeat([1.0, 0.0], 30)
    half = MeanEmbedding(locations=(preds.P[:3], [0, 1, 2]), bandwidth=0.5)
    weighted, part = half.evaluate(View(view.p, view.y, w)), half.evaluate(View(view.p[:30], view.y[:30]))
    assert weighted.statistic == pytest.approx(part.statistic, rel=1e-11)
    assert half.evaluate(View(view.p, view.y, np.full(60, 3.0))).statistic == pytest.approx(
        half.evaluate(view).statistic, rel=1e-11
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_a_redraw_is_the_statistic_with_other_labels(weighted: bool) -> None:
    preds = calibrated(50, 1)
    w = np.random.default_rng(0).integers(0, 3, 50).astype(float) if weighted else None
    view, test = View(preds.P, np.eye(3)[preds.y], w), MeanEmbedding(locations=3)
    labels = draw_labels_by_row(preds.P, 9, 0, 6)
    cells = test.cell_statistic(view)
    assert cells.statistic_from_labels is not None
    y = np.eye(3)[labels.T]
    expected = [test.evaluate(view.with_y(one)).statistic for one in y]
    np.testing.assert_allclose(cells.statistic_from_labels(labels), expected, rtol=1e-9)
    wide = view.w[:, None]
    np.testing.assert_allclose(cells.statistic(view.w[None], (wide * view.p)[None], wide * y), expected, rtol=1e-9)
    binary = View(preds.P[:, 1], y[0, :, 1], w)
    events = y[:, :, 1]
    statistics = test.cell_statistic(binary).statistic(binary.w[None], (binary.w * binary.p)[None], binary.w * events)
    np.testing.assert_allclose(statistics, [test.evaluate(binary.with_y(one)).statistic for one in events], rtol=1e-9)


def test_locations_do_not_know_the_labels_or_the_order_of_rows() -> None:
    preds = calibrated(80, 2)
    view = one_hot(preds.P, preds.y)
    order = np.random.default_rng(0).permutation(80)
    a, b, c = (
        choose_locations(view, 5),
        choose_locations(view.take(order), 5),
        choose_locations(view.with_y(view.y[order]), 5),
    )
    for other in (b, c):
        assert a.points.tolist() == other.points.tolist()
        assert a.outcome.tolist() == other.outcome.tolist()
    assert len(choose_locations(View(np.full(60, 0.3), np.zeros(60)), 5).points) == 1  # equal ones are one
    assert len(choose_locations(view.take(order[:25]), 5).points) == 2  # ten rows each


@pytest.mark.slow
def test_size_under_the_null() -> None:
    # Rejections at 5 % over 200 data sets are Binomial(200, .05) for `redraw`: at most 21 in 99.9 %.
    rejected = sum(to.test(calibrated(60, seed), "cme", resamples=99).pvalue <= 0.05 for seed in range(200))
    assert 1 <= rejected <= 21


@pytest.mark.slow
def test_the_asymptotic_law_is_doubted_where_it_rejects_too_often() -> None:
    # Over 200 data sets a test that keeps 5 % rejects at most 21 times in 99.9 %; this one is told not to.
    rejected = sum(
        to.test(calibrated(50, seed, 2), "cme", null="asymptotic", bandwidth=0.5).pvalue <= 0.05 for seed in range(200)
    )
    assert rejected > 21
    small = to.test(calibrated(50, 0, 2), "cme", null="asymptotic")
    assert any(note.code == "TN212" and "effective" in note.text for note in small.notes)
    assert "TN212" not in codes(to.test(calibrated(50, 0, 2), "cme", resamples=19))
    assert "TN212" not in codes(to.test(calibrated(3000, 0), "cme", null="asymptotic"))


@pytest.mark.slow
def test_the_asymptotic_law_holds_where_it_is_not_doubted() -> None:
    # Rejections over at most 100 data sets are about Binomial(100, .05): at most 13 in 99.9 %.
    verdicts = [to.test(calibrated(3000, seed), "cme", null="asymptotic") for seed in range(100)]
    undoubted = [one for one in verdicts if "TN212" not in codes(one)]
    assert len(undoubted) > 50
    assert sum(one.pvalue <= 0.05 for one in undoubted) <= 13


def test_locations_that_say_the_same_are_counted_once() -> None:
    preds = calibrated(100, 3)
    view = one_hot(preds.P, preds.y)
    once = MeanEmbedding(locations=(preds.P[:2], [0, 1]), null="asymptotic").evaluate(view)
    twice = MeanEmbedding(locations=(preds.P[[0, 1, 1]], [0, 1, 1]), null="asymptotic").evaluate(view)
    assert twice.statistic == pytest.approx(once.statistic, rel=1e-6)
    assert (twice.parts["ucme"]["df"], once.parts["ucme"]["df"]) == (2, 2)
    assert [note.code for note in twice.notes] == ["TN220"]
    assert not once.notes
    # Two classes of a vector have opposite residuals.
    both = MeanEmbedding(locations=([[0.5, 0.5]] * 2, [0, 1])).evaluate(one_hot(preds.P[:, :2] * [1, 1], preds.y % 2))
    assert both.parts["ucme"]["df"] <= 2


def test_nothing_seen_is_no_surprise_and_what_never_varies_is() -> None:
    y = np.arange(30) % 3
    verdict = to.test(to.Predictions(y, np.eye(3)[y]), "cme", resamples=19)
    assert (verdict.statistic, verdict.effect, verdict.pvalue) == (0.0, 0.0, 1.0)
    assert "TN220" in codes(verdict)
    every = to.test(to.Predictions([1] * 30, np.full(30, 0.5)), "cme", resamples=19)
    assert every.statistic == math.inf
    assert every.to_dict()["statistic"] is None
    assert every.pvalue == 0.05


def test_the_settings_used_are_reported() -> None:
    verdict = to.test(calibrated(200, 0), "cme", resamples=19, locations=4, kernel="gaussian", bandwidth=0.2)
    assert (
        verdict.settings.items() >= {"locations": 4, "kernel": "gaussian", "bandwidth": 0.2, "null": "redraw"}.items()
    )
    assert verdict.lens == "canonical"
    assert "χ²" in to.test(calibrated(200, 0), "cme", null="asymptotic").null


def test_meaningless_settings_are_refused() -> None:
    for bad, got in ((0, "0"), (True, "True"), (2.5, "2.5"), ("5", "'5'"), (None, "None"), ((1, 2, 3), "3 values")):
        with refused("TO203", got):
            MeanEmbedding(locations=bad)
    with refused("TO203", "'gausian'", fix="gaussian"):
        MeanEmbedding(kernel="gausian")
    view = one_hot(np.full((20, 3), 1 / 3), np.zeros(20))
    for locations in (([[0.5, 0.5]], [0]), (np.eye(3), [0, 1])):
        with refused("TO205", "T ("):
            MeanEmbedding(locations=locations).evaluate(view)
    with refused("TO101", "0.5"):
        MeanEmbedding(locations=(0.5, 1)).evaluate(view)
    with refused("TO203", "outside"):
        MeanEmbedding(locations=([[2.0, -1.0, 0.0]], [0])).evaluate(view)
    for outcome in ([3], [-1], [0.5]):
        with refused("TO203", fix="2"):
            MeanEmbedding(locations=([[0.2, 0.3, 0.5]], outcome)).evaluate(view)
    with refused("TO403"):
        to.test(to.tally(calibrated(20, 0)), "cme")


@pytest.mark.parametrize("null", ["asymptotic", "redraw"])
def test_one_row_has_no_variance_and_no_p(null):
    verdict = to.test(to.Predictions([1], [0.3]), "cme", null=null, resamples=19)
    assert np.isnan(verdict.statistic)
    assert np.isnan(verdict.pvalue)
    assert "TN118" in [note.code for note in verdict.notes]
