"""What does the reliability of each net look like? One figure per net, and grids of all nets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trueodds.api.verbs import draw
from trueodds.core.atomic import replacing
from trueodds.data.predictions import Predictions
from trueodds_studies.nets.catalog import NETS, groups, three
from trueodds_studies.nets.net_errors import PARTITIONS

LEVEL = 0.9  # the bars end at the 5th and 95th percentiles, as in the paper
LINES = {"uniform": PARTITIONS["uniform 10"], "tree": PARTITIONS["tree, 100 rows"]}
CELLS = {
    "25 cells": {"partition": "simplex-grid", "bins": 5},
    "tree": PARTITIONS["tree, 100 rows"],
}
Nets = Mapping[str, Predictions]


def one(name: str, preds: Predictions, path: Path) -> None:
    """The confidence in ten bins and by a tree, and three groups of classes in 25 cells and by a tree."""
    rows = 2 if triangle(name) else 1
    figure = _figure((10, 4.2 * rows))
    axes = figure.subplots(rows, 2, squeeze=False)
    for ax, (bins, settings) in zip(axes[0], LINES.items(), strict=True):
        _line(preds, ax, settings, f"{name}, confidence, {bins}")
    if rows > 1:
        for ax, (bins, settings) in zip(axes[1], CELLS.items(), strict=True):
            _triangle(name, preds, ax, settings, f"classes {describe_groups(name)}, {bins}")
    _save_figure(figure, path)


def lines(nets: Nets, bins: str, path: Path) -> None:
    """The one-dimensional diagram of every net."""
    axes, figure = _grid(len(nets), 3.0, 2.35)
    drawn = [_line(preds, ax, LINES[bins], name) for ax, (name, preds) in zip(axes, nets.items(), strict=False)]
    across, up = drawn[0].axis_labels()
    figure.supylabel(f"{up}, by {across}", fontsize=9)  # below the panels the legend would meet it
    _legend(figure, drawn[0])
    _save_figure(figure, path)


def triangles(nets: Nets, cells: str, path: Path) -> None:
    """The two-dimensional diagram of every net that has one."""
    shown = {name: preds for name, preds in nets.items() if triangle(name)}
    if not shown:
        return
    axes, figure = _grid(len(shown), 3.0, 2.7)
    drawn = [
        _triangle(name, preds, ax, CELLS[cells], name) for ax, (name, preds) in zip(axes, shown.items(), strict=False)
    ]
    _legend(figure, max(drawn, key=lambda diagram: len(diagram.legend())))
    _save_figure(figure, path)


def triangle(name: str) -> bool:
    """Whether there are three outcomes or groups of them to draw."""
    net = NETS[name]
    return net.has_class_probs and net.classes >= 3


def describe_groups(name: str) -> str:
    """Which classes are put together.

    >>> describe_groups("vgg16")
    '0–2, 3–5, 6–9'
    """
    return ", ".join(
        f"{group[0]}–{group[-1]}" if len(group) > 1 else f"{group[0]}" for group in three(NETS[name].classes)
    )


def _line(preds: Predictions, ax: Any, settings: Mapping[str, Any], title: str) -> Any:
    diagram = draw(preds, "reliability", lens="confidence", level=LEVEL, style="deviation", **settings)
    diagram.paint(ax, 0)
    outside, bins = int(diagram.panels["bins_outside"][0]), int(diagram.panels["bins"][0])
    ax.set_title(f"{title}\n{outside} of {bins} outside", fontsize=9)
    return diagram


def _triangle(name: str, preds: Predictions, ax: Any, settings: Mapping[str, Any], title: str) -> Any:
    lens = "canonical" if NETS[name].classes == 3 else groups(NETS[name].classes)
    diagram = draw(preds, "simplex", lens=lens, **settings).less("key")
    diagram.paint(ax, 0)
    beyond = diagram.table["beyond"]
    ax.set_title(f"{title}\n{int(beyond.sum())} of {len(beyond)} beyond chance", fontsize=9)
    return diagram


def _grid(count: int, width: float, height: float) -> tuple[list[Any], Any]:
    columns = min(4, count)
    rows = -(-count // columns)
    figure = _figure((max(width * columns, 5.0), height * rows + 0.4))
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for ax in axes[count:]:
        ax.axis("off")
    return axes, figure


def _legend(figure: Any, diagram: Any) -> None:
    """One for all panels."""
    handles, names = zip(*diagram.legend(), strict=True)
    named = [name for name in names if not name.startswith("share")]  # which differ from net to net
    shown = [handle for handle, name in zip(handles, names, strict=True) if name in named]
    figure.legend(shown, named, loc="outside lower center", ncols=len(named), frameon=False, fontsize=9)


def _figure(size: tuple[float, float]) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _save_figure(figure: Any, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    with replacing(path, "TO801") as file:
        figure.savefig(file, format=path.suffix[1:], dpi=80)
