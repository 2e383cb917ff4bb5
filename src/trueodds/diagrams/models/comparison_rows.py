"""Which numbers does a comparison draw? Bins and whole models as rows of one table, and a row for each panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.diagrams.base import Diagram
from trueodds.diagrams.binned.bins import Columns
from trueodds.diagrams.drawing import layout
from trueodds.diagrams.models.model_results import UNKNOWN, ModelResult
from trueodds.diagrams.models.wording import verdict

WORDS = ("view", "model", "part", "title", "aside", "finding")
OF_MODELS = tuple(ModelResult.__dataclass_fields__)


def bins(diagram: Diagram, name: str) -> Columns:
    """The bins of one model."""
    table, count = diagram.table, len(diagram.table["bin"])
    absent = {column: np.full(count, UNKNOWN) for column in ("bar_low", "bar_high")}
    outside = {"outside": np.zeros(count, dtype=bool)}
    return {
        "view": table["view"],
        "model": np.full(count, name, dtype=object),
        "part": np.full(count, "bin", dtype=object),
        **{column: values for column, values in {**absent, **outside, **table}.items() if column != "view"},
        **{column: np.full(count, UNKNOWN) for column in OF_MODELS},
    }


def model(diagram: Diagram, name: str, one: ModelResult) -> Columns:
    """All rows of one model in a view, with its errors."""
    totals = {column: diagram.panels[column][0] for column in ("n", "weight", "mean_prediction", "outcome_rate")}
    totals["deviation"] = totals["outcome_rate"] - totals["mean_prediction"]
    return _row(str(diagram.panels["view"][0]), name, one, {"low": 0.0, "high": 1.0, "share": 1.0} | totals)


def aggregate_row(lens: str, name: str, one: ModelResult) -> Columns:
    """The standing of one model over all views of a lens."""
    return _row(lens, name, one, {})


def _row(view: str, name: str, one: ModelResult, totals: Mapping[str, Any]) -> Columns:
    numbers = ("low", "high", "weight", "share", "mean_prediction", "outcome_rate", "deviation", "bar_low", "bar_high")
    row = {"view": view, "model": name, "part": "model", "bin": -1, "n": 0, "outside": False}
    row |= dict.fromkeys(numbers, UNKNOWN) | dict(totals) | {column: getattr(one, column) for column in OF_MODELS}
    return {column: np.array([value], dtype=object if column in WORDS else None) for column, value in row.items()}


def panels(
    made: Mapping[str, Sequence[Diagram]],
    alone: Sequence[Sequence[ModelResult]],
    combined: Sequence[ModelResult] | None,
) -> Columns:
    """One row per view; the range of y is shared by all models and panels."""
    drawn = [diagram for diagrams in made.values() for diagram in diagrams[: layout.PANELS]]
    ends = {
        "y_low": min(float(diagram.panels["y_low"][0]) for diagram in drawn),
        "y_high": max(float(diagram.panels["y_high"][0]) for diagram in drawn),
        "tallest": max(float(diagram.panels["tallest"][0]) for diagram in drawn),
    }
    rows: list[dict[str, Any]] = []
    names = list(made)
    for i, those in enumerate(zip(*made.values(), strict=True)):
        view, title = str(those[0].panels["view"][0]), str(those[0].panels["title"][0])
        errors = [one.error for one in alone[i]]
        rows.append(
            {
                "view": view,
                "title": title,
                "aside": f"ECE {_range(errors)}",
                "finding": verdict(names, alone[i], "ECE"),
                "n": max(int(diagram.panels["n"][0]) for diagram in those),
                **ends,
            }
        )
    if len(rows) > 1:
        lead = f"Mean over {len(rows)} views: {verdict(names, combined, 'ECE')} " if combined else ""
        worst = max(one.error for one in alone[0])
        rows[0]["finding"] = f"{lead}Largest: {rows[0]['title']}, ECE\u00a0{worst:.4f}."
    return {name: np.array([row[name] for row in rows], dtype=object if name in WORDS else None) for name in rows[0]}


def _range(errors: Sequence[float]) -> str:
    low, high = min(errors), max(errors)
    return f"{low:.3f}" if len(errors) == 1 else f"{low:.3f}–{high:.3f}"
