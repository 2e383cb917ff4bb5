"""Is the kernel density error the published one, and does its curve keep every row and its own bandwidth?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests import reference
from tests.data.refused import refused
from tests.estimators.values_by_view import measure_views
from trueodds import Predictions, measure, test
from trueodds.binning.sorted_scores import sort_by_score, weighted_quantiles
from trueodds.estimators._smoothing.kernel_density import KERNELS, BetaKernelSums, ReflectedKernelSums
from trueodds.estimators.ece_kde import (
    KernelDensityError,
    calibration_curve,
    silverman_bandwidth,
)
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

SETS = ("A_bin40", "B_3c120", "C_5c500", "D_rf200", "E_4c30_missing", "F_bin2000_cal", "G_bin30_edges")
WIDTHS = ("silverman", 0.1, 0.033)


@cache
def preds(name: str) -> Predictions:
    table = reference.frame(f"posocco/data/{name}.csv")
    return Predictions(table["y"], reference.columns(table, "s"))


@cache
def golden(file: str = "golden") -> Any:
    return reference.golden(f"posocco/{file}.json")


def view(name: str, lens: str) -> View:
    (lens_view,) = as_lens(lens).views(preds(name))
    return lens_view


# By hand


def test_one_row_is_off_by_what_it_did_not_say() -> None:
    # It came, said .5: ∫ (1 − s) K = 1 − .5, for K is symmetric and does not reach 0 or 1. A grid of 51 cells in a
    # bandwidth leaves ripples where the density is 0, of 1e-10.
    assert KernelDensityError(0.05).value(View([0.5], [1])) == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize(
    ("kernel", "mean"),
    [("triweight", 35 * 3 / 128), ("gaussian", (2 / np.pi) ** 0.5), ("epanechnikov", 3 * 5**0.5 / 8)],
)
def test_the_bandwidth_is_the_standard_deviation_of_every_kernel(kernel: str, mean: float) -> None:
    # KDEpy's bw is the standard deviation too: read as half-width of the triweight it is three times too narrow.
    # A row at 0 that did not come: ∫ s K mirrored at 0 = E|U|, which is 35/128 of the half-width 3h of a triweight,
    # 3/8 of the half-width √5 h of a parabola, √(2/π) h of a Gaussian. The grid errs by (cell/h)² at most: 1e-4 of h.
    assert KernelDensityError(0.1, kernel).value(View([0.0], [0])) == pytest.approx(0.1 * mean, abs=1e-5)
    u = np.linspace(-1, 1, 200_001) * KERNELS[kernel].radius
    density = KERNELS[kernel].density(u)
    step = u[1] - u[0]
    assert density.sum() * step == pytest.approx(1, abs=1e-8)
    assert (density * u**2).sum() * step == pytest.approx(1, abs=1e-8)
    for z in (0.0, 0.3, 2.0, 7.0):
        transform = float(KERNELS[kernel].transform(np.array(z)))
        assert transform == pytest.approx(float((density * np.cos(z * u)).sum() * step), abs=1e-8)


def test_higher_orders_by_hand() -> None:
    # One row said .5 and came: r = 1 within its reach. √∫(1 − s)² K = √(.25 + h²).
    assert KernelDensityError(0.05, order=2).value(View([0.5], [1])) == pytest.approx((0.25 + 0.0025) ** 0.5, abs=1e-6)
    # The worst place is the lowest of [.35, .65] where the density exceeds the floor; it does from .353 on.
    worst = KernelDensityError(0.05, order=np.inf, min_density=0.01).value(View([0.5], [1]))
    low = 0.35
    while 35 / 96 * (1 - ((low - 0.5) / 0.15) ** 2) ** 3 / 0.05 <= 0.01:
        low += 1e-6
    assert worst == pytest.approx(1 - low, abs=1 / 1024)
    # At 0 itself a row that came is off by 1.
    assert KernelDensityError(0.05, order=np.inf).value(View([0.0], [1])) == pytest.approx(1, abs=1e-12)


def test_orders_rise_to_the_worst_place() -> None:
    (shown,) = as_lens("positive").views(Predictions([0, 1, 1, 0, 1] * 8, np.linspace(0.05, 0.95, 40)))
    values = [KernelDensityError(0.1, order=q).value(shown) for q in (1, 2, 4, 50, 1000)]
    assert values == sorted(values)
    # ‖·‖_q reaches the maximum as q grows; at q = 1000 a place with 1 % of the rows counts .01^(1/1000) = .995.
    assert values[-1] == pytest.approx(KernelDensityError(0.1, order=np.inf).value(shown), rel=0.01)


def test_betas_kernel_by_hand() -> None:
    # At s = .5 with b = .1 it is Beta(5, 5), whose density at .5 is .5⁸ · 9!/(4! 4!) = 2.4609375. At s = .1 < 2b the
    # first shape is ρ = 2b² + 5/2 − √(4b⁴ + 6b² + 9/4 − s² − s/b) = 2.52 − √1.3004, the second .9/.1 = 9.
    beta = BetaKernelSums(np.array([0.5]), 0.1, 0.0, 1.0)
    assert beta.evaluate(np.array([0.5]), np.ones(1)) == pytest.approx(2.4609375, rel=1e-12)
    a = 2.52 - 1.3004**0.5
    x = np.linspace(0, 1, 200_001)
    integral = (x ** (a - 1) * (1 - x) ** 8).sum() / 200_000
    assert beta.evaluate(np.array([0.1]), np.ones(1)) == pytest.approx(0.5 ** (a + 7) / integral, rel=1e-5)


def test_the_curve_by_hand() -> None:
    # Midway between two rows their weights decide: 3 came, 1 did not. Far from both there is nothing to say.
    shown = View([0.4, 0.6], [1, 0], [3, 1])
    error = KernelDensityError(0.1)
    assert calibration_curve(shown, [0.5, 0.05], error) == pytest.approx([0.75, np.nan], nan_ok=True)
    assert calibration_curve(shown, [[0.5], [0.2]], error) == pytest.approx(np.array([[0.75], [1.0]]))
    assert calibration_curve(View([0.4, 0.6, 0.5], [1, 0, 1], [3, 1, 0]), 0.5, error) == pytest.approx(0.75)


# Reference numbers: the published code and plain loops of the definition


@pytest.mark.reference
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_confidence_reference_number(name: str, width: Any) -> None:
    expected = golden()[name]["confidence"][f"ece_kde[{width}]"]
    error = KernelDensityError(width, range="1/K")
    shown = view(name, "confidence")
    # plain_paper is a sum over 20,000 midpoints; the program's own grid is coarser (README of the numbers: 2e-4).
    assert error.value(shown) == pytest.approx(expected["plain_paper"], abs=5e-6)
    assert error.value(shown) == pytest.approx(expected["reference"], abs=2e-4)
    assert error.width(shown) == pytest.approx(expected["bandwidth"], rel=1e-12)
    if width != 0.033:  # there the worst place is where the density falls to the floor, at an accuracy of one cell
        worst = KernelDensityError(width, range="1/K", order=np.inf).value(shown)
        assert worst == pytest.approx(expected["mce_grid"], abs=5e-5)


@pytest.mark.reference
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_classwise_reference_number_with_each_class_at_its_own_bandwidth(name: str, width: Any) -> None:
    # estimating_eces: the bandwidth of class 0 serves every class (its number is plain_code).
    expected = golden()[name]["classwise"][f"ece_kde[{width}]"]
    error, views = KernelDensityError(width), as_lens("classwise").views(preds(name))
    total, _ = measure_views(error, views)
    assert total == pytest.approx(expected["plain_paper"], abs=5e-6)
    assert [error.width(class_view) for class_view in views] == pytest.approx(expected["bandwidths"], rel=1e-12)


@pytest.mark.reference
def test_the_bandwidth_of_class_0_does_not_serve_every_class() -> None:
    expected = golden()["B_3c120"]["classwise"]["ece_kde[silverman]"]
    total, _ = measure_views(KernelDensityError(), as_lens("classwise").views(preds("B_3c120")))
    assert abs(total - expected["plain_code"]) > 1e-3
    assert [
        KernelDensityError().parts(class_view)["bandwidth"]
        for class_view in as_lens("classwise").views(preds("B_3c120"))
    ] == (pytest.approx(expected["bandwidths"], rel=1e-12))


@pytest.mark.reference
@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize("width", ["silverman", 0.02])
def test_the_integral_is_that_of_direct_sums(kernel: str, width: Any) -> None:
    shown = view("B_3c120", "confidence")
    error = KernelDensityError(width, kernel, range="1/K")
    low, h, cells = 1 / 3, error.width(shown), 40_000
    s = low + (1 - low) * (np.arange(cells) + 0.5) / cells
    gap = np.zeros(cells)
    for p, y in zip(shown.p, shown.y, strict=True):
        for image in (p, 2 * low - p, 2 - p):
            u = (s - image) / h
            near = np.flatnonzero(np.abs(u) < KERNELS[kernel].radius)
            gap[near] += (y - s[near]) * KERNELS[kernel].density(u[near]) / h
    assert error.value(shown) == pytest.approx(np.abs(gap).sum() / cells * (1 - low) / 120, abs=1e-5)


@pytest.mark.reference
@pytest.mark.parametrize("name", ["A_bin40", "F_bin2000_cal"])
@pytest.mark.parametrize("kernel", ["triweight", "gaussian"])
@pytest.mark.parametrize("width", [0.03, 0.1])
def test_the_curve_of_the_published_code(name: str, kernel: str, width: float) -> None:
    expected = golden("golden_curve")[name][f"curve/{kernel}/bw={width:g}"]
    curve = calibration_curve(view(name, "positive"), expected["s"], KernelDensityError(width, kernel))
    assert curve == pytest.approx(expected["reference"], abs=5e-5)
    if "plain" in expected:
        assert curve == pytest.approx(expected["plain"], rel=1e-10)


@pytest.mark.reference
@pytest.mark.parametrize("name", ["A_bin40", "B_3c120"])
@pytest.mark.parametrize("b", [0.01, 0.05])
def test_chens_second_kernel(name: str, b: float) -> None:
    expected = golden("golden_curve")[f"{name}/chen2/class1/b={b:g}"]
    shown = view(name, "class:1")
    assert KernelDensityError(b, "beta").value(shown) == pytest.approx(expected["ece"], abs=5e-6)
    scores = np.unique(shown.p)
    mass = np.bincount(np.searchsorted(scores, shown.p)) / len(shown.p)
    assert BetaKernelSums(scores, b, 0.0, 1.0)(mass).sum() == pytest.approx(expected["mass"], abs=2e-5)


# What must hold


@pytest.mark.parametrize("kernel", [*KERNELS, "beta"])
def test_a_shift_without_noise_is_found_in_full(kernel: str) -> None:
    # y = p + .1 everywhere: no place changes sign, and ∫ Σ (y − s) K = mean (y − p) = .1, for kernels are symmetric.
    # The beta kernel is not: with b = .002 its mean is off by less than b. Ripples of the grid add up to 1e-7.
    p = np.random.default_rng(0).uniform(0.2, 0.7, 500)
    width = 0.002 if kernel == "beta" else 0.02
    value = KernelDensityError(width, kernel).value(View(p, p + 0.1))
    assert value == pytest.approx(0.1, abs=0.002 if kernel == "beta" else 1e-7)


def test_the_error_of_a_calibrated_model_is_the_noise_of_its_curve() -> None:
    # E|gap| at s is √(2/π) √(s(1 − s) f ∫K² / n) with ∫K² = 350/(429 · 3h): .272/h.
    # Scores uniform on [.2, .8], f = 5/3.
    # Smoothing adds at most ∫∫ over either end: f h²/2 each. The mean of 40 sets is within 4.5 standard errors.
    n, h, rng = 20_000, 0.01, np.random.default_rng(1)
    s = np.linspace(0.2, 0.8, 2001)
    noise = (2 / np.pi) ** 0.5 * np.trapezoid(np.sqrt(s * (1 - s) * (5 / 3) * 350 / 429 / (3 * h) / n), s)
    values = []
    for _ in range(40):
        p = rng.uniform(0.2, 0.8, n)
        values.append(KernelDensityError(h).value(View(p, rng.random(n) < p)))
    tolerance = 4.5 * np.std(values) / 40**0.5
    assert noise - tolerance < np.mean(values) < noise + tolerance + 2 * (5 / 3) * h**2 / 2


@pytest.mark.parametrize("order", [1, 2, 5, np.inf])
@pytest.mark.parametrize("kernel", ["triweight", "beta"])
def test_draws_move_the_error_by_no_more_than_their_norm(order: float, kernel: str) -> None:
    # The triangle inequality, which the interval rests on; weights are drawn too.
    rng = np.random.default_rng(2)
    p = rng.beta(1, 2, 80).round(2)
    one = KernelDensityError(kernel=kernel, order=order).cell_statistic(View(p, rng.random(80) < p))
    w = rng.integers(0, 4, (200, one.size)).astype(float)
    wy = rng.binomial(w.astype(int), 0.4).astype(float)
    sums = (one.groups.w, one.groups.wp, one.groups.wy)
    draws = (w, w * one.groups.mean_scores, wy)
    norms = one.centered_norms(*sums, draws)
    assert norms is not None
    assert (one.statistic(*draws) <= one.value() + norms + 1e-9).all()
    assert (one.value() <= one.statistic(*draws) + norms + 1e-4).all()  # the draws' grid is coarser


def test_a_draw_that_repeats_the_data_has_their_value_so_that_ties_count() -> None:
    # Ten rows said .5 and eight came: a calibrated model does as badly with P(|S − 5| ≥ 3) = .109375 (without its ties
    # .021). The count of 999 draws that do is binomial: within .06 of it at 6 standard deviations.
    ten = Predictions([1] * 8 + [0] * 2, [0.5] * 10)
    assert test(ten, "consistency", statistic="ece_kde").pvalue == pytest.approx(0.109375, abs=0.06)
    rng = np.random.default_rng(3)
    p = rng.random(6000)
    one = KernelDensityError().cell_statistic(View(p, rng.random(6000) < p))
    sums = (one.groups.w[None], one.groups.wp[None], one.groups.wy[None])
    assert one.size < 6000
    assert one.statistic(*sums)[0] == pytest.approx(one.value(), rel=1e-12)


def test_silverman_uses_the_effective_sample_size_of_weights() -> None:
    rng = np.random.default_rng(5)
    p, w = rng.random(50), rng.integers(0, 4, 50)
    p[10:30] = 0.25
    rows = np.repeat(p, w)
    s, mass, _ = sort_by_score(View(p, p, w)).sums_by_score()
    assert weighted_quantiles(s, mass, (0.0, 0.25, 0.75, 1.0)) == pytest.approx(np.quantile(rows, [0, 0.25, 0.75, 1]))
    # Equal weights are no weights, at any scale; survey weights of 300 are not 300 rows.
    for weight in (0.3, 2, 300):
        assert silverman_bandwidth(View(p, p, np.full(50, weight))) == pytest.approx(
            silverman_bandwidth(View(p, p)), rel=1e-12
        )
    assert silverman_bandwidth(View(p, p, 2.0 * w)) == pytest.approx(silverman_bandwidth(View(p, p, w)), rel=1e-12)


def test_the_bandwidth_never_looks_at_the_outcomes() -> None:
    p = np.random.default_rng(6).random(40)
    assert KernelDensityError().width(View(p, p > 0.5)) == KernelDensityError().width(View(p, np.zeros(40)))


def test_kernel_sums_on_the_grid_are_those_at_its_places() -> None:
    rng = np.random.default_rng(7)
    scores = np.sort(rng.random(300))
    mass = rng.random((2, 300))
    for kernel in KERNELS.values():
        for width in (0.02, 0.4, 1.0):  # wide ones are mirrored more than once
            smooth = ReflectedKernelSums(scores, kernel, width, 0.0, 1.0)
            some = np.array([0, 5, 300, 511, 1023])
            assert smooth(mass)[:, some] * len(smooth.s) == pytest.approx(
                smooth.evaluate(smooth.s[some], mass), rel=1e-3
            )
            assert smooth(mass).sum(axis=1) == pytest.approx(mass.sum(axis=1), rel=1e-12)


# Edges


def test_equal_scores_are_off_by_their_gap_and_say_so() -> None:
    # KDEpy takes h = 1 for constant scores, which makes .248 of a calibrated .3; here the least bandwidth: .3 − .6 is
    # found as it is, and calibrated scores are off by E|U| = 35/128 · 3 · .002 = .0016.
    estimate = KernelDensityError()(View([0.3] * 10, [1] * 6 + [0] * 4))
    assert (estimate.value, estimate.parts["bandwidth"]) == (pytest.approx(0.3, abs=1e-5), 0.002)
    assert [note.code for note in estimate.notes] == ["TN115"]
    assert KernelDensityError().value(View([0.3] * 10, [1] * 3 + [0] * 7)) == pytest.approx(0.00164, abs=1e-4)


@pytest.mark.parametrize("kernel", [*KERNELS, "beta"])
@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.4], [0]),
        ([0.2, 0.2, 0.9], [1, 1, 1]),
        ([0.2, 0.7, 0.9], [0, 0, 0]),
        ([0.0, 0.5, 1.0], [0, 1, 1]),
        ([0.1] * 5 + [0.9] * 5, [0] * 5 + [1] * 5),
    ],
)
def test_odd_data_give_a_number(kernel: str, p: list[float], y: list[int]) -> None:
    for order in (1, 3, np.inf):
        estimate = KernelDensityError(kernel=kernel, order=order)(View(p, y))
        assert 0 <= estimate.value <= 1.000001


@pytest.mark.slow
def test_a_thousand_classes_and_thirty_rows() -> None:
    rng = np.random.default_rng(8)
    many = Predictions(rng.integers(0, 1000, 30), rng.dirichlet([0.1] * 1000, 30))
    assert 0 < measure(many, "ece_kde", lens="classwise", interval=None).value < 0.02
    assert 0 < measure(many, "ece_kde", range="1/K", interval=None).value <= 1


def test_rows_at_the_ends_are_lost_to_the_beta_kernel_and_it_says_so() -> None:
    estimate = KernelDensityError(0.05, "beta")(View([0.0, 0.0, 0.4, 0.6], [0, 0, 0, 1]))
    assert [(note.code, note.text.split()[0]) for note in estimate.notes] == [("TN116", "2")]
    assert KernelDensityError(0.05, "beta").notes(View([0.3, 0.4, 0.6], [0, 0, 1])) == []
    with refused("TO205"):
        KernelDensityError(0.05, "beta").value(View([0.0, 1.0], [0, 1]))


def test_measured_with_interval_and_floor_and_its_bandwidth() -> None:
    rng = np.random.default_rng(9)
    p = rng.random(400)
    preds = Predictions((rng.random(400) < p**2).astype(int), p)
    estimate = measure(preds, "ece_kde", resamples=200, rng=0)
    assert estimate.interval is not None
    assert estimate.interval.method == "residual-norm"
    # The truth is ∫|p − p²| = 1/6.
    assert estimate.interval.low < 1 / 6 < estimate.interval.high
    assert estimate.noise_floor is not None
    assert 0 < estimate.noise_floor < estimate.value
    assert estimate.settings["bandwidth"] == "silverman"
    assert 0.05 < estimate.parts["bandwidth"] < 0.1
    assert measure(preds, "ece_kde", resamples=200, rng=0) == estimate


def test_a_view_without_meaning_is_refused() -> None:
    three = Predictions([0, 1, 2], [[0.2, 0.3, 0.5]] * 3)
    (joint,) = as_lens("canonical").views(three)
    (low,) = as_lens("class:0").views(three)
    (bare,) = as_lens("confidence").views(Predictions.from_confidence([0.7, 0.8], [1, 0]))
    with refused("TO205"):
        KernelDensityError().value(joint)
    with refused("TO205"):
        calibration_curve(joint, [0.5])
    with refused("TO205"):
        KernelDensityError(range="1/K").value(low)
    with refused("TO205"):
        KernelDensityError(range="1/K").value(bare)
    assert (
        KernelDensityError(range="1/K").settings_used(as_lens("confidence").views(three)[0])["range"] == "[0.333333, 1]"
    )
