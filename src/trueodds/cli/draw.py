"""trueodds draw: save a calibration diagram as a picture, a rotatable HTML page, or a table of its data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from trueodds.cli import output
from trueodds.cli.function_command import FunctionCommand, parse_value, pop_settings
from trueodds.cli.messages import note_line
from trueodds.cli.open_data import open_data, open_models_by_name
from trueodds.cli.options import data_options, pop_columns
from trueodds.core.errors import InputError
from trueodds.core.printable import to_printable

_PICTURE_SUFFIXES = (".svg", ".png", ".pdf", ".html")
_TABLE_SUFFIXES = (".csv", ".json")
_ROTATABLE_DIAGRAMS = ("tetrahedron",)  # diagrams that can be saved as an HTML page, in which they can be rotated


@click.command(
    cls=FunctionCommand, function="api/draw.py", family="diagrams", without=("ax", "legend", "ncols"),
    short_help="Draw a calibration diagram, or save its data.",
)  # fmt: skip
@data_options(has_groups=True)
@click.option(
    "--out",
    required=True,
    metavar="F",
    help="A figure (.svg .png .pdf; .html: a rotatable tetrahedron) or its data (.csv .json).",
)
@click.option(
    "--each",
    "per_file",
    is_flag=True,
    help=(
        "Treat each FILE as a model named like the file (epochs in folders: run/epoch); default for comparison,"
        " decision_curve, murphy and training."
    ),
)
@click.option("--without", multiple=True, metavar="LAYER", help="Omit a layer of the figure, such as strip.")
@click.option("--title", metavar="TEXT", help="Title that replaces the default one.")
@click.option("--no-title", is_flag=True, help="Omit the title and the summary below it.")
@click.option(
    "--style", type=click.Choice(["paper", "slide"]), help="Size and type for a paper or a slide, without --figsize."
)
@click.option("--width", metavar="W", help="Width of the figure: column, page, or inches, such as 3.3.")
def draw(
    files: tuple[str, ...],
    diagram: str,
    out: str,
    per_file: bool,
    without: tuple[str, ...],
    title: str | None,
    no_title: bool,
    figsize: str | None,
    dpi: str | None,
    style: str | None,
    width: str | None,
    **params: Any,
) -> None:
    """Draw a calibration diagram, or save its data."""
    method_settings, columns = pop_settings(params), pop_columns(params)
    suffix = _check_suffix(diagram, out)
    output.check_outputs(files, out=out)
    import trueodds as to
    from trueodds.diagrams import DIAGRAMS
    from trueodds.diagrams._style.rendering import write_data_file
    from trueodds.diagrams.presentation import Presentation

    if title is not None and no_title:
        raise InputError(
            "TO603", "--title and --no-title exclude each other.", "--title and --no-title", "Omit one of them."
        )
    options = {"--title": title is not None, "--no-title": no_title, "--figsize": figsize, "--dpi": dpi}
    options |= {"--style": style, "--width": width}
    _refuse_unused_options(out, suffix, [option for option, value in options.items() if value not in (None, False)])
    presentation: dict[str, Any] = {
        "title": False if no_title else title,
        "figsize": None if figsize is None else _parse_size(figsize),
        "dpi": None if dpi is None else parse_value(dpi),
    }
    if figsize is not None and (style is not None or width is not None):
        option = "--style" if style is not None else "--width"
        raise InputError("TO603", f"--figsize and {option} exclude each other.", f"--figsize {figsize}", "Omit one.")
    Presentation(**presentation)  # rejects invalid values before the file is read

    DIAGRAMS.check(diagram, method_settings)
    _check_rotatable(diagram, out, suffix)
    recipe = DIAGRAMS.load(diagram)
    if recipe.takes_monitor:
        data = _load_monitor(files, columns, per_file=per_file)
    else:
        _check_groups(diagram, columns, needs_groups=recipe.needs_groups)
        per_file = per_file or (len(files) > 1 and recipe.accepts_several_models)
        data = open_models_by_name(files, columns) if per_file else open_data(files, columns)
    if (n_queries := getattr(data, "n_queries", None)) and DIAGRAMS.has_setting(diagram, "n_queries"):
        method_settings = {"n_queries": n_queries} | method_settings  # of records, with those not answered
    result = to.draw(data, diagram, **params, **presentation, **method_settings)
    result = result.less(*without)
    if suffix in _PICTURE_SUFFIXES:
        result.save(out, style=style, width=None if width is None else parse_value(width))
    else:
        content = result.to_dict()
        write_data_file(out, content, content["table"], "TO602")
    output.print_text(f"{to_printable(result.summary())}\n{out}")
    for note in result.notes:
        output.print_text(f"  {note_line(note)}")


def _load_monitor(files: Sequence[str], columns: Mapping[str, Any], *, per_file: bool) -> Any:
    """Load the state of a monitor; raise TO603 for several files, and for options of the columns of predictions."""
    options = ["--each"] if per_file else [f"--{name.replace('_', '-')}" for name in columns]
    if options or len(files) != 1:
        problem = "The diagram monitor draws the state of one monitor, which has no columns."
        got = options[0] if options else f"{len(files)} files"
        raise InputError("TO603", problem, got, f"Omit {got}." if options else "Draw each file.")
    from trueodds.monitoring import monitor

    return monitor.load(os.path.expanduser(files[0]))


def _check_suffix(diagram: str, out: str) -> str:
    """Return the suffix of the output file; raise TO606 if it is neither that of a picture nor that of a table."""
    suffix = Path(out).suffix.lower()
    if suffix not in _PICTURE_SUFFIXES + _TABLE_SUFFIXES:
        problem = "The suffix of the file determines the format of the diagram."
        raise InputError("TO606", problem, repr(out), f"Use one of {_list_suffixes(diagram)}.")
    return suffix


def _refuse_unused_options(out: str, suffix: str, options: Sequence[str]) -> None:
    """Raise TO603 for options of the picture that a table, or an HTML page, does not have."""
    unused = ["--title", "--no-title"] if suffix in _TABLE_SUFFIXES else []
    unused += ["--figsize", "--dpi", "--style", "--width"] if suffix in (*_TABLE_SUFFIXES, ".html") else []
    if ignored := [option for option in options if option in unused]:
        problem = "A page has no size" if suffix == ".html" else "A table has no title and no size"
        fix = "Omit it, or write a .svg, .png or .pdf."
        raise InputError("TO603", f"{problem}.", f"{ignored[0]} --out {out}", fix)


def _check_rotatable(diagram: str, out: str, suffix: str) -> None:
    """Raise TO606 for an HTML page of a diagram that cannot be rotated."""
    if suffix != ".html" or diagram in _ROTATABLE_DIAGRAMS:
        return
    problem = f"Only {' and '.join(_ROTATABLE_DIAGRAMS)} can be saved as an HTML page, for rotation."
    raise InputError("TO606", problem, f"--diagram {diagram} --out {out}", f"Use one of {_list_suffixes(diagram)}.")


def _check_groups(diagram: str, columns: Mapping[str, Any], *, needs_groups: bool) -> None:
    """Raise TO601 if a diagram of groups gets no group column, and TO603 if another one gets any."""
    if needs_groups and "group" not in columns:
        raise InputError("TO601", "No group column is named.", "no --group", "Add --group C for every such column.")
    if "group" in columns and not needs_groups:
        got = f"--group {columns['group'][0]} --diagram {diagram}"
        raise InputError("TO603", f"{diagram} has no --group.", got, "Use --diagram groups, or trueodds audit.")


def _list_suffixes(diagram: str) -> str:
    is_rotatable = diagram in _ROTATABLE_DIAGRAMS
    return " ".join(suffix for suffix in _PICTURE_SUFFIXES + _TABLE_SUFFIXES if suffix != ".html" or is_rotatable)


def _parse_size(text: str) -> Any:
    """Parse W,H; invalid sizes are rejected where the size of any figure is checked."""
    return [parse_value(side) for side in text.split(",")]
