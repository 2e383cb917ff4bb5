"""Calls of PyCalib: ECE of the predicted class, through lists of triples, and of each class, from one-hot labels.

Not on every index of packages; where it lies in a folder, PYTHONPATH names the folder.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pycalib.metrics import classwise_ECE, conf_ECE

from benchmarks.data import Arrays

DISTRIBUTION = ""


def top_label(arrays: Arrays) -> Callable[[], float]:
    """15 right-closed bins."""
    return lambda: conf_ECE(arrays["y"], arrays["P"], bins=15)


def class_wise(arrays: Arrays) -> Callable[[], float]:
    """The mean over classes, 15 left-closed bins."""
    P, y = arrays["P"], arrays["y"]
    onehot = np.zeros(P.shape, dtype=np.int8)
    onehot[np.arange(len(y)), y] = 1
    return lambda: classwise_ECE(onehot, P, bins=15)


ANSWERS = {"top-label": top_label, "class-wise": class_wise}
