"""Calls of MAPIE: ECE from hits and scores, or for each class; it counts edges, so 16 edges are 15 bins.

Its quantile bins put the lowest score into one of its own, a row that changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mapie.metrics.calibration import expected_calibration_error

from benchmarks.data import Arrays

DISTRIBUTION = "mapie"


def one(arrays: Arrays, strategy: str) -> Callable[[], float]:
    """The user computes whether each prediction is correct."""
    P, y = arrays["P"], arrays["y"]
    return lambda: expected_calibration_error(P.argmax(axis=1) == y, P, num_bins=16, split_strategy=strategy)


def class_wise(arrays: Arrays) -> Callable[[], float]:
    """The mean over classes."""
    P, y = arrays["P"], arrays["y"]
    return lambda: expected_calibration_error(
        y, P, num_bins=16, split_strategy="uniform", classwise=True, class_labels=y
    )


ANSWERS = {
    "top-label": partial(one, strategy="uniform"),
    "equal-mass": partial(one, strategy="quantile"),
    "class-wise": class_wise,
}
