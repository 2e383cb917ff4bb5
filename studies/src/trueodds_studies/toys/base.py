"""What is a toy? A few rows worked by hand, the numbers a text prints of them, ours beside, and what they teach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueodds.api.verbs import measure
from trueodds.binning.partition import Distinct, SimplexGrid
from trueodds.data.predictions import Predictions
from trueodds.estimators.proper import Brier
from trueodds.lenses.lens import as_lens
from trueodds_studies.base import Finding
from trueodds_studies.resumable_runs import Row


@dataclass(frozen=True)
class Panel:
    """The toy's picture: one dot per thing and series."""

    title: str
    unit: str
    series: Mapping[str, Mapping[str, float]]  # series -> thing -> number


@dataclass(frozen=True)
class Toy:
    """One toy: its rows in the study's table, tables of its own, a picture."""

    name: str
    rows: tuple[Row, ...]
    tables: tuple[Finding, ...]
    panel: Panel


def row(toy: str, what: str, printed: float | None, ours: float, says: str) -> Row:
    """A line of the study's table; `printed` is None where the text has no number."""
    return {"toy": toy, "what": what, "printed": printed, "ours": ours, "says": says}


def table(name: str, sentence: str, rows: list[dict[str, Any]], legend: str) -> Finding:
    """A table of a toy's own."""
    return Finding(f"pathologies.{name}", sentence, tuple(rows), {}, legend)


def tidy(number: float) -> float:
    """Without what is left of sums of tenths, which are 1e-17 where they should be 0.

    >>> tidy(0.1 + 0.2 - 0.3), tidy(-1e-17)
    (0.0, 0.0)
    """
    return round(float(number), 12) + 0.0


def value(preds: Predictions, estimator: str, **settings: Any) -> float:
    """The bare number that the library measures."""
    return tidy(measure(preds, estimator, interval=None, **settings).value)


def distinct_ece(preds: Predictions, lens: str) -> float:
    """ECE through a lens, where only rows of the very same prediction are pooled: no bins that could hide anything."""
    return value(preds, "ece", lens=lens, partition="distinct")


def mean_confidence(preds: Predictions) -> float:
    """The mean largest probability."""
    return tidy(preds.P.max(axis=1).mean())


def resolution(preds: Predictions) -> float:
    """How much of Brier's score the model saves by telling rows apart: its refinement, and that of one group of all.

    >>> resolution(Predictions([0, 0, 1, 1], [[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]]))
    0.25
    """
    (view,) = as_lens("canonical").views(preds)
    refinement, all_alike = (
        Brier(decomposition="calibration-refinement", partition=cells).parts(view)["refinement"]
        for cells in (Distinct(), SimplexGrid(1))
    )
    return tidy(all_alike - refinement)
