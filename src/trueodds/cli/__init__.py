"""The command line: the command group, and errors reported as a code and an exit status instead of a traceback."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from trueodds import __version__
from trueodds.cli import output
from trueodds.cli.answers import answers
from trueodds.cli.audit import audit
from trueodds.cli.compare import compare
from trueodds.cli.draw import draw
from trueodds.cli.explain import explain
from trueodds.cli.fit import apply, fit
from trueodds.cli.groups import groups
from trueodds.cli.list_names import list_names
from trueodds.cli.measure import measure
from trueodds.cli.messages import restate_error
from trueodds.cli.option_suggestions import find_near_options
from trueodds.cli.power import power
from trueodds.cli.study import study
from trueodds.cli.table import table
from trueodds.cli.tally import merge, tally
from trueodds.cli.test import test
from trueodds.core.errors import InputError, install_command
from trueodds.core.suggestions import suggest_names

# Options of records of answers that `apply` does not have, and the remedies.
_UNUSED_RECORD_OPTIONS = {
    "--samples": "First write the answers as a file of predictions, then apply the calibrator to it: trueodds answers"
    " FILE … --out F.",
    **dict.fromkeys(("--answer", "--choices", "--question", "--correct"), "Leave it out: no outcome is read."),
}
EXIT_INVALID_INPUT = 2  # exit codes; `gate.GATE_FAILED` is 1
EXIT_STOPPED, EXIT_CLOSED_PIPE = 130, 141  # 128 + the number of the signal: SIGINT, SIGPIPE


class Program(click.Group):
    """The group of commands; it converts all exceptions to exit codes."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **click_settings: Any) -> NoReturn:  # type: ignore[override]
        """Run and exit. An internal error must not exit with 1, which means that a gate failed."""
        _replace_unencodable_characters()
        click_settings["standalone_mode"] = False
        try:
            code = super().main(args, "trueodds", **click_settings)
        except click.exceptions.NoArgsIsHelpError as problem:
            output.print_text(problem.format_message(), err=True)
            code = EXIT_INVALID_INPUT
        except click.UsageError as problem:
            code = print_error(_convert_usage_error(problem))
        except click.Abort:
            output.print_text("stopped", err=True)
            code = EXIT_STOPPED
        except SystemExit:  # raised by click if the reader of the help closed the pipe
            code = EXIT_CLOSED_PIPE
        except Exception as problem:  # noqa: BLE001 - the last place before a traceback
            code = print_error(as_input_error(problem))
        try:
            _flush_stdout()
        except OSError:
            output.redirect_to_null_device(sys.stdout)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and flush its output while a closed pipe can still be recognized."""
        try:
            result = super().invoke(ctx)
            _flush_stdout()
        except BrokenPipeError:
            output.redirect_to_null_device(sys.stdout)
            ctx.exit(EXIT_CLOSED_PIPE)
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of that name; an unknown name raises an error with similar names."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise InputError(
                "TO601",
                "Unknown command.",
                repr(args[0]),
                suggest_names(args[0], self.list_commands(ctx)),
            )
        return super().resolve_command(ctx, args)


def print_error(error: InputError) -> int:
    """Print an error as five labelled lines on stderr; return the exit code of invalid input."""
    error = restate_error(error)
    title = f"error {error.code}"
    output.print_text(title if os.environ.get("NO_COLOR") else output.colorize(title, "bad"), err=True, is_colored=True)
    for name, text in (("problem", error.problem), ("got", error.got), ("fix", error.fix)):
        output.print_text(f"{name}: {text or '–'}", err=True)
    output.print_text(f"more: trueodds explain {error.code}", err=True)
    return EXIT_INVALID_INPUT


def as_input_error(problem: BaseException) -> InputError:
    """Convert any exception to an error with a code."""
    if isinstance(problem, InputError):
        return problem
    if isinstance(problem, OSError):
        file_prefix = f"{problem.filename}: " if problem.filename else ""
        return InputError(
            "TO602",
            "A file cannot be read or written.",
            f"{file_prefix}{problem.strerror or problem}",
            "Check the path, its permissions and the space left.",
        )
    if isinstance(problem, ImportError):
        return InputError("TO604", "A library is missing.", problem.name or str(problem), install_command("all"))
    if isinstance(problem, MemoryError):
        return InputError(
            "TO605", "The rows do not fit into memory.", str(problem) or "MemoryError", "Pass --mode tally."
        )
    return InputError(
        "TO699",
        "Internal error in trueodds; there is no result.",
        f"{type(problem).__name__}: {problem}",
        "Please report it with the command and this message.",
    )


def _convert_usage_error(problem: click.UsageError) -> InputError:
    """Convert a usage error of click to an InputError with a remedy."""
    command = problem.ctx.command_path if problem.ctx else "trueodds"
    fix = f"See {command} --help."
    if isinstance(problem, click.NoSuchOption):
        return _convert_unknown_option(problem, command, fix)
    if isinstance(problem, click.MissingParameter):
        hint = problem.param.get_error_hint(problem.ctx) if problem.param and problem.ctx else "an argument"
        return InputError("TO601", "A required argument is missing.", f"no {hint}", fix)
    if isinstance(problem, click.BadParameter) and problem.param and problem.ctx:
        # A number outside the range of a fraction, with which the message of click begins, may be a percentage.
        if isinstance(problem.param.type, click.FloatRange) and (percent := re.match(r"[\d.]+", problem.message)):
            fraction = float(percent[0]) / 100
            fix = f"It is a fraction: {problem.param.opts[-1]} {fraction:g}." if 0.01 < fraction <= 1 else fix
        return InputError(
            "TO601", f"Invalid value of {problem.param.get_error_hint(problem.ctx)}.", problem.message, fix
        )
    return InputError("TO601", "Invalid command line.", problem.format_message(), fix)


def _convert_unknown_option(problem: click.NoSuchOption, command: str, fix: str) -> InputError:
    """Convert the error of an unknown option of `command`; `fix` is the remedy if no other one is known.

    From the most to the least specific: what to do instead, the commands that have the option, and similar options.
    """
    near_options, are_synonyms = find_near_options(problem)
    if command == "trueodds apply" and problem.option_name in _UNUSED_RECORD_OPTIONS:
        fix = _UNUSED_RECORD_OPTIONS[problem.option_name]
    elif other_commands := _commands_with_option(problem):
        takes = "takes" if len(other_commands) == 1 else "take"
        fix = f"Leave it out: only {', '.join(other_commands)} {takes} it."
    elif near_options:
        fix = f"Did you mean {' or '.join(near_options)}?"
    # A setting without an option of its own is passed by --set, which only commands of methods have.
    if not are_synonyms and problem.ctx and any("--set" in param.opts for param in problem.ctx.command.params):
        name = problem.option_name.lstrip("-").replace("-", "_")
        fix += f" Pass a setting of a method as --set {name}=VALUE."
    return InputError("TO601", "Unknown option of this command.", problem.option_name, fix)


def _commands_with_option(problem: click.NoSuchOption) -> list[str]:
    """Return the other commands that have this option."""
    root = problem.ctx.find_root().command if problem.ctx else None
    commands = root.commands if isinstance(root, click.Group) else {}
    return [
        name for name, command in commands.items() if any(problem.option_name in param.opts for param in command.params)
    ]


def _flush_stdout() -> None:
    if sys.stdout is not None:  # it may be closed
        sys.stdout.flush()


def _replace_unencodable_characters() -> None:
    """Let stdout and stderr replace characters that their encoding lacks, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="trueodds")
def main() -> None:
    """Measure, test and fix the calibration of a classifier's probabilities.

    \b
    trueodds audit preds.parquet --html report.html
    trueodds audit preds.parquet --fail-on 'ece>0.05'
    trueodds fit preds.parquet --out cal.json
    trueodds apply cal.json new.parquet --out better.parquet

    FILE holds one row per prediction: .parquet, .csv, .jsonl, .arrow, .feather or .npz, by default with a column
    "label" and a column "p_…" per class.

    Exit status: 0 success, and no gate failed; 1 a gate of --fail-on failed; 2 invalid input or usage.
    """


for _command in (
    audit,
    answers,
    measure,
    test,
    groups,
    compare,
    table,
    power,
    draw,
    fit,
    apply,
    tally,
    merge,
    study,
    list_names,
    explain,
):
    main.add_command(_command)
