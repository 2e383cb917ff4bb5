"""Effects of depth, width, batch normalization and weight decay on the calibration of networks trained on MNIST."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds.core.progress import Progress
from trueodds_studies.common.data_files import hash_file
from trueodds_studies.common.mnist import MNIST_FILE, load_mnist_split
from trueodds_studies.common.required_torch import require_torch
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder
from trueodds_studies.network_factors import factor_effects
from trueodds_studies.network_factors.figure import draw_factors
from trueodds_studies.network_factors.network_designs import NetworkDesign, list_designs, measure_design


@dataclass(frozen=True)
class Plan:
    """Trainings of each network, and their rows and epochs."""

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
STATEMENTS_LEGEND = """From the lowest to the highest level. held: the 95 % interval of the paired differences excludes
0 on the side that the paper states for the ECE (the same sign is expected for the other measures). opposite: it
excludes 0 on the other side. undecided: it contains 0. excess log loss: log loss minus refinement."""
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
    where, place = make_folder(out), None if data is None else str(data)
    stamp = {MNIST_FILE: hash_file(MNIST_FILE, place)}
    load_mnist_split(place, plan.train_rows, plan.validation_rows, plan.test_rows, plan.seed)  # fails early
    designs = list_designs()
    tasks = [Cell(design, number, place) for number in range(plan.trainings) for design in designs]
    cells = run_cells("network_factors", tasks, measure_cell, plan, where, progress, stamp)
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
    if where is not None:
        finding.save(where)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw_factors(runs, where / "network_factors.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """Results of one training."""
    split = load_mnist_split(
        cell.data, plan.train_rows, plan.validation_rows, plan.test_rows, plan.seed, 1 + cell.number
    )
    network_seed = 1000 * plan.seed + cell.number
    return measure_design(cell.design, split, plan.epochs, plan.evaluate_every, network_seed)
