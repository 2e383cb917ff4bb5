"""Check by simulation that tests keep their level and that intervals cover the true value, with few data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import binom

import trueodds as to
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.selftest.outcomes import FAILED, PASSED, Check

# Probability that one comparison fails although the program is right, for a random seed. All sections together make
# fewer than 50 comparisons with random numbers, so that the self-test fails by chance less than once in a million.
CHANCE = 1e-8
FALSE_ALARM = 1e-6
SEED = 20_260_101
N_ROWS, N_SETS, N_REDRAWS = 100, 200, 99
# Tests whose null distribution is that of redrawn labels: they are exact for any number of rows.
_REDRAW = {"null": "redraw"}
EXACT_TESTS: dict[str, dict[str, Any]] = {
    "bins": _REDRAW,
    "consistency": {},  # has no other null distribution
    "cox": {"form": "score"} | _REDRAW,
    "debiased_l2": _REDRAW,
    "ecce": _REDRAW,
    "hosmer_lemeshow": _REDRAW,
    "ks": _REDRAW,
    "omnibus": {},
    "spiegelhalter": _REDRAW,
}
N_COVERAGE_SETS, N_COVERAGE_ROWS = 200, 400
# Intervals with a nominal level of 95 % and their estimate's true value for p ~ U(0, 1) and events of probability p².
# The mean of p − p² is 1/6, and so is the ECE with any bins, because p² < p everywhere; the Brier score is
# E[p²(1 − p)² + (1 − p²)p²] = 1/30 + 2/15. O:E is (1/3)/(1/2).
TRUE_VALUES = {
    "calibration_in_the_large": -1 / 6,
    "o_e": 2 / 3,
    "ece": 1 / 6,
    "brier": 1 / 6,
    "ks": 1 / 6,
}
MIN_COVERAGE = 0.90  # what is required of intervals of 95 % with 400 rows
MAX_WIDTH_RATIO = 1.4  # of the mean width to that of a normal interval with the estimates' own standard deviation


def _draw_rows(n_sets: int, n: int, power: float) -> Iterator[Predictions]:
    """Yield sets of rows with uniform scores p and events of probability p^power."""
    rng = np.random.default_rng(SEED)
    for _ in range(n_sets):
        p = rng.random(n)
        yield Predictions((rng.random(n) < p**power).astype(int), p)


def check_levels(progress: Callable[[float], None]) -> Iterator[Check]:
    """Test calibrated predictions, and overconfident ones, and count the rejections."""
    most = int(binom.isf(CHANCE, N_SETS, 0.05))
    half = [int(quantile) for quantile in (binom.ppf(CHANCE, N_SETS, 0.5), binom.isf(CHANCE, N_SETS, 0.5))]
    for done, (name, settings) in enumerate(EXACT_TESTS.items()):
        pvalues = np.empty(N_SETS)
        for number, preds in enumerate(_draw_rows(N_SETS, N_ROWS, 1.0)):
            progress((done + number / N_SETS) / len(EXACT_TESTS))
            verdict = to.test(preds, name, resamples=N_REDRAWS, rng=number, lens="positive", progress=False, **settings)
            pvalues[number] = verdict.pvalue
        rejections, below_half = int((pvalues <= 0.05).sum()), int((pvalues <= 0.5).sum())
        is_right = rejections <= most and half[0] <= below_half <= half[1]
        detail = (
            f"{N_SETS} calibrated data sets of {N_ROWS} rows: {rejections} p-values of at most 0.05 (allowed: at most"
            f" {most}), {below_half} of at most 0.5 (allowed: {half[0]} to {half[1]})"
        )
        yield Check(
            "level", f"{name} with redrawn labels", PASSED if is_right else FAILED, detail, methods=(f"tests:{name}",)
        )


def check_coverage(progress: Callable[[float], None]) -> Iterator[Check]:
    """Measure overconfident predictions, and count the intervals that contain the true value."""
    fewest = int(binom.ppf(CHANCE, N_COVERAGE_SETS, MIN_COVERAGE))
    for done, (name, truth) in enumerate(TRUE_VALUES.items()):
        values, lows, highs = (np.empty(N_COVERAGE_SETS) for _ in range(3))
        for number, preds in enumerate(_draw_rows(N_COVERAGE_SETS, N_COVERAGE_ROWS, 2.0)):
            progress((done + number / N_COVERAGE_SETS) / len(TRUE_VALUES))
            estimate = to.measure(preds, name, rng=number, resamples=300)
            values[number] = estimate.value
            interval = estimate.interval
            lows[number], highs[number] = (np.nan, np.nan) if interval is None else (interval.low, interval.high)
        covered = int(((lows <= truth) & (truth <= highs)).sum())
        ratio = _width_ratio(values, highs - lows)
        is_right = covered >= fewest and 1 / MAX_WIDTH_RATIO <= ratio <= MAX_WIDTH_RATIO
        detail = (
            f"{N_COVERAGE_SETS} data sets of {N_COVERAGE_ROWS} rows with a true value of {truth:.4f}: {covered}"
            f" intervals of 95 % contain it (required: at least {fewest}), which are {ratio:.2f} times as wide as the"
            f" spread of the estimates implies (allowed: {1 / MAX_WIDTH_RATIO:.2f} to {MAX_WIDTH_RATIO:.2f})"
        )
        status = PASSED if is_right else FAILED
        yield Check("coverage", f"interval of {name}", status, detail, methods=(f"estimators:{name}",))


def _width_ratio(values: Array, widths: Array) -> float:
    """Return the mean width as a multiple of that of 95 % intervals with the standard deviation of the values."""
    return float(widths.mean() / (2 * 1.959964 * values.std(ddof=1)))
