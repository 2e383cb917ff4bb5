"""Coverage and width of means from few labels and many scores of a judge, where the true mean is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from trueodds.api.prediction_powered_mean import prediction_powered_difference, prediction_powered_mean
from trueodds.core.errors import InputError
from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder

SPREAD = 4.0  # standard deviation of the true log odds of the answers
CLUSTER_SPREAD = 2.0  # standard deviation of the log odds between clusters, in designs with clusters
CLUSTER_ROWS = 10  # rows, and labels of a labeled cluster
TARGET_COVERAGE, MAX_WIDTH = 0.93, 1.05

LEGEND = """{sets} data sets per row, of at least 2,000 rows and ten per label. design: how the rows are labeled. judge:
good, its score is the true probability; useless, independent of the label; biased, overconfident and too lenient, with
noise; drifting, sharp in one half of the rows and reversed in the other; yes/no, with errors; grades, tenths with exact
0 and 1; reversed, sure and wrong; extreme, with log odds of ± 20 and more. covers: share of 95 % intervals that contain
the true mean; labels: the same for the labels alone. width: mean width divided by that for the labels alone; alone:
share of data sets whose result is that of the labels alone; refused: share refused as not random (TO223), which is left
out of the other columns."""


CHOICE_LEGEND = """design: how the labeled rows are chosen, although a random choice is stated: at random; among the
half with the highest scores s; with a probability in proportion to 0.1 + 4 s (1 − s) or to 0.5 + 4 s (1 − s). refused:
share of data sets with the error TO223."""


def _score(judge: str, logit: Array, y: Array, rng: np.random.Generator) -> Array:
    """The scores of a judge, of rows with true log odds `logit` and labels y."""
    n, noise = len(y), rng.normal(size=len(y))
    if judge == "yes/no":
        return np.where(rng.random(n) < np.where(y == 1, 0.9, 0.75), y, 1 - y)
    if judge == "grades":
        return np.asarray(np.round(expit(logit + 1 + noise), 1))
    log_odds = {
        "good": logit,
        "useless": 1 + noise,
        "biased": 2 * logit + 2 + 3 * noise,
        "drifting": np.where(rng.random(n) < 0.5, 1.0, -0.3) * logit + noise,
        "reversed": noise - 2 * logit,
        "extreme": logit * np.exp(1.5 * noise),
    }
    return np.asarray(expit(log_odds[judge]))


JUDGES = ("good", "useless", "biased", "drifting", "yes/no", "grades", "reversed", "extreme")


@dataclass(frozen=True)
class Plan:
    """Size of the simulation; each data set has its own random stream, so resuming does not change results."""

    sets: int = 500
    labels: tuple[int, ...] = (30, 50, 100, 300, 1000)
    means: tuple[float, ...] = (0.5, 0.8, 0.9, 0.95)
    seed: int = 0


QUICK = Plan(sets=10, labels=(30, 100), means=(0.8,))


@dataclass(frozen=True)
class Cell:
    """One way to label rows, one judge, one true mean and one number of labels, or of clusters with ten labels each."""

    design: str
    judge: str
    mean: float
    n: int

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.design} | {self.judge} | {self.mean:g} | {self.n}"


def judges(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Coverage and width of `prediction_powered_mean` and `prediction_powered_difference`, and refusals of labels.

    >>> finding = judges(plan=Plan(sets=2, labels=(30,), means=(0.8,)))
    >>> finding.rows[0]["judge"], finding.rows[0]["n"]
    ('good', 30)
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    rows = run_cells("judges", list(_cells(plan)), measure_cell, plan, folder, progress)
    measured = [row for row in rows if "covers" in row]
    refusals = StudyResult(
        "judges.refused", "Labels chosen by the score are refused, if there are enough of them.",
        tuple(row for row in rows if "covers" not in row), plan.__dict__, CHOICE_LEGEND,
    )  # fmt: skip
    finding = StudyResult(
        "judges", _summarize(measured, plan), tuple(measured), plan.__dict__, LEGEND.format(sets=plan.sets), (refusals,)
    )
    if folder is not None:
        finding.save(folder)
    return finding


def _cells(plan: Plan) -> Iterator[Cell]:
    few, mean = plan.labels[: max(1, len(plan.labels) - 1)], 0.8
    yield from (Cell("random", judge, m, n) for judge in JUDGES[:5] for m in plan.means for n in few)
    yield from (Cell("random", judge, m, plan.labels[-1]) for judge in JUDGES[:5] for m in plan.means[-1:])
    yield from (Cell("random", judge, m, n) for judge in JUDGES[5:] for m in plan.means[1::2] for n in few)
    for design, sizes in (("clusters", (10, 30, 100)), ("unequal", few[1:] or few), ("strata", few)):
        for judge in ("good", "useless", "biased"):
            yield from (Cell(design, judge, mean, n) for n in sizes)
    for design in ("difference .1", "difference .3"):
        yield from (Cell(design, judge, mean, n) for judge in ("good", "useless") for n in few)
    yield from (Cell("error rates", "yes/no", m, n) for m in plan.means for n in (100, 300))
    for design in _CHOICES:
        yield from (Cell(design, "biased", mean, n) for n in few)


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table for one cell."""
    labels = {"design": cell.design, "judge": cell.judge, "mean": cell.mean, "n": cell.n}
    results, n_refused = [], 0
    for repetition in range(plan.sets):
        rng = np.random.default_rng([plan.seed, *cell.key.encode(), repetition])
        try:
            results.append(_RUN_OF_DESIGN.get(cell.design, _run_mean)(cell, rng))
        except InputError as problem:
            if problem.code != "TO223":
                raise
            n_refused += 1
    refused = n_refused / plan.sets
    if cell.design in _CHOICES:
        return labels | {"refused": refused}
    lows, highs = (np.array([getattr(result.interval, end) for result, _ in results]) for end in ("low", "high"))
    truths = np.array([truth for _, truth in results])
    row = labels | {"covers": float(((lows <= truths) & (truths <= highs)).mean())}
    alone = [result.labels_alone for result, _ in results if result.labels_alone is not None]
    if not alone:
        return row | {"labels": None, "width": None, "alone": None, "refused": refused}
    low_ends, high_ends = (np.array([getattr(mean.interval, end) for mean in alone]) for end in ("low", "high"))
    return row | {
        "labels": float(((low_ends <= truths) & (truths <= high_ends)).mean()),
        "width": float((highs - lows).mean() / (high_ends - low_ends).mean()),
        "alone": float(np.mean([result.method == "labels alone" for result, _ in results])),
        "refused": refused,
    }


@cache
def _intercept(mean: float, spread: float) -> float:
    """The mean of normal log odds with this standard deviation whose probabilities have this mean."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(201)
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        is_below = float(weights @ expit(middle + spread * nodes)) / math.sqrt(2 * math.pi) < mean
        low, high = (middle, high) if is_below else (low, middle)
    return low


def _draw(cell: Cell, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw labels and scores of n independent rows."""
    logit = _intercept(cell.mean, SPREAD) + SPREAD * rng.normal(size=n)
    y = (rng.random(n) < expit(logit)).astype(np.float64)
    return y, _score(cell.judge, logit, y, rng)


def _keep(y: Array, labeled: Array) -> Array:
    """The labels of the labeled rows, NaN elsewhere."""
    label = np.full(len(y), np.nan)
    label[labeled] = y[labeled]
    return label


def _run_mean(cell: Cell, rng: np.random.Generator) -> tuple[Any, float]:
    y, score = _draw(cell, max(2000, 10 * cell.n), rng)
    label = _keep(y, rng.choice(len(y), cell.n, replace=False))
    return prediction_powered_mean(label, score, sampling="random", rng=rng), cell.mean


def _run_clusters(cell: Cell, rng: np.random.Generator) -> tuple[Any, float]:
    n_clusters = max(200, 10 * cell.n)
    cluster = np.repeat(np.arange(n_clusters), CLUSTER_ROWS)
    center = _intercept(cell.mean, math.hypot(SPREAD, CLUSTER_SPREAD))
    logit = center + CLUSTER_SPREAD * rng.normal(size=n_clusters)[cluster] + SPREAD * rng.normal(size=len(cluster))
    y = (rng.random(len(cluster)) < expit(logit)).astype(np.float64)
    label = _keep(y, np.isin(cluster, rng.choice(n_clusters, cell.n, replace=False)))
    score = _score(cell.judge, logit, y, rng)
    return prediction_powered_mean(label, score, sampling="random", cluster=cluster, rng=rng), cell.mean


def _run_unequal(cell: Cell, rng: np.random.Generator) -> tuple[Any, float]:
    y, score = _draw(cell, max(2000, 10 * cell.n), rng)
    uncertainty = 0.1 + 4 * score * (1 - score)
    probability = np.minimum(0.95, cell.n * uncertainty / uncertainty.sum())
    label = _keep(y, rng.random(len(y)) < probability)
    return prediction_powered_mean(label, score, probability=probability, rng=rng), cell.mean


def _run_strata(cell: Cell, rng: np.random.Generator) -> tuple[Any, float]:
    """Two strata with other means: the rarer one has a quarter of the rows and half of the labels."""
    n = max(2000, 10 * cell.n)
    means = (cell.mean - 0.3, cell.mean + 0.1)
    stratum = (rng.random(n) < 0.75).astype(int)
    logit = np.array([_intercept(mean, SPREAD) for mean in means])[stratum] + SPREAD * rng.normal(size=n)
    y = (rng.random(n) < expit(logit)).astype(np.float64)
    chosen = [rng.choice(np.flatnonzero(stratum == h), cell.n // 2, replace=False) for h in (0, 1)]
    label = _keep(y, np.concatenate(chosen))
    score = _score(cell.judge, logit, y, rng)
    return prediction_powered_mean(label, score, sampling="random", stratum=stratum, rng=rng), cell.mean


def _run_difference(cell: Cell, rng: np.random.Generator) -> tuple[Any, float]:
    """Two systems that differ in the given share of rows, of which system a wins two thirds."""
    share = float(cell.design.rpartition(" ")[2])
    y_a, score_a = _draw(cell, max(2000, 10 * cell.n), rng)
    differs = rng.random(len(y_a)) < share
    y_b = np.where(differs, 1 - y_a, y_a)
    noise = rng.normal(size=len(y_a))
    score_b = np.where(differs, expit(6 * (y_b - 0.5) + noise), score_a) if cell.judge == "good" else score_a[::-1]
    labeled = rng.choice(len(y_a), cell.n, replace=False)
    # A row that differs is one of a's right answers with probability `mean`.
    truth = share * (2 * cell.mean - 1)
    result = prediction_powered_difference(
        _keep(y_a, labeled), score_a, _keep(y_b, labeled), score_b, sampling="random", rng=rng
    )
    return result, truth


def _run_error_rates(cell: Cell, rng: np.random.Generator) -> tuple[Any, float]:
    _, score = _draw(cell, 1000, rng)
    right_yes, right_no = (int(rng.binomial(cell.n, rate)) for rate in (0.9, 0.75))
    result = prediction_powered_mean(None, score, sensitivity=(right_yes, cell.n), specificity=(right_no, cell.n))
    return result, cell.mean


def _run_choice(cell: Cell, rng: np.random.Generator) -> tuple[Any, float]:
    """Label rows that are chosen by their scores, or not."""
    y, score = _draw(cell, max(2000, 10 * cell.n), rng)
    uncertainty = score * (1 - score)
    preference = {
        "chosen at random": np.ones(len(y)),
        "highest half": score >= np.median(score),
        "more uncertain": 0.1 + 4 * uncertainty,
        "slightly more uncertain": 0.5 + 4 * uncertainty,
    }[cell.design]
    label = _keep(y, rng.choice(len(y), cell.n, replace=False, p=preference / preference.sum()))
    return prediction_powered_mean(label, score, sampling="random", rng=rng), cell.mean


_CHOICES = ("chosen at random", "highest half", "more uncertain", "slightly more uncertain")
_RUN_OF_DESIGN: Mapping[str, Callable[[Cell, np.random.Generator], tuple[Any, float]]] = {
    "clusters": _run_clusters,
    "unequal": _run_unequal,
    "strata": _run_strata,
    "difference .1": _run_difference,
    "difference .3": _run_difference,
    "error rates": _run_error_rates,
    **dict.fromkeys(_CHOICES, _run_choice),
}


def _summarize(rows: Sequence[Mapping[str, Any]], plan: Plan) -> str:
    limit = TARGET_COVERAGE - 2 * math.sqrt(TARGET_COVERAGE * (1 - TARGET_COVERAGE) / plan.sets)
    below = [row for row in rows if row["covers"] < limit]
    covers = [row["covers"] for row in rows]
    widths = [row["width"] for row in rows if row["width"] is not None]
    names = "; ".join(f"{row['design']}, {row['judge']}, mean {row['mean']}, n = {row['n']}" for row in below)
    return (
        f"Of {len(rows)} designs with {plan.sets:,} data sets each, {len(below)} cover less than {limit:.3f}, which is"
        f" {TARGET_COVERAGE} minus two standard errors{f' ({names})' if below else ''}. Coverage is {min(covers):.3f}"
        f" to {max(covers):.3f}, on average {np.mean(covers):.3f}. The width relative to the labels alone is"
        f" {min(widths):.2f} to {max(widths):.2f}, on average {np.mean(widths):.2f}."
    )
