"""Cost of tallying a file, compared with only reading it."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.process import cost, once, write

BATCH = 1 << 16  # rows the source reads at a time

# The same settings as the source of parquet files: batches of that size, no row groups held in advance.
READ = f"""
import sys
import pyarrow.parquet
for path in sys.argv[1:]:
    for batch in pyarrow.parquet.ParquetFile(path, pre_buffer=False).iter_batches({BATCH}):
        pass
"""
TALLY = """
import sys
import trueodds as to
to.tally(to.read(sys.argv[1:]))
"""
AUDIT = """
import sys
import trueodds as to
to.audit(to.read(sys.argv[1:]), mode="tally")
"""
FILE = 1_000_000  # rows of the file that is read repeatedly for an audit of many rows


def audited(folder: Path, rows: int, dtype: str) -> list[tuple[str, str]]:
    """Cost of an audit with all p-values, intervals, and a recalibration, compared with only reading the rows."""
    tiny, large = folder / "tiny.parquet", folder / "large.parquet"
    write(tiny, 1_000, dtype)
    write(large, min(rows, FILE), dtype)
    files = [str(large)] * max(1, rows // FILE)
    read, audit_command = [sys.executable, "-c", READ], [sys.executable, "-c", AUDIT]
    once([*audit_command, str(tiny)])
    reading, auditing = cost([*read, *files], 1), cost([*audit_command, *files], 1)
    return [
        (f"read {rows:,} × 10", f"{reading.cpu:.1f} CPU-s"),
        (f"audit {rows:,} × 10", f"{auditing.cpu:.1f} CPU-s"),
        ("audit ÷ read", f"{auditing.cpu / reading.cpu:.2f}"),
        ("peak memory, audit", f"{auditing.peak:.0f} MB"),
    ]


def figures(folder: Path, rows: int, dtype: str, repeats: int) -> list[tuple[str, str]]:
    """CPU time and peak memory of both; the cost of a tiny file (imports) is subtracted from both times."""
    tiny, large = folder / "tiny.parquet", folder / "large.parquet"
    write(tiny, 1_000, dtype)
    write(large, rows, dtype)
    read, sums = [sys.executable, "-c", READ], [sys.executable, "-c", TALLY]
    once([*sums, str(tiny)])
    read_tiny, sums_tiny = (cost([*job, str(tiny)], 3) for job in (read, sums))
    read_large, sums_large = (cost([*job, str(large)], repeats) for job in (read, sums))
    reading, summing = read_large.cpu - read_tiny.cpu, sums_large.cpu - sums_tiny.cpu
    return [
        (f"read {rows:,} × 10", f"{reading:.2f} CPU-s"),
        (f"tally {rows:,} × 10", f"{summing:.2f} CPU-s"),
        ("tally ÷ read", f"{summing / reading:.2f}"),
        ("peak memory, reading", f"{read_large.peak:.0f} MB"),
        ("peak memory, tally", f"{sums_large.peak:.0f} MB"),
        ("peak memory, tally of 1,000 rows", f"{sums_tiny.peak:.0f} MB"),
    ]
