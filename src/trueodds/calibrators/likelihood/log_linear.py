"""What is linear in the logs? The map softmax(W log p + b), of which many calibrators are a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from trueodds.calibrators import wire
from trueodds.calibrators.base import CalibrationMap, Term
from trueodds.calibrators.likelihood.logs import Probabilities, floored, normalized, softmax
from trueodds.core.errors import InputError
from trueodds.core.typing import Array

M = TypeVar("M", bound="LogLinearMap")

LARGEST = 1e15  # of a saved weight or bias: beyond what any fit reaches, and no product overflows


@dataclass(frozen=True, eq=False)
class LogLinearMap(CalibrationMap):
    """Rows softmax(W log p + b), or of logits in place of log p.

    With one weight per class an exact zero stays zero; weight 0 makes it p⁰ = 1, and a negative one takes the row. A
    full W mixes the logs of all classes, so there they are floored as in the fit.
    """

    takes_logs: ClassVar[bool] = True
    weights: Array  # (K,) the diagonal of W, or (K, K)
    bias: Array  # (K,) summing to 0 where no penalty says otherwise
    min_prob: float
    n_passes: int = 0
    converged: bool = True
    logits: bool = False

    def apply(self, P: Probabilities) -> Array:
        """The softmax of the weighted logs."""
        if self.weights.ndim == 2:
            return softmax(
                (levels(P, self.min_prob) if self.logits else floored(P, self.min_prob)) @ self.weights.T + self.bias
            )
        x: Any = P if self.logits else normalized(P)
        with np.errstate(divide="ignore", invalid="ignore"):
            return softmax(np.where(self.weights == 0, 0.0, self.weights * x) + self.bias)

    def terms(self, k: int) -> tuple[Term, ...]:
        """W and b."""
        if self.weights.ndim == 2:
            return (Term(1.0, self.weights, self.bias, self.min_prob),)
        return (Term(1.0, np.diag(self.weights), self.bias),)

    def describe(self) -> str:
        """The ranges of weights and biases."""
        if self.weights.ndim == 1:
            return f"slopes {_range(self.weights)}, biases {_range(self.bias)}"
        offdiagonal = self.weights[~np.eye(len(self.bias), dtype=bool)]
        return (
            f"diagonal {_range(self.weights.diagonal())}, beside it {_range(offdiagonal)}, biases {_range(self.bias)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """W, b and the floor, and how the fit went."""
        return {
            "weights": self.weights.tolist(),
            "bias": self.bias.tolist(),
            "min_prob": self.min_prob,
            "logits": self.logits,
            "n_passes": self.n_passes,
            "converged": self.converged,
        }

    @classmethod
    def from_dict(cls: type[M], parameters: Mapping[str, Any], k: int) -> M:
        """K weights or K rows of them, K biases."""
        wire.keys(parameters, ("weights", "bias", "min_prob", "logits", "n_passes", "converged"), "parameters")
        return cls(
            weights_of(parameters, k),
            wire.vector(parameters, "bias", -LARGEST, LARGEST, size=k),
            wire.number(parameters, "min_prob", np.nextafter(0, 1), 0.5),
            wire.count(parameters, "n_passes"),
            flag(parameters, "converged"),
            flag(parameters, "logits"),
        )


def levels(z: Any, min_prob: float) -> Array:
    """Logits (n, K) in which that of an exact zero, −∞, is what the row's floor would have."""
    lost = np.isneginf(z)
    if not lost.any():
        return z
    top = z.max(axis=1, keepdims=True)
    total = top + np.log(np.exp(z - top).sum(axis=1, keepdims=True))
    return np.where(lost, total + np.log(min_prob), z)


def weights_of(parameters: Mapping[str, Any], k: int) -> Array:
    """One saved weight per class, or a row of K for each."""
    values = parameters["weights"]
    if isinstance(values, list) and len(values) == k and all(isinstance(row, list) for row in values):
        return np.stack([wire.vector({"weights": row}, "weights", -LARGEST, LARGEST, size=k) for row in values])
    return wire.vector(parameters, "weights", -LARGEST, LARGEST, size=k)


def flag(mapping: Mapping[str, Any], key: str) -> bool:
    """A saved yes or no."""
    if not isinstance(mapping[key], bool):
        raise InputError(
            "TO505",
            f"In a saved calibrator {key} must be true or false.",
            repr(mapping[key])[:40],
            "Fit it again and save it with .save(path).",
        )
    return bool(mapping[key])


def _range(x: Array) -> str:
    low, high = f"{x.min():.3g}", f"{x.max():.3g}"
    return low if low == high else f"{low} to {high}"
