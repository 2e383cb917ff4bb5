"""Where does TACE jump as its threshold moves, and which score of which class makes it jump?"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from trueodds.api.verbs import measure
from trueodds.data.predictions import Predictions

RANGE = (1e-4, 0.9)


def along(preds: Predictions, points: int) -> list[dict[str, Any]]:
    """TACE on a grid of thresholds with equal steps of the logarithm; many classes cost time, so they get fewer."""
    grid = np.geomspace(*RANGE, max(10, round(points * min(1.0, 10 / preds.k))))
    return [{"threshold": float(low), "TACE": _tace(preds, float(low))[0]} for low in grid]


def largest(preds: Predictions, grid: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest step of the grid, halved until few scores are passed: where it is, and which class makes it.

    The half that moves TACE more is kept each time, so that this is a jump in that step, not always its largest.
    """
    steps = [abs(b["TACE"] - a["TACE"]) for a, b in pairwise(grid)]
    at = int(np.argmax(steps))
    low, high = grid[at]["threshold"], grid[at + 1]["threshold"]
    scores = np.sort(preds.P.astype(np.float64, copy=False), axis=None)

    def passed(a: float, b: float) -> int:
        return int(np.searchsorted(scores, b, "right") - np.searchsorted(scores, a, "right"))

    before, after = _tace(preds, low), _tace(preds, high)
    while passed(low, high) > 1 and (middle := (low + high) / 2) not in (low, high):
        between = _tace(preds, middle)
        if abs(between[0] - before[0]) >= abs(after[0] - between[0]):
            high, after = middle, between
        else:
            low, before = middle, between
    moves = {name: after[1][name] - before[1][name] for name in before[1]}
    which = max(moves, key=lambda name: abs(moves[name]))
    column = [str(name) for name in preds.classes].index(which.removeprefix("class:"))
    counts = [int((preds.P[:, column].astype(np.float64, copy=False) > threshold).sum()) for threshold in (low, high)]
    return {
        "step of the grid": steps[at], "threshold": high, "scores passed": passed(low, high),
        "before": before[0], "after": after[0], "class": which,
        "class before": before[1][which], "class after": after[1][which],
        "kept before": counts[0], "kept after": counts[1],
    }  # fmt: skip


def _tace(preds: Predictions, threshold: float) -> tuple[float, dict[str, float]]:
    answer = measure(preds, "tace", lens="classwise", threshold=threshold, interval=None)
    return answer.value, dict(answer.parts)
