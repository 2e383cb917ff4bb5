"""How the MCLLO test depends on the value that replaces zero probabilities of a random forest."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import chdtri

from trueodds.api.test import test
from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.common.figures import make_panels, save_figure
from trueodds_studies.common.rejection_rates import clopper_pearson, exceeds_level
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, format_change, make_folder

LEVEL = 0.05
MIN_TEST_PROB = 1e-15  # smallest value that the test accepts as min_prob
ROW_SUBSETS = ("all rows", "outcomes with votes")  # the latter without the rows whose observed class had no votes

ONE_FOREST_LEGEND = """One forest: {rows} rows, 20 votes among 3 classes, {zeros} rows with a zero, in {missed} of
which that class was observed. rows: all rows, or only outcomes with votes, without those {missed}. replacement: what
replaces 0 (min_prob: a smallest probability). lrt, p: likelihood ratio against the last class, χ² with 4 degrees of
freedom; lrt_low, lrt_high: its minimum and maximum over the three baselines; gamma, delta: slopes and shifts; score,
p_redrawn: score statistic and its p-value from {resamples} redraws with the replaced probabilities.
p_zeros_impossible: the same if labels are redrawn from the vote shares themselves, so that a class with probability
0 never occurs, and the smallest probability, from 1e-15 on, is used only inside the logarithms."""

MANY_FORESTS_LEGEND = """{sets} forests of {rows} rows. Votes + 1/2 are calibrated by construction, so a test at 5 %
should reject 5 %. The other probabilities are miscalibrated by the replacement. lrt, redrawn: share of forests
rejected at 5 % by the likelihood ratio and by the score with {resamples} redraws, with 99 % Clopper-Pearson limits;
verdict: for the calibrated probabilities, exceeds level if the lower limit, with Bonferroni's correction for both
tests, is above 5 %. without: the same for the rows whose observed class had votes; this selection uses the outcomes,
so no probabilities are calibrated there. lrt_median: median likelihood ratio."""

MIN_PROBS = (2.2e-16, 1e-12, 1e-8, 1e-6, 1e-4, 1e-3)  # the first is about the rounding error of 1


@dataclass(frozen=True)
class SimulatedForest:
    r"""Votes v ~ Multinomial(trees, r) and labels with the same probabilities r ~ Dirichlet(½, …, ½).

    Given the votes, class j has probability :math:`(v_j + ½) / (\sum v + K/2)`: votes + ½ are calibrated, and a
    class without votes is observed in 1 of 43 rows with 20 trees and 3 classes.
    """

    n: int = 240
    trees: int = 20
    k: int = 3

    def rows(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Votes (n, k) and labels (n,)."""
        r = rng.dirichlet(np.full(self.k, 0.5), self.n)
        y = (np.cumsum(r, axis=1)[:, :-1] <= rng.random(self.n)[:, None]).sum(axis=1)
        return rng.multinomial(self.trees, r), y


@dataclass(frozen=True)
class ZeroReplacement:
    """A way to replace zeros: a smallest share, votes added to every class, or mixing with the uniform distribution."""

    kind: str  # "min_prob", "votes" or "mixture"
    amount: float = 0.0  # the smallest share, or the number of added votes

    @property
    def name(self) -> str:
        """Name in the tables."""
        return {
            "min_prob": f"min_prob {self.amount:.2g}",
            "votes": f"votes + {self.amount:.3g}",
            "mixture": "mixture 1/(n + 1)",
        }[self.kind]

    def replace_zeros(self, votes: Array) -> Array:
        """Probabilities above 0 from votes, (n, k) both, with rows that sum to 1.

        >>> ZeroReplacement("votes", 0.5).replace_zeros(np.array([[1, 0]])).tolist()
        [[0.75, 0.25]]
        """
        n, k = votes.shape
        if self.kind == "votes":
            P = votes + self.amount
        else:
            P = votes / votes.sum(axis=1, keepdims=True)
            P = np.maximum(P, self.amount) if self.kind == "min_prob" else n / (n + 1) * P + 1 / ((n + 1) * k)
        return np.asarray(P / P.sum(axis=1, keepdims=True))


def zero_replacements(k: int = 3) -> Iterator[ZeroReplacement]:
    """The replacements for k classes, from the smallest probability to the largest number of added votes."""
    yield from (ZeroReplacement("min_prob", min_prob) for min_prob in MIN_PROBS)
    yield ZeroReplacement("mixture")
    yield from (ZeroReplacement("votes", amount) for amount in (1 / k, 0.5))


def has_no_votes(votes: Array, y: Array) -> Array:
    """Whether the observed class had no votes, (n,)."""
    return np.asarray(votes[np.arange(len(y)), y] == 0)


@dataclass(frozen=True)
class Plan:
    """Size of the simulation; each forest has its own random stream."""

    sets: int = 500  # forests
    rows: int = 240  # per forest
    missed: int = 5  # minimum number of rows of the shown forest whose observed class had no votes
    resamples: int = 999  # redraws for the shown forest
    redraws: int = 199  # redraws for each of the many forests
    seed: int = 0

    def simulate_forest(self, repetition: int) -> tuple[Array, Array]:
        """Votes (rows, 3) and labels (rows,) of one forest."""
        return SimulatedForest(self.rows).rows(np.random.default_rng([self.seed, self.rows, repetition]))

    def find_shown_forest(self) -> tuple[Array, Array]:
        """Votes and labels of the first forest with at least `missed` rows whose observed class had no votes."""
        forests = (self.simulate_forest(repetition) for repetition in itertools.count())
        return next((votes, y) for votes, y in forests if has_no_votes(votes, y).sum() >= self.missed)


QUICK = Plan(sets=25)


@dataclass(frozen=True)
class Cell:
    """One replacement, for all rows or without those whose observed class had no votes."""

    replacement: ZeroReplacement
    rows: str  # one of ROW_SUBSETS

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.replacement.name} | {self.rows}"


def mcllo_clipping(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Replacements of zeros, for one forest with and without observed classes that had no votes, and for 500.

    The paper does not state how zeros were handled. Votes + 1/2 are calibrated in these forests, so rejections
    are due to chance or to the replacement.

    >>> finding = mcllo_clipping(plan=Plan(sets=2, rows=60, missed=1, resamples=19, redraws=19))
    >>> len(finding.rows), [table.name for table in finding.also]
    (18, ['mcllo_clipping.many'])
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    votes, y = plan.find_shown_forest()
    cells = [Cell(replacement, rows) for rows in ROW_SUBSETS for replacement in zero_replacements()]
    rows = tuple(forest_row(votes, y, cell, plan) for cell in cells)
    zeros, missed = int((votes == 0).any(axis=1).sum()), int(has_no_votes(votes, y).sum())
    legend_values = plan.__dict__ | {"zeros": zeros, "missed": missed}
    many_cells = [Cell(replacement, rows) for replacement in zero_replacements() for rows in ROW_SUBSETS]
    many = _side_by_side(run_cells("mcllo_clipping", many_cells, measure_cell, plan, folder, progress))
    also = StudyResult(
        "mcllo_clipping.many",
        summarize_many(many),
        many,
        plan.__dict__,
        MANY_FORESTS_LEGEND.format(**legend_values | {"resamples": plan.redraws}),
    )
    finding = StudyResult(
        "mcllo_clipping", summarize(rows, many), rows, plan.__dict__, ONE_FOREST_LEGEND.format(**legend_values), (also,)
    )
    if folder is not None:
        finding.save(folder)
        _draw_if_possible(finding, folder)
    return finding


def _select_rows(votes: Array, y: Array, rows: str) -> Array:
    """The mask (n,) of one of ROW_SUBSETS."""
    return np.ones(len(y), dtype=bool) if rows == ROW_SUBSETS[0] else ~has_no_votes(votes, y)


def forest_row(votes: Array, y: Array, cell: Cell, plan: Plan) -> Row:
    """The row of the table for the shown forest: votes (n, 3) and labels (n,) with one replacement."""
    replacement = cell.replacement
    mask = _select_rows(votes, y, cell.rows)
    votes, y = votes[mask], y[mask]
    preds = Predictions(y, replacement.replace_zeros(votes))
    ratios = [test(preds, "mcllo", baseline=c) for c in range(votes.shape[1])]
    last = ratios[-1]
    drawn = test(preds, "mcllo", null="redraw", resamples=plan.resamples, rng=plan.seed)
    row: dict[str, Any] = {
        "rows": cell.rows,
        "replacement": replacement.name,
        "n": preds.n,
        "lrt": last.statistic,
        "p": last.pvalue,
        "lrt_low": min(verdict.statistic for verdict in ratios),
        "lrt_high": max(verdict.statistic for verdict in ratios),
        "verdict": _format_verdict(last.pvalue),
        "score": drawn.statistic,
        "p_redrawn": drawn.pvalue,
        "verdict_redrawn": _format_verdict(drawn.pvalue),
        "p_zeros_impossible": None,
    }
    for j in range(votes.shape[1] - 1):
        row |= {f"{name}_{j + 1}": last.parts[f"class:{j}"][name] for name in ("gamma", "delta")}
    if replacement.kind == "min_prob" and replacement.amount >= MIN_TEST_PROB:
        vote_shares = Predictions(y, votes / votes.sum(axis=1, keepdims=True))
        zeros_verdict = test(
            vote_shares, "mcllo", null="redraw", min_prob=replacement.amount, resamples=plan.resamples, rng=plan.seed
        )
        row["p_zeros_impossible"] = zeros_verdict.pvalue
    return row


def measure_cell(cell: Cell, plan: Plan) -> Row:
    """Rejection rates of both forms of the test over many forests, for one replacement."""
    ratios, pvalues = [], []
    for repetition in range(plan.sets):
        votes, y = plan.simulate_forest(repetition)
        mask = _select_rows(votes, y, cell.rows)
        preds = Predictions(y[mask], cell.replacement.replace_zeros(votes[mask]))
        drawn = test(preds, "mcllo", null="redraw", resamples=plan.redraws, rng=repetition)
        asymptotic = test(preds, "mcllo")
        ratios.append(asymptotic.statistic)
        pvalues.append((asymptotic.pvalue, drawn.pvalue))
    hits = (np.array(pvalues) <= LEVEL + 1e-12).sum(axis=0)
    row: dict[str, Any] = {
        "replacement": cell.replacement.name,
        "rows": cell.rows,
        "lrt_median": float(np.median(ratios)),
    }
    for name, count in zip(("lrt", "redrawn"), hits.tolist(), strict=True):
        low, high = clopper_pearson(count, plan.sets)
        row |= {name: count / plan.sets, f"{name}_low": low, f"{name}_high": high}
    calibrated = cell.replacement == ZeroReplacement("votes", 0.5) and cell.rows == ROW_SUBSETS[0]
    exceeds = any(exceeds_level(count, plan.sets, LEVEL, 2) for count in hits.tolist())
    return row | {"verdict": ("exceeds level" if exceeds else "keeps level") if calibrated else ""}


def _side_by_side(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Combine the rows of a replacement, those for all rows and those without outcomes that had no votes."""
    table = []
    for all_rows, without in zip(rows[::2], rows[1::2], strict=True):
        row = {key: value for key, value in all_rows.items() if key != "rows"}
        table.append(row | {f"without: {name}": without[name] for name in ("lrt_median", "lrt", "redrawn")})
    return tuple(table)


def summarize(rows: Sequence[Row], many: Sequence[Row]) -> str:
    """In words, how much the result depends on the replacement, for the shown forest and for many."""
    all_rows, without = (_describe_dependence([row for row in rows if row["rows"] == subset]) for subset in ROW_SUBSETS)
    shares = [100 * row["lrt"] for row in many if row["replacement"].startswith("min_prob")]
    calibrated = next(row for row in many if row["verdict"])
    return (
        f"One forest: {all_rows}. Without the rows whose observed class had no votes, {without}. Of forests whose"
        f" votes + 1/2 are calibrated, smallest probabilities from {MIN_PROBS[0]:g} to {MIN_PROBS[-1]:g} are rejected"
        f" at 5 % in {shares[0]:.0f} % to {shares[-1]:.0f} %, and votes + 1/2 in {100 * calibrated['lrt']:.1f} %"
        f" ({100 * calibrated['redrawn']:.1f} % by redrawn labels)."
    )


def _describe_dependence(rows: Sequence[Row]) -> str:
    """How much the result depends on the replacement of zeros."""
    rejected = [row["p"] <= LEVEL for row in rows]
    min_prob_rows = [row for row in rows if row["replacement"].startswith("min_prob")]
    if all(rejected) or not any(rejected):
        text = "every replacement rejects" if rejected[0] else "no replacement rejects"
    else:
        text = f"the replacement decides the result, {sum(rejected)} of {len(rejected)} reject"
    ends = format_change(min_prob_rows[0]["lrt"], min_prob_rows[-1]["lrt"], 2)
    return (
        f"{text}, and the likelihood ratio {ends} as the smallest probability increases from {MIN_PROBS[0]:g} to"
        f" {MIN_PROBS[-1]:g}"
    )


def summarize_many(many: Sequence[Row]) -> str:
    """In words, the largest difference between the rejection rates of the two tests."""
    gap = max(abs(row["lrt"] - row["redrawn"]) for row in many)
    worst = max(many, key=lambda row: abs(row["lrt"] - row["redrawn"]))
    return (
        "Tests with redrawn labels are exact for the given probabilities, including the replacement: the two tests"
        f" differ by at most {100 * gap:.1f} points, with {worst['replacement']}."
    )


def _format_verdict(pvalue: float) -> str:
    return "rejected" if pvalue <= LEVEL else "not rejected"


def _draw_if_possible(finding: StudyResult, folder: Path) -> None:
    """Draw the figure if matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is not None:
        draw_replacements(finding.rows, finding.also[0].rows, folder / "mcllo_clipping.svg")


CRITICAL_VALUE = float(chdtri(4, LEVEL))  # of the likelihood ratio for three classes


def draw_replacements(rows: Sequence[Row], many: Sequence[Row], path: Path) -> None:
    """Draw likelihood ratio and slopes by replacement for one forest, and the rejection rates of many."""
    names = [row["replacement"] for row in many]
    y = {name: len(names) - i for i, name in enumerate(names)}
    figure, (ratio_ax, slope_ax, rejection_ax) = make_panels(1, 3, (11, 3.9), sharey=True)
    subsets = list(dict.fromkeys(row["rows"] for row in rows))
    ratio_ax.axvline(CRITICAL_VALUE, color="#cccccc", lw=1)
    slope_ax.axvline(1, color="#cccccc", lw=1)
    for subset, color, up in zip(subsets, ("#b5402a", "#2f6da8"), (0.12, -0.12), strict=True):
        own = [row for row in rows if row["rows"] == subset]
        at = [y[row["replacement"]] + up for row in own]
        ratio_ax.hlines(at, [row["lrt_low"] for row in own], [row["lrt_high"] for row in own], color=color, lw=1.5)
        ratio_ax.plot([row["lrt"] for row in own], at, "o", ms=4, color=color, label=f"one forest, {subset}")
        for name, mark in (("gamma_1", "o"), ("gamma_2", "s")):
            slope_ax.plot([row[name] for row in own], at, mark, ms=4, color=color, mfc="none" if mark == "s" else color)
    rejection_ax.axvline(5, color="#cccccc", lw=1)
    for name, color, text, up in (
        ("lrt", "#b5402a", "likelihood ratio by χ²", 0.12),
        ("redrawn", "#555555", "score, redrawn", -0.12),
    ):
        at = [y[row["replacement"]] + up for row in many]
        rejection_ax.hlines(
            at,
            [100 * row[f"{name}_low"] for row in many],
            [100 * row[f"{name}_high"] for row in many],
            color=color,
            lw=1.5,
        )
        rejection_ax.plot([100 * row[name] for row in many], at, "D", ms=4, color=color, label=f"{text}, 99 % limits")
    ratio_ax.set_yticks(list(y.values()), list(y), fontsize=8)
    ratio_ax.set(xscale="log", xlabel="likelihood ratio, over the baselines; line: 5 %", title="one forest")
    slope_ax.set(xlabel="γ₁ (filled) and γ₂", title="one forest", xlim=(0, None))
    rejection_ax.set(xlabel="percent of forests rejected at 5 %", title="many forests", xlim=(-2, 102))
    handles = [handle for ax in (ratio_ax, rejection_ax) for handle in ax.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    save_figure(figure, path)
