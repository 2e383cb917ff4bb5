"""In which worlds is a test's level measured? Predictions of a known law whose outcomes come as stated, or bent from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from trueodds.core.typing import Array
from trueodds.data.complements import two_columns
from trueodds.data.predictions import Predictions
from trueodds_studies.designs import DRAWS, Design


@dataclass(frozen=True)
class Stated(Design):
    """Vectors μ from a law of their own; the classes come with probabilities r ∝ μ^power, the last one's × odds.

    A power of 1 and odds of 1 is a calibrated model; below 1 it is too sure; odds above 1 are a class that came
    more often than where the model was trained.
    """

    k: int
    power: float = 1.0
    odds: float = 1.0

    @property
    def calibrated(self) -> bool:
        """Nothing is bent."""
        return (self.power, self.odds) == (1.0, 1.0)

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """n vectors, (n, k)."""
        raise NotImplementedError

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """Predictions first, then labels by the inverse distribution function; two classes are one column."""
        P = self.stated(rng, n)
        y = (np.cumsum(self.true(P), axis=1)[:, :-1] <= rng.random(n)[:, None]).sum(axis=1)
        return Predictions(y, P if self.k > 2 else P[:, 1])

    def population(self, nodes: int = DRAWS) -> Predictions:
        """A fixed sample of vectors, each with its true probabilities."""
        P = self.stated(np.random.default_rng(20_070_601), nodes)
        return Predictions(self.true(P), P if self.k > 2 else P[:, 1])

    def true(self, P: Array) -> Array:
        """The true probabilities of these vectors, (n, k)."""
        if self.calibrated:
            return P
        r = P**self.power
        r[:, -1] *= self.odds
        return r / r.sum(axis=1, keepdims=True)

    def bent(self, name: str, *, power: float = 1.0, odds: float = 1.0) -> Stated:
        """The same predictions with other outcomes."""
        return replace(self, name=f"{self.name} {name}", power=power, odds=odds)


@dataclass(frozen=True)
class LogitNormal(Stated):
    """Two classes, logit p ~ N(0, spread)."""

    k: int = 2
    std: float = 1.3

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """Scores of both signs, few of them sure."""
        return two_columns(expit(rng.normal(0.0, self.std, n)))


@dataclass(frozen=True)
class Beta(Stated):
    """Two classes, p ~ Beta(first, second)."""

    k: int = 2
    first: float = 1.0
    second: float = 1.0

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """Sure calls where both are below 1, rare events where the second is large."""
        return two_columns(rng.beta(self.first, self.second, n))


@dataclass(frozen=True)
class Dirichlet(Stated):
    """Vectors from a symmetric Dirichlet law; sharp below 1."""

    k: int = 3
    alpha: float = 1.0

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """Vectors of k probabilities."""
        return rng.dirichlet(np.full(self.k, self.alpha), n)


WORLDS = (
    LogitNormal("logit-normal"),
    Beta("sure", first=0.3, second=0.3),
    Beta("rare", first=1.0, second=19.0),
    Dirichlet("dirichlet 3", k=3),
    Dirichlet("sharp 3", k=3, alpha=0.3),
    Dirichlet("dirichlet 10", k=10),
    Dirichlet("sharp 10", k=10, alpha=0.1),
)
BENT = {"overconfident": {"power": 0.7}, "shift": {"odds": 1.5}}  # what power is measured against
