"""Worlds in which a model is off by a given number of noise floors: smooth, local, in waves, shifted, too sharp or too flat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import expit, softmax

from trueodds.binning.partition import Uniform
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens import as_lens
from trueodds.lenses.view import View
from trueodds_studies.designs import Design

SCORES = {"normal": (0.0, 1.3), "sharp": (0.0, 3.0), "rare": (-3.0, 1.0)}  # mean and sd of the logits of two classes
LOGIT_STD = 1.5  # sd of the logits of several classes
SHAPES = ("temperature", "underconfident", "shift", "smooth", "waves", "local")
NODES = 100_000  # rows over which a truth is integrated
STEPS = 40  # halvings of the range of amounts
MAX_AMOUNT = 20.0  # the largest amount


@dataclass(frozen=True)
class Distorted(Design):
    """Predictions P and true probabilities that differ from them in one way.

    `temperature` (overconfident), `underconfident` and `shift` act on the logits, of several classes on the vector;
    `smooth`, `waves` and `local` on the probability of the event, of several classes on the confidence, the other
    classes taking up the difference in proportion. `local` moves the 6 % of the rows above the 60th percentile.
    """

    k: int = 2
    scores: str = "normal"
    shape: str = "temperature"
    amount: float = 0.0

    @property
    def calibrated(self) -> bool:
        """Whether the predictions are the true probabilities."""
        return self.amount == 0

    def predictions(self, rng: np.random.Generator, n: int) -> Array:
        """The predicted probabilities of n rows, (n, k)."""
        if self.k > 2:
            return np.asarray(softmax(rng.normal(0, LOGIT_STD, (n, self.k)), axis=1))
        p = rng.random(n) if self.scores == "uniform" else expit(rng.normal(*SCORES[self.scores], n))
        return np.stack([1 - p, p], axis=1)

    def truth(self, P: Array) -> Array:
        """The true probabilities, (n, k)."""
        a = self.amount
        if a == 0:
            return P
        if self.shape in ("temperature", "underconfident"):
            return np.asarray(softmax(np.log(P) * np.exp(-a if self.shape == "temperature" else a), axis=1))
        if self.shape == "shift":
            return np.asarray(softmax(np.log(P) + a * np.linspace(-0.5, 0.5, self.k), axis=1))
        top = np.full(len(P), 1) if self.k == 2 else P.argmax(axis=1)
        p = P[np.arange(len(P)), top]
        r = np.clip(p + a * self._direction(p), 0.0, 1.0)
        R = P * ((1 - r) / np.maximum(1 - p, 1e-300))[:, None]
        R[np.arange(len(P)), top] = r
        return R

    def _direction(self, p: Array) -> Array:
        if self.shape == "smooth":
            return 4 * p * (1 - p) * (p - 0.3)
        if self.shape == "waves":
            return np.sin(2 * np.pi * 3.7 * p) * np.minimum(1, 8 * p * (1 - p))
        low, high = _band(self.k, self.scores)
        return np.where(p > 0.5, -1.0, 1.0) * ((p >= low) & (p < high))

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """Predictions and hard labels."""
        P = self.predictions(rng, n)
        y = (np.cumsum(self.truth(P), axis=1) < rng.random(n)[:, None]).sum(axis=1)
        return Predictions(np.minimum(y, self.k - 1), P)

    def population(self, nodes: int = NODES) -> Predictions:
        """A fixed sample of predictions, each with its true probabilities."""
        P = self.predictions(np.random.default_rng(20_240_901), nodes)
        return Predictions(self.truth(P), P)


@cache
def _band(k: int, scores: str) -> tuple[float, float]:
    """The scores between the 60th and the 66th percentile."""
    P = Distorted("", k, scores).predictions(np.random.default_rng(20_240_902), NODES)
    low, high = np.quantile(P[:, 1] if k == 2 else P.max(axis=1), [0.60, 0.66])
    return float(low), float(high)


def at_floors(world: Distorted, lens: str, floors: float, n: int) -> Distorted:
    """The world whose error in 15 uniform bins is this many times what noise alone makes of it on n rows.

    Where no amount makes so large an error, as of 6 % of few rows, it is the largest there is.
    """
    if floors == 0:
        return world
    target = floors * _noise_floor(world, lens, n)
    low, high = 0.0, 1e-3
    while _error(replace(world, amount=high), lens) < target:
        low, high = high, 1.5 * high
        if high > MAX_AMOUNT:
            return replace(world, amount=MAX_AMOUNT)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _error(replace(world, amount=middle), lens) < target else (low, middle)
    return replace(world, amount=high)


def floors_of(world: Distorted, lens: str, n: int) -> float:
    """How many noise floors of n rows its error in 15 uniform bins is."""
    return _error(world, lens) / _noise_floor(world, lens, n)


def _error(world: Distorted, lens: str) -> float:
    return float(np.mean(BinnedError(Uniform(15)).values(_views(world, lens))))


def _noise_floor(world: Distorted, lens: str, n: int) -> float:
    """The mean of the binned error where the model is calibrated, by the normal law."""
    floors = []
    for view in _views(replace(world, amount=0.0), lens):
        v = view.binned(Uniform(15).freeze(view)).sums("wwv") / view.total
        floors.append(np.sqrt(2 / np.pi * np.maximum(v, 0) / n).sum())
    return float(np.mean(floors))


def _views(world: Distorted, lens: str) -> tuple[View, ...]:
    return as_lens(lens).views(world.population(NODES // 4))
