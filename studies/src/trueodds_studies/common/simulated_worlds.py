"""Simulated models with a known calibration function: logistic, Gaussian mixture, Dirichlet, votes, powers of p.

A world is a distribution of predictions and outcomes: `rows` draws a sample from it, and `population` gives the true
probabilities, from which population values of estimators are computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import two_columns

NODES = 4001  # equidistant nodes of the quadrature over one latent score
POPULATION_DRAWS = 200_000  # predictions that represent the population where it is integrated by Monte Carlo
REDUCED_DRAWS = 3000  # the same for estimators whose cost is quadratic


@dataclass(frozen=True)
class SimulatedWorld:
    """A distribution of predictions and outcomes whose calibration function is known."""

    name: str

    @property
    def calibrated(self) -> bool:
        """Whether the predictions equal the true probabilities."""
        raise NotImplementedError

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """Predictions and hard labels of n independent rows."""
        raise NotImplementedError

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """Predictions with quadrature weights that represent all rows; the outcomes are the true class probabilities.

        `nodes` is the number of predictions where they are drawn at random, and is ignored by worlds with a fixed grid.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class LogisticWorld(SimulatedWorld):
    """A latent score x ~ N(center, std) and an event of probability σ(x); the model predicts σ(slope x + shift).

    The prediction determines x, so that the calibration function is known in closed form.
    """

    slope: float = 1.0
    shift: float = 0.0
    center: float = 0.0
    std: float = 1.3

    @property
    def calibrated(self) -> bool:
        """Whether slope and shift are the true ones, 1 and 0."""
        return (self.slope, self.shift) == (1.0, 0.0)

    def predict(self, x: Array) -> Array:
        """Predicted probabilities of the event at latent scores x (n,)."""
        return np.asarray(expit(self.slope * x + self.shift))

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """n independent rows; with the same generator, models that differ in slope and shift get the same rows."""
        x = rng.normal(self.center, self.std, n)
        return Predictions((rng.random(n) < expit(x)).astype(np.int64), self.predict(x))

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """Equidistant x within ten standard deviations of the center, weighted by their density."""
        z = np.linspace(-10, 10, NODES)
        x = self.center + self.std * z
        return _binary_population(self.predict(x), expit(x), np.exp(-z * z / 2))


@dataclass(frozen=True)
class GaussianMixtureWorld(SimulatedWorld):
    """The Gaussian mixture of Vaicenavicius et al. (2019): Y = ±1 equally often, x ~ N(Y, 1).

    The model predicts σ(intercept + slope x) for Y = −1, whose true probability is σ(−2x). With intercept = slope = 1,
    the calibration error is 0.56375 in total variation.
    """

    intercept: float = 1.0
    slope: float = 1.0

    @property
    def calibrated(self) -> bool:
        """Whether the coefficients are the true ones, 0 and −2."""
        return (self.intercept, self.slope) == (0.0, -2.0)

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """n independent rows; class 1 is Y = −1."""
        minus = rng.random(n) < 0.5
        x = rng.normal(np.where(minus, -1.0, 1.0), 1.0)
        return Predictions(minus.astype(np.int64), expit(self.intercept + self.slope * x))

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """Equidistant x from −10 to 10, weighted by their density."""
        x = np.linspace(-10, 10, NODES)
        density = np.exp(-((x - 1) ** 2) / 2) + np.exp(-((x + 1) ** 2) / 2)
        return _binary_population(expit(self.intercept + self.slope * x), expit(-2 * x), density)


@dataclass(frozen=True)
class NoisyDirichletWorld(SimulatedWorld):
    """Vectors μ from a Dirichlet distribution; a share `noise` of the labels is uniform, the others follow the vectors.

    The calibration function is r(μ) = (1 − noise) μ + noise / k; the canonical calibration error in total variation has
    a closed form (Widmann et al., 2019).
    """

    k: int = 3
    alpha: float = 1.0
    noise: float = 0.0

    @property
    def calibrated(self) -> bool:
        """Whether no labels are replaced by uniform ones."""
        return self.noise == 0

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """n independent rows, with labels by inverse transform sampling from the true probabilities."""
        P = rng.dirichlet(np.full(self.k, self.alpha), n)
        y = (np.cumsum(self._true_probs(P), axis=1) < rng.random(n)[:, None]).sum(axis=1)
        return Predictions(np.minimum(y, self.k - 1), P)

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """A fixed sample of vectors, each with its true probabilities."""
        P = np.random.default_rng(20_190_416).dirichlet(np.full(self.k, self.alpha), nodes)
        return Predictions(self._true_probs(P), P)

    def _true_probs(self, P: Array) -> Array:
        return (1 - self.noise) * P + self.noise / self.k


@dataclass(frozen=True)
class VoteWorld(SimulatedWorld):
    """Votes of m people per item, drawn from the prediction mixed with the uniform vector with weight `noise`."""

    k: int = 3
    people: int = 30
    noise: float = 0.0

    @property
    def calibrated(self) -> bool:
        """Whether votes are drawn from the predictions themselves."""
        return self.noise == 0

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """n independent items with their counts of votes."""
        P = rng.dirichlet(np.ones(self.k), n)
        return Predictions(rng.multinomial(self.people, (1 - self.noise) * P + self.noise / self.k), P)

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """A fixed sample of items with drawn votes, as population values of measures of votes include vote noise."""
        return self.rows(np.random.default_rng(20_220_401), nodes)


def _binary_population(p: Array, r: Array, w: Array) -> Predictions:
    """Predictions p of the event, their true probabilities r, and their weights w, each (n,), as predictions."""
    return Predictions(np.stack([1 - r, r], axis=1), p, weight=w / w.sum())


BINARY_WORLDS = (
    LogisticWorld("calibrated"),
    LogisticWorld("mild", slope=1.3),
    LogisticWorld("strong", slope=1.8, shift=0.35),
    LogisticWorld("rare", slope=1.3, shift=0.6, center=-3.5),
    GaussianMixtureWorld("mixture"),
)
MULTICLASS_WORLDS = (NoisyDirichletWorld("dirichlet calibrated"), NoisyDirichletWorld("dirichlet noisy", noise=0.4))
VOTE_WORLDS = (VoteWorld("crowd calibrated"), VoteWorld("crowd noisy", noise=0.3))


TABLE_NAMES = {"sure": "extreme"}  # of designs whose name in the tables differs


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
    def title(self) -> str:
        """The name in the tables; `name` determines the random streams and therefore stays as it is."""
        return TABLE_NAMES.get(self.name, self.name)

    @property
    def calibrated(self) -> bool:
        """Whether power and odds are 1."""
        return (self.power, self.odds) == (1.0, 1.0)

    def draw_predictions(self, rng: np.random.Generator, n: int) -> Array:
        """n predicted vectors, (n, k)."""
        raise NotImplementedError

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """n independent rows; of two classes, the predictions are the probabilities of the second."""
        P = self.draw_predictions(rng, n)
        y = (np.cumsum(self.true_probs(P), axis=1)[:, :-1] <= rng.random(n)[:, None]).sum(axis=1)
        return Predictions(y, P if self.k > 2 else P[:, 1])

    def population(self, nodes: int = POPULATION_DRAWS) -> Predictions:
        """A fixed sample of vectors, each with its true probabilities."""
        P = self.draw_predictions(np.random.default_rng(20_070_601), nodes)
        return Predictions(self.true_probs(P), P if self.k > 2 else P[:, 1])

    def true_probs(self, P: Array) -> Array:
        """The true class probabilities, (n, k), of the predicted vectors P (n, k)."""
        if self.calibrated:
            return P
        r = P**self.power
        r[:, -1] *= self.odds
        return r / r.sum(axis=1, keepdims=True)

    def miscalibrated(self, name: str, *, power: float = 1.0, odds: float = 1.0) -> PowerTransformedWorld:
        """The same distribution of predictions with miscalibrated outcomes; `name` is added to its name."""
        return replace(self, name=f"{self.name} {name}", power=power, odds=odds)


@dataclass(frozen=True)
class LogitNormalWorld(PowerTransformedWorld):
    """Two classes, with logit p ~ N(0, std²)."""

    k: int = 2
    std: float = 1.3

    def draw_predictions(self, rng: np.random.Generator, n: int) -> Array:
        """n vectors (n, 2), few of them close to 0 or 1."""
        return two_columns(expit(rng.normal(0.0, self.std, n)))


@dataclass(frozen=True)
class BetaWorld(PowerTransformedWorld):
    """Two classes, with p ~ Beta(first, second)."""

    k: int = 2
    first: float = 1.0
    second: float = 1.0

    def draw_predictions(self, rng: np.random.Generator, n: int) -> Array:
        """n vectors (n, 2); parameters below 1 give confident predictions, and a large second one rare events."""
        return two_columns(rng.beta(self.first, self.second, n))


@dataclass(frozen=True)
class DirichletWorld(PowerTransformedWorld):
    """Vectors from a symmetric Dirichlet distribution; `alpha` below 1 gives confident predictions."""

    k: int = 3
    alpha: float = 1.0

    def draw_predictions(self, rng: np.random.Generator, n: int) -> Array:
        """n vectors (n, k)."""
        return rng.dirichlet(np.full(self.k, self.alpha), n)


CALIBRATED_WORLDS = (
    LogitNormalWorld("logit-normal"),
    BetaWorld("sure", first=0.3, second=0.3),
    BetaWorld("rare", first=1.0, second=19.0),
    DirichletWorld("dirichlet 3", k=3),
    DirichletWorld("sharp 3", k=3, alpha=0.3),
    DirichletWorld("dirichlet 10", k=10),
    DirichletWorld("sharp 10", k=10, alpha=0.1),
)
MISCALIBRATIONS = {"overconfident": {"power": 0.7}, "shift": {"odds": 1.5}}
"""The settings of `PowerTransformedWorld.miscalibrated` for which the power of tests is measured."""
