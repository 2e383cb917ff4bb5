"""trueodds fit: fit a calibrator on a file, and save it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import click

from trueodds.cli import output
from trueodds.cli.messages import note_line
from trueodds.cli.open_data import open_data
from trueodds.cli.options import SEED, WEIGHT_KIND, data_options, pop_columns
from trueodds.cli.settings import pop_settings, settings_options
from trueodds.core.errors import InputError, install_command


@click.command(short_help="Fit a calibrator and save it for trueodds apply.")
@data_options(has_mode=False)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    help=(
        "Name of the calibrator: see trueodds list calibrators. auto selects one, confirms it on held-out rows, or"
        " changes nothing."
    ),
)
@click.option(
    "--out",
    required=True,
    metavar="F",
    help="File to save it to: JSON for trueodds apply, or an ONNX graph if it ends with .onnx.",
)
@WEIGHT_KIND
@SEED
@settings_options("calibrators")
def fit(files: tuple[str, ...], method: str, out: str, seed: int, weight_kind: str | None, **params: Any) -> None:
    """Fit a calibrator and save it for trueodds apply.

    Evaluate it on other rows: a calibrator always looks good on the rows it was fitted on.
    """
    method_settings, columns = pop_settings(params), pop_columns(params)
    output.check_outputs(files, out=out)
    import trueodds as to
    from trueodds.calibrators import CALIBRATORS

    CALIBRATORS.check(method, method_settings)
    is_onnx = out.lower().endswith(".onnx")
    if is_onnx and find_spec("onnx") is None:
        raise InputError("TO524", "Writing ONNX needs onnx.", f"--out {out}", install_command("onnx"))
    calibrator = to.fit(open_data(files, columns), method, rng=seed, weight_kind=weight_kind, **method_settings)
    if is_onnx:
        calibrator.to_onnx(out)
    else:
        calibrator.save(out)
    lines = calibrator.summary().split("\n")
    lines[len(lines) - len(calibrator.notes) :] = map(note_line, calibrator.notes)  # the summary ends with the notes
    output.print_text("\n".join([*lines, out]))
