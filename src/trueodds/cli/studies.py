"""trueodds study: an experiment with a known answer, run again."""

from __future__ import annotations

import json

import click

from trueodds.cli.progress import Progress


@click.command(short_help="Run an experiment again.")
@click.argument("name")
@click.option("--quick", is_flag=True, help="Fewer data sets, for a first look.")
@click.option(
    "--out", type=click.Path(file_okay=False), help="Folder for table and picture; a stopped study goes on there."
)
@click.option("--member", "members", multiple=True, help="Only this one; may be given again.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the simulated data.")
@click.option("--json", "as_json", is_flag=True, help="The table as JSON instead of text.")
def study(name: str, quick: bool, out: str | None, members: tuple[str, ...], seed: int, as_json: bool) -> None:
    """Run one of the studies: see trueodds list studies."""
    from trueodds.studies import STUDIES

    run = STUDIES.load(name)
    with Progress() as progress:
        found = run(quick=quick, out=out, seed=seed, members=list(members) or None, progress=progress)
    if as_json:
        click.echo(
            json.dumps({"schema": "trueodds.study/1", "study": name, "found": found.sentence, "rows": found.rows})
        )
    else:
        click.echo(str(found))
