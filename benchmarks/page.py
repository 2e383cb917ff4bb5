"""How are the measurements kept? A page of Markdown, the numbers as JSON, and the picture in two formats."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks import machine, plot, table
from benchmarks.race import Found


def write(found: Found, folder: Path) -> None:
    """speed.md, speed.json, speed.svg and speed.png."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "speed.md").write_text(markdown(found))
    (folder / "speed.json").write_text(
        json.dumps(asdict(found) | {"jobs": summaries(found)}, indent=1, allow_nan=False) + "\n"
    )
    plot.draw(table.standings(found), folder)


def markdown(found: Found) -> str:
    """The page."""
    lines = [
        "# Speed",
        "",
        "![Seconds of each tool at each job](speed.svg)",
        "",
        "Each tool works in a process of its own, on the same arrays, and the tools take turns; `min` and `median` are wall",
        "seconds of one call, `CPU` the least processor time, `extra peak` the memory above what was resident before it.",
        "Made by `python -m benchmarks peers`. How each estimator and test grows with n is in [scaling.md](scaling.md).",
        "",
        f"Machine: {machine.sentence(found.machine)}.",
        "",
        f"Versions: {table.versions(found)}.",
    ]
    if machine.busy(found.machine):
        lines += ["", table.BUSY]
    if found.absent:
        lines += ["", f"Left out: {'; '.join(found.absent)}."]
    for standing in table.standings(found):
        lines += [
            "",
            f"## {standing.job.title}",
            "",
            f"{found.shapes[standing.job.data]}. {table.summary(standing)}".rstrip(),
            "",
        ]
        header, *rest = table.rows(standing)
        lines += [_row(header), _row(("---", *["--:"] * 5, "---")), *map(_row, rest)]
        lines += [f"\n{one.tool}: {one.note}." for one in standing.missing]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def summaries(found: Found) -> list[dict[str, object]]:
    """The ratios job by job, for programs."""
    return [
        {
            "job": standing.job.name,
            "title": standing.job.title,
            "ours_min": None if standing.ours is None else standing.ours.best,
            "ours_median": None if standing.ours is None else float(np.median(standing.ours.wall)),
            "fastest_peer": standing.rivals[0].tool if standing.rivals else None,
            "ratio": standing.ratio,
            "cpu_ratio": standing.cpu_ratio,
            "ratios_of_others": {one.label: standing.against(one) for one in standing.also},
            "agree": {one.tool: standing.agrees(one) for one in standing.peers},
            "in_copies": {one.label: standing.copying(one.label) for one in standing.copies},
        }
        for standing in table.standings(found)
    ]
