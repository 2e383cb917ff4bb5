"""Benchmark of a tally: CPU time and peak memory of tallying a Parquet file, compared with only reading it."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.process_cost import measure_process, run_process, write_predictions_file

ROWS_PER_BATCH = 1 << 16  # as `trueodds.read` reads Parquet files

# Reads the files with the settings of `trueodds.read`: batches of that size, and no prefetching of row groups.
READ_SCRIPT = f"""
import sys
import pyarrow.parquet
for path in sys.argv[1:]:
    for batch in pyarrow.parquet.ParquetFile(path, pre_buffer=False).iter_batches({ROWS_PER_BATCH}):
        pass
"""
TALLY_SCRIPT = """
import sys
import trueodds as to
to.tally(to.read(sys.argv[1:]))
"""


def measure_tally(folder: Path, rows: int, dtype: str, repeats: int) -> list[tuple[str, str]]:
    """Return lines (what is measured, result) on reading and tallying a file of `rows` rows and ten classes.

    The cost of a file of 1,000 rows, which is mostly that of the imports, is subtracted from both CPU times.
    """
    small_file, large_file = folder / "small.parquet", folder / "large.parquet"
    write_predictions_file(small_file, 1_000, dtype)
    write_predictions_file(large_file, rows, dtype)
    read, tally = [sys.executable, "-c", READ_SCRIPT], [sys.executable, "-c", TALLY_SCRIPT]
    run_process([*tally, str(small_file)])  # compiles the kernels, which are cached afterwards
    small_read, small_tally = (measure_process([*command, str(small_file)], 3) for command in (read, tally))
    large_read, large_tally = (measure_process([*command, str(large_file)], repeats) for command in (read, tally))
    read_seconds, tally_seconds = large_read.cpu - small_read.cpu, large_tally.cpu - small_tally.cpu
    return [
        (f"read {rows:,} × 10", f"{read_seconds:.2f} CPU-s"),
        (f"tally {rows:,} × 10", f"{tally_seconds:.2f} CPU-s"),
        ("tally ÷ read", f"{tally_seconds / read_seconds:.2f}"),
        ("peak memory, reading", f"{large_read.peak:.0f} MB"),
        ("peak memory, tally", f"{large_tally.peak:.0f} MB"),
        ("peak memory, tally of 1,000 rows", f"{small_tally.peak:.0f} MB"),
    ]
