"""Tables of the data of an audit (size, classes, means, weights) and of the settings of its results."""

from __future__ import annotations

from trueodds.core.formatting import format_boolean, format_integer, format_share
from trueodds.reports.text.formatting import format_settings, format_value, is_binary
from trueodds.reports.text.text_table import LABEL_AND_TEXT, AuditDict, TextTable

MAX_LISTED_CLASSES = 20  # names of classes in the description of the data


def data_table(audit: AuditDict) -> TextTable:
    """Return the table of the description of the audited data."""
    data = audit["data"]
    names = data.get("classes") or []
    n_unlisted = len(names) - MAX_LISTED_CLASSES
    class_list = ", ".join(names[:MAX_LISTED_CLASSES]) + (f" and {n_unlisted:,} more" if n_unlisted > 0 else "")
    unit = {"multilabel": "labels", "confidence": "outcomes"}.get(data["kind"], "classes")
    rows = [
        ("source", data["source"]),
        ("rows", f"{data['n']:,}"),
        (unit, f"{data['k']:,}: {class_list}"),
        *_mean_entries(data),
        ("weights", f"yes, total {format_value(data.get('weight'))}" if data.get("weighted") else "no"),
        ("votes", format_boolean(data.get("votes"))),
        ("clusters", "none" if data.get("clusters") is None else f"{data['clusters']:,}"),
        ("group columns", ", ".join(data.get("group_columns") or ()) or "none"),
        ("predicted exactly 0", format_integer(data.get("zeros"))),
        ("of these, observed", format_integer(data.get("true_class_zeros"))),
        ("resolution", data.get("resolution") or "–"),
    ]
    return TextTable("The data", LABEL_AND_TEXT, tuple(rows))


def _mean_entries(data: AuditDict) -> list[tuple[str, str]]:
    """Return the labels and values of the mean predictions and outcomes; for two classes first those of the second."""
    means = []
    if is_binary(data):
        event = data["classes"][1]
        rate_label = "vote share" if data.get("votes") else "event rate"
        means = [(f"mean P({event})", data["mean_prediction"]), (f"{rate_label} of {event}", data["event_rate"])]
    accuracy = "vote share, predicted class" if data.get("votes") else "accuracy"  # short enough for the terminal
    means += [(accuracy, data.get("accuracy")), ("mean confidence", data.get("mean_confidence"))]
    weighted = ", weighted" if data.get("weighted") else ""
    return [(f"{label}{weighted}", format_share(mean)) for label, mean in means]


def settings_table(audit: AuditDict) -> TextTable:
    """Return the table of the settings with which every estimate, test and diagram was computed."""
    rows = [("audit", format_settings(audit.get("settings") or {}))]
    vote_measures = (audit.get("people") or {"measures": ()})["measures"]
    for measure in (*audit["measures"], *vote_measures):
        settings = dict(measure.get("settings") or {})
        if measure["interval"]:
            settings["interval"] = measure["interval"]["method"]
            settings["level"] = measure["interval"]["level"]
        rows.append((f"{measure['estimator']}, {measure['lens']}", format_settings(settings)))
    rows += [
        (f"{test['test']}, {test['lens']}", format_settings(test.get("settings") or {})) for test in audit["tests"]
    ]
    rows += [
        (f"{diagram['diagram']}, {diagram['lens']}", format_settings(diagram.get("settings") or {}))
        for diagram in audit["diagrams"]
    ]
    rows_with_settings = tuple(row for row in rows if row[1] != "–")
    return TextTable("Settings", LABEL_AND_TEXT, rows_with_settings)
