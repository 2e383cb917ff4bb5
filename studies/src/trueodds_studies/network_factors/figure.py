"""Draw calibration against depth, width, batch normalization and weight decay, and test loss and error by epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trueodds_studies.common.figure import BLUE, RED, make_panels, save_figure
from trueodds_studies.common.paired_differences import mean_interval
from trueodds_studies.network_factors.factor_effects import FACTOR_NAMES, Runs
from trueodds_studies.network_factors.network_designs import LEVELS, design_at

CURVES = {
    "Baseline": design_at("depth", 4),
    "Depth 8": design_at("depth", 8),
    "Width 64": design_at("width", 64),
    "No weight decay": design_at("weight_decay", 0.0),
}
CURVE_COLORS = ("#222222", BLUE, "#8a6fb0", RED)
ERROR_COLOR = "#e39a3b"
NOTE = (
    "Above: test images; thin lines are trainings, bars 95 % intervals of their mean; dotted: mean ECE of a calibrated"
    " model. Below: means over the trainings, by epoch; the learning rate is reduced at half and at three quarters."
)


def draw_factors(runs: Runs, path: Path) -> None:
    """Draw ECE and error by level of each factor (figure 2 of the paper), and curves by epoch (figure 3)."""
    figure, axes = make_panels(2, 4, (13, 6.2))
    figure.supxlabel(NOTE, fontsize=8, x=0.01, ha="left")
    for ax, factor in zip(axes[0], LEVELS, strict=True):
        _draw_factor(ax, runs, factor)
    axes[0, 0].set_ylabel("ECE, error", fontsize=9)
    handles, names = axes[0, 0].get_legend_handles_labels()
    axes[0, 0].legend(handles, names, frameon=False, fontsize=8)
    for ax, (name, design), color in zip(axes[1], CURVES.items(), CURVE_COLORS, strict=True):
        _draw_curves(ax, runs, design, color)
        ax.set_title(f"{name}, by epoch", fontsize=10)
        ax.set_xlabel("Epoch", fontsize=9)
    save_figure(figure, path)


def _draw_factor(ax: Any, runs: Runs, factor: str) -> None:
    levels = LEVELS[factor]
    positions = np.arange(len(levels))
    max_mean = 0.0
    for key, color in (("ECE", BLUE), ("error", ERROR_COLOR)):
        values = np.array([[cell[key] for cell in runs[design_at(factor, level)]] for level in levels])
        ax.plot(positions, values, color=color, lw=0.6, alpha=0.4)
        means = [mean_interval(row) for row in values]
        max_mean = max(max_mean, *(mean for mean, _ in means))
        ends = [[mean - interval.low, interval.high - mean] for mean, interval in means if interval is not None]
        errors = np.array(ends).T if len(ends) == len(means) else None
        ax.errorbar(
            positions, [mean for mean, _ in means], yerr=errors, color=color, lw=1.8, marker="o", ms=4, label=key
        )
    noise_floors = [np.mean([cell["noise floor"] for cell in runs[design_at(factor, level)]]) for level in levels]
    ax.plot(positions, noise_floors, color=BLUE, lw=1.2, ls=(0, (1, 1.4)))
    ax.set_xticks(positions, [("no", "yes")[level] if isinstance(level, bool) else f"{level:g}" for level in levels])
    ax.set_title(FACTOR_NAMES[factor].capitalize(), fontsize=10)
    ax.set_ylim(0, 1.25 * max_mean)


def _draw_curves(ax: Any, runs: Runs, design: Any, color: str) -> None:
    """Test log loss on the left axis, and error on the right one."""
    curves = [cell["curve"] for cell in runs[design]]
    epochs = [row["epoch"] for row in curves[0]]
    right = ax.twinx()
    for axis, key, line_color in ((ax, "log loss", color), (right, "error", ERROR_COLOR)):
        values = np.array([[row[key] for row in curve] for curve in curves])
        axis.plot(epochs, values.mean(axis=0), color=line_color, lw=1.8)
        late = values.mean(axis=0)[len(epochs) // 2 :]
        axis.set_ylim(0, 2 * float(late.max()))
    ax.set_ylabel("log loss", fontsize=9, color=color)
    right.set_ylabel("error", fontsize=9, color=ERROR_COLOR)
    right.tick_params(length=0, labelsize=8)
    right.spines["top"].set_visible(False)
