"""trueodds study: an experiment with a known answer, run again."""

from __future__ import annotations

import inspect
import json
from typing import Any

import click

from trueodds.cli import output
from trueodds.cli.progress import Progress
from trueodds.core.errors import InputError


@click.command(short_help="Run an experiment again.")
@click.argument("name")
@click.option("--quick", is_flag=True, help="Fewer data sets, for a first look.")
@click.option(
    "--out", type=click.Path(file_okay=False), help="Folder for table and picture; a stopped study goes on there."
)
@click.option("--member", "members", multiple=True, help="Only this one; may be given again.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder with the data of studies that need some.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the simulated data.")
@click.option("--json", "as_json", is_flag=True, help="The table as JSON instead of text.")
def study(
    name: str, quick: bool, out: str | None, members: tuple[str, ...], data: str | None, seed: int, as_json: bool
) -> None:
    """Run one of the studies: see trueodds list studies."""
    from trueodds_studies import STUDIES

    run = STUDIES.load(name)
    few: dict[str, Any] = {"members": list(members) or None, "data": data}
    asked = {key: value for key, value in few.items() if value is not None}
    for key in asked.keys() - inspect.signature(run).parameters.keys():
        raise InputError(
            "TO603",
            f"The study {name} has no use for that.",
            f"--{'member' if key == 'members' else key}",
            "Leave it out.",
        )
    with Progress() as progress:
        found = run(quick=quick, out=out, rng=seed, progress=progress, **asked)
    output.show(json.dumps(found.to_dict()) if as_json else str(found))
