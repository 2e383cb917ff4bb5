"""Check a batch of logits, labels and weights, and convert it to log-probabilities for the calibration losses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from trueodds.core.errors import InputError, describe
from trueodds.data.arrays import as_array, tensor_to_array
from trueodds.data.probabilities import check_logits
from trueodds.data.weights import check_weights


class LabeledBatch(NamedTuple):
    """A batch with valid values, as the losses need it; floating-point numbers are float32 or float64."""

    log_p: torch.Tensor  # (n, K) log-probabilities, −inf for an exact zero
    predicted: torch.Tensor  # (n,) int64 predicted class; the first one of ties
    target: torch.Tensor  # (n,) int64 class numbers
    share: torch.Tensor  # (n,) weights divided by their sum

    def top_label(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the confidence of each row (n,), and whether the predicted class is correct (n,), 1 or 0."""
        confidence = self.log_p.gather(1, self.predicted[:, None])[:, 0].exp()
        return confidence, (self.predicted == self.target).to(confidence.dtype)


def read_batch(logits: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> LabeledBatch:
    """Check a batch and convert it; 16-bit logits become float32.

    Raises InputError TO101 for other objects or shapes, TO103 for logits without probabilities, TO105 for labels that
    are no class numbers, TO107 for different lengths, TO108 without rows, and TO110 for invalid weights.
    """
    for name, value in (("logits", logits), ("target", target), ("weight", weight)):
        if not isinstance(value, torch.Tensor) and not (name == "weight" and value is None):
            raise InputError("TO101", f"{name} must be a tensor.", describe(value), "Convert it with torch.as_tensor.")
    if logits.ndim not in (1, 2) or (logits.ndim == 2 and logits.shape[1] < 2) or not logits.is_floating_point():
        raise InputError(
            "TO101",
            "logits must be floating-point numbers (n, K) of K ≥ 2 classes, or (n,) log odds of the second of two.",
            f"{logits.dtype} of shape {tuple(logits.shape)}".removeprefix("torch."),
            "Pass logits[:, 0] for one column, logits.movedim(1, -1).flatten(0, -2) for images.",
        )
    n, k = len(logits), 2 if logits.ndim == 1 else logits.shape[1]
    for name, value, fix in (
        ("target", target, "Pass class numbers: target.argmax(dim=1) if it is one-hot."),
        ("weight", weight, "Pass one weight per row."),
    ):
        if value is not None and value.shape != (n,):
            got = f"shape {tuple(value.shape)} for {n:,} rows"
            raise InputError("TO107", f"{name} must have one value per row.", got, fix)
    if not bool(_are_values_valid(logits.detach(), target, weight, k)):
        _raise_value_error(logits.detach(), target, weight, k)
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    z = torch.stack([torch.zeros_like(z), z], dim=1) if z.ndim == 1 else z
    return LabeledBatch(torch.log_softmax(z, dim=1), z.argmax(dim=1), target.to(torch.int64), _to_shares(weight, z))


def _are_values_valid(z: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, k: int) -> torch.Tensor:
    """Return whether logits z, labels and weights have valid values, as a tensor with one element.

    Because the result of all checks is one tensor, it is transferred from the device once.
    """
    is_valid = (z < torch.inf).all() & (len(z) > 0)
    finite = torch.isfinite(z)
    is_valid = is_valid & (finite.all() if z.ndim == 1 else finite.any(dim=1).all())
    is_valid = is_valid & ((target >= 0) & (target < k)).all()
    if target.is_floating_point():
        is_valid = is_valid & (target == target.round()).all()
    if weight is not None:
        is_valid = is_valid & ((weight >= 0) & (weight < torch.inf)).all() & (weight > 0).any()
    return is_valid


def _raise_value_error(z: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, k: int) -> None:
    """Raise the error of the first argument whose values are invalid: logits z, labels or weights."""
    check_logits(as_array(tensor_to_array(z), "logits"))
    labels = tensor_to_array(target)
    is_wrong = ~((labels >= 0) & (labels < k) & (labels == np.rint(labels)))
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise InputError(
            "TO105",
            f"Labels must be class numbers in 0..{k - 1}.",
            f"{labels[row]} in row {row} ({int(is_wrong.sum()):,} such rows)",
            "If they start at 1, subtract 1; remove rows without a label.",
        )
    check_weights(None if weight is None else tensor_to_array(weight.detach()), len(z))


def _to_shares(weight: torch.Tensor | None, z: torch.Tensor) -> torch.Tensor:
    """Return the weights divided by their sum (n,), in the dtype of the logits z; equal shares without weights."""
    if weight is None:
        return torch.full_like(z[:, 0], 1 / len(z)).detach()
    w = weight.to(torch.promote_types(weight.dtype, z.dtype))
    w = w / w.max()  # so that the sum does not overflow
    return (w / w.sum()).to(z.dtype)
