"""How are the measurements kept? A page of Markdown, the numbers as JSON, and the picture in two formats."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks import machine, plot, table
from benchmarks.race import Results


def write(results: Results, folder: Path) -> None:
    """speed.md, speed.json, speed.svg and speed.png."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "speed.md").write_text(markdown(results))
    (folder / "speed.json").write_text(
        json.dumps(asdict(results) | {"jobs": summaries(results)}, indent=1, allow_nan=False) + "\n"
    )
    plot.draw(table.job_results(results), folder)


def markdown(results: Results) -> str:
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
        f"Machine: {machine.sentence(results.machine)}.",
        "",
        f"Versions: {table.versions(results)}.",
    ]
    if machine.busy(results.machine):
        lines += ["", table.BUSY]
    if results.absent:
        lines += ["", f"Left out: {'; '.join(results.absent)}."]
    for job_result in table.job_results(results):
        lines += [
            "",
            f"## {job_result.job.title}",
            "",
            f"{results.shapes[job_result.job.data]}. {table.summary(job_result)}".rstrip(),
            "",
        ]
        header, *rest = table.rows(job_result)
        lines += [_row(header), _row(("---", *["--:"] * 5, "---")), *map(_row, rest)]
        lines += [f"\n{one.tool}: {one.note}." for one in job_result.missing]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def summaries(results: Results) -> list[dict[str, object]]:
    """The ratios job by job, for programs."""
    return [
        {
            "job": job_result.job.name,
            "title": job_result.job.title,
            "ours_min": None if job_result.ours is None else job_result.ours.min_wall,
            "ours_median": None if job_result.ours is None else float(np.median(job_result.ours.wall)),
            "fastest_peer": job_result.rivals[0].tool if job_result.rivals else None,
            "ratio": job_result.ratio,
            "cpu_ratio": job_result.cpu_ratio,
            "ratios_of_others": {one.label: job_result.against(one) for one in job_result.also},
            "agree": {one.tool: job_result.agrees(one) for one in job_result.peers},
            "in_copies": {one.label: job_result.copying(one.label) for one in job_result.copies},
        }
        for job_result in table.job_results(results)
    ]
