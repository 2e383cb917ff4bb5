"""Calls of torch-uncertainty: its calibration metrics on tensors, updated once and then computed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_uncertainty.metrics.classification import (
    AdaptiveCalibrationError,
    CalibrationError,
    ClasswiseCalibrationError,
    SmoothCalibrationError,
)

from benchmarks.peers.job_data import Arrays

DISTRIBUTION = "torch-uncertainty"
TOO_SLOW = {"class-wise-1000": "one call took 75 s and 1.8 GB"}


def prepare_metric(make_metric: Callable[[int], torch.nn.Module]) -> Callable[[Arrays], Callable[[], float]]:
    """Return the function that prepares the call of a metric, which `make_metric` creates for a number of classes."""

    def prepare_call(arrays: Arrays) -> Callable[[], float]:
        P, y = torch.from_numpy(arrays["P"]), torch.from_numpy(arrays["y"])

        def compute_metric() -> float:
            metric = make_metric(P.shape[1])  # a new one for every call, because it accumulates data
            metric.update(P, y)
            return metric.compute().item()

        return compute_metric

    return prepare_call


CALLS_BY_TASK = {
    "top-label": prepare_metric(
        lambda k: CalibrationError("multiclass", num_bins=15, num_classes=k, validate_args=False)
    ),
    "class-wise": prepare_metric(lambda k: ClasswiseCalibrationError(k, num_bins=15)),
    "equal-mass": prepare_metric(
        lambda k: AdaptiveCalibrationError("multiclass", num_bins=15, num_classes=k, validate_args=False)
    ),
    # The kernel "reflected" is that of the paper and of relplot; the default smooths logits, which is another quantity.
    "smooth": prepare_metric(lambda _: SmoothCalibrationError(kernel_type="reflected")),
}
