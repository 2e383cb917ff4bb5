"""Calls of torch-uncertainty: metrics on tensors, updated once and then computed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_uncertainty.metrics.classification import (
    AdaptiveCalibrationError,
    CalibrationError,
    ClasswiseCalibrationError,
    SmoothCalibrationError,
)

from benchmarks.data import Arrays

DISTRIBUTION = "torch-uncertainty"
TOO_SLOW = {"class-wise-1000": "one call took 75 s and 1.8 GB"}


def metric(make: Callable[[int], torch.nn.Module]) -> Callable[[Arrays], Callable[[], float]]:
    """A new metric object for every call, because it accumulates data."""

    def answer(arrays: Arrays) -> Callable[[], float]:
        P, y = torch.from_numpy(arrays["P"]), torch.from_numpy(arrays["y"])

        def ask() -> float:
            one = make(P.shape[1])
            one.update(P, y)
            return one.compute().item()

        return ask

    return answer


ANSWERS = {
    "top-label": metric(lambda k: CalibrationError("multiclass", num_bins=15, num_classes=k, validate_args=False)),
    "class-wise": metric(lambda k: ClasswiseCalibrationError(k, num_bins=15)),
    "equal-mass": metric(
        lambda k: AdaptiveCalibrationError("multiclass", num_bins=15, num_classes=k, validate_args=False)
    ),
    # `reflected` is the kernel of the paper and of relplot; its own default smooths logits, another quantity.
    "smooth": metric(lambda _: SmoothCalibrationError(kernel_type="reflected")),
}
