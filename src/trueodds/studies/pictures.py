"""What a study looks like: coverage, error and ranking of every estimator on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trueodds.studies.base import Finding

BLUE, RED = "#2f6da8", "#b5402a"


def coverage(found: Finding, path: Path) -> None:
    """Three panels: how often the interval covers, how close the estimate is, how often it ranks two models right."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["estimator"] for row in found.rows))
    place = {name: i for i, name in enumerate(reversed(names))}
    figure = Figure(figsize=(11, 1.6 + 0.24 * len(names)), layout="constrained")
    covers, error, ranks = figure.subplots(1, 3, sharey=True, width_ratios=(3, 3, 1.4))
    sizes = sorted({row["n"] for row in found.rows})
    shade = dict(zip(sizes, _shades(len(sizes)), strict=True))
    covers.axvspan(0.93, 0.98, color="#e8eef5", lw=0)
    _dots(covers, found.rows, place, shade, "covers")
    covers.set(xlim=(0.75, 1.01), title="95 % interval covers the truth", xlabel="share of data sets")
    ratio = [row | {"ratio": _ratio(row)} for row in map(dict, found.rows)]
    error.axvline(1, color=RED, lw=1)
    _dots(error, ratio, place, shade, "ratio")
    error.set(xscale="log", title="error against that of answering 0", xlabel="RMSE / RMSE of the constant 0")
    _dots(ranks, found.rows, place, shade, "ranks")
    ranks.set(xlim=(0.45, 1.02), title="ranks two right", xlabel="share of data sets")
    covers.set_yticks(list(place.values()), list(place), fontsize=8)
    covers.set_ylim(-0.7, len(names) - 0.3)
    for ax in (covers, error, ranks):
        ax.grid(axis="x", color="#dddddd", lw=0.6)
        ax.set_axisbelow(True)
        ax.title.set_fontsize(10)
        ax.xaxis.label.set_fontsize(9)
        ax.tick_params(axis="both", length=0, labelsize=8)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
    handles = [covers.plot([], [], "o", ms=4, color=shade[n], label=f"n = {n:,}")[0] for n in sizes]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(sizes), frameon=False, fontsize=9)
    FigureCanvasSVG(figure)
    figure.savefig(path, format="svg", metadata={"Date": None})


def _dots(ax: Any, rows: Sequence[Mapping[str, Any]], place: Mapping[str, int], shade: Any, name: str) -> None:
    shown = [row for row in rows if row.get(name) is not None]
    step = 0.5 / max(1, len(shade))
    up = {n: (i - (len(shade) - 1) / 2) * step for i, n in enumerate(shade)}
    ax.scatter(
        [row[name] for row in shown],
        [place[row["estimator"]] + up[row["n"]] for row in shown],
        s=12, color=[shade[row["n"]] for row in shown], alpha=0.8, lw=0,
    )  # fmt: skip


def _ratio(row: Mapping[str, Any]) -> float | None:
    return row["rmse"] / row["rmse_of_0"] if row["rmse_of_0"] and row["rmse"] is not None else None


def _shades(count: int) -> list[str]:
    return ["#8fb3d9", "#123a63", RED][:count] if count <= 3 else [BLUE] * count
