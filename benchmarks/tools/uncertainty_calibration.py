"""Calls of uncertainty-calibration: ECE of the predicted class and of each class, through lists of pairs."""

from __future__ import annotations

from collections.abc import Callable

from calibration import get_ece, get_ece_em

from benchmarks.data import Arrays

DISTRIBUTION = "uncertainty-calibration"
TOO_SLOW = {"class-wise-1000": "it creates lists of 5·10⁷ pairs"}


def top_label(arrays: Arrays) -> Callable[[], float]:
    """15 right-closed bins."""
    return lambda: get_ece(arrays["P"], arrays["y"], num_bins=15)


def class_wise(arrays: Arrays) -> Callable[[], float]:
    """The mean over classes."""
    return lambda: get_ece(arrays["P"], arrays["y"], num_bins=15, mode="marginal")


def equal_mass(arrays: Arrays) -> Callable[[], float]:
    """Edges midway between neighbors."""
    return lambda: get_ece_em(arrays["P"], arrays["y"], num_bins=15)


ANSWERS = {"top-label": top_label, "class-wise": class_wise, "equal-mass": equal_mass}
