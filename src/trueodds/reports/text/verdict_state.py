"""Decide the verdict of an audit: the state of calibration, and the direction of the miscalibration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trueodds.core.results import Verdict
from trueodds.reports.audit_results import AuditResults, StandardMeasure, measures_by_name
from trueodds.reports.text.formatting import is_binary

# Calibration-in-the-large gives a direction only if it is at least this share of the calibration error; otherwise
# errors of both signs cancel in the mean.
MIN_SHARE_IN_THE_LARGE = 1 / 3
# With fewer rows (or clusters) a test has hardly any power, so that the state is "too few rows" unless it rejects.
MIN_ROWS_FOR_VERDICT = 20
# Standard errors that a slope or a mean difference must exceed to give a direction: 2 (p about 0.05) if the test
# through the default lens rejects, and 3 (p about 0.003) if only other tests of the family reject.
MIN_Z_IF_REJECTED, MIN_Z_UNLESS_REJECTED = 2.0, 3.0
# With this ratio of observed and predicted events of two classes, or its inverse, their ratio is the main result.
MIN_RATIO_OF_EVENTS = 1.25


def verdict_state(results: AuditResults, family: Verdict, alpha: float, data: Mapping[str, Any]) -> str:
    """Return the state of calibration in a few words.

    `family` is the family-wise test, `alpha` its level, and `data` the description of the data (`describe_data`). If
    calibration is rejected, or if an outcome of predicted probability 0 was observed, the state is `reversed`,
    `overconfident`, `underconfident`, `too high`, `too low`, or `miscalibrated`. Otherwise it is `no evidence`,
    `too few rows`, or `not tested` if no p-value could have been small enough.
    """
    has_impossible_outcomes = data["true_class_zeros"] > 0
    if has_impossible_outcomes or family.pvalue <= alpha:
        direction, _ = miscalibration_direction(results, family, alpha, data)
        return direction
    if family.min_pvalue is not None and family.min_pvalue > alpha:
        return "not tested"
    return "too few rows" if (data.get("clusters") or data["n"]) < MIN_ROWS_FOR_VERDICT else "no evidence"


def miscalibration_direction(
    results: AuditResults, family: Verdict, alpha: float, data: Mapping[str, Any]
) -> tuple[str, StandardMeasure | None]:
    """Return the direction of the miscalibration (`miscalibrated` if unclear), and the slope if that determines it.

    - A slope of the log odds below 0 is a reversed ranking, which has precedence.
    - A slope below or above 1 shows that probabilities are too extreme or too moderate.
    - Calibration-in-the-large shows that they are too high or too low, if it is at least a third of the error;
      otherwise errors of both signs cancel. Its confidence interval must exclude 0, too.

    Each must exceed 3 standard errors, or 2 if the test through the default lens rejects. For two classes, of the last
    two the one with more standard errors is used, unless the numbers of predicted and observed events differ by a
    factor of 1.25 or more; then calibration-in-the-large has precedence. For several classes and for confidences it
    always has precedence over the slope.
    """
    if family.pvalue > alpha:
        return "miscalibrated", None
    min_z = MIN_Z_IF_REJECTED if results.default_test.pvalue <= alpha else MIN_Z_UNLESS_REJECTED
    measures = measures_by_name(results.standard_measures)
    slope = measures.get("calibration_slope")
    if slope is not None and slope.distance_in_se(0.0) <= -min_z:
        return "reversed", slope
    # Each candidate has the number of standard errors, the direction, and the slope if this determines it.
    candidates: list[tuple[float, str, StandardMeasure | None]] = []
    in_the_large, z = results.calibration_in_the_large or 0.0, abs(results.calibration_in_the_large_z or 0.0)
    error = results.errors[0].value if results.errors[0].debiased is None else results.errors[0].debiased
    errors_cancel = abs(in_the_large) < MIN_SHARE_IN_THE_LARGE * error
    level = measures.get("calibration_intercept") or measures.get("calibration_in_the_large")
    interval = None if level is None else level.interval
    includes_0 = interval is not None and interval.low <= 0 <= interval.high
    if not errors_cancel and z >= min_z and not includes_0:
        high, low = ("too high", "too low") if is_binary(data) else ("overconfident", "underconfident")
        has_precedence = is_binary(data) and ratio_of_events(data) is not None
        candidates.append((math.inf if has_precedence else z, high if in_the_large < 0 else low, None))
    slope_z = 0.0 if slope is None else slope.distance_in_se(1.0)
    if slope is not None and abs(slope_z) >= min_z and (is_binary(data) or not candidates):
        candidates.append((abs(slope_z), "overconfident" if slope_z < 0 else "underconfident", slope))
    if not candidates:
        return "miscalibrated", None
    _, direction, determining_slope = max(candidates, key=lambda candidate: candidate[0])
    return direction, determining_slope


def measures_excluding_ideal(results: AuditResults) -> list[str]:
    """Return the names of the standard measures whose confidence interval excludes the value of a calibrated model."""
    return [
        measure.name
        for measure in results.standard_measures
        if measure.interval is not None
        and measure.ideal is not None
        and not measure.interval.low <= measure.ideal <= measure.interval.high
    ]


def ratio_of_events(data: Mapping[str, Any]) -> float | None:
    """Return the observed over the expected number of events of two classes (O:E ratio); None if it is close to 1.

    It is also None for votes, and if no event was expected or none observed.

    >>> ratio_of_events({"votes": False, "mean_prediction": 0.03, "event_rate": 0.06})
    2.0
    >>> ratio_of_events({"votes": False, "mean_prediction": 0.5, "event_rate": 0.6})
    """
    predicted, observed = data["mean_prediction"], data["event_rate"]
    if data["votes"] or min(predicted, observed) <= 0:
        return None
    ratio = observed / predicted
    return float(ratio) if max(ratio, 1 / ratio) >= MIN_RATIO_OF_EVENTS else None
