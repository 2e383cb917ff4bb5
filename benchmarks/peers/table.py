"""Text table of the results of the comparison for the terminal, with a row for each timed call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.peers.machine import format_machine, is_busy
from benchmarks.peers.results import JobResult, Measurement, Results, results_by_job
from benchmarks.peers.tools import ARRAY_COPY, TRUEODDS

BUSY_WARNING = "The machine was busy with other work: CPU times are more reliable than wall times."
HEADER = ("", "min", "median", "CPU", "extra peak", "value", "")
_TEXT_COLUMNS = (0, 6)  # aligned to the left


def format_results(results: Results) -> str:
    """Return the machine, the versions, and a table and a summary for each job."""
    lines = [format_machine(results.machine), format_versions(results)]
    lines += [f"left out: {reason}" for reason in results.absent]
    lines += [BUSY_WARNING] if is_busy(results.machine) else []
    for job_result in results_by_job(results):
        lines += ["", f"{job_result.job.title}  ({results.shapes[job_result.job.data]})"]
        lines += align_columns(table_rows(job_result))
        lines += [f"  {measurement.tool}: {measurement.note}" for measurement in job_result.not_timed]
        lines += [f"  {summary}"] if (summary := summarize_job(job_result)) else []
    return "\n".join(lines)


def format_versions(results: Results) -> str:
    """Return the tools with their versions, such as `torchmetrics 1.8.2, scipy 1.16.3`."""
    return ", ".join(f"{tool} {description['version']}".strip() for tool, description in results.tools.items())


def table_rows(job_result: JobResult) -> list[tuple[str, ...]]:
    """Return the header, and a row for each timed call: trueodds, peers from fast to slow, copies of the array."""
    rows = [
        (
            describe_call(measurement),
            format_seconds(measurement.min_wall),
            format_seconds(float(np.median(measurement.wall))),
            format_seconds(min(measurement.cpu)),
            format_peak(measurement),
            format_value(measurement),
            remark_on(job_result, measurement),
        )
        for measurement in job_result.timed
    ]
    return [HEADER, *rows]


def describe_call(measurement: Measurement) -> str:
    """Return the tool with the label of its call, such as `trueodds, from arrays`."""
    return f"{measurement.tool}{', ' if measurement.label else ''}{measurement.label}"


def format_peak(measurement: Measurement) -> str:
    """Return the extra memory of a call, or "" if it is not known."""
    return "" if measurement.peak is None else f"{measurement.peak:.{int(measurement.peak < 10)}f} MB"


def format_value(measurement: Measurement) -> str:
    """Return the first two numbers of the result of a call."""
    return " ".join(f"{number:.6f}" for number in measurement.value[:2])


def remark_on(job_result: JobResult, measurement: Measurement) -> str:
    """Return whether a call of trueodds is within its time limit, or whether the value of a peer agrees."""
    if measurement.tool == TRUEODDS:
        is_within_limit = job_result.is_within_limit(measurement)
        if is_within_limit is None:
            return ""
        limit = job_result.job.time_limits[measurement.label]
        return f"{'within' if is_within_limit else 'OVER'} {format_seconds(limit)}"
    if measurement.tool == ARRAY_COPY:
        return ""
    agreement = {True: "agrees", False: "DIFFERS", None: "not compared"}[job_result.agrees(measurement)]
    return f"{agreement}, {measurement.note}" if measurement.note else agreement


def summarize_job(job_result: JobResult) -> str:
    """Return the ratios of run times, or "" if there are none.

    For instance `torchmetrics ÷ ours = 13.2, from arrays 4.1; CPU 12; ours = 1.4 × copyto, 0.5 × copy`.
    """
    parts = []
    if job_result.ratio is not None:
        other_ratios = "".join(
            f", {measurement.label} {job_result.ratio_to(measurement):.3g}" for measurement in job_result.other_calls
        )
        fastest = job_result.comparable_peers[0].tool
        parts.append(f"{fastest} ÷ ours = {job_result.ratio:.3g}{other_ratios}; CPU {job_result.cpu_ratio:.3g}")
    copies = [
        f"{ratio:.3g} × {measurement.label}"
        for measurement in job_result.copies
        if (ratio := job_result.time_in_copies(measurement.label)) is not None
    ]
    if copies:
        parts.append("ours = " + ", ".join(copies))
    return "; ".join(parts)


def format_seconds(seconds: float) -> str:
    """Format a time with three digits and a unit.

    >>> format_seconds(0.0123)
    '12.3 ms'
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def align_columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the rows as lines with columns of equal width; numbers are aligned to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i in _TEXT_COLUMNS else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines
