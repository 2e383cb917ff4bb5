"""Models with one known miscalibration each, on which the power of tests is measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

Simulator = Callable[[np.random.Generator, int], tuple[Array, Array]]
"""From a random generator and n to predicted and true class probabilities, (n, K) each."""


@dataclass(frozen=True)
class MiscalibratedWorld:
    """Predictions with one known miscalibration, or calibrated ones."""

    name: str
    k: int
    simulate: Simulator
    chosen: bool = False  # whether the weights of the omnibus test were chosen with such a design
    calibrated: bool = False

    @property
    def title(self) -> str:
        """The name in the tables, with a zero before each decimal point; random streams depend on `name` itself."""
        return re.sub(r"(?<!\d)\.(?=\d)", "0.", self.name)

    def rows(self, rng: np.random.Generator, n: int) -> Predictions:
        """n independent rows; of two classes, the predictions are the probabilities of the second."""
        P, Q = self.simulate(rng, n)
        y = (np.cumsum(Q, axis=1)[:, :-1] <= rng.random(n)[:, None]).sum(axis=1)
        return Predictions(y, P if self.k > 2 else P[:, 1])


def _binary_world(
    draw_p: Callable[[np.random.Generator, int], Array], calibration_function: Callable[[Array], Array]
) -> Simulator:
    """Two classes, from the distribution of the predicted probability of the second and its calibration function."""

    def simulate(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        p = draw_p(rng, n)
        q = np.clip(calibration_function(p), 0.0, 1.0)
        return np.stack([1 - p, p], axis=1), np.stack([1 - q, q], axis=1)

    return simulate


def _logit_normal(scale: float, mean: float = 0.0) -> Callable[[np.random.Generator, int], Array]:
    """The distribution of p with logit p ~ N(mean, scale²)."""
    return lambda rng, n: expit(rng.normal(mean, scale, n))


def _logit(p: Array) -> Array:
    return np.log(p) - np.log1p(-p)


def _uniform(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(0.001, 0.999, n)


def _multiclass_world(k: int, scale: float, true_probs: Callable[[Array, Array], Array]) -> Simulator:
    """K classes with logits N(0, scale²); `true_probs` gives the true probabilities from logits z and predictions P.

    Both have shape (n, K), and the true probabilities may be unnormalized.
    """

    def simulate(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        z = rng.normal(0, scale, (n, k))
        P = softmax(z, axis=1)
        Q = np.clip(true_probs(z, P), 0.0, None)
        return P, Q / Q.sum(axis=1, keepdims=True)

    return simulate


def _scale_one_class(k: int, scale: float, factor: float) -> Simulator:
    """The true probability of the second class is `factor` times the predicted one, before normalization."""

    def true_probs(_z: Array, P: Array) -> Array:
        Q = P.copy()
        Q[:, 1] *= factor
        return Q

    return _multiclass_world(k, scale, true_probs)


def _swap_two_classes(k: int, scale: float, share: float) -> Simulator:
    """Move probability between two classes, in a direction that depends on the third.

    Each class by itself stays nearly calibrated.
    """

    def true_probs(_z: Array, P: Array) -> Array:
        Q = P.copy()
        moved = share * np.minimum(P[:, 0], P[:, 1]) * np.sign(P[:, 2] - np.median(P[:, 2]))
        Q[:, 0] += moved
        Q[:, 1] -= moved
        return Q

    return _multiclass_world(k, scale, true_probs)


def _smeared_table_1(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Table 1 of Vaicenavicius et al. (2019) with noise: only the vectors are miscalibrated, not single classes."""
    vectors = np.array([[1, 3, 6], [1, 6, 3], [3, 1, 6], [3, 6, 1], [6, 1, 3], [6, 3, 1]]) / 10
    true = np.array([[2, 2, 6], [0, 7, 3], [2, 2, 6], [4, 5, 1], [7, 0, 3], [5, 4, 1]]) / 10
    vector_index, noise = rng.integers(0, 6, n), 0.25 * (rng.dirichlet(np.full(3, 60.0), n) - 1 / 3)
    P, Q = np.clip(vectors[vector_index] + noise, 1e-3, 1), np.clip(true[vector_index] + noise, 0, 1)
    return P / P.sum(axis=1, keepdims=True), Q / Q.sum(axis=1, keepdims=True)


def _overconfident(k: int, scale: float, points: float) -> Simulator:
    """The largest probability is too high by `points`; the other classes are scaled so that the sum is 1."""

    def true_probs(_z: Array, P: Array) -> Array:
        top, rows = P.argmax(axis=1), np.arange(len(P))
        true_confidence = np.maximum(P[rows, top] - points, 0.0)
        Q = P * ((1 - true_confidence) / np.maximum(1 - P[rows, top], 1e-12))[:, None]
        Q[rows, top] = true_confidence
        return Q

    return _multiclass_world(k, scale, true_probs)


def _shift_logits(size: float) -> Callable[[Array, Array], Array]:
    """Shift the logit of each class by a constant of size up to `size`, as another prevalence of the classes does."""

    def true_probs(z: Array, _p: Array) -> Array:
        steps = size * np.cos(np.arange(z.shape[1]) * 2.4)
        moved: Array = softmax(z + steps, axis=1)
        return moved

    return true_probs


POWER_WORLDS = (
    MiscalibratedWorld(
        "calibrated, logits N(0, 2)", 2, _binary_world(_logit_normal(2.0), lambda p: p), calibrated=True
    ),
    MiscalibratedWorld("calibrated, rare", 2, _binary_world(_logit_normal(1.0, -4.0), lambda p: p), calibrated=True),
    MiscalibratedWorld("calibrated", 3, _multiclass_world(3, 1.6, lambda _z, P: P), calibrated=True),
    MiscalibratedWorld("calibrated, sharp", 10, _multiclass_world(10, 3.0, lambda _z, P: P), calibrated=True),
    MiscalibratedWorld("calibrated", 100, _multiclass_world(100, 2.0, lambda _z, P: P), calibrated=True),
    MiscalibratedWorld(
        "temperature .6", 2, _binary_world(_logit_normal(1.5), lambda p: expit(_logit(p) / 0.6)), chosen=True
    ),
    MiscalibratedWorld(
        "temperature 1.3", 2, _binary_world(_logit_normal(2.5), lambda p: expit(_logit(p) / 1.3)), chosen=True
    ),
    MiscalibratedWorld(
        "wave of 11 periods", 2, _binary_world(_uniform, lambda p: p + 0.12 * np.sin(22 * np.pi * p)), chosen=True
    ),
    MiscalibratedWorld("2 points too high", 2, _binary_world(_logit_normal(1.5), lambda p: p - 0.02), chosen=True),
    MiscalibratedWorld(
        "30 points off in 6 %", 2, _binary_world(_uniform, lambda p: p - 0.3 * ((p > 0.85) & (p < 0.91))), chosen=True
    ),
    MiscalibratedWorld(
        "rare, odds 1.5", 2, _binary_world(_logit_normal(1.0, -4.0), lambda p: expit(_logit(p) + 0.4)), chosen=True
    ),
    MiscalibratedWorld("temperature 1.15", 2, _binary_world(_logit_normal(2.0), lambda p: expit(_logit(p) / 1.15))),
    MiscalibratedWorld("wave of 3 periods", 2, _binary_world(_uniform, lambda p: p + 0.07 * np.sin(6 * np.pi * p))),
    MiscalibratedWorld("too high where large", 2, _binary_world(_uniform, lambda p: p - 0.12 * np.maximum(p - 0.5, 0))),
    MiscalibratedWorld("bend", 2, _binary_world(_uniform, lambda p: p + 0.12 * p * (1 - p))),
    MiscalibratedWorld(
        "a plateau at .3", 2, _binary_world(_logit_normal(1.2), lambda p: np.where(abs(p - 0.3) < 0.05, 0.42, p))
    ),
    MiscalibratedWorld("sharp, slope .8", 2, _binary_world(_logit_normal(5.0), lambda p: expit(0.8 * _logit(p)))),
    MiscalibratedWorld(
        "temperature 1.2", 10, _multiclass_world(10, 1.6, lambda z, _p: softmax(z / 1.2, axis=1)), chosen=True
    ),
    MiscalibratedWorld(
        "temperature .85", 10, _multiclass_world(10, 1.6, lambda z, _p: softmax(z / 0.85, axis=1)), chosen=True
    ),
    MiscalibratedWorld("one class × .55", 10, _scale_one_class(10, 1.6, 0.55), chosen=True),
    MiscalibratedWorld("prior shift", 10, _multiclass_world(10, 1.6, _shift_logits(0.3)), chosen=True),
    MiscalibratedWorld("Table 1, smeared", 3, _smeared_table_1, chosen=True),
    MiscalibratedWorld("confidence 6 points too high", 10, _overconfident(10, 1.6, 0.06), chosen=True),
    MiscalibratedWorld("one class × .7", 3, _scale_one_class(3, 1.3, 0.7)),
    MiscalibratedWorld("temperature 1.3", 3, _multiclass_world(3, 1.8, lambda z, _p: softmax(z / 1.3, axis=1))),
    MiscalibratedWorld("prior shift", 3, _multiclass_world(3, 1.3, _shift_logits(0.2)), chosen=True),
    MiscalibratedWorld("two classes swapped", 3, _swap_two_classes(3, 1.3, 0.5), chosen=True),
    MiscalibratedWorld("temperature .6, flat", 10, _multiclass_world(10, 0.7, lambda z, _p: softmax(z / 0.6, axis=1))),
    MiscalibratedWorld("confidence 10 points too high", 10, _overconfident(10, 3.0, 0.1)),
    MiscalibratedWorld(
        "slopes .75 and 1.3",
        10,
        _multiclass_world(10, 1.4, lambda z, _p: softmax(z * np.resize([0.75, 1.3], 10), axis=1)),
    ),
    MiscalibratedWorld("temperature 1.15", 100, _multiclass_world(100, 2.0, lambda z, _p: softmax(z / 1.15, axis=1))),
    MiscalibratedWorld("prior shift", 100, _multiclass_world(100, 2.0, _shift_logits(0.6))),
)
"""The designs of the study `power`, calibrated ones first."""
