"""Which rows and which settings: the options that several commands share, and what they open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from trueodds.core.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])

FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True)
SEED = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of everything random.")
LENS = click.option("--lens", help="Which claim: confidence, positive, classwise, canonical, class:NAME, top-2, …")
JSON = click.option("--json", "json_path", metavar="F|-", help="Write the answer as one JSON object; - is stdout.")

_COLUMNS: tuple[tuple[str, dict[str, Any]], ...] = (
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
)
_NAMES = tuple(option.lstrip("-").replace("-", "_") for option, _ in _COLUMNS)
_LISTS = ("probs", "logits", "votes", "multilabel")
_SETTINGS: tuple[tuple[str, str], ...] = (
    ("--bins", "How many bins, sqrt, or edges such as [0,0.5,1]."),
    ("--partition", "Which rows are pooled: see trueodds list partitions."),
    ("--min-size", "Fewest rows in a leaf of the median-variance tree."),
    ("--closed", "Which end of a bin belongs to it: right or left."),
    ("--range", "Range of the bins: [0, 1] if not said, or 1/K."),
    ("--distance", "How far said is from seen: see trueodds list distances."),
    ("--order", "Power of the mean over bins; inf takes the worst."),
    ("--aggregate", "How several views make one number: mean, max, sum, prevalence."),
    ("--interval", "auto, percentile, basic, bca, sun, debiased or none."),
    ("--level", "Level of the interval or of the bars."),
    ("--resamples", "How many resamples or redraws."),
    ("--resample", "What is resampled: auto, rows, cells."),
    ("--redraw", "What a test redraws: labels or both."),
    ("--statistic", "The estimator whose size a test judges."),
    ("--floor", "Smallest probability that a logarithm sees."),
    ("--weight-kind", "Whether a weight is importance or frequency."),
)


def data_options(command: Command) -> Command:
    """FILE and everything that says which of its columns hold what."""
    command = click.option(
        "--mode",
        type=click.Choice(["exact", "tally"]),
        help="Rows in memory or fine cells; by default the size decides.",
    )(command)
    for option, how in reversed(_COLUMNS):
        command = click.option(option, **how)(command)
    return FILES(command)


def settings_options(command: Command) -> Command:
    """The settings of estimators, tests, diagrams and calibrators, spelled as in Python."""
    command = click.option(
        "--set", "also", metavar="NAME=VALUE", multiple=True, help="Any other setting of the member."
    )(command)
    for option, said in reversed(_SETTINGS):
        command = click.option(option, metavar="X", help=said)(command)
    return command


def settings(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that were said, taken out of the command's parameters."""
    found = {}
    for option, _ in _SETTINGS:
        name = option.lstrip("-").replace("-", "_")
        text = given.pop(name, None)
        if text is not None:
            found[name] = value(text)
    for pair in given.pop("also", ()):
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InputError("TO601", "--set takes NAME=VALUE.", repr(pair), "For instance --set style=classic.")
        found[name] = value(text)
    return found


def value(text: str) -> Any:
    """What a setting's text stands for: a number, yes or no, a list, nothing, or a word.

    >>> value("15"), value("0.5"), value("inf"), value("none"), value("[0, 0.5, 1]"), value("equal-mass")
    (15, 0.5, inf, None, [0, 0.5, 1], 'equal-mass')
    """
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    if text[:1] in "[{":
        import json

        try:
            return json.loads(text)
        except ValueError:
            raise InputError("TO601", "This list cannot be read.", text, "Write it as JSON: [0, 0.5, 1].") from None
    return text


def given_columns(given: dict[str, Any]) -> dict[str, Any]:
    """What was said about columns, taken out of the command's parameters, as `read` takes it."""
    said = {name: given.pop(name) for name in _NAMES if name in given}
    said = {name: each for name, each in said.items() if each not in (None, ())}
    for name in _LISTS:
        if name in said and "," in said[name]:
            said[name] = _parts(said[name])
    if "classes" in said:
        said["classes"] = _parts(said["classes"])
    if "group" in said:
        said["group"] = list(said["group"])
    return said


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
    from trueodds.sources import read

    return read(files[0] if len(files) == 1 else list(files), **columns)


def added(files: Sequence[str]) -> Any:
    """The sum of saved tallies."""
    from trueodds.tally import wire

    total = wire.load(files[0])
    for file in files[1:]:
        total = total + wire.load(file)
    return total


def is_tally(path: str) -> bool:
    """Whether a file is called a tally or says of itself that it is one."""
    from trueodds.core.saved import schema_of

    return path.endswith(".tally.json") or (path.endswith(".json") and schema_of(path) == "trueodds.tally")
