"""A toy data set with published and computed values, its tables and its figure."""

from __future__ import annotations

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
    """The figure of a toy: one dot per item and series."""

    title: str
    unit: str
    series: Mapping[str, Mapping[str, float]]  # series -> thing -> number


@dataclass(frozen=True)
class Toy:
    """One toy: its rows in the table of the study, its own tables, and its figure."""

    name: str
    rows: tuple[Row, ...]
    tables: tuple[StudyResult, ...]
    panel: Panel


def toy_row(toy: str, what: str, printed: float | None, ours: float, explanation: str) -> Row:
    """A row of the table of the study; `printed` is None if the paper has no number."""
    return {"toy": toy, "what": what, "printed": printed, "ours": ours, "explanation": explanation}


def toy_table(name: str, sentence: str, rows: list[dict[str, Any]], legend: str) -> StudyResult:
    """A table of a single toy."""
    return StudyResult(f"pathologies.{name}", sentence, tuple(rows), {}, legend)


def round_sum(number: float) -> float:
    """Remove rounding errors of sums of tenths, which can be 1e-17 instead of 0.

    >>> round_sum(0.1 + 0.2 - 0.3), round_sum(-1e-17)
    (0.0, 0.0)
    """
    return round(float(number), 12) + 0.0


def measure_value(preds: Predictions, estimator: str, **settings: Any) -> float:
    """The estimate of the library, without interval."""
    return round_sum(measure(preds, estimator, interval=None, **settings).value)


def distinct_ece(preds: Predictions, lens: str) -> float:
    """ECE for a lens with one bin per distinct prediction."""
    return measure_value(preds, "ece", lens=lens, partition="distinct")


def mean_confidence(preds: Predictions) -> float:
    """The mean largest probability."""
    return round_sum(preds.P.max(axis=1).mean())


def brier_resolution(preds: Predictions) -> float:
    """Resolution: refinement of the Brier score with a single group minus that with the groups of equal predictions.

    >>> brier_resolution(Predictions([0, 0, 1, 1], [[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]]))
    0.25
    """
    (view,) = as_lens("canonical").views(preds)
    refinement, all_alike = (
        Brier(decomposition="calibration-refinement", partition=cells).parts(view)["refinement"]
        for cells in (Distinct(), SimplexGrid(1))
    )
    return round_sum(all_alike - refinement)


MARKS = (("o", "#2f6da8"), ("D", "#b5402a"), ("s", "#e39a3b"), ("^", "#5a9e5a"))
STEP = 0.16


def draw_toys(every: Sequence[Panel], path: Path) -> None:
    """Draw small multiples, four per row, with a mark for each number."""
    down = -(-len(every) // 4)
    figure, axes = make_panels(down, 4, (15, 3.4 * down))
    for ax, panel in zip(axes.flat, every, strict=False):
        _panel(ax, panel)
    for ax in axes.flat[len(every) :]:
        ax.set_visible(False)
    save_figure(figure, path)


def _panel(ax: Any, panel: Panel) -> None:
    names = list(next(iter(panel.series.values())))
    for lower, ((mark, color), (series, values)) in enumerate(zip(MARKS, panel.series.items(), strict=False)):
        heights = [i + STEP * lower for i in range(len(names))]  # so that no mark hides another
        ax.plot([values[name] for name in names], heights, mark, color=color, ms=5, alpha=0.85, label=series)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(left=-0.04 * ax.get_xlim()[1])
    ax.set_xlabel(panel.unit)
    ax.set_title(panel.title, fontsize=10)
    if len(panel.series) > 1:
        ax.legend(frameon=False, fontsize=7)
