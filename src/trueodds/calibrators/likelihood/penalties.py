"""How strongly is a matrix pulled towards the one that changes nothing? ODIR, a ridge, and a scale for both."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array

SHARE = 0.5  # nats: parameters with a standard deviation of 1 about those of the identity


def odir(k: int, penalty: float, bias_penalty: float) -> Array:
    """λ/(K(K−1)) of each weight beside the diagonal and μ/K of each bias, per row, (K, K + 1)."""
    return laid(penalty / (k * (k - 1)), 0.0, bias_penalty / k, k)


def ridge(k: int, penalty: float, bias_penalty: float) -> Array:
    """λ of each weight and μ of each bias, per row, (K, K + 1)."""
    return laid(penalty, penalty, bias_penalty, k)


def scaled(k: int, mass: float, factor: float = 1.0, diagonal: float = SHARE) -> Array:
    """What falls with the weight of all rows: K(K−1) nats beside the diagonal, K of each bias, both times a factor."""
    return laid(factor * k * (k - 1), diagonal, factor * k, k) / mass


def laid(beside: float, diagonal: float, bias: float, k: int) -> Array:
    """One strength for the weights beside the diagonal, one for those on it, one for the biases, (K, K + 1)."""
    return np.concatenate([np.where(np.eye(k, dtype=bool), diagonal, beside), np.full((k, 1), bias)], axis=1)
