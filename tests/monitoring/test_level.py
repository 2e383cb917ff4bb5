"""Does a monitor keep its level, and how many cohorts after a change does it raise an alarm?

Streams are simulated with the sums and the capital of the monitor, as views of one model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import trueodds as to
from trueodds.monitoring.capital import Alternatives, Capital
from trueodds.monitoring.evidence import sum_evidence

MARGIN = float(np.log(1.05))
N_STREAMS, ALPHA = 200, 0.05


def tilt(p: Any, t: Any) -> Any:
    """Probabilities whose log odds are shifted."""
    return p * np.exp(t) / (1 - p + p * np.exp(t))


def first_alarms(
    draw: Callable[[np.random.Generator, int], tuple[Any, Any]],
    rows: int,
    n_cohorts: int,
    n_streams: int = N_STREAMS,
    alternatives: Alternatives = Alternatives(MARGIN, -1.0),  # noqa: B008 - frozen
) -> Any:
    """The cohort, from 1, that raises the alarm in each stream; infinity if none does."""
    rng = np.random.default_rng(17)
    capital = Capital.start(alternatives, n_streams)
    alarms = np.full(n_streams, np.inf)
    key = np.repeat(np.arange(n_streams), rows)
    for cohort in range(1, n_cohorts + 1):
        p, truth = draw(rng, cohort)
        p, truth = np.broadcast_to(p, len(key)), np.broadcast_to(truth, len(key))
        y = (rng.random(len(key)) < truth).astype(np.uint8)
        sums = sum_evidence(p, y, None, key, n_streams, alternatives, squared_weights=True, shock_sd=0.0)
        capital = capital.judge(np.stack([part.log_ratios(alternatives, 0.0) for part in sums]), alternatives)
        is_alarm = capital.log_evidence(alternatives) >= -np.log(ALPHA)
        alarms[is_alarm & np.isinf(alarms)] = cohort
    return alarms


DESIGNS: dict[str, tuple[int, Callable[[np.random.Generator, int], Any]]] = {
    "3 rows": (3, lambda rng, n: rng.beta(2, 5, n)),
    "rare": (200, lambda rng, n: rng.beta(0.5, 100, n)),
    "tied": (5, lambda rng, n: rng.integers(0, 11, n) / 10),
    "certain": (5, lambda rng, n: rng.choice([0.0, 1.0, 0.5], n)),
    "sharp": (20, lambda rng, n: rng.beta(0.1, 0.1, n)),
}


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_calibrated_streams_raise_an_alarm_at_most_at_the_level(design: str) -> None:
    """Alarms are at most Binomial(200, .05): stay within its 99.9 % quantile."""
    rows, draw = DESIGNS[design]

    def draw_calibrated(rng: np.random.Generator, _cohort: int) -> tuple[Any, Any]:
        p = draw(rng, rows * N_STREAMS)
        return p, p

    alarms = first_alarms(draw_calibrated, rows, 100)
    assert np.isfinite(alarms).sum() <= binom.ppf(0.999, N_STREAMS, ALPHA)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3, 300])
def test_errors_at_the_margin_that_vary_by_row_and_time_raise_no_more_alarms(rows: int) -> None:
    def draw_at_margin(rng: np.random.Generator, cohort: int) -> tuple[Any, Any]:
        p = rng.beta(2, 5, rows * N_STREAMS)
        signs = np.where(p > 0.3, 1, -1) if cohort % 2 else np.ones(p.size)
        return p, tilt(p, signs * MARGIN)

    alarms = first_alarms(draw_at_margin, rows, 100)
    assert np.isfinite(alarms).sum() <= binom.ppf(0.999, N_STREAMS, ALPHA)


# Cohorts after a change in cohort 20 within which 90 % of the streams of methods/monitor.md raised their alarm. Half of
# these streams, whose predictions are distributed differently, must do so.
DELAYS: dict[str, tuple[float, float, Callable[[Any], Any]]] = {
    "+3 points at 13 %": (0.13, 3, lambda p: p + 0.03),
    "+3 points at 40 %": (0.40, 8, lambda p: p + 0.03),
    "slope .8 at 40 %": (0.40, 5, lambda p: 1 / (1 + ((1 - p) / p) ** 0.8)),
    "wave of 10 points at 40 %": (0.40, 2, lambda p: np.clip(p + 0.1 * np.sin(2 * np.pi * p / 0.4), 0, 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("drift", DELAYS)
def test_a_drift_is_seen_a_few_cohorts_after_it(drift: str) -> None:
    mean, longest, shift = DELAYS[drift]
    n_streams, change = 20, 20

    def draw_drifting(rng: np.random.Generator, cohort: int) -> tuple[Any, Any]:
        p = np.clip(rng.beta(4 * mean, 4 * (1 - mean), 2000 * n_streams), 0.001, 0.999)
        return p, np.clip(shift(p), 0, 1) if cohort > change else p

    center = float(np.log(mean / (1 - mean)))
    alarms = first_alarms(draw_drifting, 2000, change + 12, n_streams, Alternatives(MARGIN, center))
    assert (alarms > change).all()
    assert np.median(alarms) - change <= longest


@pytest.mark.slow
def test_labels_whose_delay_depends_on_the_outcome_raise_no_false_alarm() -> None:
    """Events are known after a day, other outcomes after nine; every stream is looked at every day."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(25):
        day = np.repeat(np.arange(30), 20)
        p = rng.beta(2, 5, day.size)
        y = (rng.random(day.size) < p).astype(float)
        monitor = to.Monitor("10d", center=0.3)
        for today in range(42):
            known = np.where(day + np.where(y == 1, 1, 9) <= today, y, np.nan)
            now = day <= today
            start = np.datetime64("2026-01-01")
            monitor.update(to.Predictions(known[now], p[now]), start + day[now], start + today)
            report = monitor.report()
        assert report.status.judged == 30
        alarms += report.alarm
    assert alarms <= binom.ppf(0.999, 25, ALPHA)
