"""Tables and summaries by epoch over several initializations: the chosen epoch, and where calibration is rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueodds_studies.common.mean_intervals import format_mean
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.study_result import format_count
from trueodds_studies.training.epoch_measures import (
    ALPHA,
    CONSISTENCY_TESTS,
    TEST_DESCRIPTIONS,
    argmin_row,
    first_lasting_rejection,
)

CHOICES = {
    "lowest log loss": "validation log loss",
    "lowest refinement": "validation refinement",
    "last": None,
}
"""Ways to choose an epoch, with the measure of the validation rows that is lowest there; None is the last epoch."""

CHOICE_LEGEND = """{test:,} test images. {runs} initializations; choice: the epoch with the lowest validation log loss,
the one with the lowest validation log loss after temperature scaling (refinement), and the last epoch. T: temperature
fitted on the validation rows. log loss, refinement: before and after temperature scaling. ECE and p: total variation
and consistency test, by lens: all classes with trees of at least 10 and of at least 100 rows per leaf, three groups of
classes (trees of at least 100 rows), and confidence (15 uniform bins). p scaled: the same after temperature scaling."""
CHOICE_MEASURES = {
    "temperature": ("T", 1, 2),
    "log loss": ("log loss", 1, 4),
    "refinement": ("refinement", 1, 4),
    "accuracy": ("accuracy %", 100, 2),
    "ECE, classes, 100": ("ECE, all classes", 1, 4),
    "scaled ECE, classes, 100": ("scaled", 1, 4),
    "noise floor, classes, 100": ("noise floor", 1, 4),
    "ECE, confidence": ("ECE, confidence", 1, 4),
    "scaled ECE, confidence": ("scaled, confidence", 1, 4),
    "noise floor, confidence": ("noise floor, confidence", 1, 4),
}
"""By measure of an epoch: the column, the factor that it is multiplied by, and the digits."""
MEANS_LEGEND = """Means [95 % t intervals] over the initializations, test images. T: temperature fitted on validation
images. refinement: log loss after temperature scaling. ECE: total variation, all classes with trees of at least 100
rows per leaf, and confidence with 15 uniform bins; scaled: after temperature scaling; noise floor: mean for a
calibrated model. difference: to the epoch with the lowest validation log loss, paired by initialization."""
TESTED_ROWS = {
    "": "test",
    "scaled ": "test, temperature scaling",
    "validation ": "validation",
}
"""The rows that are tested in words, by the prefix of the keys of their p-values."""
EPOCHS_LEGEND = """Mean [95 % t interval over the initializations]. T: temperature fitted on validation rows.
rejected: initializations with p ≤ 0.05. classes, classes 100: all classes, trees of at least 10 and 100 rows per leaf;
groups: three groups of classes, trees of at least 100 rows; confidence: 15 uniform bins."""
REJECTION_LEGEND = """first epoch: the one from which calibration is rejected (p ≤ 0.05) at every epoch to the last
one, for each initialization; –: not rejected at the last epoch. lowest log loss, lowest refinement, last, all
epochs: number of rejections at the chosen epochs, and at all. All initializations are tested on the same images, so
their numbers are not independent. The epochs are chosen and the temperature is fitted on the validation images."""


def choose_epochs(run: Row) -> dict[str, Any]:
    """The measures of the epoch that each of `CHOICES` selects in one training."""
    rows = run["rows"]
    return {name: rows[-1] if key is None else rows[argmin_row(rows, key)] for name, key in CHOICES.items()}


def choice_table(runs: Sequence[Row]) -> tuple[Row, ...]:
    """One row per choice and initialization, with the numbers of the test images."""
    table = []
    for choice in CHOICES:
        for run in runs:
            row = choose_epochs(run)[choice]
            entry = {"choice": choice, "run": run["run"], "epoch": row["epoch"], "T": row["temperature"]}
            entry |= {"log loss": row["log loss"], "refinement": row["refinement"]}
            entry |= {"accuracy %": 100 * row["accuracy"]}
            for name in CONSISTENCY_TESTS:
                entry |= {f"ECE, {name}": row[f"ECE, {name}"], f"p, {name}": row[f"p, {name}"]}
            entry |= {f"p scaled, {name}": row[f"scaled p, {name}"] for name in ("classes, 100", "confidence")}
            table.append(entry)
    return tuple(table)


def choice_means(runs: Sequence[Row]) -> tuple[Row, ...]:
    """One row per choice: means over the initializations, with paired differences to the lowest log loss."""
    table = []
    choices = [choose_epochs(run) for run in runs]
    for choice in CHOICES:
        rows = [chosen[choice] for chosen in choices]
        entry: dict[str, Any] = {"choice": choice, "epochs": _format_epochs(rows)}
        for key, (column, factor, digits) in CHOICE_MEASURES.items():
            entry[column] = format_mean([factor * row[key] for row in rows], digits)
        for key in ("log loss", "refinement"):
            differences = [row[key] - chosen["lowest log loss"][key] for row, chosen in zip(rows, choices, strict=True)]
            if choice != "lowest log loss":
                entry[f"difference of {key}"] = format_mean(differences, 4, sign=True)
        table.append(entry)
    return tuple(table)


def epoch_table(runs: Sequence[Row]) -> tuple[Row, ...]:
    """One row per epoch, with means over the initializations."""
    table = []
    for epoch_rows in zip(*(run["rows"] for run in runs), strict=True):
        entry: dict[str, Any] = {"epoch": epoch_rows[0]["epoch"]}
        for key, digits in (("log loss", 4), ("refinement", 4), ("temperature", 2), ("ECE, classes, 100", 4)):
            entry["T" if key == "temperature" else key] = format_mean([row[key] for row in epoch_rows], digits)
        entry["ECE, confidence"] = format_mean([row["ECE, confidence"] for row in epoch_rows], 4)
        entry["accuracy %"] = format_mean([100 * row["accuracy"] for row in epoch_rows], 2)
        for name in CONSISTENCY_TESTS:
            entry[f"rejected, {name}"] = count_rejected(epoch_rows, f"p, {name}")
        table.append(entry)
    return tuple(table)


def rejection_table(runs: Sequence[Row]) -> tuple[Row, ...]:
    """One row per test and kind of rows: epoch from which calibration is rejected to the end, and rejection counts."""
    n_epochs = len(runs[0]["rows"])
    choices = [choose_epochs(run) for run in runs]
    table = []
    for prefix, text in TESTED_ROWS.items():
        for name, lens in TEST_DESCRIPTIONS.items():
            key = f"{prefix}p, {name}"
            starts = [first_lasting_rejection(run["rows"], name, prefix) for run in runs]
            table.append(
                {
                    "predictions": text,
                    "lens": lens,
                    "first epoch": ", ".join("–" if start is None else str(start) for start in starts),
                    **{choice: count_rejected([chosen[choice] for chosen in choices], key) for choice in CHOICES},
                    "all epochs": f"{sum(count_rejected(run['rows'], key) for run in runs)} of {n_epochs * len(runs)}",
                }
            )
    return tuple(table)


def count_rejected(rows: Sequence[Row], key: str) -> int:
    """The number of rows whose p-value is at most 5 %."""
    return sum(row[key] <= ALPHA for row in rows)


def summarize(runs: Sequence[Row]) -> str:
    """The epochs chosen by log loss and by refinement, rejections of calibration there, and differences in log loss."""
    choices = [choose_epochs(run) for run in runs]
    lowest_loss = [choice["lowest log loss"] for choice in choices]
    lowest_refinement = [choice["lowest refinement"] for choice in choices]
    difference = [b["refinement"] - a["refinement"] for a, b in zip(lowest_loss, lowest_refinement, strict=True)]
    difference_unscaled = [b["refinement"] - a["log loss"] for a, b in zip(lowest_loss, lowest_refinement, strict=True)]
    return (
        f"The validation log loss is lowest at epochs {_format_epochs(lowest_loss)} of {len(runs[0]['rows'])}. There,"
        f" calibration is rejected on the test images, of {format_count(len(runs), 'initialization')}, in"
        f" {_list_rejected(lowest_loss, '')}; after temperature scaling in {_list_rejected(lowest_loss, 'scaled ')}."
        f" Choosing by refinement selects epochs {_format_epochs(lowest_refinement)};"
        f" with temperature scaling, its test log loss differs by {format_mean(difference, 5, sign=True)} from that of"
        f" early stopping with temperature scaling, and by {format_mean(difference_unscaled, 5, sign=True)} from that"
        " without."
    )


def summarize_rejection(runs: Sequence[Row]) -> str:
    """By test: in how many trainings calibration is rejected to the last epoch, and the epochs where that begins."""
    phrases = []
    for name in CONSISTENCY_TESTS:
        starts = [start for run in runs if (start := first_lasting_rejection(run["rows"], name)) is not None]
        when = f", starting at epoch {_format_range(starts)}" if starts else ""
        phrases.append(f"{TEST_DESCRIPTIONS[name]}: {len(starts)} of {len(runs)}{when}")
    return f"Initializations in which calibration is rejected at every epoch to the last: {'; '.join(phrases)}."


def _list_rejected(rows: Sequence[Row], prefix: str) -> str:
    return ", ".join(
        f"{count_rejected(rows, f'{prefix}p, {name}')} ({lens})" for name, lens in TEST_DESCRIPTIONS.items()
    )


def _format_epochs(rows: Sequence[Row]) -> str:
    return _format_range([row["epoch"] for row in rows])


def _format_range(values: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys(str(value) for value in (min(values), max(values))))
