"""The command line: each command builds a question, calls the library and prints the answer."""

from __future__ import annotations

import click

from trueodds import __version__
from trueodds.cli.answers import answers
from trueodds.cli.audits import audit
from trueodds.cli.comparing import compare
from trueodds.cli.fixes import apply, fit
from trueodds.cli.grouping import groups
from trueodds.cli.listing import list_names
from trueodds.cli.planning import power
from trueodds.cli.program import Program
from trueodds.cli.questions import draw, measure, test
from trueodds.cli.studies import study
from trueodds.cli.tallies import merge, tally


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="trueodds")
def main() -> None:
    """When a classifier says 70 %, is it right 70 % of the time?

    \b
    trueodds audit preds.parquet --html report.html
    trueodds audit preds.parquet --fail-on 'ece>0.05'
    trueodds fit preds.parquet --out cal.json
    trueodds apply cal.json new.parquet --out better.parquet

    FILE holds one row per prediction: .parquet, .csv, .jsonl, .arrow, .feather or .npz, by default with a column
    "label" and a column "p_…" per class.

    Exit codes: 0 done, and every gate held; 1 a gate of --fail-on failed; 2 bad input or usage.
    """


for _command in (
    audit,
    answers,
    measure,
    test,
    groups,
    compare,
    power,
    draw,
    fit,
    apply,
    tally,
    merge,
    study,
    list_names,
):
    main.add_command(_command)
