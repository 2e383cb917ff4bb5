"""Simulated models that are miscalibrated in one way, by an amount that gives a multiple of the noise floor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import expit, softmax

from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds_studies.common.simulated_worlds import SimulatedWorld

LOGIT_MOMENTS = {
    "normal": (0.0, 1.3),
    "sharp": (0.0, 3.0),
    "rare": (-3.0, 1.0),
}  # of two classes: mean and standard deviation of the logit, by the name of the distribution
LOGIT_STD = 1.5  # of several classes: standard deviation of each logit
DISTORTION_SHAPES = ("temperature", "underconfident", "shift", "smooth", "waves", "local")
POPULATION_ROWS = 100_000  # rows over which population values are averaged
BISECTION_STEPS = 40  # of the search for an amount
MAX_AMOUNT = 20.0


@dataclass(frozen=True)
class DistortedWorld(SimulatedWorld):
    """Predictions P whose true probabilities differ from them in one way, the more the larger `amount`.

    `shape` is one of DISTORTION_SHAPES: `temperature` (overconfident), `underconfident` and `shift` change the logits.
    `smooth`, `waves` and `local` change the probability of the event or, of several classes, the confidence, and scale
    the other classes so that the sum is 1. `local` changes only the rows between the 60th and the 66th percentile.
    """

    k: int = 2
    scores: str = "normal"  # distribution of the predictions: `uniform`, or a key of LOGIT_MOMENTS; for two classes
    shape: str = "temperature"
    amount: float = 0.0

    @property
    def calibrated(self) -> bool:
        """Whether the predictions are the true probabilities."""
        return self.amount == 0

    def draw_predictions(self, rng: np.random.Generator, n: int) -> Array:
        """The predicted probabilities of n rows, (n, k)."""
        if self.k > 2:
            return np.asarray(softmax(rng.normal(0, LOGIT_STD, (n, self.k)), axis=1))
        p = rng.random(n) if self.scores == "uniform" else expit(rng.normal(*LOGIT_MOMENTS[self.scores], n))
        return np.stack([1 - p, p], axis=1)

    def true_probs(self, P: Array) -> Array:
        """The true class probabilities, (n, k), of the predicted vectors P (n, k)."""
        amount = self.amount
        if amount == 0:
            return P
        if self.shape in ("temperature", "underconfident"):
            return np.asarray(softmax(np.log(P) * np.exp(-amount if self.shape == "temperature" else amount), axis=1))
        if self.shape == "shift":
            return np.asarray(softmax(np.log(P) + amount * np.linspace(-0.5, 0.5, self.k), axis=1))
        rows = np.arange(len(P))
        changed_class = np.full(len(P), 1) if self.k == 2 else P.argmax(axis=1)
        p = P[rows, changed_class]
        r = np.clip(p + amount * self._direction(p), 0.0, 1.0)
        R = P * ((1 - r) / np.maximum(1 - p, 1e-300))[:, None]
        R[rows, changed_class] = r
        return R

    def _direction(self, p: Array) -> Array:
        """The change of probabilities p (n,) per unit of the amount, for the shapes `smooth`, `waves` and `local`."""
        if self.shape == "smooth":
            return 4 * p * (1 - p) * (p - 0.3)
        if self.shape == "waves":
            return np.sin(2 * np.pi * 3.7 * p) * np.minimum(1, 8 * p * (1 - p))
        low, high = _local_range(self.k, self.scores)
        return np.where(p > 0.5, -1.0, 1.0) * ((p >= low) & (p < high))

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """n independent rows, with labels drawn from the true probabilities."""
        P = self.draw_predictions(rng, n)
        y = (np.cumsum(self.true_probs(P), axis=1) < rng.random(n)[:, None]).sum(axis=1)
        return Predictions(np.minimum(y, self.k - 1), P)

    def population(self, nodes: int = POPULATION_ROWS) -> Predictions:
        """A fixed sample of predictions, each with its true probabilities."""
        P = self.draw_predictions(np.random.default_rng(20_240_901), nodes)
        return Predictions(self.true_probs(P), P)


@cache
def _local_range(k: int, scores: str) -> tuple[float, float]:
    """The 60th and the 66th percentile of the probability of the event, or of the confidence of several classes."""
    P = DistortedWorld("", k, scores).draw_predictions(np.random.default_rng(20_240_902), POPULATION_ROWS)
    low, high = np.quantile(P[:, 1] if k == 2 else P.max(axis=1), [0.60, 0.66])
    return float(low), float(high)


def scale_to_noise_floors(world: DistortedWorld, lens: str, floors: float, n: int) -> DistortedWorld:
    """The world with the amount at which the ECE with 15 uniform bins is `floors` times its noise floor for n rows.

    The noise floor is the mean ECE of a calibrated model. If no amount gives such an error, as for `local` and few
    rows, the amount is MAX_AMOUNT.
    """
    if floors == 0:
        return world
    target = floors * _noise_floor(world, lens, n)
    low, high = 0.0, 1e-3
    while _binned_error(replace(world, amount=high), lens) < target:
        low, high = high, 1.5 * high
        if high > MAX_AMOUNT:
            return replace(world, amount=MAX_AMOUNT)
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _binned_error(replace(world, amount=middle), lens) < target else (low, middle)
    return replace(world, amount=high)


def count_noise_floors(world: DistortedWorld, lens: str, n: int) -> float:
    """The ECE of a world with 15 uniform bins, divided by its noise floor for n rows."""
    return _binned_error(world, lens) / _noise_floor(world, lens, n)


def _binned_error(world: DistortedWorld, lens: str) -> float:
    """Population ECE with 15 uniform bins, mean over the views of the lens."""
    return float(np.mean(BinnedError(Uniform(15)).values(_population_views(world, lens))))


def _noise_floor(world: DistortedWorld, lens: str, n: int) -> float:
    """Mean ECE of a calibrated model with n rows, as bin averages are nearly normal: E|N(0, v/n)| = √(2v / πn)."""
    floors = []
    for view in _population_views(replace(world, amount=0.0), lens):
        v = view.binned(Uniform(15).fit(view)).sums("wwv") / view.total
        floors.append(np.sqrt(2 / np.pi * np.maximum(v, 0) / n).sum())
    return float(np.mean(floors))


def _population_views(world: DistortedWorld, lens: str) -> tuple[View, ...]:
    return as_lens(lens).views(world.population(POPULATION_ROWS // 4))
