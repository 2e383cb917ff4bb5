"""What do lenses, estimators and tests see of the six predictions? Three panels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trueodds.core.atomic import replacing
from trueodds_studies.figures import BLUE, RED
from trueodds_studies.lenses.lens_tables import canonical_rows, more
from trueodds_studies.resumable_runs import Row

GRAY = "#9a9a9a"


def draw(cells: Sequence[Row], sets: int, path: Path) -> None:
    """ECE by lens with the exact error; estimators that are told apart; how often each test rejects, lens by lens."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.6), layout="constrained")
    by_lens, estimators, tests = figure.subplots(1, 3)
    _errors(by_lens, cells)
    _mann_whitney(estimators, cells)
    _rejections(tests, cells, sets)
    for ax in (by_lens, estimators, tests):
        ax.set_axisbelow(True)
        ax.grid(axis="x", color="#dddddd", lw=0.6)
        ax.tick_params(length=0, labelsize=8)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    FigureCanvasSVG(figure)
    with replacing(path, "TO801") as file:
        figure.savefig(file, format="svg", metadata={"Date": None})


def _errors(ax: Any, cells: Sequence[Row]) -> None:
    for place, cell in enumerate(reversed(cells)):
        row = next(row for row in cell["estimates"] if row["estimator"] == "ece")
        color = _color(cell["lens"])
        if row["low"] is not None:
            ax.hlines(place, row["low"], row["high"], color=color, lw=1.2)
        ax.plot(row["estimate"], place, "o", ms=4.5, color=color)
        ax.plot(row["noise floor"], place, "|", ms=9, color=color)
        ax.plot(cell["exact"], place, "x", ms=6, color="black")
    ax.set_yticks(range(len(cells)), [cell["lens"] for cell in reversed(cells)])
    ax.set_xlim(left=-0.004)
    ax.set_title("ECE by lens, 95 % interval", fontsize=10)
    ax.set_xlabel("cross: exact; tick: noise floor", fontsize=8)


def _mann_whitney(ax: Any, cells: Sequence[Row]) -> None:
    rows = [row for row in canonical_rows(cells, "estimates") if "told apart" in row][::-1]
    ax.axvline(0.5, color=GRAY, lw=1)
    ax.plot([row["told apart"] for row in rows], range(len(rows)), "o", ms=5, color=RED)
    ax.set_yticks(range(len(rows)), [row["estimator"] for row in rows])
    ax.set_xlim(0, 1.03)
    ax.set_title("canonical lens: told from a calibrated model", fontsize=10)
    ax.set_xlabel("share of pairs of data sets; 0.5: blind", fontsize=8)


def _rejections(ax: Any, cells: Sequence[Row], sets: int) -> None:
    names = list(dict.fromkeys(row["test"] for cell in cells for row in cell["tests"] if "rejects" in row))[::-1]
    place = {name: i for i, name in enumerate(names)}
    ax.axvspan(0, more(sets), color="#eeeeee", lw=0)
    for cell in cells:
        rows = [row for row in cell["tests"] if "rejects" in row]
        canonical = cell["lens"] == "canonical"
        ax.plot(
            [row["rejects"] for row in rows], [place[row["test"]] for row in rows], "o",
            ms=6 if canonical else 4, color=_color(cell["lens"]), alpha=1 if canonical else 0.45, zorder=3 if canonical else 2,
        )  # fmt: skip
    for name, color in (("canonical", RED), ("other lenses", BLUE)):
        ax.plot([], [], "o", ms=5, color=color, label=name)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlim(-0.03, 1.03)
    ax.set_title("tests that reject at 5 %", fontsize=10)
    ax.set_xlabel("share of data sets; gray: chance", fontsize=8)
    ax.legend(loc="center right", frameon=False, fontsize=8)


def _color(lens: str) -> str:
    return RED if lens == "canonical" else BLUE
