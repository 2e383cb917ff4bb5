"""Calls of netcal: ECE of the predicted class (left-closed bins), and isotonic regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from netcal.binning import IsotonicRegression
from netcal.metrics import ECE

from benchmarks.data import Arrays
from benchmarks.timed import Timed

DISTRIBUTION = "netcal"


def top_label(arrays: Arrays) -> Callable[[], float]:
    """15 bins of equal width."""
    return lambda: ECE(15).measure(arrays["P"], arrays["y"])


def equal_mass(arrays: Arrays) -> Callable[[], float]:
    """15 bins between quantiles."""
    return lambda: ECE(15, equal_intervals=False).measure(arrays["P"], arrays["y"])


def isotonic(arrays: Arrays) -> Timed:
    """One curve per class, with normalized rows."""
    return Timed(
        lambda: IsotonicRegression().fit(arrays["P"], arrays["y"]),
        value=lambda calibrator: np.square(calibrator.transform(arrays["P"][:1000])).mean(),
    )


ANSWERS = {"top-label": top_label, "equal-mass": equal_mass, "isotonic": isotonic}
