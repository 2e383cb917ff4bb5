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
        of, (count,) = self.scores, (self.is_binomial,)
        shape = size, len(self.rates)
        if count.all() and (of.n == 1).all():
            return of.w * (rng.random(shape) < self.rates)
        wy = np.empty(shape)
        wy[:, count] = (of.w / of.n)[count] * rng.binomial(
            of.n[count].astype(np.int64), self.rates[count], (size, int(count.sum()))
        )
        wy[:, ~count] = (of.w * self.rates)[~count] + self.std[~count] * self._noise(size, rng)
        return wy

    def draw_rows_and_events(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Σw and Σwy, each (size, m), of rows drawn with replacement and labels drawn for them."""
        of, count = self.scores, self.is_binomial
        rows = rng.multinomial(round(of.n.sum()), of.n / of.n.sum(), size)
        w = of.w / of.n * rows
        wy = np.empty(w.shape)
        wy[:, count] = (of.w / of.n)[count] * rng.binomial(rows[:, count], self.rates[count])
        noise = self._noise(size, rng) * np.sqrt((rows / of.n)[:, ~count])
        wy[:, ~count] = (w * self.rates)[:, ~count] + self.std[~count] * noise
        return w, wy

    def _noise(self, size: int, rng: np.random.Generator) -> Array:
        n = self.scores.n[~self.is_binomial]
        noise = rng.standard_normal((size, len(n)))
        single = n == 1  # a single residual keeps its size and gets a random sign
        noise[:, single] = np.where(noise[:, single] < 0, -1.0, 1.0)
        return noise
