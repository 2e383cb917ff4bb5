"""Cost of an audit, from the start of the program to the written page, with compiled code cached."""

from __future__ import annotations

from pathlib import Path

from benchmarks.process import command_line, cost, once, write


def figures(folder: Path, repeats: int) -> list[tuple[str, str]]:
    """Wall time, CPU time and peak memory of the command on 10,000 rows of ten classes."""
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
