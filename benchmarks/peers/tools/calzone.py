"""Calls of calzone: ECE of the predicted class and of each class, each from a reliability table with 15 bins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from calzone.metrics import calculate_ece_mce
from calzone.utils import reliability_diagram

from benchmarks.peers.job_data import Arrays

DISTRIBUTION = "calzone-tool"
TOO_SLOW = {"class-wise-1000": "it creates a table of 50,000 × 15 cells for each class"}


def prepare_top_label_ece(arrays: Arrays, *, has_equal_mass_bins: bool) -> Callable[[], float]:
    """Return the call that computes the ECE of the predicted class, in right-closed bins."""
    return lambda: ece_of_class(arrays, None, has_equal_mass_bins=has_equal_mass_bins)


def prepare_class_wise_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the mean ECE over classes, which calzone leaves to the user."""
    k = arrays["P"].shape[1]
    return lambda: np.mean([ece_of_class(arrays, j, has_equal_mass_bins=False) for j in range(k)])


def ece_of_class(arrays: Arrays, class_number: int | None, *, has_equal_mass_bins: bool) -> float:
    """Return the ECE of one class, or of the predicted class for None."""
    rate, predicted, _, count = reliability_diagram(
        arrays["y"], arrays["P"], num_bins=15, class_to_plot=class_number, is_equal_freq=has_equal_mass_bins
    )
    return calculate_ece_mce(rate, predicted, count)[0]


CALLS_BY_TASK = {
    "top-label": partial(prepare_top_label_ece, has_equal_mass_bins=False),
    "equal-mass": partial(prepare_top_label_ece, has_equal_mass_bins=True),
    "class-wise": prepare_class_wise_ece,
}
