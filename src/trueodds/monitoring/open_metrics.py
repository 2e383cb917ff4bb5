"""Write the main numbers of reports in the text format OpenMetrics, which Prometheus reads."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from trueodds.monitoring.monitor_report import MonitorReport

PREFIX = "trueodds_monitor"


@dataclass(frozen=True, slots=True)
class _Gauge:
    """A metric: its name without the prefix, its help, and its samples, each with its labels."""

    name: str
    help: str
    samples: tuple[tuple[Mapping[str, str], float], ...]

    def lines(self) -> Iterable[str]:
        name = f"{PREFIX}_{self.name}"
        yield f"# TYPE {name} gauge"
        if name.endswith("_seconds"):
            yield f"# UNIT {name} seconds"
        yield f"# HELP {name} {self.help}"
        for labels, value in self.samples:
            pairs = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
            yield f"{name}{{{pairs}}} {_format(value)}"


def open_metrics(reports: Mapping[str, MonitorReport], discoveries: Collection[str] | None = None) -> str:
    r"""Return the main numbers of the reports of models as OpenMetrics text; every sample has the label `model`.

    A number that does not exist, such as the error before a cohort is judged, has no sample. The `discoveries` are the
    models of a fleet that need attention.

    >>> import trueodds as to
    >>> print(open_metrics({'credit "A"': to.Monitor().report()}).splitlines()[2])
    trueodds_monitor_alarm{model="credit \"A\""} 0
    """
    gauges: dict[str, _Gauge] = {}  # the samples of a metric must follow each other
    for model, report in reports.items():
        for gauge in _gauges(report):
            samples = tuple(({"model": model} | dict(labels), value) for labels, value in gauge.samples)
            before = gauges.get(gauge.name)
            gauges[gauge.name] = replace(gauge, samples=samples if before is None else before.samples + samples)
    if discoveries is not None:
        marks = tuple(({"model": model}, float(model in discoveries)) for model in reports)
        text = "Whether the model is among those of the fleet that need attention (1) or not (0)."
        gauges["needs_attention"] = _Gauge("needs_attention", text, marks)
    lines = [line for gauge in gauges.values() if gauge.samples for line in gauge.lines()]
    return "\n".join([*lines, "# EOF", ""])


def _gauges(report: MonitorReport) -> list[_Gauge]:
    """Return the metrics of a model, whose samples lack the label `model`."""
    status, error = report.status, report.error
    judged = [row for row in report.judged_cohorts if row.epoch == status.epoch]
    gauges = [
        _gauge("alarm", "Whether there is an alarm in the current epoch (1) or not (0).", report.alarm),
        _gauge("log_evidence", "Natural logarithm of the current e-value.", report.log_evidence),
        _gauge(
            "alarm_log_evidence", "Natural logarithm of the e-value that raises an alarm.",
            -math.log(report.settings["alpha"]),
        ),
        _gauge("judged_cohorts", "Cohorts judged in the current epoch.", status.judged),
        _gauge("judged_rows", "Rows of these cohorts.", sum(row.rows for row in judged)),
        _gauge("open_cohorts", "Cohorts whose horizon has not passed.", status.open),
        _gauge("open_rows", "Rows of open cohorts.", status.open_rows),
        _gauge("open_unlabeled_rows", "Rows of open cohorts without a label.", status.open_unlabeled),
        _gauge("epoch", "Number of resets.", status.epoch),
        _gauge(
            "last_judged_timestamp_seconds", "Start of the last judged cohort, in seconds since 1970.",
            _seconds(status.last_judged),
        ),
    ]  # fmt: skip
    if error is not None:
        gauges += [
            _gauge("observed_events", "Observed events since the onset, or in the epoch.", error.observed),
            _gauge("expected_events", "Expected events in the same rows.", error.expected),
            _gauge("error", "Observed minus predicted event rate in these rows.", error.value),
            _gauge("error_low", "Lower limit of the error, which holds at any time.", error.interval.low),
            _gauge("error_high", "Upper limit of the error, which holds at any time.", error.interval.high),
        ]
    parts = tuple(
        ({"claim": part.claim, "view": part.view, "group": part.group or ""}, part.share)
        for part in report.contributions
    )
    return [*gauges, _Gauge("evidence_share", "Share of the evidence by claim, view and group.", parts)]


def _gauge(name: str, text: str, value: float | None) -> _Gauge:
    """Return a metric with one sample, or with none if there is no number."""
    return _Gauge(name, text, () if value is None else (({}, float(value)),))


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _format(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _seconds(cohort: str | None) -> float | None:
    """Return the start of a cohort in seconds since 1970; None if cohorts are integers, or none was judged."""
    if cohort is None or cohort.lstrip("-").isdigit():
        return None
    return float(np.datetime64(cohort, "s").astype(np.int64))
