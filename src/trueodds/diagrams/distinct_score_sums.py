"""Sums of rows, weights and outcomes at each distinct score of a view, and labels resampled from rates there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit

from trueodds.binning.sorted_scores import group_starts, sort_by_rank, sort_by_score
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.typing import Array
from trueodds.kernels.fine_grid import CELL_EDGES
from trueodds.lenses.view import View


@dataclass(frozen=True)
class DistinctScoreSums:
    """Sums over the rows of each distinct score, in increasing order, each (m,)."""

    score: Array  # the score, or the mean score of a group
    low: Array  # smallest score of the group
    high: Array  # largest score of the group
    n: Array  # number of rows
    w: Array  # Σw
    wy: Array  # Σwy
    ww: Array  # Σw²
    wwr: Array | None = None  # Σw²(y−p)², only if outcomes are shares of votes
    wwd: Array | None = None  # Σw²(y−p), only if outcomes are shares of votes
    max_weight: float = 1.0  # the largest weight of a row

    @property
    def has_vote_shares(self) -> bool:
        """Whether outcomes are shares of votes, which no single label draw can give."""
        return self.wwr is not None

    @property
    def has_equal_weights(self) -> Array:
        """Whether the rows of a score have equal weights, which is equivalent to (Σw)² = nΣw²."""
        return np.isclose(self.w * self.w, self.n * self.ww, rtol=1e-9, atol=0)

    @property
    def effective_n(self) -> float:
        """Kish's effective sample size (Σw)²/Σw²."""
        return float(self.w.sum() ** 2 / self.ww.sum())

    def event_variance(self, rates: Array) -> Array:
        """The variance of Σwy at each score if the event rates r are `rates` (m,): Σw² r(1−r), for votes Σw²(y−r)²."""
        if self.wwr is None or self.wwd is None:
            return self.ww * rates * (1 - rates)
        deviation = self.score - rates
        return np.maximum(self.wwr + 2 * deviation * self.wwd + self.ww * deviation * deviation, 0.0)

    def merge_groups(self, first: Array) -> DistinctScoreSums:
        """Merge neighboring scores into groups, each with its mean score.

        `first` (groups,) holds the index of the first score of each group.
        """
        if len(first) == len(self.score):
            return self
        columns = {name: getattr(self, name) for name in ("n", "w", "wy", "ww", "wwr", "wwd")}
        sums: dict[str, Any] = {
            name: None if column is None else np.add.reduceat(column, first) for name, column in columns.items()
        }
        mean_score = np.add.reduceat(self.w * self.score, first) / sums["w"]
        low, high = self.low[first], self.high[np.append(first[1:], len(self.score)) - 1]
        return replace(self, score=mean_score, low=low, high=high, **sums)

    def merge_by_weight(self, max_groups: int) -> DistinctScoreSums:
        """Merge neighbors into at most `max_groups` groups of about equal weight."""
        return self.merge_groups(group_starts(self.w, max_groups))

    def merge_for_isotonic_fit(self, max_groups: int) -> DistinctScoreSums:
        """Merge neighbors into about `max_groups` groups, fine wherever the isotonic fit changes quickly.

        A quarter of the cuts each are evenly spaced by weight, by score and by log odds. At either end an eighth of the
        groups are single scores, because the first and the last block of the fit may consist of one score only.
        """
        m = len(self.score)
        if m <= max_groups:
            return self
        by_weight, end_offsets = group_starts(self.w, max_groups // 4), np.arange(max_groups // 8)
        even_scores = np.linspace(self.score[0], self.score[-1], max_groups // 4)
        low, high = logit(np.clip(self.score[[0, -1]], 1e-9, 1 - 1e-9)).tolist()
        even_log_odds = expit(np.linspace(low, high, max_groups // 4))
        cuts = np.searchsorted(self.score, np.concatenate([even_scores, even_log_odds]))
        first = np.unique(np.concatenate([by_weight, cuts, end_offsets, m - 1 - end_offsets]))
        return self.merge_groups(first[first < m])


def sum_by_score(view: View, *, by_rank: bool = False) -> DistinctScoreSums:
    """Sum a binary view by distinct score. For a tally, `low` and `high` are the edges of the fine cell of a score.

    With `by_rank`, logits whose probabilities are equal by rounding are distinct scores.
    """
    sorted_scores = sort_by_rank(view) if by_rank else sort_by_score(view)
    s, w, wy = sorted_scores.sums_by_score()
    if view.is_unweighted and _has_binary_outcomes(view):
        return DistinctScoreSums(score=s, low=s, high=s, n=w, w=w, wy=wy, ww=w)
    score_index = sorted_scores.find_rows(view.p, s, np.arange(len(s)))

    def sum_by_index(values: Array) -> Array:
        """Sum values (n,) of the rows by score, (m,)."""
        return np.bincount(score_index, values, len(s))

    n, ww = sum_by_index(view.n), sum_by_index(view.sums("ww"))
    low = high = s
    if not view.is_rows:
        cell = np.clip(np.searchsorted(CELL_EDGES, s, "left"), 1, len(CELL_EDGES) - 1)
        low, high = np.minimum(CELL_EDGES[cell - 1], s), np.maximum(CELL_EDGES[cell], s)
    max_weight = float(view.w.max()) if view.is_rows else float((w / n).max())
    score_sums = DistinctScoreSums(score=s, low=low, high=high, n=n, w=w, wy=wy, ww=ww, max_weight=max_weight)
    if _has_binary_outcomes(view):
        return score_sums
    if view.is_rows:
        wwd = sum_by_index(view.w**2 * (view.y - view.p))
    else:  # a cell stores no Σw²y; its rows have about equal weights
        wwd = ww / w * (wy - w * s)
    return replace(score_sums, wwr=sum_by_index(view.sums("wwr")), wwd=wwd)


def _has_binary_outcomes(view: View) -> bool:
    """Whether every outcome is 0 or 1, which is equivalent to y² = y."""
    if view.is_rows:
        y = view.outcomes
        return y.dtype == bool or bool(((y == 0) | (y == 1) | (view.w == 0)).all())
    return bool(np.isclose(view.sums("wyy").sum(), weighted_sum(view.w, view.y), rtol=1e-9, atol=1e-9 * view.total))


@dataclass(frozen=True)
class ResampledLabels:
    """Labels drawn for the rows of each score with given event rates, as the sums Σwy that a fit to them needs.

    Where all rows of a score have equal weights, the number of events is binomial. Otherwise Σwy is its mean plus noise
    of its variance: normal, or a random sign for a single row.
    """

    scores: DistinctScoreSums
    rates: Array  # (m,), the event rate at each of the m scores

    @cached_property
    def is_binomial(self) -> Array:
        """Whether the number of events at each score is binomial, (m,); never for shares of votes."""
        return np.zeros(len(self.rates), dtype=bool) if self.scores.has_vote_shares else self.scores.has_equal_weights

    @cached_property
    def std(self) -> Array:
        """The standard deviation of Σwy at each score."""
        return np.sqrt(self.scores.event_variance(self.rates))

    def draw_events(self, size: int, rng: np.random.Generator) -> Array:
        """Draw the labels `size` times while the rows stay fixed, and return Σwy at each score, (size, m)."""
        scores, is_binomial = self.scores, self.is_binomial
        shape = size, len(self.rates)
        if is_binomial.all() and (scores.n == 1).all():
            return scores.w * (rng.random(shape) < self.rates)
        wy = np.empty(shape)
        n_events = rng.binomial(
            scores.n[is_binomial].astype(np.int64), self.rates[is_binomial], (size, int(is_binomial.sum()))
        )
        wy[:, is_binomial] = (scores.w / scores.n)[is_binomial] * n_events
        noise = self.std[~is_binomial] * self._draw_unit_residuals(size, rng)
        wy[:, ~is_binomial] = (scores.w * self.rates)[~is_binomial] + noise
        return wy

    def draw_rows_and_events(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw rows with replacement, and labels for them, `size` times; return Σw and Σwy at each score, (size, m)."""
        scores, is_binomial = self.scores, self.is_binomial
        n_drawn = rng.multinomial(round(scores.n.sum()), scores.n / scores.n.sum(), size)
        w = scores.w / scores.n * n_drawn
        wy = np.empty(w.shape)
        n_events = rng.binomial(n_drawn[:, is_binomial], self.rates[is_binomial])
        wy[:, is_binomial] = (scores.w / scores.n)[is_binomial] * n_events
        residuals = self._draw_unit_residuals(size, rng) * np.sqrt((n_drawn / scores.n)[:, ~is_binomial])
        wy[:, ~is_binomial] = (w * self.rates)[:, ~is_binomial] + self.std[~is_binomial] * residuals
        return w, wy

    def _draw_unit_residuals(self, size: int, rng: np.random.Generator) -> Array:
        """Draw noise of unit variance for the scores without binomial counts, (size, number of such scores)."""
        n = self.scores.n[~self.is_binomial]
        residuals = rng.standard_normal((size, len(n)))
        is_single_row = n == 1  # a single residual keeps its size and gets a random sign
        residuals[:, is_single_row] = np.where(residuals[:, is_single_row] < 0, -1.0, 1.0)
        return residuals
