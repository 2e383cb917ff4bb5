"""What a study looks like: every estimator, or every test, on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trueodds.core.atomic import replacing
from trueodds_studies.base import Finding

BLUE, RED = "#2f6da8", "#b5402a"


def coverage(finding: Finding, path: Path) -> None:
    """Three panels: how often the interval covers, how close the estimate is, how often it ranks two models right."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["estimator"] for row in finding.rows))
    place = {name: i for i, name in enumerate(reversed(names))}
    figure = Figure(figsize=(11, 1.6 + 0.24 * len(names)), layout="constrained")
    covers, error, ranks = figure.subplots(1, 3, sharey=True, width_ratios=(3, 3, 1.4))
    sizes = sorted({row["n"] for row in finding.rows})
    shade = dict(zip(sizes, _shades(len(sizes)), strict=True))
    covers.axvspan(0.93, 0.98, color="#e8eef5", lw=0)
    _dots(covers, finding.rows, place, shade, "covers")
    covers.set(xlim=(0.75, 1.01), title="95 % interval covers the truth", xlabel="share of data sets")
    ratio = [row | {"ratio": _ratio(row)} for row in map(dict, finding.rows)]
    error.axvline(1, color=RED, lw=1)
    _dots(error, ratio, place, shade, "ratio")
    error.set(xscale="log", title="error against that of answering 0", xlabel="RMSE / RMSE of the constant 0")
    _dots(ranks, finding.rows, place, shade, "ranks")
    ranks.set(xlim=(0.45, 1.02), title="ranks two right", xlabel="share of data sets")
    _page(figure, (covers, error, ranks), list(place), shade, path)


def levels(finding: Finding, path: Path) -> None:
    """Three panels: how often each test rejects at 5 and 1 % where nothing is wrong, and at 5 % an overconfident model.

    Lines mark the levels.
    """
    from matplotlib.figure import Figure

    rows = [{**row, "estimator": row["test"] + (" *" if row["null"] == "redraw" else "")} for row in finding.rows]
    place = {name: i for i, name in enumerate(reversed(list(dict.fromkeys(row["estimator"] for row in rows))))}
    figure = Figure(figsize=(11, 1.6 + 0.24 * len(place)), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True, width_ratios=(3, 2, 2))
    sizes = sorted({row["n"] for row in rows})
    shade = dict(zip(sizes, _shades(len(sizes)), strict=True))
    panels = (
        ("size5", "rejects at 5 %", 0.05),
        ("size1", "rejects at 1 %", 0.01),
        ("power_overconfident", "power", None),
    )
    for ax, (name, title, nominal) in zip(axes, panels, strict=True):
        if nominal is not None:
            ax.axvline(nominal, color=RED, lw=1)
        _dots(ax, rows, place, shade, name)
        ax.set(title=title, xlabel="share of data sets")
        ax.set_xlim(0, 1.02 if nominal is None else None)
    _page(figure, axes, list(place), shade, path, "* labels redrawn")


def _page(
    figure: Any, axes: Sequence[Any], names: Sequence[str], shade: Mapping[int, str], path: Path, note: str = ""
) -> None:
    """Names on the left, the sizes below, and onto the disk."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    first = axes[0]
    first.set_yticks(range(len(names)), names, fontsize=8)
    first.set_ylim(-0.7, len(names) - 0.3)
    for ax in axes:
        ax.grid(axis="x", color="#dddddd", lw=0.6)
        ax.set_axisbelow(True)
        ax.title.set_fontsize(10)
        ax.xaxis.label.set_fontsize(9)
        ax.tick_params(axis="both", length=0, labelsize=8)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
    handles = [first.plot([], [], "o", ms=4, color=color, label=f"n = {n:,}")[0] for n, color in shade.items()]
    handles += [first.plot([], [], " ", label=note)[0]] if note else []
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    FigureCanvasSVG(figure)
    with replacing(path, "TO801") as file:
        figure.savefig(file, format="svg", metadata={"Date": None})


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
    known = {3: ["#8fb3d9", "#123a63", RED], 4: ["#c3d6ea", "#8fb3d9", BLUE, "#123a63"]}
    return known.get(count, ["#8fb3d9", "#123a63"][:count] if count < 3 else [BLUE] * count)
