"""Results of a toy data set (rows, tables, figure panel), and measures that the toys share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueodds.api.measure import measure
from trueodds.binning.simplex_grid import Distinct, SimplexGrid
from trueodds.data.predictions import Predictions
from trueodds.estimators.proper_scores import Brier
from trueodds.lenses.lens_by_name import as_lens
from trueodds_studies.common.figures import make_panels, save_figure
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.study_result import StudyResult


@dataclass(frozen=True)
class Panel:
    """The panel of a toy in the figure: one dot per item and series."""

    title: str
    unit: str  # label of the axis
    series: Mapping[str, Mapping[str, float]]  # by name of the series and of the item


@dataclass(frozen=True)
class Toy:
    """The results of one toy data set: rows in the table of the study, own tables, and a panel in the figure."""

    name: str
    rows: tuple[Row, ...]
    tables: tuple[StudyResult, ...]
    panel: Panel


def toy_row(toy: str, what: str, printed: float | None, ours: float, explanation: str) -> Row:
    """A row of the table of the study: the published value, which may be missing (None), and ours."""
    return {"example": toy, "quantity": what, "published": printed, "ours": ours, "explanation": explanation}


def toy_table(name: str, sentence: str, rows: list[dict[str, Any]], legend: str) -> StudyResult:
    """A table of a single toy."""
    return StudyResult(f"pathologies.{name}", sentence, tuple(rows), {}, legend)


def round_sum(number: float) -> float:
    """Round to 12 decimals, as a sum of tenths can be 1e-17 instead of 0; negative zeros become 0.

    >>> round_sum(0.1 + 0.2 - 0.3), round_sum(-1e-17)
    (0.0, 0.0)
    """
    return round(float(number), 12) + 0.0


def measure_value(preds: Predictions, estimator: str, **settings: Any) -> float:
    """The rounded value of an estimator by name."""
    return round_sum(measure(preds, estimator, interval=None, **settings).value)


def distinct_ece(preds: Predictions, lens: str) -> float:
    """The rounded ECE with one bin per distinct prediction."""
    return measure_value(preds, "ece", lens=lens, partition="distinct")


def mean_confidence(preds: Predictions) -> float:
    """The mean largest probability."""
    return round_sum(preds.P.max(axis=1).mean())


def brier_resolution(preds: Predictions) -> float:
    """The resolution of the Brier score: by how much it is lower because a model distinguishes rows.

    It is the refinement for a single group of all rows minus that for groups of equal predictions.

    >>> brier_resolution(Predictions([0, 0, 1, 1], [[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]]))
    0.25
    """
    (view,) = as_lens("canonical").views(preds)
    refinement, refinement_of_one_group = (
        Brier(decomposition="calibration-refinement", partition=cells).parts(view)["refinement"]
        for cells in (Distinct(), SimplexGrid(1))
    )
    return round_sum(refinement_of_one_group - refinement)


MARKS = (("o", "#2f6da8"), ("D", "#b5402a"), ("s", "#e39a3b"), ("^", "#5a9e5a"))  # by series
STEP = 0.16  # vertical distance between the series of an item


def draw_toys(panels: Sequence[Panel], path: Path) -> None:
    """Draw all panels in a grid with four columns."""
    n_rows = math.ceil(len(panels) / 4)
    figure, axes = make_panels(n_rows, 4, (15, 3.4 * n_rows))
    for ax, panel in zip(axes.flat, panels, strict=False):
        _draw_panel(ax, panel)
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    save_figure(figure, path)


def _draw_panel(ax: Any, panel: Panel) -> None:
    """Draw the series of a toy as marks, one line per item."""
    names = list(next(iter(panel.series.values())))
    for number, ((mark, color), (series, values)) in enumerate(zip(MARKS, panel.series.items(), strict=False)):
        heights = [i + STEP * number for i in range(len(names))]  # marks do not cover each other
        ax.plot([values[name] for name in names], heights, mark, color=color, ms=5, alpha=0.85, label=series)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(left=-0.04 * ax.get_xlim()[1])
    ax.set_xlabel(panel.unit)
    ax.set_title(panel.title, fontsize=10)
    if len(panel.series) > 1:
        ax.legend(frameon=False, fontsize=7)
