"""Calls of PyCalib: ECE of the predicted class and of each class, in 15 bins.

PyCalib is not on every package index; where it is not installed, PYTHONPATH may contain its folder.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pycalib.metrics import classwise_ECE, conf_ECE

from benchmarks.peers.job_data import Arrays

DISTRIBUTION = ""


def prepare_top_label_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the ECE of the predicted class, in right-closed bins."""
    return lambda: conf_ECE(arrays["y"], arrays["P"], bins=15)


def prepare_class_wise_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the mean ECE over classes from one-hot labels, in left-closed bins."""
    P, y = arrays["P"], arrays["y"]
    one_hot = np.zeros(P.shape, dtype=np.int8)
    one_hot[np.arange(len(y)), y] = 1
    return lambda: classwise_ECE(one_hot, P, bins=15)


CALLS_BY_TASK = {"top-label": prepare_top_label_ece, "class-wise": prepare_class_wise_ece}
