"""Is a model right about people? Calibration against gold labels, majorities and whole votes, and the measures of votes."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds_studies.base import Finding, folder
from trueodds_studies.people import crowds, figures, human_scores, vote_tables
from trueodds_studies.resumable_runs import Net, Progress, rows_of


@dataclass(frozen=True)
class Plan:
    """How many rows of each crowd, and how many resamples; without a number of rows, all."""

    rows: int | None = None
    resamples: int = 2000
    seed: int = 0


QUICK = Plan(rows=800, resamples=300)

CELL_FORMAT = """Each cell: value [95 % interval] (noise floor: the mean if every probability were right)."""
TARGETS_LEGEND = f"""{CELL_FORMAT} against: the one gold label, the label of most votes, or all votes as
shares. confidence: mean largest probability; right: share of the target that it names. ECE: confidence, 15 uniform bins. log loss in nats,
with floors that are the loss the model promises itself."""
PEOPLE = f"""{CELL_FORMAT} EntCE in nats; corrected: by Miller and Madow. order, size: parts of
human_distance, which add up to it; vote_noise: what was taken off, the score of a model equal to the crowd without that."""
CROWD = """majority is gold: share of rows; tied majority: rows where two classes have most votes; of one mind: share of rows where all chose
alike; squared noise: mean Σ V(1 − V)/(m − 1). The columns after it: what the crowd's own shares would score against as many fresh votes drawn
from them, the best that a model can be seen to be (human_distance has the noise taken off, and so 0)."""
FEWER = """votes: drawn from each row's without replacement. squared distance: the mean of ‖P − V‖² as it is; human_distance: less the votes' noise."""
CLAIMS = "Quoted or shortened from section 3.3.3 of Pavlovic (2025); a span is over the models."


def human(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Twelve models beside the people who judged the same items: CIFAR-10H and ChaosNLI, 47 to 100 votes a row.

    Tables: calibration against gold, majority and votes; EntCE, DistCE, RankCS and the distance from the crowd; the
    crowds themselves; fewer votes; what the paper says beside what is found. Pictures: the three targets, and fewer
    votes. `methods` are models. Sources: Pavlovic (2025), section 3.3.3; Baan, Aziz, Plank & Fernández (2022);
    the votes: Peterson et al. (2019), Nie, Zhou & Bansal (2020).
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where, place = folder(out), None if data is None else str(data)
    models = [crowds.known(name) for name in methods or (crowds.QUICK_MODELS if quick else crowds.MODELS)]
    read = crowds.files(models, place)
    for model in models:
        crowds.load_crowd_predictions(
            model, place
        )  # here, so that rows that do not match are refused before anything is measured
    cells = rows_of("human", [Net(model, place) for model in models], measure_cell, plan, where, progress, read)
    rows = vote_tables.target_rows(cells)
    finding = Finding(
        "human", vote_tables.sentence(cells), rows, plan.__dict__, TARGETS_LEGEND, _also(cells, place, plan)
    )
    if where is not None:
        finding.save(where)
        Finding("human.targets", finding.sentence, vote_tables.short(rows), plan.__dict__, TARGETS_LEGEND).save(where)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            figures.plot_targets(rows, where / "human.svg")
            figures.fewer(vote_tables.fewer(cells), where / "human.votes.svg")
    return finding


def measure_cell(cell: Net, plan: Plan) -> Mapping[str, Any]:
    """What is found of one model."""
    one = crowds.load_crowd_predictions(cell.net, cell.data, plan.rows, plan.seed)
    return {
        "model": cell.net,
        "targets": human_scores.targets(one, plan.resamples, plan.seed),
        "people": human_scores.people(one, plan.resamples, plan.seed),
        "fewer": human_scores.fewer(one, plan.seed),
        "claims": human_scores.claims(one),
    }


def _also(cells: Sequence[Mapping[str, Any]], data: str | None, plan: Plan) -> tuple[Finding, ...]:
    """The further tables."""
    names = list(dict.fromkeys(crowds.MODELS[cell["model"]].crowd for cell in cells))
    made = (
        ("people", "What the measures of votes say of each model.", vote_tables.people(cells), PEOPLE),
        ("crowds", "The people themselves.", vote_tables.crowds(names, data, plan.rows, plan.seed), CROWD),
        ("fewer", "The same models judged by fewer votes.", vote_tables.fewer(cells), FEWER),
        ("paper", "What the paper says, and what these models show.", vote_tables.claims(cells), CLAIMS),
    )
    return tuple(Finding(f"human.{name}", words, rows, plan.__dict__, why) for name, words, rows, why in made)
