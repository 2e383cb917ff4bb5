"""Reliability diagrams before and after a recalibration, on rows that were used neither to fit nor to choose it."""

from __future__ import annotations

from typing import Any

from trueodds.api.draw import draw
from trueodds.calibrators.calibrator_predictions import replace_probabilities
from trueodds.calibrators.recalibration_report import Recalibration
from trueodds.data.predictions import Predictions


def diagrams_before_and_after(preds: Predictions, report: Recalibration, level: float) -> dict[str, Any] | None:
    """Return the reliability diagrams of the held-out rows, before and after the recalibration.

    Parameters
    ----------
    preds : Predictions
        The rows that the recalibration was chosen and fitted on.
    report : Recalibration
        The report of the procedure, with its held-out probabilities.
    level : float
        Coverage of the consistency bars.

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
        **{
            name: draw(rows, "reliability", level=level).to_dict()
            for name, rows in (("before", before), ("after", after))
        },
    }
