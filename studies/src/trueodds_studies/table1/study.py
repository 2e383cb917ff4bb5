"""Which lenses, estimators and tests detect that six predictions are miscalibrated only as whole vectors."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds.core.progress import Progress
from trueodds_studies.common.figures import BLUE, RED, make_figure, remove_frame, save_figure
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, format_count, format_range, make_folder
from trueodds_studies.table1 import lens_scores
from trueodds_studies.table1.lens_scores import ALPHA, LENSES, check_lens


@dataclass(frozen=True)
class Plan:
    """Size of the simulation: rows, data sets, resamples of an interval, and redraws of a test."""

    rows: int = 600
    sets: int = 50
    resamples: int = 500
    redraws: int = 99
    seed: int = 0


QUICK = Plan(rows=300, sets=20, resamples=50, redraws=39)
QUICK_LENSES = ("confidence", "classwise", "canonical")

LENSES_LEGEND = """exact: limit of the ECE for infinitely many rows with one bin per prediction. ECE: of the first data
set, value [95 % interval] (noise floor). rejection rates: minimum and maximum over the tests at 5 %; detecting
tests: those whose rate is more than four standard deviations above 5 %."""
ESTIMATORS_LEGEND = """exact, if calibrated: for 3,000 rows whose outcomes have exactly the frequencies of the table,
and the predicted ones. estimate: value [95 % interval] (noise floor). AUC: share of pairs in which a data set has a
larger error than one of a calibrated model with the same predictions; 0.5 means no discrimination. detects: AUC
differs from 0.5 by more than four standard deviations."""
TESTS_LEGEND = """p: p-value of the first data set. rejection rate: share of data sets with p ≤ 0.05; if calibrated:
the same for a calibrated model with the same predictions; other lenses: minimum and maximum over the other lenses.
detects: the rejection rate is more than four standard deviations above 5 %."""


@dataclass(frozen=True)
class Cell:
    """One lens."""

    lens: str

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return self.lens


def table1(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Six predictions of three classes that are calibrated for every lens except the canonical one.

    Labels are drawn from the probabilities of the table, and every estimator and test of the registries is
    evaluated and compared with the exact value. Tables: lenses; estimators and tests on whole vectors; on disk
    also all of them for each lens. A figure. `methods` are lenses. Source: Vaicenavicius et al. (2019), Table 1.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    lenses = [check_lens(name) for name in methods or (QUICK_LENSES if quick else LENSES)]
    cells = run_cells("table1", [Cell(lens) for lens in lenses], measure_cell, plan, folder, progress)
    finding = StudyResult(
        "table1",
        summarize(cells, plan.sets),
        compare_lenses(cells, plan.sets),
        plan.__dict__,
        LENSES_LEGEND,
        _further_tables(cells, plan) if "canonical" in lenses else (),
    )
    if folder is not None:
        finding.save(folder)
        StudyResult(
            "table1.all", "Every estimator and every test with every lens.", all_rows(cells), plan.__dict__
        ).save(folder)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw_lenses(cells, plan.sets, folder / "table1.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The exact error of one lens, and the results of every estimator and test with it."""
    return {
        "lens": cell.lens,
        **lens_scores.exact_lens_error(cell.lens),
        "estimates": lens_scores.estimate_rows(cell.lens, plan.rows, plan.sets, plan.resamples, plan.seed),
        "tests": lens_scores.verdict_rows(cell.lens, plan.rows, plan.sets, plan.redraws, plan.seed),
    }


def _further_tables(cells: Sequence[Mapping[str, Any]], plan: Plan) -> tuple[StudyResult, ...]:
    """The tables of estimators and tests with the canonical lens."""
    tables = (
        (
            "estimators",
            "Every estimator with the canonical lens.",
            estimator_table(cells, plan.sets),
            ESTIMATORS_LEGEND,
        ),
        ("tests", "Every test with the canonical lens.", pvalue_table(cells, plan.sets), TESTS_LEGEND),
    )
    return tuple(
        StudyResult(f"table1.{name}", sentence, rows, plan.__dict__, legend) for name, sentence, rows, legend in tables
    )


def compare_lenses(cells: Sequence[Row], sets: int) -> tuple[dict[str, Any], ...]:
    """One row per lens: the exact error, ECE with interval and noise floor, and the tests that detect an error."""
    rows = []
    for cell in cells:
        ece = next(row for row in cell["estimates"] if row["estimator"] == "ece")
        tests = [row for row in cell["tests"] if "rejects" in row]
        row = {"lens": cell["lens"], "views": cell["views"], "exact": cell["exact"], "ECE": format_interval(ece)}
        row |= {"tests": len(tests), "rejection rates": format_range((test["rejects"] for test in tests), 2)}
        rows.append(
            row
            | {
                "detecting tests": ", ".join(
                    test["test"] for test in tests if test["rejects"] > significant_rejection_rate(sets)
                )
            }
        )
    return tuple(rows)


def estimator_table(cells: Sequence[Row], sets: int) -> tuple[dict[str, Any], ...]:
    """One row per estimator with the canonical lens: values, AUC, and whether it detects the error."""
    rows = []
    for row in canonical_rows(cells, "estimates"):
        if "needs" in row:
            rows.append({"estimator": row["estimator"], "detects": "whole vectors not supported"})
            continue
        entry = {"estimator": row["estimator"], "settings": row["settings"], "exact": row["exact"]}
        entry |= {
            "if calibrated": row["if calibrated"],
            "estimate": format_interval(row),
            "AUC": row["AUC"],
        }
        rows.append(entry | {"detects": "yes" if detects_error(row, sets) else "no"})
    return tuple(rows)


def pvalue_table(cells: Sequence[Row], sets: int) -> tuple[dict[str, Any], ...]:
    """One row per test with the canonical lens: p-value, rejection rates, and whether it detects the error."""
    others = [cell for cell in cells if cell["lens"] != "canonical"]
    rows = []
    for row in canonical_rows(cells, "tests"):
        elsewhere = [
            other["rejects"]
            for cell in others
            for other in cell["tests"]
            if other["test"] == row["test"] and "rejects" in other
        ]
        entry = {"test": row["test"]}
        if "needs" in row:
            entry["detects"] = "whole vectors not supported"
        else:
            entry |= {"p": row["p"], "rejection rate": row["rejects"]}
            entry["rejection rate if calibrated"] = row["rejects if calibrated"]
            entry["detects"] = "yes" if row["rejects"] > significant_rejection_rate(sets) else "no"
        rows.append(entry | ({"rejection rate, other lenses": format_range(elsewhere, 2)} if elsewhere else {}))
    return tuple(rows)


def all_rows(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per lens and method with all results, or with the error that it raises."""
    rows = []
    for cell in cells:
        for kind, key in (("estimator", "estimates"), ("test", "tests")):
            for row in cell[key]:
                entry = {"lens": cell["lens"], "kind": kind}
                entry |= {("method" if name == kind else name): value for name, value in row.items()}
                rows.append(entry)
    return tuple(rows)


def summarize(cells: Sequence[Row], sets: int) -> str:
    """In words, which lenses have an error, and which estimators and tests of whole vectors detect it."""
    miscalibrated = [cell for cell in cells if cell["exact"] > 0]
    text = f"The error is 0 for {len(cells) - len(miscalibrated)} of {len(cells)} lenses"
    if miscalibrated:
        text += "; " + ", ".join(f"for {cell['lens']} it is {cell['exact']:g}" for cell in miscalibrated)
    text += "."
    estimates = [row for row in canonical_rows(cells, "estimates") if "needs" not in row]
    verdicts = [row for row in canonical_rows(cells, "tests") if "needs" not in row]
    for noun, rows, detecting in (
        ("estimator", estimates, [row["estimator"] for row in estimates if detects_error(row, sets)]),
        ("test", verdicts, [row["test"] for row in verdicts if row["rejects"] > significant_rejection_rate(sets)]),
    ):
        if rows:
            not_detecting = [row[noun] for row in rows if row[noun] not in detecting]
            text += (
                f" Of {format_count(len(rows), noun)} that support whole vectors, {len(detecting)} detect it"
                f" ({', '.join(detecting)})"
            )
            text += f", and {len(not_detecting)} do not ({', '.join(not_detecting)})." if not_detecting else "."
    return text


def canonical_rows(cells: Sequence[Row], key: str) -> list[Row]:
    """The rows of estimators (key `estimates`) or tests (key `tests`) with the canonical lens."""
    return [row for cell in cells if cell["lens"] == "canonical" for row in cell[key]]


def detects_error(row: Row, sets: int) -> bool:
    """Whether an estimator distinguishes the table from a calibrated model significantly often.

    Without any discrimination, the share of pairs is one half, with the standard deviation of the
    Mann-Whitney statistic.
    """
    return bool(abs(row["AUC"] - 0.5) > 4 * math.sqrt((2 * sets + 1) / (12 * sets**2)))


def significant_rejection_rate(sets: int) -> float:
    """The rejection rate above which a test detects the error: four standard deviations above its level.

    For 50 data sets, this is nine rejections or more, which have probability 1/1,300 for a test
    that keeps its level; for 100 data sets fourteen or more, with probability 1/2,200.

    >>> round(significant_rejection_rate(100), 3)
    0.137
    """
    return ALPHA + 4 * math.sqrt(ALPHA * (1 - ALPHA) / sets)


def format_interval(row: Row) -> str:
    """Format as value [low, high] (noise floor)."""
    between = "" if row["low"] is None else f" [{row['low']:.4f}, {row['high']:.4f}]"
    return f"{row['estimate']:.4f}{between}" + ("" if row["noise floor"] is None else f" ({row['noise floor']:.4f})")


GRAY = "#9a9a9a"


def draw_lenses(cells: Sequence[Row], sets: int, path: Path) -> None:
    """Draw ECE by lens with the exact error, the AUC of the estimators, and the rejection rates of the tests."""
    figure = make_figure((12, 5.6))
    error_ax, auc_ax, rejection_ax = figure.subplots(1, 3)
    _draw_errors(error_ax, cells)
    _draw_auc(auc_ax, cells)
    _draw_rejections(rejection_ax, cells, sets)
    for ax in (error_ax, auc_ax, rejection_ax):
        ax.set_axisbelow(True)
        ax.grid(axis="x", color="#dddddd", lw=0.6)
        remove_frame(ax)
    save_figure(figure, path)


def _draw_errors(ax: Any, cells: Sequence[Row]) -> None:
    """Draw ECE with its interval, its noise floor, and the exact error, by lens."""
    for position, cell in enumerate(reversed(cells)):
        row = next(row for row in cell["estimates"] if row["estimator"] == "ece")
        color = _lens_color(cell["lens"])
        if row["low"] is not None:
            ax.hlines(position, row["low"], row["high"], color=color, lw=1.2)
        ax.plot(row["estimate"], position, "o", ms=4.5, color=color)
        ax.plot(row["noise floor"], position, "|", ms=9, color=color)
        ax.plot(cell["exact"], position, "x", ms=6, color="black")
    ax.set_yticks(range(len(cells)), [cell["lens"] for cell in reversed(cells)])
    ax.set_xlim(left=-0.004)
    ax.set_title("ECE by lens, 95 % interval", fontsize=10)
    ax.set_xlabel("cross: exact; tick: noise floor", fontsize=8)


def _draw_auc(ax: Any, cells: Sequence[Row]) -> None:
    """Draw how well each estimator with the canonical lens distinguishes the table from a calibrated model."""
    rows = [row for row in canonical_rows(cells, "estimates") if "AUC" in row][::-1]
    ax.axvline(0.5, color=GRAY, lw=1)
    ax.plot([row["AUC"] for row in rows], range(len(rows)), "o", ms=5, color=RED)
    ax.set_yticks(range(len(rows)), [row["estimator"] for row in rows])
    ax.set_xlim(0, 1.03)
    ax.set_title("canonical lens: discrimination from a calibrated model", fontsize=10)
    ax.set_xlabel("share of pairs of data sets; 0.5: none", fontsize=8)


def _draw_rejections(ax: Any, cells: Sequence[Row], sets: int) -> None:
    """Draw the rejection rates of each test, one dot per lens; the gray area is not significant."""
    names = list(dict.fromkeys(row["test"] for cell in cells for row in cell["tests"] if "rejects" in row))[::-1]
    positions = {name: i for i, name in enumerate(names)}
    ax.axvspan(0, significant_rejection_rate(sets), color="#eeeeee", lw=0)
    for cell in cells:
        rows = [row for row in cell["tests"] if "rejects" in row]
        canonical = cell["lens"] == "canonical"
        ax.plot(
            [row["rejects"] for row in rows],
            [positions[row["test"]] for row in rows],
            "o",
            ms=6 if canonical else 4,
            color=_lens_color(cell["lens"]),
            alpha=1 if canonical else 0.45,
            zorder=3 if canonical else 2,
        )
    for name, color in (("canonical", RED), ("other lenses", BLUE)):
        ax.plot([], [], "o", ms=5, color=color, label=name)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlim(-0.03, 1.03)
    ax.set_title("tests that reject at 5 %", fontsize=10)
    ax.set_xlabel("share of data sets; gray: chance", fontsize=8)
    ax.legend(loc="center right", frameon=False, fontsize=8)


def _lens_color(lens: str) -> str:
    return RED if lens == "canonical" else BLUE
