"""Calls of torchmetrics: the functional interface on tensors, with its optional checks disabled for speed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torchmetrics.functional.classification import multiclass_calibration_error

from benchmarks.data import Arrays

DISTRIBUTION = "torchmetrics"


def top_label(arrays: Arrays) -> Callable[[], float]:
    """15 left-closed bins, sums in float32."""
    P, y = torch.from_numpy(arrays["P"]), torch.from_numpy(arrays["y"])
    k = P.shape[1]
    return lambda: multiclass_calibration_error(P, y, num_classes=k, n_bins=15, norm="l1", validate_args=False).item()


ANSWERS = {"top-label": top_label}
