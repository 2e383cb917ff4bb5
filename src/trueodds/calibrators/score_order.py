"""Decide whether a map of two classes keeps the order of scores, for the table of candidates and for a note."""

from __future__ import annotations

import numpy as np

from trueodds.calibrators._curves.score_scale import LOGIT, class_scores
from trueodds.calibrators._glm.log_probabilities import LogProbabilities, Probabilities
from trueodds.calibrators.base import CalibrationMap, to_accepted_input
from trueodds.core.errors import Note

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
