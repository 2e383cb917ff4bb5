"""The command `trueodds` with its subcommands: an error is printed with its code, and sets the exit status."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from trueodds.cli import output
from trueodds.cli.answers import answers
from trueodds.cli.audit import audit
from trueodds.cli.compare import compare, table
from trueodds.cli.draw import draw
from trueodds.cli.errors import ARGUMENTS_KEY, EXIT_INVALID_INPUT, as_input_error, convert_usage_error, print_error
from trueodds.cli.groups import complete_crossings, groups
from trueodds.cli.judge import judge
from trueodds.cli.lookup import explain, list_names
from trueodds.cli.measure_and_test import expect, measure, power, test, threshold
from trueodds.cli.monitor import monitor
from trueodds.cli.options import refuse_repeated_options
from trueodds.cli.recalibration import apply, fit
from trueodds.cli.selftest import selftest
from trueodds.cli.study import study
from trueodds.cli.tally import merge, tally
from trueodds.core.errors import InputError
from trueodds.core.printable import replace_unencodable
from trueodds.core.suggestions import suggest_names

EXIT_STOPPED, EXIT_CLOSED_PIPE = 130, 141  # 128 + the number of the signal: SIGINT, SIGPIPE


class CommandGroup(click.Group):
    """The group of all commands; it converts every exception to an exit code.

    Codes: 0 success, 1 a gate of --fail-on failed (`GATE_FAILED`), 2 an error, 130 interrupted, 141 closed pipe.
    """

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **click_settings: Any) -> NoReturn:  # type: ignore[override]
        """Run the command and exit with its code. An internal error must not exit with 1, as a failed gate does."""
        _replace_unencodable_characters()
        click_settings["standalone_mode"] = False
        try:
            code = super().main(args, "trueodds", **click_settings)
        except click.exceptions.NoArgsIsHelpError as problem:
            output.print_text(problem.format_message(), err=True)
            code = EXIT_INVALID_INPUT
        except click.UsageError as problem:
            code = print_error(convert_usage_error(problem))
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
        """Return the command of that name.

        An unknown name raises an error with similar names, and so does an option that is given twice.
        """
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise InputError(
                "TO601",
                "Unknown command.",
                repr(args[0]),
                suggest_names(args[0], self.list_commands(ctx)),
            )
        name, command, command_args = super().resolve_command(ctx, complete_crossings(args))
        ctx.meta[ARGUMENTS_KEY] = tuple(command_args)  # which the parser consumes
        if command is not None:
            refuse_repeated_options(command, ctx, command_args)
        return name, command, command_args


def _flush_stdout() -> None:
    """Write what is buffered; raise OSError if the reader has closed the pipe."""
    if sys.stdout is not None:  # it may be closed
        sys.stdout.flush()


def _replace_unencodable_characters() -> None:
    """Let stdout and stderr replace characters that their encoding lacks, instead of raising an error."""
    codecs.register_error("trueodds", replace_unencodable)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="trueodds")


def _print_version(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    if not is_given or ctx.resilient_parsing:
        return
    from trueodds.core.versions import program_versions, version_rows

    versions = program_versions()
    commit = versions.pop("commit", None)
    origin = "" if commit is None else f" (commit {commit[:10]})"
    first, *others = (" ".join(row) for row in version_rows(versions))
    output.print_text(f"{first}{origin}\n{', '.join(others)}")
    ctx.exit()


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the versions of trueodds and of what it computes with, and exit.",
)
def main() -> None:
    """Measure, test and fix the calibration of a classifier's probabilities.

    \b
    trueodds audit preds.parquet --html report.html
    trueodds audit preds.parquet --fail-on 'ece.low>0.02'
    trueodds fit preds.parquet --out cal.json
    trueodds apply cal.json new.parquet --out better.parquet

    FILE holds one row per prediction (.parquet, .csv, .jsonl, …), by default with a column "label" and a column "p_…"
    per class.

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
    expect,
    threshold,
    power,
    draw,
    fit,
    apply,
    tally,
    merge,
    judge,
    monitor,
    study,
    selftest,
    list_names,
    explain,
):
    main.add_command(_command)
