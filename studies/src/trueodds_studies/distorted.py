"""In which worlds is a fix to be found, and in which is there none? Stated probabilities, and what comes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from trueodds.calibrators.likelihood.logs import softmax
from trueodds.core.typing import Array
from trueodds.data.complements import two_columns
from trueodds_studies.stated import WORLDS, LogitNormal, Stated


@dataclass(frozen=True)
class Tempered(Stated):
    """Vectors softmax(spread · z) of standard normal z; class k comes with probability ∝ μ_k^powers_k · factors_k.

    A temperature T is mended by the power 1/T; powers and factors that differ ask for a map of more parameters.
    """

    std: float = 1.5
    powers: tuple[float, ...] = ()  # of each class; none is `power` for all
    factors: tuple[float, ...] = ()

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """n vectors, (n, k)."""
        return softmax(self.std * rng.normal(size=(n, self.k)))

    def true(self, P: Array) -> Array:
        """The true probabilities of these vectors, (n, k)."""
        if not self.powers and not self.factors:
            return super().true(P)
        r = P ** np.array(self.powers or (self.power,) * self.k) * np.array(self.factors or (1.0,) * self.k)
        return np.asarray(r / r.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Wave(LogitNormal):
    """Two classes whose true log odds wave around those stated."""

    height: float = 0.8

    def true(self, P: Array) -> Array:
        """The true probabilities, (n, 2)."""
        x = np.log(P[:, 1] / P[:, 0])
        return two_columns(expit(x + self.height * np.sin(2 * x)))


@dataclass(frozen=True)
class ExactZeros(Stated):
    """Two classes, p ~ Beta(0.3, 0.3), and in a third of the rows exactly 0."""

    k: int = 2

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """Sure calls, many of them beyond any doubt."""
        return two_columns(rng.beta(0.3, 0.3, n) * (rng.random(n) > 1 / 3))


@dataclass(frozen=True)
class HeavyTails(Stated):
    """Two classes, logit p = 3 t with 2 degrees of freedom."""

    k: int = 2

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """Scores some of which are surer than any sample can show."""
        return two_columns(expit(3 * rng.standard_t(2, n)))


class Distorted(NamedTuple):
    """A world with an error, rows of it, and the method that mends it best."""

    world: Stated
    n: int
    method: str


CALIBRATED = (*WORLDS, ExactZeros("exact zeros"), HeavyTails("heavy tails"))
DISTORTED = (
    Distorted(LogitNormal("T = 0.6", std=0.9, power=1 / 0.6), 150, "temperature"),
    Distorted(LogitNormal("T = 1.3", std=1.95, power=1 / 1.3), 1000, "temperature"),
    Distorted(LogitNormal("T = 1.15", std=1.725, power=1 / 1.15), 5000, "temperature"),
    Distorted(LogitNormal("shift", std=1.5, odds=1.35), 1000, "llo"),
    Distorted(Wave("wave", std=1.5), 1000, "spline"),
    Distorted(Tempered("T = 1.5, 10 classes", k=10, std=2.25, power=1 / 1.5), 300, "temperature"),
    Distorted(Tempered("one class of 3", k=3, factors=(1.65, 1.0, 1.0)), 500, "bias_corrected_temperature"),
    Distorted(Tempered("slopes, 3 classes", k=3, std=1.7, powers=(0.7, 1.0, 1.25)), 1000, "structured"),
    Distorted(Tempered("slopes, 10 classes", k=10, powers=tuple(np.linspace(0.7, 1.4, 10).tolist())), 1500, "vector"),
)
