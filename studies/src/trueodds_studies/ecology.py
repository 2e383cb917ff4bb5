"""Calibration and recalibration of three models of tree presence on 386 plots, with rows clustered by plot."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.kernels.holm import holm
from trueodds_studies.common.data_files import hash_file, load_parquet
from trueodds_studies.common.figures import draw_split_dots
from trueodds_studies.common.recalibration_methods import (
    METHODS,
    MIN_PROB,
    RecalibrationMethod,
    evaluate_methods,
    loss_changes,
    mixed_log_loss,
    sqrt_bin_count,
    summarize_splits,
)
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, format_count, format_range, make_folder

ALL_METHODS = (
    *METHODS,
    RecalibrationMethod("Platt", "platt"),
    RecalibrationMethod("beta", "beta"),
    RecalibrationMethod("isotonic", "isotonic"),
    RecalibrationMethod("auto", "auto"),
)


@dataclass(frozen=True)
class Plan:
    """Number of random splits of the plots into halves."""

    splits: int = 12
    resamples: int = 999
    shuffles: int = 200
    seed: int = 0


QUICK = Plan(splits=1, resamples=199, shuffles=20)


@dataclass(frozen=True)
class Cell:
    """One model and one split."""

    model: str
    split: int
    data: str | None

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.model} | {self.split}"


def ecology(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Calibration of three models for 13 tree species on 386 plots in Utah, where rows of a plot are dependent.

    The ecology data of the paper are not public; these data are used instead. Per model: δ and γ with standard
    errors for rows and for plots, p-values with and without clusters, ECE, log loss; the same by species; and every
    recalibration for two classes, fitted on half of the plots and evaluated on the other. With a folder, a figure
    `ecology.svg`. Requires `ecology_tree_species.parquet` in `data` (TO802). Sources: Vennos, Xing & Franck (2026),
    whose ecology study is in their supplement; the data: Freeman & Moisen (2008), R package PresenceAbsence.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder, plots = make_folder(out), SurveyPlots.of(data)
    data_folder = None if data is None else str(data)
    cells = [Cell(model, split, data_folder) for model in MODELS for split in range(plan.splits)]
    results = run_cells(
        "ecology", cells, measure_cell, plan, folder, progress, {ECOLOGY_FILE: hash_file(ECOLOGY_FILE, data)}
    )
    finding = build_result(plots, results, plan)
    if folder is not None:
        finding.save(folder)
        if importlib.util.find_spec("matplotlib") is not None:
            draw_halves(results, folder / "ecology.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """Every method fitted on one half of the plots and evaluated on the other."""
    plots = SurveyPlots.of(cell.data)
    first, other = plots.halves(np.random.default_rng([plan.seed, cell.split]))
    learn, held_out = plots.rows(cell.model, first), plots.rows(cell.model, other)
    rows = []
    for evaluation in evaluate_methods(learn, held_out, ALL_METHODS):
        assert held_out.y is not None
        rows.append(
            evaluation.row
            | {
                "mixed": mixed_log_loss(evaluation.after.P, held_out.y, learn.n),
                "chose": evaluation.calibration_map.name,
            }
        )
    return {"model": cell.model, "split": cell.split, "rows": rows}


ECOLOGY_FILE = "ecology_tree_species.parquet"
MODELS = ("GAM", "See5", "SGB")


@dataclass(frozen=True)
class SurveyPlots:
    """Presence of each species on each plot and predictions of three models, by species, plots in the same order."""

    species: Array  # (n,) names
    plot: Array  # (n,) from 0
    y: Array  # (n,)
    predicted: dict[str, Array]  # of each model (n,)

    @classmethod
    def of(cls, data: str | Path | None) -> SurveyPlots:
        """Plot numbers; the file has none, but every species has the same plots in the same order.

        The correlation of the residuals confirms it.
        """
        table = load_parquet(ECOLOGY_FILE, data, "SPECIES", "OBSERVED", *MODELS)
        species = table["SPECIES"].astype(str)
        names = dict.fromkeys(species.tolist())
        plot = np.empty(len(species), dtype=np.int64)
        for name in names:
            mask = species == name
            plot[mask] = np.arange(mask.sum())
        return cls(species, plot, table["OBSERVED"], {model: table[model] for model in MODELS})

    def rows(self, model: str, some: Array | None = None, *, clustered: bool = True) -> Predictions:
        """Predictions of a model for some rows, with plots as clusters."""
        keep = np.ones(len(self.y), dtype=bool) if some is None else some
        cluster = self.plot[keep] if clustered else None
        return Predictions(self.y[keep], self.predicted[model][keep], cluster=cluster)

    def halves(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Masks of the rows of one half of the plots and of the other."""
        count = int(self.plot.max()) + 1
        first = np.isin(self.plot, rng.permutation(count)[: count // 2])
        return first, ~first

    def alike(self, model: str) -> float:
        """Mean square of the correlations between the residuals y − p of two species over plots.

        Its expectation is 1 / number of plots if the plots of each species are in a random order.
        """
        return _correlated(self._by_plot(model))

    def shuffled(self, model: str, rng: np.random.Generator) -> float:
        """The same with the plots of every species shuffled."""
        return _correlated(rng.permuted(self._by_plot(model), axis=1))

    def _by_plot(self, model: str) -> Array:
        residuals = self.y - self.predicted[model]
        return np.stack([residuals[self.species == name] for name in dict.fromkeys(self.species.tolist())])


def _correlated(residuals: Array) -> float:
    return float((np.corrcoef(residuals)[np.triu_indices(len(residuals), 1)] ** 2).mean())


STANDARD_ERRORS = ("se", "se rows", "se plots")  # by the model's variance, by that of rows, by that of plots

LEGEND = """All {n:,} rows of {plots} plots, without recalibration. δ and γ of LLO, which is MCLLO for two classes; se:
standard error for independent rows with the variance of the fitted map; se rows: jackknife over rows; se plots:
jackknife over plots. p rows: MCLLO's likelihood-ratio test, assuming independent rows; p plots: Wald test for whole
plots; p flips: score test with the signs of the residuals of whole plots flipped (smallest p-value {min_pvalue:g}).
floored: rows with a probability closer to 0 or 1 than {min_prob:g}; missed: observed outcomes that had probability 0,
each of which rejects and makes the log loss infinite. ECE: presence, {bins} bins (√n). alike: mean squared correlation
of the residuals of two species over plots; shuffled: the mean of the same for {shuffles} shuffles of plots within
species; p alike: share of shuffles with at least this value, including the data."""

SPECIES_LEGEND = """One row per plot, so the rows are independent; p: MCLLO's likelihood-ratio test. holm: Holm's
adjusted p-value for {species} species. se: standard error of γ. δ and γ are missing if no finite estimates exist. rate:
observed event rate. ECE: {bins} bins (√n); the log loss is infinite if an observed outcome had probability 0."""

HALVES_LEGEND = """Fitted on half of the plots, evaluated on the other half; mean over {splits}. loss, se, worst: log
loss in nats per row after mixing with a share of 1/(n + 1) of the uniform distribution: mean, its standard error
assuming independent splits, and maximum; infinite: share of splits with an infinite log loss without mixing. ECE:
presence, √n bins. p>.05: share in which MCLLO's score test, with the signs of whole plots flipped, does not reject.
difference: loss minus that without recalibration; wide: standard error of its mean, multiplied by √(1 + J) for the
plots that J splits share (Nadeau & Bengio 2003); worse: share above 0. chose: methods chosen by auto, with their
frequencies."""


def build_result(plots: SurveyPlots, results: Sequence[Row], plan: Any) -> StudyResult:
    """The tables, that by model first; `results` has every halving."""
    by_model = tuple(model_row(plots, model, plan) for model in MODELS)
    species = tuple(row for model in MODELS for row in species_table(plots, model))
    every, places = len(species) // len(MODELS), int(plots.plot.max()) + 1
    halves = recalibration_table(results)
    legend = LEGEND.format(
        n=len(plots.y),
        plots=places,
        min_pvalue=1 / (plan.resamples + 1),
        min_prob=MIN_PROB,
        bins=sqrt_bin_count(len(plots.y)),
        shuffles=plan.shuffles,
    )
    also = (
        StudyResult(
            "ecology.species",
            summarize_species(species),
            species,
            plan.__dict__,
            SPECIES_LEGEND.format(species=every, bins=sqrt_bin_count(places)),
        ),
        StudyResult(
            "ecology.halves",
            summarize_halves(halves),
            halves,
            plan.__dict__,
            HALVES_LEGEND.format(splits=format_count(plan.splits, "seeded halving")),
        ),
    )
    return StudyResult("ecology", summarize(by_model, every, places), by_model, plan.__dict__, legend, also)


def model_row(plots: SurveyPlots, model: str, plan: Any) -> dict[str, Any]:
    """Results for all rows of one model."""
    rows, independent = plots.rows(model), plots.rows(model, clustered=False)
    by_model, by_row, by_plot = (
        test(preds, "mcllo", min_prob=MIN_PROB, variance=variance)
        for preds, variance in ((independent, None), (independent, "empirical"), (rows, None))
    )
    flips = test(rows, "mcllo", null="redraw", min_prob=MIN_PROB, resamples=plan.resamples)
    correlation, rng = plots.alike(model), np.random.default_rng([plan.seed, MODELS.index(model)])
    draws = np.array([plots.shuffled(model, rng) for _ in range(plan.shuffles)])
    event, errors = by_model.parts["event"], [one.parts["event"] for one in (by_model, by_row, by_plot)]
    return {
        "model": model,
        "delta": event["delta"],
        **{f"delta {kind}": event["delta"] * one["tau_se"] for kind, one in zip(STANDARD_ERRORS, errors, strict=True)},
        "gamma": event["gamma"],
        **{f"gamma {kind}": one["gamma_se"] for kind, one in zip(STANDARD_ERRORS, errors, strict=True)},
        "p rows": float(by_model),
        "p plots": float(by_plot),
        "p flips": float(flips),
        **count_zeros(independent),
        "ECE": float(measure(independent, "ece", bins=sqrt_bin_count(independent.n), interval=None)),
        "log loss": float(measure(independent, "log_loss", interval=None)),
        "alike": correlation,
        "shuffled": float(draws.mean()),
        "p alike": float((1 + (draws >= correlation).sum()) / (1 + len(draws))),
    }


def count_zeros(preds: Predictions) -> dict[str, int]:
    """Number of rows below the smallest probability, and of observed outcomes that had probability 0."""
    assert preds.y is not None
    min_probs = preds.P.min(axis=1)
    return {
        "floored": int((min_probs < MIN_PROB).sum()),
        "missed": int((preds.P[np.arange(preds.n), preds.y] == 0).sum()),
    }


def species_table(plots: SurveyPlots, model: str) -> list[dict[str, Any]]:
    """One row per species."""
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(plots.species.tolist()):
        preds = plots.rows(model, plots.species == name, clustered=False)
        verdict = test(preds, "mcllo", min_prob=MIN_PROB)
        event = verdict.parts["event"]
        finite = bool(np.isfinite(event["gamma"]))
        assert preds.y is not None
        rows.append(
            {
                "model": model,
                "species": name,
                "rate": float(preds.y.mean()),
                "delta": event["delta"] if finite else None,
                "gamma": event["gamma"] if finite else None,
                "se": event["gamma_se"] if finite else None,
                "p": float(verdict),
                "holm": 1.0,
                "missed": count_zeros(preds)["missed"],
                "ECE": float(measure(preds, "ece", bins=sqrt_bin_count(preds.n), interval=None)),
                "log loss": float(measure(preds, "log_loss", interval=None)),
            }
        )
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["holm"] = float(p)
    return rows


def recalibration_table(results: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Each model and method over the splits."""
    rows = []
    for model in MODELS:
        runs = [one["rows"] for one in results if one["model"] == model]
        none = [run[0] for run in runs]
        for number, first in enumerate(runs[0]):
            method_rows = [run[number] for run in runs]
            row = {"model": model, "method": first["method"]} | summarize_splits(method_rows)
            rows.append(row if number == 0 else row | loss_changes(method_rows, none, shared=1.0))
    return tuple(rows)


def summarize_species(rows: Sequence[Row]) -> str:
    """Number of rejected species by model."""
    phrases = []
    for model in MODELS:
        is_significant = [row["holm"] <= 0.05 for row in rows if row["model"] == model]
        phrases.append(f"{sum(is_significant)} of {len(is_significant)} for {model}")
    return f"By species, MCLLO's test rejects at 5 % with Holm's correction: {', '.join(phrases)}."


def summarize_halves(rows: Sequence[Row]) -> str:
    """Gain of recalibration on held-out plots."""
    phrases = []
    for model in MODELS:
        by = {row["method"]: row for row in rows if row["model"] == model}
        low = min(by.values(), key=lambda row: float(row["loss"]))
        phrases.append(
            f"{model} {by['none']['loss']:.3f} without recalibration, {by['MCLLO']['loss']:.3f} after MCLLO,"
            f" {by['auto']['loss']:.3f} with auto (lowest: {low['loss']:.3f}, {low['method']})"
        )
    return f"Log loss on the other half of the plots: {'; '.join(phrases)}."


def summarize(rows: Sequence[Row], species: int, plots: int) -> str:
    """Summary of the study in words."""
    wider = [row[f"{name} se plots"] / row[f"{name} se"] for row in rows for name in ("delta", "gamma")]
    se_ratios = [row[f"{name} se plots"] / row[f"{name} se rows"] for row in rows for name in ("delta", "gamma")]
    phrases = [
        f"{row['model']} γ {row['gamma']:.2f} ± {row['gamma se plots']:.2f} (p = {row['p flips']:.2g})" for row in rows
    ]
    return (
        f"The paper's ecology data are not public; {species} tree species on {plots} plots are used instead."
        f" {', '.join(phrases)}, with whole plots as clusters. Standard errors for whole plots are"
        f" {format_range(wider, 2)} times those of the model, and {format_range(se_ratios, 2)} times those of a"
        " jackknife over single rows."
    )


def draw_halves(results: Sequence[Row], path: Path) -> Any:
    """The same for the models of trees, one dot per half of the plots."""
    models = list(dict.fromkeys(one["model"] for one in results))
    grouped = {model: [one["rows"] for one in results if one["model"] == model] for model in models}
    panels = (("mixed", "log loss, nats per row", None), ("p", "p of MCLLO's test, whole plots", 0.05))
    titles = {model: model for model in models}
    return draw_split_dots(
        grouped, titles, panels, "Recalibration fitted on half of the plots, evaluated on the other half", path
    )
