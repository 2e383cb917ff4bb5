"""Draw log loss, accuracy, calibration error and p-value by epoch, with one line per initialization."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueodds_studies.common.figure import BLUE, RED, make_panels, save_figure
from trueodds_studies.common.paired_differences import mean_interval
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.training.epoch_measures import ALPHA, lowest

PANELS = (
    (
        ("log loss", "Log loss (nats)"),
        ("accuracy", "Accuracy"),
        ("ECE, classes, 100", "ECE, all classes"),
        ("p, classes, 100", "p-value, all classes"),
    ),
    (
        ("refinement", "Log loss after temperature scaling"),
        ("temperature", "Temperature"),
        ("ECE, confidence", "ECE, confidence"),
        ("p, confidence", "p-value, confidence"),
    ),
)
NOTE = (
    "Lines: initializations, test images. Asterisks: lowest validation log loss. Band: 95 % interval of the mean over"
    " the initializations. Dotted: mean ECE of a calibrated model. Red: p = 5 %."
)


def draw_epochs(runs: Sequence[Row], path: Path) -> None:
    """Draw the four quantities of the paper's figure 3, and four further ones below."""
    figure, axes = make_panels(2, 4, (13, 5.8), sharex=True)
    figure.supxlabel(NOTE, fontsize=8, x=0.01, ha="left")
    for line, panels in zip(axes, PANELS, strict=True):
        for ax, (key, title) in zip(line, panels, strict=True):
            ax.set_title(title, fontsize=10)
            _draw_panel(ax, runs, key)
    for ax in axes[1]:
        ax.set_xlabel("Epoch", fontsize=9)
    save_figure(figure, path)


def _draw_panel(ax: Any, runs: Sequence[Row], key: str) -> None:
    """Draw a line per initialization with its asterisk, and the band of the mean."""
    epochs = [row["epoch"] for row in runs[0]["rows"]]
    values = np.array([[row[key] for row in run["rows"]] for run in runs])
    for run, line in zip(runs, values, strict=True):
        ax.plot(epochs, line, color=BLUE, lw=0.7, alpha=0.55)
        chosen = lowest(run["rows"], "validation log loss")
        ax.plot(
            epochs[chosen], line[chosen], "*", ms=9, color="#FFD23F", mec="#222222", mew=0.7, zorder=4, clip_on=False
        )
    if key.startswith("p, "):
        ax.set_yscale("log")
        ax.axhline(ALPHA, color=RED, lw=1)
        ax.set_ylim(min(float(values.min()), 0.01) / 1.3, 1.3)
        return
    _draw_band(ax, epochs, values)
    if key.startswith("ECE"):
        noise_floor = np.mean([[row[key.replace("ECE", "noise floor")] for row in run["rows"]] for run in runs], axis=0)
        ax.plot(epochs, noise_floor, ls=(0, (1, 1.4)), lw=1.4, color="#666666")
    if key == "temperature":
        ax.axhline(1, color="#999999", lw=1, zorder=1)
    _limit_to_later_epochs(ax, values)
    if key.startswith("ECE"):
        ax.set_ylim(bottom=0)


def _draw_band(ax: Any, epochs: Sequence[int], values: Any) -> None:
    intervals = [mean_interval(column)[1] for column in values.T]
    ax.plot(epochs, values.mean(axis=0), color="#123a63", lw=1.8)
    if all(interval is not None for interval in intervals):
        low, high = ([getattr(interval, end) for interval in intervals] for end in ("low", "high"))
        ax.fill_between(epochs, low, high, color=BLUE, alpha=0.25, lw=0)


def _limit_to_later_epochs(ax: Any, values: Any) -> None:
    """Let the first epoch leave the panel if it would compress all others."""
    later = values[:, 1:]
    if later.size == 0:
        return
    low, high = float(later.min()), float(later.max())
    margin = 0.08 * (high - low) or 0.01
    ax.set_ylim(low - margin, high + margin)
