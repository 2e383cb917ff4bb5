"""Is the interval calibration error the exact mean over all shifts, at the best width?"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests import reference
from tests.data.refused import refused
from trueodds import Predictions, measure
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.interval_error import IntervalError
from trueodds.lenses.view import View


@cache
def binary() -> View:
    table = reference.frame("estimators/c_binary500.csv")
    return View(table["p"], table["y"])


def shift_by_shift(view: View, width: float) -> float:
    """The mean over r in [0, width): between two shifts at which a row changes its interval nothing happens."""
    residual = view.w * (view.y - view.p) / view.total
    turns = np.unique(np.r_[0.0, width, np.mod(-view.p, width)])
    total = 0.0
    for a, b in pairwise(turns):
        cell = np.floor((view.p + (a + b) / 2) / width).astype(int)
        total += (b - a) * np.abs(np.bincount(cell, residual)).sum()
    return total / width


def some(seed: int, n: int = 40) -> View:
    rng = np.random.default_rng(seed)
    p = np.r_[rng.random(n), rng.integers(0, 9, n) / 8, 0.0, 1.0]
    return View(p, (rng.random(len(p)) < 0.5) * 1.0, rng.random(len(p)))


# By hand


def test_two_rows_by_hand() -> None:
    # Residuals −.1 at .2 and .2 at .3 (shares of a half). An interval of width 1 holds both unless an end falls
    # between them: .9 · .1 + .1 · .3 = .12. At width .5: .8 · .1 + .2 · .3; at .25: .6 · .1 + .4 · .3; and so on.
    view = View([0.2, 0.3], [0, 0.7])
    for width, inside in ((1.0, 0.9), (0.5, 0.8), (0.25, 0.6), (0.125, 0.2), (0.0625, 0.0)):
        error = inside * 0.1 + (1 - inside) * 0.3
        estimate = IntervalError(width)(view)
        assert estimate.parts["error"] == pytest.approx(error, rel=1e-12)
        assert estimate.value == pytest.approx(error + width, rel=1e-12)
    # Best is no width at all: .3, where .26 + .125 and .3 + .0625 are more.
    assert IntervalError()(view).parts == pytest.approx({"error": 0.3, "width": 0.0})


def test_the_best_width_is_neither_the_widest_nor_the_narrowest() -> None:
    # ±.5 alternate at 64 scores of distance 1/64: interval of width ε = 2^-k holds 64 ε of them, an even number that
    # cancels down to nothing once ε ≥ 1/32 and scores lie inside, so 1/32 + what the open ends leave is best.
    p = (np.arange(64) + 0.5) / 64
    view = View(p, p + np.where(np.arange(64) % 2, 0.5, -0.5))
    sums = {2.0**-k: shift_by_shift(view, 2.0**-k) + 2.0**-k for k in range(9)}
    estimate = IntervalError()(view)
    assert estimate.value == pytest.approx(min(sums.values()), rel=1e-10)
    assert estimate.parts["width"] == min(sums, key=lambda width: sums[width])
    assert 2**-8 < estimate.parts["width"] < 1


# Reference numbers: shared golden estimators (checked against the authors' code within its Monte-Carlo error)


@pytest.mark.reference
def test_the_reference_table() -> None:
    for width, error, both in reference.estimators()["c.rintce_table"]["value"]:
        estimate = IntervalError(width)(binary())
        assert estimate.parts == pytest.approx({"error": error, "width": width}, rel=1e-10)
        assert estimate.value == pytest.approx(both, rel=1e-10)


@pytest.mark.reference
def test_the_reference_minimum() -> None:
    estimate = IntervalError()(binary())
    assert estimate.value == pytest.approx(reference.estimators()["c.rintce_min"]["value"], rel=1e-10)
    assert estimate.parts["width"] == 1 / 32


@pytest.mark.parametrize("width", [1.0, 0.5, 0.125, 0.3, 0.07])
@pytest.mark.parametrize("seed", range(3))
def test_shift_by_shift_it_is_the_same(seed: int, width: float) -> None:
    view = some(seed)
    assert IntervalError(width).value(view) == pytest.approx(shift_by_shift(view, width) + width, rel=1e-10)


# What the definition implies


def test_narrower_intervals_let_more_through_and_the_best_is_below_each() -> None:
    for seed in range(20):
        view = some(seed, 15)
        errors = [IntervalError(2.0**-k).value(view) - 2.0**-k for k in range(14)]
        assert all(a <= b + 1e-12 for a, b in pairwise(errors))
        value = IntervalError().value(view)
        assert value <= min(error + 2.0**-k for k, error in enumerate(errors)) + 1e-12
        assert errors[0] - 1e-12 <= value
        assert abs(view.w @ (view.y - view.p)) / view.total - 1e-12 <= errors[0]


def test_the_error_is_subadditive_in_the_residuals() -> None:
    # The triangle inequality carries the interval; it is proved beside the class.
    rng = np.random.default_rng(6)
    s, zero = np.sort(rng.random(25)), np.zeros(25)
    for bandwidth in ("auto", 0.125):
        read = IntervalError(bandwidth).evaluate_scores(s, np.full(25, 0.04), View(s, s))
        one, other = rng.normal(size=(2, 300, 25)) / 25 * rng.choice([0.05, 1.0], (2, 300, 1))
        assert (read(zero, zero, one + other) <= read(zero, zero, one) + read(zero, zero, other) + 1e-12).all()


def test_a_draw_does_not_depend_on_the_draws_beside_it() -> None:
    rng = np.random.default_rng(7)
    p = rng.random(60)
    view = View(p, (rng.random(60) < p) * 1.0)
    one = IntervalError().cell_statistic(view)
    w, wp = (np.bincount(one.index, x, one.size)[None] for x in (view.w, view.p))
    labels = np.stack([view.y, *((rng.random((30, 60)) < p) * 1.0)])
    values = one.statistic(w, wp, np.stack([np.bincount(one.index, y, one.size) for y in labels]))
    assert values == pytest.approx(np.array([IntervalError().value(view.with_y(y)) for y in labels]), rel=1e-12)


# Chance


def absolute_mean(p: Array) -> float:
    """E|Σ(y − p)| for independent y, exactly: the law of the count by convolution."""
    pmf = np.ones(1)
    for prob in p:
        pmf = np.convolve(pmf, [1 - prob, prob])
    return float(pmf @ np.abs(np.arange(len(pmf)) - p.sum()))


def test_the_mean_of_a_calibrated_model_at_a_fixed_width_is_its_exact_noise_floor() -> None:
    # Given p the mean of R is (1/ε) ∫ E|Σ of y − p in [a, a + ε)| da / n, a sum of Poisson-binomial moments over the
    # stretches of a. The mean of 300 draws errs by sd/√300; 4.5 of those leave one failure in 1e5 (the seed is fixed).
    rng = np.random.default_rng(8)
    n, width, draws = 60, 0.25, 300
    p = np.sort(rng.random(n))
    ends = np.sort(np.r_[p, p - width])
    middle = (ends[:-1] + ends[1:]) / 2
    window_means = [absolute_mean(p[(p >= a) & (p < a + width)]) for a in middle]
    noise_floor = float(np.diff(ends) @ window_means) / width / n
    errors = [IntervalError(width)(View(p, (rng.random(n) < p) * 1.0)).parts["error"] for _ in range(draws)]
    assert np.mean(errors) == pytest.approx(noise_floor, abs=4.5 * np.std(errors) / draws**0.5)


def test_the_mean_of_a_calibrated_model_follows_the_rule_of_the_docstring() -> None:
    # R ≈ c ε^−1/2 with c = sqrt(2/π · mean p(1 − p) / n),
    # so the best sum over all ε is 3 (c/2)^(2/3) = 1.63 (v/n)^(1/3) by Jensen at most;
    # halvings alone are at most 6 % above the best ε (ratio √2: (√2 + 2^-1/4 · 2)/3 = 1.032).
    rng = np.random.default_rng(9)
    n = 4000
    p = rng.random(n)
    values = [IntervalError().value(View(p, (rng.random(n) < p) * 1.0)) for _ in range(40)]
    approximation = 1.63 * ((p * (1 - p)).mean() / n) ** (1 / 3)
    assert 0.85 * approximation < np.mean(values) < 1.06 * approximation


def test_a_known_error_is_found_with_its_width() -> None:
    # All outcomes come at p + .1, so R is the mean gap at every width at which no interval's sum changes its sign: in
    # 1/64 there are 1,700 rows, whose mean residual .1 is nine of its own standard errors. The mean gap errs by at
    # most .5/√n; 4.5 of those leave one failure in 1e5 (and the seed is fixed).
    rng = np.random.default_rng(10)
    n = 100_000
    p = rng.random(n) * 0.9
    estimate = IntervalError()(View(p, (rng.random(n) < p + 0.1) * 1.0))
    assert estimate.parts["error"] == pytest.approx(0.1, abs=4.5 * 0.5 / n**0.5)
    assert estimate.value == pytest.approx(0.1 + estimate.parts["width"], abs=4.5 * 0.5 / n**0.5)
    assert estimate.parts["width"] <= 1 / 64


# Peers' faults and edges


def test_the_number_has_no_chance_in_it() -> None:
    # The authors' code draws 100 shifts, so that its number varies from call to call.
    view = some(11)
    assert IntervalError().value(view) == IntervalError().value(view)
    order = np.random.default_rng(0).permutation(len(view.p))
    assert IntervalError().value(view.take(order)) == pytest.approx(IntervalError().value(view), rel=1e-12)


def test_the_worst_data_give_the_number_that_belongs_to_them() -> None:
    assert float(IntervalError()(View([0.3], [1]))) == pytest.approx(0.7)
    assert float(IntervalError()(View([0.0, 1.0, 1.0], [0, 1, 1]))) == 0  # all right, said for sure
    assert float(IntervalError()(View([1.0, 1.0], [0, 0]))) == 1  # all wrong, said for sure
    assert float(IntervalError()(View([0.2, 0.9], [1, 0], [1, 0]))) == pytest.approx(0.8)  # weight 0 is no row
    assert float(IntervalError(0.5)(View([0.0, 1.0], [0, 1]))) == 0.5  # a given width is always added


@pytest.mark.parametrize("bandwidth", [0, -0.1, 1.5, float("nan"), True, None, "best", [0.1]])
def test_a_width_that_is_none_is_refused(bandwidth: Any) -> None:
    with refused("TO203", fix="auto"):
        IntervalError(bandwidth)


def test_the_answer_has_interval_floor_and_both_terms() -> None:
    rng = np.random.default_rng(13)
    p = rng.random(400)
    estimate = measure(Predictions((rng.random(400) < p**2).astype(int), p), "interval_ce", rng=0)
    assert ESTIMATORS.make("interval_ce", {"bandwidth": 0.25}) == IntervalError(0.25)
    assert estimate.settings["bandwidth"] == "auto"
    assert estimate.parts["error"] + estimate.parts["width"] == pytest.approx(estimate.value, rel=1e-12)
    assert estimate.interval is not None
    assert estimate.noise_floor is not None
    # The truth is E(p − p²) = 1/6: of one sign, so no interval is too narrow.
    assert estimate.interval.low < 1 / 6 < estimate.interval.high
    assert estimate.noise_floor < estimate.value
