"""What do the targets make of each model, and what do fewer votes make of each measure? Two pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trueodds.core.atomic import replacing
from trueodds_studies.figures import BLUE, RED
from trueodds_studies.people.human_scores import SCORES
from trueodds_studies.resumable_runs import Row

COLORS = {"gold": "#c79a2b", "majority": RED, "votes": BLUE}


def plot_targets(rows: Sequence[Row], path: Path) -> None:
    """A panel per score, a line per model: dots for gold, majority and votes, with intervals; ticks are noise floors."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    place = {model: i for i, model in enumerate(reversed(models))}
    figure = _figure((11, 1.6 + 0.42 * len(models)))
    axes = figure.subplots(1, len(SCORES), sharey=True)
    for ax, (name, _) in zip(axes, SCORES, strict=True):
        for up, (target, color) in zip((0.24, 0.0, -0.24), COLORS.items(), strict=True):
            target_rows = [row for row in rows if row["against"] == target]
            at = [place[row["model"]] + up for row in target_rows]
            ax.hlines(
                at,
                [row[f"{name} low"] for row in target_rows],
                [row[f"{name} high"] for row in target_rows],
                color=color,
                lw=1,
            )
            ax.plot([row[name] for row in target_rows], at, "o", ms=4.5, color=color, label=f"against {target}")
            ax.plot([row[f"{name} floor"] for row in target_rows], at, "|", ms=7, color=color, alpha=0.7)
        ax.set_title(name, fontsize=10)
        ax.set_xlim(left=0)
        ax.grid(axis="x", color="#dddddd", lw=0.6)
        _bare(ax)
    axes[0].set_yticks(range(len(models)), list(place), fontsize=8)
    handles, names = axes[0].get_legend_handles_labels()
    handles.append(axes[0].plot([], [], "|", ms=7, color="#555555")[0])
    names.append("noise floor")
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    _save_figure(figure, path)


def fewer(rows: Sequence[Row], path: Path) -> None:
    """DistCE, the plain squared distance and the one without the votes' noise, by votes per row; a line per model."""
    figure = _figure((11, 3.8))
    panels = ("DistCE", "squared distance", "human_distance")
    models = list(dict.fromkeys(row["model"] for row in rows))
    axes = figure.subplots(1, len(panels))
    for ax, name in zip(axes, panels, strict=True):
        for model in models:
            model_rows = [row for row in rows if row["model"] == model]
            color = BLUE if model_rows[0]["crowd"] == "ChaosNLI" else RED
            ax.plot(
                [row["votes"] for row in model_rows],
                [row[name] for row in model_rows],
                "o-",
                ms=3,
                lw=1,
                color=color,
                alpha=0.7,
            )
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("votes per row", fontsize=9)
        ax.set_ylim(bottom=0)
        ax.grid(axis="y", color="#dddddd", lw=0.6)
        _bare(ax)
    for crowd, color in (("CIFAR-10H", RED), ("ChaosNLI", BLUE)):
        axes[0].plot([], [], "o-", ms=3, lw=1, color=color, label=crowd)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    _save_figure(figure, path)


def _figure(size: tuple[float, float]) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _bare(ax: Any) -> None:
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _save_figure(figure: Any, path: Path) -> None:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)
    with replacing(path, "TO801") as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
