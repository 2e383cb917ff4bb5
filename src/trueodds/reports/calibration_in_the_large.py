"""Calibration-in-the-large, the mean outcome minus the mean predicted probability, with z-score and interval."""

from __future__ import annotations

import math

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.hypotests.votes import has_vote_shares
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.view import View
from trueodds.reports.audit_result import StandardMeasure
from trueodds.reports.wald_intervals import WaldIntervals, variance_of_sum


def calibration_in_the_large_of_rows(preds: Predictions) -> tuple[float | None, float | None]:
    """Return calibration-in-the-large through the default lens, and its z-score; with clusters, that of cluster sums.

    For two classes it is that of the second class, otherwise that of the predicted class. Both are None for independent
    labels.
    """
    if preds.kind == "multilabel":
        return None, None
    (view,) = default_lens(preds).views(preds)
    if preds.cluster is None:
        return calibration_in_the_large(view)
    weighted_residual = view.w * (view.y - view.p.astype(np.float64))
    mean = float(weighted_residual.sum() / view.total)
    se = float(np.sqrt((np.bincount(preds.cluster, weighted_residual) ** 2).sum())) / view.total
    return mean, _z_score(mean, se)


def calibration_in_the_large(view: View) -> tuple[float, float | None]:
    """Return calibration-in-the-large of a view, and its z-score for independent rows.

    The z-score is in standard errors of a calibrated model. With votes, they are computed from the residuals.
    """
    mean = float((view.w * (view.y - view.p.astype(np.float64))).sum() / view.total)
    # Σ w²r² of the residuals r with votes, and else Σ w²p(1 − p), the variance of the outcomes of a calibrated model.
    squares = view.sums("wwr") if has_vote_shares(view) else np.maximum(view.sums("wwv"), 0.0)
    return mean, _z_score(mean, float(np.sqrt(squares.sum())) / view.total)


def _z_score(mean: float, se: float) -> float | None:
    """Return the mean in standard errors; infinite if only the standard error is 0, None if both are."""
    if se > 0:
        return mean / se
    return math.copysign(math.inf, mean) if abs(mean) > 1e-12 else None


def calibration_in_the_large_measure(view: View, cluster: Array | None, wald: WaldIntervals) -> StandardMeasure:
    """Return calibration-in-the-large with the Wald interval from the residuals, which may be correlated in clusters.

    If the interval from the standard error of a calibrated model includes 0, the larger of the two standard errors is
    used, because residuals have hardly any variance if, for instance, all predicted classes are correct.
    """
    weight_share = view.w / view.total
    weighted_residual = weight_share * (view.y - view.p)
    mean = float(weighted_residual.sum())
    se = float(np.sqrt(variance_of_sum(weighted_residual - weight_share * mean, cluster)))
    if cluster is None and not has_vote_shares(view):
        null_se = float(np.sqrt(np.maximum(view.sums("wwv"), 0.0).sum())) / view.total
        null_interval = wald.interval(mean, null_se)
        if null_interval is not None and null_interval.low <= 0 <= null_interval.high:
            se = float(np.fmax(se, null_se))
    return wald.measure("calibration_in_the_large", mean, se, 0.0)
