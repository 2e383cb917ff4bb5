"""Figure of the run times: a row per job and a dot per tool on a logarithmic axis, with trueodds in color."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.results import JobResult

TRUEODDS_COLOR, PEER_COLOR, COPY_COLOR, RATIO_COLOR = "#c2410c", "#64748b", "#94a3b8", "#fdba74"


def save_figure(job_results: Sequence[JobResult], folder: Path) -> None:
    """Save speed.svg and speed.png, readable at a width of 800 pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn_results = [job_result for job_result in job_results if job_result.ours is not None]
    figure = Figure(figsize=(8, 1.1 + 0.46 * len(drawn_results)), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    for y, job_result in enumerate(drawn_results):
        draw_job(ax, y, job_result)
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
    draw_legend(ax)
    for name in ("speed.svg", "speed.png"):
        figure.savefig(folder / name)


def draw_job(ax: Any, y: int, job_result: JobResult) -> None:
    """Draw one job in row y: a line from trueodds to the fastest peer, tools as dots, and the copy as a tick."""
    assert job_result.ours is not None
    our_time = job_result.ours.min_wall
    if job_result.comparable_peers:
        fastest = job_result.comparable_peers[0]
        ax.plot([our_time, fastest.min_wall], [y, y], color=RATIO_COLOR, linewidth=3, solid_capstyle="round", zorder=1)
        ratio = job_result.ratio
        assert ratio is not None
        ax.text(
            (our_time * fastest.min_wall) ** 0.5,  # the middle of the line on the logarithmic axis
            y - 0.16,
            f"{ratio:{'.2g' if ratio < 10 else '.0f'}}×",
            ha="center",
            va="bottom",
            fontsize=8,
            color=TRUEODDS_COLOR if ratio >= 1 else PEER_COLOR,
            weight="bold",
        )
        ax.text(fastest.min_wall, y + 0.2, fastest.tool, ha="left", va="top", fontsize=7.5, color=PEER_COLOR)
    for copy in job_result.copies:
        if copy.label == "copyto":
            ax.plot([copy.min_wall], [y], marker="|", markersize=13, color=COPY_COLOR, markeredgewidth=2)
    peer_times = [peer.min_wall for peer in job_result.peers]
    ax.plot(peer_times, [y] * len(peer_times), "o", color=PEER_COLOR, markersize=5, alpha=0.8)
    ax.plot([our_time], [y], "o", color=TRUEODDS_COLOR, markersize=8, zorder=3)


def draw_legend(ax: Any) -> None:
    """Draw the legend above the rows."""
    (trueodds_dot,) = ax.plot([], [], "o", color=TRUEODDS_COLOR, markersize=8, label="trueodds")
    (peer_dot,) = ax.plot([], [], "o", color=PEER_COLOR, markersize=5, label="peers (the fastest is named)")
    (copy_tick,) = ax.plot(
        [], [], "|", color=COPY_COLOR, markersize=13, markeredgewidth=2, linestyle="none", label="copying the array"
    )
    handles = [trueodds_dot, peer_dot, copy_tick]
    ax.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, fontsize=8.5)
