"""What is the log of a zero? The floor of fits that take logs, what it touched, and the way back from logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from trueodds.core.errors import Note
from trueodds.core.settings import Range

Array = NDArray[Any]

FLOOR = 1e-12  # what fits take for a smaller probability, if nothing else is said
OF_LOGITS = 1e-300  # the same where the logits are known: their softmax is right down to there
Floor = Annotated[float, Range(0, 0.5, closed="neither")]
_VALUES = 2**16  # compared at a time


def floored(P: Array, floor: float) -> Array:
    """log(max(p, floor)) less that of the row's sum, (n, K): the logs of a row that sums to 1.

    >>> floored(np.array([[1.0, 0.0]]), 1e-12).round(2).tolist()
    [[0.0, -27.63]]
    """
    logs = np.log(np.maximum(P, floor, dtype=np.float64))
    logs -= np.log(P.sum(axis=1, keepdims=True, dtype=np.float64))
    return logs


def log_odds(x: Array, floor: float) -> Array:
    """log(p / (1 − p)) of single probabilities (n,), with both sides floored; exact near 0 and 1.

    >>> log_odds(np.array([0.5, 1.0]), 1e-12).round(2).tolist()
    [0.0, 27.63]
    """
    x = np.minimum(x, 1.0, dtype=np.float64)
    return np.log(np.maximum(x, floor)) - np.log(np.maximum(1 - x, floor))


def sides(eta: Array) -> Array:
    """The probabilities (n, 2) of two classes from the log odds of the second, each with all its digits."""
    return np.stack([expit(-eta), expit(eta)], axis=1)


def softmax(eta: Array) -> Array:
    """Rows proportional to exp(η), (n, K); −inf is an exact zero, and +inf takes the whole row."""
    top = eta.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        q = np.exp(eta - top)
    if np.isposinf(top).any():
        q = np.where(np.isposinf(top), np.isposinf(eta), q)
    q /= q.sum(axis=1, keepdims=True)
    return q


@dataclass(frozen=True, slots=True)
class Floored:
    """Which probabilities the floor of a fit moved, in a form that adds."""

    floor: float
    size: int = 0  # probabilities in all
    moved: int = 0
    came: int = 0  # of those
    impossible: int = 0  # rows whose outcome had probability 0

    @classmethod
    def of(cls, P: Array, Y: Array, floor: float) -> Floored:
        """Of probabilities (n, K) and outcomes: shares (n, K) or labels (n,)."""
        rows = max(1, _VALUES // P.shape[1])
        least = _at_least(floor, P.dtype)
        moved, came, impossible = 0, 0, 0
        for part in (slice(start, start + rows) for start in range(0, len(P), rows)):
            low = P[part] < least
            if (count := int(np.count_nonzero(low))) > 0:
                moved += count
                y = Y[part]
                hit = low[np.arange(len(y)), y][:, None] if y.ndim == 1 else low & (y > 0)
                if hit.any():
                    came += int(np.count_nonzero(hit))
                    zero = P[part][np.arange(len(y)), y][:, None] == 0 if y.ndim == 1 else P[part] == 0
                    impossible += int((hit & zero).any(axis=1).sum())
        return cls(floor, P.size, moved, came, impossible)

    def __add__(self, other: Floored) -> Floored:
        return Floored(
            self.floor,
            self.size + other.size,
            self.moved + other.moved,
            self.came + other.came,
            self.impossible + other.impossible,
        )

    def notes(self) -> list[Note]:
        """How many were moved, and how many of those came."""
        if not self.moved:
            return []
        text = f"The fit's floor {self.floor:g} touched {self.moved:,} of {self.size:,} probabilities, {self.came:,} of which came"
        more = ": those weigh heavily, and by how much the floor decides." * (self.came > 0) or "."
        return [Note("TN502", text + more)]


def touched(P: Array, Y: Array, floor: float) -> list[Note]:
    """How many probabilities the floor of the fit moved, and how many of those came; Y shares (n, K) or labels (n,)."""
    return Floored.of(P, Y, floor).notes()


def _at_least(floor: float, dtype: np.dtype[Any]) -> Any:
    """The smallest number of the type that is not below the floor: comparing within a type takes half the time."""
    least = dtype.type(floor)
    return least if float(least) >= floor else np.nextafter(least, dtype.type(1))
