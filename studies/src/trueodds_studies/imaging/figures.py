"""What do the methods do to images? Accuracy against calibration, single images, and reliability, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.verbs import draw, fit
from trueodds.core.atomic import replacing
from trueodds.data.predictions import Predictions
from trueodds_studies.figures import BLUE, RED
from trueodds_studies.imaging.split_results import EVERY
from trueodds_studies.resumable_runs import Row

PALE = "#a9c4e2"
COLORS = dict(
    zip(
        (method.label for method in EVERY),
        ("#222222", RED, "#e39a3b", "#5a9e5a", "#8a6fb0", BLUE, "#3aa6a6", "#c58ac0"),
        strict=True,
    )
)
SIX = ("none", "MCLLO", "evidential (Xu) on p", "binning", "temperature on log p", "vector on log p")
PANELS = (("ECE change", "change of ECE"), ("gain", "gain in log loss (nats)"))


def trade(rows: Sequence[Row], path: Path) -> None:
    """Change of accuracy against what calibration gains, one column of panels per net, bars of one standard error."""
    nets = list(dict.fromkeys(row["net"] for row in rows))
    figure = _figure((1.2 + 2.5 * len(nets), 6.2))
    grid = figure.subplots(2, len(nets), sharex=True, sharey="row", squeeze=False)
    for (name, label), line in zip(PANELS, grid, strict=True):
        line[0].set_ylabel(label, fontsize=9)
        for ax, net in zip(line, nets, strict=True):
            _bare(ax)
            ax.axhline(0, color="#bbbbbb", lw=0.8)
            ax.axvline(0, color="#bbbbbb", lw=0.8)
            for row in rows:
                if row["net"] == net and row["method"] != "none" and np.isfinite(row[name]):
                    _point(ax, row, name)
    for ax, net in zip(grid[0], nets, strict=True):
        ax.set_title(net, fontsize=10)
    for ax in grid[1]:
        ax.set_xlabel("change of accuracy (points)", fontsize=9)
    handles = [
        grid[0][0].plot([], [], "o", label=_label(name, rows), **_mark(name))[0] for name in COLORS if name != "none"
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    _save_figure(figure, path)


def _point(ax: Any, row: Row, name: str) -> None:
    x, wide, high = 100 * row["accuracy change"], row["accuracy change ±"], row[f"{name} ±"]
    wide = None if wide is None else 100 * wide
    ax.errorbar(x, row[name], xerr=wide, yerr=high, fmt="o", elinewidth=1, **_mark(row["method"]))


def _mark(method: str) -> dict[str, Any]:
    """A dot; a ring for the ridge, which lies upon MCLLO."""
    ring = {"ms": 9, "mfc": "none"} if method == "MCLLO, ridge" else {"ms": 5}
    return {"color": COLORS[method], **ring}


def _label(name: str, rows: Sequence[Row]) -> str:
    lost = sum(row["method"] == name and not np.isfinite(row["gain"]) for row in rows)
    return f"{name} (infinite loss in {lost} nets: not drawn below)" if lost else name


def single(rows: Sequence[Row], path: Path) -> None:
    """The five likeliest classes of each image, a bar before and a bar after."""
    images = list(dict.fromkeys(row["image"] for row in rows))
    figure = _figure((3.4 * len(images), 3.4))
    for ax, image in zip(figure.subplots(1, len(images), squeeze=False)[0], images, strict=True):
        image_rows = [row for row in rows if row["image"] == image]
        place = np.arange(len(image_rows))[::-1]
        for name, up, color in (("before", 0.2, PALE), ("after", -0.2, BLUE)):
            values = [row[name] for row in image_rows]
            ax.barh(place + up, values, height=0.36, color=color, label=name)
            for y, value in zip(place + up, values, strict=True):
                ax.text(value + 0.015, y, f"{value:.2f}", va="center", fontsize=8)
        ax.set_yticks(place, [row["class"] for row in image_rows], fontsize=9)
        ax.set(xlim=(0, 1.18), xticks=(0, 0.5, 1))
        ax.set_title(f"{image}, {image_rows[0]['label']}\n{image_rows[0]['why']}", fontsize=9)
        _bare(ax)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    _save_figure(figure, path)


def reliability(learn: Predictions, held_out: Predictions, path: Path) -> None:
    """Ten bins of the confidence of the rows held out, before and after each method of the paper."""
    assert held_out.y is not None  # labels, no votes
    figure = _figure((13, 8.6))
    made = {method.label: method for method in EVERY}
    for ax, name in zip(figure.subplots(2, 3).ravel(), SIX, strict=True):
        after = Predictions(held_out.y, fit(learn, made[name].name, **made[name].settings).predict_proba(held_out))
        draw(after, "reliability", lens="confidence", bins=10, ax=ax)
        ax.set_title(f"{name}: {ax.get_title().removeprefix('confidence: ')}", fontsize=10)
    _save_figure(figure, path)


def _figure(size: tuple[float, float]) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _bare(ax: Any) -> None:
    ax.tick_params(length=0, labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _save_figure(figure: Any, path: Path) -> None:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)
    with replacing(path, "TO801") as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
