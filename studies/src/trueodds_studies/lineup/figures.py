"""Where does each net stand by each measure, and which measures agree? Two pictures, and the nets on one pair of axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.verbs import draw
from trueodds.core.atomic import replacing
from trueodds.diagrams.models.lineup import COLORS, MARKS
from trueodds_studies.lineup.measures import MEASURES, Models
from trueodds_studies.lineup.ranking_tables import agreement, names, numbers, places, settled_pairs
from trueodds_studies.resumable_runs import Row


def ranks(by_measure: Sequence[Row], path: Path) -> None:
    """A column per measure, a line per net, the best at the top; neighbors that are not settled hang together."""
    figure = _figure((2.6 + 0.56 * len(by_measure), 5.4))
    ax = figure.subplots()
    order = names(by_measure[0])
    placed = np.array([places(numbers(row)) for row in by_measure])  # (measures, nets)
    for x, row in enumerate(by_measure):
        settled, at = settled_pairs(row), dict(zip(order, placed[x], strict=True))
        line = sorted(order, key=lambda net: at[net])
        for first, second in pairwise(line):
            if not settled.get((first, second), False):
                ax.plot([x, x], [at[first], at[second]], color="#c9c9c9", lw=11, solid_capstyle="round", zorder=1)
    for i, net in enumerate(order):
        ax.plot(range(len(by_measure)), placed[:, i], marker=MARKS[i], ms=7, lw=1.6, color=COLORS[i], zorder=3)
        end = len(by_measure) - 1
        ax.text(-0.45, placed[0, i], f"{net}  {placed[0, i]}", ha="right", va="center", fontsize=9, color=COLORS[i])
        ax.text(
            end + 0.45, placed[end, i], f"{placed[end, i]}  {net}", ha="left", va="center", fontsize=9, color=COLORS[i]
        )
    kinds = [MEASURES[row["measure"]].kind for row in by_measure]
    for x in range(1, len(kinds)):
        if kinds[x] != kinds[x - 1]:
            ax.axvline(x - 0.5, color="#999999", lw=0.8, ls=(0, (4, 3)), zorder=0)
    for kind in dict.fromkeys(kinds):
        ax.text(_middle(kinds, kind), 0.42, kind, ha="center", va="center", fontsize=9, color="#555555")
    ax.set_xticks(range(len(kinds)), [row["measure"] for row in by_measure], rotation=40, ha="right", fontsize=9)
    ax.set_yticks([])
    ax.set_xlim(-0.6, len(kinds) - 0.4)
    ax.set_ylim(len(order) + 0.5, 0.2)
    ax.plot(
        [],
        [],
        color="#c9c9c9",
        lw=9,
        solid_capstyle="round",
        label="neighbors whose order is not settled; 1 is the smallest",
    )
    figure.legend(loc="outside upper right", frameon=False, fontsize=9)
    _bare(ax)
    _save_figure(figure, path)


def alike(by_measure: Sequence[Row], path: Path) -> None:
    """Kendall's tau of every two orders, as numbers on shades."""
    k = len(by_measure)
    shown = np.array([[agreement(a, b)[0] for b in by_measure] for a in by_measure])
    figure = _figure((2.2 + 0.47 * k, 1.9 + 0.4 * k))
    ax = figure.subplots()
    ax.imshow(shown, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    for i in range(k):
        for j in range(k):
            color = "white" if abs(shown[i, j]) > 0.7 else "#222222"
            ax.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", fontsize=8, color=color)
    labels = [row["measure"] for row in by_measure]
    ax.set_xticks(range(k), labels, rotation=40, ha="right", fontsize=9)
    ax.set_yticks(range(k), labels, fontsize=9)
    ax.set_title("Kendall's tau between the orders of the nets", fontsize=10)
    _bare(ax)
    _save_figure(figure, path)


def lineup(nets: Models, path: Path) -> None:
    """Reliability of the confidence of all nets, each with its noise floor and its difference to the first."""
    draw(dict(nets), "comparison", lens="confidence").save(path)


def _middle(kinds: Sequence[str], kind: str) -> float:
    return float(np.mean([x for x, other in enumerate(kinds) if other == kind]))


def _figure(size: tuple[float, float]) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _bare(ax: Any) -> None:
    ax.tick_params(length=0, labelsize=9)
    for side in ("top", "right", "left", "bottom"):
        ax.spines[side].set_visible(False)


def _save_figure(figure: Any, path: Path) -> None:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)
    with replacing(path, "TO801") as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
