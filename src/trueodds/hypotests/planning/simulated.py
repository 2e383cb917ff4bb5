"""In what share of data sets does a test reject? Simulated ones, of n rows, whose truth is off by so much."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.hypotests.base import HypothesisTest
from trueodds.hypotests.planning.population import Population
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.redraw import null_draws

MAX_LABELS = 2**28  # labels redrawn in all, up to which every data set has null draws of its own
MAX_DRAWS = 2**25  # null draws that are kept for all data sets
POOLED_DRAWS = 4000  # null draws of all data sets together, where they share them
ROUNDING = 1e-12  # of a p-value that equals the level


class Simulated:
    """The power of a test at n rows; every truth is tried on the same rows with the same luck.

    Null draws depend on the predictions of a data set alone, so they are made once for every truth. Where they would
    be too many (n in the thousands), a few are made per data set and all data sets judged by those of all, whose laws
    hardly differ then.
    """

    def __init__(
        self,
        test: HypothesisTest,
        population: Population,
        n: int,
        alpha: float,
        count: int,
        key: int,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self.test, self.population, self.n, self.alpha, self.count = test, population, n, alpha, count
        self.key, self.progress = key, progress
        self._plain, self._null = population.truth(0.0), {}  # type: tuple[Array, dict[int, Array]]
        first = self._sample(self._plain, 0)
        test(first, [population.sample_lens], np.random.default_rng(key))  # what it cannot judge it refuses here
        self.redraws_labels = test.estimand(first, population.sample_lens) is not None
        self.draws = int(getattr(test, "resamples", 0)) if self.redraws_labels else 0
        n_draws = count * self.draws * len(population.views)
        self.pools_draws = self.redraws_labels and (count * n * self.draws > MAX_LABELS or n_draws > MAX_DRAWS)
        if self.pools_draws:
            self.draws = max(3, math.ceil(POOLED_DRAWS / count))

    def share(self, x: float, count: int | None = None) -> float:
        """The share of the first `count` data sets that the test rejects at distortion x."""
        count = self.count if count is None else min(count, self.count)
        truth, rejected = self.population.truth(x), 0
        for s in range(count):
            # A p-value that is not defined rejects nothing.
            rejected += self._pvalue(s, self._sample(truth, s)) <= self.alpha + ROUNDING
            if self.progress:
                self.progress((s + 1) / count)
        return rejected / count

    @property
    def settings_used(self) -> dict[str, Any]:
        """How the null law was had."""
        if not self.redraws_labels:
            return {}
        return {"null_draws": self.count * self.draws if self.pools_draws else self.draws, "pooled": self.pools_draws}

    def _sample(self, truth: Array, s: int) -> Predictions:
        return self.population.sample(truth, self.n, (self.key, s))

    def _pvalue(self, s: int, sample: Predictions) -> float:
        lens = self.population.sample_lens
        estimand = self.test.estimand(sample, lens)
        if estimand is None:
            return self.test(sample, [lens], np.random.default_rng([self.key, s, 2])).pvalue
        draws = self._pool if self.pools_draws else self._drawn(s, sample, estimand)
        return self.test.pvalue_of(estimand, draws, joint=sample.kind != "multilabel")

    def _drawn(self, s: int, sample: Predictions, estimand: Estimand) -> Array:
        """The null draws of one data set, (views, draws): they do not look at its labels."""
        if s not in self._null:
            (self._null[s],) = null_draws(sample, [estimand], self.draws, np.random.default_rng([self.key, s, 2]))
        return self._null[s]

    @property
    def _pool(self) -> Array:
        """The null draws of all data sets."""
        if -1 not in self._null:
            draws = []
            for s in range(self.count):
                sample = self._sample(self._plain, s)
                estimand = self.test.estimand(sample, self.population.sample_lens)
                assert estimand is not None
                draws.append(self._drawn(s, sample, estimand))
            self._null = {-1: np.concatenate(draws, axis=1)}
        return self._null[-1]
