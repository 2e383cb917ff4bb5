"""Models that are wrong in one known way: predictions of a known law, and the probabilities with which outcomes come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

Made = Callable[[np.random.Generator, int], tuple[Array, Array]]  # (n, K) stated and (n, K) true probabilities


@dataclass(frozen=True)
class World:
    """A model and what is wrong with it; `chosen` if the tests' weights were chosen with worlds of its kind."""

    name: str
    k: int
    make: Made
    chosen: bool = False
    calibrated: bool = False

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """Predictions and labels; two classes are one column."""
        P, Q = self.make(rng, n)
        y = (np.cumsum(Q, axis=1)[:, :-1] <= rng.random(n)[:, None]).sum(axis=1)
        return Predictions(y, P if self.k > 2 else P[:, 1])


def _two(stated: Callable[[np.random.Generator, int], Array], true: Callable[[Array], Array]) -> Made:
    """Two classes from the probability of the second: the law of what is stated, and the curve of what comes."""

    def make(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        p = stated(rng, n)
        q = np.clip(true(p), 0.0, 1.0)
        return np.stack([1 - p, p], axis=1), np.stack([1 - q, q], axis=1)

    return make


def _logits(scale: float, mean: float = 0.0) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: expit(rng.normal(mean, scale, n))


def _odds(p: Array) -> Array:
    return np.log(p) - np.log1p(-p)


def _uniform(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(0.001, 0.999, n)


def _many(k: int, scale: float, true: Callable[[Array, Array], Array]) -> Made:
    """Several classes with normal logits, and what comes from logits and probabilities."""

    def make(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        z = rng.normal(0, scale, (n, k))
        P = softmax(z, axis=1)
        Q = np.clip(true(z, P), 0.0, None)
        return P, Q / Q.sum(axis=1, keepdims=True)

    return make


def _one_class(k: int, scale: float, factor: float) -> Made:
    def true(_z: Array, P: Array) -> Array:
        Q = P.copy()
        Q[:, 1] *= factor
        return Q

    return _many(k, scale, true)


def _swapped(k: int, scale: float, share: float) -> Made:
    """Mass moves between two classes, one way or the other as a third is likely: no single class is off by much."""

    def true(_z: Array, P: Array) -> Array:
        Q = P.copy()
        moved = share * np.minimum(P[:, 0], P[:, 1]) * np.sign(P[:, 2] - np.median(P[:, 2]))
        Q[:, 0] += moved
        Q[:, 1] -= moved
        return Q

    return _many(k, scale, true)


def _table1(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """The 2019 paper's example: confidence and every class are right, the vectors are not; smeared a little."""
    stated = np.array([[1, 3, 6], [1, 6, 3], [3, 1, 6], [3, 6, 1], [6, 1, 3], [6, 3, 1]]) / 10
    true = np.array([[2, 2, 6], [0, 7, 3], [2, 2, 6], [4, 5, 1], [7, 0, 3], [5, 4, 1]]) / 10
    which, noise = rng.integers(0, 6, n), 0.25 * (rng.dirichlet(np.full(3, 60.0), n) - 1 / 3)
    P, Q = np.clip(stated[which] + noise, 1e-3, 1), np.clip(true[which] + noise, 0, 1)
    return P / P.sum(axis=1, keepdims=True), Q / Q.sum(axis=1, keepdims=True)


def _overconfident(k: int, scale: float, points: float) -> Made:
    """The largest probability comes so much less often than stated."""

    def true(_z: Array, P: Array) -> Array:
        top, rows = P.argmax(axis=1), np.arange(len(P))
        now = np.maximum(P[rows, top] - points, 0.0)
        Q = P * ((1 - now) / np.maximum(1 - P[rows, top], 1e-12))[:, None]
        Q[rows, top] = now
        return Q

    return _many(k, scale, true)


def _shifted(size: float) -> Callable[[Array, Array], Array]:
    """Logits move by alternating amounts: another prevalence of the classes."""

    def true(z: Array, _p: Array) -> Array:
        steps = size * np.cos(np.arange(z.shape[1]) * 2.4)
        moved: Array = softmax(z + steps, axis=1)
        return moved

    return true


WORLDS = (
    World("calibrated, logits N(0, 2)", 2, _two(_logits(2.0), lambda p: p), calibrated=True),
    World("calibrated, rare", 2, _two(_logits(1.0, -4.0), lambda p: p), calibrated=True),
    World("calibrated", 3, _many(3, 1.6, lambda _z, P: P), calibrated=True),
    World("calibrated, sharp", 10, _many(10, 3.0, lambda _z, P: P), calibrated=True),
    World("calibrated", 100, _many(100, 2.0, lambda _z, P: P), calibrated=True),
    World("temperature .6", 2, _two(_logits(1.5), lambda p: expit(_odds(p) / 0.6)), chosen=True),
    World("temperature 1.3", 2, _two(_logits(2.5), lambda p: expit(_odds(p) / 1.3)), chosen=True),
    World("wave of 11 periods", 2, _two(_uniform, lambda p: p + 0.12 * np.sin(22 * np.pi * p)), chosen=True),
    World("2 points too high", 2, _two(_logits(1.5), lambda p: p - 0.02), chosen=True),
    World("30 points off in 6 %", 2, _two(_uniform, lambda p: p - 0.3 * ((p > 0.85) & (p < 0.91))), chosen=True),
    World("rare, odds 1.5", 2, _two(_logits(1.0, -4.0), lambda p: expit(_odds(p) + 0.4)), chosen=True),
    World("temperature 1.15", 2, _two(_logits(2.0), lambda p: expit(_odds(p) / 1.15))),
    World("wave of 3 periods", 2, _two(_uniform, lambda p: p + 0.07 * np.sin(6 * np.pi * p))),
    World("too high where large", 2, _two(_uniform, lambda p: p - 0.12 * np.maximum(p - 0.5, 0))),
    World("bend", 2, _two(_uniform, lambda p: p + 0.12 * p * (1 - p))),
    World("a plateau at .3", 2, _two(_logits(1.2), lambda p: np.where(abs(p - 0.3) < 0.05, 0.42, p))),
    World("sharp, slope .8", 2, _two(_logits(5.0), lambda p: expit(0.8 * _odds(p)))),
    World("temperature 1.2", 10, _many(10, 1.6, lambda z, _p: softmax(z / 1.2, axis=1)), chosen=True),
    World("temperature .85", 10, _many(10, 1.6, lambda z, _p: softmax(z / 0.85, axis=1)), chosen=True),
    World("one class × .55", 10, _one_class(10, 1.6, 0.55), chosen=True),
    World("prior shift", 10, _many(10, 1.6, _shifted(0.3)), chosen=True),
    World("Table 1, smeared", 3, _table1, chosen=True),
    World("confidence 6 points too high", 10, _overconfident(10, 1.6, 0.06), chosen=True),
    World("one class × .7", 3, _one_class(3, 1.3, 0.7)),
    World("temperature 1.3", 3, _many(3, 1.8, lambda z, _p: softmax(z / 1.3, axis=1))),
    World("prior shift", 3, _many(3, 1.3, _shifted(0.2)), chosen=True),
    World("two classes swapped", 3, _swapped(3, 1.3, 0.5), chosen=True),
    World("temperature .6, flat", 10, _many(10, 0.7, lambda z, _p: softmax(z / 0.6, axis=1))),
    World("confidence 10 points too high", 10, _overconfident(10, 3.0, 0.1)),
    World("slopes .75 and 1.3", 10, _many(10, 1.4, lambda z, _p: softmax(z * np.resize([0.75, 1.3], 10), axis=1))),
    World("temperature 1.15", 100, _many(100, 2.0, lambda z, _p: softmax(z / 1.15, axis=1))),
    World("prior shift", 100, _many(100, 2.0, _shifted(0.6))),
)
