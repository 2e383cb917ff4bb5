"""Effects of depth, width, batch normalization and weight decay on the calibration of networks trained on MNIST."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.progress import Progress
from trueodds_studies.common.data_files import hash_file
from trueodds_studies.common.figures import BLUE, RED, make_panels, save_figure
from trueodds_studies.common.mean_intervals import mean_interval
from trueodds_studies.common.mnist import MNIST_FILE, load_mnist_split
from trueodds_studies.common.network_training import require_torch
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder
from trueodds_studies.network_factors import factor_effects
from trueodds_studies.network_factors.factor_effects import FACTOR_NAMES, Runs
from trueodds_studies.network_factors.network_designs import (
    LEVELS,
    NetworkDesign,
    design_at,
    list_designs,
    measure_design,
)


@dataclass(frozen=True)
class Plan:
    """Number of trainings of each network, and their rows and epochs."""

    trainings: int = 6
    epochs: int = 60
    evaluate_every: int = 5
    train_rows: int = 2000
    validation_rows: int = 2000
    test_rows: int = 10_000
    seed: int = 0


QUICK = Plan(trainings=2, epochs=3, evaluate_every=1, train_rows=300, validation_rows=200, test_rows=500)


@dataclass(frozen=True)
class Cell:
    """One training of one network."""

    design: NetworkDesign
    number: int
    data: str | None  # folder of the data file, which does not change the results

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.design} | {self.number}"


LEGEND = """Means [95 % t intervals] over {trainings} trainings with {rows:,} images each (another sample,
initialization, and order of batches each time), after {epochs} epochs, on the same {test:,} test images. ECE:
confidence, 15 uniform bins; noise floor: its mean for a calibrated model. overconfidence: mean confidence minus
accuracy. T: temperature fitted on {validation:,} validation images. refinement: log loss after temperature scaling."""
EFFECTS_LEGEND = """Higher minus lower level, with all other factors as in the baseline: mean [95 % t interval] of the
paired differences of {trainings} trainings. excess log loss: log loss minus log loss after temperature scaling."""
STATEMENTS_LEGEND = """From the lowest to the highest level. confirmed: the 95 % interval of the paired differences
excludes 0 on the side that the paper states for the ECE (the same sign is expected for the other measures).
opposite: it excludes 0 on the other side. undecided: it contains 0. excess log loss: log loss minus refinement."""
OVERFIT_LEGEND = """Changes of the test images from the epoch with the lowest validation log loss (of those evaluated,
every {every} epochs) to the last one, mean [95 % t interval] over the trainings."""


def network_factors(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Small convolutional networks on MNIST: calibration by depth, width, batch normalization and weight decay.

    One factor at a time differs from a baseline. Every network is trained several times, and
    effects are paired by the seed. Source: Guo et al. (2017), figures 2 and 3.
    """
    require_torch("network_factors")
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder, data_folder = make_folder(out), None if data is None else str(data)
    file_hashes = {MNIST_FILE: hash_file(MNIST_FILE, data_folder)}
    load_mnist_split(data_folder, plan.train_rows, plan.validation_rows, plan.test_rows, plan.seed)  # fails early
    designs = list_designs()
    tasks = [Cell(design, number, data_folder) for number in range(plan.trainings) for design in designs]
    cells = run_cells("network_factors", tasks, measure_cell, plan, folder, progress, file_hashes)
    runs = {design: cells[i :: len(designs)] for i, design in enumerate(designs)}
    tables = (
        (
            "statements",
            "Statements of Guo et al. (2017), and our results.",
            factor_effects.statement_table(runs),
            STATEMENTS_LEGEND,
        ),
        (
            "effects",
            "Effects of each factor.",
            factor_effects.effect_table(runs),
            EFFECTS_LEGEND.format(trainings=plan.trainings),
        ),
        (
            "overfit",
            "Log loss and error after the epoch with the lowest log loss.",
            factor_effects.overfit_table(runs),
            OVERFIT_LEGEND.format(every=plan.evaluate_every),
        ),
    )
    also = tuple(
        StudyResult(f"network_factors.{name}", sentence, rows, plan.__dict__, legend)
        for name, sentence, rows, legend in tables
    )
    legend = LEGEND.format(
        trainings=plan.trainings,
        rows=plan.train_rows,
        epochs=plan.epochs,
        test=plan.test_rows,
        validation=plan.validation_rows,
    )
    rows = factor_effects.design_table(runs)
    finding = StudyResult("network_factors", factor_effects.summarize(runs), rows, plan.__dict__, legend, also)
    if folder is not None:
        finding.save(folder)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw_factors(runs, folder / "network_factors.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """Results of one training."""
    split = load_mnist_split(
        cell.data, plan.train_rows, plan.validation_rows, plan.test_rows, plan.seed, 1 + cell.number
    )
    network_seed = 1000 * plan.seed + cell.number
    return measure_design(cell.design, split, plan.epochs, plan.evaluate_every, network_seed)


DRAWN_DESIGNS = {
    "Baseline": design_at("depth", 4),
    "Depth 8": design_at("depth", 8),
    "Width 64": design_at("width", 64),
    "No weight decay": design_at("weight_decay", 0.0),
}
CURVE_COLORS = ("#222222", BLUE, "#8a6fb0", RED)
ERROR_COLOR = "#e39a3b"
FIGURE_NOTE = (
    "Above: test images; thin lines are trainings, bars 95 % intervals of their mean; dotted: mean ECE of a calibrated"
    " model. Below: means over the trainings, by epoch; the learning rate is reduced at half and at three quarters."
)


def draw_factors(runs: Runs, path: Path) -> None:
    """Draw ECE and error by level of each factor, as in figure 2 of Guo et al. (2017), and by epoch, as in figure 3."""
    figure, axes = make_panels(2, 4, (13, 6.2))
    figure.supxlabel(FIGURE_NOTE, fontsize=8, x=0.01, ha="left")
    for ax, factor in zip(axes[0], LEVELS, strict=True):
        _draw_factor(ax, runs, factor)
    axes[0, 0].set_ylabel("ECE, error", fontsize=9)
    handles, names = axes[0, 0].get_legend_handles_labels()
    axes[0, 0].legend(handles, names, frameon=False, fontsize=8)
    for ax, (name, design), color in zip(axes[1], DRAWN_DESIGNS.items(), CURVE_COLORS, strict=True):
        _draw_curves(ax, runs, design, color)
        ax.set_title(f"{name}, by epoch", fontsize=10)
        ax.set_xlabel("Epoch", fontsize=9)
    save_figure(figure, path)


def _draw_factor(ax: Any, runs: Runs, factor: str) -> None:
    """Draw ECE and error by level of one factor: single trainings, means with intervals, and noise floors."""
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


def _draw_curves(ax: Any, runs: Runs, design: NetworkDesign, color: str) -> None:
    """Draw mean test log loss by epoch on the left axis, and mean error on the right one."""
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
