"""How far can a calibration error be pushed by the choice of bins, and which estimators do not move?"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds_studies.base import Finding, folder
from trueodds_studies.cuts import figures, jumps, nets, sensitivity, sensitivity_tables
from trueodds_studies.resumable_runs import Net, Progress, rows_of


@dataclass(frozen=True)
class Plan:
    """How many rows of each net (all, without a number), draws of a noise floor, thresholds of TACE."""

    rows: int | None = None
    redraws: int = 199
    points: int = 300
    seed: int = 0


QUICK = Plan(rows=2000, redraws=50, points=40)

PUSHED = """15 bins: uniform, the usual setting. least, most: over 5 to 100 bins of every scheme, the sweep, and the rules √n and n^(2/5) for equal-mass
bins. ECE: mean distance of bins; root mean square: of the same distances; worst bin: the largest (MCE). Confidence lens."""
STEADY = """settings: how many of its own. ratio: the largest value over the least, of the net that moves least and of the one that moves most;
empty where some value is not positive. pairs that change order: of nets."""
ORDER = """At how many of the settings in use each of the two has the larger error, and at which it is ahead most."""
TACE = """least, most: thresholds from .001 to .1. step of the grid: the largest. threshold: of a jump in it, found by halving until so few scores are
passed; the class that moves most, its own error before and after, and how many of its scores are kept."""


def binning(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Number of bins, scheme and norm on the same predictions of seven image classifiers.

    Tables: the least and the most that settings in use give; estimators at settings of their own; pairs of nets whose
    order depends on the setting; the largest jump of TACE as its threshold moves, and the score behind it. On disk also
    every value. Two pictures. `methods` are nets. Sources: Pavlovic (2025), sections 2 and 3.2; Vennos, Xin & Guthrie
    (2026), section 1; Nixon et al. (2019); Roelofs et al. (2022).
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where, place = folder(out), None if data is None else str(data)
    names = [nets.known(name) for name in methods or (nets.QUICK_NETS if quick else nets.NETS)]
    read = nets.files(names, place)
    cells = rows_of("binning", [Net(net, place) for net in names], measure_cell, plan, where, progress, read)
    also = (
        Finding(
            "binning.steady",
            "Estimators at settings of their own.",
            sensitivity_tables.steady(cells),
            plan.__dict__,
            STEADY,
        ),
        Finding(
            "binning.order",
            "Nets whose order depends on the setting.",
            sensitivity_tables.order(cells),
            plan.__dict__,
            ORDER,
        ),
        Finding(
            "binning.tace",
            "How far TACE slides, and where it jumps.",
            sensitivity_tables.tace(cells),
            plan.__dict__,
            TACE,
        ),
    )
    finding = Finding(
        "binning", sensitivity_tables.sentence(cells), sensitivity_tables.pushed(cells), plan.__dict__, PUSHED, also
    )
    if where is not None:
        finding.save(where)
        Finding("binning.curves", "Every value.", sensitivity_tables.curves(cells), plan.__dict__).save(where)
        Finding("binning.thresholds", "TACE by threshold.", sensitivity_tables.thresholds(cells), plan.__dict__).save(
            where
        )
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            figures.bins(cells, where / "binning.svg")
            figures.thresholds(cells, where / "binning.tace.svg")
    return finding


def measure_cell(cell: Net, plan: Plan) -> Mapping[str, Any]:
    """What is found of one net."""
    preds = nets.predictions(cell.net, cell.data, plan.rows, plan.seed)
    grid = jumps.along(preds, plan.points)
    return {
        "net": cell.net,
        "curve": sensitivity.curve(preds, plan.redraws, plan.seed),
        "own": sensitivity.own(preds),
        "thresholds": grid,
        "jump": jumps.largest(preds, grid),
    }
