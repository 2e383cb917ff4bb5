"""What do bins and thresholds make of the same predictions? A panel per net, and TACE against its threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trueodds.core.atomic import replacing
from trueodds_studies.cuts.settings import COUNTS, SCHEMES
from trueodds_studies.resumable_runs import Row

COLORS = ("#2f6da8", "#6fa8dc", "#b5402a", "#c79a2b", "#5b8c5a", "#7a5195", "#777777")


def bins(cells: Sequence[Row], path: Path) -> None:
    """ECE against the number of bins, a line per scheme; dashed below it the noise floor of each."""
    columns = min(4, len(cells))
    figure = _figure((3.1 * columns, 0.5 + 2.6 * math.ceil(len(cells) / columns)))
    axes = figure.subplots(math.ceil(len(cells) / columns), columns, squeeze=False).ravel()
    for ax, cell in zip(axes, cells, strict=False):
        for scheme, color in zip(SCHEMES, COLORS, strict=False):
            rows = [row for row in cell["curve"] if row["scheme"] == scheme]
            at = [row["bins"] for row in rows]
            ax.plot(at, [row["ECE"] for row in rows], "-", lw=1.4, color=color, label=scheme)
            ax.plot(at, [row["floor"] for row in rows], "--", lw=0.9, color=color, alpha=0.8)
        ax.set_xscale("log")
        ax.set_xlim(COUNTS[0], COUNTS[-1])
        ax.set_ylim(bottom=0)
        ax.set_title(cell["net"], fontsize=10)
        ax.set_xlabel("number of bins", fontsize=8)
        _bare(ax)
    for ax in axes[len(cells) :]:
        ax.set_axis_off()
    handles, names = axes[0].get_legend_handles_labels()
    handles.append(axes[0].plot([], [], "--", lw=0.9, color="#555555")[0])
    figure.legend(handles, [*names, "noise floor"], loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    figure.supylabel("ECE", fontsize=9)
    _save_figure(figure, path)


def thresholds(cells: Sequence[Row], path: Path) -> None:
    """TACE against its threshold, a line per net."""
    figure = _figure((8, 4.2))
    ax = figure.subplots()
    for cell, color in zip(cells, COLORS, strict=False):
        rows = cell["thresholds"]
        at, values = [row["threshold"] for row in rows], [row["TACE"] for row in rows]
        ax.plot(at, values, "-", lw=1.1, color=color, label=cell["net"])
        ax.plot(cell["jump"]["threshold"], cell["jump"]["after"], "o", ms=4, color=color)
    ax.set_xscale("log")
    ax.set_xlabel("threshold (dot: the jump found in the largest step)", fontsize=9)
    ax.set_ylabel("TACE", fontsize=9)
    ax.set_ylim(bottom=0)
    _bare(ax)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    _save_figure(figure, path)


def _figure(size: tuple[float, float]) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _bare(ax: Any) -> None:
    ax.set_axisbelow(True)
    ax.grid(axis="y", color="#dddddd", lw=0.6)
    ax.tick_params(length=0, labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _save_figure(figure: Any, path: Path) -> None:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)
    with replacing(path, "TO801") as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
