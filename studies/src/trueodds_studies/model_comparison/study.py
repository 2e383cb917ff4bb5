"""Rankings of seven CIFAR-10 networks by eighteen measures and by p-values, compared with published statements."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.progress import Progress
from trueodds_studies.common.network_predictions import CIFAR10_NETWORKS
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, format_count, format_range, make_folder
from trueodds_studies.model_comparison import ranking_tables, rankings
from trueodds_studies.model_comparison.ranking_tables import draw_agreement, draw_ranks, draw_reliability
from trueodds_studies.model_comparison.rankings import ALPHA, DEFAULT_MEASURE, MEASURES, kendall_tau


@dataclass(frozen=True)
class Plan:
    """Number of rows (all by default), of random halves and subsamples, of redraws per test, and of resamples."""

    rows: int | None = None
    draws: int = 200  # random halves, and subsamples of each size
    redraws: int = 199
    resamples: int = 2000
    seed: int = 0


QUICK = Plan(rows=2000, draws=20, redraws=99, resamples=400)


@dataclass(frozen=True)
class Cell:
    """One measure, or the p-values for one number of rows, of all networks."""

    task: str | int  # name of a measure, or number of rows
    nets: tuple[str, ...]
    data: str | None

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        task_text = self.task if isinstance(self.task, str) else f"p of {self.task} rows"
        return f"{task_text} | {', '.join(self.nets)}"


def model_comparison(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Seven networks on CIFAR-10's test images, ranked by eighteen measures, and by p-values with fewer rows.

    Tables: every measure of every network, the rankings and their established parts, pairs, Kendall's tau between
    rankings, p-values, and statements of the paper with our results. Figures: ranks, tau, and the networks on one
    pair of axes. `methods` are networks, at least two. Source: Vaicenavicius et al. (2019), sections 2.1 and 4.3.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder, data_folder = make_folder(out), None if data is None else str(data)
    names = rankings.check_models(tuple(methods or CIFAR10_NETWORKS))
    # Rows that do not match raise an error here, before anything is measured.
    nets = rankings.load_models(names, data_folder, plan.rows, plan.seed)
    n = next(iter(nets.values())).n
    sizes = rankings.SUBSAMPLE_SIZES[:3] if quick else rankings.SUBSAMPLE_SIZES
    tasks: list[str | int] = list(rankings.QUICK_MEASURES if quick else MEASURES)
    tasks += [size for size in sizes if size < n] + [n]
    cells = [Cell(task, names, data_folder) for task in tasks]
    results = run_cells(
        "model_comparison", cells, measure_cell, plan, folder, progress, rankings.hash_model_files(names, data_folder)
    )
    by_measure = [row for row in results if "measure" in row]
    by_size = [row for row in results if "pvalues" in row]
    rows = ranking_tables.value_table(by_measure)
    also = _further_tables(by_measure, by_size, rankings.accuracies(nets), plan)
    finding = StudyResult(
        "model_comparison", summarize(by_measure), rows, plan.__dict__, ranking_tables.VALUES_LEGEND, also
    )
    if folder is not None:
        finding.save(folder)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw_ranks(by_measure, folder / "model_comparison.ranks.svg")
            draw_agreement(by_measure, folder / "model_comparison.tau.svg")
            draw_reliability(nets, folder / "model_comparison.lineup.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The ranking by one measure, or errors and p-values for one number of rows."""
    nets = rankings.load_models(cell.nets, cell.data, plan.rows, plan.seed)
    if isinstance(cell.task, int):
        return rankings.draw_pvalues(cell.task, nets, plan.draws, plan.redraws, plan.seed)
    return rankings.rank_models(cell.task, nets, plan.draws, plan.resamples, plan.seed)


def _further_tables(
    by_measure: Sequence[Mapping[str, Any]],
    by_size: Sequence[Mapping[str, Any]],
    accuracies: Mapping[str, Mapping[str, float]],
    plan: Plan,
) -> tuple[StudyResult, ...]:
    """The other tables of the study."""
    tables = (
        ("orders", summarize_orders(by_measure), ranking_tables.order_table(by_measure), ranking_tables.ORDERS_LEGEND),
        (
            "nets",
            "Predictions and accuracy of the networks.",
            ranking_tables.network_table(accuracies, by_measure),
            ranking_tables.NETWORKS_LEGEND,
        ),
        ("pairs", summarize_pairs(by_measure), ranking_tables.pair_table(by_measure), ranking_tables.PAIRS_LEGEND),
        ("tau", summarize_agreement(by_measure), ranking_tables.tau_table(by_measure), ranking_tables.TAU_LEGEND),
        ("pvalues", summarize_pvalues(by_size), ranking_tables.pvalue_table(by_size), ranking_tables.PVALUES_LEGEND),
        (
            "paper",
            "Statements of the paper, and our results.",
            compare_with_paper(by_measure, by_size, accuracies),
            PAPER_LEGEND,
        ),
    )
    return tuple(
        StudyResult(f"model_comparison.{name}", sentence, rows, plan.__dict__, legend)
        for name, sentence, rows, legend in tables
    )


PAPER_LEGEND = "Quoted or shortened from sections 2.1 and 4.3 of Vaicenavicius et al. (2019)."
KIND_LABELS = {"raw": "raw errors", "corrected": "corrected errors", "score": "proper scores"}


def summarize(by_measure: Sequence[Row]) -> str:
    """In words, how many pairs each kind of measure establishes, and Kendall's tau between the rankings."""
    phrases = []
    for kind, kind_rows in measures_by_kind(by_measure).items():
        settled = [sum(ranking_tables.settled_pairs(row).values()) for row in kind_rows]
        count = len(kind_rows[0]["pairs"])
        phrases.append(f"{KIND_LABELS[kind]} establish {format_range(settled, 0)} of {format_count(count, 'pair')}")
    taus = [ranking_tables.tau_interval(a, b)[0] for a, b in combinations(by_measure, 2)]
    nets, measures = format_count(len(by_measure[0]["models"]), "network"), format_count(len(by_measure), "measure")
    between = (
        f" Kendall's tau between two rankings is {format_range(taus, 2)}, {np.mean(taus):.2f} on average."
        if taus
        else ""
    )
    return f"{nets}, {measures}: {'; '.join(phrases)}.{between}"


def summarize_orders(by_measure: Sequence[Row]) -> str:
    """In words, the first and last networks, and how often the order of a pair is reversed in halves of the rows."""
    firsts = [_network_at_rank(row, 0) for row in by_measure]
    lasts = [_network_at_rank(row, -1) for row in by_measure]
    shares = [np.mean(list(ranking_tables.pair_reversal_rates(row).values())) for row in by_measure]
    return (
        f"First: {_format_counts(firsts)}; last: {_format_counts(lasts)}. In halves of the rows, the order of a pair is"
        f" reversed in {format_range((100 * float(share) for share in shares), 0)} % on average, by measure."
    )


def summarize_pairs(by_measure: Sequence[Row]) -> str:
    """In words, for how many pairs all measures agree, and whether two measures establish opposite orders of a pair."""
    opposite, n_agreeing, count = opposite_pairs(by_measure), 0, len(by_measure[0]["pairs"])
    for a, b in combinations(ranking_tables.network_names(by_measure[0]), 2):
        smaller_is_first = {(a, b) in ranking_tables.settled_pairs(row) for row in by_measure}
        n_agreeing += len(smaller_is_first) == 1
    text = f"In {n_agreeing} of {format_count(count, 'pair')} all measures agree on the order."
    if not opposite:
        return f"{text} No two measures establish opposite orders of a pair."
    return f"{text} Some measures establish opposite orders of: {', '.join(opposite)}."


def opposite_pairs(by_measure: Sequence[Row]) -> list[str]:
    """The pairs for which measures establish opposite orders."""
    pair_names = []
    for a, b in combinations(ranking_tables.network_names(by_measure[0]), 2):
        settled = [ranking_tables.settled_pairs(row) for row in by_measure]
        if any(pairs.get((a, b), False) for pairs in settled) and any(pairs.get((b, a), False) for pairs in settled):
            pair_names.append(f"{a} and {b}")
    return pair_names


def summarize_agreement(by_measure: Sequence[Row]) -> str:
    """In words, the two errors with the least similar rankings, and Kendall's tau between errors and scores."""
    groups = measures_by_kind(by_measure)
    errors = [*groups.get("raw", []), *groups.get("corrected", [])]
    error_pairs = [(ranking_tables.tau_interval(a, b)[0], a, b) for a, b in combinations(errors, 2)]
    phrases = []
    if error_pairs:
        value, a, b = min(error_pairs, key=lambda entry: entry[0])
        phrases.append(
            f"The two errors with the least similar rankings are {a['measure']} and {b['measure']}, with tau"
            f" {value:.2f}"
        )
    error_and_score = [ranking_tables.tau_interval(a, b)[0] for a in errors for b in groups.get("score", [])]
    if error_and_score:
        phrases.append(f"between an error and a score, tau is {format_range(error_and_score, 2)}")
    return "; ".join(phrases) + "."


def summarize_pvalues(by_size: Sequence[Row]) -> str:
    """In words, the share of pairs whose p-values contradict the order of the errors, by number of rows."""
    phrases = [
        f"{row['n']:,} rows {row['contradictory']:.0%} (tied {row['tied']:.0%})"
        for row in ranking_tables.pvalue_table(by_size)
    ]
    return f"Pairs in which the larger error is not rejected and the smaller is: {', '.join(phrases)}."


def compare_with_paper(
    by_measure: Sequence[Row], by_size: Sequence[Row], accuracies: Mapping[str, Mapping[str, float]]
) -> tuple[Row, ...]:
    """Statements of Vaicenavicius et al. (2019) with our results."""
    groups = measures_by_kind(by_measure)
    raw, scores = groups.get("raw", []), groups.get("score", [])
    statements = [
        (
            "comparing calibration of two models just in terms of the realizations of these estimators is unjustified",
            _describe_unsettled(raw),
        )
    ]
    statements.append(("(same statement)", summarize_pairs(raw)))
    statements.append(("the two biases can differ significantly", _describe_noise_floors(raw)))
    statements.append(
        (f"the larger estimate may have P > α > P' of the smaller, α = {ALPHA:g}", summarize_pvalues(by_size))
    )
    if len(scores) > 1:
        values = [ranking_tables.tau_interval(a, b)[0] for a, b in combinations(scores, 2)]
        statements.append(
            (
                "different scoring rules can rank the same models differently",
                f"tau between them {format_range(values, 2)}. {summarize_pairs(scores)}",
            )
        )
    accuracy = -np.array([net["accuracy"] for net in accuracies.values()])
    for kind, rows in groups.items():
        values = [float(kendall_tau(ranking_tables.model_values(row), accuracy)) for row in rows]
        claim = "expected scores do not quantify model calibration directly" if kind == "score" else "(in addition)"
        statements.append((claim, f"{KIND_LABELS[kind]}: tau with the ranking by accuracy {format_range(values, 2)}"))
    return tuple({"published": first, "our result": second} for first, second in statements)


def measures_by_kind(by_measure: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of the measures by kind: raw errors, corrected errors, and proper scores."""
    groups: dict[str, list[Row]] = {}
    for row in by_measure:
        groups.setdefault(MEASURES[row["measure"]].kind, []).append(row)
    return groups


def _describe_unsettled(rows: Sequence[Row]) -> str:
    """In words, how many pairs are not established by the default measure, and by all raw errors."""
    phrases = []
    for row in rows:
        settled = ranking_tables.settled_pairs(row)
        shares = ranking_tables.pair_reversal_rates(row)
        worst = max(shares, key=lambda pair: shares[pair])
        if row["measure"] == DEFAULT_MEASURE:
            phrases.append(
                f"{DEFAULT_MEASURE}: {len(settled) - sum(settled.values())} of {format_count(len(settled), 'pair')} not"
                f" established; most often reversed: {worst[0]} and {worst[1]}, in {shares[worst]:.0%} of halves"
            )
    unsettled = [100 * (1 - sum(ranking_tables.settled_pairs(row).values()) / len(row["pairs"])) for row in rows]
    return "; ".join([*phrases, f"for the raw errors, {format_range(unsettled, 0)} % of the pairs are not established"])


def _describe_noise_floors(rows: Sequence[Row]) -> str:
    """In words, the range of the noise floors of the networks by measure, the widest range first."""
    ranges = []
    for row in rows:
        floors = [model["noise floor"] for model in row["models"] if model["noise floor"] is not None]
        if floors and min(floors) > 0:
            ranges.append((max(floors) / min(floors), f"{row['measure']} {format_range(floors, 4)}"))
    ranges.sort(reverse=True)
    return f"noise floors of the networks: {'; '.join(text for _, text in ranges)}"


def _network_at_rank(row: Row, rank: int) -> str:
    """The network at a rank by a measure, 0 for the smallest value and −1 for the largest."""
    order = np.argsort(ranking_tables.model_values(row), kind="stable")
    return ranking_tables.network_names(row)[int(order[rank])]


def _format_counts(names: Sequence[str]) -> str:
    """How often each name occurs, the most frequent first, as text."""
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    ordered = sorted(counts, key=lambda name: -counts[name])
    return ", ".join(f"{name} by {counts[name]}" for name in ordered)
