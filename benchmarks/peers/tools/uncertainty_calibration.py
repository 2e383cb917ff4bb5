"""Calls of uncertainty-calibration: ECE of the predicted class and of each class, in 15 bins."""

from __future__ import annotations

from collections.abc import Callable

from calibration import get_ece, get_ece_em

from benchmarks.peers.job_data import Arrays

DISTRIBUTION = "uncertainty-calibration"
TOO_SLOW = {"class-wise-1000": "it creates lists of 5·10⁷ pairs"}


def prepare_top_label_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the ECE of the predicted class, in right-closed bins."""
    return lambda: get_ece(arrays["P"], arrays["y"], num_bins=15)


def prepare_class_wise_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the mean ECE over classes."""
    return lambda: get_ece(arrays["P"], arrays["y"], num_bins=15, mode="marginal")


def prepare_equal_mass_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the ECE in bins of equal mass, with edges midway between neighboring scores."""
    return lambda: get_ece_em(arrays["P"], arrays["y"], num_bins=15)


CALLS_BY_TASK = {
    "top-label": prepare_top_label_ece,
    "class-wise": prepare_class_wise_ece,
    "equal-mass": prepare_equal_mass_ece,
}
