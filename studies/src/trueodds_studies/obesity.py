"""Can a random forest's votes be recalibrated from 396 rows? The obesity study of the MCLLO paper, on many splits."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.verbs import fit, measure, test
from trueodds.calibrators.mcllo import MclloMap
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.hypotests.likelihood.odds import Odds
from trueodds.lenses.lens import as_lens
from trueodds_studies.base import Finding, folder
from trueodds_studies.comparators import (
    METHODS,
    MIN_PROB,
    EvaluatedMethod,
    Method,
    evaluate_methods,
    judgment,
    replace_probs,
)
from trueodds_studies.data import stamp
from trueodds_studies.recalibrated import figures, obesity_tables
from trueodds_studies.recalibrated.forest import FILE, WITHOUT, People, Voted, voted, zeros
from trueodds_studies.recalibrated.losses import mixed
from trueodds_studies.resumable_runs import Progress, rows_of

BASELINES = {"Normal Weight": 1, "the last": -1}  # the paper names both: the second would be Overweight Level II
EVERY = (
    *METHODS,
    Method("evidential, floor 1e-3", "evidential", {"min_prob": 1e-3}),
    Method("evidential on p", "evidential", {"on": "probabilities"}),
    Method("auto", "auto"),
)
BASELINE_METHODS = tuple(
    method for method in METHODS if method.name in ("identity", "mcllo")
)  # those that a baseline changes
LIMIT = "MCLLO, no pull"
FLOORS = (1e-12, 1e-9, 1e-6, 1e-4, 1e-3)
AT_FLOORS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("none", "identity", {}),
    ("MCLLO", "mcllo", {"baseline": BASELINES["Normal Weight"]}),
    ("ridge", "mcllo", {"baseline": BASELINES["Normal Weight"], "penalty": 0.5}),
    ("temperature", "temperature", {}),
)
STANDS = "votes + 1/2"  # half a vote more for every class


@dataclass(frozen=True)
class Plan:
    """How many splits and trees; a split's seed gives its rows and its forest."""

    splits: int = 12
    trees: int = 500
    features: tuple[str, ...] = tuple(WITHOUT)
    resamples: int = 999
    seed: int = 0

    def random_state(self, split: int) -> int:
        """Of the split and its forest."""
        return 1000 * self.seed + split


QUICK = Plan(splits=1, trees=60, features=("all",), resamples=199)


@dataclass(frozen=True)
class Cell:
    """One split of the rows with one set of features."""

    features: str
    split: int
    data: str | None

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.features} | {self.split}"


def obesity(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """A forest of 500 trees on 1,583 people, its votes recalibrated on 396, judged on 132 that nothing has seen.

    Seven classes, and sixteen features with and without Weight and Height (words one column each). Each method of the
    paper, temperature and vector scaling on log p, which the paper says a forest cannot have, and `auto`, over twelve
    splits, with MCLLO against both baselines that the paper names. A table by method; what each gains over no
    recalibration; the parameters and the table of the paper; how far it matters what stands in for votes of 0. With a
    folder the rows of every split go to `obesity.rows.csv`, and a picture to `obesity.svg`. Needs
    `obesity_features.parquet` in `data` (TO802). Source: Vennos, Xing & Franck (2026), section 4.3.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where = folder(out)
    for features in plan.features:
        People.of(features, data)  # here, so that a file without them is refused before a forest is grown
    read = {FILE: stamp(FILE, data)}
    results = rows_of("obesity", list(_cells(plan, data)), measure_cell, plan, where, progress, read)
    finding = obesity_tables.obesity(results, plan.__dict__)
    if where is not None:
        finding.save(where)
        Finding("obesity.rows", finding.sentence, obesity_tables.every(results), plan.__dict__, finding.legend).save(
            where
        )
        if importlib.util.find_spec("matplotlib") is not None:
            figures.obesity(results, where / "obesity.svg")
    return finding


def _cells(plan: Plan, data: str | Path | None) -> Iterator[Cell]:
    place = None if data is None else str(data)
    for features in plan.features:
        yield from (Cell(features, split, place) for split in range(plan.splits))


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """What is found on one split."""
    people = People.of(cell.features, cell.data)
    votes = voted(people, plan.trees, plan.random_state(cell.split))
    rows = []
    for label, baseline in BASELINES.items():
        methods = EVERY if baseline == BASELINES["Normal Weight"] else BASELINE_METHODS
        evaluations = [
            *evaluate_methods(votes.learn, votes.held_out, methods, baseline=baseline),
            unpulled(votes, baseline),
        ]
        rows += [{"baseline": label} | method_row(one, votes.learn.n, baseline, plan) for one in evaluations]
    return {
        "features": cell.features,
        "split": cell.split,
        "classes": people.classes,
        "learn": judgment("calibration rows", votes.learn, votes.learn.P.argmax(axis=1), BASELINES["Normal Weight"])[0],
        **zeros(votes.learn),
        "true zeros judged": zeros(votes.held_out)["true zeros"],
        "rows": rows,
        "parameters": parameters(votes.learn),
        "floors": [_with_min_prob(votes, name, plan) for name in (*FLOORS, STANDS)],
    }


def method_row(one: EvaluatedMethod, n: int, baseline: int, plan: Plan) -> dict[str, Any]:
    """A method's row with what the paper does not print."""
    assert one.after.y is not None
    redraw_verdict = test(
        one.after, "mcllo", null="redraw", baseline=baseline, min_prob=MIN_PROB, resamples=plan.resamples
    )
    return {
        **one.row,
        "p redrawn": float(redraw_verdict),
        "mixed": mixed(one.after.P, one.after.y, n),
        "test diverges": bool(np.isnan(one.verdict.parts["joint"]["wald"])),
        "fit diverges": not getattr(one.calibration_map, "converged", True),
        "chose": one.calibration_map.name,
    }


def unpulled(votes: Voted, baseline: int) -> EvaluatedMethod:
    """MCLLO at its supremum: within 1e-9 nats of it where no finite parameters are best, as an optimizer walks on.

    The library's fit has a slight pull there, which keeps the parameters finite.
    """
    (view,) = as_lens("canonical").views(votes.learn)
    odds = Odds.of(view, baseline, 1e-12, "mcllo")
    theta, finite = odds.mle.theta, odds.mle.converged
    calibration_map = MclloMap(theta[1::2].copy(), theta[::2].copy(), odds.baseline, 1e-12, odds.mle.n_passes, finite)
    after = replace_probs(votes.held_out, calibration_map.apply(votes.held_out.P))
    row, verdict = judgment(LIMIT, after, votes.held_out.P.argmax(axis=1), baseline)
    return EvaluatedMethod(row, calibration_map, after, verdict)


def parameters(learn: Predictions) -> list[dict[str, float]]:
    """δ and γ of each class against Normal Weight, with standard errors: that of δ is δ times that of log δ."""
    parts = test(learn, "mcllo", baseline=BASELINES["Normal Weight"], min_prob=MIN_PROB).parts
    return [
        {
            "class": int(name.removeprefix("class:")),
            "delta": one["delta"], "delta_se": one["delta"] * one["tau_se"],
            "gamma": one["gamma"], "gamma_se": one["gamma_se"],
        }
        for name, one in parts.items() if name.startswith("class:")
    ]  # fmt: skip


def _with_min_prob(votes: Voted, min_prob: float | str, plan: Plan) -> dict[str, Any]:
    """How the test and two fits come out if something else stands in for the votes of 0."""
    learn, held_out = (
        replace_probs(part, _stood_in(part.P, min_prob, plan.trees)) for part in (votes.learn, votes.held_out)
    )
    baseline = BASELINES["Normal Weight"]
    row: dict[str, Any] = {"floor": min_prob, "LRT": test(learn, "mcllo", baseline=baseline).statistic}
    row["p"] = float(test(held_out, "mcllo", baseline=baseline))
    made = {label: fit(learn, name, **settings).predict_proba(held_out) for label, name, settings in AT_FLOORS}
    made["no pull"] = unpulled(Voted(learn, held_out), baseline).after.P
    assert held_out.y is not None
    for label, Q in made.items():
        row[label] = float(measure(replace_probs(held_out, Q), "log_loss", interval=None))
        row[f"mixed {label}"] = mixed(Q, held_out.y, learn.n)
    return row


def _stood_in(P: Array, min_prob: float | str, trees: int) -> Array:
    Q = P + 0.5 / trees if isinstance(min_prob, str) else np.maximum(P, min_prob)
    return np.asarray(Q / Q.sum(axis=1, keepdims=True))
