"""Does the order of two networks depend on a setting, and on which?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from trueodds_studies.resumable_runs import Row


def flips(values: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """The pairs of nets of which each has the larger value at some setting, with the settings where it is largest.

    >>> flips({"a": {"5 bins": 0.1, "9 bins": 0.4}, "b": {"5 bins": 0.2, "9 bins": 0.3}})
    [{'pair': 'a, b', 'first larger': 1, 'second larger': 1, 'first at': '9 bins', 'second at': '5 bins'}]
    """
    rows = []
    for a, b in combinations(values, 2):
        gap = {setting: values[a][setting] - values[b][setting] for setting in values[a] if setting in values[b]}
        larger, smaller = (sum(g > 0 for g in gap.values()), sum(g < 0 for g in gap.values()))
        if larger and smaller:
            rows.append(
                {"pair": f"{a}, {b}", "first larger": larger, "second larger": smaller,
                 "first at": max(gap, key=gap.__getitem__), "second at": min(gap, key=gap.__getitem__)}
            )  # fmt: skip
    return rows


def by_setting(cells: Sequence[Row], norm: str) -> dict[str, dict[str, float]]:
    """Net → setting → value, of the settings in use."""
    return {cell["net"]: {setting(row): row[norm] for row in cell["curve"] if row["reasonable"]} for cell in cells}


def of_estimator(cells: Sequence[Row], name: str) -> dict[str, dict[str, float]]:
    """The same of an estimator at its own settings."""
    return {
        cell["net"]: {row["settings"]: row["value"] for row in cell["own"] if row["estimator"] == name}
        for cell in cells
    }


def setting(row: Row) -> str:
    """A row's scheme and number of bins."""
    return row["scheme"] if row["bins"] is None else f"{row['scheme']} {row['bins']}"
