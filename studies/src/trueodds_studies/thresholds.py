"""How often the risk of a chosen threshold exceeds its target, and how much it selects, beside the best threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtr, ndtri

from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.risk_threshold import Risk, find_threshold
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder

LEGEND = """sets: data sets of each design and number of rows. exceeded: share of the data sets in which the risk of the
threshold is larger than the target, {max_risk:g}; it may be at most {delta:g}. error: its standard error at {delta:g}.
naive: the same share if the threshold with the best coverage is chosen whose observed risk is at most the target.
found: share of the data sets with a threshold. coverage: mean share of the rows that are selected. oracle: the best
share for which the target holds."""

_GRID = (np.arange(200_000) + 0.5) / 200_000  # quantiles of the score, for true risks


class Design(NamedTuple):
    """Scores that are uniform on (0, 1), and the probability of the event, or of a right answer, at each."""

    name: str
    risk: Risk
    event: Callable[[Array], Array]  # probability of the event at each score
    digits: int = 15  # to which scores are rounded
    dependence: float = 0.0  # correlation of the latent scores and outcomes of the four rows of a cluster

    def true_risks(self, threshold: float) -> tuple[float, float]:
        """The risk and the coverage of the rule that selects scores from the threshold on."""
        scores, events_below = _true_distribution(self)
        n_below, n = int(np.searchsorted(scores, threshold)), len(scores)
        n_selected, missed, all_events = n - n_below, events_below[n_below], events_below[-1]
        selected_non_events = n_selected - (all_events - missed)
        if self.risk == "error":
            risk = selected_non_events / max(n_selected, 1)
        else:
            risk = missed / all_events if self.risk == "fnr" else selected_non_events / (n - all_events)
        return float(risk), n_selected / n

    def oracle(self, max_risk: float) -> float:
        """The coverage of the best threshold: the largest one, or the smallest one of a false negative rate."""
        rules = [self.true_risks(threshold) for threshold in np.unique(_GRID[::400].round(self.digits))]
        shares = [coverage for risk, coverage in rules if risk <= max_risk]
        return (min if self.risk == "fnr" else max)(shares, default=0.0)

    def draw(self, rng: np.random.Generator, n: int) -> Predictions:
        """Draw n rows."""
        cluster = np.arange(n) // 4

        def uniform() -> Array:
            own, shared = rng.standard_normal(n), rng.standard_normal(n)[cluster]
            return np.asarray(ndtr(np.sqrt(self.dependence) * shared + np.sqrt(1 - self.dependence) * own))

        scores = uniform().round(self.digits)
        y = uniform() < self.event(scores)
        labels = cluster if self.dependence else None
        if self.risk == "error":
            return Predictions.from_confidence(scores, y, cluster=labels)
        return Predictions(y, scores, cluster=labels)


@cache
def _true_distribution(design: Design) -> tuple[Array, Array]:
    """Scores in increasing order, and the expected number of events below each of them and in all."""
    scores = _GRID.round(design.digits)
    return scores, np.append(0.0, np.cumsum(design.event(scores)))


def _falling(c: Array) -> Array:
    return 1 - 0.2 * (1 - c) ** 2


def _step(c: Array) -> Array:
    return np.where(c > 0.57, 0.97, 0.85)


def _just_above(c: Array) -> Array:
    return np.full(len(c), 0.9499)


def _u_shaped(c: Array) -> Array:
    """Most errors at the highest and at the lowest scores."""
    return np.where(c > 0.97, 0.9, np.where(c > 0.4, 0.98, 0.8))


def _wave(c: Array) -> Array:
    return 0.955 + 0.03 * np.sin(12 * c)


def _logistic(p: Array) -> Array:
    return np.asarray(expit(ndtri(np.clip(p, 1e-9, 1 - 1e-9)) * 2 - 1))


DESIGNS = (
    Design("falling risk", "error", _falling),
    Design("falling risk, ties", "error", _falling, 1),
    Design("step", "error", _step),
    Design("step, ties", "error", _step, 1),
    Design("just above the target", "error", _just_above),
    Design("U-shaped", "error", _u_shaped),
    Design("wave", "error", _wave),
    Design("falling risk, clusters", "error", _falling, 1, 0.3),
    Design("false negatives", "fnr", _logistic),
    Design("false negatives, ties", "fnr", _logistic, 1),
    Design("false negatives, clusters", "fnr", _logistic, 15, 0.3),
    Design("false positives", "fpr", _logistic),
    Design("false positives, ties", "fpr", _logistic, 1),
)


@dataclass(frozen=True)
class Plan:
    """Size of the simulation."""

    sets: int = 1000  # data sets per design and number of rows; a fifth of them for clusters, which take long
    rows: tuple[int, ...] = (200, 1000, 4000)
    max_risk: float = 0.05
    level: float = 0.95
    seed: int = 0


QUICK = Plan(sets=20, rows=(200,))


class Cell(NamedTuple):
    """A design with a number of rows."""

    design: Design
    n: int

    @property
    def key(self) -> str:
        """The name of the cell in saved results."""
        return f"{self.design.name} {self.n}"


def thresholds(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Violations and coverage of the thresholds of `trueodds.threshold`.

    >>> finding = thresholds(plan=Plan(sets=3, rows=(100,)))
    >>> len(finding.rows) == len(DESIGNS)
    True
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    cells = [Cell(design, n) for design in DESIGNS for n in plan.rows]
    rows = tuple(run_cells("thresholds", cells, measure_cell, plan, folder, progress))
    delta = round(1 - plan.level, 9)
    legend = LEGEND.format(max_risk=plan.max_risk, delta=delta)
    finding = StudyResult("thresholds", _summarize(rows, delta), rows, plan.__dict__, legend)
    if folder is not None:
        finding.save(folder)
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table for one cell."""
    design, n_found, n_exceeded, n_naive, coverage = cell.design, 0, 0, 0, 0.0
    lens = "confidence" if design.risk == "error" else "positive"
    sets = max(plan.sets // 5, 1) if design.dependence else plan.sets
    for seed in range(sets):
        preds = design.draw(np.random.default_rng([plan.seed, seed, cell.n]), cell.n)
        rule = find_threshold(preds, risk=design.risk, lens=lens, max_risk=plan.max_risk, level=plan.level)
        n_naive += design.true_risks(_naive_threshold(preds, design.risk, plan.max_risk))[0] > plan.max_risk
        if rule.threshold is not None:
            n_found += 1
            n_exceeded += design.true_risks(rule.threshold)[0] > plan.max_risk
            coverage += rule.coverage
    delta = 1 - plan.level
    return {
        "design": design.name,
        "n": cell.n,
        "sets": sets,
        "exceeded": n_exceeded / sets,
        "error": float(np.sqrt(delta * (1 - delta) / sets)),
        "naive": n_naive / sets,
        "found": n_found / sets,
        "coverage": coverage / sets,
        "oracle": design.oracle(plan.max_risk),
    }


def _naive_threshold(preds: Predictions, risk: Risk, max_risk: float) -> float:
    """The threshold that selects most rows (fewest, for misses) of those whose observed risk is at most the target."""
    assert preds.y is not None
    order = np.argsort(-preds.p, kind="stable")
    scores, y = preds.p[order], preds.y[order] == 1
    if risk == "error":
        risks = np.cumsum(~y) / np.arange(1, len(y) + 1)
    elif risk == "fnr":
        risks = 1 - np.cumsum(y) / max(y.sum(), 1)
    else:
        risks = np.cumsum(~y) / max((~y).sum(), 1)
    ends = np.append(np.diff(scores) != 0, True)
    allowed = np.flatnonzero(ends & (risks <= max_risk))
    return float(scores[allowed[0 if risk == "fnr" else -1]]) if len(allowed) else float("inf")


def _summarize(rows: tuple[Mapping[str, Any], ...], delta: float) -> str:
    """In words, the largest share of violations, and how much is selected in comparison with the oracle."""
    worst = max(rows, key=lambda row: row["exceeded"])
    n_above = sum(row["exceeded"] > delta + 2 * row["error"] for row in rows)
    naive = float(np.mean([row["naive"] for row in rows]))
    return (
        f"The risk exceeds the target in at most {worst['exceeded']:.1%} of the data sets of a design"
        f" ({worst['design']}, n = {worst['n']:,}), and significantly more often than {delta:.0%} in {n_above} of"
        f" {len(rows)} cells. The threshold with the best observed coverage exceeds it in {naive:.0%} on average."
    )
