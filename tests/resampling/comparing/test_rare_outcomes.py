"""Differences of means that depend on few rows, such as those of a rare outcome."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.stats import binom

import trueodds as to


def log_loss(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Log loss of each row."""
    return -np.where(y == 1, np.log(p), np.log1p(-p))


def rare_events(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes with an event rate of 1 %, and two varying predictions with the same expected log loss."""
    rng = np.random.default_rng(seed)
    log_odds = np.random.default_rng(0).normal(-5.0, 1.0, 20_000)

    def expected_loss(shift: float) -> float:
        p, q = 1 / (1 + np.exp(-log_odds)), 1 / (1 + np.exp(-log_odds - shift))
        return float(np.mean(p * log_loss(1, q) + (1 - p) * log_loss(0, q)))

    low = brentq(lambda shift: expected_loss(shift) - expected_loss(0.8), -6.0, -0.01)
    sample = rng.choice(log_odds, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-sample))).astype(int)
    return y, 1 / (1 + np.exp(-sample - 0.8)), 1 / (1 + np.exp(-sample - low))


@pytest.mark.slow
def test_a_model_that_predicts_too_little_is_not_bold_by_luck() -> None:
    # At most 2.5 % of tables may call either of two equal models better; 200 tables have at most 17 bold values at
    # 5 % (99.9 % range). The t test alone gives about 10 % for the low model.
    tables = []
    for seed in range(200):
        y, high, low = rare_events(500, seed)
        tables.append(to.table(y, {"high": high, "low": low}, ["log_loss"], resamples=99))
    limit = binom(200, 0.05).ppf(0.999)
    assert sum(table.bold["log_loss"] is not None for table in tables) <= limit
    pvalues = [table.columns[0].comparisons[0].pvalue for table in tables]
    doubted = ["TN273" in {note.code for note in table.notes} for table in tables]
    assert sum(p is not None and p <= 0.05 for p in pvalues) >= sum(doubted) >= 8


@pytest.mark.parametrize("n_events", [0, 1, 3])
def test_a_few_events_settle_no_comparison(n_events: int) -> None:
    y = (np.arange(1000) < n_events).astype(int)
    rng = np.random.default_rng(1)
    high, low = rng.uniform(0.015, 0.025, 1000), rng.uniform(0.0005, 0.0015, 1000)
    comparison = to.compare(y, high, low, "brier", resamples=200)
    assert comparison.pvalue < 0.05
    assert comparison.better is None
    assert "TN273" in {note.code for note in comparison.notes}
    ranking = to.compare(y, {"high": high, "low": low, "half": (high + low) / 2}, "brier", resamples=200)
    assert ranking.settled == ()


def test_events_that_refute_a_model_settle_a_comparison() -> None:
    # 12 events contradict the low model: rare large losses support the difference instead of contradicting it.
    y = (np.arange(1000) < 12).astype(int)
    comparison = to.compare(y, np.full(1000, 0.012), np.full(1000, 1e-9), "log_loss", resamples=200)
    assert comparison.better == "a"
    assert "TN273" not in {note.code for note in comparison.notes}


def test_common_outcomes_are_compared_as_before() -> None:
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 1.5, (600, 4))
    prob = softmax(logits, axis=1)
    y = (prob.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1).clip(max=3)
    table = to.table(y, {"scaled": prob, "raw": softmax(2.5 * logits, axis=1)}, ["brier", "log_loss"], resamples=200)
    assert set(table.bold.values()) == {"scaled"}


def test_clusters_count_once() -> None:
    # 60 events in two clusters of 30 rows are two units.
    cluster = np.arange(3000) // 30
    y = np.isin(cluster, [0, 1]).astype(int)
    preds = [to.Predictions(y, np.full(3000, p), cluster=cluster) for p in (0.06, 0.003)]
    assert to.compare(*preds, "brier", resamples=200).pvalue is not None
    pairs = to.table({"high": preds[0], "low": preds[1]}, ["brier"], resamples=200)
    assert pairs.bold == {"brier": None}


def test_every_model_right_in_every_row_is_not_enough_to_compare_confidences() -> None:
    prob = np.tile([0.99, 0.005, 0.005], (50, 1))
    confident = np.tile([0.9998, 0.0001, 0.0001], (50, 1))
    prob[:, 0] += np.linspace(-0.004, 0.004, 50)
    prob[:, 1] -= np.linspace(-0.004, 0.004, 50)
    comparison = to.compare(np.zeros(50, int), prob, confident, "log_loss", resamples=200)
    assert comparison.better is None
    assert "neither model made an error" in "".join(note.text for note in comparison.notes)


@pytest.mark.parametrize("estimator", ["brier", "log_loss", "calibration_in_the_large", "o_e"])
def test_without_an_event_the_mean_has_no_interval(estimator: str) -> None:
    """Regression: the spread of the predictions alone gave intervals that excluded the truth in up to 38 %."""
    p = np.random.default_rng(1).beta(1, 49, 60)
    preds = to.Predictions(np.zeros(60, int), p)
    for data in (preds, to.tally(preds)):
        estimate = to.measure(data, estimator, resamples=200)
        assert estimate.interval is None
        assert any(note.code == "TN201" and "outcomes do not vary" in note.text for note in estimate.notes)
    other = to.Predictions((np.arange(200) < 20).astype(int), np.full(200, 0.1))
    comparison = to.compare(preds, other, estimator, paired=False, resamples=200)
    assert (comparison.interval, comparison.pvalue, comparison.better) == (None, None, None)
    assert "TN201" in {note.code for note in comparison.notes}
    assert to.measure(preds, "ece", resamples=200).interval is not None  # which uses the variance of the predictions


def test_a_group_without_an_event_settles_no_difference() -> None:
    rng = np.random.default_rng(0)
    p, group = np.full(300, 0.07), np.repeat(["a", "b"], [270, 30])
    y = np.concatenate([rng.random(270) < 0.07, np.zeros(30, bool)]).astype(int)
    result = to.by_group(to.Predictions(y, p, group={"g": group}), "o_e", resamples=200)
    assert [(gap.interval, gap.settled) for gap in result.gaps] == [(None, False)]
