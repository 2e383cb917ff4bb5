"""Which rows: the options that several commands share, and what they open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from trueodds.cli import engines, records
from trueodds.core.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])

FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True)
SEED = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of everything random.")
LENS = click.option("--lens", help="Which claim: confidence, positive, classwise, canonical, class:NAME, top-2, …")
WEIGHT_KIND = click.option(
    "--weight-kind",
    type=click.Choice(["importance", "frequency"]),
    default="importance",
    show_default=True,
    help="Whether a weight of two is two rows (frequency).",
)
FAIL_ON = click.option(
    "--fail-on",
    metavar="GATE",
    multiple=True,
    help="Exit with 1 if this is so, such as 'ece.low>0.02'; see docs/cli.md. May be repeated.",
)
JSON = click.option("--json", "json_path", metavar="F|-", help="Write the answer as one JSON object; - is stdout.")

COLUMNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--label", {"metavar": "C", "help": "Column of the true class. [default: label]"}),
    (
        "--probs",
        {"metavar": "'p_*'", "help": "Columns of the probabilities: a pattern, or names a,b,c. [default: p_*]"},
    ),
    ("--logits", {"metavar": "'z_*'", "help": "Columns of logits or log-probabilities instead."}),
    ("--confidence", {"metavar": "C", "help": "Column of the confidence in the chosen answer, with --correct."}),
    ("--correct", {"metavar": "C", "help": "Column that says whether the chosen answer was correct."}),
    ("--votes", {"metavar": "'v_*'", "help": "Columns of how many people chose each class."}),
    ("--multilabel", {"metavar": "'y_*'", "help": "0/1 columns of labels that do not exclude each other."}),
    ("--weight", {"metavar": "C", "help": "Column of how much each row counts."}),
    ("--group", {"metavar": "C", "multiple": True, "help": "Column of subgroups to look at apart; may be repeated."}),
    ("--cluster", {"metavar": "C", "help": "Column of what makes rows depend on each other, such as a patient."}),
    ("--classes", {"metavar": "A,B,C", "help": "Names of the classes in the order of the columns."}),
    ("--sum-tolerance", {"type": float, "metavar": "X", "help": "How far a row may be from sum 1 (rounded tables)."}),
    *records.RECORDS,
    *engines.ENGINES,
)
_NAMES = tuple(option.lstrip("-").replace("-", "_") for option, _ in COLUMNS)
_LISTS = ("probs", "logits", "votes", "multilabel")
# What says the same thing as something else, or makes it meaningless; one of them would be ignored in silence.
_EXCLUDING = (
    ("logits", "probs", "Both name the columns of what the model says."),
    ("multilabel", "label", "Both name what came."),
    ("votes", "label", "Both name what came."),
    ("confidence", "label", "With --confidence what came is --correct."),
    ("confidence", "probs", "Only the confidence would be read."),
)


def data_options(*, group: bool = False, mode: bool = True) -> Callable[[Command], Command]:
    """FILE and everything that says which of its columns hold what; only audit and tally look at groups."""

    def options(command: Command) -> Command:
        if mode:
            how = "Rows in memory or fine cells; by default the size decides."
            command = click.option("--mode", type=click.Choice(["exact", "tally"]), help=how)(command)
        for option, how_so in reversed(COLUMNS):
            if group or option != "--group":
                command = click.option(option, **how_so)(command)
        return FILES(command)

    return options


def pop_columns(params: dict[str, Any], *, outcome: bool = True) -> dict[str, Any]:
    """What was said about columns, taken out of the command's parameters, as `read` takes it."""
    columns = {name: params.pop(name) for name in _NAMES if name in params}
    columns = {name: value for name, value in columns.items() if value not in (None, ()) and value is not False}
    _sensible(columns, outcome)
    for name in _LISTS:
        if name in columns and "," in columns[name]:
            columns[name] = _parts(columns[name])
    if "classes" in columns:
        columns["classes"] = _parts(columns["classes"])
    if "group" in columns:
        columns["group"] = list(columns["group"])
    return columns


def _sensible(columns: Mapping[str, Any], outcome: bool) -> None:
    """Refuse what would be ignored, or read as two things at once."""
    records.sensible(columns)
    for one, other, why in _EXCLUDING:
        if one in columns and other in columns:
            raise InputError("TO603", why, f"--{one} and --{other}", f"Leave --{other} out.")
    for one, other in (("confidence", "correct"), ("correct", "confidence")):
        if outcome and one in columns and other not in columns and (one, "samples" in columns) != ("correct", True):
            raise InputError(
                "TO601", f"--{one} needs --{other}.", f"--{one} {columns[one]} alone", f"Add --{other} C, a column."
            )
    for outcomes in ("votes", "multilabel"):
        if outcomes in columns and columns[outcomes] == columns.get("logits", columns.get("probs", "p_*")):
            raise InputError(
                "TO603",
                f"--{outcomes} names the columns that are read as probabilities.",
                f"--{outcomes} {columns[outcomes]!r}",
                f"Name those of what came by --{outcomes}, and those of the probabilities by --probs.",
            )


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def opened(files: Sequence[str], columns: Mapping[str, Any]) -> Any:
    """The source or the tally behind the paths; several tallies are added up."""
    tallies = [is_tally(file) for file in files]
    if any(tallies):
        if not all(tallies):
            odd = files[tallies.index(False)]
            raise InputError(
                "TO603", "Tallies and rows cannot be mixed.", odd, "Make a tally of it first: trueodds tally."
            )
        if columns:
            name = next(iter(columns)).replace("_", "-")
            raise InputError("TO603", "A tally has its columns already.", f"--{name}", f"Leave --{name} out.")
        return added(files)
    if records.are_requested(files, columns):
        return records.source(files, columns)
    from trueodds.io import read

    return read(files[0] if len(files) == 1 else list(files), **engines.ready(columns))


def added(files: Sequence[str]) -> Any:
    """The sum of saved tallies."""
    from trueodds.tallies import wire

    total = wire.load(files[0])
    for file in files[1:]:
        total = total + wire.load(file)
    return total


def is_tally(path: str) -> bool:
    """Whether a file is called a tally or says of itself that it is one."""
    from trueodds.core.saved import schema_of

    return path.endswith(".tally.json") or (path.endswith(".json") and schema_of(path) == "trueodds.tally")
