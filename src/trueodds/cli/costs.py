"""--cost: what each action costs in each case, from a small table in a file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import click

from trueodds.core.errors import InputError

COST = click.option(
    "--cost",
    "cost_path",
    metavar="F",
    help="A CSV of what mistakes cost: a row per action (its name first), a column per true class (named on top).",
)
_FIX = "A row per action and a column per class, such as: action,no,yes / wait,0,4 / treat,1,0."


def priced(data: Any, path: str | None, mode: str | None, weight_kind: str) -> tuple[Any, dict[str, Any]]:
    """The rows and the settings `cost` and `actions`, with columns in the order of the rows' classes."""
    if path is None:
        return data, {}
    names, actions, table = _table(path)
    from trueodds.data.predictions import Predictions
    from trueodds.io.in_memory import InMemorySource
    from trueodds.io.resolve import resolved

    rows = resolved(data, mode, weight_kind)
    if isinstance(rows, Predictions):
        memory_source = InMemorySource(rows, rows.n)
        memory_source.name, data = data.name, memory_source  # the name of the file, and not that rows are in memory
    classes = [str(name) for name in rows.classes]
    if names is None and [f"{cost:g}" for cost in table[0]] == classes:
        raise _unreadable(path, "a first line that may be the names of the classes or costs")
    if names is not None:
        if sorted(names) != sorted(classes):
            raise InputError(
                "TO608",
                "The costs and the rows name different classes.",
                f"{', '.join(names)} in {path}, {', '.join(classes)} in the rows",
                "Name each class of the rows once in the first line.",
            )
        table = [[row[names.index(name)] for name in classes] for row in table]
    elif len(table[0]) != len(classes):
        raise _unreadable(path, f"{len(table[0])} columns of costs for {len(classes)} classes")
    return data, {"cost": table} | ({"actions": actions} if actions else {})


def takes_costs(registry: Any, name: str, option: str) -> None:
    """Refuse costs for a member that has no use for them."""
    if not registry.takes(name, "cost"):
        raise InputError(
            "TO603", "Nothing here reads costs.", f"--cost with --{option} {name}", f"Add --{option} decision_regret."
        )


def _table(path: str) -> tuple[list[str] | None, list[str] | None, list[list[float]]]:
    """Names of the classes and of the actions, where the file has them, and the costs."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            text = file.read()
            between = ";" if ";" in text and "," not in text.split("\n")[0] else ","
            read = csv.reader(text.splitlines(), delimiter=between)
            lines = [[cell.strip() for cell in line] for line in read if any(cell.strip() for cell in line)]
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise InputError("TO602", "The costs cannot be read.", str(problem), "Check the path of --cost.") from None
    if not lines:
        raise _unreadable(path, "an empty file")
    # Classes may be called 0, 1, 2: then "action" above the actions' names tells the first line from costs.
    named = lines[0][0].lower() in ("", "action", "actions") or not all(_is_number(cell) for cell in lines[0][1:])
    head = lines.pop(0) if named else None
    actions = None
    if any(line and not _is_number(line[0]) for line in lines):
        actions = [line[0] for line in lines]
        lines = [line[1:] for line in lines]
        head = head and head[-len(lines[0]) :] if lines else head
    if not lines or len({len(line) for line in lines}) > 1 or (head and len(head) != len(lines[0])):
        raise _unreadable(path, "lines of different lengths" if lines else "a first line and no costs")
    for number, line in enumerate(lines, 1):
        for cell in line:
            if not _is_number(cell):
                raise _unreadable(path, f"{cell!r} in action {number}")
    return head, actions, [[float(cell) for cell in line] for line in lines]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _unreadable(path: str, got: str) -> InputError:
    return InputError("TO608", f"{path} is no table of costs.", got, _FIX)
