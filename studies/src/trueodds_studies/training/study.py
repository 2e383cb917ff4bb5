"""Calibration of LeNet on MNIST during training, and regularized losses compared with temperature scaling."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds.core.progress import Progress
from trueodds_studies.common.data_files import hash_file
from trueodds_studies.common.mnist import MNIST_FILE, load_mnist_split
from trueodds_studies.common.required_torch import require_torch
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder
from trueodds_studies.training import epoch_tables
from trueodds_studies.training.epoch_measures import measure_epochs
from trueodds_studies.training.figure import draw_epochs
from trueodds_studies.training.loss_comparison import (
    LOSSES,
    loss_table,
    measure_losses,
    strength_counts,
    summarize_losses,
)


@dataclass(frozen=True)
class Plan:
    """Initializations of the first experiment, trainings of the second, and the rows and epochs of both."""

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
    where, place = make_folder(out), None if data is None else str(data)
    stamp = {MNIST_FILE: hash_file(MNIST_FILE, place)}
    load_mnist_split(place, plan.train_rows, plan.validation_rows, plan.test_rows, plan.seed)  # fails early
    counts = {"epochs": plan.initializations, "losses": plan.trainings}
    tasks = [Cell(experiment, number, place) for experiment, count in counts.items() for number in range(count)]
    cells = run_cells("training", tasks, measure_cell, plan, where, progress, stamp)
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
    if where is not None:
        finding.save(where)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw_epochs(runs, where / "training.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """Results of one training run, or of one training with each loss."""
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
