"""Is smECE the fixed point that its definition names, to six digits?"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests import reference
from tests.data.refused import refused
from trueodds import Predictions, measure
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.distinct_scores import DistinctScores
from trueodds.estimators.smooth_ece import MAX_SORTED_ROWS, SmoothError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


@cache
def view_of(name: str) -> View:
    table = reference.frame(f"estimators/{'c_binary500' if name == 'c' else 'b_multi1000'}.csv")
    preds = Predictions(table["y"], table["p"] if name == "c" else reference.columns(table))
    return as_lens("positive" if name == "c" else "confidence").views(preds)[0]


def plain(view: View, sigma: float, cells: int = 40_000) -> float:
    """N_σ row by row and image by image on a fine grid, nothing transformed."""
    t = np.linspace(0, 1, cells + 1)
    curve = np.zeros(cells + 1)
    radius = math.ceil(5 * sigma) + 1
    for p, y, w in zip(view.p, view.y, view.w, strict=True):
        for image in (2 * j + side * p for j in range(-radius, radius + 1) for side in (1, -1)):
            near = np.abs(t - image) < 9 * sigma
            curve[near] += w * (y - p) * np.exp(-0.5 * ((t[near] - image) / sigma) ** 2)
    size = np.abs(curve) / (sigma * math.sqrt(2 * math.pi) * view.total)
    return float(size.sum() - (size[0] + size[-1]) / 2) / cells


def drawn(rng: np.random.Generator, n: int, shift: float = 0.0) -> View:
    p = rng.random(n) * (1 - shift)
    return View(p, (rng.random(n) < p + shift).astype(float))


# By hand


def test_residuals_of_one_sign_cancel_nowhere() -> None:
    # .5·.2 + .5·.4 = .3 at any bandwidth, so that is the fixed point too.
    view = View([0.8, 0.6], [1, 1])
    for bandwidth in ("auto", 1e-5, 0.01, 0.5, 3.0, 1e6):
        assert float(SmoothError(bandwidth)(view)) == pytest.approx(0.3, rel=1e-12)


@pytest.mark.parametrize("d", [1e-6, 1e-4, 1e-3, 0.02])
def test_two_opposite_residuals_by_hand(d: float) -> None:
    # Masses a = (.5 − d/2)/2 at .5 − d/2 … and −a at .5 + d/2. Far from the ends ∫|φ(t − x) − φ(t − x − d)| dt is
    # 2 erf(d / (2 √2 σ)), so σ* solves 2 a erf(d / (2 √2 σ)) = σ: found here by halving.
    view = View([0.5 - d / 2, 0.5 + d / 2], [1, 0])
    a = (0.5 + d / 2) / 2
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * a * math.erf(d / (2 * math.sqrt(2) * middle)) > middle else (low, middle)
    assert high < 0.08  # so that the ends are six bandwidths away
    assert float(SmoothError()(view)) == pytest.approx(high, abs=1e-6, rel=1e-4)
    for sigma in (0.002, 0.03):
        by_hand = 2 * a * math.erf(d / (2 * math.sqrt(2) * sigma))
        assert float(SmoothError(sigma)(view)) == pytest.approx(by_hand, abs=1e-7)


@pytest.mark.parametrize("side", [0, 1])
def test_scores_that_fill_little_of_the_line_are_measured_as_finely(side: int) -> None:
    # Of rare events, and of sure ones, the gaps are cut out before the transform; the plain sums know no such thing.
    p = np.array([0.001, 0.002, 0.0025, 0.005, 0.008, 0.011, 0.013, 0.02, 0.991])
    y, w = np.array([0, 0, 1, 0, 0, 0, 1, 0, 1]), np.array([300, 200, 1, 90, 80, 99, 1, 30, 9])
    view = View(abs(side - p), abs(side - y), w)
    for sigma in (2e-3, 0.02):
        assert SmoothError(sigma).value(view) == pytest.approx(plain(view, sigma, 100_000), abs=2e-7)
    value = SmoothError().value(view)
    assert 2e-3 < value < np.abs(w * (y - p)).sum() / w.sum()  # neither of one sign nor too narrow to cancel
    assert value == pytest.approx(plain(view, value, 100_000), abs=2e-7)


def test_weights_are_rows() -> None:
    twice = View([0.2, 0.2, 0.2, 0.7], [1, 1, 0, 0])
    once = View([0.2, 0.2, 0.7], [1, 0, 0], [2, 1, 1])
    assert float(SmoothError()(once)) == pytest.approx(float(SmoothError()(twice)), rel=1e-11)


# Reference numbers: shared golden estimators; plain sums over images, trapezoids of 2,000 cells


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "name", "bandwidth"),
    [
        ("c.smece", "c", "auto"),
        ("c.smece_sigma0.02", "c", 0.02),
        ("c.smece_sigma0.05", "c", 0.05),
        ("c.smece_sigma0.1", "c", 0.1),
        ("b_conf.smece", "b", "auto"),
    ],
)
def test_a_reference_number(key: str, name: str, bandwidth: float | str) -> None:
    assert float(SmoothError(bandwidth)(view_of(name))) == pytest.approx(reference.estimators()[key]["value"], abs=1e-6)


@pytest.mark.reference
@pytest.mark.parametrize("name", ["c", "b"])
def test_the_fixed_point_is_the_reference_bandwidth(name: str) -> None:
    key = "c.smece" if name == "c" else "b_conf.smece"
    bandwidth = SmoothError()(view_of(name)).parts["bandwidth"]
    assert bandwidth == pytest.approx(reference.estimators()[key]["sigma_star"], abs=1e-6)


@pytest.mark.parametrize("sigma", [0.003, 0.02, 0.1, 0.3, 0.8])
def test_sums_over_rows_and_images_give_the_same(sigma: float) -> None:
    # The plain sum has its own error, spacing² / 12 · Σ|kinks|: 40,000 cells keep it below 1e-7.
    rng = np.random.default_rng(3)
    p = np.r_[rng.random(40), 0.0, 1.0, 0.5, 0.5]
    view = View(p, (rng.random(len(p)) < p).astype(float), rng.random(len(p)))
    assert SmoothError(sigma).value(view) == pytest.approx(plain(view, sigma), abs=5e-7)


# What the definition implies


def test_the_value_is_the_smoothed_error_at_the_bandwidth_it_found() -> None:
    rng = np.random.default_rng(4)
    for n in (5, 60, 3000):
        view = drawn(rng, n)
        estimate = SmoothError()(view)
        assert SmoothError(estimate.parts["bandwidth"]).value(view) == pytest.approx(estimate.value, abs=2e-7)


def test_wider_smoothing_cancels_more_and_the_mean_gap_never_cancels() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        view = drawn(rng, int(rng.integers(1, 50)))
        values = [SmoothError(sigma).value(view) for sigma in (1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0)]
        gap, mean_absolute = abs((view.y - view.p).mean()), np.abs(view.y - view.p).mean()
        assert all(a >= b - 1e-7 for a, b in zip([mean_absolute, *values], [*values, gap], strict=True))
        assert gap - 1e-12 <= SmoothError().value(view) <= mean_absolute + 1e-12


@pytest.mark.parametrize("bandwidth", ["auto", 0.07])
def test_the_error_is_subadditive_in_the_residuals(bandwidth: float | str) -> None:
    # The triangle inequality carries the interval; it is proved beside the class. 2e-7 is the error of the integral.
    rng = np.random.default_rng(6)
    s = np.sort(rng.random(30))
    read = SmoothError(bandwidth).evaluate_scores(s, np.full(30, 1 / 30), View(s, s))
    one, other = rng.normal(size=(2, 200, 30)) / 60 * rng.choice([0.05, 1.0], (2, 200, 1))
    zero = np.zeros(30)
    both = read(zero, zero, one + other)
    assert (both <= read(zero, zero, one) + read(zero, zero, other) + 4e-7).all()
    assert (read(zero, zero, -one) == read(zero, one, zero)).all()


def test_nothing_observed_off_is_zero() -> None:
    assert SmoothError().value(View([0.0, 1.0, 1.0], [0, 1, 1])) == 0
    assert SmoothError(0.1).value(View([0.0, 1.0, 1.0], [0, 1, 1])) == 0
    assert SmoothError().value(View([0.25] * 4, [1, 0, 0, 0])) == 0  # within one score


# Draws


@pytest.mark.parametrize("n", [12, 900])
def test_a_draw_does_not_depend_on_the_draws_beside_it(n: int) -> None:
    rng = np.random.default_rng(7)
    view = drawn(rng, n)
    one = SmoothError().cell_statistic(view)
    assert one is not None
    w, wp = (np.bincount(one.index, x, one.size) for x in (view.w, view.p))
    labels = np.stack([view.y, *((rng.random((40, n)) < view.p) * 1.0), 1 - view.y])
    wy = np.stack([np.bincount(one.index, y, one.size) for y in labels])
    values = one.statistic(w[None], wp[None], wy)
    separate = [SmoothError().value(view.with_y(y)) for y in labels]
    assert values == pytest.approx(np.array(separate), rel=1e-10)
    assert values[0] == pytest.approx(one.value(), rel=1e-10)


def test_draws_of_many_scores_pool_neighbors_only() -> None:
    # 9,000 scores in 4,096 groups: a residual moves by at most a group's width, 1/4096 of the weight, so N_σ changes
    # by less than (width / σ) sqrt(2/π) Σ|residual|, here below 3 %; signs make it far less.
    view = drawn(np.random.default_rng(8), 9000)
    one = SmoothError().cell_statistic(view)
    assert one is not None
    assert one.size <= 4096
    sums = [np.bincount(one.index, x, one.size)[None] for x in (view.w, view.p, view.y)]
    assert one.statistic(*sums)[0] == pytest.approx(SmoothError().value(view), rel=0.01)


# Chance


@pytest.mark.slow
def test_the_mean_of_a_calibrated_model_at_a_fixed_bandwidth() -> None:
    # r(t) is a sum of n independent terms of variance p(1 − p) K(t, p)² / n², nearly normal, so E|r(t)| is
    # sqrt(2/π) sd(t) up to a share (excess kurtosis)/24 < 1/n_eff/24, n_eff = n σ 2 √π ≈ 350: 1e-4. The mean of 200
    # draws errs by sd/√200; 4.5 of those leave one failure in 1e5 (and the seed is fixed).
    rng = np.random.default_rng(9)
    n, sigma, draws = 2000, 0.05, 200
    p = rng.random(n)
    t = (np.arange(400) + 0.5) / 400
    images = np.concatenate([2 * j + side * p for j in (-1, 0, 1) for side in (1, -1)]).reshape(6, n)
    kernel = np.exp(-0.5 * ((t[:, None, None] - images) / sigma) ** 2).sum(axis=1) / (sigma * math.sqrt(2 * math.pi))
    sd = np.sqrt((kernel**2 * p * (1 - p)).sum(axis=1)) / n
    noise_floor = math.sqrt(2 / math.pi) * sd.mean()
    values = [SmoothError(sigma).value(View(p, (rng.random(n) < p) * 1.0)) for _ in range(draws)]
    assert np.mean(values) == pytest.approx(noise_floor, abs=4.5 * np.std(values) / draws**0.5 + 1e-3 * noise_floor)
    # At the fixed point, by Jensen, below (2/π · mean v / (2 √π n))^(1/3), the .56 (v/n)^(1/3) of the docstring.
    upper_bound = (2 / math.pi * (p * (1 - p)).mean() / (2 * math.sqrt(math.pi) * n)) ** (1 / 3)
    auto = [SmoothError().value(View(p, (rng.random(n) < p) * 1.0)) for _ in range(draws)]
    assert 0.8 * upper_bound < np.mean(auto) < upper_bound + 4.5 * np.std(auto) / draws**0.5


def test_a_known_error_is_found() -> None:
    # All outcomes come at p + .1: the truth is .1 at any bandwidth, and at n = 20,000 nothing cancels.
    rng = np.random.default_rng(10)
    values = [SmoothError().value(drawn(rng, 20_000, 0.1)) for _ in range(20)]
    assert np.mean(values) == pytest.approx(0.1, abs=4.5 * np.std(values) / 20**0.5)


# Peers' faults and edges


def test_ties_do_not_depend_on_their_order() -> None:
    rng = np.random.default_rng(11)
    p, y = rng.integers(0, 11, 300) / 10, rng.integers(0, 2, 300) * 1.0
    order = np.lexsort((y, p))
    assert SmoothError().value(View(p, y)) == pytest.approx(SmoothError().value(View(p[order], y[order])), rel=1e-11)


def test_the_worst_data_give_the_number_that_belongs_to_them() -> None:
    assert float(SmoothError()(View([0.3], [1]))) == pytest.approx(0.7, rel=1e-12)
    assert float(SmoothError()(View([1.0, 1.0], [0, 0]))) == pytest.approx(1, rel=1e-12)  # all wrong, said for sure
    assert float(SmoothError()(View([0.2, 0.9], [1, 0], [1, 0]))) == pytest.approx(0.8, rel=1e-12)
    above_one = np.float32(1) + np.finfo(np.float32).eps  # kept as it is, beyond the last node
    assert float(SmoothError()(View(np.array([above_one]), [0]))) == pytest.approx(1, abs=1e-6)
    # Everything wrong at both ends: ±.5 at 0 and at 1 cancel only in the long waves of a wide Gaussian.
    ends = SmoothError()(View([0.0, 1.0], [1, 0]))
    assert ends.value == pytest.approx(plain(View([0.0, 1.0], [1, 0]), ends.value), abs=1e-6)
    many = np.random.default_rng(12).dirichlet(np.full(1000, 0.02), 30)
    (top,) = as_lens("confidence").views(Predictions(np.zeros(30, int), many))
    assert 0 <= float(SmoothError()(top)) <= 1


def test_rates_that_match_score_by_score_leave_nothing_over() -> None:
    # Rates match in 81 scores of 100 rows; one outcome more leaves a residual of one row in 8,100, of one sign.
    p = np.repeat(np.arange(1, 82) / 100, 100)
    y = np.concatenate([np.arange(100) < k for k in range(1, 82)]).astype(float)
    assert SmoothError().value(View(p, y)) < 1e-12
    y[50] = 1.0
    assert SmoothError().value(View(p, y)) == pytest.approx(1 / 8100, rel=1e-9)


@pytest.mark.parametrize("bandwidth", [0, -0.1, 1e-6, float("nan"), float("inf"), True, None, "silverman", [0.1]])
def test_a_bandwidth_that_is_none_is_refused(bandwidth: Any) -> None:
    with refused("TO203", fix="auto"):
        SmoothError(bandwidth)


@pytest.mark.slow
def test_the_answer_has_interval_floor_and_bandwidth() -> None:
    rng = np.random.default_rng(13)
    p = rng.random(400)
    estimate = measure(Predictions((rng.random(400) < p**2).astype(int), p), "smece", rng=0)
    assert ESTIMATORS.make("smece", {"bandwidth": 0.05}) == SmoothError(0.05)
    assert estimate.settings["bandwidth"] == "auto"
    assert estimate.parts["bandwidth"] == pytest.approx(estimate.value, rel=1e-9)
    assert estimate.interval is not None
    assert estimate.noise_floor is not None
    assert (estimate.interval.method, estimate.noise_floor < estimate.value) == ("residual-norm", True)
    assert estimate.interval.low < 1 / 6 < estimate.interval.high  # E(p − p²): all true residuals have one sign


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bandwidth", ["auto", 0.01, 0.3])
def test_many_rows_spread_as_they_come_give_the_number_of_sorted_scores(bandwidth: Any, dtype: Any) -> None:
    # What the grid loses is aliasing, documented as below 1e-6; sorted scores are spread on a grid of their own.
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, MAX_SORTED_ROWS + 1).astype(dtype)
    y, w = (rng.random(len(p)) < p**1.1).astype(float), rng.random(len(p))
    for view in (View(p, y), View(p, y, w), View(p.round(1), y)):
        one = SmoothError(bandwidth).score_statistic(view)
        assert one.value() == pytest.approx(DistinctScores.value(one), abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("lens", ["confidence", "class:1"])
def test_the_number_straight_from_the_rows_is_that_of_their_columns(lens: str) -> None:
    rng = np.random.default_rng(2)
    P = rng.dirichlet(np.ones(3) / 2, MAX_SORTED_ROWS + 1).astype(np.float32)
    preds = Predictions(rng.integers(0, 3, len(P)), P)
    (view,) = as_lens(lens).views(preds)
    assert view.rows is not None
    assert not view.has_columns
    straight = SmoothError().score_statistic(view).value()
    columns = View(view.p, view.y)
    assert straight == pytest.approx(SmoothError().score_statistic(columns).value(), rel=1e-9)


def test_many_rows_of_rare_events_are_sorted_where_the_grid_is_too_coarse() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(MAX_SORTED_ROWS + 1) / 1e5
    view = View(p, (rng.random(len(p)) < p).astype(float))
    one = SmoothError().score_statistic(view)
    assert one.value() == DistinctScores.value(one) < 3e-4
