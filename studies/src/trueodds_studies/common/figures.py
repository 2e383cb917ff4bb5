"""Building blocks of the studies' figures: empty figures, axes without a frame, saving, and two kinds of dot plots.

`draw_dots` and `save_dot_plot` draw one dot per estimator and sample size; `draw_split_dots` draws one dot per random
split of the rows, by recalibration method. Matplotlib is optional, so it is imported inside the functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.atomic_write import open_atomic
from trueodds_studies.common.resumable_runs import Row

BLUE, RED, DARK_BLUE = "#2f6da8", "#b5402a", "#123a63"


def make_figure(inches: tuple[float, float]) -> Any:
    """Create an empty figure of this width and height, whose layout avoids overlaps."""
    from matplotlib.figure import Figure

    return Figure(figsize=inches, layout="constrained")


def make_panels(n_rows: int, n_columns: int, inches: tuple[float, float], **subplot_settings: Any) -> tuple[Any, Any]:
    """Create a figure with a grid of panels, and return it with the array of its axes.

    `subplot_settings` are passed to `Figure.subplots`, for example `sharey=True`.
    """
    figure = make_figure(inches)
    axes = figure.subplots(n_rows, n_columns, **subplot_settings)
    for ax in axes.flat:
        ax.grid(color="#eeeeee", lw=0.6)
        ax.set_axisbelow(True)
        ax.title.set_fontsize(10)
        ax.xaxis.label.set_fontsize(9)
        ax.yaxis.label.set_fontsize(9)
        remove_frame(ax)
    return figure, axes


def remove_frame(ax: Any, sides: Sequence[str] = ("top", "right"), label_size: int = 8) -> None:
    """Hide these sides of the frame of a panel and its tick marks, and set the size of its tick labels."""
    ax.tick_params(axis="both", length=0, labelsize=label_size)
    for side in sides:
        ax.spines[side].set_visible(False)


def save_figure(figure: Any, path: Path) -> None:
    """Save a figure in the format given by the file extension; equal figures give identical files."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)  # a figure made without pyplot has no canvas that can draw
    with open_atomic(path, "TO801") as file:
        figure.savefig(file, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None)


def colors_by_size(count: int) -> list[str]:
    """Return one color per sample size, for `count` sizes in increasing order."""
    known = {3: ["#8fb3d9", DARK_BLUE, RED], 4: ["#c3d6ea", "#8fb3d9", BLUE, DARK_BLUE]}
    return known.get(count, ["#8fb3d9", DARK_BLUE][:count] if count < 3 else [BLUE] * count)


def draw_dots(
    ax: Any, rows: Sequence[Row], positions: Mapping[str, int], color_of_size: Mapping[int, str], column: str
) -> None:
    """Draw the values of a column, one dot per row of the table.

    `positions` gives the height of each estimator, `color_of_size` the color of each sample size, whose dots are
    shifted a little so that they do not cover each other. Rows without a value are left out.
    """
    complete_rows = [row for row in rows if row.get(column) is not None]
    step = 0.5 / max(1, len(color_of_size))
    offset_of_n = {n: (i - (len(color_of_size) - 1) / 2) * step for i, n in enumerate(color_of_size)}
    ax.scatter(
        [row[column] for row in complete_rows],
        [positions[row["estimator"]] + offset_of_n[row["n"]] for row in complete_rows],
        s=12,
        color=[color_of_size[row["n"]] for row in complete_rows],
        alpha=0.8,
        lw=0,
    )


def save_dot_plot(
    figure: Any, axes: Sequence[Any], names: Sequence[str], color_of_size: Mapping[int, str], path: Path, note: str = ""
) -> None:
    """Add the names of the estimators, a legend of sample sizes, and an optional note to a dot plot, and save it."""
    first = axes[0]
    first.set_yticks(range(len(names)), names, fontsize=8)
    first.set_ylim(-0.7, len(names) - 0.3)
    for ax in axes:
        ax.grid(axis="x", color="#dddddd", lw=0.6)
        ax.set_axisbelow(True)
        ax.title.set_fontsize(10)
        ax.xaxis.label.set_fontsize(9)
        remove_frame(ax, ("top", "right", "left"))
    handles = [first.plot([], [], "o", ms=4, color=color, label=f"n = {n:,}")[0] for n, color in color_of_size.items()]
    handles += [first.plot([], [], " ", label=note)[0]] if note else []
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    save_figure(figure, path)


MIN_PVALUE = 1e-6  # smaller p-values are drawn at the left edge
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
    """Draw one dot per split and recalibration method, save the figure, and return it.

    `grouped` has the groups, which become columns of panels; of each group the splits; and of each split a row per
    method, in the same order, the first without recalibration. `panels` has the rows of panels: a key of these rows,
    the label of its axis, and for p-values the level that is marked.
    """
    first_split = next(iter(grouped.values()))[0]
    names = [row["method"] for row in first_split]
    height = 1.6 + len(panels) * (0.5 + 0.24 * len(names))
    figure = make_figure((3.4 * len(grouped) + 1.6, height))
    axes = figure.subplots(len(panels), len(grouped), sharey=True, sharex="row", squeeze=False)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.supxlabel(SPLIT_DOTS_LEGEND, fontsize=8, x=0.01, ha="left")
    for panel_row, (quantity, label, level) in zip(axes, panels, strict=True):
        for ax, (group, splits) in zip(panel_row, grouped.items(), strict=True):
            values = np.array([[row[quantity] for row in split] for split in splits], dtype=np.float64)
            _draw_split_panel(ax, values, level)
            ax.set_title(titles[group], fontsize=10)
            ax.set_xlabel(label, fontsize=9)
            ax.set_yticks(range(len(names)), names[::-1], fontsize=8)
    save_figure(figure, path)
    return figure


def _draw_split_panel(ax: Any, values: Any, level: float | None) -> None:
    """Draw the values (splits, methods), a bar at their center, and a line at `level` or without recalibration.

    With a level, the values are p-values, on a logarithmic axis; their center is the median, else the mean.
    """
    n_splits, n_methods = values.shape
    if level is not None:
        ax.set_xscale("log")
        ax.set_xlim(MIN_PVALUE / 1.5, 1.6)
        values = np.maximum(values, MIN_PVALUE)
    centers = np.median(values, axis=0) if level is not None else values.mean(axis=0)
    ax.axvline(level if level is not None else centers[0], color=RED, lw=1)
    offsets = np.linspace(-0.22, 0.22, n_splits) if n_splits > 1 else np.zeros(1)
    for method in range(n_methods):
        position = n_methods - 1 - method
        ax.scatter(values[:, method], position + offsets, s=10, color=BLUE, alpha=0.6, lw=0)
        ax.plot([centers[method]] * 2, [position - 0.36, position + 0.36], color=DARK_BLUE, lw=2)
    ax.set_ylim(-0.7, n_methods - 0.3)
    ax.grid(axis="x", color="#dddddd", lw=0.6)
    ax.set_axisbelow(True)
    remove_frame(ax, ("top", "right", "left"))
