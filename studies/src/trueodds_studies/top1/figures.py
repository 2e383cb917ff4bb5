"""What do confidence and correctness show? A reliability diagram of each network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trueodds.api.verbs import draw as diagram
from trueodds.core.atomic import replacing
from trueodds.data.predictions import Predictions


def draw(models: Mapping[str, Predictions], path: Path) -> None:
    """The networks side by side, as `to.draw(preds, "reliability")` draws each, with one legend below: in the panels it hid bars."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(models), 4.6), layout="constrained")
    axes = figure.subplots(1, len(models), squeeze=False)[0]
    made = [diagram(preds, "reliability") for preds in models.values()]
    for ax, name, reliability in zip(axes, models, made, strict=True):
        reliability.less("legend").draw(ax)
        ax.set_title(name, fontsize=10)
    handles, names = zip(*max((reliability.legend() for reliability in made), key=len), strict=True)
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize=9)
    FigureCanvasSVG(figure)
    with replacing(path, "TO801") as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
