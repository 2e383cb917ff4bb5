"""What can be said of a classifier when only its confidence and whether it was right are known?"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds_studies.base import Finding, folder
from trueodds_studies.data import stamp
from trueodds_studies.resumable_runs import Progress, rows_of
from trueodds_studies.top1 import figures, needs, network_results, network_tables
from trueodds_studies.top1.nets import FILE, NETS, known, load_predictions, same_images

ALL_NETS = "together"


@dataclass(frozen=True)
class Plan:
    """How many rows of each network (all, without a number), resamples of an interval, redraws of a test."""

    rows: int | None = None
    resamples: int = 500
    redraws: int = 199
    seed: int = 0


QUICK = Plan(rows=1500, resamples=100, redraws=99)
SMALL = 2000  # rows on which it is tried what works

ESTIMATORS = "value [95 % interval] (noise floor: the mean if every confidence were right)."
TESTS = """p-values; 0: less than the least number that floating point has. floor: what stands in for confidences of 0 and 1, whose log odds are
infinite, where a network has some."""
FIXES = f"auto on a random half of the rows; the scores are of the other half: {ESTIMATORS}"
RISKS = """AURC [95 % interval]: the mean risk as ever less sure answers are given; random, ideal: of an order without sense, and of the best.
risk at .5: share wrong of the surer half."""
PAIRS = """difference [low, high]: intervals hold together over the pairs of one error, 95 %; p adjusted likewise; smaller: the network
whose error is smaller."""
NEEDS = "On 2,000 rows of the first network. with floor: where a confidence is 0 or 1 and log odds are taken."


@dataclass(frozen=True)
class Cell:
    """One network, or all together."""

    net: str
    data: str | None
    nets: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.net} {' '.join(self.nets)}".strip()


def imagenet_top1(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Three ImageNet networks of which only confidence and correctness were kept, by everything that needs no more.

    Tables: every estimator and test; what `auto` fixes; risk and coverage; the networks compared in pairs; and every lens,
    estimator, test, calibrator and diagram with what it needs. A picture. `methods` are networks. Source of the rows:
    Lee, Huang, Hassani & Dobriban (2023), T-Cal.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where, place = folder(out), None if data is None else str(data)
    nets = tuple(known(name) for name in methods or NETS)
    cells = [*(Cell(net, place) for net in nets), Cell(ALL_NETS, place, nets)]
    *net_rows, joint_row = rows_of(
        "imagenet_top1", cells, measure_cell, plan, where, progress, {FILE: stamp(FILE, place)}
    )
    made = (
        ("tests", "Every test that takes these rows.", network_tables.tests(net_rows), TESTS),
        ("fixes", "What a fix gains.", network_tables.fixes(net_rows), FIXES),
        ("risk", "Answers that may be withheld.", network_tables.risks(net_rows), RISKS),
        ("pairs", "The networks in pairs.", tuple(joint_row["pairs"]), PAIRS),
        ("needs", "What works, and what the rest needs.", tuple(joint_row["needs"]), NEEDS),
    )
    also = tuple(Finding(f"imagenet_top1.{name}", words, rows, plan.__dict__, why) for name, words, rows, why in made)
    words = network_tables.sentence(net_rows, joint_row["needs"])
    finding = Finding("imagenet_top1", words, network_tables.estimators(net_rows), plan.__dict__, ESTIMATORS, also)
    if where is not None:
        finding.save(where)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            models = {net: load_predictions(net, place, plan.rows, plan.seed) for net in nets}
            figures.draw(models, where / "imagenet_top1.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """What is found of one network, or of all together."""
    if cell.net == ALL_NETS:
        models = {net: load_predictions(net, cell.data, plan.rows, plan.seed) for net in cell.nets}
        sample = load_predictions(cell.nets[0], cell.data, SMALL, plan.seed)
        pairs = (
            network_results.compare_pairs(models, plan.resamples, plan.seed, paired=same_images(cell.data))
            if len(models) > 1
            else []
        )
        return {"pairs": pairs, "needs": needs.works(sample)}
    preds = load_predictions(cell.net, cell.data, plan.rows, plan.seed)
    return {
        "net": cell.net,
        "estimates": network_results.estimates(preds, plan.resamples, plan.seed),
        "tests": network_results.verdicts(preds, plan.redraws, plan.seed),
        "fixed": network_results.fixed(preds, plan.resamples, plan.seed),
        "risk": network_results.risk(preds, plan.resamples, plan.seed),
    }
