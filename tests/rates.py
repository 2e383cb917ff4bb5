"""Decide about the rate of an event from as few repetitions as suffice."""

from __future__ import annotations

from collections.abc import Iterable

from scipy.stats import binom


def rate_is_at_level(outcomes: Iterable[bool], level: float, *, excluded: float) -> bool:
    """Whether an event happens no more often than at the rate `level`, up to the 99.9 % quantile of its number.

    No further outcome is drawn as soon as the events so far are so few that with the higher rate `excluded` they would
    have a probability below 0.1 %.
    """
    events = n = 0
    for n, happened in enumerate(outcomes, 1):
        events += happened
        if binom.cdf(events, n, excluded) < 0.001:
            return True
    return bool(events <= binom.ppf(0.999, n, level))
