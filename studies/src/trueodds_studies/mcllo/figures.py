"""What do the study of MCLLO's power look like? Power beside its prediction, parameters, ECE, and sizes with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueodds_studies.mcllo.axes import panels, save_figure
from trueodds_studies.mcllo.power import PARAMETERS, predicted
from trueodds_studies.resumable_runs import Row

SHADES = ("#7f7f7f", "#9ec3e6", "#4f8cc9", "#1f5a96", "#0b2545")  # by shift, from none to the largest
FORMS = {"likelihood ratio": "#b5402a", "score": "#d99a2b", "score, redrawn": "#2f6da8"}
NAMES = {"gamma_1": "γ₁", "tau_1": "τ₁", "gamma_2": "γ₂", "tau_2": "τ₂"}


def powers(rows: Sequence[Row], path: Path) -> None:
    """Rejections at 5 and 1 % with their limits over n, one line per shift; lines are non-central χ²."""
    figure, axes = panels(1, 2, (10, 4.2), sharey=True)
    n = np.geomspace(min(row["n"] for row in rows), max(row["n"] for row in rows), 100)
    for ax, name, level in zip(axes.flat, ("5", "1"), (0.05, 0.01), strict=True):
        ax.axhline(level, color="#cccccc", lw=0.8)
        for delta, color in _shifts(rows):
            own = [row for row in rows if row["delta"] == delta]
            ax.plot(n, [predicted(size, delta, level)[1] for size in n], color=color, lw=1.2, label=f"δ = {delta:g}")
            _bars(ax, [row["n"] for row in own], own, (f"lrt{name}", f"lrt{name}_low", f"lrt{name}_high"), color)
            ax.plot([row["n"] for row in own], [row[f"score{name}"] for row in own], "x", ms=5, color=color)
        _by_rows(ax, rows, f"rejected at {name} %")
        ax.set(ylim=(-0.02, 1.02), title=f"at {name} %")
    handles = axes.flat[0].get_legend_handles_labels()[0]
    kinds = [axes.flat[0].plot([], [], mark, color="#555555", label=text)[0]
             for mark, text in (("-", "non-central χ²"), ("o", "likelihood ratio, 99 % limits"), ("x", "score"))]  # fmt: skip
    figure.legend(handles=[*handles, *kinds], loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_figure(figure, path)


def parameters(rows: Sequence[Row], path: Path) -> None:
    """Above the bias of each parameter with its 99 % limits, below the coverage of its interval with the same."""
    finite_rows = [row for row in rows if row["finite"]]
    figure, axes = panels(2, 4, (11, 5.4), sharex=True, sharey="row")
    for column, name in enumerate(PARAMETERS):
        bias, covers = axes[0, column], axes[1, column]
        bias.axhline(0, color="#cccccc", lw=0.8)
        covers.axhline(0.95, color="#cccccc", lw=0.8)
        for j, (delta, color) in enumerate(_shifts(finite_rows)):
            own = [row for row in finite_rows if row["delta"] == delta]
            x = np.array([row["n"] for row in own]) * 1.06 ** (j - 2)
            error = [2.576 * row[f"sd_{name}"] / np.sqrt(row["finite"]) for row in own]
            bias.errorbar(x, [row[f"bias_{name}"] for row in own], error, fmt="o", ms=3, lw=1, color=color)
            _bars(
                covers, x, own, tuple(f"{what}_{name}" for what in ("covers", "low", "high")), color, f"δ = {delta:g}"
            )
        bias.set_title(NAMES[name])
        _by_rows(covers, rows, "covered by 95 % interval" if column == 0 else "")
        bias.set_ylabel("bias" if column == 0 else "")
    figure.legend(
        *axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    save_figure(figure, path)


def errors(rows: Sequence[Row], path: Path) -> None:
    """ECE as stated, on the rows of the fit, and on new ones: quartiles at one n, and mean differences over n."""
    sizes = sorted({row["n"] for row in rows})
    middle = sizes[len(sizes) // 2 - 1] if len(sizes) > 1 else sizes[0]
    figure, (boxes, own, new) = panels(1, 3, (11, 4.2))
    places = {
        "before": ("as stated", "#7f7f7f"),
        "after": ("after, rows of the fit", "#d99a2b"),
        "new": ("after, new rows", "#2f6da8"),
    }
    for j, (name, (text, color)) in enumerate(places.items()):
        shown = [row for row in rows if row["n"] == middle and f"{name}_q1" in row]
        x = np.arange(len(shown)) + 0.22 * (j - 1)
        boxes.vlines(
            x, [row[f"{name}_q1"] for row in shown], [row[f"{name}_q3"] for row in shown], color=color, lw=5, alpha=0.45
        )
        boxes.plot(x, [row[f"{name}_q2"] for row in shown], "o", ms=4, color=color, label=text)
    boxes.set_xticks(range(len(list(_shifts(rows)))), [f"{delta:g}" for delta, _ in _shifts(rows)])
    boxes.set(xlabel="δ", ylabel="ECE", ylim=(0, None), title=f"n = {middle:,}: quartiles and medians")
    for ax, name, title in (
        (own, "after", "after − before, rows of the fit"),
        (new, "new", "after − before, new rows"),
    ):
        ax.axhline(0, color="#cccccc", lw=0.8)
        for delta, color in _shifts(rows):
            shown = [row for row in rows if row["delta"] == delta and name in row]
            gaps = [row[name] - row["before"] for row in shown]
            ax.plot([row["n"] for row in shown], gaps, "o-", ms=4, lw=1, color=color, label=f"δ = {delta:g}")
        _by_rows(ax, rows, "mean ECE")
        ax.set_title(title)
    ends = [ax.get_ylim() for ax in (own, new)]
    for ax in (own, new):
        ax.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
    handles = [handle for ax in (boxes, own) for handle in ax.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
    save_figure(figure, path)


def sizes(rows: Sequence[Row], path: Path) -> None:
    """Rejections at 5 and 1 % where every probability is right, with 99 % limits; a panel per level, a line per cell."""
    cells = list(dict.fromkeys((row["design"], row["K"], row["n"]) for row in rows))
    place = {cell: len(cells) - i for i, cell in enumerate(cells)}
    figure, axes = panels(1, 2, (10, 1.6 + 0.25 * len(cells)), sharey=True)
    for ax, name in zip(axes.flat, ("5", "1"), strict=True):
        ax.axvline(int(name), color="#cccccc", lw=1)
        for j, (form, color) in enumerate(FORMS.items()):
            own = [row for row in rows if row["test"] == form]
            y = [place[row["design"], row["K"], row["n"]] + 0.25 * (1 - j) for row in own]
            ax.hlines(
                y,
                [100 * row[f"low{name}"] for row in own],
                [100 * row[f"high{name}"] for row in own],
                color=color,
                lw=1,
            )
            ax.plot(
                [100 * row[f"size{name}"] for row in own],
                y,
                "o",
                ms=3,
                color=color,
                label=f"{form}{' by χ²' * (j < 2)}",
            )
        ax.set(xlabel="per cent of data sets", title=f"rejected at {name} %")
        ax.set_xlim(0, None)
    names = [f"{design}, K = {k}, n = {n:,}" for design, k, n in cells]
    axes.flat[0].set_yticks(list(place.values()), names, fontsize=8)
    axes.flat[0].set_ylim(0.3, len(cells) + 0.7)
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    save_figure(figure, path)


def _shifts(rows: Sequence[Row]) -> list[tuple[float, str]]:
    shifts = sorted({row["delta"] for row in rows})
    return [(delta, SHADES[round(i * (len(SHADES) - 1) / max(1, len(shifts) - 1))]) for i, delta in enumerate(shifts)]


def _bars(ax: Any, x: Any, rows: Sequence[Row], names: Sequence[str], color: str, label: str | None = None) -> None:
    """A rate with its limits."""
    middle, low, high = (np.array([row[name] for row in rows]) for name in names)
    ax.vlines(x, low, high, color=color, lw=1)
    ax.plot(x, middle, "o", ms=3.5, color=color, label=label)


def _by_rows(ax: Any, rows: Sequence[Row], ylabel: str) -> None:
    """A logarithmic axis of the numbers of rows."""
    from matplotlib.ticker import NullLocator

    sizes = sorted({row["n"] for row in rows})
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set(xlabel="rows", ylabel=ylabel)
