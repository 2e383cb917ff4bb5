"""trueodds audit: the whole answer, and the gate."""

from __future__ import annotations

from typing import Any

import click

from trueodds.cli import output, records
from trueodds.cli.costs import COST, priced
from trueodds.cli.grouping import CROSSINGS, LEAST, crossed
from trueodds.cli.options import JSON, SEED, WEIGHT_KIND, data_options, given_columns, opened
from trueodds.cli.program import GATE_FAILED
from trueodds.cli.progress import Progress


@click.command(short_help="The whole answer: how far off, where, is it chance, what fixes it.")
@data_options(group=True)
@click.option("--html", "html_path", metavar="F", help="Write the report as one self-contained page.")
@JSON
@click.option(
    "--alpha", type=click.FloatRange(0, 1, True, True), default=0.05, show_default=True, help="Of the verdict."
)
@SEED
@click.option("--level", type=click.FloatRange(0, 1, True, True), default=0.95, show_default=True, help="Of intervals.")
@click.option("--resamples", type=click.IntRange(min=1), help="Redraws of the labels; 999, or more for many claims.")
@WEIGHT_KIND
@CROSSINGS
@LEAST
@COST
@click.option(
    "--fail-on",
    metavar="GATE",
    multiple=True,
    help="Exit with 1 if this is so: reject, 'ece>0.05', 'ece.low>0.02', 'ece@classwise>0.1' (ece, brier, log_loss); repeatable.",
)
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    html_path: str | None,
    json_path: str | None,
    alpha: float,
    seed: int,
    level: float,
    resamples: int | None,
    weight_kind: str,
    crossings: bool,
    least: float,
    cost_path: str | None,
    fail_on: tuple[str, ...],
    mode: str | None,
    **columns: Any,
) -> None:
    """Can these probabilities be believed? How far off, where, is it chance, and what fixes it.

    FILE is a file of predictions, a pattern such as 'part-*.parquet', or a tally; several are taken together.
    """
    from trueodds.cli.gate import Gate  # here, so that --help does not wait for it

    gates = [Gate.of(text) for text in fail_on]
    named = given_columns(columns)
    output.ready(files, html=html_path, json=json_path)
    crossed(files, named, crossings)
    with Progress() as progress, records.by_question(named, costs=cost_path is not None):
        data, costs = priced(opened(files, named), cost_path, mode, weight_kind)
        from trueodds.audit import audit as audited

        found = audited(
            data,
            alpha=alpha,
            level=level,
            rng=seed,
            resamples=resamples,
            mode=mode,
            weight_kind=weight_kind,
            crossings=crossings,
            least=least,
            progress=progress,
            **costs,
        )
        told = found.to_dict()
        if html_path is not None:
            found.to_html(html_path)
    if json_path is not None:
        output.write(json_path, output.as_json(told))
    if json_path != "-":
        from trueodds.audit import report

        text = report.text(output.spoken_notes(told), output.width(), output.paint if output.colored() else None)
        output.show(text, painted=True)
    judged = [gate.judge(told) for gate in gates]
    for gate, (held, why) in zip(gates, judged, strict=True):
        output.show(f"gate {gate.text!r} {'held' if held else 'failed'}: {why}", err=True)
    if not all(held for held, _ in judged):
        ctx.exit(GATE_FAILED)
