"""What do the arrows show, in words?"""

from __future__ import annotations

import numpy as np

from trueodds.diagrams.binned.bins import Columns
from trueodds.diagrams.drawing.styling import percent


def finding(table: Columns, corners: tuple[str, ...]) -> str:
    """Which outcomes are said too often or too seldom, or that it is too sure of any; from cells beyond chance alone."""
    beyond, count = table["beyond"], len(table["beyond"])
    if not beyond.any():
        subject = "The only cell does not stray" if count == 1 else f"None of {count} cells strays"
        return f"{subject} beyond chance."
    predicted, observed = (columns(table, name)[beyond] for name in ("mean_prediction", "outcome_frequency"))
    share = table["share"][beyond]
    net = share @ (predicted - observed) / share.sum()
    favored = np.argmax(predicted, axis=1)
    rows = np.arange(len(favored))
    top_predicted, top_observed = (float(share @ x[rows, favored] / share.sum()) for x in (predicted, observed))
    where = _where(share * np.abs(predicted - observed).sum(axis=1), favored, corners)
    if abs(top_predicted - top_observed) > np.abs(net).sum() / 2:
        direction = "Too sure" if top_predicted > top_observed else "Not sure enough"
        text = f"{direction} of what it favors{where}: says {percent(top_predicted)}, and {percent(top_observed)} come."
    else:
        often, seldom = corners[int(np.argmax(net))], corners[int(np.argmin(net))]
        text = f"Says {often} too often ({_points(net.max())}) and {seldom} too seldom ({_points(net.min())}){where}."
    many = "The only cell strays" if count == 1 else f"{int(beyond.sum())} of {count} cells {_stray(int(beyond.sum()))}"
    return f"{text} {many} beyond chance, with {percent(float(share.sum()))} of the predictions."


def columns(table: Columns, name: str) -> np.ndarray:
    """The columns of all outcomes, (cells, m)."""
    m = sum(key.startswith("mean_prediction_") for key in table)
    return np.stack([table[f"{name}_{k}"] for k in range(m)], axis=1)


def _where(moved: np.ndarray, favored: np.ndarray, corners: tuple[str, ...]) -> str:
    """The outcome in whose corner more than half of what was misplaced lies."""
    by_corner = np.bincount(favored, moved, len(corners))
    corner = int(np.argmax(by_corner))
    return f", mostly where it favors {corners[corner]}" if by_corner[corner] > by_corner.sum() / 2 else ""


def _points(x: float) -> str:
    return f"{100 * abs(x):.1f} points"


def _stray(count: int) -> str:
    return "strays" if count == 1 else "stray"
