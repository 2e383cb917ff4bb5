"""What does it cost? Start-up, an audit, and a tally of a large file against merely reading it.

Every figure is the CPU time, wall time or peak memory of a fresh process; of several runs the smallest counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BATCH = 1 << 16  # rows the source reads at a time

# The same settings as the source of parquet files: batches of that size, no row groups held in advance.
READ = f"""
import sys
import pyarrow.parquet
for batch in pyarrow.parquet.ParquetFile(sys.argv[1], pre_buffer=False).iter_batches({BATCH}):
    pass
"""
TALLY = """
import sys
import trueodds as to
to.tally(to.read(sys.argv[1]))
"""


@dataclass(frozen=True)
class Cost:
    """What one process took."""

    cpu: float  # seconds
    wall: float  # seconds
    peak: float  # MB


def cost(command: Sequence[str], repeats: int = 1) -> Cost:
    """The smallest of several runs, figure by figure."""
    runs = [once(command) for _ in range(repeats)]
    return Cost(min(r.cpu for r in runs), min(r.wall for r in runs), min(r.peak for r in runs))


def once(command: Sequence[str]) -> Cost:
    """One run; wait4 tells what this child alone used."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(command[:3])} failed:\n{said.read().decode()}")
    unit = 1e6 if sys.platform == "darwin" else 1e3  # macOS counts bytes, Linux kilobytes
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / unit)


def write(path: Path, rows: int, dtype: str = "float64") -> None:
    """Predictions for ten classes, made by a process of its own.

    What this process ever held counts into its children's peak memory, so it has to stay small.
    """
    maker = Path(__file__).with_name("predictions.py")
    subprocess.run([sys.executable, str(maker), str(path), str(rows), dtype], check=True)


def startup(repeats: int) -> list[tuple[str, str]]:
    """CPU seconds before anything is asked."""
    bare = cost([sys.executable, "-c", "pass"], repeats).cpu
    shown = cost([*command_line(), "--help"], repeats).cpu
    loaded = cost([sys.executable, "-c", "import trueodds"], repeats).cpu
    return [
        ("python -c pass", f"{bare:.3f} CPU-s"),
        ("trueodds --help", f"{shown:.3f} CPU-s"),
        ("import trueodds", f"{loaded:.3f} CPU-s"),
    ]


def audit(folder: Path, repeats: int) -> list[tuple[str, str]]:
    """From the start of the program to the written page, with compiled code cached."""
    source = folder / "audit.parquet"
    write(source, 10_000)
    ask = [*command_line(), "audit", str(source), "--html", str(folder / "audit.html")]
    once(ask)
    spent = cost(ask, repeats)
    return [
        ("audit 10,000 × 10, file to page", f"{spent.wall:.2f} s wall"),
        ("", f"{spent.cpu:.2f} CPU-s"),
        ("", f"{spent.peak:.0f} MB peak"),
    ]


def tally(folder: Path, rows: int, dtype: str, repeats: int) -> list[tuple[str, str]]:
    """One pass with all sums against one pass without any; a tiny file's cost (imports) is taken off both."""
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


def command_line() -> list[str]:
    """The `trueodds` that belongs to this interpreter."""
    return [str(Path(sys.executable).with_name("trueodds"))]


def main() -> None:
    """Measure and print one aligned table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=10_000_000, help="rows of the large file")
    asked.add_argument(
        "--dtype", default="float64", choices=["float32", "float64"], help="of the tally's probabilities"
    )
    asked.add_argument("--repeats", type=int, default=5, help="runs of the short jobs; the large ones run twice")
    asked.add_argument("--only", choices=["startup", "audit", "tally"], help="one of the three parts")
    asked.add_argument("--folder", type=Path, help="where the generated files go while it runs (1 GB at full size)")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        parts = {
            "startup": lambda: startup(given.repeats),
            "audit": lambda: audit(Path(name), given.repeats),
            "tally": lambda: tally(Path(name), given.rows, given.dtype, 2),
        }
        for part, measured in parts.items():
            if given.only in (None, part):
                for what, figure in measured():
                    print(f"{what:<36}{figure:>14}", flush=True)


if __name__ == "__main__":
    main()
