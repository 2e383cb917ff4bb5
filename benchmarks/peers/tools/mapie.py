"""Calls of MAPIE: ECE of the predicted class and of each class, in 15 bins.

Its setting `num_bins` is the number of edges, so 16 gives 15 bins. Its quantile bins put the lowest score into a bin of
its own, which changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mapie.metrics.calibration import expected_calibration_error

from benchmarks.peers.job_data import Arrays

DISTRIBUTION = "mapie"


def prepare_top_label_ece(arrays: Arrays, strategy: str) -> Callable[[], float]:
    """Return the call that computes the ECE of the predicted class, whose correctness the user computes."""
    P, y = arrays["P"], arrays["y"]
    return lambda: expected_calibration_error(P.argmax(axis=1) == y, P, num_bins=16, split_strategy=strategy)


def prepare_class_wise_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the mean ECE over classes."""
    P, y = arrays["P"], arrays["y"]
    return lambda: expected_calibration_error(
        y, P, num_bins=16, split_strategy="uniform", classwise=True, class_labels=y
    )


CALLS_BY_TASK = {
    "top-label": partial(prepare_top_label_ece, strategy="uniform"),
    "equal-mass": partial(prepare_top_label_ece, strategy="quantile"),
    "class-wise": prepare_class_wise_ece,
}
