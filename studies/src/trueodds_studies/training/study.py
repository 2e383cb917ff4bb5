"""Calibration of LeNet on MNIST by epoch, and losses that regularize calibration compared with temperature scaling."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
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
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder
from trueodds_studies.training import epoch_tables
from trueodds_studies.training.epoch_measures import ALPHA, argmin_row, measure_epochs
from trueodds_studies.training.loss_comparison import (
    LOSSES,
    loss_table,
    measure_losses,
    strength_counts,
    summarize_losses,
)


@dataclass(frozen=True)
class Plan:
    """Number of initializations of the first experiment and of trainings of the second, with rows and epochs of both.

    Settings that begin with `loss_` belong to the second experiment, which compares losses.
    """

    initializations: int = 6
    epochs: int = 20
    train_rows: int = 50_000
    validation_rows: int = 10_000
    trainings: int = 5
    loss_epochs: int = 50
    loss_train_rows: int = 3_000
    loss_validation_rows: int = 3_000
    test_rows: int = 10_000
    redraws: int = 999
    seed: int = 0


QUICK = Plan(
    initializations=2,
    epochs=3,
    train_rows=2000,
    validation_rows=500,
    trainings=2,
    loss_epochs=2,
    loss_train_rows=500,
    loss_validation_rows=300,
    test_rows=1000,
    redraws=99,
)


@dataclass(frozen=True)
class Cell:
    """One training run of the first experiment, or all losses with one seed of the second."""

    experiment: str  # "epochs" or "losses"
    number: int
    data: str | None  # folder of the data file, which does not change the results

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.experiment} | {self.number}"


def training(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """LeNet on MNIST: log loss, accuracy, and calibration by epoch, and losses that regularize calibration.

    The first experiment trains several initializations on the same images. The epoch is chosen on
    validation images, and every number is one of the test images. The second trains on few images,
    with five losses, each without and with temperature scaling. Source: Vaicenavicius et al. (2019), figure 3.
    """
    require_torch("training")
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder, data_folder = make_folder(out), None if data is None else str(data)
    file_hashes = {MNIST_FILE: hash_file(MNIST_FILE, data_folder)}
    load_mnist_split(data_folder, plan.train_rows, plan.validation_rows, plan.test_rows, plan.seed)  # fails early
    counts = {"epochs": plan.initializations, "losses": plan.trainings}
    tasks = [Cell(experiment, number, data_folder) for experiment, count in counts.items() for number in range(count)]
    cells = run_cells("training", tasks, measure_cell, plan, folder, progress, file_hashes)
    runs, comparisons = cells[: plan.initializations], cells[plan.initializations :]
    also = tuple(
        StudyResult(f"training.{name}", sentence, rows, plan.__dict__, legend)
        for name, sentence, rows, legend in _further_tables(runs, comparisons, plan)
    )
    finding = StudyResult(
        "training",
        epoch_tables.summarize(runs),
        epoch_tables.choice_table(runs),
        plan.__dict__,
        epoch_tables.CHOICE_LEGEND.format(runs=len(runs), test=plan.test_rows),
        also,
    )
    if folder is not None:
        finding.save(folder)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw_epochs(runs, folder / "training.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """Measures of every epoch of one training, or of one training with each loss."""
    network_seed = 1000 * plan.seed + cell.number
    if cell.experiment == "epochs":
        split = load_mnist_split(cell.data, plan.train_rows, plan.validation_rows, plan.test_rows, plan.seed)
        return {
            "run": cell.number + 1,
            "rows": measure_epochs(split, plan.epochs, plan.redraws, network_seed, plan.seed),
        }
    split = load_mnist_split(
        cell.data, plan.loss_train_rows, plan.loss_validation_rows, plan.test_rows, plan.seed, 1 + cell.number
    )
    return {"run": cell.number + 1, "rows": measure_losses(split, plan.loss_epochs, LOSSES, network_seed)}


LOSSES_LEGEND = """Means over {runs} trainings of {train:,} images each (another sample, initialization, and order of
batches each time), evaluated on the same {test:,} test images. stage: the epoch with the lowest validation log loss, or
the last of {epochs}. T: temperature fitted on {validation:,} validation images. ECE: confidence, 15 uniform bins.
difference: to cross entropy with temperature scaling at the same stage, mean [95 % t interval over the trainings].
lower, higher: trainings in which the 95 % interval over the test images of that training excludes 0. The strength of a
loss is the one with the lowest validation log loss; without temperature at the lowest log loss: {strengths}."""


def _further_tables(
    runs: Sequence[Row], comparisons: Sequence[Row], plan: Plan
) -> tuple[tuple[str, str, tuple[Row, ...], str], ...]:
    """Name, sentence, rows and legend of each further table."""
    legend = LOSSES_LEGEND.format(
        runs=len(comparisons),
        train=plan.loss_train_rows,
        test=plan.test_rows,
        epochs=plan.loss_epochs,
        validation=plan.loss_validation_rows,
        strengths=strength_counts(comparisons, LOSSES),
    )
    return (
        (
            "choices",
            "Means over the initializations, by choice of the epoch.",
            epoch_tables.choice_means(runs),
            epoch_tables.MEANS_LEGEND,
        ),
        (
            "epochs",
            "Means over the initializations, by epoch, and the number of them in which calibration is rejected.",
            epoch_tables.epoch_table(runs),
            epoch_tables.EPOCHS_LEGEND,
        ),
        (
            "rejected",
            epoch_tables.summarize_rejection(runs),
            epoch_tables.rejection_table(runs),
            epoch_tables.REJECTION_LEGEND,
        ),
        ("losses", summarize_losses(comparisons), loss_table(comparisons), legend),
    )


FIGURE_PANELS = (
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
FIGURE_NOTE = (
    "Lines: initializations, test images. Asterisks: lowest validation log loss. Band: 95 % interval of the mean over"
    " the initializations. Dotted: mean ECE of a calibrated model. Red: p = 5 %."
)


def draw_epochs(runs: Sequence[Row], path: Path) -> None:
    """Draw the four quantities of figure 3 of Vaicenavicius et al. (2019), and four further ones below."""
    figure, axes = make_panels(2, 4, (13, 5.8), sharex=True)
    figure.supxlabel(FIGURE_NOTE, fontsize=8, x=0.01, ha="left")
    for line, panels in zip(axes, FIGURE_PANELS, strict=True):
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
        chosen = argmin_row(run["rows"], "validation log loss")
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
    """Draw the mean by epoch of values (initializations, epochs), with its 95 % interval."""
    intervals = [mean_interval(column)[1] for column in values.T]
    ax.plot(epochs, values.mean(axis=0), color="#123a63", lw=1.8)
    if all(interval is not None for interval in intervals):
        low, high = ([getattr(interval, end) for interval in intervals] for end in ("low", "high"))
        ax.fill_between(epochs, low, high, color=BLUE, alpha=0.25, lw=0)


def _limit_to_later_epochs(ax: Any, values: Any) -> None:
    """Scale the vertical axis to the epochs after the first, which may lie outside, so that changes are visible."""
    later = values[:, 1:]
    if later.size == 0:
        return
    low, high = float(later.min()), float(later.max())
    margin = 0.08 * (high - low) or 0.01
    ax.set_ylim(low - margin, high + margin)
