"""The tables of the study of binning, from what was measured of each net."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from trueodds_studies.base import counted
from trueodds_studies.cuts.orders import by_setting, flips, of_estimator, setting
from trueodds_studies.cuts.settings import NORMS, OWN
from trueodds_studies.resumable_runs import Row

IN_USE = (0.001, 0.1)  # thresholds


def pushed(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """How far each norm can be pushed over the settings in use, net by net."""
    table = []
    for cell in cells:
        rows = [row for row in cell["curve"] if row["reasonable"]]
        usual = next(row for row in rows if (row["scheme"], row["bins"]) == ("uniform", 15))
        for norm in NORMS:
            ordered = sorted(rows, key=itemgetter(norm))
            lowest, highest = ordered[0], ordered[-1]
            row: dict[str, Any] = {"net": cell["net"], "norm": norm, "15 bins": usual[norm]}
            row |= {"least": lowest[norm], "at": setting(lowest), "most": highest[norm], "at ": setting(highest)}
            table.append(row | {"most / least": highest[norm] / lowest[norm]})
    return tuple(table)


def steady(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """How far each estimator moves over settings of its own: over all nets the least and the most ratio; pairs flipped."""
    rows = []
    for name, settings in OWN.items():
        values = of_estimator(cells, name)
        # A debiased error may be 0 or below somewhere: then a ratio says nothing.
        ratios = [max(v.values()) / min(v.values()) if min(v.values()) > 0 else None for v in values.values()]
        known = [ratio for ratio in ratios if ratio is not None]
        row: dict[str, Any] = {"estimator": name, "settings": len(settings)}
        row |= {"least ratio": min(known), "most ratio": max(known)} if len(known) == len(ratios) else {}
        rows.append(row | {"pairs that change order": len(flips(values))})
    return tuple(rows)


def order(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Every pair of nets whose order depends on the setting, norm by norm."""
    return tuple({"norm": norm, **row} for norm in NORMS for row in flips(by_setting(cells, norm)))


def tace(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """How far TACE slides over thresholds in use, its largest jump for each net, and what made it."""
    rows = []
    for cell in cells:
        values = [row["TACE"] for row in cell["thresholds"] if IN_USE[0] <= row["threshold"] <= IN_USE[1]]
        rows.append({"net": cell["net"], "least": min(values), "most": max(values), **cell["jump"]})
    return tuple(rows)


def thresholds(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """TACE at every threshold of the grid."""
    return tuple({"net": cell["net"], **row} for cell in cells for row in cell["thresholds"])


def curves(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Every norm at every setting."""
    return tuple({"net": cell["net"], **row} for cell in cells for row in cell["curve"])


def sentence(cells: Sequence[Row]) -> str:
    """How far the numbers go, and whose order changes."""
    ranges = pushed(cells)
    phrases = []
    for norm in NORMS:
        ratios = [row["most / least"] for row in ranges if row["norm"] == norm]
        phrases.append(f"{norm} by a factor of {max(ratios):.3g} at most")
    pairs = len(cells) * (len(cells) - 1) // 2
    changed = len(flips(by_setting(cells, "ECE")))
    slid = tace(cells)
    slide = max(row["most"] / row["least"] for row in slid)
    jump = max(abs(row["after"] - row["before"]) for row in slid)
    return (
        f"Settings in use move {', '.join(phrases)}; the ECE of {changed} of {counted(pairs, 'pair')} of nets changes order. "
        f"Thresholds from {IN_USE[0]:g} to {IN_USE[1]:g} move TACE by a factor of {slide:.3g} at most; the jump found in its largest step is {jump:.2g} at most."
    )
