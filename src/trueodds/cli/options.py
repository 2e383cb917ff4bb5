"""Options shared by several commands, and the conversion of column options to arguments of `trueodds.read`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import click

from trueodds.cli import record_options
from trueodds.cli.record_options import make_option
from trueodds.core.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])

FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True)
OPTIONAL_FILES = click.argument("files", metavar="[FILE...]", nargs=-1)
SEED_SETTINGS: dict[str, Any] = {
    "type": click.IntRange(min=0), "default": 0, "show_default": True, "help": "Random seed.",
}  # fmt: skip
FAIL_ON = click.option(
    "--fail-on",
    metavar="GATE",
    multiple=True,
    help="Exit with status 1 if this condition holds: 'ece.low>0.02' (audit, measure, groups), 'difference.low>0'"
    " (compare), 'reject' (test), 'risk@0.8>0.05' (answers). May be repeated.",
)
FRACTION = click.FloatRange(0, 1, min_open=True, max_open=True)
NAMES = click.option(
    "--names", metavar="A,B,…", help="Names of the models. [default: the names of the files or columns]"
)
JSON = click.option("--json", "json_path", metavar="F|-", help="Write the result as a JSON object; - is stdout.")

# Options as pairs of a name and settings of `click.option`, in the order of the help.
ENGINE_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    make_option(
        "--engine",
        "NAME",
        "What reads the files: arrow (this process), dask or spark.",
        type=click.Choice(["arrow", "dask", "spark"]),
    ),
    make_option("--scheduler", "ADDRESS", "Address of a Dask cluster, with --engine dask. [default: local threads]"),
    make_option("--master", "URL", "Spark master, with --engine spark, such as local[4]."),
    make_option(
        "--row-id", "C", "Column with a unique id: compare pairs rows by it, and samples do not depend on the files."
    ),
)
TEXT_FILE_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    make_option("--separator", "';'", "Character between the columns of a text file. [default: the only possible one]"),
    make_option("--decimal", ",", "Decimal mark of the numbers in a text file, . or ,."),
)
READS_PROBS = "\0"  # the value of --logits without a value, which no column has as its name
COLUMN_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    make_option("--label", "C", "Column of the true class. [default: label]"),
    make_option("--probs", "'p_*'", "Columns of the probabilities: a pattern, or names a,b,c. [default: p_*]"),
    make_option(
        "--logits",
        "'z_*'",
        "Columns of logits or log-probabilities; replaces --probs. Without a value: those of --probs, or"
        " the array of an npz file that fits.",
        is_flag=False,
        flag_value=READS_PROBS,  # without a value, as in `audit x.npz --logits`
    ),
    make_option("--confidence", "C", "Column of the confidence in the chosen answer, with --correct or --predicted."),
    make_option("--correct", "C", "Column that says whether the chosen answer was correct."),
    make_option(
        "--predicted",
        "C",
        "Column of the predicted class; replaces --correct. An answer is correct if it equals --label.",
    ),
    make_option("--votes", "'v_*'", "Columns of the number of votes for each class."),
    make_option("--multilabel", "'y_*'", "Columns of independent labels, 0 or 1; empty if unknown."),
    make_option("--missing", "X", "Value of an unknown label, with --multilabel, such as -1.", type=float),
    make_option("--weight", "C", "Column of the weights."),
    make_option("--group", "C", "Column of subgroups; may be repeated.", multiple=True),
    make_option("--cluster", "C", "Column of clusters of dependent rows, such as the patient."),
    make_option("--classes", "A,B,C", "Names of the classes in the order of the columns."),
    make_option("--sum-tolerance", "X", "Largest deviation of the sum of a row from 1 (rounded tables).", type=float),
    *record_options.RECORD_OPTIONS,
    *TEXT_FILE_OPTIONS,
    *ENGINE_OPTIONS,
)
COLUMN_KEYWORDS = tuple(option.lstrip("-").replace("-", "_") for option, _ in COLUMN_OPTIONS)
# Options that take a list of columns or one pattern, such as p_*; --classes is always a list.
NAMES_OR_PATTERN_KEYWORDS = ("probs", "logits", "votes", "multilabel", "question", "abstained")
# Pairs of options that exclude each other, because one of them would be ignored, and the reason.
_EXCLUSIVE_KEYWORDS = (
    ("logits", "probs", "Both name the columns of the predictions."),
    ("multilabel", "label", "Both name the columns of the outcomes."),
    ("votes", "label", "Both name the columns of the outcomes."),
    ("correct", "label", "With --correct no label is read."),
    ("correct", "predicted", "Both define which answer is correct."),
    ("confidence", "probs", "Only the confidence would be read."),
)


# Options that select the predictions of one model; commands that compare models take them once for each model.
_MODEL_KEYWORDS = ("probs", "logits")


def add_options(options: Iterable[tuple[str, Mapping[str, Any]]]) -> Callable[[Command], Command]:
    """Return a decorator that adds options in the order of the help."""

    def add(command: Command) -> Command:
        for option, option_settings in reversed(tuple(options)):
            command = click.option(option, **option_settings)(command)
        return command

    return add


def data_options(
    *, has_groups: bool = False, has_models: bool = False, needs_files: bool = True, without: Sequence[str] = ()
) -> Callable[[Command], Command]:
    """Return a decorator that adds FILE and the options of its columns to a command.

    `has_groups` adds --group, which only audit, draw, fit, groups, monitor and tally have. With `has_models`, --probs
    and --logits may be repeated, for models in columns of one file (see `pop_columns_of_models`). The options in
    `without` are left out.
    """

    without = (*without, *(() if has_groups else ("--group",)))
    options = {option: settings for option, settings in COLUMN_OPTIONS if option not in without}
    if has_models:
        for option in ("--probs", "--logits"):
            repeated_help = f"{options[option]['help']} Repeat it for models in columns of one file."
            options[option] = {**options[option], "multiple": True, "help": repeated_help}
    files = FILES if needs_files else OPTIONAL_FILES
    return lambda command: files(add_options(options.items())(command))


def refuse_repeated_options(command: click.Command, ctx: click.Context, args: Sequence[str]) -> None:
    """Raise TO603 if an option of `command` with a single value is given twice: click would use only the last one."""
    order: list[click.Parameter] = []
    with suppress(click.UsageError):  # reported when the command itself parses its arguments
        parser = command.make_parser(click.Context(command, parent=ctx, info_name=command.name))
        order = parser.parse_args(list(args))[2]
    for param in order:
        if isinstance(param, click.Option) and not param.multiple and order.count(param) > 1:
            occurrences = [arg for arg in args if arg.partition("=")[0] in (*param.opts, *param.secondary_opts)]
            option = occurrences[0].partition("=")[0] if occurrences else param.opts[0]
            values = [
                arg.partition("=")[2] or following
                for arg, following in itertools.pairwise([*args, ""])
                if arg.partition("=")[0] == option
            ]
            got = " ".join(occurrences) if param.is_flag else " ".join(f"{option} {value}" for value in values)
            raise InputError(
                "TO603", f"{option} was given twice.", got, _repeated_option_remedy(command, option, values)
            )


def _repeated_option_remedy(command: click.Command, option: str, values: Sequence[str]) -> str:
    if option == "--estimator" and command.name in ("measure", "compare"):
        return f"For several measures use trueodds table FILE {' '.join(f'--measure {value}' for value in values)}."
    if option.lstrip("-") in _MODEL_KEYWORDS:
        several = " ".join(f"{option} {value}" for value in values)
        return (
            f"For the columns of one model pass {option} {','.join(values)}; to compare models in columns, use trueodds"
            f" compare FILE {several}, or trueodds table."
        )
    return f"Pass {option} once."


def pop_columns_of_models(params: dict[str, Any]) -> list[dict[str, Any]]:
    """Remove the column options from the parameters of a command that compares models.

    Returns the settings of `read` for each --probs or --logits, as `pop_columns` does for a command with one model.
    """
    values_of_keyword = [params.pop(keyword) or (None,) for keyword in _MODEL_KEYWORDS]
    shared = {keyword: params.pop(keyword) for keyword in COLUMN_KEYWORDS if keyword in params}
    return [
        pop_columns(shared | dict(zip(_MODEL_KEYWORDS, values, strict=True)))
        for values in itertools.product(*values_of_keyword)
    ]


def pop_columns(params: dict[str, Any], *, needs_outcome: bool = True) -> dict[str, Any]:
    """Remove the column options from the parameters of the command and return them as settings of `read`.

    `needs_outcome` is False for `apply`, where --confidence needs no --correct.
    """
    values = {name: params.pop(name) for name in COLUMN_KEYWORDS if name in params}
    columns = {name: value for name, value in values.items() if value not in (None, ()) and value is not False}
    if columns.get("logits") == READS_PROBS:
        columns["logits"] = True
    _check_columns(columns, needs_outcome)
    for name in NAMES_OR_PATTERN_KEYWORDS:
        if isinstance(columns.get(name), str) and "," in columns[name]:
            columns[name] = _split_at_commas(columns[name])
    if "classes" in columns:
        columns["classes"] = _split_at_commas(columns["classes"])
    if "group" in columns:
        columns["group"] = list(columns["group"])
    return columns


def _check_columns(columns: Mapping[str, Any], needs_outcome: bool) -> None:
    """Reject options that would be ignored or that exclude each other."""
    record_options.check_record_options(columns)
    for name, other, reason in _EXCLUSIVE_KEYWORDS:
        is_flag = columns.get(name) is True  # --logits without names says only what --probs contains
        if name in columns and other in columns and not is_flag:
            raise InputError("TO603", reason, f"--{name} and --{other}", f"Leave --{other} out.")
    if needs_outcome:
        if "confidence" in columns and not {"correct", "predicted"} & columns.keys():
            got = f"--confidence {columns['confidence']} alone"
            fix = "Add --correct C, a column; or --label C --predicted C, the columns of the true and predicted class."
            raise InputError("TO601", "--confidence needs --correct or --predicted.", got, fix)
        if "samples" not in columns:  # whose correctness needs no confidence
            _check_confidence(columns, "correct")
    _check_confidence(columns, "predicted")
    for outcomes in ("votes", "multilabel"):
        if outcomes in columns and columns[outcomes] == columns.get("logits", columns.get("probs", "p_*")):
            raise InputError(
                "TO603",
                f"--{outcomes} names the columns that are read as probabilities.",
                f"--{outcomes} {columns[outcomes]!r}",
                f"Name the columns of the outcomes by --{outcomes}, and those of the probabilities by --probs.",
            )


def _check_confidence(columns: Mapping[str, Any], name: str) -> None:
    if name in columns and "confidence" not in columns:
        raise InputError(
            "TO601", f"--{name} needs --confidence.", f"--{name} {columns[name]} alone", "Add --confidence C, a column."
        )


def _split_at_commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]
