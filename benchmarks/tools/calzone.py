"""Calls of calzone: the reliability table of the predicted class, or of each class, and the ECE of the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from calzone.metrics import calculate_ece_mce
from calzone.utils import reliability_diagram

from benchmarks.data import Arrays

DISTRIBUTION = "calzone-tool"
TOO_SLOW = {"class-wise-1000": "it creates a table of 50,000 × 15 cells for each class"}


def one(arrays: Arrays, *, by_mass: bool) -> Callable[[], float]:
    """15 right-closed bins; it uses a mask of shape n × 15."""
    return lambda: table(arrays, None, by_mass=by_mass)


def class_wise(arrays: Arrays) -> Callable[[], float]:
    """The mean over classes, computed by the user."""
    return lambda: np.mean([table(arrays, k, by_mass=False) for k in range(arrays["P"].shape[1])])


def table(arrays: Arrays, k: int | None, *, by_mass: bool) -> float:
    """The ECE of one reliability table."""
    rate, predicted, _, count = reliability_diagram(
        arrays["y"], arrays["P"], num_bins=15, class_to_plot=k, is_equal_freq=by_mass
    )
    return calculate_ece_mce(rate, predicted, count)[0]


ANSWERS = {
    "top-label": partial(one, by_mass=False),
    "equal-mass": partial(one, by_mass=True),
    "class-wise": class_wise,
}
