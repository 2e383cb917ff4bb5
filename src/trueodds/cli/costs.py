"""The option --cost: read the costs of wrong decisions from a CSV file, for the methods that use them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trueodds.cli import output
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


def read_costs(
    data: Any, path: str | None, mode: str | None, weight_kind: str | None, *, takes_actions: bool = True
) -> tuple[Any, dict[str, Any]]:
    """Return the data and the settings `cost` and `actions`, with costs in the order of the classes of the data.

    Without a path, the data are returned unread, and there are no settings. Otherwise they are read in `mode`, because
    only then are the classes known; rows in memory are returned as a source, so that they are read only once. A method
    that has no results by action does not take their names (`takes_actions`).
    """
    if path is None:
        return data, {}
    table = _read_cost_table(path)
    from trueodds.api.arguments import resolve_data
    from trueodds.data.predictions import Predictions
    from trueodds.io.source import InMemorySource

    rows = resolve_data(data, mode, weight_kind)
    if isinstance(rows, Predictions):
        data = InMemorySource(rows, rows.n, name=data.name)  # the name of the file, and not that rows are in memory
    costs = _costs_by_class(table, [str(name) for name in rows.classes], path)
    return data, {"cost": costs} | ({"actions": table.actions} if table.actions and takes_actions else {})


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
    """Raise TO603 if the method of this name, selected by `option`, such as "--test ", does not use costs."""
    if not registry.has_setting(name, "cost"):
        methods = " or ".join(method for method in registry.names() if registry.has_setting(method, "cost"))
        problem, got = "This method does not use costs.", f"--cost with {option}{name}"
        raise InputError("TO603", problem, got, f"Pass {option}{methods}, or leave out --cost.")


def _read_cost_table(path: str) -> CostTable:
    """Read a table of costs, with or without a header, and with or without a column of the actions' names."""
    from trueodds.io.conversion import Place, is_readable, parse_cells

    rows, decimal = _read_cells(path)
    if not rows:
        raise _cost_table_error(path, "an empty file")

    def is_number(cell: str) -> bool:
        return is_readable(cell, "number", decimal)

    # Classes may be called 0, 1, 2: then "action" above the actions' names distinguishes the first line from costs.
    has_header = rows[0][0].lower() in ("", "action", "actions") or not all(map(is_number, rows[0][1:]))
    class_names = rows.pop(0) if has_header else None
    actions = None
    if any(not is_number(row[0]) for row in rows):
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
            if not is_number(cell):
                raise _cost_table_error(path, f"{cell!r} in action {number}")
    costs = [parse_cells(row, "number", Place(path, "cost"), decimal).tolist() for row in rows]
    return CostTable(class_names, actions, costs)


def _read_cells(path: str) -> tuple[list[list[str]], str]:
    """Return the stripped cells of each line that has any, read as in a file of predictions, and the decimal mark."""
    from trueodds.io.csv_files import read_chunks
    from trueodds.io.csv_format import DETECTED, detect_format

    try:
        Path(path).open("rb").close()
    except OSError as problem:
        raise InputError("TO602", "The costs cannot be read.", str(problem), "Check the path of --cost.") from None
    file_format = detect_format(path, DETECTED)
    for note in file_format.notes:
        output.print_text(f"  {note}", err=True)
    records = (cells for chunk in read_chunks(path, None, file_format) for _, cells in chunk.records())
    lines = [[cell.strip() for cell in cells] for cells in records]
    return [line for line in lines if any(line)], file_format.decimal


def _cost_table_error(path: str, got: str) -> InputError:
    return InputError("TO608", f"{path} is not a table of costs.", got, _COST_TABLE_REMEDY)
