"""Figure of the run times: a row per job, a dot per tool on a logarithmic axis, with trueodds in color."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.table import JobResult

OURS, PEER, COPY = "#c2410c", "#64748b", "#94a3b8"


def draw(job_results: Sequence[JobResult], folder: Path) -> None:
    """Save speed.svg and speed.png, readable at 800 pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn_results = [job_result for job_result in job_results if job_result.ours is not None]
    figure = Figure(figsize=(8, 1.1 + 0.46 * len(drawn_results)), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    for y, job_result in enumerate(drawn_results):
        row(ax, y, job_result)
    ax.set_xscale("log")
    ax.set_yticks(range(len(drawn_results)), [job_result.job.title for job_result in drawn_results], fontsize=9)
    ax.set_ylim(len(drawn_results) - 0.4, -0.6)
    ax.set_xlabel("seconds, least of several runs", fontsize=9)
    low, high = ax.get_xlim()
    ax.set_xlim(low, high * 4)  # room for the name of the fastest peer
    ax.grid(axis="x", color="#e2e8f0", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=9)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    legend(ax)
    for name in ("speed.svg", "speed.png"):
        figure.savefig(folder / name)


def row(ax: object, y: int, job_result: JobResult) -> None:
    """Draw one job: the range from trueodds to the fastest peer, all tools as dots, and the copy as a tick."""
    assert job_result.ours is not None
    if job_result.rivals:
        fastest = job_result.rivals[0]
        ax.plot(
            [job_result.ours.min_wall, fastest.min_wall],
            [y, y],
            color="#fdba74",
            linewidth=3,
            solid_capstyle="round",
            zorder=1,
        )
        ax.text(
            (job_result.ours.min_wall * fastest.min_wall) ** 0.5,
            y - 0.16,
            f"{job_result.ratio:{'.2g' if job_result.ratio < 10 else '.0f'}}×",
            ha="center",
            va="bottom",
            fontsize=8,
            color=OURS if job_result.ratio >= 1 else PEER,
            weight="bold",
        )
        ax.text(fastest.min_wall, y + 0.2, fastest.tool, ha="left", va="top", fontsize=7.5, color=PEER)
    for copy in job_result.copies:
        if copy.label == "copyto":
            ax.plot([copy.min_wall], [y], marker="|", markersize=13, color=COPY, markeredgewidth=2)
    ax.plot(
        [peer.min_wall for peer in job_result.peers],
        [y] * len(job_result.peers),
        "o",
        color=PEER,
        markersize=5,
        alpha=0.8,
    )
    ax.plot([job_result.ours.min_wall], [y], "o", color=OURS, markersize=8, zorder=3)


def legend(ax: object) -> None:
    """Legend of the figure."""
    marks = [
        ax.plot([], [], "o", color=OURS, markersize=8, label="trueodds")[0],
        ax.plot([], [], "o", color=PEER, markersize=5, label="peers (the fastest is named)")[0],
        ax.plot([], [], "|", color=COPY, markersize=13, markeredgewidth=2, linestyle="none", label="copying the array")[
            0
        ],
    ]
    ax.legend(handles=marks, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, fontsize=8.5)
