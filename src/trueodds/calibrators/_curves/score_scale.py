"""The scale of the scores of a curve: probabilities, or log odds if the curve was fitted to logits.

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
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, Numbers, invalid_value_error
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import MAX_LOG_ODDS

PROBABILITY, LOGIT = "probability", "logit"
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
