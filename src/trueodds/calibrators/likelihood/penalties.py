"""How strongly is a matrix pulled towards the one that changes nothing? ODIR, a ridge, and a scale for both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError

Array = NDArray[Any]

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


def check_penalty(name: str, value: Any, words: tuple[str, ...] = ()) -> None:
    """Refuse a penalty that is none."""
    if isinstance(value, str) and value in words:
        return
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        said = "".join(f"{word!r} or " for word in words)
        raise InputError("TO203", f"{name} must be {said}a number of at least 0.", repr(value), "Leave it out.")


def check_choice(name: str, value: Any, words: tuple[str, ...]) -> None:
    """Refuse a word that is not among the known ones."""
    if value not in words:
        raise InputError("TO203", f"{name} is {' or '.join(map(repr, words))}.", repr(value), "Leave it out.")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError("TO203", f"{name} must be True or False.", repr(value), "Leave it out.")
