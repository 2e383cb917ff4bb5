"""Distances between predicted probabilities and observed frequencies: total variation, lp norms, Kullback-Leibler."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import Order, call_user_function, check
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array


@dataclass(frozen=True)
class Distance:
    """A distance between predicted probabilities and observed frequencies."""

    name: str
    vector_distance: Callable[[Array, Array], Array]  # of probability vectors (…, m) along their last axis: (…)
    # The same distance between (1 − p, p) and (1 − y, y), from p (…) and y (…), without the rounding of 1 − p.
    score_distance: Callable[[Array, Array], Array]
    is_norm: bool = True  # whether it is a norm of the difference, which the intervals of calibration errors need

    def __str__(self) -> str:
        return self.name


def _kl_divergence(predicted: Array, observed: Array) -> Array:
    """KL(observed ‖ predicted) in nats; +inf if an outcome of predicted probability 0 was observed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # 1 − p counts as 0 if rounding left p above 1.
        terms = np.where(observed > 0, observed * (np.log(observed) - np.log(np.maximum(predicted, 0))), 0.0)
    total: Array = terms.sum(axis=-1)
    return total


def power_mean(weights: Array, sizes: Array, power: float) -> Array:
    """(Σ w x^q)^(1/q) of sizes x ≥ 0 along the last axis, without underflow for large powers.

    >>> float(power_mean(np.array([0.5, 0.5]), np.array([1e-3, 1e-3]), 1000.0))
    0.001
    """
    if power <= 2:
        return np.asarray((weights * sizes**power).sum(axis=-1) ** (1 / power))
    largest_size = sizes.max(axis=-1, keepdims=True)
    relative = np.divide(
        sizes,
        largest_size,
        out=(sizes == largest_size).astype(np.float64),
        where=(largest_size > 0) & np.isfinite(largest_size),
    )
    return np.asarray(largest_size[..., 0] * (weights * relative**power).sum(axis=-1) ** (1 / power))


def _two_outcomes(x: Array) -> Array:
    return np.stack([1 - x, x], axis=-1)


def lp(power: float) -> Distance:
    """The p-norm of the difference with p = `power`; `max` if it is infinite.

    >>> float(lp(2).vector_distance(np.array([0.0, 1.0]), np.array([0.6, 0.2])))
    1.0
    """
    power = check("the power of lp", power, Order)
    if np.isinf(power):
        return MAX
    return Distance(
        f"lp:{power:g}",
        lambda predicted, observed: power_mean(np.ones(1), np.abs(predicted - observed), power),
        lambda p, y: 2 ** (1 / power) * np.abs(p - y),
    )


TV = Distance("tv", lambda a, b: np.abs(a - b).sum(axis=-1) / 2, lambda p, y: np.abs(p - y))
L1 = Distance("l1", lambda a, b: np.abs(a - b).sum(axis=-1), lambda p, y: 2 * np.abs(p - y))
L2 = Distance("l2", lambda a, b: np.sqrt(((a - b) ** 2).sum(axis=-1)), lambda p, y: np.sqrt(2.0) * np.abs(p - y))
SQ_EUCLIDEAN = Distance(
    "sq-euclidean", lambda a, b: ((a - b) ** 2).sum(axis=-1), lambda p, y: 2 * (p - y) ** 2, is_norm=False
)
MAX = Distance("max", lambda a, b: np.abs(a - b).max(axis=-1), lambda p, y: np.abs(p - y))
KL = Distance("kl", _kl_divergence, lambda p, y: _kl_divergence(_two_outcomes(p), _two_outcomes(y)), is_norm=False)

DISTANCES = {d.name: d for d in (TV, L1, L2, SQ_EUCLIDEAN, MAX, KL)}


def as_distance(distance: str | Distance | Callable[[Array, Array], float], order: float = 1.0) -> Distance:
    """Resolve a distance from its name or a callable `d(predicted, observed)` of two probability vectors.

    `lp:3` sets the power. `lp` alone takes it from `order`, the power to which a calibration error raises distances
    before it averages them, which undoes the root of the norm.

    >>> as_distance("tv").name, as_distance("lp", order=2).name, as_distance("lp:3").name
    ('tv', 'lp:2', 'lp:3')
    """
    if isinstance(distance, Distance):
        return distance
    if callable(distance):
        return _wrap_user_distance(distance)
    if isinstance(distance, str) and distance in DISTANCES:
        return DISTANCES[distance]
    if isinstance(distance, str) and distance == "lp":
        return lp(order)
    if isinstance(distance, str) and re.fullmatch(r"lp:(\d+\.?\d*|inf)", distance):
        return lp(float(distance[3:]))
    raise InputError(
        "TO203",
        "Unknown distance.",
        describe(distance),
        suggest_names(str(distance)[:80], [*DISTANCES, "lp", "lp:3"]),
    )


def _wrap_user_distance(d: Callable[[Array, Array], float]) -> Distance:
    """A Distance that calls the function `d` for each pair of vectors and checks what it returns."""
    name = getattr(d, "__name__", type(d).__name__)

    def distance_of_pair(predicted: Array, observed: Array) -> float:
        value = call_user_function("distance", d, predicted, observed)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(
                "TO203",
                "A distance must return one number for two vectors.",
                f"{describe(value)} from {name}",
                "It is called as d(predicted, observed).",
            ) from None

    def distance_of_vectors(predicted: Array, observed: Array) -> Array:
        predicted, observed = np.broadcast_arrays(predicted, observed)  # either may be the one that has the draws
        m = predicted.shape[-1]
        pairs = zip(predicted.reshape(-1, m), observed.reshape(-1, m), strict=True)
        return np.array([distance_of_pair(a, b) for a, b in pairs]).reshape(predicted.shape[:-1])

    return Distance(
        name, distance_of_vectors, lambda p, y: distance_of_vectors(_two_outcomes(p), _two_outcomes(y)), is_norm=False
    )
