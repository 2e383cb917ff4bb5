"""What do confidence and correctness show? A reliability diagram of each network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trueodds.ask import draw as diagram
from trueodds.problem.predictions import Predictions


def draw(models: Mapping[str, Predictions], path: Path) -> None:
    """The networks side by side, as `to.draw(preds, "reliability")` draws each."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(models), 4.6), layout="constrained")
    axes = figure.subplots(1, len(models), squeeze=False)[0]
    for ax, (name, preds) in zip(axes, models.items(), strict=True):
        diagram(preds, "reliability", ax=ax)
        ax.set_title(name, fontsize=10)
    FigureCanvasSVG(figure)
    figure.savefig(path, format="svg", metadata={"Date": None})
