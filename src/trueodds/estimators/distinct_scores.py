"""Base class of errors of one score per row that depend only on the sums of the rows at each distinct score."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from trueodds.binning.sorted_scores import SortedScores, group_starts, sort_by_rank, sort_by_score
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic, Estimator, require_one_score
from trueodds.lenses.view import View

# From Σw, Σwp and Σwy by score as shares of the total weight, each (…, m) with broadcast leading axes, to (…).
ScoreStatistic = Callable[[Array, Array, Array], Array]

# Of members whose value depends on every score.
CELL_EXEMPTION = {"cells": "scores of one cell count as one score, so a tally has its resolution"}
MAX_DISTINCT_SCORES = 4096  # maximum number of scores in draws; of more, neighboring scores form groups


@dataclass(frozen=True)
class DistinctScoreError(Estimator):
    """Base class of errors that depend only on sums at each distinct score, so that the order of ties is irrelevant.

    A subclass implements `evaluate_scores`, which computes everything that depends only on the predictions and returns
    the error as a function of the sums, for draws. If the error is a norm of a linear function of the sums, the
    interval uses the norm of the noise of the resamples.

    Raises
    ------
    InputError
        TO203 if a setting is invalid. TO205 if the view has a vector per row.
    """

    interval: ClassVar[str | None] = "residual-norm"
    lower_bound: ClassVar[float] = 0.0
    upper_bound: ClassVar[float] = 1.0
    by_rank: ClassVar[bool] = False  # whether only the order and the ties of the scores matter, not their distances
    is_norm: ClassVar[bool] = True  # whether the statistic is a seminorm of the vector (w, wp, wy)

    @property
    def max_drawn_scores(self) -> int:
        """Maximum number of scores that draws distinguish; of more, neighboring scores form groups."""
        return MAX_DISTINCT_SCORES

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        """Return the error as a function of the sums at the sorted distinct scores `s` (m,).

        `share` (m,) is the share of the weight at each score. If `is_norm` is true, the function must also accept
        differences of the sums of two draws.
        """
        raise NotImplementedError

    def value(self, view: View) -> float:
        return view.cached(self, lambda: self.score_statistic(view).value())

    def cell_statistic(self, view: View) -> CellStatistic | None:
        """The statistic for draws, with at most `max_drawn_scores` groups of equal or neighboring scores."""
        return self.score_statistic(view)

    def score_statistic(self, view: View) -> CellStatistic:
        """Return the sums of a view from which the error and its draws are computed."""
        return DistinctScores(self, view)


class DistinctScores(CellStatistic):
    """Sums of one view at its distinct scores, from which an error is computed for the view and for draws.

    Its cells are the distinct scores, or groups of neighboring scores if there are many.
    """

    def __init__(self, error: DistinctScoreError, view: View) -> None:
        require_one_score(view, error.name)
        self.error, self.view = error, view

    @property
    def _sorted_scores(self) -> SortedScores:
        """The sorted scores of the view, by log odds where only ranks matter and probabilities round them away."""
        return sort_by_rank(self.view) if self.error.by_rank else sort_by_score(self.view)

    def shares(self) -> tuple[Array, Array, Array, Array]:
        """Return the sorted distinct scores, and Σw, Σwp and Σwy at each as shares of the total weight, (m,) each."""
        s, w, wy = self._sorted_scores.sums_by_score()
        total_weight = w.sum()
        wp = w * s
        for sums in (w, wp, wy):
            sums /= total_weight
        return s, w, wp, wy

    def value(self) -> float:
        s, w, wp, wy = self.shares()
        return float(self.error.evaluate_scores(s, w, self.view)(w, wp, wy))

    @cached_property
    def groups(self) -> ScoreGroups:
        """Groups of equal or neighboring scores for draws."""
        s, w, wy = self._sorted_scores.sums_by_score()
        starts, total_weight = group_starts(w, self.error.max_drawn_scores), w.sum()
        w_share, wp_share, wy_share = (np.add.reduceat(x, starts) / total_weight for x in (w, w * s, wy))
        # The groups keep the order of their scores; equal scores keep the score itself, free of rounding.
        mean_scores = s if len(starts) == len(s) else wp_share / w_share
        return ScoreGroups(s, starts, mean_scores, w_share, wp_share, wy_share)

    @cached_property
    def size(self) -> int:
        return len(self.groups.mean_scores)

    @cached_property
    def index(self) -> Array:
        return self._sorted_scores.find_rows(self.view.p, self.groups.scores, self.groups.first)

    @cached_property
    def statistic_at_groups(self) -> ScoreStatistic:
        """The statistic as a function of the sums of the groups."""
        return self.error.evaluate_scores(self.groups.mean_scores, self.groups.w, self.view)

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """Return the error of each draw from its sums per group.

        Groups, and the coarser grids of some statistics, change the value slightly. The difference for the observed
        outcomes is added to each draw, so that a draw equal to them has the observed value. Otherwise a test that
        counts ties with the observed value would exceed its nominal level.
        """
        return np.maximum(self.statistic_at_groups(*_divide_by_total(w, wp, wy)) + self._grouping_offset, 0.0)

    @cached_property
    def _grouping_offset(self) -> float:
        """The observed value minus the statistic of the observed sums of the groups."""
        groups = self.groups
        difference = self.error.value(self.view) - self.statistic_at_groups(groups.w, groups.wp, groups.wy).item()
        return difference if math.isfinite(difference) else 0.0

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """Return the norm of (the sums of the draw − the observed sums); None if the error is not a norm."""
        if not self.error.is_norm:
            return None
        pairs = zip(_divide_by_total(*draws), _divide_by_total(w, wp, wy), strict=True)
        return self.statistic_at_groups(*(drawn_shares - observed_shares for drawn_shares, observed_shares in pairs))


@dataclass(frozen=True, slots=True)
class ScoreGroups:
    """Groups of sorted scores: single scores if there are few enough, else groups of about equal weight."""

    scores: Array  # the distinct scores
    first: Array  # (m,) index of the lowest score of each group
    mean_scores: Array  # (m,) mean score of each group
    w: Array  # (m,) Σw as a share of the total weight
    wp: Array  # (m,) Σwp, divided by the total weight
    wy: Array  # (m,) Σwy, divided by the total weight


def _divide_by_total(w: Array, wp: Array, wy: Array) -> tuple[Array, Array, Array]:
    """Return the sums (…, m) divided by the total weight of each draw."""
    total_weight = w.sum(axis=-1, keepdims=True)
    return w / total_weight, wp / total_weight, wy / total_weight
