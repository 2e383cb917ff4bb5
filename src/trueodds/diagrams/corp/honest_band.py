"""Honest simultaneous confidence band for an increasing event rate, valid for any sample size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.diagrams.corp.bands import Band
from trueodds.diagrams.score_sums import ScoreSums

MAX_GROUPS = 192  # of neighboring scores that are told apart


@dataclass(frozen=True)
class GroupLimits:
    """Of each group of scores: no rate at `high` or above is below `lower`, none at `low` or below above `upper`."""

    low: Array  # (m,) the scores between which the group's rows lie
    high: Array
    lower: Array
    upper: Array
    method: str

    @property
    def crossed(self) -> bool:
        """Whether no curve that never falls lies between the limits."""
        return bool((self.lower > self.upper).any())

    def band(self) -> StepBand:
        """The limits as steps from 0 to 1; where they cross, what lies between them is shown."""
        cuts = np.unique(np.concatenate([[0.0], self.low, self.high, [1.0]]))
        lower = np.append(0.0, self.lower)[np.searchsorted(self.high, cuts[:-1], "right")]
        upper = np.append(self.upper, 1.0)[np.searchsorted(self.low, cuts[1:], "left")]
        return StepBand(cuts[:-1], cuts[1:], np.minimum(lower, upper), np.maximum(lower, upper), self.method, self)


@dataclass(frozen=True)
class StepBand(Band):
    """Limits that stay the same on the stretches between scores; at the scores themselves they are closer."""

    limits: GroupLimits

    def at(self, x: Array) -> tuple[Array, Array]:
        """The limits at scores."""
        lower = np.append(0.0, self.limits.lower)[np.searchsorted(self.limits.high, x, "right")]
        upper = np.append(self.limits.upper, 1.0)[np.searchsorted(self.limits.low, x, "left")]
        return np.minimum(lower, upper), np.maximum(lower, upper)

    def within(self, low: float, high: float) -> Band:
        """The part of the band between two scores."""
        if low == high:
            lower, upper = self.at(np.array([low]))
            return Band(np.array([low]), np.array([high]), lower, upper, self.method)
        some = (self.x_high > low) & (self.x_low < high)
        start, stop = np.maximum(self.x_low[some], low), np.minimum(self.x_high[some], high)
        return StepBand(start, stop, self.low[some], self.high[some], self.method, self.limits)


def simultaneous_limits(scores: ScoreSums, level: float, max_groups: int = MAX_GROUPS) -> GroupLimits:
    r"""A band that holds the true rates r at all scores at once with probability `level`, for any n and any rising r.

    .. math:: L(x) = \max_{j \le l,\; x_l \le x} B^{-1}(a;\; S_{jl},\, n_{jl} - S_{jl} + 1), \quad
        U(x) = \min_{j \le l,\; x \le x_j} B^{-1}(1 - a;\; S_{jl} + 1,\, n_{jl} - S_{jl})

    with :math:`a = (1 - \text{level}) / (m(m+1))`: Clopper & Pearson's limits of every stretch of successive scores,
    since the rows of a stretch come true at most as often as its last score says, and Bonferroni over all of them.
    Beyond `max_groups` scores neighbors make up groups of about equal weight. A group's rows then speak only for what lies
    beyond all of them, so the limits stay valid, and lose at most a group's width of sharpness along x; fewer
    stretches even bring them closer together.

    Outcomes that are shares of votes, and rows that weigh differently, make sums of independent terms within
    [0, wmax], which exceed a binomial's tail at most e times (Bentkus 2004): limits at a/e, counts rounded outward.
    A tally whose cells hold rows of different weight does not know wmax: TO403.

    Holds only if the true rate never falls with the score. Cost: O(m²) quantiles, 0.1 s for n = 10⁴ and 0.4 s for 10⁶.
    Source: Dimitriadis, Dümbgen, Henzi, Puke & Ziegel (2023).
    """
    groups = scores.by_weight(max_groups)
    exact = not scores.voted and bool(np.isclose(scores.w, scores.heaviest * scores.n, rtol=1e-9).all())
    m = len(groups.at)
    tail = (1 - level) / (m * (m + 1)) / (1.0 if exact else np.e)
    first, last = np.triu_indices(m)

    def range_sums(values: Array) -> Array:
        reached = np.append(0.0, np.cumsum(values))
        return reached[last + 1] - reached[first]

    n, events, mass = (
        np.rint(range_sums(groups.n)),
        range_sums(groups.wy / groups.heaviest),
        range_sums(groups.w / groups.heaviest),
    )
    min_events, max_events = (
        (np.rint(events), np.rint(events)) if exact else (np.floor(events + 1e-9), np.ceil(events - 1e-9))
    )
    scale = 1.0 if exact else n / mass
    lower, upper = np.zeros((m, m)), np.ones((m, m))
    lower[first, last] = np.minimum(scale * _beta_quantile(min_events, n - min_events + 1, tail), 1.0)
    upper[first, last] = np.minimum(scale * (1 - _beta_quantile(n - max_events, max_events + 1, tail)), 1.0)
    return GroupLimits(
        groups.low,
        groups.high,
        np.maximum.accumulate(lower.max(axis=0)),
        np.minimum.accumulate(upper.min(axis=1)[::-1])[::-1],
        "Clopper-Pearson" if exact else "Bentkus",
    )


def check_weights(scores: ScoreSums, rows: bool) -> None:
    """Refuse cells whose rows weigh differently: how heavy the heaviest is, is not known."""
    if not rows and not scores.even.all():
        raise InputError(
            "TO403",
            "The honest band of rows that weigh differently needs the rows.",
            "a tally",
            "Use band='consistency', or mode='exact'.",
        )


def _beta_quantile(a: Array, b: Array, tail: float) -> Array:
    """The lower quantile of Beta(a, b), 0 where a = 0."""
    return np.where(a > 0, betaincinv(np.maximum(a, 1.0), b, tail), 0.0)
