"""Recalibration of the votes of a random forest on the obesity data over many splits, as in Vennos et al. (2026)."""

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
"""By name of the feature set: the columns that are left out. With all columns, the task is easy, as the classes are
ranges of weight / height²."""
HELD_OUT_SHARE = 0.25  # share that is held out, first of all rows and then of those held out


@dataclass(frozen=True)
class ObesityData:
    """Features as numbers, and labels."""

    X: Array  # (n, features)
    y: Array  # (n,) class numbers from 0
    classes: tuple[str, ...]  # in alphabetical order

    @classmethod
    def load(cls, features: str, data: str | Path | None) -> ObesityData:
        """Read the columns of a feature set: numeric ones, then one-hot columns for each text column."""
        table = load_parquet(OBESITY_FILE, data, *FEATURES, LABEL_COLUMN)
        names, y = np.unique(table.pop(LABEL_COLUMN).astype(str), return_inverse=True)
        selected = {name: column for name, column in table.items() if name not in FEATURE_SETS[features]}
        numbers = [column[:, None] for column in selected.values() if column.dtype != object]
        texts = [column.astype(str)[:, None] for column in selected.values() if column.dtype == object]
        one_hot = [(column == np.unique(column)).astype(np.float64) for column in texts]
        return cls(np.concatenate([*numbers, *one_hot], axis=1), y, tuple(names.tolist()))


@dataclass(frozen=True)
class ForestPredictions:
    """Predictions of a forest for rows that it was not trained on, in two parts."""

    learn: Predictions  # for fitting a recalibration
    held_out: Predictions  # for evaluating it


def split_rows(n: int, seed: int) -> tuple[Array, Array, Array]:
    """Row numbers for training the forest, for fitting a recalibration, and for evaluating it."""
    train, not_train = train_test_split(np.arange(n), test_size=HELD_OUT_SHARE, random_state=seed)
    learn, held_out = train_test_split(not_train, test_size=HELD_OUT_SHARE, random_state=seed)
    return train, learn, held_out


def predict_votes(obesity_data: ObesityData, trees: int, seed: int) -> ForestPredictions:
    """Train a forest, and predict the other rows by its shares of votes.

    Of 2,111 rows, 1,583 are for training, 396 for fitting a recalibration and 132 for evaluation, as in the paper.
    """
    train, learn, held_out = split_rows(len(obesity_data.y), seed)
    X, y = obesity_data.X, obesity_data.y
    forest = RandomForestClassifier(trees, n_jobs=count_threads(), random_state=seed).fit(X[train], y[train])
    forest.n_jobs = 1  # threads add the trees in the order in which they finish, which changes the rounding
    return ForestPredictions(*(Predictions(y[rows], forest.predict_proba(X[rows])) for rows in (learn, held_out)))


def zero_shares(preds: Predictions) -> dict[str, float]:
    """`zeros`: share of probabilities that are exactly 0; `true zeros`: rows whose class has probability 0."""
    P = preds.P
    assert preds.y is not None
    return {"zeros": float((P == 0).mean()), "true zeros": float((P[np.arange(preds.n), preds.y] == 0).sum())}


BASELINES = {"Normal Weight": 1, "last class": -1}  # the paper names both, but the last class is Overweight Level II
ALL_METHODS = (
    *METHODS,
    RecalibrationMethod("evidential, min_prob 1e-3", "evidential", {"min_prob": 1e-3}),
    RecalibrationMethod("evidential on p", "evidential", {"on": "probabilities"}),
    RecalibrationMethod("auto", "auto"),
)
# The methods that depend on the baseline, and no recalibration.
BASELINE_METHODS = tuple(method for method in METHODS if method.name in ("identity", "mcllo"))
UNPENALIZED = "MCLLO, unpenalized"  # label of MCLLO without penalty
MIN_PROBS = (1e-12, 1e-9, 1e-6, 1e-4, 1e-3)  # replacements of zero votes that are compared
MIN_PROB_METHODS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("none", "identity", {}),
    ("MCLLO", "mcllo", {"baseline": BASELINES["Normal Weight"]}),
    ("ridge", "mcllo", {"baseline": BASELINES["Normal Weight"], "penalty": 0.5}),
    ("temperature", "temperature", {}),
)
"""Label, calibrator and settings of the methods that are fitted for each replacement of zero votes."""
ADDED_VOTES = "votes + 1/2"  # another replacement: half a vote is added to every class


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
    folder = make_folder(out)
    for features in plan.features:
        ObesityData.load(features, data)  # missing columns raise an error before a forest is trained
    file_hashes = {OBESITY_FILE: hash_file(OBESITY_FILE, data)}
    results = run_cells("obesity", list(_cells(plan, data)), measure_cell, plan, folder, progress, file_hashes)
    finding = split_tables.build_result(results, plan.__dict__)
    if folder is not None:
        finding.save(folder)
        StudyResult(
            "obesity.rows", finding.sentence, split_tables.all_rows(results), plan.__dict__, finding.legend
        ).save(folder)
        if importlib.util.find_spec("matplotlib") is not None:
            draw_splits(results, folder / "obesity.svg")
    return finding


def _cells(plan: Plan, data: str | Path | None) -> Iterator[Cell]:
    """Every feature set with every split."""
    data_folder = None if data is None else str(data)
    for features in plan.features:
        yield from (Cell(features, split, data_folder) for split in range(plan.splits))


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """All results for one split of one feature set."""
    obesity_data = ObesityData.load(cell.features, cell.data)
    votes = predict_votes(obesity_data, plan.trees, plan.random_state(cell.split))
    rows = []
    for label, baseline in BASELINES.items():
        methods = ALL_METHODS if baseline == BASELINES["Normal Weight"] else BASELINE_METHODS
        evaluations = [
            *evaluate_methods(votes.learn, votes.held_out, methods, baseline=baseline),
            evaluate_unpenalized(votes, baseline),
        ]
        rows += [
            {"baseline": label} | method_row(evaluation, votes.learn.n, baseline, plan) for evaluation in evaluations
        ]
    return {
        "features": cell.features,
        "split": cell.split,
        "classes": obesity_data.classes,
        "learn": evaluate_predictions(
            "calibration rows", votes.learn, votes.learn.P.argmax(axis=1), BASELINES["Normal Weight"]
        )[0],
        **zero_shares(votes.learn),
        "true zeros held out": zero_shares(votes.held_out)["true zeros"],
        "rows": rows,
        "parameters": estimate_parameters(votes.learn),
        "floors": [_compare_min_prob(votes, name, plan) for name in (*MIN_PROBS, ADDED_VOTES)],
    }


def method_row(evaluation: EvaluatedMethod, n: int, baseline: int, plan: Plan) -> dict[str, Any]:
    """The row of a method with further columns: mixed log loss, p from redrawn labels, and whether fits diverge.

    `n` is the number of rows used for fitting.
    """
    assert evaluation.after.y is not None
    redraw_verdict = test(
        evaluation.after, "mcllo", null="redraw", baseline=baseline, min_prob=MIN_PROB, resamples=plan.resamples
    )
    return {
        **evaluation.row,
        "p redrawn": redraw_verdict.pvalue,
        "mixed": mixed_log_loss(evaluation.after.P, evaluation.after.y, n),
        "test diverges": bool(np.isnan(evaluation.verdict.parts["joint"]["wald"])),
        "fit diverges": not getattr(evaluation.calibration_map, "converged", True),
        "chosen": evaluation.calibration_map.name,
    }


def evaluate_unpenalized(votes: ForestPredictions, baseline: int) -> EvaluatedMethod:
    """MCLLO without the penalty that the library uses if no finite estimates exist.

    In this case, the likelihood is within 1e-9 nats of its supremum, as with an optimizer without penalty.
    """
    (view,) = as_lens("canonical").views(votes.learn)
    model = MclloModel.from_view(view, baseline, 1e-12, "mcllo")
    theta, finite = model.mle.theta, model.mle.converged
    calibration_map = MclloMap(theta[1::2].copy(), theta[::2].copy(), model.baseline, 1e-12, model.mle.n_passes, finite)
    after = replace_probs(votes.held_out, calibration_map.apply(votes.held_out.P))
    row, verdict = evaluate_predictions(UNPENALIZED, after, votes.held_out.P.argmax(axis=1), baseline)
    return EvaluatedMethod(row, calibration_map, after, verdict)


def estimate_parameters(learn: Predictions) -> list[dict[str, float]]:
    """δ and γ of each class against Normal Weight, with standard errors: that of δ is δ times that of log δ."""
    verdict = test(learn, "mcllo", baseline=BASELINES["Normal Weight"], min_prob=MIN_PROB)
    return [
        {
            "class": int(name.removeprefix("class:")),
            "delta": part["delta"],
            "delta_se": part["delta"] * part["tau_se"],
            "gamma": part["gamma"],
            "gamma_se": part["gamma_se"],
        }
        for name, part in verdict.parts.items()
        if name.startswith("class:")
    ]


def _compare_min_prob(votes: ForestPredictions, min_prob: float | str, plan: Plan) -> dict[str, Any]:
    """The row of one replacement of zero votes: the test, and the held-out log loss after each fit, also mixed."""
    learn, held_out = (
        replace_probs(part, _replace_zeros(part.P, min_prob, plan.trees)) for part in (votes.learn, votes.held_out)
    )
    baseline = BASELINES["Normal Weight"]
    row: dict[str, Any] = {"replacement": min_prob, "LRT": test(learn, "mcllo", baseline=baseline).statistic}
    row["p"] = test(held_out, "mcllo", baseline=baseline).pvalue
    recalibrated = {
        label: fit(learn, name, **settings).predict_proba(held_out) for label, name, settings in MIN_PROB_METHODS
    }
    recalibrated["unpenalized"] = evaluate_unpenalized(ForestPredictions(learn, held_out), baseline).after.P
    assert held_out.y is not None
    for label, Q in recalibrated.items():
        row[label] = float(measure(replace_probs(held_out, Q), "log_loss", interval=None))
        row[f"mixed {label}"] = mixed_log_loss(Q, held_out.y, learn.n)
    return row


def _replace_zeros(P: Array, min_prob: float | str, trees: int) -> Array:
    """Shares of votes P (n, K) without zeros: with a smallest share, or for ADDED_VOTES half a vote more per class."""
    Q = P + 0.5 / trees if isinstance(min_prob, str) else np.maximum(P, min_prob)
    return np.asarray(Q / Q.sum(axis=1, keepdims=True))


def draw_splits(results: Sequence[Row], path: Path) -> Any:
    """Draw and return held-out log loss (top) and p of MCLLO's test (bottom) by feature set, one dot per split."""
    sets = list(dict.fromkeys(result["features"] for result in results))
    grouped = {
        name: [
            [row for row in result["rows"] if row["baseline"] == "Normal Weight"]
            for result in results
            if result["features"] == name
        ]
        for name in sets
    }
    titles = {name: "all features" if name == "all" else name for name in sets}
    panels = (("mixed", "log loss, nats per row", None), ("p", "p of MCLLO's test", 0.05))
    return draw_split_dots(
        grouped, titles, panels, "Recalibration of a random forest, evaluated on 132 held-out rows", path
    )
