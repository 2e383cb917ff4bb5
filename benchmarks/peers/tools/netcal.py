"""Calls of netcal: ECE of the predicted class in 15 left-closed bins, and isotonic regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from netcal.binning import IsotonicRegression
from netcal.metrics import ECE

from benchmarks.peers.job_data import Arrays
from benchmarks.peers.timing import TimedCall

DISTRIBUTION = "netcal"


def prepare_top_label_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the ECE in bins of equal width."""
    return lambda: ECE(15).measure(arrays["P"], arrays["y"])


def prepare_equal_mass_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the ECE in bins between quantiles."""
    return lambda: ECE(15, equal_intervals=False).measure(arrays["P"], arrays["y"])


def prepare_isotonic_fit(arrays: Arrays) -> TimedCall:
    """Return the call that fits one curve per class; netcal normalizes the recalibrated rows."""
    return TimedCall(
        lambda: IsotonicRegression().fit(arrays["P"], arrays["y"]),
        extract_value=lambda calibrator: np.square(calibrator.transform(arrays["P"][:1000])).mean(),
    )


CALLS_BY_TASK = {
    "top-label": prepare_top_label_ece,
    "equal-mass": prepare_equal_mass_ece,
    "isotonic": prepare_isotonic_fit,
}
