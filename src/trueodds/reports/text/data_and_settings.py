"""Tables of the data of an audit (size, classes, means, weights) and of the settings of its results."""

from __future__ import annotations

from trueodds.core.formatting import format_boolean, format_integer, format_share
from trueodds.core.table import Table
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import AuditData
from trueodds.reports.text.formatting import format_settings, format_value

MAX_LISTED_CLASSES = 20  # names of classes in the description of the data


def data_table(audit: AuditResult) -> Table:
    data = audit.data
    names = data.classes
    n_unlisted = len(names) - MAX_LISTED_CLASSES
    class_list = ", ".join(names[:MAX_LISTED_CLASSES]) + (f" and {n_unlisted:,} more" if n_unlisted > 0 else "")
    unit = {"multilabel": "labels", "confidence": "outcomes"}.get(data.kind, "classes")
    rows = [
        ("source", data.source),
        ("rows", f"{data.n:,}"),
        *_event_entries(data),
        (unit, f"{data.k:,}: {class_list}"),
        *_mean_entries(data),
        ("weights", f"yes, total {format_value(data.weight)}" if data.weighted else "no"),
        ("votes", format_boolean(data.votes)),
        ("clusters", "none" if data.clusters is None else f"{data.clusters:,}"),
        ("group columns", ", ".join(data.group_columns) or "none"),
        ("predicted exactly 0", format_integer(data.zeros)),
        ("of these, observed", format_integer(data.true_class_zeros)),
        ("resolution", data.resolution or "–"),
    ]
    return Table.from_entries("The data", rows)


def _event_entries(data: AuditData) -> list[tuple[str, str]]:
    """Return the labels and values of the numbers of events and non-events; empty unless they are known."""
    if data.event_counts is None:
        return []
    events, non_events = data.event_counts
    return [("events", f"{events:,}"), ("non-events", f"{non_events:,}")]


def _mean_entries(data: AuditData) -> list[tuple[str, str]]:
    """Return the labels and values of the mean predictions and outcomes; for two classes first those of the second."""
    means = []
    if data.is_binary:
        event = data.classes[1]
        rate_label = "vote share" if data.votes else "event rate"
        means = [(f"mean P({event})", data.mean_prediction), (f"{rate_label} of {event}", data.event_rate)]
    accuracy = "vote share, predicted class" if data.votes else "accuracy"  # short enough for the terminal
    means += [(accuracy, data.accuracy), ("mean confidence", data.mean_confidence)]
    weighted = ", weighted" if data.weighted else ""
    return [(f"{label}{weighted}", format_share(mean)) for label, mean in means]


def settings_table(audit: AuditResult) -> Table:
    """Return the table of the settings with which every estimate, test and diagram was computed."""
    rows = [("audit", format_settings(audit.settings or {}))]
    vote_measures = () if audit.people is None else audit.people.measures
    for measure in (*audit.measures, *vote_measures):
        settings = dict(measure.settings)
        if measure.interval is not None:
            settings |= {"interval": measure.interval.method, "level": measure.interval.level}
        rows.append((f"{measure.estimator}, {measure.lens}", format_settings(settings)))
    rows += [(f"{test.test}, {test.lens}", format_settings(test.settings)) for test in audit.tests]
    rows += [(f"{diagram.diagram}, {diagram.lens}", format_settings(diagram.settings)) for diagram in audit.diagrams]
    return Table.from_entries("Settings", [row for row in rows if row[1] != "–"])
