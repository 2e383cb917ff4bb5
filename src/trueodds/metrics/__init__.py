"""Calibration errors and proper scores as functions of two arrays, with the names and arguments of scikit-learn.

Each returns the value that `measure` estimates, as a float, without its interval and noise floor.
"""

from trueodds.metrics.calibration_errors import (
    adaptive_calibration_error,
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    integrated_calibration_index,
    kernel_calibration_error,
    maximum_calibration_error,
    smooth_calibration_error,
)
from trueodds.metrics.level_and_slope import (
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    observed_expected_ratio,
)
from trueodds.metrics.proper_scores import brier_score_loss, log_loss, ranked_probability_score

__all__ = [
    "adaptive_calibration_error",
    "brier_score_loss",
    "calibration_in_the_large",
    "calibration_intercept",
    "calibration_slope",
    "classwise_calibration_error",
    "debiased_calibration_error",
    "expected_calibration_error",
    "integrated_calibration_index",
    "kernel_calibration_error",
    "log_loss",
    "maximum_calibration_error",
    "observed_expected_ratio",
    "ranked_probability_score",
    "smooth_calibration_error",
]


def __dir__() -> list[str]:
    return __all__
