"""The scale of the scores of a curve: probabilities, or log odds if the curve was fitted to logits.

Log odds keep the order of scores whose probabilities round to 0 or 1. A curve of log odds does not depend on their
unit either: ten times as large scores give a curve with ten times as large knots, and the same probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.calibrators._glm.log_probabilities import (
    LogProbabilities,
    Probabilities,
    one_vs_rest_logs,
    to_probabilities,
)
from trueodds.calibrators.saved_parameters import invalid_value_error
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import MAX_LOG_ODDS

PROBABILITY, LOGIT = "probability", "logit"
SCORE_RANGE = {PROBABILITY: (0.0, 1.0), LOGIT: (-MAX_LOG_ODDS, MAX_LOG_ODDS)}  # first and last edge of bins
KNOT_RANGE = SCORE_RANGE | {PROBABILITY: (0.0, 2.0)}  # of saved knots; float16 may slightly exceed 1


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


def scale_entry(scale: str) -> dict[str, str]:
    """The entry of a saved curve: none for probabilities, which are the default."""
    return {} if scale == PROBABILITY else {"scale": scale}


def read_scale(parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The scale of a saved curve and its other parameters; raises TO505 for an unknown scale."""
    scale = parameters.get("scale", PROBABILITY)
    if not isinstance(scale, str) or scale not in SCORE_RANGE:
        raise invalid_value_error("scale", f"{PROBABILITY} or {LOGIT}", scale)
    return scale, {name: value for name, value in parameters.items() if name != "scale"}
