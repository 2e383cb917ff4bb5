"""Prepare the diagrams for the page of an audit: the main pictures, all figures, and small curves beside tables."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueodds.core.formatting import format_percent_in_text, format_share
from trueodds.core.json_files import strict_json
from trueodds.core.table import Column, Table
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import AuditData, AuditDiagram, AuditRecalibration, HeldOutDiagrams
from trueodds.reports.html.svg_pictures import (
    belt_svg,
    curve_svg,
    decision_svg,
    histogram_svg,
    reliability_svg,
    select_bins,
    upper_limit,
)
from trueodds.reports.text.diagram_tables import (
    curve_table,
    describe_bin,
    diagram_table,
    largest_deviation,
    panel_table,
    read_bins,
)
from trueodds.reports.text.formatting import describe_lens
from trueodds.reports.text.recalibration import calibrator_with_parameters, format_gain_bound, format_log_loss
from trueodds.reports.text.result_tables import class_name

INLINE_DIAGRAMS = ("reliability", "confidence_histogram")  # drawn as SVG elements of the page


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the page: an SVG element, or an image with its alternative text."""

    inline: str = ""  # the SVG element
    source: str = ""  # the data URI of an image
    alt: str = ""
    title: str = ""
    view: str = ""  # the class, if the diagram has several views
    table_id: str = ""  # id of the table that lists the numbers
    keys: tuple[tuple[str, str], ...] = ()  # the kind and the meaning of each line and area
    caption: str = ""  # a sentence on the picture


def figure_entries(
    audit: AuditResult, svgs: Sequence[str | None], widgets: Sequence[tuple[str, str] | None]
) -> list[dict[str, Any]]:
    """Return what the template needs for each diagram: its texts, pictures or interactive widget, and tables.

    Parameters
    ----------
    audit : AuditResult
        The audit.
    svgs : sequence of str or None
        The SVG text of each diagram; None for diagrams that the page draws itself or shows as a widget.
    widgets : sequence of (str, str) or None
        HTML and script of the interactive form of each diagram; None for a diagram without one.

    Returns
    -------
    list of dict
        Variables of the template, one dictionary per diagram.
    """
    unit = "label" if audit.data.kind == "multilabel" else "class"
    figures: list[dict[str, Any]] = []
    nones = [None] * len(audit.diagrams)  # for diagrams without an SVG or a widget
    for diagram, svg, widget in zip(audit.diagrams, [*svgs, *nones], [*widgets, *nones], strict=False):
        name, lens = diagram.diagram.replace("_", " "), diagram.lens
        texts = list((diagram.panels or {}).get("finding") or ())
        finding = texts[0] if len(texts) == 1 else ""
        alt = " ".join(f"{name}, {lens}. {finding} The numbers are in the table.".split())
        pictures = _inline_pictures(diagram, audit.data)
        if not pictures and svg is not None:
            pictures = [Picture(source=svg_data_uri(svg), alt=alt)]
        views = dict.fromkeys(diagram.table.get("view") or ())
        figures.append(
            {
                "id": _unique_id(f"figure-{name}-{lens}", [figure["id"] for figure in figures]),
                "name": name,
                "lens": lens,
                "examined": describe_lens(lens, audit.data),
                "finding": finding,
                "widget": widget and widget[0],
                "pictures": pictures,
                "n_not_drawn": len(views) - len(pictures) if len(pictures) > 1 else 0,
                "drawn_classes": [picture.view for picture in pictures] if len(pictures) > 1 else (),
                "table": diagram_table(diagram, unit=unit),
                "panels": panel_table(diagram, unit=unit),
            }
        )
    return figures


def curve_entries(diagrams: Sequence[Diagram]) -> list[tuple[Picture, Table]]:
    """Return the pictures of a calibration belt and a decision curve, each with the table of its numbers."""
    entries = []
    for diagram in diagrams:
        facts = AuditDiagram.from_dict(strict_json(diagram.to_dict()))
        panel = {name: values[0] for name, values in (facts.panels or {}).items()}
        is_belt, caption = facts.diagram == "calibration_belt", panel["finding"]
        title = "Calibration belt" if is_belt else "Decision curve"
        label = f"{title}. {caption} The numbers are in the table."
        if is_belt:
            level = format_percent_in_text(max(facts.settings["levels"]))
            inline, keys = (
                belt_svg(facts.table, label),
                [("fit", "fitted curve"), ("band", f"{level} simultaneous band")],
            )
        else:
            inline, keys = decision_svg(facts.table, panel, label), list(_DECISION_KEYS)
            if facts.settings["banded"]:
                keys.append(("band", f"{format_percent_in_text(facts.settings['level'])} pointwise band"))
        picture = Picture(inline=inline, title=title, caption=caption, keys=tuple(keys))
        entries.append((picture, curve_table(facts)))
    return entries


_DECISION_KEYS = (("fit", "model"), ("alternative", "treat all"), ("zero", "treat none"))


def main_pictures(audit: AuditResult, figures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the pictures at the top of the page as `pictures`, with their `caption`.

    After a confirmed recalibration these are the reliability diagrams of the held-out rows before and after it.
    Without one it is the diagram of `_diagram_of_evidence`, which is also put first if it shows a single class, because
    the diagrams of all rows do not show the error of that class. `figures` are the results of `figure_entries`.
    """
    recalibration = audit.recalibration or AuditRecalibration()
    held_out = recalibration.diagrams
    evidence, caption = _diagram_of_evidence(audit, figures)
    if held_out is None:
        return {"pictures": evidence, "caption": caption}
    axes = axis_names(audit.data.kind, held_out.before.lens, has_votes=audit.data.votes)
    pairs = [(time, select_bins(diagram.table)) for time, diagram in held_out.by_time.items()]
    limit = max(upper_limit(bins) for _, bins in pairs)
    pictures = [
        Picture(
            inline=reliability_svg(bins, f"Reliability diagram {time} recalibration", axes, limit),
            title=f"{time.capitalize()}: log loss {format_log_loss(recalibration, time)}",
            table_id=f"table-{time}",
        )
        for time, bins in pairs
    ]
    bound = format_gain_bound(recalibration)
    text = (
        f"{_describe_correction(recalibration, held_out, audit.data)}Each row's recalibrated probability comes from a"
        f" map fitted and chosen without that row ({held_out.n:,} rows). Cross-fitting equalizes the mean; judge only"
        " the shape of the curve." + (f" The log loss is reduced by {bound}." if bound else "")
    )
    shows_class = any(picture.view for picture in evidence)
    if shows_class:
        return {"pictures": [*evidence, *pictures], "caption": f"{caption} {text}"}
    return {"pictures": pictures, "caption": text}


def _describe_correction(recalibration: AuditRecalibration, held_out: HeldOutDiagrams, data: AuditData) -> str:
    """Return a sentence on the bins of the held-out rows, before and after the recalibration.

    It states the bin with the largest error before, and how many bins lie outside their consistency bars.
    """
    before, after = (read_bins(diagram.table) for diagram in (held_out.before, held_out.after))
    deviation = describe_bin(largest_deviation(before), data)
    n_before, n_after = (sum(bin_.outside for bin_ in bins) for bins in (before, after))
    counts = f"{n_before} of {len(before)} bins lie outside their consistency bars"
    verb = "does" if n_after == 1 else "do"
    return (
        f"Before recalibration, {f'{deviation}, and ' if deviation else ''}{counts}; after recalibration by"
        f" {calibrator_with_parameters(recalibration)}, {n_after or 'none'} of {len(after)} {verb}. "
    )


def _diagram_of_evidence(audit: AuditResult, figures: Sequence[Mapping[str, Any]]) -> tuple[list[Picture], str]:
    """Return the reliability diagram that shows best why calibration is rejected, and its caption.

    It is that of the default lens; but if calibration is rejected and not by the test through this lens, it is that of
    the class with the largest error. The list is empty if there is no reliability diagram.
    """
    drawn = [figure for figure in figures if figure["name"] == "reliability" and figure["pictures"]]
    if not drawn:
        return [], ""
    default_figure = drawn[0]
    figure_of_classes = next((figure for figure in drawn if len(figure["pictures"]) > 1), None)
    if audit.verdict.rejected and not audit.is_default_test_significant and figure_of_classes is not None:
        picture = replace(figure_of_classes["pictures"][0], table_id=f"numbers-{figure_of_classes['id']}")
        return [picture], "The class with the largest error."
    picture = replace(default_figure["pictures"][0], table_id=f"numbers-{default_figure['id']}")
    return [picture], default_figure["finding"]


def bar_level(diagrams: Sequence[AuditDiagram]) -> str | None:
    """Return the level of the consistency bars of the reliability diagrams, such as "95 %"; None if there are none."""
    levels = [diagram.settings["level"] for diagram in diagrams if diagram.diagram == "reliability"]
    return format_percent_in_text(levels[0]) if levels else None


def held_out_tables(audit: AuditResult) -> list[tuple[str, Table]]:
    """Return ("before", table) and ("after", table) of the held-out diagrams; empty without a recalibration."""
    held_out = None if audit.recalibration is None else audit.recalibration.diagrams
    return [] if held_out is None else [(time, diagram_table(diagram)) for time, diagram in held_out.by_time.items()]


def add_curves(audit: AuditResult, table: Table, lens: str | None = None) -> Table:
    """Return a table with the reliability curve of each row, unless no row has one.

    If `lens` is given, the rows are classes, and the curves are those of the views of its diagram. Otherwise the rows
    are lenses. A row without a curve has an empty text.
    """
    tables = {diagram.lens: diagram.table for diagram in audit.diagrams if diagram.diagram == "reliability"}
    if lens is None:
        lenses = [cell for column in table.columns if column.name == "lens" for cell in column.cells]
        curves = [_single_curve(tables.get(row_lens)) for row_lens in lenses]
    else:
        bins_by_class: dict[str, list[Any]] = {}
        for row in select_bins(tables.get(lens) or {}):
            bins_by_class.setdefault(class_name(row.get("view", "")), []).append(row)
        limit = max((upper_limit(bins) for bins in bins_by_class.values()), default=1.0)
        curves = [curve_svg(bins_by_class.get(row[0], ()), limit) for row in table.rows]
    if not any(curves):
        return table
    columns = (*table.text_columns, Column("curve", curves, "curve"), *table.drawn_columns)
    return replace(table, columns=columns)


def axis_names(kind: str, lens: str, *, has_votes: bool = False) -> tuple[str, str]:
    """Return what the axes of a reliability diagram show: confidence and accuracy, or predicted and observed.

    >>> axis_names("classes", "confidence"), axis_names("classes", "classwise")
    (('confidence', 'accuracy'), ('predicted', 'observed'))
    """
    if lens == "confidence" and kind != "multilabel":
        return "confidence", "vote share" if has_votes else "accuracy"
    return "predicted", "observed"


def _single_curve(table: Mapping[str, Any] | None) -> str:
    """Return the SVG of the curve of a diagram, from its table; empty without a table or with several views."""
    if table is None or len(set(table.get("view") or ())) > 1:
        return ""
    return curve_svg(select_bins(table))


def _inline_pictures(diagram: AuditDiagram, data: AuditData) -> list[Picture]:
    """Return the pictures that the page draws itself, those of `INLINE_DIAGRAMS`; empty for another diagram.

    A confidence histogram has one, a reliability diagram one for each of the first `MAX_PANELS` views, with common
    axes. `data` is the description of the data.
    """
    axes = axis_names(data.kind, diagram.lens, has_votes=data.votes)
    if diagram.diagram == "confidence_histogram":
        totals = {name: values[0] for name, values in (diagram.panels or {}).items()}
        label = f"Confidence histogram, {diagram.lens}. {totals['finding']} The numbers are in the table."
        keys = (
            ("mean", f"mean {axes[0]} {format_share(totals['mean_prediction'])}"),
            ("rate", f"{axes[1]} {format_share(totals['outcome_rate'])}"),
            ("range", f"{format_percent_in_text(diagram.settings['level'])} consistency range"),
        )
        return [Picture(inline=histogram_svg(diagram.table, totals, axes, label), keys=keys)]
    if diagram.diagram != "reliability":
        return []
    views = list(dict.fromkeys(diagram.table.get("view") or ()))
    panels = diagram.panels or {}
    details = dict(zip(panels.get("view") or (), panels.get("aside") or (), strict=False))
    drawn = {view: bins for view in views[:MAX_PANELS] if (bins := select_bins(diagram.table, view))}
    limit = max((upper_limit(bins) for bins in drawn.values()), default=1.0)
    pictures = []
    for view, bins in drawn.items():
        name = class_name(view) if len(views) > 1 else ""
        label = f"Reliability diagram, {diagram.lens}{f', {name}' if name else ''}"
        title = f"{name}: {details[view]}" if name and view in details else name
        pictures.append(Picture(inline=reliability_svg(bins, label, axes, limit), title=title, view=name))
    return pictures


def svg_data_uri(svg: str) -> str:
    """Return an SVG picture as a data URI, so that the page loads nothing."""
    return "data:image/svg+xml;base64," + base64.b64encode(shorten_svg(svg).encode()).decode()


def shorten_svg(svg: str) -> str:
    """Return an SVG picture with coordinates rounded to hundredths and without line breaks.

    >>> shorten_svg('<path d="M 12.345678 0.5\\nL 3.000001 -7.123456" transform="scale(0.0156251)"/>')
    '<path d="M 12.35 0.5 L 3 -7.12" transform="scale(0.015625)"/>'
    """
    rounded = re.sub(r"-?\d+\.\d{3,}", _round_coordinate, svg)
    return re.sub(r"\s*\n\s*", " ", rounded)


def _round_coordinate(match: re.Match[str]) -> str:
    """Return a number with two decimals, or with five significant digits if it is below 1, such as a scale."""
    x = float(match[0])
    return f"{x:.2f}".rstrip("0").rstrip(".") if abs(x) >= 1 else f"{x:.5g}"


def _unique_id(text: str, used: Sequence[str]) -> str:
    """Return an id made of lower-case letters, digits and hyphens that is not in use."""
    stem = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    name, number = stem, 2
    while name in used:
        name, number = f"{stem}-{number}", number + 1
    return name
