"""trueodds selftest: check this installation on the machine where it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trueodds.cli import output
from trueodds.cli.gate_values import GATE_FAILED
from trueodds.cli.open_data import open_data
from trueodds.cli.options import data_options, pop_columns
from trueodds.core.errors import InputError
from trueodds.core.progress import ProgressBar


@click.command(short_help="Check this installation.")
@data_options(needs_files=False)
@click.option("--out", metavar="DIR", help="Folder for the record: selftest.html and selftest.json.")
def selftest(files: tuple[str, ...], out: str | None, **params: Any) -> None:
    """Check this installation: its files, reference numbers of independent programs, levels, coverage, and laws.

    If a FILE of predictions is given, the laws (order, weights, merging, names) are also checked on its first 20,000
    rows.

    Exit status: 0 every check that was made passed, 1 a check failed, 2 invalid input.
    """
    columns = pop_columns(params)
    if columns and not files:
        option = f"--{next(iter(columns)).replace('_', '-')}"
        raise InputError("TO603", "Without files no rows are read.", option, f"Name the file, or omit {option}.")
    paths = _prepare_folder(files, out)
    from trueodds.selftest.page import selftest_page
    from trueodds.selftest.record import SelftestReport, run_selftest

    if paths is not None:
        selftest_page(SelftestReport((), (), {}))  # raises an error before the work if the page cannot be made
    with ProgressBar() as progress:
        preds, rows = _read_rows(files, columns) if files else (None, None)
        report = run_selftest(progress, preds, rows)
    output.print_text(report.describe())
    if paths is not None:
        selftest_page(report, paths[0])
        output.print_written(str(paths[0]))
        output.save_text(str(paths[1]), output.format_json(report.to_dict()))
    if not report.passed:
        click.get_current_context().exit(GATE_FAILED)


def _prepare_folder(files: tuple[str, ...], out: str | None) -> tuple[Path, Path] | None:
    """Make the folder of the record, and return the paths of the page and of the JSON in it."""
    if out is None:
        return None
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = f"{out}: {problem.strerror or problem}"
        raise InputError("TO602", "The folder of the record cannot be made.", reason, "Name another folder.") from None
    paths = folder / "selftest.html", folder / "selftest.json"
    for path in paths:
        output.check_outputs(files, out=str(path))
    return paths


def _read_rows(files: tuple[str, ...], columns: dict[str, Any]) -> tuple[Any, str]:
    """Return the first rows of the files, and which they are; of clusters, those of the first batch."""
    from trueodds.data.predictions import concatenate
    from trueodds.io.source import Source
    from trueodds.selftest.laws import MAX_ROWS

    data = open_data(files, columns)
    if not isinstance(data, Source):
        fix = "Name a file of predictions."
        raise InputError("TO603", "The laws are checked on rows, which a tally does not have.", files[0], fix)
    parts: list[Any] = []
    n, are_all = 0, True
    for batch in data.batches():
        if parts and (n == MAX_ROWS or batch.cluster is not None):
            are_all = False
            break
        parts.append(batch[: MAX_ROWS - n])
        n += parts[-1].n
        are_all = parts[-1].n == batch.n
    preds = concatenate(parts)
    preds.require_labels()
    return preds, f"{'all' if are_all else 'the first'} {n:,} rows of {', '.join(files)}"
