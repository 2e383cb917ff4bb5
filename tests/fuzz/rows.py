"""Small random rows of every kind, with the plain arrays behind them for whoever calculates anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds import Predictions
from trueodds.core.typing import Array

SCALES = (1.0, 1.0, 1.0, 1e-20, 3e18, 1e25)


@dataclass(frozen=True)
class Rows:
    """Predictions, and what they were made of: P (n, K), labels y (n,) or votes Y (n, K), weights w (n,)."""

    preds: Predictions
    P: Array
    Y: Array  # (n, K) one-hot, or shares
    w: Array
    two: bool  # whether the probabilities came as one column


def probabilities(rng: np.random.Generator, n: int, k: int) -> Array:
    """Rows that sum to 1: decimals with ties, floats, or zeros and ones."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.multinomial(20, np.full(k, 1 / k), n) / 20
    if kind == 1:
        return np.eye(k)[rng.integers(k, size=n)]
    if kind == 2:
        return np.tile(rng.dirichlet(np.ones(k)), (n, 1))
    return rng.dirichlet(np.ones(k), n)


def weights(rng: np.random.Generator, n: int) -> Array | None:
    """None, counts, fractions or zeros, at any scale."""
    kind = rng.integers(5)
    if kind < 2:
        return None
    if kind == 2:
        return rng.integers(1, 4, n).astype(float)
    w = (rng.random(n) + 0.1) * SCALES[rng.integers(len(SCALES))]
    if rng.random() < 0.1:
        w *= 10.0 ** -rng.integers(26, size=n)  # as importance weights and kernels are
    if kind == 3:
        w[rng.random(n) < 0.3] = 0.0
        w[0] = w.max() or 1.0
    return w


def rows(rng: np.random.Generator) -> Rows:
    """One to a dozen rows of two to four classes, with labels or votes."""
    n, k = int(rng.choice([1, 2, 3, 5, 8, 12])), int(rng.choice([2, 2, 3, 4]))
    P, w = probabilities(rng, n, k), weights(rng, n)
    Y = np.eye(k)[np.array([rng.choice(k, p=p) for p in P]) if rng.random() < 0.7 else rng.integers(k, size=n)]
    two, extras = k == 2 and bool(rng.random() < 0.7), dict[str, Any]()
    if two:
        P[:, 0] = 1 - P[:, 1]
    if rng.random() < 0.1:
        extras["cluster"] = rng.integers(max(1, n // 2), size=n)
    if rng.random() < 0.3:
        extras["group"] = rng.choice(["a", "b"], n)
    counted = rng.random() < 0.1
    votes = rng.multinomial(5, np.full(k, 1 / k), n) if counted else Y
    labels = votes if counted else Y.argmax(axis=1)
    preds = Predictions(labels, P[:, 1] if two else P, weight=w, **extras)
    return Rows(preds, P, votes / votes.sum(axis=1, keepdims=True), np.ones(n) if w is None else w, two)
