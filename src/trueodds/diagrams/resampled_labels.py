"""Labels resampled at each distinct score from given event rates, for the bands of reliability curves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums


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
