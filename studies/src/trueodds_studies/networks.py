"""How far off are real networks, in one and two dimensions, by uniform bins and by trees?"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds_studies.base import Finding, folder
from trueodds_studies.nets import error_tables, figures, net_errors, published_values
from trueodds_studies.nets.catalog import NETS, files, known, some
from trueodds_studies.resumable_runs import Net, Progress, rows_of


@dataclass(frozen=True)
class Plan:
    """How many rows of each net, resamples of its intervals and redraws of its labels; without rows, all."""

    rows: int | None = None
    resamples: int = 2000
    redraws: int = 999
    seed: int = 0


QUICK = Plan(rows=1000, resamples=300, redraws=99)
QUICK_NETS = (
    "vgg16",
    "roberta_base_0",
    "imagenet_resnet152",
)  # of a quick study: ten classes, three, and confidence alone


def networks(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Twenty networks for images, text and speech: reliability diagrams and expected miscalibration.

    Tables: the error of the confidence, of three groups of classes and of all classes by ten uniform bins and two trees,
    in total variation and squares; each net's diagrams in numbers; papers beside it. Pictures: one per net, and grids of
    all. `methods` are nets. Source: Vaicenavicius et al. (2019), section 5.2 and figures 1, 4 and 15 to 18.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where, place = folder(out), None if data is None else str(data)
    names = [known(name) for name in methods or (QUICK_NETS if quick else NETS)]
    cells = rows_of(
        "networks", [Net(net, place) for net in names], measure_cell, plan, where, progress, files(names, place)
    )
    words = (error_tables.sentence(cells), error_tables.noise(cells))
    made = (
        ("errors", words[1], error_tables.short(cells), error_tables.SHORT),
        (
            "squares",
            "The same in squares, without an interval.",
            error_tables.short(cells, "sq-euclidean"),
            error_tables.SQUARES,
        ),
        ("nets", "The nets, and what strays in their diagrams.", error_tables.nets(cells), error_tables.NETS_LEGEND),
        (
            "paper",
            "What papers say and print, and what these nets show.",
            published_values.compare_with_papers(cells),
            published_values.FROM,
        ),
    )
    also = tuple(Finding(f"networks.{name}", text, rows, plan.__dict__, why) for name, text, rows, why in made)
    finding = Finding("networks", words[0], error_tables.errors(cells), plan.__dict__, error_tables.ERRORS, also)
    if where is not None:
        finding.save(where)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            _draw(names, place, plan, where)
    return finding


def measure_cell(cell: Net, plan: Plan) -> Mapping[str, Any]:
    """What is found of one net."""
    net = NETS[cell.net]
    preds = some(net.predictions(cell.data), plan.rows, plan.seed)
    right, confidence = net_errors.right(preds)
    return {
        "net": cell.net,
        "n": preds.n,
        "right": right,
        "sure": confidence,
        "errors": net_errors.error_rows(net, preds, plan.resamples, plan.redraws, plan.seed),
        "outside": net_errors.outside(preds, figures.LEVEL),
        "frequent": net_errors.frequent(net, preds),
    }


def _draw(names: Sequence[str], data: str | None, plan: Plan, where: Path) -> None:
    nets = {name: some(NETS[name].predictions(data), plan.rows, plan.seed) for name in names}
    for name, preds in nets.items():
        figures.one(name, preds, where / f"networks.{name}.png")
    for bins in figures.LINES:
        figures.lines(nets, bins, where / f"networks.lines.{bins}.png")
    for cells, label in (("25 cells", "uniform"), ("tree", "tree")):
        figures.triangles(nets, cells, where / f"networks.triangles.{label}.png")
