"""Two models by a measure with a target: is the one closer to it called better only if that is established?"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

import trueodds as to
from tests.resampling.comparing.models import odds, rows
from trueodds.resampling.comparison.differences import distance_limits

TARGETED = ["calibration_in_the_large", "o_e"]


def opposite_models(estimator: str, seed: int, n: int, error: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes and two models that are equally far from the target, one too high and the other too low."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.7, n)
    y = (rng.random(n) < p).astype(int)
    if estimator == "o_e":
        return y, p / (1 + error), p / (1 - error)
    return y, p * (1 - error), p * (1 + error)


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "n", "error"), [("calibration_in_the_large", 300, 0.1), ("o_e", 300, 0.25)])
def test_of_two_models_that_are_equally_far_from_the_target_none_is_better(
    estimator: str, n: int, error: float
) -> None:
    # Claims are Binomial(40, at most 0.05), plus 1/200 for the bootstrap: stay below the 99.9 % quantile.
    pvalues, better = [], []
    for seed in range(40):
        y, a, b = opposite_models(estimator, seed, n, error)
        comparison = to.compare(y, a, b, estimator, resamples=200, rng=seed)
        pvalues.append(comparison.pvalue)
        better.append(comparison.better)
    limit = binom.ppf(0.999, 40, 0.055)
    assert sum(p <= 0.05 for p in pvalues) <= limit
    assert sum(name is not None for name in better) <= limit


def test_of_two_models_on_opposite_sides_of_the_target_the_closer_one_is_found() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.7, 2000)
    y = (rng.random(2000) < p).astype(int)
    for estimator in TARGETED:
        comparison = to.compare(y, p * 0.98, p * 1.3, estimator, resamples=300)
        assert comparison.better == "a"
        assert comparison.interval.high < 0
        table = to.table(y, {"close": p * 0.98, "far": p * 1.3}, [estimator], resamples=300)
        assert table.bold == {estimator: "close"}
        assert table.columns[0].comparisons[0].pvalue == pytest.approx(comparison.pvalue)


def test_equally_bad_models_have_no_bold_value() -> None:
    y, a, b = opposite_models("calibration_in_the_large", 5, 700, 0.05)
    table = to.table(y, {"low": a, "high": b}, TARGETED, resamples=200)
    plain = a.mean() - b.mean()
    assert abs(plain) > 0.03  # the values differ by 10 % of the mean prediction, with a negligible standard error
    assert set(table.bold.values()) == {None}


def test_on_one_side_of_the_target_the_difference_is_that_of_the_values() -> None:
    eta, y = rows(800)
    a, b = odds(eta - 1), odds(eta - 0.7)  # both predict too little
    comparison = to.compare(y, a, b, "calibration_in_the_large", resamples=300)
    values = [estimate.value for estimate in comparison.models.values()]
    assert comparison.difference == pytest.approx(values[0] - values[1])
    mirrored = to.compare(1 - y, 1 - a, 1 - b, "calibration_in_the_large", resamples=300)  # both predict too much
    assert mirrored.difference == pytest.approx(comparison.difference)
    assert mirrored.interval.low == pytest.approx(comparison.interval.low, rel=1e-6)
    assert mirrored.pvalue == pytest.approx(comparison.pvalue)


def test_the_result_says_that_errors_are_distances() -> None:
    y, a, b = opposite_models("o_e", 0, 300, 0.2)
    comparison = to.compare(y, a, b, "o_e", resamples=100)
    assert comparison.settings["distance_from"] == 1.0
    assert "o_e, distance from 1, a − b" in str(comparison)
    assert comparison.null.startswith("the true values of both models are equally far from 1")
    assert to.compare(y, a, a, "o_e", resamples=100).pvalue == 1.0


def test_a_ranking_orders_by_the_distance_and_claims_no_equal_pair() -> None:
    y, a, b = opposite_models("o_e", 3, 500, 0.25)
    ranking = to.compare(y, {"low": a, "high": b, "far": a / 2}, "o_e", resamples=500)
    assert ranking.order[-1] == "far"
    assert {worse for _, worse in ranking.settled} == {"far"}
    assert len(ranking.settled) == 2
    by_names = {pair.names: pair for pair in ranking.pairs}
    single = to.compare(y, a, b, "o_e", resamples=500)
    assert by_names["low", "high"].pvalue >= single.pvalue


def test_the_swap_test_compares_distances_too() -> None:
    # Errors of 0.05 and -0.05 in the same rows have equal distances from 0, but as large a difference as can be drawn.
    y = np.arange(400) % 2
    a, b = np.full(400, 0.45), np.full(400, 0.55)
    settings = {"null": "swap", "resamples": 200}
    equal = to.compare(y, a, b, "calibration_in_the_large", **settings)
    assert equal.difference == pytest.approx(0.0, abs=1e-12)
    assert equal.pvalue > 0.5
    closer = to.compare(y, a, np.full(400, 0.5), "calibration_in_the_large", **settings)
    assert closer.pvalue == closer.min_pvalue


def test_tallies_and_models_of_different_rows_are_compared_by_distance() -> None:
    y, a, b = opposite_models("o_e", 4, 900, 0.3)
    tallied = to.compare(to.tally((y, a)), to.tally((y, b)), "o_e", resamples=300)
    unpaired = to.compare((y[:450], a[:450]), (y[450:], b[450:]), "o_e", resamples=300, paired=False)
    for comparison in (tallied, unpaired):
        assert comparison.settings["distance_from"] == 1.0
        assert comparison.interval.low <= comparison.difference <= comparison.interval.high
        assert (comparison.better is None) == (comparison.pvalue > 0.05)


@pytest.mark.parametrize("limits", list(itertools.product([(-2, -1), (-1, 2), (0, 1), (1, 3), (-3, 1)], repeat=2)))
def test_the_interval_is_the_image_of_difference_and_sum(
    limits: tuple[tuple[float, float], tuple[float, float]],
) -> None:
    difference, total = (np.linspace(*pair, 61) for pair in limits)
    a, b = np.meshgrid(difference, total)
    image = np.abs(a + b) / 2 - np.abs(b - a) / 2  # A = (D + S)/2 and B = (S − D)/2
    low, high = distance_limits(*limits)
    assert (low, high) == pytest.approx((image.min(), image.max()))
    assert (low <= 0 <= high) == any(one <= 0 <= other for one, other in limits)


@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.0, 0.1), (0.1, 1.0)])
@pytest.mark.parametrize("values", [(0, 0), (2, 2), (2, -2), (3, 0), (0, 3), (3, 0.5), (8, 6), (8, -6)])
def test_the_interval_covers_with_the_level_of_its_parts(
    scales: tuple[float, float], values: tuple[float, float]
) -> None:
    # Normal estimates with known standard errors. Misses are Binomial(4000, at most .05): stay below its 99.9 % limit.
    rng = np.random.default_rng(0)
    scale = float(np.hypot(*scales))
    errors = rng.normal(size=(4000, 2)) * scales
    truth, missed = abs(values[0]) - abs(values[1]), 0
    for a, b in values + errors:
        parts = [(x - 1.959964 * scale, x + 1.959964 * scale) for x in (a - b, a + b)]
        low, high = distance_limits(*parts)
        missed += not low <= truth <= high
    assert missed <= binom.ppf(0.999, 4000, 0.05)
