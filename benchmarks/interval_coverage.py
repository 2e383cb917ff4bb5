"""Benchmark of the default confidence intervals: how often they contain the true value, in simulated data sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trueodds.core.results import Interval
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.null_distribution import noise_floor_draws

# Names of estimators, with settings.
ESTIMATORS_AND_SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("ece", {}),
    ("mce", {"bins": 10}),
    ("rmsce", {}),
    ("rmsce", {"partition": "equal-mass", "bins": 10}),
    ("brier", {}),
]
# Slope and intercept of the true logit as a function of the predicted logit; (1, 0) is calibrated.
SLOPES_AND_INTERCEPTS = [(1.0, 0.0), (1 / 1.1, 0.0), (1 / 1.3, 0.0), (1 / 1.6, 0.35), (1 / 2.5, 0.5)]
LOGIT_STD = 1.3  # standard deviation of the predicted logits
SAMPLE_SIZES = (30, 300, 1000, 5000)


@dataclass
class CoverageCounts:
    """Counts over the simulated data sets of one estimator, model and sample size."""

    n_covered: int = 0  # intervals that contain the true value
    n_below: int = 0  # intervals that end below it
    total_width: float = 0.0  # sum of the widths
    method: str = "none"  # interval method of the last data set

    def add(self, interval: Interval | None, true_value: float) -> None:
        """Count the interval of one data set; an estimate without an interval counts as [0, 1]."""
        low, high = (0.0, 1.0) if interval is None else (interval.low, interval.high)
        self.n_covered += low <= true_value <= high
        self.n_below += true_value > high
        self.total_width += high - low
        self.method = "none" if interval is None else interval.method


def print_coverage(n_sets: int) -> None:
    """Print a row for each estimator, model and sample size, from `n_sets` simulated data sets each."""
    print(
        f"{'error':8} {'bins':14} {'slope':>5} {'n':>5} {'truth':>7} {'method':14} {'covers':>7} {'above':>6}"
        f" {'width':>7}"
    )
    for name, settings in ESTIMATORS_AND_SETTINGS:
        estimator = ESTIMATORS.make(name, settings)
        settings_text = " ".join(str(value) for value in settings.values()) or "default"
        for slope, intercept in SLOPES_AND_INTERCEPTS:
            true_value = find_true_value(name, estimator, slope, intercept)
            for n in SAMPLE_SIZES:
                counts = simulate_coverage(estimator, slope, intercept, n, n_sets, true_value)
                print(
                    f"{name:8} {settings_text:14} {slope:5.2f} {n:5d} {true_value:7.4f} {counts.method:14}"
                    f" {counts.n_covered / n_sets:7.3f} {counts.n_below / n_sets:6.3f}"
                    f" {counts.total_width / n_sets:7.4f}",
                    flush=True,
                )


def find_true_value(name: str, estimator: Any, slope: float, intercept: float) -> float:
    """Return the value of an estimator on two million rows whose outcomes are their true probabilities."""
    logit = np.random.default_rng(99).normal(0, LOGIT_STD, 2_000_000)
    p, true_prob = logistic(logit), logistic(slope * logit + intercept)
    if name == "brier":  # not linear in the outcome, so that its expected value has to be taken
        return float((true_prob * (1 - p) ** 2 + (1 - true_prob) * p**2).mean())
    return float(estimator.value(View(p, true_prob)))


def simulate_coverage(
    estimator: Any, slope: float, intercept: float, n: int, n_sets: int, true_value: float
) -> CoverageCounts:
    """Simulate data sets of n rows, and count how their default intervals lie relative to the true value."""
    rng = np.random.default_rng(5)
    counts = CoverageCounts()
    for _ in range(n_sets):
        logit = rng.normal(0, LOGIT_STD, n)
        y = (rng.random(n) < logistic(slope * logit + intercept)).astype(int)
        preds = Predictions(y, logistic(logit))
        estimands = [Estimand.from_predictions(estimator, as_lens("positive"), preds)]
        draw_noise_floor = partial(noise_floor_draws, preds, rng=rng, redraws=199)
        (estimate,) = estimate_all(preds, estimands, IntervalSpec(resamples=400), rng, draw_noise_floor)
        counts.add(estimate.interval, true_value)
    return counts


def logistic(x: np.ndarray) -> np.ndarray:
    """Return the probabilities of logits."""
    return 1 / (1 + np.exp(-x))
