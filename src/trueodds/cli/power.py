"""trueodds power: compute the power of a test, or the number of rows needed."""

from __future__ import annotations

from typing import Any

import click

from trueodds.cli import output
from trueodds.cli.open_data import open_data
from trueodds.cli.options import JSON, LENS, SEED, WEIGHT_KIND, data_options, pop_columns
from trueodds.cli.settings import pop_settings, settings_options
from trueodds.core.progress import ProgressBar


@click.command(short_help="Plan a sample size, or compute the power of a test.")
@data_options(has_mode=False)
@click.option("--test", "name", default="omnibus", show_default=True, help="Name of the test: see trueodds list tests.")
@click.option("--n", type=click.IntRange(min=1), help="Number of rows. [default: those of the file]")
@click.option(
    "--power", "target", type=click.FloatRange(0, 1, True, True), default=0.8, show_default=True,
    help="Target power.",
)  # fmt: skip
@click.option(
    "--effect",
    type=float,
    metavar="X",
    help="An error such as 0.03: compute its power, and the rows needed to detect it.",
)
@click.option(
    "--width",
    type=float,
    metavar="X",
    help="Compute the rows needed for an interval of this width: of --estimator, or of the calibration slope with"
    " --test cox --set part=slope.",
)
@click.option(
    "--estimator", default="ece", show_default=True, help="Estimator of the interval: see trueodds list estimators."
)
@click.option(
    "--alpha", type=click.FloatRange(0, 1, True, True), default=0.05, show_default=True, help="Significance level."
)
@LENS
@JSON
@WEIGHT_KIND
@SEED
@settings_options("tests", omitted=("--margin",))
def power(
    files: tuple[str, ...],
    name: str,
    n: int | None,
    target: float,
    effect: float | None,
    width: float | None,
    estimator: str,
    alpha: float,
    lens: str | None,
    json_path: str | None,
    seed: int,
    weight_kind: str | None,
    **params: Any,
) -> None:
    """Plan a sample size: the error that a test detects with n rows, or the rows for an error or an interval width."""
    method_settings, columns = pop_settings(params), pop_columns(params)
    output.check_outputs(files, json=json_path)
    import trueodds as to
    from trueodds.estimators import ESTIMATORS
    from trueodds.hypotests import TESTS
    from trueodds.hypotests._power.power import PLAN_SETTINGS

    if width is None or name == "cox":
        TESTS.check(name, method_settings, ("region", *PLAN_SETTINGS))
    else:
        ESTIMATORS.check(estimator, method_settings, ("region", "aggregate"))
    with ProgressBar() as progress:
        result = to.power(
            open_data(files, columns),
            name,
            n=n,
            power=target,
            effect=effect,
            width=width,
            alpha=alpha,
            lens=lens,
            estimator=estimator,
            weight_kind=weight_kind,
            rng=seed,
            progress=progress,
            **method_settings,
        )
    output.print_result(result.describe(), result.notes, result.to_dict(), json_path)
