"""Is the cost of decisions at a threshold the elementary score, and is every proper score a mixture of it?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.proper_scores import Brier, LogLoss
from trueodds.estimators.threshold_scores import MurphyLoss
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


def test_by_hand() -> None:
    # θ = .3: false alarm .6, miss 1.4. Said .1 and came: 1.4; .5 and did not: .6; .9 and came: 0; .2 and did not: 0
    view = View([0.1, 0.5, 0.9, 0.2], [1, 0, 1, 0])
    assert float(MurphyLoss(threshold=0.3)(view)) == pytest.approx(0.5, rel=1e-14)
    # weights 1 to 4: (1.4 + 2 · .6)/10
    weighted = View([0.1, 0.5, 0.9, 0.2], [1, 0, 1, 0], [1, 2, 3, 4])
    assert float(MurphyLoss(threshold=0.3)(weighted)) == pytest.approx(0.26, rel=1e-14)


def test_at_one_half_it_is_the_misclassification_rate() -> None:
    rng = np.random.default_rng(0)
    p, y = rng.random(500), rng.random(500) < 0.4
    assert MurphyLoss().value(View(p, y)) == pytest.approx(np.mean((p > 0.5) != y), rel=1e-12)


def test_the_threshold_itself_pays_half_of_either_cost_the_mean_of_both_sides() -> None:
    p, y = np.array([0.3, 0.3, 0.7, 0.3]), np.array([1, 0, 1, 1])
    at, below, above = (MurphyLoss(threshold=t).value(View(p, y)) for t in (0.3, 0.3 - 1e-12, 0.3 + 1e-12))
    assert at == pytest.approx((below + above) / 2, abs=1e-11)
    assert at == pytest.approx((0.7 + 0.3 + 0 + 0.7) / 4, rel=1e-14)


def test_rows_at_the_threshold_are_noted() -> None:
    answer = MurphyLoss()(View([0.5, 0.5, 0.4, 0.5], [1, 0, 1, 1], [1, 1, 1, 0]))
    assert [note.code for note in answer.notes] == ["TN129"]
    assert answer.notes[0].text.startswith("2 predictions equal the threshold 0.5 and incur")
    assert answer.settings == {"threshold": 0.5}
    one = MurphyLoss(threshold=0.25)(View([0.25], [1])).notes[0].text
    assert one.startswith("1 prediction equals the threshold 0.25 and incurs")
    assert MurphyLoss()(View([0.4], [1])).notes == ()


# Mixtures


def drawn(seed: int) -> View:
    """Ties, weights and votes; scores within [.05, .95]."""
    rng = np.random.default_rng(seed)
    p = np.append(rng.uniform(0.05, 0.95, 20), rng.integers(1, 20, 20) / 20)
    y = np.append((rng.random(20) < 0.5).astype(float), rng.integers(0, 5, 20) / 4)
    return View(p, y, rng.random(40))


def area(view: View, weight: Callable[[float], float], nodes: int) -> float:
    """∫ weight(θ) S_θ dθ, by Gauss–Legendre between the scores, where the curve has its jumps."""
    x, g = np.polynomial.legendre.leggauss(nodes)
    edges = np.unique(np.r_[0.0, view.p, 1.0])
    total = 0.0
    for low, high in itertools.pairwise(edges):
        for theta, quad_weight in zip((low + high) / 2 + (high - low) / 2 * x, (high - low) / 2 * g, strict=True):
            total += quad_weight * weight(theta) * MurphyLoss(threshold=float(theta)).value(view)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_the_area_under_the_murphy_curve_is_the_brier_score(seed: int) -> None:
    # Dimitriadis et al. (2024). Between the scores the curve is a straight line, so one node is exact. Without the
    # factor 2 the area would be half of it.
    view = drawn(seed)
    assert area(view, lambda _: 1.0, 1) == pytest.approx(Brier().value(view), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_weighted_by_one_over_the_variance_the_area_is_log_loss(seed: int) -> None:
    # 1/(2θ(1 − θ)) · 2θ = 1/(1 − θ), whose integral up to p is −log(1 − p); by symmetry −log p for a miss. The widest
    # piece is [0, p₁] or [p_n, 1] with 1/(1 − θ) there at most 1/.05: 30 nodes leave far less than 1e-10.
    view = drawn(seed)
    assert area(view, lambda t: 1 / (2 * t * (1 - t)), 30) == pytest.approx(LogLoss().value(view), rel=1e-10)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_no_other_prediction_is_better_on_average_than_the_truth(threshold: float) -> None:
    score = MurphyLoss(threshold=threshold)
    grid = np.linspace(0, 1, 101)
    for q in (0.05, 0.5, 0.8, 0.93):
        costs = np.array([score.value(View([p], [q])) for p in grid])  # the mean over votes that come with chance q
        lowest = 2 * min(threshold * (1 - q), (1 - threshold) * q)
        assert costs.min() == pytest.approx(lowest, abs=1e-12)
        assert score.value(View([q], [q])) == pytest.approx(lowest, abs=1e-12)
        assert score.expected_if_calibrated(View([q], [0])) == pytest.approx(lowest, abs=1e-12)


def test_the_expected_score_is_the_mean_over_resampled_labels() -> None:
    # 4.5 standard errors of 400 draws
    rng = np.random.default_rng(3)
    p = rng.random(100)
    score = MurphyLoss(threshold=0.3)
    values = [score.value(View(p, rng.random(100) < p)) for _ in range(400)]
    assert score.expected_if_calibrated(View(p, p)) == pytest.approx(np.mean(values), abs=4.5 * np.std(values) / 20)


# The edge of the data


def test_a_vote_of_seven_tenths_is_two_weighted_rows() -> None:
    for p in (0.2, 0.3, 0.6):
        score = MurphyLoss(threshold=0.3)
        one, two = View([p], [0.7]), View([p, p], [1, 0], [0.7, 0.3])
        assert float(score(one)) == pytest.approx(float(score(two)), rel=1e-14)


@pytest.mark.parametrize(
    ("p", "y", "cost"),
    [
        ([0.0, 1.0], [0, 1], 0.0),
        ([0.0, 1.0], [1, 0], 1.0),
        ([1.0], [0], 0.4),
        ([0.0], [1], 1.6),
        ([1 + 2**-52], [1], 0.0),
    ],
    ids=["all right", "all wrong", "one false alarm", "one miss", "above one by rounding"],
)
def test_exact_zeros_and_ones(p: list[float], y: list[int], cost: float) -> None:
    assert float(MurphyLoss(threshold=0.2)(View(p, y))) == pytest.approx(cost, abs=1e-15)


def test_scores_of_half_precision_are_compared_in_double() -> None:
    # float16(.3) is .30004883, above the threshold; float16(.2998) is .2998047 below. n > 65,504 overflows its sums.
    for dtype in (np.float16, np.float32):
        p = np.repeat(np.array([0.3, 0.2998], dtype), 40_000)
        above = np.repeat(p.astype(np.float64)[[0, -1]] > 0.3, 40_000)
        view = View(p, np.zeros(80_000))
        assert MurphyLoss(threshold=0.3).value(view) == pytest.approx(0.6 * above.mean(), rel=1e-12)
        assert MurphyLoss(threshold=0.3)(view).notes == ()


@pytest.mark.parametrize("threshold", [0, 1, -0.1, 1.5, float("nan"), "0.5", True, None])
def test_a_threshold_that_is_none_is_refused(threshold: Any) -> None:
    with refused("TO203", repr(threshold)):
        MurphyLoss(threshold=threshold)


def test_vectors_and_cells_are_refused() -> None:
    with refused("TO205", "canonical", fix="confidence"):
        (view,) = as_lens("canonical").views(to.Predictions([0], [[0.5, 0.3, 0.2]]))
        MurphyLoss()(view)
    with refused("TO205", "1 cells of 2 rows"):
        MurphyLoss()(View([0.2, 0.7], [0, 1]).pool(np.zeros(2, int), 1))


def test_the_facade_takes_the_threshold_and_gives_interval_and_floor() -> None:
    rng = np.random.default_rng(8)
    p = rng.random(400)
    preds = to.Predictions((rng.random(400) < p).astype(int), p)
    estimate = to.measure(preds, "murphy_loss", threshold=0.2, resamples=200)
    assert estimate.lens == "positive"
    assert estimate.interval is not None
    assert estimate.interval.low < estimate.value < estimate.interval.high
    assert estimate.noise_floor == pytest.approx(np.mean(2 * np.minimum(0.2 * (1 - p), 0.8 * p)), rel=1e-12)
    assert estimate.settings["threshold"] == 0.2
    assert ESTIMATORS.make("murphy_loss", {"threshold": 0.2}) == MurphyLoss(threshold=0.2)
    assert math.isclose(to.measure(preds, "murphy_loss", lens="confidence", interval=None).value, error_rate(preds))


def error_rate(preds: to.Predictions) -> float:
    """Confidence is never below one half for two classes, so every wrong row is a false alarm at one half."""
    (view,) = as_lens("confidence").views(preds)
    return float(1 - view.y.mean())
