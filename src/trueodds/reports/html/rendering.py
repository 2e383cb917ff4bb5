"""Render the jinja2 templates of the HTML pages with style sheet, scripts and a content security policy."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from trueodds.core import json_files
from trueodds.core.content_security_policy import csp_hash
from trueodds.core.errors import InputError, install_command
from trueodds.core.formatting import insert_no_break_spaces
from trueodds.core.printable import to_printable
from trueodds.core.table import Column, Table
from trueodds.reports.text.result_tables import ErrorMark


@dataclass(frozen=True, slots=True)
class Cover:
    """What the head of the page states beside the audit; all empty without a title, an author and a date."""

    title: str = ""
    author: str = ""
    date: str = ""  # in ISO format

    @classmethod
    def of(cls, title: str | None = None, author: str | None = None, date: str | datetime.date | None = None) -> Cover:
        """Check the texts and the date; with a title or an author the date is today's by default.

        >>> Cover.of("Validation", date="2026-03-01")
        Cover(title='Validation', author='', date='2026-03-01')
        """
        texts = {"title": title, "author": author}
        for name, text in texts.items():
            if text is not None and not isinstance(text, str):
                raise InputError("TO203", f"{name} must be a text.", repr(text), f'For instance ⟨{name}="…"⟩.')
        cleaned = {name: " ".join(to_printable(text or "").split()) for name, text in texts.items()}
        if date is None:
            return cls(**cleaned, date=datetime.date.today().isoformat() if any(cleaned.values()) else "")
        return cls(**cleaned, date=_parse_date(date).isoformat())

    @property
    def is_signed(self) -> bool:
        """Whether the page has lines for signatures."""
        return bool(self.title or self.author or self.date)


def _parse_date(date: str | datetime.date) -> datetime.date:
    """Return a date, or raise TO203 unless it is one or its text in ISO format."""
    if isinstance(date, datetime.datetime):
        return date.date()
    if isinstance(date, datetime.date):
        return date
    try:
        return datetime.date.fromisoformat(date)
    except (TypeError, ValueError):
        fix = "Write year, month and day: 2026-03-01."
        raise InputError("TO203", "date must be a date in ISO format.", repr(date), fix) from None


MAX_STRIP_SHARE = 0.96  # position of the largest number on the strips beside the rows, as a share of their width


def render_page(
    template: str,
    widget_scripts: Sequence[str] = (),
    path: str | os.PathLike[str] | None = None,
    **values: Any,
) -> str:
    """Return the HTML text of a template beside this module, with the common style and script; write it to a path.

    Each of the scripts of interactive diagrams is included once; `values` are the variables of the template.
    """
    style = _read_template("style.css")
    scripts = list(dict.fromkeys([_read_template("script.js"), *widget_scripts]))
    text = str(
        _load_environment()
        .get_template(template)
        .render(
            style=style,
            scripts=scripts,
            style_hash=csp_hash(style),
            script_hashes=" ".join(f"'{csp_hash(script)}'" for script in scripts),
            **values,
        )
    )
    if path is not None:
        json_files.write_text(path, text, "TO703")
    return text


@cache
def _read_template(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


@cache
def _load_environment() -> Any:
    """Return the jinja2 environment, with the functions and filters of the templates; raise TO702 without jinja2."""
    try:
        import jinja2
    except ImportError:
        raise InputError("TO702", "The HTML page requires jinja2.", "no jinja2", install_command("report")) from None
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _read_template(name) + "\n"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"drawn_cells": _draw_cells, "raw": _mark_safe}
    environment.filters["glued"] = insert_no_break_spaces
    return environment


def _mark_safe(text: str) -> Any:
    """Mark text to be inserted unescaped: style and scripts, whose hashes must match, and HTML already escaped."""
    from markupsafe import Markup

    return Markup(text)


def css_percent(fraction: float) -> str:
    """Return a fraction as a CSS percentage, limited to 0 and 100 %."""
    return f"{100 * min(max(fraction, 0.0), 1.0):.2f}%"


def _draw_cells(table: Table) -> dict[str, Sequence[Any]]:
    """Return the cells of the drawn columns by their kind: curves as SVG, and bars as positions on a strip."""
    return {
        column.kind: _interval_strips(column) if column.kind == "bar" else column.cells
        for column in table.drawn_columns
    }


def _interval_strips(column: Column) -> list[dict[str, str] | None]:
    """Return error, interval and noise floor of each row as CSS positions on a strip, with a common scale.

    A row without an error has None.
    """
    largest = max((mark.largest_value for mark in column.values), default=0.0) or 1.0
    return [_interval_strip(mark, MAX_STRIP_SHARE / largest) for mark in column.values]


def _interval_strip(mark: ErrorMark, scale: float) -> dict[str, str] | None:
    """Return the positions of the numbers of one row, multiplied by `scale`; None without a value."""
    if mark.value is None:
        return None
    positions = {"value": css_percent(mark.value * scale)}
    if mark.noise_floor is not None:
        positions["floor"] = css_percent(mark.noise_floor * scale)
    if mark.interval is not None and mark.interval.low is not None and mark.interval.high is not None:
        ends = {"low": mark.interval.low, "high": mark.interval.high}
        positions |= {name: css_percent(end * scale) for name, end in ends.items()}
    return positions
