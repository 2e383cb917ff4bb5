"""Multiple testing: Holm's correction, min-p from joint null draws, and Westfall and Young's step-down p-values.

Null draws of several statistics are joint if they are made from the same labels: draw b of one statistic belongs to
draw b of every other.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trueodds.core.arithmetic import divide_by_largest
from trueodds.core.errors import InputError, Note
from trueodds.core.pvalues import TIE_TOLERANCE, holm, pvalue
from trueodds.core.results import DECISION_LEVEL
from trueodds.core.typing import Array
from trueodds.resampling.estimand import Estimand

LEVEL_TOLERANCE = 1e-12  # tolerance of a p-value that equals the level


@dataclass(frozen=True)
class PValues:
    """p-values of each view, of each lens, and of the family of all lenses."""

    view_pvalues: list[Array]  # for each lens an array (views,)
    lens_pvalues: list[float]  # of each lens, corrected for its views
    family_pvalue: float  # corrected for all views of all lenses
    min_pvalue: float = 0.0  # smallest possible p-value according to the draws
    n_claims: int = 1  # number of hypotheses in Holm's correction; 1 if the draws are joint

    @classmethod
    def from_asymptotic(cls, view_pvalues: Sequence[Sequence[float]]) -> PValues:
        """Asymptotic p-values, with Holm's correction over all views of a family."""
        return cls(
            view_pvalues=[np.array(pvalues_of_lens) for pvalues_of_lens in view_pvalues],
            lens_pvalues=[smallest_pvalue(holm(pvalues_of_lens)) for pvalues_of_lens in view_pvalues],
            family_pvalue=smallest_pvalue(holm([p for pvalues_of_lens in view_pvalues for p in pvalues_of_lens])),
        )

    @classmethod
    def from_draws(
        cls, estimands: Sequence[Estimand], draws: Sequence[Array], *, joint_views: bool, joint_lenses: bool
    ) -> PValues:
        """p-values from null draws, with min-p over joint draws and Holm's correction otherwise.

        `draws` has one array (views, B), or (views, B, m) for m statistics of a view, per estimand, which is one lens.
        """
        observed = [estimand.values for estimand in estimands]
        view_pvalues = [
            np.array([_view_pvalue(value, view_draws) for value, view_draws in zip(values, lens_draws, strict=True)])
            for values, lens_draws in zip(observed, draws, strict=True)
        ]
        lens_pvalues = [
            family_pvalue(values.ravel(), _flatten_claims(lens_draws))
            if joint_views
            else smallest_pvalue(holm(list(pvalues_of_lens)))
            for values, lens_draws, pvalues_of_lens in zip(observed, draws, view_pvalues, strict=True)
        ]
        is_joint = joint_views and (joint_lenses or len(estimands) == 1)
        n_claims = 1 if is_joint else sum(len(pvalues_of_lens) for pvalues_of_lens in view_pvalues)
        if len(estimands) == 1:
            return cls(view_pvalues, lens_pvalues, lens_pvalues[0], n_claims=n_claims)
        if is_joint:
            all_values = np.concatenate([values.ravel() for values in observed])
            all_draws = np.concatenate([_flatten_claims(lens_draws) for lens_draws in draws])
            all_lenses_pvalue = family_pvalue(all_values, all_draws)
        else:
            all_pvalues = [float(p) for pvalues_of_lens in view_pvalues for p in pvalues_of_lens]
            all_lenses_pvalue = smallest_pvalue(holm(all_pvalues))
        return cls(view_pvalues, lens_pvalues, all_lenses_pvalue, n_claims=n_claims)


def _view_pvalue(value: Array, draws: Array) -> float:
    """p-value of one view: of its statistic with draws (B,), or min-p over m statistics with draws (B, m)."""
    return pvalue(float(value), draws) if draws.ndim == 1 else family_pvalue(value, draws.T)


def _flatten_claims(draws: Array) -> Array:
    """Reshape draws of views (views, B), or of m statistics of each view (views, B, m), to hypotheses (claims, B)."""
    return draws if draws.ndim == 2 else np.moveaxis(draws, 2, 1).reshape(-1, draws.shape[1])


def sufficient_draws(alpha: float, n_hypotheses: int = 1) -> int:
    """Smallest number of null draws that can reject one of so many hypotheses, after Holm's correction.

    >>> sufficient_draws(0.05), sufficient_draws(0.05, 3)
    (19, 59)
    """
    return math.ceil(n_hypotheses / (alpha + LEVEL_TOLERANCE)) - 1


def check_draws(n_draws: int, alpha: float, n_hypotheses: int = 1, level_text: str = "") -> None:
    """Raise TO203 if so few null draws cannot reject a single hypothesis at `alpha`, described by `level_text`."""
    if problem := _describe_insufficient_draws(n_draws, alpha, n_hypotheses, level_text):
        remedy = f"Use at least {sufficient_draws(alpha, n_hypotheses)}."
        raise InputError("TO203", problem, f"⟨resamples={n_draws}⟩", remedy)


def insufficient_draws_notes(n_hypotheses: int, n_draws: int) -> list[Note]:
    """Return the note TN209 if so few null draws cannot reject a single hypothesis at the decision level."""
    problem = _describe_insufficient_draws(n_draws, DECISION_LEVEL, n_hypotheses)
    return [Note("TN209", f"{problem} Increase resamples.")] if problem else []


def _describe_insufficient_draws(n_draws: int, alpha: float, n_hypotheses: int, level_text: str = "") -> str:
    """Return why so few null draws cannot reject a hypothesis; empty if they can."""
    if n_draws >= sufficient_draws(alpha, n_hypotheses):
        return ""
    smallest = min(1.0, n_hypotheses / (1 + n_draws))
    correction = f" and Holm's correction of {n_hypotheses:,} hypotheses" if n_hypotheses > 1 else ""
    subject = "no single hypothesis can" if n_hypotheses > 1 else "calibration cannot"
    return (
        f"With {n_draws:,} null draws{correction} the smallest possible p-value is {smallest:.2g}, so {subject} be"
        f" rejected at {level_text or f'the level {alpha:g}'}."
    )


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
    pool = np.concatenate([observed[:, None], draws], axis=1)[defined]  # (claims, 1 + B), the observed value first
    pool = np.where(np.isnan(pool), -np.inf, pool)
    smallest_pvalues = np.full(pool.shape[1], np.inf)
    largest_zscores = np.full(pool.shape[1], -np.inf)
    for values in pool:
        sorted_values = np.sort(values)
        finite = np.isfinite(values)
        tie_limits = np.where(finite, values - TIE_TOLERANCE * np.abs(np.where(finite, values, 0.0)), values)
        smallest_pvalues = np.minimum(
            smallest_pvalues,
            (len(sorted_values) - np.searchsorted(sorted_values, tie_limits, "left")) / len(sorted_values),
        )
        with np.errstate(over="ignore"):  # X² of variances near 0 may be too large to be squared
            scale = values.std() if finite.all() else 0.0
        zscores = (values - values.mean()) / scale if 0 < scale < np.inf else 0.0
        largest_zscores = np.maximum(largest_zscores, zscores)
    is_smaller = smallest_pvalues < smallest_pvalues[0] * (1 - TIE_TOLERANCE)
    is_tied = np.abs(smallest_pvalues - smallest_pvalues[0]) <= TIE_TOLERANCE
    min_zscore = largest_zscores[0] - TIE_TOLERANCE * np.abs(largest_zscores[0])
    return float((is_smaller | (is_tied & (largest_zscores >= min_zscore))).mean())


MAX_DISCRETE_VALUES = 8  # number of distinct values, as of three rows, up to which a statistic is treated as discrete


class JointDraws:
    r"""Hypotheses with joint draws: unadjusted p-values and Westfall and Young's step-down min-p.

    `observed` (claims,) are the statistics, of which larger values are more extreme, and `draws` (claims, B) their
    joint null draws. The hypotheses are ordered by their unadjusted p-values. The j-th is compared with the smallest
    p-value of each draw among the hypotheses from the j-th on:

    .. math:: \tilde p_{(j)} = \max_{i \le j} \frac{1 + \#\{b : \min_{l \ge i} p^*_{(l)b} \le p_{(i)}\}}{1 + B}

    The family-wise error rate is at most α for any set of false hypotheses, because the distribution of the labels in
    one group does not depend on miscalibration of other rows (subset pivotality). Dependent hypotheses, such as
    overlapping groups, lose less power than with Holm's correction. Ties are ordered by the standardized statistic, so
    the smallest possible p-value stays 1/(1 + B) for many hypotheses. Source: Westfall & Young (1993).

    `n_untested` further hypotheses were not tested. For each of them p is added to the share, because the probability
    that one of several p-values is at most p is at most the sum of the probabilities. The family-wise error rate over
    all hypotheses is then at most α, whichever were selected for testing, also if the same data selected them: let T be
    the true hypotheses, M their smallest p-value, and G its distribution function. At the first true hypothesis that is
    rejected, no other one in T has been rejected, so that the adjusted p-value is at least G(p) ≥ G(M), and
    P(G(M) ≤ α) ≤ α. An untested hypothesis is never rejected. The smallest possible p-value is
    (1 + `n_untested`)/(1 + B).

    >>> both = JointDraws(np.array([9.0, 0.0]), np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    >>> both.unadjusted.tolist(), both.adjusted.tolist()
    ([0.25, 1.0], [0.25, 1.0])
    >>> JointDraws(np.array([9.0, 0.0]), np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]), n_untested=1).adjusted.tolist()
    [0.5, 1.0]
    """

    def __init__(self, observed: Array, draws: Array, n_untested: int = 0) -> None:
        self.observed, self.n_untested = np.asarray(observed, dtype=np.float64), n_untested
        pool = np.concatenate([self.observed[:, None], draws], axis=1)
        self._defined = ~np.isnan(self.observed)
        self._pool = np.where(np.isnan(pool), -np.inf, pool)
        self.n_entries = pool.shape[1]
        keys = [_rank_and_standardize(values) for values in self._pool]
        self._ranks = np.array([key.ranks for key in keys]).reshape(pool.shape)
        self._zscores = np.array([key.zscores for key in keys]).reshape(pool.shape)
        self.unadjusted = np.where(self._defined, self._ranks[:, 0] / self.n_entries, np.nan)

    @property
    def adjusted(self) -> Array:
        """Step-down p-value of each hypothesis, (claims,); NaN for an undefined statistic."""
        pvalues = np.full(len(self.observed), np.nan)
        if self._order:
            pvalues[self._order] = np.minimum(np.maximum.accumulate(self._shares_by_position), 1.0)
        return pvalues

    @cached_property
    def _order(self) -> list[int]:
        """Hypotheses with a defined statistic, the smallest unadjusted p-value first; ties are ordered by z-score."""
        return [int(i) for i in np.lexsort((-self._zscores[:, 0], self._ranks[:, 0])) if self._defined[i]]

    @cached_property
    def _shares_by_position(self) -> Array:
        """Step-down p-value of the hypotheses in their order, (claims,), before each is at least the previous one."""
        shares = []
        extreme_keys = self._lowest_keys()  # of each draw, the most extreme keys among the claims from i on
        for i in reversed(self._order):
            extreme_keys = _more_extreme(extreme_keys, self._keys_of_claim(i))
            shares.append(self._share(extreme_keys, self._ranks[i, 0], self._zscores[i, 0]))
        return np.array(shares[::-1])

    def _share(self, keys: ExtremenessKeys, rank: float, zscore: float) -> float:
        """Share of draws that are at least as extreme as (rank, zscore), with the untested hypotheses."""
        return _share_as_extreme(keys, rank, zscore) + self.n_untested * rank / self.n_entries

    @cached_property
    def _suffixes(self) -> list[_SuffixExtremes]:
        """Of each draw, the most extreme keys among the claims from a position in the order on, by position."""
        lowest, no_owner = self._lowest_keys(), np.full(self.n_entries, -1)
        suffixes = [_SuffixExtremes(lowest, no_owner, lowest)]
        for i in reversed(self._order):
            suffixes.append(suffixes[-1].with_claim(i, self._keys_of_claim(i)))
        return suffixes[::-1]

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

    def _keys_of_claim(self, i: int) -> ExtremenessKeys:
        """Keys of hypothesis i, the observed statistic first."""
        return ExtremenessKeys(self._ranks[i], self._zscores[i])

    def _lowest_keys(self) -> ExtremenessKeys:
        """Keys that are less extreme than those of any hypothesis."""
        return ExtremenessKeys(np.full(self.n_entries, self.n_entries + 1), np.full(self.n_entries, -np.inf))

    def largest_draw(self, i: int) -> float:
        """Largest statistic of hypothesis i among its draws."""
        return float(self._pool[i].max())

    def _rejection_threshold(self, i: int, alpha: float, upper_bound: Callable[[int], float]) -> float | None:
        """Smallest statistic with which hypothesis i would be rejected at α; None if it exceeds `upper_bound(i)`."""
        is_rejected = self._rejection_condition(i, alpha)
        values, counts = np.unique(self._pool[i, 1:], return_counts=True)
        finite = np.isfinite(values)
        values, counts = values[finite], counts[finite]
        if not len(values):
            return None
        index = _first_index(lambda k: is_rejected(float(values[k])), len(values))
        repeats = index < len(values) and counts[index - 1 : index + 1].max() > 1  # the statistic is discrete
        if index == 0 or repeats:
            return float(values[index])
        upper = float(values[index]) if index < len(values) else upper_bound(i)
        if not upper > values[index - 1] or not is_rejected(upper):
            return None
        if len(values) <= MAX_DISCRETE_VALUES:
            return upper
        return _bisect(float(values[index - 1]), upper, is_rejected)

    def _rejection_condition(self, i: int, alpha: float) -> Callable[[float], bool]:
        """Function that tells whether hypothesis i would be rejected at α with another statistic.

        With that statistic, hypothesis i takes its place in the order of the other hypotheses. The step-down procedure
        rejects it if it rejects all hypotheses before it, and then hypothesis i itself.
        """
        max_share, suffixes = alpha + LEVEL_TOLERANCE, self._suffixes
        # At most `rank` of the draws of hypothesis i are as extreme as a statistic of that rank, so they cannot prevent
        # the rejection of hypotheses whose share stays small enough with so many draws more.
        largest_shares = self._shares_by_position + self._ranks[self._order, 0] / self.n_entries
        undecided = [int(q) for q in np.flatnonzero(largest_shares > max_share) if self._order[q] != i]

        def is_rejected(value: float) -> bool:
            """Whether hypothesis i would be rejected with the statistic `value`."""
            own_keys = _rank_and_standardize(np.concatenate([[value], self._pool[i, 1:]]))
            own_rank, own_zscore = own_keys.ranks[0], own_keys.zscores[0]
            own_position = bisect.bisect_left(
                self._order, (own_rank, -own_zscore, i), key=lambda j: (self._ranks[j, 0], -self._zscores[j, 0], j)
            )
            for q in undecided:
                if q >= own_position:
                    break
                rank, zscore = self._ranks[self._order[q], 0], self._zscores[self._order[q], 0]
                if self._share(_more_extreme(suffixes[q].without(i), own_keys), rank, zscore) > max_share:
                    return False
            extreme_keys = _more_extreme(suffixes[own_position].without(i), own_keys)
            return self._share(extreme_keys, own_rank, own_zscore) <= max_share

        return is_rejected


def _first_index(holds: Callable[[int], bool], n_candidates: int) -> int:
    """First index at which a monotone condition holds, by bisection; `n_candidates` if there is none."""
    start, stop = 0, n_candidates
    while start < stop:
        middle = (start + stop) // 2
        start, stop = (start, middle) if holds(middle) else (middle + 1, stop)
    return start


def _bisect(low: float, high: float, is_sufficient: Callable[[float], bool]) -> float:
    """Smallest sufficient value in (low, high], up to a relative tolerance of 1e-6, by bisection."""
    just_above = low + 4 * TIE_TOLERANCE * abs(low)  # just above the tie, which is usually sufficient
    if just_above < high and is_sufficient(just_above):
        return just_above
    while np.isinf(high):
        candidate = 2 * max(abs(low), 1.0)
        if candidate > 1e300:  # the next doubling may overflow
            return high
        low, high = (low, candidate) if is_sufficient(candidate) else (candidate, high)
    for _ in range(20):  # 2⁻²⁰ is about 1e-6
        middle = (low + high) / 2
        low, high = (low, middle) if is_sufficient(middle) else (middle, high)
    return high


class ExtremenessKeys(NamedTuple):
    """Keys that order the observed value and the draws of a hypothesis: by the rank, equal ranks by the z-score."""

    ranks: Array  # (1 + B,) number of values at least as large; small ranks are extreme
    zscores: Array  # (1 + B,) standard deviations above the mean; large z-scores are extreme


class _SuffixExtremes(NamedTuple):
    """Of each draw, the most extreme keys among some claims, the claim that has them, and the second most extreme."""

    first: ExtremenessKeys
    owner: Array  # (1 + B,) claim with the first keys
    second: ExtremenessKeys  # most extreme keys of the other claims

    def with_claim(self, i: int, keys: ExtremenessKeys) -> _SuffixExtremes:
        """Return the extremes with one more claim."""
        first, replaced = _more_extreme(self.first, keys), _is_more_extreme(keys, self.first)
        demoted = ExtremenessKeys(*(np.where(replaced, a, b) for a, b in zip(self.first, keys, strict=True)))
        return _SuffixExtremes(first, np.where(replaced, i, self.owner), _more_extreme(self.second, demoted))

    def without(self, i: int) -> ExtremenessKeys:
        """Return the most extreme keys of the claims other than i."""
        is_own = self.owner == i
        return ExtremenessKeys(*(np.where(is_own, b, a) for a, b in zip(self.first, self.second, strict=True)))


def _rank_and_standardize(values: Array) -> ExtremenessKeys:
    """Rank of each of the values (k,), the number of values at least as large, and its z-score."""
    sorted_values, finite = np.sort(values), np.isfinite(values)
    tie_limits = np.where(finite, values - TIE_TOLERANCE * np.abs(np.where(finite, values, 0.0)), values)
    finite_values = divide_by_largest(np.where(finite, values, 0.0))
    scale = finite_values[finite].std() if finite.any() else 0.0
    zscores = (finite_values - finite_values[finite].mean()) / scale if scale > 0 else np.zeros(len(values))
    ranks = len(sorted_values) - np.searchsorted(sorted_values, tie_limits, "left")
    return ExtremenessKeys(ranks, np.where(finite, zscores, values))


def _more_extreme(first: ExtremenessKeys, second: ExtremenessKeys) -> ExtremenessKeys:
    """The more extreme of two keys for each draw."""
    is_second = _is_more_extreme(second, first)
    return ExtremenessKeys(
        np.where(is_second, second.ranks, first.ranks), np.where(is_second, second.zscores, first.zscores)
    )


def _is_more_extreme(keys: ExtremenessKeys, others: ExtremenessKeys) -> Array:
    """Whether keys are more extreme than others, for each draw."""
    return (keys.ranks < others.ranks) | ((keys.ranks == others.ranks) & (keys.zscores > others.zscores))


def _share_as_extreme(keys: ExtremenessKeys, rank: float, zscore: float) -> float:
    """Share of draws that are at least as extreme as (rank, zscore)."""
    min_zscore = zscore - TIE_TOLERANCE * abs(zscore) if np.isfinite(zscore) else zscore
    is_as_extreme = (keys.ranks < rank) | ((keys.ranks == rank) & (keys.zscores >= min_zscore))
    return float(is_as_extreme.mean())
