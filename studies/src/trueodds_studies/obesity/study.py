"""Recalibrate the votes of a random forest on the obesity data over many splits, after the MCLLO paper."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from trueodds.api.fit import fit
from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.calibrators.mcllo import MclloMap
from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.hypotests._glm.mcllo_likelihood import MclloModel
from trueodds.kernels import count_threads
from trueodds.lenses.lens_by_name import as_lens
from trueodds_studies.common.data_files import hash_file, load_parquet
from trueodds_studies.common.figures import draw_split_dots
from trueodds_studies.common.recalibration_methods import (
    METHODS,
    MIN_PROB,
    EvaluatedMethod,
    RecalibrationMethod,
    evaluate_methods,
    evaluate_predictions,
    mixed_log_loss,
    replace_probs,
)
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder
from trueodds_studies.obesity import split_tables

OBESITY_FILE = "obesity_features.parquet"
LABEL_COLUMN = "NObeyesdad"
FEATURES = (
    "Gender",
    "Age",
    "Height",
    "Weight",
    "family_history_with_overweight",
    "FAVC",
    "FCVC",
    "NCP",
    "CAEC",
    "SMOKE",
    "CH2O",
    "SCC",
    "FAF",
    "TUE",
    "CALC",
    "MTRANS",
)
FEATURE_SETS: dict[str, tuple[str, ...]] = {
    "all": (),
    "no Weight": ("Weight",),
    "no Weight, no Height": ("Weight", "Height"),
}
"""The feature sets: the classes are ranges of weight / height², so the complete set makes the task easy."""
PART_SHARE = 0.25  # of the rows is put aside, twice


@dataclass(frozen=True)
class ObesityData:
    """Rows of the data as numbers."""

    X: Array  # (n, features)
    y: Array  # (n,) 0-based
    classes: tuple[str, ...]  # in alphabetical order

    @classmethod
    def of(cls, features: str, data: str | Path | None) -> ObesityData:
        """Numeric columns, then one-hot columns for each text column."""
        table = load_parquet(OBESITY_FILE, data, *FEATURES, LABEL_COLUMN)
        names, y = np.unique(table.pop(LABEL_COLUMN).astype(str), return_inverse=True)
        selected = {name: column for name, column in table.items() if name not in FEATURE_SETS[features]}
        numbers = [column[:, None] for column in selected.values() if column.dtype != object]
        words = [column.astype(str)[:, None] for column in selected.values() if column.dtype == object]
        hot = [(column == np.unique(column)).astype(np.float64) for column in words]
        return cls(np.concatenate([*numbers, *hot], axis=1), y, tuple(names.tolist()))


@dataclass(frozen=True)
class ForestPredictions:
    """Predictions of a forest for rows not used for training, in two parts."""

    learn: Predictions  # to fit a recalibration on
    held_out: Predictions  # to judge it on


def split_rows(n: int, seed: int) -> tuple[Array, Array, Array]:
    """Rows for training the forest, for fitting a calibrator, and for evaluation."""
    grown, aside = train_test_split(np.arange(n), test_size=PART_SHARE, random_state=seed)
    learn, held_out = train_test_split(aside, test_size=PART_SHARE, random_state=seed)
    return grown, learn, held_out


def predict_votes(people: ObesityData, trees: int, seed: int) -> ForestPredictions:
    """Hold out a quarter of the rows, and use a quarter of those for evaluation.

    Of 2,111 rows these are 1,583, 396 and 132, as in the paper.
    """
    grown, learn, held_out = split_rows(len(people.y), seed)
    forest = RandomForestClassifier(trees, n_jobs=count_threads(), random_state=seed).fit(
        people.X[grown], people.y[grown]
    )
    forest.n_jobs = 1  # threads add the trees up in the order in which they finish, so that the last digit varies
    parts = (Predictions(people.y[rows], forest.predict_proba(people.X[rows])) for rows in (learn, held_out))
    return ForestPredictions(*parts)


def zero_shares(preds: Predictions) -> dict[str, float]:
    """Share of probabilities that are exactly 0, and number of observed classes with probability 0."""
    P = preds.P
    assert preds.y is not None
    return {"zeros": float((P == 0).mean()), "true zeros": float((P[np.arange(preds.n), preds.y] == 0).sum())}


BASELINES = {"Normal Weight": 1, "the last": -1}  # the paper names both: the second would be Overweight Level II
ALL_METHODS = (
    *METHODS,
    RecalibrationMethod("evidential, floor 1e-3", "evidential", {"min_prob": 1e-3}),
    RecalibrationMethod("evidential on p", "evidential", {"on": "probabilities"}),
    RecalibrationMethod("auto", "auto"),
)
BASELINE_METHODS = tuple(
    method for method in METHODS if method.name in ("identity", "mcllo")
)  # those that a baseline changes
UNPENALIZED = "MCLLO, no pull"
MIN_PROBS = (1e-12, 1e-9, 1e-6, 1e-4, 1e-3)
MIN_PROB_METHODS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("none", "identity", {}),
    ("MCLLO", "mcllo", {"baseline": BASELINES["Normal Weight"]}),
    ("ridge", "mcllo", {"baseline": BASELINES["Normal Weight"], "penalty": 0.5}),
    ("temperature", "temperature", {}),
)
ADDED_VOTES = "votes + 1/2"  # half a vote more for every class


@dataclass(frozen=True)
class Plan:
    """Number of splits and trees; the seed of a split determines its rows and its forest."""

    splits: int = 12
    trees: int = 500
    features: tuple[str, ...] = tuple(FEATURE_SETS)
    resamples: int = 999
    seed: int = 0

    def random_state(self, split: int) -> int:
        """Seed of the split and its forest."""
        return 1000 * self.seed + split


QUICK = Plan(splits=1, trees=60, features=("all",), resamples=199)


@dataclass(frozen=True)
class Cell:
    """One split of the rows with one feature set."""

    features: str
    split: int
    data: str | None

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.features} | {self.split}"


def obesity(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """A forest of 500 trees trained on 1,583 rows, recalibrated on 396, and evaluated on 132 held-out rows.

    Seven classes, and sixteen features with and without Weight and Height. Each method of the paper, temperature and
    vector scaling on log p, which according to the paper cannot be used for a forest, and `auto`, over twelve
    splits, with MCLLO against both baselines of the paper. Tables: results by method; gain over no recalibration;
    the parameters and the table of the paper; the effect of the replacement of zero votes. With a folder, the
    results of every split are saved as `obesity.rows.csv`, and a figure as `obesity.svg`. Requires
    `obesity_features.parquet` in `data` (TO802). Source: Vennos, Xing & Franck (2026), section 4.3.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where = make_folder(out)
    for features in plan.features:
        ObesityData.of(features, data)  # here, so that a file without them is refused before a forest is grown
    read = {OBESITY_FILE: hash_file(OBESITY_FILE, data)}
    results = run_cells("obesity", list(_cells(plan, data)), measure_cell, plan, where, progress, read)
    finding = split_tables.build_result(results, plan.__dict__)
    if where is not None:
        finding.save(where)
        StudyResult(
            "obesity.rows", finding.sentence, split_tables.all_rows(results), plan.__dict__, finding.legend
        ).save(where)
        if importlib.util.find_spec("matplotlib") is not None:
            draw_splits(results, where / "obesity.svg")
    return finding


def _cells(plan: Plan, data: str | Path | None) -> Iterator[Cell]:
    place = None if data is None else str(data)
    for features in plan.features:
        yield from (Cell(features, split, place) for split in range(plan.splits))


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """Results for one split."""
    people = ObesityData.of(cell.features, cell.data)
    votes = predict_votes(people, plan.trees, plan.random_state(cell.split))
    rows = []
    for label, baseline in BASELINES.items():
        methods = ALL_METHODS if baseline == BASELINES["Normal Weight"] else BASELINE_METHODS
        evaluations = [
            *evaluate_methods(votes.learn, votes.held_out, methods, baseline=baseline),
            evaluate_unpenalized(votes, baseline),
        ]
        rows += [{"baseline": label} | method_row(one, votes.learn.n, baseline, plan) for one in evaluations]
    return {
        "features": cell.features,
        "split": cell.split,
        "classes": people.classes,
        "learn": evaluate_predictions(
            "calibration rows", votes.learn, votes.learn.P.argmax(axis=1), BASELINES["Normal Weight"]
        )[0],
        **zero_shares(votes.learn),
        "true zeros judged": zero_shares(votes.held_out)["true zeros"],
        "rows": rows,
        "parameters": estimate_parameters(votes.learn),
        "floors": [_with_min_prob(votes, name, plan) for name in (*MIN_PROBS, ADDED_VOTES)],
    }


def method_row(one: EvaluatedMethod, n: int, baseline: int, plan: Plan) -> dict[str, Any]:
    """The row of a method, with quantities that the paper does not print."""
    assert one.after.y is not None
    redraw_verdict = test(
        one.after, "mcllo", null="redraw", baseline=baseline, min_prob=MIN_PROB, resamples=plan.resamples
    )
    return {
        **one.row,
        "p redrawn": float(redraw_verdict),
        "mixed": mixed_log_loss(one.after.P, one.after.y, n),
        "test diverges": bool(np.isnan(one.verdict.parts["joint"]["wald"])),
        "fit diverges": not getattr(one.calibration_map, "converged", True),
        "chose": one.calibration_map.name,
    }


def evaluate_unpenalized(votes: ForestPredictions, baseline: int) -> EvaluatedMethod:
    """MCLLO within 1e-9 nats of its supremum if no finite estimates exist, as an optimizer without penalty gives.

    The fit of the library uses a small penalty in this case, which keeps the parameters finite.
    """
    (view,) = as_lens("canonical").views(votes.learn)
    odds = MclloModel.from_view(view, baseline, 1e-12, "mcllo")
    theta, finite = odds.mle.theta, odds.mle.converged
    calibration_map = MclloMap(theta[1::2].copy(), theta[::2].copy(), odds.baseline, 1e-12, odds.mle.n_passes, finite)
    after = replace_probs(votes.held_out, calibration_map.apply(votes.held_out.P))
    row, verdict = evaluate_predictions(UNPENALIZED, after, votes.held_out.P.argmax(axis=1), baseline)
    return EvaluatedMethod(row, calibration_map, after, verdict)


def estimate_parameters(learn: Predictions) -> list[dict[str, float]]:
    """δ and γ of each class against Normal Weight, with standard errors: that of δ is δ times that of log δ."""
    parts = test(learn, "mcllo", baseline=BASELINES["Normal Weight"], min_prob=MIN_PROB).parts
    return [
        {
            "class": int(name.removeprefix("class:")),
            "delta": one["delta"],
            "delta_se": one["delta"] * one["tau_se"],
            "gamma": one["gamma"],
            "gamma_se": one["gamma_se"],
        }
        for name, one in parts.items()
        if name.startswith("class:")
    ]


def _with_min_prob(votes: ForestPredictions, min_prob: float | str, plan: Plan) -> dict[str, Any]:
    """The test and two fits with another replacement of zero votes."""
    learn, held_out = (
        replace_probs(part, _replace_zeros(part.P, min_prob, plan.trees)) for part in (votes.learn, votes.held_out)
    )
    baseline = BASELINES["Normal Weight"]
    row: dict[str, Any] = {"floor": min_prob, "LRT": test(learn, "mcllo", baseline=baseline).statistic}
    row["p"] = float(test(held_out, "mcllo", baseline=baseline))
    made = {label: fit(learn, name, **settings).predict_proba(held_out) for label, name, settings in MIN_PROB_METHODS}
    made["no pull"] = evaluate_unpenalized(ForestPredictions(learn, held_out), baseline).after.P
    assert held_out.y is not None
    for label, Q in made.items():
        row[label] = float(measure(replace_probs(held_out, Q), "log_loss", interval=None))
        row[f"mixed {label}"] = mixed_log_loss(Q, held_out.y, learn.n)
    return row


def _replace_zeros(P: Array, min_prob: float | str, trees: int) -> Array:
    Q = P + 0.5 / trees if isinstance(min_prob, str) else np.maximum(P, min_prob)
    return np.asarray(Q / Q.sum(axis=1, keepdims=True))


def draw_splits(results: Sequence[Row], path: Path) -> Any:
    """Draw the held-out log loss (top) and p of MCLLO's test (bottom) per feature set, with one dot per split."""
    sets = list(dict.fromkeys(one["features"] for one in results))
    grouped = {
        name: [
            [row for row in one["rows"] if row["baseline"] == "Normal Weight"]
            for one in results
            if one["features"] == name
        ]
        for name in sets
    }
    titles = {name: f"{name if name != 'all' else 'all features'}" for name in sets}
    panels = (("mixed", "log loss, nats per row", None), ("p", "p of MCLLO's test", 0.05))
    return draw_split_dots(
        grouped, titles, panels, "Recalibration of a random forest, evaluated on 132 held-out rows", path
    )
