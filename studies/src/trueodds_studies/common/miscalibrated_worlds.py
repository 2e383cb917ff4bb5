"""Simulated models that are miscalibrated in one known way, or by a given multiple of the noise floor."""

from __future__ import annotations

from collections.abc import Callable
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
}  # mean and sd of the logits of two classes
LOGIT_STD = 1.5  # sd of the logits of several classes
DISTORTION_SHAPES = ("temperature", "underconfident", "shift", "smooth", "waves", "local")
NODES = 100_000  # rows over which a truth is integrated
STEPS = 40  # halvings of the range of amounts
MAX_AMOUNT = 20.0  # the largest amount


@dataclass(frozen=True)
class DistortedWorld(SimulatedWorld):
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
        p = rng.random(n) if self.scores == "uniform" else expit(rng.normal(*LOGIT_MOMENTS[self.scores], n))
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
    P = DistortedWorld("", k, scores).predictions(np.random.default_rng(20_240_902), NODES)
    low, high = np.quantile(P[:, 1] if k == 2 else P.max(axis=1), [0.60, 0.66])
    return float(low), float(high)


def scale_to_noise_floors(world: DistortedWorld, lens: str, floors: float, n: int) -> DistortedWorld:
    """The world whose error in 15 uniform bins is this many times what noise alone makes of it on n rows.

    Where no amount makes so large an error, as of 6 % of few rows, it is the largest there is.
    """
    if floors == 0:
        return world
    target = floors * _noise_floor(world, lens, n)
    low, high = 0.0, 1e-3
    while _binned_error(replace(world, amount=high), lens) < target:
        low, high = high, 1.5 * high
        if high > MAX_AMOUNT:
            return replace(world, amount=MAX_AMOUNT)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _binned_error(replace(world, amount=middle), lens) < target else (low, middle)
    return replace(world, amount=high)


def count_noise_floors(world: DistortedWorld, lens: str, n: int) -> float:
    """How many noise floors of n rows its error in 15 uniform bins is."""
    return _binned_error(world, lens) / _noise_floor(world, lens, n)


def _binned_error(world: DistortedWorld, lens: str) -> float:
    return float(np.mean(BinnedError(Uniform(15)).values(_top_view(world, lens))))


def _noise_floor(world: DistortedWorld, lens: str, n: int) -> float:
    """The expected binned error of a calibrated model, from the normal approximation."""
    floors = []
    for view in _top_view(replace(world, amount=0.0), lens):
        v = view.binned(Uniform(15).fit(view)).sums("wwv") / view.total
        floors.append(np.sqrt(2 / np.pi * np.maximum(v, 0) / n).sum())
    return float(np.mean(floors))


def _top_view(world: DistortedWorld, lens: str) -> tuple[View, ...]:
    return as_lens(lens).views(world.population(NODES // 4))


Simulator = Callable[[np.random.Generator, int], tuple[Array, Array]]  # (n, K) stated and (n, K) true probabilities


@dataclass(frozen=True)
class MiscalibratedWorld:
    """A model and what is wrong with it; `chosen` if the tests' weights were chosen with worlds of its kind."""

    name: str
    k: int
    make: Simulator
    chosen: bool = False
    calibrated: bool = False

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """Predictions and labels; two classes are one column."""
        P, Q = self.make(rng, n)
        y = (np.cumsum(Q, axis=1)[:, :-1] <= rng.random(n)[:, None]).sum(axis=1)
        return Predictions(y, P if self.k > 2 else P[:, 1])


def _binary_world(stated: Callable[[np.random.Generator, int], Array], true: Callable[[Array], Array]) -> Simulator:
    """Two classes: the distribution of the predicted probability of the second, and its calibration function."""

    def make(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        p = stated(rng, n)
        q = np.clip(true(p), 0.0, 1.0)
        return np.stack([1 - p, p], axis=1), np.stack([1 - q, q], axis=1)

    return make


def _logits(scale: float, mean: float = 0.0) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: expit(rng.normal(mean, scale, n))


def _logit(p: Array) -> Array:
    return np.log(p) - np.log1p(-p)


def _uniform(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(0.001, 0.999, n)


def _multiclass_world(k: int, scale: float, true: Callable[[Array, Array], Array]) -> Simulator:
    """Several classes with normal logits; `true` gives the true probabilities from logits and predictions."""

    def make(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        z = rng.normal(0, scale, (n, k))
        P = softmax(z, axis=1)
        Q = np.clip(true(z, P), 0.0, None)
        return P, Q / Q.sum(axis=1, keepdims=True)

    return make


def _one_class(k: int, scale: float, factor: float) -> Simulator:
    def true(_z: Array, P: Array) -> Array:
        Q = P.copy()
        Q[:, 1] *= factor
        return Q

    return _multiclass_world(k, scale, true)


def _swapped(k: int, scale: float, share: float) -> Simulator:
    """Move mass between two classes in a direction given by a third: each class alone is nearly calibrated."""

    def true(_z: Array, P: Array) -> Array:
        Q = P.copy()
        moved = share * np.minimum(P[:, 0], P[:, 1]) * np.sign(P[:, 2] - np.median(P[:, 2]))
        Q[:, 0] += moved
        Q[:, 1] -= moved
        return Q

    return _multiclass_world(k, scale, true)


def _table1(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """The 2019 paper's example: confidence and every class are right, the vectors are not; smeared a little."""
    vectors = np.array([[1, 3, 6], [1, 6, 3], [3, 1, 6], [3, 6, 1], [6, 1, 3], [6, 3, 1]]) / 10
    true = np.array([[2, 2, 6], [0, 7, 3], [2, 2, 6], [4, 5, 1], [7, 0, 3], [5, 4, 1]]) / 10
    vector_index, noise = rng.integers(0, 6, n), 0.25 * (rng.dirichlet(np.full(3, 60.0), n) - 1 / 3)
    P, Q = np.clip(vectors[vector_index] + noise, 1e-3, 1), np.clip(true[vector_index] + noise, 0, 1)
    return P / P.sum(axis=1, keepdims=True), Q / Q.sum(axis=1, keepdims=True)


def _overconfident(k: int, scale: float, points: float) -> Simulator:
    """The largest probability comes so much less often than stated."""

    def true(_z: Array, P: Array) -> Array:
        top, rows = P.argmax(axis=1), np.arange(len(P))
        now = np.maximum(P[rows, top] - points, 0.0)
        Q = P * ((1 - now) / np.maximum(1 - P[rows, top], 1e-12))[:, None]
        Q[rows, top] = now
        return Q

    return _multiclass_world(k, scale, true)


def _shifted(size: float) -> Callable[[Array, Array], Array]:
    """Logits move by alternating amounts: another prevalence of the classes."""

    def true(z: Array, _p: Array) -> Array:
        steps = size * np.cos(np.arange(z.shape[1]) * 2.4)
        moved: Array = softmax(z + steps, axis=1)
        return moved

    return true


POWER_WORLDS = (
    MiscalibratedWorld("calibrated, logits N(0, 2)", 2, _binary_world(_logits(2.0), lambda p: p), calibrated=True),
    MiscalibratedWorld("calibrated, rare", 2, _binary_world(_logits(1.0, -4.0), lambda p: p), calibrated=True),
    MiscalibratedWorld("calibrated", 3, _multiclass_world(3, 1.6, lambda _z, P: P), calibrated=True),
    MiscalibratedWorld("calibrated, sharp", 10, _multiclass_world(10, 3.0, lambda _z, P: P), calibrated=True),
    MiscalibratedWorld("calibrated", 100, _multiclass_world(100, 2.0, lambda _z, P: P), calibrated=True),
    MiscalibratedWorld("temperature .6", 2, _binary_world(_logits(1.5), lambda p: expit(_logit(p) / 0.6)), chosen=True),
    MiscalibratedWorld(
        "temperature 1.3", 2, _binary_world(_logits(2.5), lambda p: expit(_logit(p) / 1.3)), chosen=True
    ),
    MiscalibratedWorld(
        "wave of 11 periods", 2, _binary_world(_uniform, lambda p: p + 0.12 * np.sin(22 * np.pi * p)), chosen=True
    ),
    MiscalibratedWorld("2 points too high", 2, _binary_world(_logits(1.5), lambda p: p - 0.02), chosen=True),
    MiscalibratedWorld(
        "30 points off in 6 %", 2, _binary_world(_uniform, lambda p: p - 0.3 * ((p > 0.85) & (p < 0.91))), chosen=True
    ),
    MiscalibratedWorld(
        "rare, odds 1.5", 2, _binary_world(_logits(1.0, -4.0), lambda p: expit(_logit(p) + 0.4)), chosen=True
    ),
    MiscalibratedWorld("temperature 1.15", 2, _binary_world(_logits(2.0), lambda p: expit(_logit(p) / 1.15))),
    MiscalibratedWorld("wave of 3 periods", 2, _binary_world(_uniform, lambda p: p + 0.07 * np.sin(6 * np.pi * p))),
    MiscalibratedWorld("too high where large", 2, _binary_world(_uniform, lambda p: p - 0.12 * np.maximum(p - 0.5, 0))),
    MiscalibratedWorld("bend", 2, _binary_world(_uniform, lambda p: p + 0.12 * p * (1 - p))),
    MiscalibratedWorld(
        "a plateau at .3", 2, _binary_world(_logits(1.2), lambda p: np.where(abs(p - 0.3) < 0.05, 0.42, p))
    ),
    MiscalibratedWorld("sharp, slope .8", 2, _binary_world(_logits(5.0), lambda p: expit(0.8 * _logit(p)))),
    MiscalibratedWorld(
        "temperature 1.2", 10, _multiclass_world(10, 1.6, lambda z, _p: softmax(z / 1.2, axis=1)), chosen=True
    ),
    MiscalibratedWorld(
        "temperature .85", 10, _multiclass_world(10, 1.6, lambda z, _p: softmax(z / 0.85, axis=1)), chosen=True
    ),
    MiscalibratedWorld("one class × .55", 10, _one_class(10, 1.6, 0.55), chosen=True),
    MiscalibratedWorld("prior shift", 10, _multiclass_world(10, 1.6, _shifted(0.3)), chosen=True),
    MiscalibratedWorld("Table 1, smeared", 3, _table1, chosen=True),
    MiscalibratedWorld("confidence 6 points too high", 10, _overconfident(10, 1.6, 0.06), chosen=True),
    MiscalibratedWorld("one class × .7", 3, _one_class(3, 1.3, 0.7)),
    MiscalibratedWorld("temperature 1.3", 3, _multiclass_world(3, 1.8, lambda z, _p: softmax(z / 1.3, axis=1))),
    MiscalibratedWorld("prior shift", 3, _multiclass_world(3, 1.3, _shifted(0.2)), chosen=True),
    MiscalibratedWorld("two classes swapped", 3, _swapped(3, 1.3, 0.5), chosen=True),
    MiscalibratedWorld("temperature .6, flat", 10, _multiclass_world(10, 0.7, lambda z, _p: softmax(z / 0.6, axis=1))),
    MiscalibratedWorld("confidence 10 points too high", 10, _overconfident(10, 3.0, 0.1)),
    MiscalibratedWorld(
        "slopes .75 and 1.3",
        10,
        _multiclass_world(10, 1.4, lambda z, _p: softmax(z * np.resize([0.75, 1.3], 10), axis=1)),
    ),
    MiscalibratedWorld("temperature 1.15", 100, _multiclass_world(100, 2.0, lambda z, _p: softmax(z / 1.15, axis=1))),
    MiscalibratedWorld("prior shift", 100, _multiclass_world(100, 2.0, _shifted(0.6))),
)
