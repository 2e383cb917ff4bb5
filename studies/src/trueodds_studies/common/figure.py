"""Figures shared by the studies: axes without a frame, dot plots by number of rows or by split, saving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.atomic_write import open_atomic
from trueodds_studies.common.resumable_runs import Row


def make_panels(down: int, across: int, inches: tuple[float, float], **shared: Any) -> tuple[Any, Any]:
    """Create a figure with a grid of panels, and return it with the array of its axes."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=inches, layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots(down, across, **shared)
    for ax in axes.flat:
        ax.grid(color="#eeeeee", lw=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(length=0, labelsize=8)
        ax.title.set_fontsize(10)
        ax.xaxis.label.set_fontsize(9)
        ax.yaxis.label.set_fontsize(9)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    return figure, axes


def save_figure(figure: Any, path: Path) -> None:
    """Save a figure in the format given by the file extension; equal figures give identical files."""
    with open_atomic(path, "TO801") as file:
        figure.savefig(file, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None)


BLUE, RED = "#2f6da8", "#b5402a"


def save_dot_plot(
    figure: Any, axes: Sequence[Any], names: Sequence[str], shade: Mapping[int, str], path: Path, note: str = ""
) -> None:
    """Add estimator names, a legend of sample sizes, and an optional note to a dot plot, and save it as SVG."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    first = axes[0]
    first.set_yticks(range(len(names)), names, fontsize=8)
    first.set_ylim(-0.7, len(names) - 0.3)
    for ax in axes:
        ax.grid(axis="x", color="#dddddd", lw=0.6)
        ax.set_axisbelow(True)
        ax.title.set_fontsize(10)
        ax.xaxis.label.set_fontsize(9)
        ax.tick_params(axis="both", length=0, labelsize=8)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
    handles = [first.plot([], [], "o", ms=4, color=color, label=f"n = {n:,}")[0] for n, color in shade.items()]
    handles += [first.plot([], [], " ", label=note)[0]] if note else []
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    FigureCanvasSVG(figure)
    with open_atomic(path, "TO801") as file:
        figure.savefig(file, format="svg", metadata={"Date": None})


def draw_dots(ax: Any, rows: Sequence[Mapping[str, Any]], place: Mapping[str, int], shade: Any, name: str) -> None:
    """Draw the values of the column `name` by estimator, with one color per sample size."""
    complete_rows = [row for row in rows if row.get(name) is not None]
    step = 0.5 / max(1, len(shade))
    offset_of_n = {n: (i - (len(shade) - 1) / 2) * step for i, n in enumerate(shade)}
    ax.scatter(
        [row[name] for row in complete_rows],
        [place[row["estimator"]] + offset_of_n[row["n"]] for row in complete_rows],
        s=12,
        color=[shade[row["n"]] for row in complete_rows],
        alpha=0.8,
        lw=0,
    )


def colors_by_size(count: int) -> list[str]:
    """Return one color per sample size, for `count` sizes in increasing order."""
    known = {3: ["#8fb3d9", "#123a63", RED], 4: ["#c3d6ea", "#8fb3d9", BLUE, "#123a63"]}
    return known.get(count, ["#8fb3d9", "#123a63"][:count] if count < 3 else [BLUE] * count)


MIN_PVALUE = 1e-6  # p below this lie at the edge
SPLIT_DOTS_LEGEND = (
    "Dots: splits. Bars: mean log loss, median p. Red: mean without recalibration; 5 %. Smaller p lie at the left edge."
)


def draw_split_dots(
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
    figure.supxlabel(SPLIT_DOTS_LEGEND, fontsize=8, x=0.01, ha="left")
    for line, (quantity, label, mark) in zip(axes, panels, strict=True):
        for ax, (group, runs) in zip(line, grouped.items(), strict=True):
            values = np.array([[row[quantity] for row in run] for run in runs], dtype=np.float64)
            _draw_split_panel(ax, values, mark)
            ax.set_title(titles[group], fontsize=10)
            ax.set_xlabel(label, fontsize=9)
            ax.set_yticks(range(len(names)), names[::-1], fontsize=8)
    _save_split_figure(figure, path)
    return figure


def _draw_split_panel(ax: Any, values: Any, mark: float | None) -> None:
    """Dots of every run (runs, methods), a line through that of no recalibration or at a level."""
    runs, methods = values.shape
    if mark is not None:
        ax.set_xscale("log")
        ax.set_xlim(MIN_PVALUE / 1.5, 1.6)
        values = np.maximum(values, MIN_PVALUE)
    centers = np.median(values, axis=0) if mark is not None else values.mean(axis=0)
    ax.axvline(mark if mark is not None else centers[0], color=RED, lw=1)
    offsets = np.linspace(-0.22, 0.22, runs) if runs > 1 else np.zeros(1)
    for m in range(methods):
        position = methods - 1 - m
        ax.scatter(values[:, m], position + offsets, s=10, color=BLUE, alpha=0.6, lw=0)
        ax.plot([centers[m]] * 2, [position - 0.36, position + 0.36], color="#123a63", lw=2)
    ax.set_ylim(-0.7, methods - 0.3)
    ax.grid(axis="x", color="#dddddd", lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(axis="both", length=0, labelsize=8)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def _save_split_figure(figure: Any, path: Path) -> None:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)
    with open_atomic(path, "TO801") as file:
        figure.savefig(file, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None)
