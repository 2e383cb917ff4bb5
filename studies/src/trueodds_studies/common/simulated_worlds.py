"""Simulated models whose calibration function is known exactly: logistic, Gaussian mixture, Dirichlet and votes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import two_columns

NODES = 4001  # of the quadrature over one latent score
POPULATION_DRAWS = 200_000  # of the quadrature over vectors
REDUCED_DRAWS = 3000  # for estimators whose cost is quadratic


@dataclass(frozen=True)
class SimulatedWorld:
    """A world to draw rows from, and the same world whole: every prediction with the rate at which its classes come."""

    name: str

    @property
    def calibrated(self) -> bool:
        """Whether the model is right in this world."""
        raise NotImplementedError

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """Predictions and hard labels of n independent rows."""
        raise NotImplementedError

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """Quadrature nodes with their weight; the outcomes are the true probabilities, as shares."""
        raise NotImplementedError


@dataclass(frozen=True)
class LogisticWorld(SimulatedWorld):
    """A latent score x ~ N(center, std) and an event of probability σ(x); the model predicts σ(slope x + shift).

    The map from predicted to true probabilities is one to one, so that the calibration function needs no smoothing.
    """

    slope: float = 1.0
    shift: float = 0.0
    center: float = 0.0
    std: float = 1.3

    @property
    def calibrated(self) -> bool:
        """Slope 1 and no shift."""
        return (self.slope, self.shift) == (1.0, 0.0)

    def predict(self, x: Array) -> Array:
        """What the model says at these latent scores."""
        return np.asarray(expit(self.slope * x + self.shift))

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """Scores first, then labels: two models on the same generator see the same rows."""
        x = rng.normal(self.center, self.std, n)
        return Predictions((rng.random(n) < expit(x)).astype(np.int64), self.predict(x))

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """Equal steps over ten standard deviations; tails beyond weigh 1e-22."""
        z = np.linspace(-10, 10, NODES)
        x = self.center + self.std * z
        return _binary(self.predict(x), expit(x), np.exp(-z * z / 2))


@dataclass(frozen=True)
class GaussianMixtureWorld(SimulatedWorld):
    """The Gaussian mixture of Vaicenavicius et al. (2019): Y = ±1 equally often, x ~ N(Y, 1).

    The model says σ(first + second x) for Y = −1; the truth is σ(−2x). With (1, 1) its error is 0.56375 in tv.
    """

    first: float = 1.0
    second: float = 1.0

    @property
    def calibrated(self) -> bool:
        """The true coefficients."""
        return (self.first, self.second) == (0.0, -2.0)

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """Class 1 is Y = −1."""
        minus = rng.random(n) < 0.5
        x = rng.normal(np.where(minus, -1.0, 1.0), 1.0)
        return Predictions(minus.astype(np.int64), expit(self.first + self.second * x))

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """Equal steps from −10 to 10."""
        x = np.linspace(-10, 10, NODES)
        density = np.exp(-((x - 1) ** 2) / 2) + np.exp(-((x + 1) ** 2) / 2)
        return _binary(expit(self.first + self.second * x), expit(-2 * x), density)


@dataclass(frozen=True)
class DirichletWorld(SimulatedWorld):
    """Vectors from a Dirichlet distribution; a share `noise` of the labels is uniform, the others follow the vectors.

    Then r(μ) = (1 − noise) μ + noise / k; the canonical error in tv has a closed form (Widmann et al., 2019).
    """

    k: int = 3
    alpha: float = 1.0
    noise: float = 0.0

    @property
    def calibrated(self) -> bool:
        """No noise."""
        return self.noise == 0

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """Labels by the inverse distribution function of the true probabilities."""
        P = rng.dirichlet(np.full(self.k, self.alpha), n)
        y = (np.cumsum(self._true(P), axis=1) < rng.random(n)[:, None]).sum(axis=1)
        return Predictions(np.minimum(y, self.k - 1), P)

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """A fixed sample of vectors, each with its true probabilities."""
        P = np.random.default_rng(20_190_416).dirichlet(np.full(self.k, self.alpha), nodes)
        return Predictions(self._true(P), P)

    def _true(self, P: Array) -> Array:
        return (1 - self.noise) * P + self.noise / self.k


@dataclass(frozen=True)
class VoteWorld(SimulatedWorld):
    """Votes of m people per item, drawn from the prediction mixed with the uniform vector with weight `noise`."""

    k: int = 3
    people: int = 30
    noise: float = 0.0

    @property
    def calibrated(self) -> bool:
        """No noise: a model that knows the crowd."""
        return self.noise == 0

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """Counts of votes."""
        P = rng.dirichlet(np.ones(self.k), n)
        return Predictions(rng.multinomial(self.people, (1 - self.noise) * P + self.noise / self.k), P)

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """A fixed sample of items with their votes: the target of a mean includes the noise of the votes."""
        return self.rows(np.random.default_rng(20_220_401), nodes)


def _binary(p: Array, r: Array, w: Array) -> Predictions:
    return Predictions(np.stack([1 - r, r], axis=1), p, weight=w / w.sum())


BINARY_WORLDS = (
    LogisticWorld("calibrated"),
    LogisticWorld("mild", slope=1.3),
    LogisticWorld("strong", slope=1.8, shift=0.35),
    LogisticWorld("rare", slope=1.3, shift=0.6, center=-3.5),
    GaussianMixtureWorld("mixture"),
)
MULTICLASS_WORLDS = (DirichletWorld("dirichlet calibrated"), DirichletWorld("dirichlet noisy", noise=0.4))
VOTE_WORLDS = (VoteWorld("crowd calibrated"), VoteWorld("crowd noisy", noise=0.3))


@dataclass(frozen=True)
class PowerTransformedWorld(SimulatedWorld):
    """Predicted vectors μ and true class probabilities r ∝ μ^power, with the last one multiplied by `odds`.

    With a power of 1 and odds of 1 the model is calibrated. With a power below 1 it is overconfident. With odds above 1
    the last class is more frequent than in the training data.
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

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
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

    def bent(self, name: str, *, power: float = 1.0, odds: float = 1.0) -> PowerTransformedWorld:
        """The same predictions with other outcomes."""
        return replace(self, name=f"{self.name} {name}", power=power, odds=odds)


@dataclass(frozen=True)
class LogitNormal(PowerTransformedWorld):
    """Two classes, logit p ~ N(0, spread)."""

    k: int = 2
    std: float = 1.3

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """Scores of both signs, few of them sure."""
        return two_columns(expit(rng.normal(0.0, self.std, n)))


@dataclass(frozen=True)
class Beta(PowerTransformedWorld):
    """Two classes, p ~ Beta(first, second)."""

    k: int = 2
    first: float = 1.0
    second: float = 1.0

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """Sure calls where both are below 1, rare events where the second is large."""
        return two_columns(rng.beta(self.first, self.second, n))


@dataclass(frozen=True)
class Dirichlet(PowerTransformedWorld):
    """Vectors from a symmetric Dirichlet distribution; `alpha` below 1 gives confident predictions."""

    k: int = 3
    alpha: float = 1.0

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """Vectors of k probabilities."""
        return rng.dirichlet(np.full(self.k, self.alpha), n)


CALIBRATED_WORLDS = (
    LogitNormal("logit-normal"),
    Beta("sure", first=0.3, second=0.3),
    Beta("rare", first=1.0, second=19.0),
    Dirichlet("dirichlet 3", k=3),
    Dirichlet("sharp 3", k=3, alpha=0.3),
    Dirichlet("dirichlet 10", k=10),
    Dirichlet("sharp 10", k=10, alpha=0.1),
)
MISCALIBRATIONS = {"overconfident": {"power": 0.7}, "shift": {"odds": 1.5}}  # what power is measured against
