"""Honest simultaneous confidence band for an increasing event rate, valid for any sample size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.diagrams.corp.bands import Band
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums

MAX_GROUPS = 192  # maximum number of groups; neighbors among more distinct scores are merged


@dataclass(frozen=True)
class GroupLimits:
    """Limits of the event rate from each group of scores.

    The event rate is at least `lower` at scores from `high` on, and at most `upper` at scores up to `low`, because it
    does not decrease with the score.
    """

    low: Array  # (m,) smallest score of the group
    high: Array  # (m,) largest score of the group
    lower: Array  # (m,) lower limit of the event rate
    upper: Array  # (m,) upper limit
    method: str  # name of the limits of a single range

    @property
    def limits_cross(self) -> bool:
        """Whether no increasing curve lies between the limits."""
        return bool((self.lower > self.upper).any())

    def band(self) -> StepBand:
        """The limits as a step function on [0, 1]; where they cross, the band is the range between them."""
        edges = np.unique(np.concatenate([[0.0], self.low, self.high, [1.0]]))
        return StepBand(edges[:-1], edges[1:], *self.at(edges[:-1], edges[1:]), self.method, self)

    def at(self, low_x: Array, high_x: Array) -> tuple[Array, Array]:
        """The limits of the band between each score `low_x` and `high_x`, (k,) each."""
        lower = np.append(0.0, self.lower)[np.searchsorted(self.high, low_x, "right")]
        upper = np.append(self.upper, 1.0)[np.searchsorted(self.low, high_x, "left")]
        return np.minimum(lower, upper), np.maximum(lower, upper)


@dataclass(frozen=True)
class StepBand(Band):
    """Limits that are constant between scores, and narrower at the scores themselves."""

    limits: GroupLimits

    def limits_at(self, x: Array) -> tuple[Array, Array]:
        """The limits at given scores."""
        return self.limits.at(x, x)

    def restrict_to_range(self, low: float, high: float) -> Band:
        """The part of the band between two scores."""
        if low == high:
            lower, upper = self.limits_at(np.array([low]))
            return Band(np.array([low]), np.array([high]), lower, upper, self.method)
        mask = (self.x_high > low) & (self.x_low < high)
        start, stop = np.maximum(self.x_low[mask], low), np.minimum(self.x_high[mask], high)
        return StepBand(start, stop, self.low[mask], self.high[mask], self.method, self.limits)


def simultaneous_limits(score_sums: DistinctScoreSums, level: float, max_groups: int = MAX_GROUPS) -> GroupLimits:
    r"""Limits that cover the true event rates at all scores with probability `level`, for any non-decreasing rates.

    .. math:: L(x) = \max_{j \le l,\; x_l \le x} B^{-1}(a;\; S_{jl},\, n_{jl} - S_{jl} + 1), \quad
        U(x) = \min_{j \le l,\; x \le x_j} B^{-1}(1 - a;\; S_{jl} + 1,\, n_{jl} - S_{jl})

    with :math:`a = (1 - \text{level}) / (m(m+1))`, and :math:`S_{jl}` events among the :math:`n_{jl}` rows of the
    scores from :math:`x_j` to :math:`x_l`. These are Clopper-Pearson limits of every range of consecutive scores, with
    a Bonferroni correction. The mean event rate of a range is at most the rate at its last score, because rates do not
    decrease. Beyond `max_groups` scores, neighbors are merged into groups of about equal weight. The rows of a group
    then bound the event rate only at scores beyond all of them, so the limits remain valid, and their steps move by at
    most the width of a group along x. The smaller number of ranges even tightens them.

    With vote shares or unequal weights, the event counts are sums of independent terms in [0, wmax], whose tail
    probability is at most e times that of a binomial (Bentkus 2004). The limits then use a/e, with counts rounded
    outward. A tally with unequal weights in a cell does not know wmax: call `require_known_max_weight` first.

    Valid only if the true event rate never decreases with the score. Cost: O(m²) quantiles, 0.1 s for n = 10⁴ and 0.4 s
    for 10⁶. Source: Dimitriadis, Dümbgen, Henzi, Puke & Ziegel (2023).
    """
    groups = score_sums.merge_by_weight(max_groups)
    is_exact = not score_sums.has_vote_shares and bool(
        np.isclose(score_sums.w, score_sums.max_weight * score_sums.n, rtol=1e-9).all()
    )
    m = len(groups.score)
    tail = (1 - level) / (m * (m + 1)) / (1.0 if is_exact else np.e)
    first, last = np.triu_indices(m)

    def range_sums(values: Array) -> Array:
        """The sum of `values` (m,) over each range from `first` to `last`."""
        cumulative = np.append(0.0, np.cumsum(values))
        return cumulative[last + 1] - cumulative[first]

    n = np.rint(range_sums(groups.n))
    events = range_sums(groups.wy / groups.max_weight)
    scaled_weight = range_sums(groups.w / groups.max_weight)
    if is_exact:  # the events are counts, up to rounding errors
        min_events = max_events = np.rint(events)
        scale: Array | float = 1.0
    else:
        min_events, max_events = np.floor(events + 1e-9), np.ceil(events - 1e-9)
        scale = n / scaled_weight  # from events per row to events per unit of weight
    lower, upper = np.zeros((m, m)), np.ones((m, m))
    lower[first, last] = np.minimum(scale * _beta_quantile(min_events, n - min_events + 1, tail), 1.0)
    upper[first, last] = np.minimum(scale * (1 - _beta_quantile(n - max_events, max_events + 1, tail)), 1.0)
    return GroupLimits(
        groups.low,
        groups.high,
        np.maximum.accumulate(lower.max(axis=0)),
        np.minimum.accumulate(upper.min(axis=1)[::-1])[::-1],
        "Clopper-Pearson" if is_exact else "Bentkus",
    )


def require_known_max_weight(score_sums: DistinctScoreSums, is_rows: bool) -> None:
    """Raise TO403 for cells whose rows have unequal weights, because the largest weight is unknown."""
    if not is_rows and not score_sums.has_equal_weights.all():
        raise InputError(
            "TO403",
            "The honest band of rows with unequal weights needs the rows.",
            "a tally",
            "Use band='consistency', or mode='exact'.",
        )


def _beta_quantile(a: Array, b: Array, tail: float) -> Array:
    """The lower quantile of Beta(a, b), and 0 where a = 0."""
    return np.where(a > 0, betaincinv(np.maximum(a, 1.0), b, tail), 0.0)
