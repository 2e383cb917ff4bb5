"""Multiple testing with Holm's correction, min-p from joint null draws, and Westfall and Young's step-down p-values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels.holm import holm
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.pvalues import TIE_TOLERANCE, pvalue


@dataclass(frozen=True)
class PValues:
    """p-values of each view, of each lens, and of the family of all lenses."""

    pvalues: list[Array]
    lens_pvalues: list[float]
    family_pvalue: float
    smallest_pvalue: float = 0.0  # smallest possible p-value according to the draws
    claims: int = 1  # number of hypotheses in Holm's correction; 1 if the draws are joint

    @classmethod
    def from_asymptotic(cls, pvalues: Sequence[Sequence[float]]) -> PValues:
        """Asymptotic p-values, with Holm's correction over all views of a family."""
        of_lens = [smallest_pvalue(holm(lens_pvalues)) for lens_pvalues in pvalues]
        return cls(
            [np.array(lens_pvalues) for lens_pvalues in pvalues],
            of_lens,
            smallest_pvalue(holm([p for lens_pvalues in pvalues for p in lens_pvalues])),
        )

    @classmethod
    def from_draws(
        cls, estimands: Sequence[Estimand], draws: Sequence[Array], *, joint_views: bool, joint_lenses: bool
    ) -> PValues:
        """p-values from null draws, with min-p over joint draws and Holm's correction otherwise."""
        observed = [estimand.values for estimand in estimands]
        pvalues = [
            np.array([_view_pvalue(x, drawn) for x, drawn in zip(values, lens_draws, strict=True)])
            for values, lens_draws in zip(observed, draws, strict=True)
        ]
        of_lens = [
            family_pvalue(values.ravel(), _flatten_claims(lens_draws))
            if joint_views
            else smallest_pvalue(holm(list(p)))
            for values, lens_draws, p in zip(observed, draws, pvalues, strict=True)
        ]
        joint = joint_views and (joint_lenses or len(estimands) == 1)
        claims = 1 if joint else sum(len(p) for p in pvalues)
        if len(estimands) == 1:
            return cls(pvalues, of_lens, of_lens[0], claims=claims)
        all_lenses_pvalue = (
            family_pvalue(
                np.concatenate([x.ravel() for x in observed]),
                np.concatenate([_flatten_claims(lens_draws) for lens_draws in draws]),
            )
            if joint
            else smallest_pvalue(holm([float(p) for lens_pvalues in pvalues for p in lens_pvalues]))
        )
        return cls(pvalues, of_lens, all_lenses_pvalue, claims=claims)


def _view_pvalue(value: Array, draws: Array) -> float:
    """p-value of one view: of its statistic, or min-p over its statistics."""
    return pvalue(float(value), draws) if draws.ndim == 1 else family_pvalue(value, draws.T)


def _flatten_claims(draws: Array) -> Array:
    """Reshape draws of views (views, B), or of several statistics each (views, B, m), to hypotheses (claims, B)."""
    return draws if draws.ndim == 2 else np.moveaxis(draws, 2, 1).reshape(-1, draws.shape[1])


def smallest_pvalue(pvalues: Sequence[float]) -> float:
    """Smallest defined p-value; NaN if there is none."""
    defined = [p for p in pvalues if not np.isnan(p)]
    return float(min(defined)) if defined else float("nan")


def family_pvalue(observed: Array, draws: Array) -> float:
    """p-value of the smallest p-value of hypotheses with joint draws (min-p), exact under the joint null.

    `observed` (claims,), `draws` (claims, B). Observed values and draws are ranked in the same way, so the scale of a
    null distribution does not matter. Ties of the smallest p-value are ordered by the largest standardized statistic,
    so the smallest possible p-value stays 1/(1 + B) for many hypotheses. Source: Westfall & Young (1993).

    >>> family_pvalue(np.array([9.0, 0.0]), np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    0.25
    """
    defined = ~np.isnan(observed)
    if not defined.any():
        return float("nan")
    pool = np.concatenate([observed[:, None], draws], axis=1)[defined]
    pool = np.where(np.isnan(pool), -np.inf, pool)
    smallest = np.full(pool.shape[1], np.inf)
    largest = np.full(pool.shape[1], -np.inf)
    for values in pool:
        order = np.sort(values)
        finite = np.isfinite(values)
        lower = np.where(finite, values - TIE_TOLERANCE * np.abs(np.where(finite, values, 0.0)), values)
        smallest = np.minimum(smallest, (len(order) - np.searchsorted(order, lower, "left")) / len(order))
        scale = values.std() if finite.all() else 0.0
        largest = np.maximum(largest, (values - values.mean()) / scale if scale > 0 else 0.0)
    first = smallest < smallest[0] * (1 - TIE_TOLERANCE)
    tied = np.abs(smallest - smallest[0]) <= TIE_TOLERANCE
    return float((first | (tied & (largest >= largest[0] - TIE_TOLERANCE * np.abs(largest[0])))).mean())


MAX_DISCRETE_VALUES = 8  # with at most this many distinct values (three rows) the statistic is treated as discrete


class JointDraws:
    r"""Hypotheses with joint draws: unadjusted p-values and Westfall and Young's step-down min-p.

    `observed` (claims,), `draws` (claims, B). The hypotheses are ordered by their unadjusted p-values. The j-th is
    compared with the smallest p-value of each draw among the hypotheses from the j-th on:

    .. math:: \tilde p_{(j)} = \max_{i \le j} \frac{1 + \#\{b : \min_{l \ge i} p^*_{(l)b} \le p_{(i)}\}}{1 + B}

    The family-wise error rate is at most α for any set of false hypotheses, because the distribution of the labels in
    one group does not depend on miscalibration of other rows (subset pivotality). Dependent hypotheses, such as
    overlapping groups, lose less power than with Holm's correction. Ties are ordered by the standardized statistic, so
    the smallest possible p-value stays 1/(1 + B) for many hypotheses. Source: Westfall & Young (1993).

    >>> both = JointDraws(np.array([9.0, 0.0]), np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    >>> both.unadjusted.tolist(), both.adjusted.tolist()
    ([0.25, 1.0], [0.25, 1.0])
    """

    def __init__(self, observed: Array, draws: Array) -> None:
        self.observed = np.asarray(observed, dtype=np.float64)
        pool = np.concatenate([self.observed[:, None], draws], axis=1)
        self._defined = ~np.isnan(self.observed)
        self._pool = np.where(np.isnan(pool), -np.inf, pool)
        self.size = pool.shape[1]
        ranks = [_count_not_below(values) for values in self._pool]
        self._above = np.array([above for above, _ in ranks]).reshape(pool.shape)  # values at least as large
        self._zscores = np.array([zscore for _, zscore in ranks]).reshape(
            pool.shape
        )  # standard deviations above the mean
        self.unadjusted = np.where(self._defined, self._above[:, 0] / self.size, np.nan)

    @property
    def adjusted(self) -> Array:
        """Step-down p-value of each hypothesis, (claims,); NaN for an undefined statistic."""
        pvalues = np.full(len(self.observed), np.nan)
        order = [i for i in np.lexsort((-self._zscores[:, 0], self._above[:, 0])) if self._defined[i]]
        shares = []
        ranks = np.full(self.size, self.size + 1)
        zscores = np.full(self.size, -np.inf)
        for i in reversed(order):
            ranks, zscores = _more_extreme((ranks, zscores), (self._above[i], self._zscores[i]))
            shares.append(_as_surprising(ranks, zscores, self._above[i, 0], self._zscores[i, 0]).mean())
        pvalues[order] = np.maximum.accumulate(shares[::-1]) if order else []
        return pvalues

    def min_detectable(self, alpha: float, upper_bound: Callable[[int], float] | None = None) -> list[float | None]:
        """Smallest statistic with which each hypothesis would be rejected at α, holding all others and all draws fixed.

        The statistic of a hypothesis is increased until its step-down p-value is at most α. The threshold can lie
        between two draws, or above all of them if many other hypotheses have equally extreme draws. `upper_bound(i)` is
        the largest attainable statistic of hypothesis i, by default the largest of its draws; the result is None if
        that is not sufficient. If values repeat among the draws, the statistic is treated as discrete and the threshold
        is one of these values.
        """
        return [
            self._rejection_threshold(i, alpha, upper_bound or self.largest_draw) if self._defined[i] else None
            for i in range(len(self.observed))
        ]

    def largest_draw(self, i: int) -> float:
        """Largest statistic of hypothesis i among its draws."""
        return float(self._pool[i].max())

    def _rejection_threshold(self, i: int, alpha: float, upper_bound: Callable[[int], float]) -> float | None:
        others = [j for j in np.lexsort((-self._zscores[:, 0], self._above[:, 0])) if self._defined[j] and j != i]
        left: list[tuple[Array, Array]] = [(np.full(self.size, self.size + 1), np.full(self.size, -np.inf))]
        for j in reversed(others):
            left.append(_more_extreme(left[-1], (self._above[j], self._zscores[j])))
        left.reverse()  # the most extreme key of each draw among the other claims from each position on

        def enough(value: float) -> bool:
            above, zscores = _count_not_below(np.concatenate([[value], self._pool[i, 1:]]))
            for j, rest in zip(others, left, strict=False):
                own_key, its = (above[0], -zscores[0], i), (self._above[j, 0], -self._zscores[j, 0], j)
                if own_key < its:
                    break
                if _share_as_extreme(_more_extreme(rest, (above, zscores)), its[0], -its[1]) > alpha + 1e-12:
                    return False
            else:
                rest = left[-1]
            return bool(_share_as_extreme(_more_extreme(rest, (above, zscores)), above[0], zscores[0]) <= alpha + 1e-12)

        values, counts = np.unique(self._pool[i, 1:], return_counts=True)
        finite = np.isfinite(values)
        values, counts = values[finite], counts[finite]
        if not len(values):
            return None
        at = _first_index(lambda k: enough(float(values[k])), len(values))
        if at == 0 or (at < len(values) and counts[at - 1 : at + 1].max() > 1):
            return float(values[at])
        high = float(values[at]) if at < len(values) else upper_bound(i)
        if not high > values[at - 1] or not enough(high):
            return None
        if len(values) <= MAX_DISCRETE_VALUES:
            return high
        return _bisect(float(values[at - 1]), high, enough)


def _first_index(holds: Callable[[int], bool], count: int) -> int:
    """First index at which a monotone condition holds, by bisection; `count` if there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _bisect(low: float, high: float, enough: Callable[[float], bool]) -> float:
    """Smallest sufficient value in (low, high], up to a relative tolerance of 1e-6, by bisection."""
    near = low + 4 * TIE_TOLERANCE * abs(low)  # just above the tie, which is usually sufficient
    if near < high and enough(near):
        return near
    while np.isinf(high):
        tried = 2 * max(abs(low), 1.0)
        if tried > 1e300:
            return high
        low, high = (low, tried) if enough(tried) else (tried, high)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _share_as_extreme(keys: tuple[Array, Array], above: float, zscore: float) -> float:
    """Share of draws that are at least as extreme as (above, zscore)."""
    return float(_as_surprising(*keys, above, zscore).mean())


def _count_not_below(values: Array) -> tuple[Array, Array]:
    """Number of values at least as large as each value, and its z-score."""
    order, finite = np.sort(values), np.isfinite(values)
    lower = np.where(finite, values - TIE_TOLERANCE * np.abs(np.where(finite, values, 0.0)), values)
    scale = values[finite].std() if finite.any() else 0.0
    away = (np.where(finite, values, 0.0) - values[finite].mean()) / scale if scale > 0 else np.zeros(len(values))
    return len(order) - np.searchsorted(order, lower, "left"), np.where(finite, away, values)


def _more_extreme(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """The more extreme of two keys of each draw."""
    first = (other[0] < one[0]) | ((other[0] == one[0]) & (other[1] > one[1]))
    return np.where(first, other[0], one[0]), np.where(first, other[1], one[1])


def _as_surprising(ranks: Array, zscores: Array, above: float, away: float) -> Array:
    """Which draws are at least as extreme as (above, away)."""
    return (ranks < above) | (
        (ranks == above) & (zscores >= away - TIE_TOLERANCE * abs(away) if np.isfinite(away) else zscores >= away)
    )
