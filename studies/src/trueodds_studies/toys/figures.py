"""What do the toys look like? One small panel each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trueodds_studies.mcllo.axes import panels, save_figure
from trueodds_studies.toys.base import Panel

MARKS = (("o", "#2f6da8"), ("D", "#b5402a"), ("s", "#e39a3b"), ("^", "#5a9e5a"))
STEP = 0.16


def draw(every: Sequence[Panel], path: Path) -> None:
    """Small multiples, four to a line: names down the side, a mark for each number."""
    down = -(-len(every) // 4)
    figure, axes = panels(down, 4, (15, 3.4 * down))
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
