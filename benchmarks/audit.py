"""Benchmark of an audit: of a small file, from the command to the HTML page; of rows in memory; and of a large file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.process_cost import measure_process, run_process, trueodds_command, write_predictions_file
from benchmarks.tally import READ_SCRIPT

AUDIT_SCRIPT = """
import sys
import trueodds as to
to.audit(to.read(sys.argv[1:]), mode="tally")
"""
MAX_FILE_ROWS = 1_000_000  # a larger number of rows is read as the same file several times


def measure_audit(folder: Path, repeats: int) -> list[tuple[str, str]]:
    """Return lines (what is measured, result) on the command `trueodds audit FILE --html PAGE`.

    The file has 10,000 rows and ten classes. A first run, which is not measured, compiles the kernels.
    """
    file = folder / "audit.parquet"
    write_predictions_file(file, 10_000)
    command = [trueodds_command(), "audit", str(file), "--html", str(folder / "audit.html")]
    run_process(command)
    cost = measure_process(command, repeats)
    return [
        ("audit 10,000 × 10, file to page", f"{cost.wall:.2f} s wall"),
        ("", f"{cost.cpu:.2f} CPU-s"),
        ("", f"{cost.peak:.0f} MB peak"),
    ]


def measure_audit_in_memory(rows: int, classes: int, repeats: int) -> list[tuple[str, str]]:
    """Return lines (what is measured, result) on audits of simulated predictions that are in memory already.

    The time is the minimum of the audits of one process, whose kernels are compiled. The memory is what the first audit
    adds to the process at its peak.
    """
    script = Path(__file__).with_name("audit_in_memory.py")
    command = [sys.executable, str(script), str(rows), str(classes), str(repeats)]
    audits = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout)
    data = rows * (classes + 1) * 8 / 1e6  # probabilities and labels
    return [
        (f"audit {rows:,} × {classes} in memory", f"{min(audit['wall'] for audit in audits):.2f} s wall"),
        ("", f"{min(audit['cpu'] for audit in audits):.2f} CPU-s"),
        ("", f"{audits[0]['added']:.0f} MB beside {data:.0f} MB of data"),
    ]


def measure_large_audit(folder: Path, rows: int, dtype: str) -> list[tuple[str, str]]:
    """Return lines (what is measured, result) on an audit of very many rows, compared with only reading them.

    The audit has all p-values, intervals, and a recalibration.
    """
    small_file, large_file = folder / "small.parquet", folder / "large.parquet"
    write_predictions_file(small_file, 1_000, dtype)
    write_predictions_file(large_file, min(rows, MAX_FILE_ROWS), dtype)
    files = [str(large_file)] * max(1, rows // MAX_FILE_ROWS)
    read, audit = [sys.executable, "-c", READ_SCRIPT], [sys.executable, "-c", AUDIT_SCRIPT]
    run_process([*audit, str(small_file)])  # compiles the kernels
    read_cost, audit_cost = measure_process([*read, *files]), measure_process([*audit, *files])
    return [
        (f"read {rows:,} × 10", f"{read_cost.cpu:.1f} CPU-s"),
        (f"audit {rows:,} × 10", f"{audit_cost.cpu:.1f} CPU-s"),
        ("audit ÷ read", f"{audit_cost.cpu / read_cost.cpu:.2f}"),
        ("peak memory, audit", f"{audit_cost.peak:.0f} MB"),
    ]
