"""Simulated streams of cohorts: predictions of many kinds, and the ways in which their calibration is lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from trueodds.core.typing import Array

Rng = np.random.Generator
MARGIN = math.log(1.05)


def _beta(a: float, b: float) -> Callable[[Rng, int], Array]:
    return lambda rng, n: rng.beta(a, b, n)


def _values(*values: float) -> Callable[[Rng, int], Array]:
    return lambda rng, n: rng.choice(values, n)


# Probabilities of n rows, (n,), or of n rows and ten classes, (n, 10).
SCORES: Mapping[str, Callable[[Rng, int], Array]] = {
    "13 %": _beta(1.3, 8.7),
    "40 %": _beta(2, 3),
    "rare": _beta(0.5, 49.5),  # 1 %
    "sharp": _beta(0.1, 0.1),
    "tied": _values(0.1, 0.3, 0.6),
    "certain": _values(0, 0.2, 0.7, 1),
    "ten classes": lambda rng, n: rng.dirichlet(np.full(10, 0.3), n),
}


def within_margin(p: Array, rng: Rng) -> Array:
    """Probabilities whose odds are wrong by up to 5 %, differently in every row, but in one direction.

    Of several classes, one is wrong, and the others share the rest as before, so that their odds change by less.
    """
    sides = 1 if rng.random() < 0.5 else -1
    if p.ndim == 1:
        return np.asarray(expit(logit(p) + sides * MARGIN * np.sqrt(rng.random(p.shape))))
    k = int(rng.integers(p.shape[1]))
    of_class = within_margin(p[:, k], rng)
    truth = p * ((1 - of_class) / (1 - p[:, k]))[:, None]
    truth[:, k] = of_class
    return truth


def draw_labels(P: Array, rng: Rng) -> Array:
    """Outcomes (n,) of two classes, or labels of vectors (n, K)."""
    if P.ndim == 1:
        return rng.random(len(P)) < P
    return np.asarray((rng.random((len(P), 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, P.shape[1] - 1))


@dataclass(frozen=True)
class Drift:
    """A loss of calibration.

    `truth(p, share)` are the true probabilities; `share` grows from 0 to 1 over `ramp` cohorts.
    """

    name: str
    scores: str
    truth: Callable[[Array, float], Array]
    ramp: int = 0
    groups: int = 0  # number of groups of the rows, the last of which drifts
    cohorts: int = 60  # number of cohorts that are observed after the change

    def probabilities(self, p: Array, cohort: int, change: int) -> Array:
        """The true probabilities in a cohort; the drift begins in the cohort `change`."""
        if cohort < change:
            return p
        return self.truth(p, 1.0 if not self.ramp else min(1.0, (cohort - change + 1) / self.ramp))


@cache
def _find_shift(scores: str, points: float) -> float:
    """The shift of the log odds by which the mean probability, or that of the first of ten classes, rises by this."""
    p = SCORES[scores](np.random.default_rng(0), 50_000)
    log_odds = logit(_first(p))
    mean = expit(log_odds).mean()
    return float(brentq(lambda shift: expit(log_odds + shift).mean() - mean - points, 0, 5))


def _first(P: Array) -> Array:
    """The probability of the event, or of the first class, where a shift of its log odds is defined."""
    return np.clip(P if P.ndim == 1 else P[:, 0], 1e-300, 1 - 1e-12)


def _points(scores: str, points: float) -> Callable[[Array, float], Array]:
    """A shift of the log odds of the event, or of the first class; the other classes keep their proportions."""

    def truth(P: Array, share: float) -> Array:
        first = _first(P)
        more = expit(logit(first) + share * _find_shift(scores, points))
        if P.ndim == 1:
            return np.asarray(more)
        return np.column_stack((more, P[:, 1:] / (1 - first)[:, None] * (1 - more)[:, None]))

    return truth


def _slope(slope: float, mean: float) -> Callable[[Array, float], Array]:
    center = float(logit(mean))
    return lambda p, share: np.asarray(expit(center + slope**share * (logit(p) - center)))


def _wave(points: float) -> Callable[[Array, float], Array]:
    return lambda p, share: np.asarray(np.clip(p + share * points * np.sin(6 * np.pi * p), 0, 1))


DRIFTS = (
    Drift("+3 points, 13 %", "13 %", _points("13 %", 0.03)),
    Drift("+3 points, 40 %", "40 %", _points("40 %", 0.03)),
    Drift("slope .8, 13 %", "13 %", _slope(0.8, 0.13)),
    Drift("slope .8, 40 %", "40 %", _slope(0.8, 0.40)),
    Drift("wave of 6 points, 40 %", "40 %", _wave(0.06)),
    Drift("wave of 10 points, 40 %", "40 %", _wave(0.10)),
    Drift("events of 1 % × 1.5", "rare", lambda p, share: np.asarray(np.minimum(p * 1.5**share, 1))),
    Drift("one class of ten, +3 points", "ten classes", _points("ten classes", 0.03)),
    Drift("one group of eight, +6 points, 13 %", "13 %", _points("13 %", 0.06), groups=8),
    Drift("slowly to +3 points, 13 %", "13 %", _points("13 %", 0.03), ramp=26),
    Drift("slowly to +3 points, 40 %", "40 %", _points("40 %", 0.03), ramp=26),
)
