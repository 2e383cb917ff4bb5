"""Is it the number of the Mix-n-Match program, at its bandwidth, with every draw making its own?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests import reference
from trueodds import Predictions, measure, test
from trueodds.core.typing import Array
from trueodds.estimators.kde_mixnmatch import MixNMatchError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


@cache
def golden() -> dict[str, Any]:
    return reference.estimators()


@cache
def view(name: str) -> View:
    if name == "c":
        table = reference.frame("estimators/c_binary500.csv")
        return as_lens("positive").views(Predictions(table["y"], table["p"]))[0]
    table = reference.frame("estimators/b_multi1000.csv")
    return as_lens("confidence").views(Predictions(table["y"], reference.columns(table)))[0]


def bumps(s: Array, scores: Array, bandwidth: float) -> Array:
    """Twice the mean of triweight kernels at the scores and their mirror images."""
    half = 3 * bandwidth
    out = np.zeros_like(s)
    for center in [*scores, *np.where(scores < 0.5, -scores, 2 - scores)]:
        u = np.minimum(np.abs(s - center) / half, 1)
        out += 35 / 32 / half * (1 - u**2) ** 3
    return out / len(scores)


def direct(p: Array, y: Array, order: float) -> float:
    """The definition, term by term, for 0/1 outcomes."""
    bandwidth = p[y == 1].std() * (2 * len(p)) ** -0.2
    s = np.linspace(-0.6, 1.6, 2**14)
    s = s[(s >= 0) & (s <= 1)]
    f, f1 = bumps(s, p, bandwidth), bumps(s, p[y == 1], bandwidth)
    rate = np.minimum(1, y.mean() * f1 / np.maximum(f, 1e-300))
    gaps = np.where(np.maximum(f, f1) > 1e-6, np.abs(s - rate) ** order * f, 0)
    return float(np.trapezoid(gaps, s) / np.trapezoid(f, s))


# By hand


def test_one_score_by_hand() -> None:
    # Two of three came where .3 was said: r̂ = 2/3 wherever there is density, so the error is 2/3 − .3 and its square
    # (2/3 − .3)² + h² with the least bandwidth h = .001.
    shown = View([0.3] * 3, [1, 0, 1])
    assert MixNMatchError().value(shown) == pytest.approx(2 / 3 - 0.3, abs=1e-9)
    assert MixNMatchError(2).value(shown) == pytest.approx((2 / 3 - 0.3) ** 2 + 1e-6, abs=1e-9)
    assert [note.code for note in MixNMatchError().notes(shown)] == ["TN117"]


def test_the_bandwidth_by_hand() -> None:
    # .4 and .6 came: sd .1 with ddof 0. Three rows: .1 · 6^(−1/5). A vote of .5 at .4 and at .6 is the same.
    for y in ([1, 1, 0], [0.5, 0.5, 0]):
        estimate = MixNMatchError()(View([0.4, 0.6, 0.9], y))
        assert estimate.parts["bandwidth"] == pytest.approx(0.1 * 6**-0.2, rel=1e-12)
        assert estimate.notes == ()


def test_the_half_width_is_three_bandwidths() -> None:
    # KDEpy's bw is the standard deviation of the kernel; read as its half-width the curve is cut into single rows.
    # .4, .5 and .6 came, h = .0816 · 8^(−1/5) = .0539: .3 did not come, and with half-width .16 reaches them.
    p, y = np.array([0.3, 0.4, 0.5, 0.6]), np.array([0, 1, 1, 1])
    assert MixNMatchError().value(View(p, y)) == pytest.approx(direct(p, y, 1), rel=1e-10)
    h = (0.02 / 3) ** 0.5 * 8**-0.2
    s = np.linspace(0, 1, 50_001)
    narrow = np.trapezoid(np.abs(s * bumps(s, p, h / 3) - 0.75 * bumps(s, p[1:], h / 3)), s)
    assert abs(MixNMatchError().value(View(p, y)) - narrow) > 0.01


# Reference numbers: exact kernel sums, which agree with the published program to 7e-9


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "name", "order"),
    [
        ("b_conf.kde_ece_mixnmatch", "b", 1),
        ("b_conf.kde_ece_mixnmatch_order2", "b", 2),
        ("c.kde_ece_mixnmatch", "c", 1),
    ],
)
def test_a_reference_number(key: str, name: str, order: int) -> None:
    estimate = MixNMatchError(order)(view(name))
    assert estimate.value == pytest.approx(golden()[key]["value"], rel=1e-10)
    assert estimate.parts["bandwidth"] == pytest.approx(golden()[key]["bandwidth"], rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 1.5])
@pytest.mark.parametrize(("n", "slope"), [(4, 1), (15, 0.3), (60, 4)])
def test_the_integral_is_that_of_direct_sums(n: int, slope: float, order: float) -> None:
    # With four rows the kernel is wider than half the range, so each score must be mirrored at one end only.
    rng = np.random.default_rng(n)
    p = 1 / (1 + np.exp(-slope * rng.normal(0, 1, n)))
    p[0], p[1] = (0.0, 1.0) if n == 4 else p[:2]
    y = (rng.random(n) < p).astype(float)
    y[:2] = 1
    assert MixNMatchError(order).value(View(p, y)) == pytest.approx(direct(p, y, order), rel=1e-9)


# Draws


def drawn(shown: View, y: Array, error: MixNMatchError) -> Array:
    one = error.cell_statistic(shown)
    w, wp = (np.bincount(one.index, weights, one.size)[None] for weights in (shown.w, shown.w * shown.p))
    return one.statistic(w, wp, np.stack([np.bincount(one.index, shown.w * labels, one.size) for labels in y]))


@pytest.mark.parametrize("order", [1, 2])
def test_every_draw_makes_its_own_bandwidth(order: float) -> None:
    # The draws' grid errs by 1e-4 here; a bandwidth kept from the data would be off by far more.
    rng = np.random.default_rng(1)
    p = rng.beta(0.6, 0.6, 300)
    shown = View(p, p > 0.5)
    error = MixNMatchError(order)
    y = (rng.random((6, 300)) < p).astype(float)
    values = np.array([error.value(shown.with_y(labels)) for labels in y])
    assert drawn(shown, y, error) == pytest.approx(values, abs=3e-4)
    widths = [error.cell_statistic(shown.with_y(labels)).bandwidth for labels in (*y, shown.y)]
    assert np.ptp(widths) > 0.003


def test_a_draw_that_repeats_the_data_has_their_value_so_that_ties_count() -> None:
    # As for `ece_kde`: 8 of 10 at .5, P(|S − 5| ≥ 3) = .109375, and .021 if ties were missed.
    ten = Predictions([1] * 8 + [0] * 2, [0.5] * 10)
    assert test(ten, "consistency", statistic="kde_mixnmatch").pvalue == pytest.approx(0.109375, abs=0.06)
    rng = np.random.default_rng(2)
    shown = View(p := rng.random(200), (rng.random(200) < p).astype(float))
    assert drawn(shown, shown.y[None], MixNMatchError())[0] == pytest.approx(MixNMatchError().value(shown), rel=1e-12)


@pytest.mark.slow
def test_a_calibrated_model_is_rarely_rejected() -> None:
    # Rejections at 5 % over 50 data sets are Binomial(50, .05): at most 9 in 99.95 of 100 cases.
    rng = np.random.default_rng(3)
    hits = 0
    for seed in range(50):
        p = rng.random(60)
        data = Predictions((rng.random(60) < p).astype(int), p)
        hits += test(data, "consistency", statistic="kde_mixnmatch", resamples=99, rng=seed).pvalue <= 0.05
    assert hits <= 9


def test_measured_with_interval_and_floor() -> None:
    rng = np.random.default_rng(4)
    p = rng.random(400)
    data = Predictions((rng.random(400) < p**2).astype(int), p)
    for order, truth in ((1, 1 / 6), (2, 1 / 30)):  # ∫p − p² and ∫(p − p²)²
        estimate = measure(data, "kde_mixnmatch", order=order, resamples=200, rng=0)
        assert estimate.interval is not None
        assert estimate.interval.method == "noise-floor"
        assert estimate.interval.low < truth < estimate.interval.high
        assert estimate.noise_floor is not None
        assert 0 < estimate.noise_floor < estimate.value


# Edges


def test_without_events_the_error_is_the_mean_prediction() -> None:
    estimate = MixNMatchError()(View([0.2, 0.4], [0, 0]))
    assert (estimate.value, estimate.parts) == (pytest.approx(0.3, rel=1e-14), {})
    assert [note.code for note in estimate.notes] == ["TN117"]
    assert MixNMatchError(2).value(View([0.2, 0.4], [0, 0], [1, 3])) == pytest.approx(0.13, rel=1e-14)
    shown = View([0.2, 0.4], [1, 0])
    assert drawn(shown, np.zeros((1, 2)), MixNMatchError())[0] == pytest.approx(0.3, abs=0.01)


def test_scores_far_apart_stay_below_one() -> None:
    # The published program repeats the place before where there is no density: 1.0139 for these, all of them wrong.
    shown = View([1.0, 0.0, 1.0], [0, 1, 0])
    assert 0.99 < MixNMatchError().value(shown) <= 1
    assert (drawn(shown, np.array([[0, 1, 0], [1, 0, 1], [1, 1, 0]]), MixNMatchError()) <= 1.001).all()


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.4], [1]),
        ([0.2, 0.2, 0.9], [1, 1, 1]),
        ([0.0, 0.5, 1.0], [0, 1, 1]),
        ([0.1] * 5 + [0.9] * 5, [0] * 5 + [1] * 5),
        ([1.0] * 3, [1] * 3),
        ([0.0] * 3, [1] * 3),
    ],
)
def test_odd_data_give_a_number(p: list[float], y: list[int]) -> None:
    for order in (1, 2, 30):
        assert 0 <= MixNMatchError(order)(View(p, y)).value <= 1


def test_flipped_residuals_of_clusters_give_numbers() -> None:
    # Outcomes 2p − y fall below 0 and rise above 1 there.
    rng = np.random.default_rng(5)
    p = rng.random(60)
    data = Predictions((rng.random(60) < p).astype(int), p, cluster=np.arange(60) // 3)
    assert 0 < test(data, "consistency", statistic="kde_mixnmatch", resamples=99).pvalue <= 1


def test_weights_count_by_their_effective_sample_size() -> None:
    rng = np.random.default_rng(7)
    p, w = rng.random(30).round(1), rng.integers(0, 4, 30)
    y = (rng.random(30) < p).astype(float)
    rows = View(np.repeat(p, w), np.repeat(y, w))
    # The bandwidth follows what the weights are worth; at one bandwidth the sums are those of repeated rows.
    widths = [MixNMatchError().parts(view)["bandwidth"] for view in (View(p, y, w), rows)]
    effective_n = w.sum() ** 2 / (w**2).sum()
    assert widths[0] / widths[1] == pytest.approx((w.sum() / effective_n) ** 0.2, rel=1e-12)
    assert MixNMatchError().value(View(p, y, 5.0 * w)) == pytest.approx(
        MixNMatchError().value(View(p, y, w)), rel=1e-12
    )


def test_events_of_almost_no_weight_do_not_divide_by_a_density_of_zero() -> None:
    scores, outcomes = [0.1, 0.11, 0.14, 0.32, 0.48, 0.57], [0, 1, 0, 0, 1, 1]
    weights = [7e-05, 1e-16, 2e-20, 4e-09, 1e-18, 1e-20]
    value = measure(Predictions(outcomes, scores, weight=weights), "kde_mixnmatch", interval=None).value
    assert value == pytest.approx(0.1, abs=0.01)  # nearly all weight is at 0.1, where no event has any
