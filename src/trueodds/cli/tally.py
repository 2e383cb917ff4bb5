"""trueodds tally and trueodds merge: sum up rows in a small file, a tally, and add several tallies up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from trueodds.cli import output
from trueodds.cli.function_command import FunctionCommand
from trueodds.cli.messages import note_line
from trueodds.cli.open_data import add_tallies, open_data
from trueodds.cli.options import data_options, pop_columns
from trueodds.core.progress import ProgressBar


@click.command(
    cls=FunctionCommand, function="api/tally.py", short_help="Tally rows into a small, mergeable file."
)  # fmt: skip
@data_options(has_groups=True)
@click.option("--out", required=True, metavar="F", help="File to save it to, such as a.tally.json.")
def tally(files: tuple[str, ...], out: str, resume: str | None, **params: Any) -> None:
    """Tally rows into a small, mergeable file that audit, measure and test can read."""
    columns = pop_columns(params)
    output.check_outputs(files, out=out, resume=resume)
    with ProgressBar() as progress:
        data = open_data(files, columns)
        import trueodds as to
        from trueodds.io.source import Source
        from trueodds.tallies import tally_sums

        result = to.tally(data, resume=resume, progress=progress, **params)
        tally_sums.save(result, out)
    if resume is not None:
        Path(resume).unlink(missing_ok=True)  # its sums are in the tally
    _print_tally(f"{result.n:,} rows", result, out, data.notes if isinstance(data, Source) else ())


@click.command(short_help="Merge tallies.")
@click.argument("files", metavar="TALLY...", nargs=-1, required=True)
@click.option("--out", required=True, metavar="F", help="File to save the sum to.")
def merge(files: tuple[str, ...], out: str) -> None:
    """Merge tallies. Tallies with different classes or settings are rejected."""
    output.check_outputs(files, out=out)
    from trueodds.tallies import tally_sums

    merged = add_tallies(files)
    tally_sums.save(merged, out)
    _print_tally(f"{merged.n:,} rows of {len(files)} {'tally' if len(files) == 1 else 'tallies'}", merged, out)


def _print_tally(rows: str, result: Any, out: str, source_notes: Sequence[Any] = ()) -> None:
    """Print `rows`, their number as text, the notes on how they were read and if some count twice, and the file."""
    notes = [*source_notes, *(note for note in result.notes() if note.code == "TN172")]
    note_lines = "".join(f"\n  {note_line(note)}" for note in notes)
    output.print_text(f"{rows}{note_lines}\n{out}")
