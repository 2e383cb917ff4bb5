"""Render an audit as one self-contained HTML page that loads and sends nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from trueodds.core.errors import InputError, install_command
from trueodds.core.printable import printable_tree
from trueodds.reports import decision_costs
from trueodds.reports.html import figures
from trueodds.reports.html.methods_paragraph import cite_audit, describe_methods
from trueodds.reports.text import annotators, data_and_settings, group_tables, recalibration, results
from trueodds.reports.text.formatting import (
    describe_size,
    format_share,
    insert_no_break_spaces,
    is_binary,
)
from trueodds.reports.text.summary import summary_lines
from trueodds.reports.text.tables import LABEL_AND_TEXT, ErrorMark, TextTable

MAX_STRIP_SHARE = 0.96  # share of the width of a strip that the largest number takes
# The badge of a state where it is not the name of the state.
_STATE_BADGES = {"too high": "overpredicts", "too low": "underpredicts"}
# The style class of the header by state; "plain" for the others.
_STATE_ROLES = {
    **dict.fromkeys(("reversed", "overconfident", "underconfident", "too high", "too low", "miscalibrated"), "bad"),
    "no evidence": "good",
}


def render_html(
    audit: Mapping[str, Any], svgs: Sequence[str | None] = (), widgets: Sequence[tuple[str, str] | None] = ()
) -> str:
    """Render the page of an audit dictionary (schema trueodds.audit/1).

    Parameters
    ----------
    audit : mapping
        The result of `Audit.to_dict`. The page shows every number in it.
    svgs : sequence of str or None
        The SVG text of each of `audit["diagrams"]`, in their order. Reliability diagrams need none, because the page
        draws them from their tables; another diagram without one is shown as its table alone.
    widgets : sequence of (str, str) or None
        Interactive diagrams in the same order, each with its HTML and its script. A script is included once.

    Returns
    -------
    str
        The HTML text.

    Raises
    ------
    InputError
        TO702 if jinja2 is not installed.
    """
    audit = printable_tree(audit)
    style = _read_template("style.css")
    scripts = list(dict.fromkeys([_read_template("script.js"), *(widget[1] for widget in widgets if widget)]))
    lists = {
        "data": data_and_settings.data_table(audit),
        "fix": recalibration.recalibration_table(audit),
        "settings": data_and_settings.settings_table(audit),
        "provenance": _provenance_table(audit),
    }
    lists["acting"] = decision_costs.regret_table(audit)
    lists["between"] = group_tables.group_gap_table(audit)
    tables = {
        "scores": results.score_table(audit),
        "standard": results.standard_measure_table(audit),
        "errors": results.error_table(audit),
        "classes": results.class_table(audit),
        "groups": group_tables.group_table(audit),
        "tests": results.test_table(audit),
        "candidates": recalibration.candidate_table(audit),
        "actions": decision_costs.action_table(audit),
        "people": annotators.vote_measure_table(audit),
        "targets": annotators.vote_target_table(audit),
        "furthest": annotators.furthest_row_table(audit),
    }
    entries = figures.figure_entries(audit, svgs, widgets)
    return str(
        _load_template().render(
            audit=audit,
            title=audit["data"]["source"],
            sentence=audit["verdict"]["sentence"],
            state=_STATE_BADGES.get(audit["verdict"]["state"], audit["verdict"]["state"]),
            role=_STATE_ROLES.get(audit["verdict"]["state"], "plain"),
            size=describe_size(audit["data"]),
            scale=_mean_scale(audit["data"]),
            facts=[*summary_lines(audit), *decision_costs.regret_lines(audit)],
            main=figures.main_pictures(audit, entries),
            figures=entries,
            has_bins=any(picture.inline for entry in entries for picture in entry["pictures"]),
            held_out=figures.held_out_tables(audit),
            curves={
                "errors": figures.row_curves(audit, tables["errors"]),
                "classes": figures.row_curves(audit, tables["classes"], "classwise"),
            },
            methods=describe_methods(audit),
            citation=cite_audit(audit),
            lists=lists,
            tables=tables,
            notes=data_and_settings.group_notes_by_code(audit),
            style=style,
            scripts=scripts,
            style_hash=_csp_hash(style),
            script_hashes=" ".join(f"'{_csp_hash(script)}'" for script in scripts),
        )
    )


def _provenance_table(audit: Mapping[str, Any]) -> TextTable:
    """Return the table of what identifies the audit: versions, seed and fingerprint of the rows."""
    labels = {"trueodds": "trueodds", "python": "Python", "numpy": "NumPy", "scipy": "SciPy"}
    versions = audit.get("versions") or {"trueodds": audit["version"]}
    rows = [
        *((labels.get(name, name), version) for name, version in versions.items()),
        ("seed", str((audit.get("settings") or {}).get("seed", "–"))),
        ("fingerprint of the rows", audit["data"].get("fingerprint") or "none: the rows were tallied"),
    ]
    return TextTable("Versions and fingerprint", LABEL_AND_TEXT, tuple(rows))


@cache
def _read_template(name: str) -> str:
    """Return the text of a file beside this module."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8").strip()


@cache
def _load_template() -> Any:
    """Return the template of the page; raises TO702 without jinja2."""
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
    environment.globals |= {"strips": _interval_strips, "raw": _mark_safe}
    environment.filters["glued"] = insert_no_break_spaces
    return environment.get_template("page.html.jinja")


def _mark_safe(text: str) -> Any:
    """Mark text to be inserted unescaped: style and scripts, whose hashes must match, and HTML already escaped."""
    from markupsafe import Markup

    return Markup(text)


def _csp_hash(text: str) -> str:
    """Return the hash of a style or script in the content security policy of the page."""
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()


def _mean_scale(data: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the positions and labels of the mean prediction and the observed mean on a scale from 0 to 100 %."""
    binary = is_binary(data)
    predicted, observed = (
        (data["mean_prediction"], data["event_rate"]) if binary else (data.get("mean_confidence"), data.get("accuracy"))
    )
    if predicted is None or observed is None:
        return None
    weighted = "weighted " if data.get("weighted") else ""
    outcome = "vote share" if data.get("votes") else "observed" if binary else "accuracy"
    return {
        "predicted": _css_percent(predicted),
        "observed": _css_percent(observed),
        "left": _css_percent(min(predicted, observed)),
        "width": _css_percent(abs(predicted - observed)),
        "predicted_label": (f"{weighted}{'mean predicted' if binary else 'mean confidence'} {format_share(predicted)}"),
        "observed_label": f"{weighted}{outcome} {format_share(observed)}",
    }


def _css_percent(fraction: float) -> str:
    """Return a fraction as a CSS percentage, limited to 0 and 100 %."""
    return f"{100 * min(max(fraction, 0.0), 1.0):.2f}%"


def _interval_strips(table: TextTable) -> list[dict[str, str] | None]:
    """Return the error, interval and noise floor of each row as positions on a common scale."""
    largest = max((mark.largest_value for mark in table.marks), default=0.0) or 1.0
    return [_interval_strip(mark, MAX_STRIP_SHARE / largest) for mark in table.marks]


def _interval_strip(mark: ErrorMark, scale: float) -> dict[str, str] | None:
    """Return the positions of the numbers of one row, multiplied by `scale`; None without a value."""
    if mark.value is None:
        return None
    positions = {"value": _css_percent(mark.value * scale)}
    if mark.noise_floor is not None:
        positions["floor"] = _css_percent(mark.noise_floor * scale)
    if mark.low is not None and mark.high is not None:
        positions |= {"low": _css_percent(mark.low * scale), "high": _css_percent(mark.high * scale)}
    return positions
