"""What is true in the Gaussian mixture: how wrong each model is, and what its bins would show if rows never ran out?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit, logit, ndtr

from trueodds.binning.partition import Distinct, EqualMass, FixedEdges, MedianVariance, Partition, Uniform
from trueodds.binning.tree import Tree
from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.view import View
from trueodds_studies.designs import Mixture

MAX_X = 10.0  # of x; what lies beyond weighs 1e-19
STEP = 0.25  # between the stretches of the quadrature
NODES = 12  # of Gauss and Legendre in each stretch: more change no digit of double precision
QUANTILES = 20_000  # that stand for the law of the predictions where a tree is grown on it
KINDS = ("uniform", "equal-mass", "tree")


@dataclass(frozen=True)
class Model:
    """The model says σ(first + second x) for the class Y = −1, which comes with probability σ(−2x)."""

    name: str
    first: float
    second: float

    @property
    def design(self) -> Mixture:
        """The world that rows are drawn from."""
        return Mixture(self.name, self.first, self.second)

    @property
    def calibrated(self) -> bool:
        """The true coefficients, or a constant that is the rate of the class: the only two there are."""
        return (self.first, self.second) in ((0.0, -2.0), (0.0, 0.0))

    @property
    def crossing(self) -> float | None:
        """Where what is said crosses what comes, as a latent x: first + second x = −2x."""
        return None if self.calibrated or self.second == -2 else -self.first / (self.second + 2)

    def comes(self, p: Array) -> Array:
        """How often the class comes where p is said: r(p)."""
        if self.second == 0:
            return np.full_like(p, 0.5)
        return np.asarray(expit(-2 * (logit(p) - self.first) / self.second))

    def side(self, p: Array) -> Array:
        """The sign of p − r(p), 0 everywhere for a calibrated model."""
        if self.calibrated:
            return np.zeros_like(p)
        if self.second == 0:
            return np.sign(p - 0.5)
        x = (logit(p) - self.first) / self.second
        return np.sign(self.first + (self.second + 2) * x)


MODELS = {
    model.name: model
    for model in (Model("perfect", 0.0, -2.0), Model("constant", 0.0, 0.0), Model("uncalibrated", 1.0, 1.0))
}


def known(name: str) -> Model:
    """The model of that name; another is an InputError."""
    if name not in MODELS:
        raise InputError("TO201", "There is no model of that name.", repr(name), near(name, MODELS))
    return MODELS[name]


def partition(kind: str, bins: int) -> Partition:
    """The bins of an estimate; a tree has at most so many leaves of at least ten rows."""
    if kind == "tree":
        return MedianVariance(max_bins=bins)
    return Uniform(bins) if kind == "uniform" else EqualMass(bins)


@lru_cache(maxsize=1024)
def error(model: Model, distance: str = "tv") -> float:
    """The expected miscalibration η by quadrature: every prediction is a bin of its own.

    >>> round(error(MODELS["uncalibrated"]), 5), error(MODELS["constant"]) < 1e-12
    (0.56375, True)
    """
    return BinnedError(Distinct(), distance=distance).value(population_view(model, ()))


@lru_cache(maxsize=4096)
def limit(model: Model, kind: str, bins: int, distance: str = "tv") -> float:
    """What the estimate comes to where the bins stay and rows never run out, by quadrature.

    >>> limit(MODELS["uncalibrated"], "uniform", 5) < error(MODELS["uncalibrated"])
    True
    """
    return between(model, population_edges(model, kind, bins), distance)


def between(model: Model, edges: tuple[float, ...], distance: str = "tv") -> float:
    """The same for bins between inner edges that are given."""
    return BinnedError(FixedEdges((0.0, *edges, 1.0)), distance=distance).value(population_view(model, edges))


@lru_cache(maxsize=4096)
def population_edges(model: Model, kind: str, bins: int) -> tuple[float, ...]:
    """The inner edges that a partition has on the law of the predictions itself."""
    if kind == "uniform":
        return tuple((np.arange(1, bins) / bins).tolist())
    if model.second == 0:
        return ()  # all predictions are tied, and ties are not parted
    if kind == "equal-mass":
        edges = expit(model.first + model.second * quantiles(np.arange(1, bins) / bins))
        return tuple(np.sort(edges).tolist())
    p = expit(model.first + model.second * _sample())
    tree = MedianVariance(max_bins=bins).freeze(View(p=p, y=model.comes(p)))
    assert isinstance(tree, Tree)
    return tuple(sorted(cut for cut, axis in zip(tree.cut, tree.axis, strict=True) if axis >= 0))


@lru_cache(maxsize=1)
def _sample() -> Array:
    """The law of x as equally many rows on every side."""
    return quantiles((np.arange(QUANTILES) + 0.5) / QUANTILES)


def quantiles(share: Array) -> Array:
    """The x below which a share of the mixture lies, by halving.

    >>> bool(abs(quantiles(np.array([0.5]))[0]) < 1e-12)
    True
    """
    low, high = np.full(len(share), -MAX_X), np.full(len(share), MAX_X)
    for _ in range(60):
        middle = (low + high) / 2
        below = (ndtr(middle + 1) + ndtr(middle - 1)) / 2 < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def population_view(model: Model, edges: tuple[float, ...]) -> View:
    """Predictions, their rates and weights at nodes of Gauss and Legendre between all places where a sum has a corner."""
    cuts = np.arange(-MAX_X, MAX_X + STEP / 2, STEP)
    if model.second != 0 and edges:
        at = (logit(np.array(edges)) - model.first) / model.second
        cuts = np.append(cuts, at[np.abs(at) < MAX_X])
    if model.crossing is not None:
        cuts = np.append(cuts, model.crossing)
    cuts = np.unique(cuts)
    place, share = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(cuts)[:, None] / 2
    x = ((cuts[:-1, None] + half) + half * place).ravel()
    w = (half * share).ravel() * (np.exp(-((x - 1) ** 2) / 2) + np.exp(-((x + 1) ** 2) / 2))
    return View(p=expit(model.first + model.second * x), y=expit(-2 * x), w=w / w.sum())
