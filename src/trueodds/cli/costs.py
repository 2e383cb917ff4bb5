"""The option --cost: read the costs of wrong decisions from a CSV file, for the methods that use them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trueodds.core.errors import InputError

COST = click.option(
    "--cost",
    "cost_path",
    metavar="F",
    help="CSV file of costs; first column: names of the actions; header: names of the classes.",
)
_COST_TABLE_REMEDY = "Write a row per action and a column per class, such as: action,no,yes / wait,0,4 / treat,1,0."


@dataclass(frozen=True, slots=True)
class CostTable:
    """The costs of each action for each true class, as a file has them."""

    class_names: list[str] | None  # names of the columns; None if the file has no header
    actions: list[str] | None  # names of the rows; None if the file does not name them
    costs: list[list[float]]  # a row per action, a column per class


def read_costs(data: Any, path: str | None, mode: str | None, weight_kind: str | None) -> tuple[Any, dict[str, Any]]:
    """Return the data and the settings `cost` and `actions`, with costs in the order of the classes of the data.

    Without a path, the data are returned unread, and there are no settings. Otherwise they are read in `mode`, because
    only then are the classes known; rows in memory are returned as a source, so that they are read only once.
    """
    if path is None:
        return data, {}
    table = _read_cost_table(path)
    from trueodds.api.collect_or_tally import resolve_data
    from trueodds.data.predictions import Predictions
    from trueodds.io.source import InMemorySource

    rows = resolve_data(data, mode, weight_kind)
    if isinstance(rows, Predictions):
        data = InMemorySource(rows, rows.n, name=data.name)  # the name of the file, and not that rows are in memory
    costs = _costs_by_class(table, [str(name) for name in rows.classes], path)
    return data, {"cost": costs} | ({"actions": table.actions} if table.actions else {})


def _costs_by_class(table: CostTable, classes: list[str], path: str) -> list[list[float]]:
    """Return the costs with the columns in the order of these classes; raise TO608 if they are other classes."""
    if table.class_names is None:
        if [f"{cost:g}" for cost in table.costs[0]] == classes:
            raise _cost_table_error(path, "a first line that may be names of classes or costs")
        if len(table.costs[0]) != len(classes):
            raise _cost_table_error(path, f"{len(table.costs[0])} columns of costs for {len(classes)} classes")
        return table.costs
    if sorted(table.class_names) != sorted(classes):
        raise InputError(
            "TO608",
            "The costs and the rows name different classes.",
            f"{', '.join(table.class_names)} in {path}, {', '.join(classes)} in the rows",
            "Name each class of the rows once in the first line.",
        )
    columns = [table.class_names.index(name) for name in classes]
    return [[row[column] for column in columns] for row in table.costs]


def check_takes_costs(registry: Any, name: str, option: str) -> None:
    """Raise TO603 if the method of this name, selected by --`option`, does not use costs."""
    if not registry.has_setting(name, "cost"):
        raise InputError(
            "TO603",
            "This method does not use costs.",
            f"--cost with --{option} {name}",
            f"Add --{option} decision_regret.",
        )


def _read_cost_table(path: str) -> CostTable:
    """Read a table of costs, with or without a header, and with or without a column of the actions' names."""
    rows = _read_cells(path)
    if not rows:
        raise _cost_table_error(path, "an empty file")
    # Classes may be called 0, 1, 2: then "action" above the actions' names distinguishes the first line from costs.
    has_header = rows[0][0].lower() in ("", "action", "actions") or not all(_is_number(cell) for cell in rows[0][1:])
    class_names = rows.pop(0) if has_header else None
    actions = None
    if any(not _is_number(row[0]) for row in rows):
        actions = [row[0] for row in rows]
        rows = [row[1:] for row in rows]
        if class_names is not None:  # the header may have a cell above the names of the actions
            class_names = class_names[-len(rows[0]) :]
    if not rows:
        raise _cost_table_error(path, "a first line and no costs")
    n_classes = len(rows[0]) if class_names is None else len(class_names)
    if any(len(row) != n_classes for row in rows):
        raise _cost_table_error(path, "lines of different lengths")
    for number, row in enumerate(rows, 1):
        for cell in row:
            if not _is_number(cell):
                raise _cost_table_error(path, f"{cell!r} in action {number}")
    return CostTable(class_names, actions, [[float(cell) for cell in row] for row in rows])


def _read_cells(path: str) -> list[list[str]]:
    """Return the cells of each line that is not empty; a table without commas may have semicolons."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            text = file.read()
            delimiter = ";" if ";" in text and "," not in text.split("\n")[0] else ","
            reader = csv.reader(text.splitlines(), delimiter=delimiter)
            return [[cell.strip() for cell in line] for line in reader if any(cell.strip() for cell in line)]
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise InputError("TO602", "The costs cannot be read.", str(problem), "Check the path of --cost.") from None


def _is_number(cell: str) -> bool:
    """Return whether a cell of the table of costs is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _cost_table_error(path: str, got: str) -> InputError:
    return InputError("TO608", f"{path} is not a table of costs.", got, _COST_TABLE_REMEDY)
