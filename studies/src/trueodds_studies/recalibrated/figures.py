"""What do the recalibrations of real rows look like? One dot per split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.atomic import replacing
from trueodds_studies.figures import BLUE, RED
from trueodds_studies.resumable_runs import Row

MIN_PVALUE = 1e-6  # p below this lie at the edge
MARKS = (
    "Dots: splits. Bars: mean log loss, median p. Red: mean without recalibration; 5 %. Smaller p lie at the left edge."
)


def obesity(results: Sequence[Row], path: Path) -> Any:
    """Held-out log loss above, p of MCLLO's test below, one column per set of features, one dot per split."""
    sets = list(dict.fromkeys(one["features"] for one in results))
    grouped = {
        name: [
            [row for row in one["rows"] if row["baseline"] == "Normal Weight"]
            for one in results
            if one["features"] == name
        ]
        for name in sets
    }
    titles = {name: f"{name if name != 'all' else 'all features'}" for name in sets}
    panels = (("mixed", "log loss, nats per row", None), ("p", "p of MCLLO's test", 0.05))
    return dots(
        grouped, titles, panels, "What do recalibrations of a forest do to 132 people that they have not seen?", path
    )


def ecology(results: Sequence[Row], path: Path) -> Any:
    """The same for the models of trees, one dot per half of the plots."""
    models = list(dict.fromkeys(one["model"] for one in results))
    grouped = {model: [one["rows"] for one in results if one["model"] == model] for model in models}
    panels = (("mixed", "log loss, nats per row", None), ("p", "p of MCLLO's test, whole plots", 0.05))
    titles = {model: model for model in models}
    return dots(grouped, titles, panels, "What do recalibrations on half of the plots do to the other half?", path)


def dots(
    grouped: Mapping[str, Sequence[Sequence[Row]]],
    titles: Mapping[str, str],
    panels: Sequence[tuple[str, str, float | None]],
    title: str,
    path: Path,
) -> Any:
    """A row of panels for each quantity, a column for each group; methods from top to bottom, means as bars."""
    from matplotlib.figure import Figure

    first = next(iter(grouped.values()))[0]
    names = [row["method"] for row in first]
    height = 1.6 + len(panels) * (0.5 + 0.24 * len(names))
    figure = Figure(figsize=(3.4 * len(grouped) + 1.6, height), layout="constrained")
    axes = figure.subplots(len(panels), len(grouped), sharey=True, sharex="row", squeeze=False)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.supxlabel(MARKS, fontsize=8, x=0.01, ha="left")
    for line, (quantity, label, mark) in zip(axes, panels, strict=True):
        for ax, (group, runs) in zip(line, grouped.items(), strict=True):
            values = np.array([[row[quantity] for row in run] for run in runs], dtype=np.float64)
            _panel(ax, values, mark)
            ax.set_title(titles[group], fontsize=10)
            ax.set_xlabel(label, fontsize=9)
            ax.set_yticks(range(len(names)), names[::-1], fontsize=8)
    _save_figure(figure, path)
    return figure


def _panel(ax: Any, values: Any, mark: float | None) -> None:
    """Dots of every run (runs, methods), a line through that of no recalibration or at a level."""
    runs, methods = values.shape
    if mark is not None:
        ax.set_xscale("log")
        ax.set_xlim(MIN_PVALUE / 1.5, 1.6)
        values = np.maximum(values, MIN_PVALUE)
    middle = np.median(values, axis=0) if mark is not None else values.mean(axis=0)
    ax.axvline(mark if mark is not None else middle[0], color=RED, lw=1)
    up = np.linspace(-0.22, 0.22, runs) if runs > 1 else np.zeros(1)
    for m in range(methods):
        at = methods - 1 - m
        ax.scatter(values[:, m], at + up, s=10, color=BLUE, alpha=0.6, lw=0)
        ax.plot([middle[m]] * 2, [at - 0.36, at + 0.36], color="#123a63", lw=2)
    ax.set_ylim(-0.7, methods - 0.3)
    ax.grid(axis="x", color="#dddddd", lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(axis="both", length=0, labelsize=8)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def _save_figure(figure: Any, path: Path) -> None:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)
    with replacing(path, "TO801") as file:
        figure.savefig(file, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None)
