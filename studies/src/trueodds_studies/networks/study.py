"""Calibration errors of twenty networks, with one- and two-dimensional reliability diagrams."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds.api.draw import draw
from trueodds.core.atomic_write import open_atomic
from trueodds.core.progress import Progress
from trueodds.data.predictions import Predictions
from trueodds_studies.common.figures import make_figure
from trueodds_studies.common.network_predictions import (
    NETWORKS,
    check_network,
    groups_lens,
    hash_network_files,
    sample_predictions,
    three_class_groups,
)
from trueodds_studies.common.resumable_runs import NetworkCell, Row, run_cells
from trueodds_studies.common.study_result import StudyResult, format_count, format_range, make_folder
from trueodds_studies.networks import network_errors
from trueodds_studies.networks.network_errors import PARTITIONS


@dataclass(frozen=True)
class Plan:
    """Number of rows per network (all by default), resamples of intervals, and redraws of labels."""

    rows: int | None = None
    resamples: int = 2000
    redraws: int = 999
    seed: int = 0


QUICK = Plan(rows=1000, resamples=300, redraws=99)
QUICK_NETS = ("vgg16", "roberta_base_0", "imagenet_resnet152")  # with ten classes, three, and the confidence only


def networks(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Twenty networks for images, text and speech: reliability diagrams and expected miscalibration.

    Tables: errors of the confidence, of three groups of classes, and of all classes with ten
    uniform bins and two trees, in total variation and squares; numbers for the diagrams of each
    network; comparison with papers. Figures: one per network, and grids of all. `methods` are
    networks. Source: Vaicenavicius et al. (2019), section 5.2 and figures 1, 4 and 15 to 18.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder, data_folder = make_folder(out), None if data is None else str(data)
    names = [check_network(name) for name in methods or (QUICK_NETS if quick else NETWORKS)]
    cells = run_cells(
        "networks",
        [NetworkCell(net, data_folder) for net in names],
        measure_cell,
        plan,
        folder,
        progress,
        hash_network_files(names, data_folder),
    )
    tables = (
        ("errors", summarize_noise(cells), short_error_table(cells), SHORT_LEGEND),
        (
            "squares",
            "Squared errors, without an interval.",
            short_error_table(cells, "sq-euclidean"),
            SQUARES_LEGEND,
        ),
        ("nets", "The networks, and significant deviations in their diagrams.", network_table(cells), NETWORKS_LEGEND),
        (
            "paper",
            "Statements and numbers of papers, and our results.",
            network_errors.compare_with_papers(cells),
            network_errors.PAPER_LEGEND,
        ),
    )
    also = tuple(
        StudyResult(f"networks.{name}", text, rows, plan.__dict__, legend) for name, text, rows, legend in tables
    )
    finding = StudyResult("networks", summarize(cells), error_table(cells), plan.__dict__, ERRORS_LEGEND, also)
    if folder is not None:
        finding.save(folder)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            _draw_figures(names, data_folder, plan, folder)
    return finding


def measure_cell(cell: NetworkCell, plan: Plan) -> Mapping[str, Any]:
    """All errors of one network, and the numbers for its diagrams."""
    net = NETWORKS[cell.net]
    preds = sample_predictions(net.predictions(cell.data), plan.rows, plan.seed)
    accuracy, confidence = network_errors.accuracy_and_confidence(preds)
    return {
        "net": cell.net,
        "n": preds.n,
        "accuracy": accuracy,
        "confidence": confidence,
        "errors": network_errors.error_rows(net, preds, plan.resamples, plan.redraws, plan.seed),
        "outside": network_errors.count_outside_bars(preds, LEVEL),
        "frequent": network_errors.frequent_cell_errors(net, preds),
    }


def _draw_figures(names: Sequence[str], data: str | None, plan: Plan, folder: Path) -> None:
    """Draw one figure per network, and grids of all networks."""
    nets = {name: sample_predictions(NETWORKS[name].predictions(data), plan.rows, plan.seed) for name in names}
    for name, preds in nets.items():
        draw_network(name, preds, folder / f"networks.{name}.png")
    for bins in LINE_PARTITIONS:
        draw_line_grid(nets, bins, folder / f"networks.lines.{bins}.png")
    for cells, label in (("25 cells", "uniform"), ("tree", "tree")):
        draw_simplex_grid(nets, cells, folder / f"networks.triangles.{label}.png")


LENSES = ("confidence", "groups", "canonical")
ALPHA = 0.05

ERRORS_LEGEND = """lens: the largest probability, three groups of classes, or all classes. distance: tv is half the sum
of absolute differences, sq-euclidean the sum of their squares (for a confidence: of it and its complement). low, high:
95 % interval; none for squares, for which no interval with known coverage is available. noise floor: mean
error of a calibrated network. p: consistency test with redrawn labels."""
SHORT_LEGEND = """Each cell: error, total variation [95 % interval] (noise floor). p: largest p-value of the consistency
tests of that lens, all bins and both distances."""
SQUARES_LEGEND = """Each cell: error, sum of squared differences (noise floor). p: largest p-value of the consistency
tests of that lens, all bins and both distances."""
NETWORKS_LEGEND = """confidence: mean largest probability. outside: bins of the confidence outside the 90 % bars.
significant: of the occupied cells among 25, those with a significant deviation at 5 %, with Holm's correction over all
cells; empty for networks without a probability for each class, which have no triangle."""


def error_table(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per network, lens, partition and distance: error with interval and noise floor, and p-value."""
    return tuple({**_task_and_network(cell), **row} for cell in cells for row in cell["errors"])


def short_error_table(cells: Sequence[Row], distance: str = "tv") -> tuple[Row, ...]:
    """One row per network and lens, with a column `error [95 % interval] (noise floor)` per partition."""
    rows = []
    for cell in cells:
        for lens in LENSES:
            lens_rows = [row for row in cell["errors"] if row["lens"] == lens]
            if lens_rows:
                entry = {**_task_and_network(cell), "lens": lens}
                entry |= {row["bins"]: _format_estimate(row) for row in lens_rows if row["distance"] == distance}
                rows.append(entry | {"p": max(row["p"] for row in lens_rows)})
    return tuple(rows)


def network_table(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per network: accuracy, confidence, and significant deviations in its diagrams."""
    rows = []
    for cell in cells:
        outside, simplex = cell["outside"], cell["frequent"]
        entry = {
            **_task_and_network(cell),
            "n": cell["n"],
            "accuracy": cell["accuracy"],
            "confidence": cell["confidence"],
        }
        for bins, counts in outside.items():
            entry[f"outside, {bins}"] = f"{counts['outside']} of {counts['bins']}"
        entry["significant, 25 cells"] = None if simplex is None else f"{simplex['beyond']} of {simplex['cells']}"
        rows.append(entry)
    return tuple(rows)


def summarize(cells: Sequence[Row]) -> str:
    """In words, the range of the errors by lens, and how many networks are rejected by all partitions and distances."""
    phrases = []
    for lens in LENSES:
        rows_by_net = [[row for row in cell["errors"] if row["lens"] == lens] for cell in cells]
        rows_by_net = [rows for rows in rows_by_net if rows]  # without networks that do not support the lens
        if rows_by_net:
            values = [row["value"] for rows in rows_by_net for row in rows if row["distance"] == "tv"]
            n_always_rejected = sum(max(row["p"] for row in rows) <= ALPHA for rows in rows_by_net)
            phrases.append(
                f"{lens} {format_range(values)}, {n_always_rejected} of {format_count(len(rows_by_net), 'network')}"
                " rejected by all bins and distances"
            )
    return (
        f"Error of {format_count(len(cells), 'network')} in total variation, over {len(PARTITIONS)} partitions:"
        f" {'; '.join(phrases)}."
    )


def summarize_noise(cells: Sequence[Row]) -> str:
    """In words, noise floors as a share of the error of all classes, by partition."""
    phrases = []
    for bins in PARTITIONS:
        shares = [
            100 * row["noise floor"] / row["value"]
            for cell in cells
            for row in cell["errors"]
            if row["bins"] == bins and row["distance"] == "tv" and row["lens"] == "canonical"
        ]
        if shares:
            phrases.append(f"{bins} ({format_range(shares, 0)} %)")
    return f"Noise floor as a share of the error of all classes: {'; '.join(phrases)}." if phrases else ""


def _task_and_network(cell: Row) -> dict[str, Any]:
    """The first two columns of the tables."""
    return {"task": NETWORKS[cell["net"]].task, "network": cell["net"]}


def _format_estimate(row: Row) -> str:
    """Format as value [low, high] (noise floor)."""
    between = "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['value']:.4f}{between} ({row['noise floor']:.4f})"


LEVEL = 0.9  # the bars end at the 5th and 95th percentiles, as in the paper
LINE_PARTITIONS = {"uniform": PARTITIONS["uniform 10"], "tree": PARTITIONS["tree, 100 rows"]}
SIMPLEX_PARTITIONS = {
    "25 cells": {"partition": "simplex-grid", "bins": 5},
    "tree": PARTITIONS["tree, 100 rows"],
}
NetworkPredictions = Mapping[str, Predictions]


def draw_network(name: str, preds: Predictions, path: Path) -> None:
    """Draw the confidence with ten bins and a tree, and three groups of classes with 25 cells and a tree."""
    rows = 2 if has_simplex_diagram(name) else 1
    figure = make_figure((10, 4.2 * rows))
    axes = figure.subplots(rows, 2, squeeze=False)
    for ax, (bins, settings) in zip(axes[0], LINE_PARTITIONS.items(), strict=True):
        _draw_line(preds, ax, settings, f"{name}, confidence, {bins}")
    if rows > 1:
        for ax, (bins, settings) in zip(axes[1], SIMPLEX_PARTITIONS.items(), strict=True):
            _draw_simplex(name, preds, ax, settings, f"classes {describe_groups(name)}, {bins}")
    _save_png(figure, path)


def draw_line_grid(nets: NetworkPredictions, bins: str, path: Path) -> None:
    """Draw the one-dimensional diagram of every network."""
    axes, figure = _make_grid(len(nets), 3.0, 2.35)
    drawn = [
        _draw_line(preds, ax, LINE_PARTITIONS[bins], name)
        for ax, (name, preds) in zip(axes, nets.items(), strict=False)
    ]
    x_label, y_label = drawn[0].axis_labels()
    # Labels below the panels would overlap the legend.
    figure.supylabel(f"{y_label}, by {x_label}", fontsize=9)
    _draw_legend(figure, drawn[0])
    _save_png(figure, path)


def draw_simplex_grid(nets: NetworkPredictions, cells: str, path: Path) -> None:
    """Draw the two-dimensional diagram of every network that has one."""
    shown = {name: preds for name, preds in nets.items() if has_simplex_diagram(name)}
    if not shown:
        return
    axes, figure = _make_grid(len(shown), 3.0, 2.7)
    drawn = [
        _draw_simplex(name, preds, ax, SIMPLEX_PARTITIONS[cells], name)
        for ax, (name, preds) in zip(axes, shown.items(), strict=False)
    ]
    _draw_legend(figure, max(drawn, key=lambda diagram: len(diagram.legend())))
    _save_png(figure, path)


def has_simplex_diagram(name: str) -> bool:
    """Whether a network has three classes or more, which can be drawn as three groups."""
    net = NETWORKS[name]
    return net.has_class_probs and net.classes >= 3


def describe_groups(name: str) -> str:
    """The classes of each of the three groups, as text.

    >>> describe_groups("vgg16")
    '0–2, 3–5, 6–9'
    """
    return ", ".join(
        f"{group[0]}–{group[-1]}" if len(group) > 1 else f"{group[0]}"
        for group in three_class_groups(NETWORKS[name].classes)
    )


def _draw_line(preds: Predictions, ax: Any, settings: Mapping[str, Any], title: str) -> Any:
    """Draw and return the reliability diagram of the confidence; the title has the number of bins outside the bars."""
    diagram = draw(preds, "reliability", lens="confidence", level=LEVEL, style="deviation", **settings)
    diagram.draw_panel(ax, 0)
    outside, bins = int(diagram.panels["bins_outside"][0]), int(diagram.panels["bins"][0])
    ax.set_title(f"{title}\n{outside} of {bins} outside", fontsize=9)
    return diagram


def _draw_simplex(name: str, preds: Predictions, ax: Any, settings: Mapping[str, Any], title: str) -> Any:
    """Draw and return the reliability diagram of three classes or groups; the title has the significant deviations."""
    lens = "canonical" if NETWORKS[name].classes == 3 else groups_lens(NETWORKS[name].classes)
    diagram = draw(preds, "simplex", lens=lens, **settings).less("key")
    diagram.draw_panel(ax, 0)
    beyond = diagram.table["beyond"]
    ax.set_title(f"{title}\n{int(beyond.sum())} of {len(beyond)} significant", fontsize=9)
    return diagram


def _make_grid(count: int, width: float, height: float) -> tuple[list[Any], Any]:
    """The axes of `count` panels of this size in inches, at most four per row, and their figure."""
    columns = min(4, count)
    rows = -(-count // columns)
    figure = make_figure((max(width * columns, 5.0), height * rows + 0.4))
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for ax in axes[count:]:
        ax.axis("off")
    return axes, figure


def _draw_legend(figure: Any, diagram: Any) -> None:
    """Draw one legend for all panels, without entries about shares of rows, which differ between networks."""
    entries = [(handle, name) for handle, name in diagram.legend() if not name.startswith("share")]
    handles, names = zip(*entries, strict=True)
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize=9)


def _save_png(figure: Any, path: Path) -> None:
    """Save a figure as PNG; its many dots would make an SVG file too large."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    with open_atomic(path, "TO801") as file:
        figure.savefig(file, format="png", dpi=80)
