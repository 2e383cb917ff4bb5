"""Are image classifiers calibrated, and which recalibration mends them at what price? CIFAR-10, as in the MCLLO paper."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds_studies.base import Finding, counted, folder
from trueodds_studies.comparators import MIN_PROB
from trueodds_studies.data import stamp
from trueodds_studies.imaging import figures, published_values, split_tables
from trueodds_studies.imaging.nets import NETS, known, load_softmax, parts
from trueodds_studies.imaging.single import shown
from trueodds_studies.imaging.split_results import WITH_ZEROS, measure_split
from trueodds_studies.resumable_runs import Progress, rows_of

PAPERS = next(iter(NETS))  # the net whose numbers stand beside the paper's


@dataclass(frozen=True)
class Plan:
    """How many random splits; each has its own stream, so that a study stopped and resumed gives the same."""

    splits: int = 20
    seed: int = 0


QUICK = Plan(splits=1)


@dataclass(frozen=True)
class Cell:
    """One net on one split."""

    net: str
    split: int
    data: str | None  # the folder of the files; it does not change what is found in them

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.net} | {self.split}"


def images(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Recalibrations of five networks on CIFAR-10, learned on 8,000 test images and judged on the other 2,000.

    Tables: every method over random splits, MCLLO's parameters, the paper's numbers beside those of VGG16, classes
    that a fix leaves off, what the floor decides, and single images. Pictures: accuracy against calibration, single
    images, and reliability in ten bins. `methods` are nets. Source: Vennos, Xing & Franck (2026), section 4.2.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where, files = folder(out), None if data is None else str(data)
    nets = [known(name) for name in methods or NETS]
    for net in nets:
        load_softmax(net, files)  # here, so that a file without it is refused before anything is measured
    read = {name: stamp(name, files) for name, _ in map(NETS.__getitem__, nets)}
    tasks = [Cell(net, number, files) for net in nets for number in range(plan.splits)]
    cells = rows_of("images", tasks, measure_cell, plan, where, progress, read)
    rows = split_tables.method_means(cells)
    also, single = _also(cells, nets, files, plan)
    finding = Finding("images", split_tables.sentence(rows), rows, plan.__dict__, split_tables.legend(cells), also)
    if where is not None:
        finding.save(where)
        Finding("images.methods", finding.sentence, split_tables.short(rows), plan.__dict__, finding.legend).save(where)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            figures.trade(rows, where / "images.trade.svg")
            if single:  # other files than CIFAR-10's may have no such images
                figures.single(single, where / "images.single.svg")
            figures.reliability(*parts(nets[0], files, plan.seed, 0), where / "images.reliability.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """What is found on one split of one net."""
    learn, held_out = parts(cell.net, cell.data, plan.seed, cell.split)
    return {"net": cell.net, "split": cell.split, **measure_split(learn, held_out)}


def _also(
    cells: Sequence[Mapping[str, Any]], nets: Sequence[str], data: str | None, plan: Plan
) -> tuple[tuple[Finding, ...], Sequence[Mapping[str, Any]]]:
    """The further tables, and the single images once more for their picture."""
    made: list[tuple[str, str, Sequence[Mapping[str, Any]], str]] = []
    if PAPERS in nets:
        own = [cell for cell in cells if cell["net"] == PAPERS]
        rows = published_values.compare_with_paper(own)
        inside = sum(row["within"] for row in rows)
        words = f"Of the paper's {len(rows)} numbers {inside} lie within the range over {counted(len(own), 'split')} of {PAPERS}."
        made.append(("paper", words, rows, "least, most: over the splits; within: the printed number lies between."))
        words = f"Parameters of {PAPERS} against truck, beside the paper's: estimate (standard error)."
        made.append(("paper.parameters", words, published_values.compare_parameters(own), ""))
    rows = split_tables.parameters_of(cells)
    legend = "First split, baseline truck; ±: standard error; least and most γ: of the learning rows over the splits."
    made.append(("parameters", split_tables.slopes_sentence(rows), rows, legend))
    words = "Share of splits in which a class is still rejected at 5 % after the fix, by Wald's test of its δ and γ with Holm's correction."
    made.append(("left", words, split_tables.left_of(cells), "Rows held out; each class against truck."))
    rows = split_tables.floors_of(cells)
    own_zeros, made_zeros = (sum(row["zeros"] for row in rows if row["method"] == name) for name in WITH_ZEROS)
    words = (
        f"On the rows held out softmax values hold {counted(own_zeros, 'exact zero')}, and binned ones {made_zeros:,}."
    )
    legend = f"First split, rows held out. zeros: values that are exactly 0; outcomes at 0: how many of them were the outcome; rows below: those with a value below {MIN_PROB:g}, the floor used."
    made.append(("floors", words, rows, legend))
    single, words = shown(nets[0], data, plan.seed)
    legend = "The five likeliest classes of single images of the test set, counted from 0; map of the first split."
    made.append(("single", words, single, legend))
    return tuple(
        Finding(f"images.{name}", words, tuple(rows), plan.__dict__, why) for name, words, rows, why in made
    ), single
