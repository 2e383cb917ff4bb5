"""What do the pictures of these studies have in common? Axes without a box, and files without a date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trueodds.core.atomic import replacing


def panels(down: int, across: int, inches: tuple[float, float], **shared: Any) -> tuple[Any, Any]:
    """A figure with its axes, as an array or the one that is asked for."""
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
    """Onto the disk, as the path's ending says; the same picture is the same file."""
    with replacing(path, "TO801") as file:
        figure.savefig(file, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None)
