"""Is the truthful error the integral it says, and does no report lower its expectation below the truth's?"""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from tests.estimators.values_by_view import measure_views
from trueodds import Predictions
from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError, RootMeanSquareError
from trueodds.estimators.truthful import Truthful
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


def integral(p: Array, y: Array, w: Array) -> float:
    """The definition, threshold by threshold: between two scores the two bins stay the same."""
    total = 0.0
    for low, high in pairwise(sorted({0.0, 1.0, *p.tolist()})):
        t = (low + high) / 2
        below, above = p < t, p >= t
        total += (high - low) * sum(float((w[a] * (p[a] - y[a])).sum()) ** 2 for a in (below, above))
    return total / float(w.sum()) ** 2


def expectation(error: Any, report: Array, truth: Array) -> float:
    """The exact mean of the error over all outcomes of independent rows."""
    total = 0.0
    for y in product((0, 1), repeat=len(truth)):
        chance = np.prod(np.where(y, truth, 1 - truth))
        total += float(chance) * error.value(View(report, y))
    return total


def test_three_scores_by_hand() -> None:
    # p − y: .3, −.5, −.2, total −.4; shares of a third. Thresholds in (0, .3]: (.4)². (.3, .5]: .3² + .7². (.5, .8]:
    # .2² + .2². (.8, 1]: .4². So (.3·.16 + .2·.58 + .3·.08 + .2·.16)/9 = .22/9.
    view = View([0.5, 0.3, 0.8], [1, 0, 1])
    assert Truthful().value(view) == pytest.approx(0.22 / 9, rel=1e-14)
    assert Truthful().parts(view)["root"] == pytest.approx((0.22 / 9) ** 0.5, rel=1e-14)


def test_quantiles_by_hand() -> None:
    # Two bins of two rows: .1 + .2 − 0 − 1 = −.7 and .6 + .9 − 1 − 0 = .5: 2 (.49 + .25)/16.
    view = View([0.1, 0.2, 0.6, 0.9], [0, 1, 1, 0])
    assert Truthful("quantile", bins=2).value(view) == pytest.approx(2 * 0.74 / 16, rel=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_the_value_is_the_integral_over_thresholds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 15))
    p = rng.integers(0, 11, n) / 10 if seed % 2 else rng.random(n)
    y, w = rng.integers(0, 2, n), rng.integers(1, 4, n).astype(float)
    view = View(p, y, w)
    assert Truthful().value(view) == pytest.approx(integral(p, y, w), rel=1e-12, abs=1e-16)


TRUTHS = (np.array([0.2, 0.5, 0.7]), np.array([0.0, 0.3, 0.3]), np.array([0.1, 0.4, 1.0]))


@pytest.mark.slow
@pytest.mark.parametrize("error", [Truthful(), Truthful("quantile", bins=3)], ids=["atb", "quantile"])
@pytest.mark.parametrize("truth", TRUTHS, ids=str)
def test_no_report_has_a_lower_expectation_than_the_truth(error: Truthful, truth: Array) -> None:
    # All reports on a grid, all outcomes: nothing is sampled. What a report pays beyond the truth is its own error
    # with the truth for outcomes, which is a sum of squares.
    lowest = expectation(error, truth, truth)
    for report in product(np.arange(0, 11, 2) / 10, repeat=3):
        beyond = error.value(View(report, truth))
        assert beyond >= 0
        assert expectation(error, np.array(report), truth) == pytest.approx(lowest + beyond, rel=1e-12), report


def test_only_calibrated_reports_pay_nothing_beyond_the_truth() -> None:
    # The truth itself, or one number for rows that have it as their mean: here .2, .5 and .8, so .5 for all, .35 for
    # the first two, .65 for the last two.
    truth = np.array([0.2, 0.5, 0.8])
    fair = {(0.2, 0.5, 0.8), (0.5, 0.5, 0.5), (0.35, 0.35, 0.8), (0.2, 0.65, 0.65)}
    reports = product((0.2, 0.35, 0.5, 0.65, 0.8), repeat=3)
    assert {report for report in reports if Truthful().value(View(report, truth)) < 1e-12} == fair


def test_ece_can_be_lowered_by_lying_and_this_cannot() -> None:
    # Four rows whose truth is known: said all alike and a little too high, their noise still evens out.
    truth, lie = np.array([0.35, 0.45, 0.55, 0.65]), np.full(4, 0.55)
    ece = BinnedError(Uniform(20))
    assert expectation(ece, lie, truth) < expectation(ece, truth, truth) - 0.1
    # The lie's expected total is 4 · .05, whichever side of the threshold holds it: (.2/4)² = .0025.
    assert expectation(Truthful(), lie, truth) == pytest.approx(
        expectation(Truthful(), truth, truth) + 0.0025, rel=1e-12
    )


@pytest.mark.parametrize("truth", TRUTHS, ids=str)
def test_the_truth_pays_its_noise_alone(truth: Array) -> None:
    # Each row counts in one of the two bins at any threshold, so its variance counts once: Σ p(1 − p)/n².
    noise = float((truth * (1 - truth)).sum()) / 9
    assert expectation(Truthful(), truth, truth) == pytest.approx(noise, rel=1e-12)
    assert expectation(Truthful("quantile", bins=2), truth, truth) == pytest.approx(2 * noise, rel=1e-12)


def test_the_noise_floor_is_the_noise() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(400)
    estimate = to.measure(Predictions((rng.random(400) < p).astype(int), p), "truthful", resamples=50)
    noise = float((p * (1 - p)).mean()) / 400
    # A mean of 999 squares of normal sums: their standard deviation is at most √2 means, five errors are 22 %.
    assert estimate.noise_floor == pytest.approx(noise, rel=5 * 2**0.5 / 999**0.5)
    assert estimate.interval is not None
    assert (estimate.interval.method, estimate.interval.low) == ("noise-floor", 0.0)


def test_quantiles_are_the_squared_l2_error_where_bins_are_equal() -> None:
    rng = np.random.default_rng(1)
    view = View(rng.random(120), rng.integers(0, 2, 120))
    l2 = RootMeanSquareError(EqualMass(8)).value(view)
    assert Truthful("quantile", bins=8).value(view) == pytest.approx(l2**2, rel=1e-12)


def test_ties_are_not_split_and_make_the_quantile_error_no_cheaper() -> None:
    # Ten equal scores are one bin, but two were asked for:
    # 2 · (mean gap)², where two fair halves would give (mean gap)².
    view = View(np.full(10, 0.9), [1] * 5 + [0] * 5)
    assert Truthful("quantile", bins=2).value(view) == pytest.approx(2 * 0.4**2, rel=1e-12)
    assert Truthful("quantile", bins=2).settings_used(view) == {"form": "quantile", "bins": 2, "occupied_bins": 1}


def test_classes_are_averaged() -> None:
    rng = np.random.default_rng(2)
    P, y = rng.dirichlet([1, 1, 1], 50), rng.integers(0, 3, 50)
    overall, parts = measure_views(Truthful(), as_lens("classwise").views(Predictions(y, P)))
    values = [integral(P[:, c], (y == c).astype(float), np.ones(50)) for c in range(3)]
    assert overall == pytest.approx(np.mean(values), rel=1e-12)
    assert list(parts.values()) == pytest.approx(values, rel=1e-12)


@pytest.mark.parametrize("error", [Truthful(), Truthful("quantile", bins=4)], ids=["atb", "quantile"])
def test_a_weight_of_two_is_two_rows_and_order_is_irrelevant(error: Truthful) -> None:
    rng = np.random.default_rng(3)
    p, y, w = rng.integers(0, 11, 30) / 10, rng.integers(0, 2, 30), rng.integers(0, 4, 30).astype(float)
    once = error.value(View(p, y, w))
    rows = rng.permutation(np.repeat(np.arange(30), w.astype(int)))
    assert error.value(View(p[rows], y[rows])) == pytest.approx(once, rel=1e-12)


@pytest.mark.parametrize("error", [Truthful(), Truthful("quantile")], ids=["atb", "quantile"])
def test_draws_read_the_value_from_its_sums(error: Truthful) -> None:
    rng = np.random.default_rng(4)
    view = View(rng.integers(0, 50, 200) / 49, rng.integers(0, 2, 200), rng.random(200))
    one = error.cell_statistic(view)
    sums = [np.bincount(one.index, x, one.size)[None] for x in (view.w, view.w * view.p, view.w * view.y)]
    assert one.value() == pytest.approx(error.value(view), rel=1e-12)
    assert one.statistic(*sums)[0] == pytest.approx(error.value(view), rel=1e-10)


def test_through_confidence_a_note_says_that_it_is_not_truthful() -> None:
    preds = Predictions([0, 1, 2], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    for lens, coded in (("confidence", True), ("rank:2", True), ("classwise", False), ("class:1", False)):
        view = as_lens(lens).views(preds)[0]
        assert [note.code for note in Truthful().notes(view)] == (["TN133"] if coded else [])


def test_a_vector_per_row_is_refused() -> None:
    view = View(np.full((2, 3), 1 / 3), np.eye(3)[:2])
    for error in (Truthful(), Truthful("quantile")):
        with refused("TO205"):
            error.value(view)


def test_edge_data_give_numbers() -> None:
    assert Truthful().value(View([0.7], [1])) == pytest.approx(0.09)  # one row: one bin holds it at any threshold
    assert Truthful().value(View([0.0, 1.0], [0, 1])) == 0.0
    assert Truthful().value(View([0.0, 1.0], [1, 0])) == pytest.approx(0.5)  # ±1/2 in two bins at every threshold
    assert Truthful("quantile").value(View([0.7], [1])) == pytest.approx(15 * 0.09)
    assert Truthful().value(View([1.0 + 1e-7, 0.5], [1, 1])) >= 0
