"""Labels resampled at each distinct score from given event rates, for the bands of reliability curves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums


@dataclass(frozen=True)
class ResampledLabels:
    """Labels drawn at each score with given event rates, as the sums Σwy that the fit needs."""

    scores: DistinctScoreSums
    rates: Array  # (m,)

    @cached_property
    def is_binomial(self) -> Array:
        """Whether the number of events at a score is binomial."""
        return np.zeros(len(self.rates), dtype=bool) if self.scores.has_vote_shares else self.scores.has_equal_weights

    @cached_property
    def std(self) -> Array:
        """The standard deviation of Σwy at each score."""
        return np.sqrt(self.scores.event_variance(self.rates))

    def draw_events(self, size: int, rng: np.random.Generator) -> Array:
        """Draw Σwy `size` times, (size, m), with the rows fixed."""
        scores, (is_binomial,) = self.scores, (self.is_binomial,)
        shape = size, len(self.rates)
        if is_binomial.all() and (scores.n == 1).all():
            return scores.w * (rng.random(shape) < self.rates)
        wy = np.empty(shape)
        wy[:, is_binomial] = (scores.w / scores.n)[is_binomial] * rng.binomial(
            scores.n[is_binomial].astype(np.int64), self.rates[is_binomial], (size, int(is_binomial.sum()))
        )
        wy[:, ~is_binomial] = (scores.w * self.rates)[~is_binomial] + self.std[
            ~is_binomial
        ] * self._draw_unit_residuals(size, rng)
        return wy

    def draw_rows_and_events(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Σw and Σwy, each (size, m), of rows drawn with replacement and labels drawn for them."""
        scores, is_binomial = self.scores, self.is_binomial
        n_drawn = rng.multinomial(round(scores.n.sum()), scores.n / scores.n.sum(), size)
        w = scores.w / scores.n * n_drawn
        wy = np.empty(w.shape)
        wy[:, is_binomial] = (scores.w / scores.n)[is_binomial] * rng.binomial(
            n_drawn[:, is_binomial], self.rates[is_binomial]
        )
        residuals = self._draw_unit_residuals(size, rng) * np.sqrt((n_drawn / scores.n)[:, ~is_binomial])
        wy[:, ~is_binomial] = (w * self.rates)[:, ~is_binomial] + self.std[~is_binomial] * residuals
        return w, wy

    def _draw_unit_residuals(self, size: int, rng: np.random.Generator) -> Array:
        """Noise of unit variance for the scores without binomial counts, (size, number of them)."""
        n = self.scores.n[~self.is_binomial]
        residuals = rng.standard_normal((size, len(n)))
        is_single_row = n == 1  # a single residual keeps its size and gets a random sign
        residuals[:, is_single_row] = np.where(residuals[:, is_single_row] < 0, -1.0, 1.0)
        return residuals
