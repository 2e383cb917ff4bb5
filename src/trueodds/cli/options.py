"""Options shared by commands: columns, engine and costs, and the rows that they select."""

from __future__ import annotations

import csv
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from trueodds.cli import records
from trueodds.cli.saved_files import add_tallies, is_tally, refuse_calibrators, refuse_repeated
from trueodds.core.errors import InputError, install_command
from trueodds.core.registry import METHOD_FAMILIES

ENGINE_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--engine",
        {
            "metavar": "NAME",
            "type": click.Choice(["arrow", "dask", "spark"]),
            "help": "What reads the files: arrow (this process), dask or spark.",
        },
    ),
    (
        "--scheduler",
        {"metavar": "ADDRESS", "help": "Address of a Dask cluster, with --engine dask. [default: local threads]"},
    ),
    ("--master", {"metavar": "URL", "help": "Spark master, with --engine spark, such as local[4]."}),
    (
        "--row-id",
        {
            "metavar": "C",
            "help": "Column with a unique id: compare pairs rows by it, and samples do not depend on the files.",
        },
    ),
)
_ENGINE_OF_KEYWORD = {"scheduler": "dask", "master": "spark"}


def start_engine(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Start the engine that the options name, until the command ends; return the settings of `read`."""
    settings = dict(columns)
    for keyword, engine in _ENGINE_OF_KEYWORD.items():
        if keyword in settings and settings.get("engine") != engine:
            raise InputError(
                "TO601",
                f"--{keyword} goes with --engine {engine}.",
                f"--{keyword} {settings[keyword]}",
                f"Add --engine {engine}.",
            )
    address, master = settings.pop("scheduler", None), settings.pop("master", None)
    try:
        if address is not None:
            client = importlib.import_module("distributed").Client(address, timeout="10s")
            click.get_current_context().call_on_close(client.close)
        if settings.get("engine") == "spark":
            _start_spark(master)
    except ModuleNotFoundError as problem:
        engine = settings["engine"]
        problem_text = f"The engine {engine} needs {problem.name}, which is not installed."
        raise InputError("TO306", problem_text, "", install_command(engine)) from None
    except OSError as problem:
        raise InputError("TO332", "The Dask cluster does not respond.", f"{address}: {problem}", "Check it.") from None
    return settings


def _start_spark(master: str | None) -> None:
    """Start a Spark session with this Python, or connect to `master`; it stops when the command ends."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the one that has trueodds
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.appName("trueodds")
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # pandas is not used
    session = (builder if master is None else builder.master(master)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    click.get_current_context().call_on_close(session.stop)


Command = TypeVar("Command", bound=Callable[..., Any])

FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True)
SEED = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
LENS = click.option(
    "--lens", help="Examined probability: confidence, positive, classwise, canonical, class:NAME, top-2, …"
)
WEIGHT_KIND = click.option(
    "--weight-kind",
    type=click.Choice(["importance", "frequency"]),
    default="importance",
    show_default=True,
    help="Whether a row of weight 2 counts double (importance) or is two rows (frequency).",
)
FAIL_ON = click.option(
    "--fail-on",
    metavar="GATE",
    multiple=True,
    help="Exit with status 1 if this condition holds, such as 'ece.low>0.02'; see docs/cli.md. May be repeated.",
)
JSON = click.option("--json", "json_path", metavar="F|-", help="Write the result as a JSON object; - is stdout.")

COLUMN_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--label", {"metavar": "C", "help": "Column of the true class. [default: label]"}),
    (
        "--probs",
        {"metavar": "'p_*'", "help": "Columns of the probabilities: a pattern, or names a,b,c. [default: p_*]"},
    ),
    ("--logits", {"metavar": "'z_*'", "help": "Columns of logits or log-probabilities, in place of --probs."}),
    ("--confidence", {"metavar": "C", "help": "Column of the confidence in the chosen answer, with --correct."}),
    ("--correct", {"metavar": "C", "help": "Column that says whether the chosen answer was correct."}),
    ("--votes", {"metavar": "'v_*'", "help": "Columns of the number of votes for each class."}),
    ("--multilabel", {"metavar": "'y_*'", "help": "Columns of independent labels, 0 or 1."}),
    ("--weight", {"metavar": "C", "help": "Column of the weights."}),
    ("--group", {"metavar": "C", "multiple": True, "help": "Column of subgroups; may be repeated."}),
    ("--cluster", {"metavar": "C", "help": "Column of clusters of dependent rows, such as the patient."}),
    ("--classes", {"metavar": "A,B,C", "help": "Names of the classes in the order of the columns."}),
    (
        "--sum-tolerance",
        {"type": float, "metavar": "X", "help": "Largest deviation of the sum of a row from 1 (rounded tables)."},
    ),
    *records.RECORD_OPTIONS,
    *ENGINE_OPTIONS,
)
_COLUMN_KEYWORDS = tuple(option.lstrip("-").replace("-", "_") for option, _ in COLUMN_OPTIONS)
_LIST_KEYWORDS = ("probs", "logits", "votes", "multilabel", "question", "abstained")
# Pairs of options that exclude each other, because one of them would be ignored, and the reason.
_EXCLUSIVE_KEYWORDS = (
    ("logits", "probs", "Both name the columns of the predictions."),
    ("multilabel", "label", "Both name the columns of the outcomes."),
    ("votes", "label", "Both name the columns of the outcomes."),
    ("confidence", "label", "With --confidence the outcome is --correct."),
    ("confidence", "probs", "Only the confidence would be read."),
)


def data_options(*, has_groups: bool = False, has_mode: bool = True) -> Callable[[Command], Command]:
    """Return a decorator that adds FILE and the options of its columns to a command.

    `has_groups` adds --group, which only audit, groups and tally have, and `has_mode` adds --mode.
    """

    def add_options(command: Command) -> Command:
        if has_mode:
            mode_help = "Keep rows in memory or tally them; by default it depends on the size."
            command = click.option("--mode", type=click.Choice(["exact", "tally"]), help=mode_help)(command)
        for option, option_settings in reversed(COLUMN_OPTIONS):
            if has_groups or option != "--group":
                command = click.option(option, **option_settings)(command)
        return FILES(command)

    return add_options


def pop_columns(params: dict[str, Any], *, needs_outcome: bool = True) -> dict[str, Any]:
    """Remove the column options from the parameters of the command and return them as settings of `read`.

    `needs_outcome` is False for `apply`, where --confidence needs no --correct.
    """
    columns = {name: params.pop(name) for name in _COLUMN_KEYWORDS if name in params}
    columns = {name: value for name, value in columns.items() if value not in (None, ()) and value is not False}
    _check_columns(columns, needs_outcome)
    for name in _LIST_KEYWORDS:
        if name in columns and "," in columns[name]:
            columns[name] = _split_at_commas(columns[name])
    if "classes" in columns:
        columns["classes"] = _split_at_commas(columns["classes"])
    if "group" in columns:
        columns["group"] = list(columns["group"])
    return columns


def _check_columns(columns: Mapping[str, Any], needs_outcome: bool) -> None:
    """Reject options that would be ignored or that exclude each other."""
    records.check_columns(columns)
    for name, other, reason in _EXCLUSIVE_KEYWORDS:
        if name in columns and other in columns:
            raise InputError("TO603", reason, f"--{name} and --{other}", f"Leave --{other} out.")
    for name, other in (("confidence", "correct"), ("correct", "confidence")):
        if (
            needs_outcome
            and name in columns
            and other not in columns
            and (name, "samples" in columns) != ("correct", True)
        ):
            raise InputError(
                "TO601", f"--{name} needs --{other}.", f"--{name} {columns[name]} alone", f"Add --{other} C, a column."
            )
    for outcomes in ("votes", "multilabel"):
        if outcomes in columns and columns[outcomes] == columns.get("logits", columns.get("probs", "p_*")):
            raise InputError(
                "TO603",
                f"--{outcomes} names the columns that are read as probabilities.",
                f"--{outcomes} {columns[outcomes]!r}",
                f"Name the columns of the outcomes by --{outcomes}, and those of the probabilities by --probs.",
            )


def _split_at_commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def read_models(files: Sequence[str], columns: Mapping[str, Any], notify: Callable[[float, str], None]) -> list[Any]:
    """Read the data of several models, one file or pattern each; `notify` gets the finished share and the step."""
    models = []
    for number, file in enumerate(files):
        notify(number / len(files), "reading")
        is_tally_beside_files = is_tally(file) and not all(map(is_tally, files))  # a tally has no columns to select
        models.append(open_data([file], {} if is_tally_beside_files else columns))
    return models


def open_data(files: Sequence[str], columns: Mapping[str, Any]) -> Any:
    """Return the source, or the sum of the tallies, at these paths."""
    refuse_repeated(files)
    _refuse_method_names(files)
    refuse_calibrators(files)
    tallies = [is_tally(file) for file in files]
    if any(tallies):
        if not all(tallies):
            row_file = files[tallies.index(False)]
            raise InputError(
                "TO603", "Tallies and rows cannot be mixed.", row_file, "Tally the rows first: trueodds tally."
            )
        if columns:
            name = next(iter(columns)).replace("_", "-")
            raise InputError("TO603", "Column options do not apply to a tally.", f"--{name}", f"Leave --{name} out.")
        return add_tallies(files)
    if records.has_record_options(files, columns):
        return records.make_source(files, columns)
    from trueodds.io import read

    return read(files[0] if len(files) == 1 else list(files), **start_engine(columns))


# The option of each command that names a method.
_METHOD_KEYWORD_OF_COMMAND = {"measure": "estimator", "compare": "estimator", "groups": "estimator", "test": "test",
                 "power": "test", "fit": "method", "draw": "diagram"}  # fmt: skip


def _refuse_method_names(files: Sequence[str]) -> None:
    """Raise an error for the name of a method among the files, which is the value of an option."""
    option = _METHOD_KEYWORD_OF_COMMAND.get(click.get_current_context().info_name or "")
    for file in files if option else ():
        kind = {"method": "calibrator"}.get(str(option), str(option))
        module, _, table = METHOD_FAMILIES[kind][1].partition(":")
        if file in getattr(importlib.import_module(module), table).names() and not os.path.exists(file):
            fix = f"The {kind} is an option: --{option} {file}."
            raise InputError("TO301", "There is no such file.", repr(file), fix)


COST = click.option(
    "--cost",
    "cost_path",
    metavar="F",
    help="CSV file of costs; first column: names of the actions; header: names of the classes.",
)
_COST_TABLE_REMEDY = "Write a row per action and a column per class, such as: action,no,yes / wait,0,4 / treat,1,0."


def read_costs(data: Any, path: str | None, mode: str | None, weight_kind: str) -> tuple[Any, dict[str, Any]]:
    """Return the rows and the settings `cost` and `actions`, with costs in the order of the classes of the rows."""
    if path is None:
        return data, {}
    class_names, actions, table = _read_cost_table(path)
    from trueodds.api.collect_or_tally import resolve_data
    from trueodds.data.predictions import Predictions
    from trueodds.io.source import InMemorySource

    rows = resolve_data(data, mode, weight_kind)
    if isinstance(rows, Predictions):
        memory_source = InMemorySource(rows, rows.n)
        memory_source.name, data = data.name, memory_source  # the name of the file, and not that rows are in memory
    classes = [str(name) for name in rows.classes]
    if class_names is None and [f"{cost:g}" for cost in table[0]] == classes:
        raise _cost_table_error(path, "a first line that may be names of classes or costs")
    if class_names is not None:
        if sorted(class_names) != sorted(classes):
            raise InputError(
                "TO608",
                "The costs and the rows name different classes.",
                f"{', '.join(class_names)} in {path}, {', '.join(classes)} in the rows",
                "Name each class of the rows once in the first line.",
            )
        table = [[row[class_names.index(name)] for name in classes] for row in table]
    elif len(table[0]) != len(classes):
        raise _cost_table_error(path, f"{len(table[0])} columns of costs for {len(classes)} classes")
    return data, {"cost": table} | ({"actions": actions} if actions else {})


def check_takes_costs(registry: Any, name: str, option: str) -> None:
    """Raise an error if the method does not use costs."""
    if not registry.has_setting(name, "cost"):
        raise InputError(
            "TO603",
            "This method does not use costs.",
            f"--cost with --{option} {name}",
            f"Add --{option} decision_regret.",
        )


def _read_cost_table(path: str) -> tuple[list[str] | None, list[str] | None, list[list[float]]]:
    """Return the names of classes and actions, if the file has them, and the costs: a row per action."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            text = file.read()
            delimiter = ";" if ";" in text and "," not in text.split("\n")[0] else ","
            reader = csv.reader(text.splitlines(), delimiter=delimiter)
            lines = [[cell.strip() for cell in line] for line in reader if any(cell.strip() for cell in line)]
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise InputError("TO602", "The costs cannot be read.", str(problem), "Check the path of --cost.") from None
    if not lines:
        raise _cost_table_error(path, "an empty file")
    # Classes may be called 0, 1, 2: then "action" above the actions' names tells the first line from costs.
    has_header = lines[0][0].lower() in ("", "action", "actions") or not all(_is_number(cell) for cell in lines[0][1:])
    class_names = lines.pop(0) if has_header else None
    actions = None
    if any(line and not _is_number(line[0]) for line in lines):
        actions = [line[0] for line in lines]
        lines = [line[1:] for line in lines]
        class_names = class_names and class_names[-len(lines[0]) :] if lines else class_names
    if not lines or len({len(line) for line in lines}) > 1 or (class_names and len(class_names) != len(lines[0])):
        raise _cost_table_error(path, "lines of different lengths" if lines else "a first line and no costs")
    for number, line in enumerate(lines, 1):
        for cell in line:
            if not _is_number(cell):
                raise _cost_table_error(path, f"{cell!r} in action {number}")
    return class_names, actions, [[float(cell) for cell in line] for line in lines]


def _is_number(cell: str) -> bool:
    """Return whether a cell of the table of costs is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _cost_table_error(path: str, got: str) -> InputError:
    return InputError("TO608", f"{path} is not a table of costs.", got, _COST_TABLE_REMEDY)
