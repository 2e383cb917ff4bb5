"""How much hangs on the class that odds are taken against, and on the floor? The same test with others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import figure
from trueodds.hypotests.likelihood.odds import Odds
from trueodds.hypotests.likelihood.odds_tests import statistics, tail


def compare_baselines(
    odds: Odds, against: Callable[[int], Odds], form: str
) -> tuple[dict[str, dict[str, float]], tuple[Note, ...]]:
    """Statistic, p-value and changes of the fit with each class as the baseline, and a note on their range.

    The changes are those of a fitted probability against the fit with the baseline that was chosen: the largest, and
    the mean over rows (weighted) and classes.
    """
    parts: dict[str, dict[str, float]] = {}
    for j in range(odds.P.shape[1]):
        other = odds if j == odds.baseline else against(j)
        statistic = statistics(other, form)[form]
        moved = np.abs(other.fitted_probs - odds.fitted_probs)[odds.w > 0]
        parts[f"baseline:{j}"] = {
            "statistic": statistic,
            "pvalue": tail(other, other.rank, statistic, form),
            "largest_change": float(moved.max()),
            "mean_change": float(odds.w[odds.w > 0] @ moved.mean(axis=1) / odds.w.sum()),
        }
    return parts, (Note("TN236", _describe_range(parts, odds.baseline)),)


def compare_min_probs(odds: Odds, at: Callable[..., Odds], min_prob: float, form: str) -> dict[str, dict[str, float]]:
    """Statistic and p-value at a tenth and at ten times the floor, where this one moved anything."""
    parts: dict[str, dict[str, float]] = {}
    for other in (min_prob / 10, min_prob * 10):
        if odds.touched and other < 1 / odds.P.shape[1]:
            there = at(min_prob=other)
            statistic = statistics(there, form)[form]
            parts[f"floor:{other:g}"] = {"statistic": statistic, "pvalue": tail(there, there.rank, statistic, form)}
    return parts


def _describe_range(result: dict[str, dict[str, float]], chosen: int) -> str:
    p = [one["pvalue"] for one in result.values()]
    defined = [x for x in p if not np.isnan(x)]
    change = max(one["largest_change"] for one in result.values())
    text = (
        f"With each of the {len(result)} classes as the baseline p lies between {figure(min(defined))} and {figure(max(defined))}"
        if defined
        else "No baseline has a p-value"
    )
    lost = f", undefined for {len(p) - len(defined)} of them" if defined and len(defined) < len(p) else ""
    return f"{text}{lost}; a fitted probability differs by up to {figure(change)} from that with baseline {chosen}."
