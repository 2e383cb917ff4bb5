"""Reliability diagrams before and after a recalibration, on the held-out rows of its cross-fitting."""

from __future__ import annotations

from typing import Any

from trueodds.api.draw import draw
from trueodds.calibrators.calibrator_predictions import replace_probabilities
from trueodds.calibrators.recalibration_report import Recalibration
from trueodds.data.predictions import Predictions


def diagrams_before_and_after(preds: Predictions, report: Recalibration, level: float) -> dict[str, Any] | None:
    """Return the reliability diagrams of the held-out rows, before and after the recalibration.

    The probability of a row after the recalibration is from a calibrator that was fitted and chosen without this row.

    Parameters
    ----------
    preds : Predictions
        The rows on which the recalibration was chosen and fitted.
    report : Recalibration
        The report of the recalibration, with the held-out probabilities if it was confirmed.
    level : float
        Level of the consistency bars: the probability that the outcome rate of a calibrated bin lies in its bar.

    Returns
    -------
    dict or None
        The diagrams `before` and `after` as JSON values, and the number of rows `n`. None without a confirmed
        recalibration.
    """
    if report.held_out is None or not report.confirmed:
        return None
    before = preds[report.held_out.rows]
    after = replace_probabilities(before, report.held_out.P)
    return {
        "n": before.n,
        "before": draw(before, "reliability", level=level, weight_kind="importance").to_dict(),
        "after": draw(after, "reliability", level=level, weight_kind="importance").to_dict(),
    }
