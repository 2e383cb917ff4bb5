"""trueodds study: run an installed simulation study again."""

from __future__ import annotations

import inspect
import json
from typing import Any

import click

from trueodds.cli import output
from trueodds.core.errors import InputError, install_studies_command
from trueodds.core.progress import ProgressBar
from trueodds.core.registry import Registry

ENTRY_POINT_GROUP = "trueodds.studies"  # of the entry points by which a package offers studies


@click.command(short_help="Run a simulation study.")
@click.argument("name")
@click.option("--quick", is_flag=True, help="Use fewer data sets, for a quick look.")
@click.option(
    "--out", type=click.Path(file_okay=False), help="Folder for table and figure; an interrupted study resumes from it."
)
@click.option("--method", "methods", multiple=True, help="Run only this method; may be repeated.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder with the data, for studies that need them.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed of the simulated data."
)
@click.option("--json", "as_json", is_flag=True, help="The table as JSON instead of text.")
def study(
    name: str, quick: bool, out: str | None, methods: tuple[str, ...], data: str | None, seed: int, as_json: bool
) -> None:
    """Run one of the studies: see trueodds list studies."""
    run = installed_studies().load(name)
    restrictions: dict[str, Any] = {"methods": list(methods) or None, "data": data}
    settings = {key: value for key, value in restrictions.items() if value is not None}
    for key in settings.keys() - inspect.signature(run).parameters.keys():
        raise InputError(
            "TO603",
            f"The study {name} does not take this option.",
            f"--{'method' if key == 'methods' else key}",
            "Omit it.",
        )
    with ProgressBar() as progress:
        result = run(quick=quick, out=out, rng=seed, progress=progress, **settings)
    output.print_text(json.dumps(result.to_dict()) if as_json else str(result), is_verbatim=True)


def declared_studies() -> dict[str, str]:
    """Return the studies of all installed packages by name, each as `module:function`, without importing them."""
    from importlib.metadata import entry_points

    return {
        point.name: point.value for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name)
    }


def installed_studies() -> Registry:
    """Return the installed studies; TO804 if there are none."""
    table = declared_studies()
    if not table:
        raise InputError(
            "TO804",
            "The studies are a package of their own, trueodds-studies, which is not installed.",
            f"no entry points of the group {ENTRY_POINT_GROUP}",
            install_studies_command(),
        )
    return Registry("study", table)
