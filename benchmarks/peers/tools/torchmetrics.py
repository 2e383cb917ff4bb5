"""Calls of torchmetrics: ECE of the predicted class by its functional interface, without its optional input checks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torchmetrics.functional.classification import multiclass_calibration_error

from benchmarks.peers.job_data import Arrays

DISTRIBUTION = "torchmetrics"


def prepare_top_label_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the ECE in 15 left-closed bins, with sums in float32."""
    P, y = torch.from_numpy(arrays["P"]), torch.from_numpy(arrays["y"])
    k = P.shape[1]
    return lambda: multiclass_calibration_error(P, y, num_classes=k, n_bins=15, norm="l1", validate_args=False).item()


CALLS_BY_TASK = {"top-label": prepare_top_label_ece}
