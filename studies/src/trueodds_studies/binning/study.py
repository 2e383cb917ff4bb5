"""How calibration errors of networks, and their order, depend on the number of bins, the scheme and the norm."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import Any

from trueodds.core.progress import Progress
from trueodds_studies.binning.sensitivity import (
    BIN_COUNTS,
    BINNING_SCHEMES,
    ESTIMATOR_SETTINGS,
    NETWORKS,
    NORMS,
    QUICK_NETWORKS,
    check_network,
    hash_network_files,
    largest_jump,
    load_predictions,
    score_binnings,
    score_estimator_settings,
    tace_by_threshold,
)
from trueodds_studies.common.figures import make_figure, remove_frame, save_figure
from trueodds_studies.common.resumable_runs import NetworkCell, Row, run_cells
from trueodds_studies.common.study_result import StudyResult, format_count, make_folder


@dataclass(frozen=True)
class Plan:
    """Number of rows per network (all by default), of redraws for a noise floor, and of thresholds of TACE."""

    rows: int | None = None
    redraws: int = 199
    points: int = 300
    seed: int = 0


QUICK = Plan(rows=2000, redraws=50, points=40)

RANGE_LEGEND = """15 bins: uniform, the usual setting. minimum, maximum: over 5 to 100 bins of every scheme, the sweep,
and the rules √n and n^(2/5) for equal-mass bins, with the settings at which they occur; ratio: of the two. mass k:
equal-mass bins of at least n/k rows. ECE: mean distance over bins; root mean square: of
the same distances; worst bin: the largest (MCE). Lens: confidence."""
STABILITY_LEGEND = """settings: number of settings of the estimator. ratio: largest value divided by the smallest;
its minimum and maximum over the networks; empty if some value is not positive. pairs that change order: pairs of
networks."""
ORDER_LEGEND = """first larger, second larger: number of settings for which the first or the second network has the
larger error; setting of first, setting of second: the setting with the largest such difference."""
TACE_LEGEND = """minimum, maximum: for thresholds from 0.001 to 0.1. largest step: largest change of TACE between
neighboring thresholds of the grid. threshold: of a jump within that step, located by bisection; scores passed: scores
between the thresholds directly before and after the jump; before, after: TACE. class: that whose error changes most,
with its error before and after the jump, and the number of its scores above the threshold."""


def binning(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Number of bins, scheme and norm on the same predictions of seven image classifiers.

    Tables: minimum and maximum over common settings; estimators with their own settings; pairs of networks
    whose order depends on the setting; the largest jump of TACE along its threshold, and the score that
    causes it. On disk also every value. Two figures. `methods` are networks. Sources: Pavlovic (2025),
    sections 2 and 3.2; Vennos, Xing & Franck (2026), section 1; Nixon et al. (2019); Roelofs et al. (2022).
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder, data_folder = make_folder(out), None if data is None else str(data)
    names = [check_network(name) for name in methods or (QUICK_NETWORKS if quick else NETWORKS)]
    file_hashes = hash_network_files(names, data_folder)
    cells = run_cells(
        "binning", [NetworkCell(net, data_folder) for net in names], measure_cell, plan, folder, progress, file_hashes
    )
    also = (
        StudyResult(
            "binning.steady",
            "Estimators with their own settings.",
            stability_table(cells),
            plan.__dict__,
            STABILITY_LEGEND,
        ),
        StudyResult(
            "binning.order",
            "Networks whose order depends on the setting.",
            order_table(cells),
            plan.__dict__,
            ORDER_LEGEND,
        ),
        StudyResult(
            "binning.tace",
            "Change of TACE with the threshold, and its largest jump.",
            tace_table(cells),
            plan.__dict__,
            TACE_LEGEND,
        ),
    )
    finding = StudyResult("binning", summarize(cells), range_table(cells), plan.__dict__, RANGE_LEGEND, also)
    if folder is not None:
        finding.save(folder)
        StudyResult("binning.curves", "Every value.", curve_table(cells), plan.__dict__).save(folder)
        StudyResult("binning.thresholds", "TACE by threshold.", threshold_table(cells), plan.__dict__).save(folder)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw_bins(cells, folder / "binning.svg")
            draw_thresholds(cells, folder / "binning.tace.svg")
    return finding


def measure_cell(cell: NetworkCell, plan: Plan) -> Mapping[str, Any]:
    """All errors of one network: by binning, by estimator and settings, and by threshold of TACE."""
    preds = load_predictions(cell.net, cell.data, plan.rows, plan.seed)
    grid = tace_by_threshold(preds, plan.points)
    return {
        "net": cell.net,
        "curve": score_binnings(preds, plan.redraws, plan.seed),
        "own": score_estimator_settings(preds),
        "thresholds": grid,
        "jump": largest_jump(preds, grid),
    }


THRESHOLDS_IN_USE = (0.001, 0.1)  # minimum and maximum of the thresholds of TACE in common use


def range_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per network and norm: minimum and maximum of the error over the settings in common use."""
    table = []
    for cell in cells:
        rows = [row for row in cell["curve"] if row["reasonable"]]
        usual = next(row for row in rows if (row["scheme"], row["bins"]) == ("uniform", 15))
        for norm in NORMS:
            ordered = sorted(rows, key=itemgetter(norm))
            lowest, highest = ordered[0], ordered[-1]
            row: dict[str, Any] = {"network": cell["net"], "norm": norm, "15 bins": usual[norm]}
            row |= {
                "minimum": lowest[norm],
                "setting of minimum": describe_binning(lowest),
                "maximum": highest[norm],
                "setting of maximum": describe_binning(highest),
            }
            table.append(row | {"ratio": highest[norm] / lowest[norm]})
    return tuple(table)


def stability_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per estimator: ratio of largest to smallest value over its settings, and pairs that change order."""
    rows = []
    for name, settings in ESTIMATOR_SETTINGS.items():
        values = values_of_estimator(cells, name)
        # A debiased error may be 0 or negative; then there is no ratio.
        positive = [by_setting.values() for by_setting in values.values() if min(by_setting.values()) > 0]
        ratios = [max(errors) / min(errors) for errors in positive]
        row: dict[str, Any] = {"estimator": name, "settings": len(settings)}
        row |= {"minimum ratio": min(ratios), "maximum ratio": max(ratios)} if len(ratios) == len(values) else {}
        rows.append(row | {"pairs that change order": len(find_reversals(values))})
    return tuple(rows)


def order_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per norm and pair of networks whose order depends on the setting."""
    return tuple({"norm": norm, **row} for norm in NORMS for row in find_reversals(values_by_setting(cells, norm)))


def tace_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per network: minimum and maximum of TACE over the thresholds in common use, and its largest jump."""
    rows = []
    low, high = THRESHOLDS_IN_USE
    for cell in cells:
        values = [row["TACE"] for row in cell["thresholds"] if low <= row["threshold"] <= high]
        rows.append({"network": cell["net"], "minimum": min(values), "maximum": max(values)} | cell["jump"])
    return tuple(rows)


def threshold_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per network and threshold of the grid: TACE."""
    return tuple({"network": cell["net"], **row} for cell in cells for row in cell["thresholds"])


def curve_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per network, scheme and number of bins: the error in every norm."""
    return tuple({"network": cell["net"], **row} for cell in cells for row in cell["curve"])


def summarize(cells: Sequence[Row]) -> str:
    """Summary of the ranges and of the changes of order."""
    ranges = range_table(cells)
    phrases = []
    for norm in NORMS:
        ratios = [row["ratio"] for row in ranges if row["norm"] == norm]
        phrases.append(f"{norm} by a factor of {max(ratios):.3g} at most")
    pairs = len(cells) * (len(cells) - 1) // 2
    changed = len(find_reversals(values_by_setting(cells, "ECE")))
    tace_rows = tace_table(cells)
    largest_ratio = max(row["maximum"] / row["minimum"] for row in tace_rows)
    jump = max(abs(row["after"] - row["before"]) for row in tace_rows)
    return (
        f"Common settings change {', '.join(phrases)}; the ECE of {changed} of {format_count(pairs, 'pair')} of"
        f" networks changes order. Thresholds from {THRESHOLDS_IN_USE[0]:g} to {THRESHOLDS_IN_USE[1]:g} change TACE by"
        f" a factor of {largest_ratio:.3g} at most; the jump in its largest step is {jump:.2g} at most."
    )


def find_reversals(values: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """Pairs of networks whose order depends on the setting, with the settings of the largest differences.

    >>> (row,) = find_reversals({"a": {"5 bins": 0.1, "9 bins": 0.4}, "b": {"5 bins": 0.2, "9 bins": 0.3}})
    >>> row["first larger"], row["second larger"], row["setting of first"], row["setting of second"]
    (1, 1, '9 bins', '5 bins')
    """
    rows = []
    for a, b in combinations(values, 2):
        gap = {setting: values[a][setting] - values[b][setting] for setting in values[a] if setting in values[b]}
        larger, smaller = (sum(g > 0 for g in gap.values()), sum(g < 0 for g in gap.values()))
        if larger and smaller:
            rows.append(
                {
                    "pair": f"{a}, {b}",
                    "first larger": larger,
                    "second larger": smaller,
                    "setting of first": max(gap, key=gap.__getitem__),
                    "setting of second": min(gap, key=gap.__getitem__),
                }
            )
    return rows


def values_by_setting(cells: Sequence[Row], norm: str) -> dict[str, dict[str, float]]:
    """For each network, the error in a norm by setting, for the settings in common use."""
    return {
        cell["net"]: {describe_binning(row): row[norm] for row in cell["curve"] if row["reasonable"]} for cell in cells
    }


def values_of_estimator(cells: Sequence[Row], name: str) -> dict[str, dict[str, float]]:
    """For each network, the value of an estimator by its settings in words."""
    return {
        cell["net"]: {row["settings"]: row["value"] for row in cell["own"] if row["estimator"] == name}
        for cell in cells
    }


def describe_binning(row: Row) -> str:
    """The scheme of a row, with the number of bins unless the scheme chooses it."""
    return row["scheme"] if row["bins"] is None else f"{row['scheme']} {row['bins']}"


COLORS = ("#2f6da8", "#6fa8dc", "#b5402a", "#c79a2b", "#5b8c5a", "#7a5195", "#777777")  # of schemes, and of networks


def draw_bins(cells: Sequence[Row], path: Path) -> None:
    """Draw ECE against the number of bins, a line per scheme, with dashed noise floors."""
    columns = min(4, len(cells))
    figure = make_figure((3.1 * columns, 0.5 + 2.6 * math.ceil(len(cells) / columns)))
    axes = figure.subplots(math.ceil(len(cells) / columns), columns, squeeze=False).ravel()
    for ax, cell in zip(axes, cells, strict=False):
        for scheme, color in zip(BINNING_SCHEMES, COLORS, strict=False):
            rows = [row for row in cell["curve"] if row["scheme"] == scheme]
            bin_counts = [row["bins"] for row in rows]
            ax.plot(bin_counts, [row["ECE"] for row in rows], "-", lw=1.4, color=color, label=scheme)
            ax.plot(bin_counts, [row["noise floor"] for row in rows], "--", lw=0.9, color=color, alpha=0.8)
        ax.set_xscale("log")
        ax.set_xlim(BIN_COUNTS[0], BIN_COUNTS[-1])
        ax.set_ylim(bottom=0)
        ax.set_title(cell["net"], fontsize=10)
        ax.set_xlabel("number of bins", fontsize=8)
        _draw_horizontal_grid(ax)
    for ax in axes[len(cells) :]:
        ax.set_axis_off()
    handles, names = axes[0].get_legend_handles_labels()
    handles.append(axes[0].plot([], [], "--", lw=0.9, color="#555555")[0])
    figure.legend(handles, [*names, "noise floor"], loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    figure.supylabel("ECE", fontsize=9)
    save_figure(figure, path)


def draw_thresholds(cells: Sequence[Row], path: Path) -> None:
    """Draw TACE against its threshold, a line per network."""
    figure = make_figure((8, 4.2))
    ax = figure.subplots()
    for cell, color in zip(cells, COLORS, strict=False):
        rows = cell["thresholds"]
        thresholds, values = [row["threshold"] for row in rows], [row["TACE"] for row in rows]
        ax.plot(thresholds, values, "-", lw=1.1, color=color, label=cell["net"])
        ax.plot(cell["jump"]["threshold"], cell["jump"]["after"], "o", ms=4, color=color)
    ax.set_xscale("log")
    ax.set_xlabel("threshold (dot: jump in the largest step)", fontsize=9)
    ax.set_ylabel("TACE", fontsize=9)
    ax.set_ylim(bottom=0)
    _draw_horizontal_grid(ax)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    save_figure(figure, path)


def _draw_horizontal_grid(ax: Any) -> None:
    """Draw horizontal grid lines instead of a frame."""
    ax.set_axisbelow(True)
    ax.grid(axis="y", color="#dddddd", lw=0.6)
    remove_frame(ax)
