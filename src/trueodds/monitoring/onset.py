"""Since when a model is wrong, and by how much: the onset of an error, and its size with an anytime-valid interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trueodds.core.json_files import JsonObject
from trueodds.core.results import Interval
from trueodds.monitoring.capital import Alternatives, weights
from trueodds.monitoring.cohort_tally import ALL_ROWS
from trueodds.monitoring.evidence import EVENTS, EXPECTED, ROWS, UNKNOWN, UNLABELED_EXPECTED, VARIANCE
from trueodds.monitoring.judgment import JudgedSums

REGION = 3.0  # nats below the best start that are still in the region of the onset
PRIOR_VARIANCE = 50.0  # variance of the events at which the anytime-valid interval is narrowest, relative to its size


@dataclass(frozen=True, slots=True)
class Onset(JsonObject):
    """The cohort since which the evidence is largest.

    Attributes
    ----------
    since, earliest, latest : str
        The cohort, and the first and last cohort of the region of starts that are nearly as likely.
    view : str
        View in which the error was dated.
    group : str or None
        Group in which it was dated; None for all rows.
    """

    since: str
    earliest: str
    latest: str
    view: str
    group: str | None


@dataclass(frozen=True, slots=True)
class MonitoredError(JsonObject):
    """Mean error of the probabilities since the onset.

    Attributes
    ----------
    value : float
        Observed minus predicted event rate.
    interval : Interval
        Interval that covers the mean error of these rows with its level, however often one looks, and although an
        alarm chooses the onset, the class and the group from the same data. In 16 simulated designs of 300 streams,
        with one class, ten classes, 8 and 40 groups, the intervals of all reports from the alarm on covered in at least
        99.5 % of the streams. Intervals for a choice made in advance are narrower by a factor of 1.3 to 1.9, but would
        cover in 33 to 99 %.
    o_e : float
        Observed divided by expected events.
    o_e_interval : Interval
        The same interval for the ratio.
    rows, observed, expected : float
        Number of rows, of events, and of expected events.
    view : str
        The view of the lens, such as a class.
    group : str or None
        The group; None for all rows.
    """

    value: float
    interval: Interval
    o_e: float
    o_e_interval: Interval
    rows: float
    observed: float
    expected: float
    view: str
    group: str | None


def find_onset(
    history: list[JudgedSums], name: str, view: int, alternatives: Alternatives, *, has_shock: bool
) -> tuple[int, int, int] | None:
    """Return the positions of the best start, and of the first and the last start within `REGION` of it.

    The evidence of a start is that of level, slope and the products of cells from there on. None if no start has an
    evidence of `REGION`, as after an alarm that a single impossible outcome raised.
    """
    n = alternatives.n_tilts + alternatives.n_slopes
    bets = weights(alternatives, has_shock=has_shock)
    share = np.concatenate((bets[:n], bets[alternatives.size :]))
    rows = [sums.log_ratios[name][view] if name in sums.log_ratios else np.zeros(len(share)) for sums in history]
    later_sums = np.cumsum(np.stack(rows)[::-1], axis=0)[::-1]
    with np.errstate(divide="ignore"):
        evidence = np.logaddexp.reduce(later_sums + np.log(share), axis=1)
    best = int(evidence.argmax())
    if evidence[best] < REGION:
        return None
    near = np.flatnonzero(evidence >= evidence[best] - REGION)
    return best, int(near[0]), int(near[-1])


def estimate_error(
    history: list[JudgedSums], name: str, view: int, view_name: str, alpha: float, share: float = 1.0
) -> MonitoredError | None:
    r"""Return the mean error of some cohorts in the rows of a group (`name`) and a view; None without rows.

    .. math:: \frac{O - E \pm \sqrt{(V + 50)\,(2 \ln(1/(\alpha s)) + \ln(1 + V/50))}}{n}

    V is Σp(1 − p), or that of the observed rate if it is larger. If the cohorts, the group or the view are chosen from
    the same data, s (`share`) is the share of the capital that was bet on them in advance. These shares add up to 1, so
    that the intervals of all choices cover at once with probability 1 − alpha. An unknown outcome is an event at one
    end of the interval and none at the other; the value counts its predicted probability.
    """
    totals = [sums.totals[name][view] for sums in history if name in sums.totals]
    if not totals:
        return None
    known, observed, expected, variance, unknown, unlabeled_expected = (
        float(np.sum(totals, axis=0)[column])
        for column in (ROWS, EVENTS, EXPECTED, VARIANCE, UNKNOWN, UNLABELED_EXPECTED)
    )
    n, estimated = known + unknown, observed
    if not n:
        return None
    if unknown:  # then no row is left out
        estimated, expected = observed + unlabeled_expected, expected + unlabeled_expected
        variance += unlabeled_expected * (1 - unlabeled_expected / unknown)  # at least Σp(1 − p)
    rate, mean = estimated / n, expected / n
    if 0 < mean < 1:
        variance *= max(1.0, rate * (1 - rate) / (mean * (1 - mean)))
    deviation = 2 * math.log(1 / (alpha * share)) + math.log1p(variance / PRIOR_VARIANCE)
    width = math.sqrt((variance + PRIOR_VARIANCE) * deviation)
    low, high = (observed - expected - width) / n, (observed + unknown - expected + width) / n
    level = 1 - alpha
    ratios = (
        (math.nan,) * 3 if expected == 0 else (estimated / expected, 1 + low * n / expected, 1 + high * n / expected)
    )
    return MonitoredError(
        value=(estimated - expected) / n,
        interval=Interval(max(low, -1.0), min(high, 1.0), level, "anytime"),
        o_e=ratios[0],
        o_e_interval=Interval(max(ratios[1], 0.0), ratios[2], level, "anytime"),
        rows=n,
        observed=estimated,
        expected=expected,
        view=view_name,
        group=None if name == ALL_ROWS else name,
    )
