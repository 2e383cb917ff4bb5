"""The scale of the scores of a curve, probabilities or log odds, and whether a map keeps their order.

Log odds keep the order of scores whose probabilities round to 0 or 1. A curve of log odds does not depend on their
unit either: ten times as large scores give a curve with ten times as large knots, and the same probabilities.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from trueodds.calibrators._glm.log_probabilities import (
    LogProbabilities,
    Probabilities,
    one_vs_rest_logs,
    to_probabilities,
)
from trueodds.calibrators.base import CalibrationMap, to_accepted_input
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, Numbers, invalid_value_error
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import MAX_LOG_ODDS

PROBABILITY, LOGIT = "probability", "logit"  # Saved
SCORE_RANGE = {PROBABILITY: (0.0, 1.0), LOGIT: (-MAX_LOG_ODDS, MAX_LOG_ODDS)}  # first and last edge of bins
KNOT_RANGE = SCORE_RANGE | {PROBABILITY: (0.0, 2.0)}  # of saved knots; float16 may slightly exceed 1
Scale = Annotated[str, OneOf((PROBABILITY, LOGIT)), OMIT_DEFAULT]
LogOdds = Annotated[float, Range(*SCORE_RANGE[LOGIT])]
KnotScores = Annotated[Array, Numbers(*SCORE_RANGE[LOGIT], increasing="strictly")]  # `check_knots` knows the scale


def score_scale(P: Probabilities) -> str:
    """The scale of a curve that is fitted to these rows: log odds where log-probabilities are known."""
    return LOGIT if isinstance(P, LogProbabilities) else PROBABILITY


def class_scores(P: Probabilities, c: int, scale: str) -> Array:
    """The scores (n,) of class c against the others, on this scale."""
    if scale == PROBABILITY:
        return to_probabilities(P)[:, c]
    if isinstance(P, LogProbabilities):
        return P.log_odds(c)
    log_rest, log_p = one_vs_rest_logs(P, c).T
    return np.clip(log_p - log_rest, -MAX_LOG_ODDS, MAX_LOG_ODDS)


def check_knots(key: str, x: Array, scale: str) -> None:
    """Raise TO505 if saved knots x (m,) are beyond the scale."""
    low, high = KNOT_RANGE[scale]
    if len(x) and not low <= x[0] <= x[-1] <= high:
        raise invalid_value_error(key, f"numbers from {low:g} to {high:g}", float(x[0] if x[0] < low else x[-1]))


def is_outside_flat_segments(y: Array) -> Array:
    """Mask (m,) of the knots of a piecewise linear curve with values y (m,), without those inside a flat segment."""
    is_end = y[1:] != y[:-1]
    return np.append(True, is_end) | np.append(is_end, True)


MAX_DECREASE = 1e-3  # total decrease of the probability with a higher score, up to which a map counts as nondecreasing
_N_POINTS = 1001  # evaluations at equally spaced log odds, and at as many quantiles of the rows


def total_decrease(calibration_map: CalibrationMap, P: Probabilities) -> float:
    """Return the sum of all decreases of the probability of the second class between the scores of P (n, 2).

    >>> from trueodds.calibrators.temperature import TemperatureSpec
    >>> P = np.array([[0.2, 0.8], [0.6, 0.4], [0.9, 0.1]] * 20)
    >>> total_decrease(TemperatureSpec().fit(P, np.eye(2)[[1, 0, 0] * 20], np.ones(60)), P)
    0.0
    """
    scores = class_scores(P, 1, LOGIT)
    scores = np.sort(scores[np.isfinite(scores)])
    if not len(scores):
        return 0.0
    steps = np.arange(_N_POINTS) / (_N_POINTS - 1)
    quantiles = scores[np.round(steps * (len(scores) - 1)).astype(np.int64)]
    points = np.unique(np.concatenate([scores[0] + (scores[-1] - scores[0]) * steps, quantiles]))
    Q = calibration_map.apply(to_accepted_input(calibration_map, LogProbabilities.from_logits(points)))
    return float(np.maximum(-np.diff(Q[:, 1]), 0.0).sum())


def decrease_note(decrease: float, curve: str = "map", details: str = "") -> Note:
    """Return the note on a map or curve that decreases by so much in total; `details` end the first sentence."""
    return Note(
        "TN529",
        f"The {curve} decreases in places, by {decrease:.2g} in total, where a higher score gets a lower"
        f" probability{details}. llo, beta and centered_isotonic keep the order of scores.",
    )
