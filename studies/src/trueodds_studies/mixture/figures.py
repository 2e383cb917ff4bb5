"""What do the estimates look like beside the truth? Histograms, reliability diagrams with the true deviation, and rates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.binning.partition import Uniform
from trueodds.diagrams.reliability import Reliability
from trueodds.lenses.lens import as_lens
from trueodds_studies.figures import BLUE, RED
from trueodds_studies.mcllo.axes import panels, save_figure
from trueodds_studies.mixture.rates import MIN_ROWS_PER_BIN, gaps, narrow, noise
from trueodds_studies.mixture.simulation import Plan
from trueodds_studies.mixture.truth import KINDS, error, known, limit
from trueodds_studies.resumable_runs import Row

COLORS = {"uniform": BLUE, "equal-mass": "#c79a2b", "tree": "#5a9e5a"}
MARKS = {"uniform": "o", "equal-mass": "s", "tree": "^"}
ABOVE_COLOR, BELOW_COLOR, LINE_COLOR = "#9dbfdf", "#e0a898", "#333333"
ROWS = 10_000  # of a reliability diagram, as in the paper


def histograms(cells: Sequence[Row], model: str, kind: str, plan: Plan, path: Path) -> None:
    """A panel per number of rows and bins: estimates over the data sets, those above the truth in blue, below in red."""
    sizes = [n for n in plan.sizes if n in plan.drawn_sizes]
    tied = known(model).second == 0  # all predictions are one, and so are all bins
    every = plan.drawn_bins[:1] if tied else plan.drawn_bins
    at = {
        (cell["n"], row["bins"]): row["values"]
        for cell in cells
        if cell["model"] == model
        for row in cell["estimates"]
        if row["kind"] == kind and "values" in row
    }
    truth = error(known(model))
    figure, axes = panels(
        len(sizes), len(every), (1 + 2.5 * len(every), 0.7 + 1.9 * len(sizes)),
        sharex="row", sharey="row", squeeze=False,
    )  # fmt: skip
    for down, n in enumerate(sizes):
        all_values = np.concatenate([at[n, bins] for bins in every] + [[truth]])
        steps = np.linspace(all_values.min(), all_values.max() + 1e-9, 41)
        # The truth is an edge, so that no column holds estimates from both sides of it.
        steps = np.unique(np.append(steps, truth))
        for across, bins in enumerate(every):
            ax, values = axes[down, across], np.asarray(at[n, bins])
            parts = (values[values <= truth], values[values > truth])
            ax.hist(parts, bins=steps, stacked=True, color=(BELOW_COLOR, ABOVE_COLOR), lw=0)
            ax.axvline(truth, color=LINE_COLOR, lw=1.2)
            if not known(model).calibrated:
                ax.axvline(limit(known(model), kind, bins), color=RED, lw=1, ls=(0, (3, 2)))
            name = "any bins" if tied else f"{bins} bins" if kind == "uniform" else f"≤ {bins} leaves"
            ax.set_title(f"n = {n:,}, {name}: {(values > truth).mean():.0%} above", fontsize=9)
            ax.set_yticks([])
            ax.locator_params(axis="x", nbins=4)
    lines = "solid: truth; blue: too large" + ("" if known(model).calibrated else "; dashed: limit of these bins")
    figure.supxlabel(f"{model}, estimates; {lines}", fontsize=9)
    save_figure(figure, path)


def diagrams(models: Sequence[str], seed: int, path: Path) -> None:
    """A reliability diagram of 10,000 rows for each model, with the deviation that is true drawn over it."""
    figure, axes = panels(1, len(models), (4.6 * len(models), 3.9), squeeze=False)
    recipe = Reliability(partition=Uniform(20), level=0.9, style="deviation")
    for ax, name in zip(axes.flat, models, strict=True):
        model = known(name)
        rows = model.design.rows(np.random.default_rng([seed, ROWS]), ROWS)
        recipe(as_lens("positive").views(rows)).draw(ax)
        if model.second == 0:
            ax.plot([0.5], [0.0], "o", ms=9, mfc="none", mec=RED, mew=1.3, zorder=5)
        else:
            p = np.linspace(float(rows.p.min()), float(rows.p.max()), 400)
            ax.plot(p, model.comes(p) - p, color=RED, lw=1.3, zorder=5)
        ax.set_title(f"{name}; red: the true deviation", fontsize=9)
    save_figure(figure, path)


def speeds(flat: Sequence[Row], path: Path) -> None:
    """What chance adds over bins per row, calibrated and not, and what bins hide over bins; lines have the expected slopes."""
    figure, axes = panels(1, 3, (12, 4))
    for ax, name, power in ((axes[0], "perfect", 0.5), (axes[1], "uncalibrated", 1.0)):
        for kind in KINDS:
            rows = [row for row in flat if (row["model"], row["kind"]) == (name, kind)]
            rows = [row for row in rows if row["n"] >= MIN_ROWS_PER_BIN * row["bins"]]
            rows = rows if power == 0.5 else [row for row in rows if narrow(row)]
            shown = [(row["bins"] / row["n"], noise(row, known(name))) for row in rows]
            shown = [(x, y) for x, y in shown if y > 0]
            if shown:
                ax.plot(*zip(*shown, strict=True), MARKS[kind], ms=4, color=COLORS[kind], alpha=0.8)
        _slope(ax, power)
        ax.set(xscale="log", yscale="log", xlabel="bins / n", title=f"chance adds, {name} model")
    for kind in KINDS:
        hides = gaps(known("uncalibrated"), kind)
        axes[2].plot(list(hides), list(hides.values()), MARKS[kind], ms=2.5, color=COLORS[kind], alpha=0.8, label=kind)
    _slope(axes[2], -2.0)
    axes[2].set(xscale="log", yscale="log", xlabel="bins", title="bins hide, uncalibrated model")
    for ax in axes:
        ax.tick_params(which="minor", labelbottom=False, labelleft=False)
    figure.legend(*axes[2].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_figure(figure, path)


def _slope(ax: Any, power: float) -> None:
    """A line of the expected slope through the middle of the points, as high as they are on average."""
    lines = [artist for artist in ax.lines if len(artist.get_xdata())]
    if not lines:
        return
    x = np.log(np.concatenate([np.asarray(artist.get_xdata(), dtype=float) for artist in lines]))
    y = np.log(np.concatenate([np.asarray(artist.get_ydata(), dtype=float) for artist in lines]))
    ends = np.array([x.min(), x.max()])
    line = np.exp(y.mean() + power * (ends - x.mean()))
    ax.plot(np.exp(ends), line, color=LINE_COLOR, lw=1, label="slope as expected")
