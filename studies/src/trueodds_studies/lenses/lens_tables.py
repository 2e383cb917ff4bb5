"""The tables of the study of lenses, from what was measured through each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from trueodds_studies.base import counted, span
from trueodds_studies.lenses.lens_results import ALPHA
from trueodds_studies.resumable_runs import Row


def compare_lenses(cells: Sequence[Row], sets: int) -> tuple[dict[str, Any], ...]:
    """One row per lens: the exact error, ECE with its interval and floor, and which tests reject more than by chance."""
    rows = []
    for cell in cells:
        ece = next(row for row in cell["estimates"] if row["estimator"] == "ece")
        tests = [row for row in cell["tests"] if "rejects" in row]
        row = {"lens": cell["lens"], "views": cell["views"], "exact": cell["exact"], "ECE": interval(ece)}
        row |= {"tests": len(tests), "reject": span((test["rejects"] for test in tests), 2)}
        rows.append(row | {"see it": ", ".join(test["test"] for test in tests if test["rejects"] > more(sets))})
    return tuple(rows)


def estimators(cells: Sequence[Row], sets: int) -> tuple[dict[str, Any], ...]:
    """Every estimator through the canonical lens."""
    rows = []
    for row in canonical_rows(cells, "estimates"):
        if "needs" in row:
            rows.append({"estimator": row["estimator"], "sees it": "takes no vectors"})
            continue
        entry = {"estimator": row["estimator"], "settings": row["settings"], "exact": row["exact"]}
        entry |= {"if calibrated": row["if calibrated"], "estimate": interval(row), "told apart": row["told apart"]}
        rows.append(entry | {"sees it": "yes" if sees(row, sets) else "no"})
    return tuple(rows)


def tests(cells: Sequence[Row], sets: int) -> tuple[dict[str, Any], ...]:
    """Every test through the canonical lens, and beside it through all others."""
    others = [cell for cell in cells if cell["lens"] != "canonical"]
    rows = []
    for row in canonical_rows(cells, "tests"):
        elsewhere = [
            t["rejects"] for cell in others for t in cell["tests"] if t["test"] == row["test"] and "rejects" in t
        ]
        entry = {"test": row["test"]}
        if "needs" in row:
            entry["sees it"] = "takes no vectors"
        else:
            entry |= {name: row[name] for name in ("p", "rejects", "rejects if calibrated")}
            entry["sees it"] = "yes" if row["rejects"] > more(sets) else "no"
        rows.append(entry | ({"through other lenses": span(elsewhere, 2)} if elsewhere else {}))
    return tuple(rows)


def every(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """All that was measured: lens by lens, estimators and tests, refusals included."""
    return tuple(
        {"lens": cell["lens"], "kind": kind[:-1]} | {("member" if name == kind[:-1] else name): v for name, v in row.items()}
        for cell in cells
        for kind, key in (("estimators", "estimates"), ("tests", "tests"))
        for row in cell[key]
    )  # fmt: skip


def sentence(cells: Sequence[Row], sets: int) -> str:
    """Which lenses hold an error at all, and which members see it there."""
    miscalibrated = [cell for cell in cells if cell["exact"] > 0]
    text = f"No error at all in {len(cells) - len(miscalibrated)} of {len(cells)} lenses"
    if miscalibrated:
        text += "; " + ", ".join(f"{cell['lens']} holds {cell['exact']:g}" for cell in miscalibrated)
    text += "."
    estimates = [row for row in canonical_rows(cells, "estimates") if "needs" not in row]
    verdicts = [row for row in canonical_rows(cells, "tests") if "needs" not in row]
    for what, rows, detecting in (
        ("estimator", estimates, [row["estimator"] for row in estimates if sees(row, sets)]),
        ("test", verdicts, [row["test"] for row in verdicts if row["rejects"] > more(sets)]),
    ):
        if rows:
            blind = [row[what] for row in rows if row[what] not in detecting]
            text += f" Of {counted(len(rows), what)} that take whole vectors {len(detecting)} see it ({', '.join(detecting)})"
            text += f", and {len(blind)} do not ({', '.join(blind)})." if blind else "."
    return text


def canonical_rows(cells: Sequence[Row], key: str) -> list[Row]:
    """What was found through the canonical lens."""
    return [row for cell in cells if cell["lens"] == "canonical" for row in cell[key]]


def sees(row: Row, sets: int) -> bool:
    """Whether an estimator tells the table from a calibrated model more often than chance lets a blind one.

    A blind one tells half of the pairs apart, with the standard deviation of the Mann-Whitney statistic.
    """
    return bool(abs(row["told apart"] - 0.5) > 4 * math.sqrt((2 * sets + 1) / (12 * sets**2)))


def more(sets: int) -> float:
    """Four standard deviations above the level: more rejections than chance lets a test have that keeps its level.

    Of 50 sets nine or more: by the binomial law a test at its level has them once in 1,300 times, and of 100 sets
    fourteen or more once in 2,200.

    >>> round(more(100), 3)
    0.137
    """
    return ALPHA + 4 * math.sqrt(ALPHA * (1 - ALPHA) / sets)


def interval(row: Row) -> str:
    """Value [low, high] (noise floor)."""
    between = "" if row["low"] is None else f" [{row['low']:.4f}, {row['high']:.4f}]"
    return f"{row['estimate']:.4f}{between}" + ("" if row["noise floor"] is None else f" ({row['noise floor']:.4f})")
