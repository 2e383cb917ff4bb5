"""Calibration and recalibration of three models that predict tree species on 386 plots, with rows clustered by plot."""

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
from trueodds.core.pvalues import holm
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
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
    """Number of random splits of the plots into halves, of redraws of a test, and of shuffles of the plots."""

    splits: int = 12
    resamples: int = 999
    shuffles: int = 200
    seed: int = 0


QUICK = Plan(splits=1, resamples=199, shuffles=20)


@dataclass(frozen=True)
class Cell:
    """One model and one random split of the plots into halves."""

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
    folder, plots = make_folder(out), SurveyPlots.load(data)
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
    plots = SurveyPlots.load(cell.data)
    first, other = plots.split_plots(np.random.default_rng([plan.seed, cell.split]))
    learn, held_out = plots.rows(cell.model, first), plots.rows(cell.model, other)
    rows = []
    for evaluation in evaluate_methods(learn, held_out, ALL_METHODS):
        assert held_out.y is not None
        rows.append(
            evaluation.row
            | {
                "mixed": mixed_log_loss(evaluation.after.P, held_out.y, learn.n),
                "chosen": evaluation.calibration_map.name,
            }
        )
    return {"model": cell.model, "split": cell.split, "rows": rows}


ECOLOGY_FILE = "ecology_tree_species.parquet"
MODELS = ("GAM", "See5", "SGB")


@dataclass(frozen=True)
class SurveyPlots:
    """Observed presence and the predictions of three models, with one row per species and plot."""

    species: Array  # (n,) names
    plot: Array  # (n,) numbers from 0
    y: Array  # (n,) 1 if present, else 0
    predicted: dict[str, Array]  # by model: predicted probability of presence, (n,)

    @classmethod
    def load(cls, data: str | Path | None) -> SurveyPlots:
        """Read the file, which lists the plots in the same order for every species, but without plot numbers.

        The numbers are added here. That the order is the same is confirmed by `residual_correlation`.
        """
        table = load_parquet(ECOLOGY_FILE, data, "SPECIES", "OBSERVED", *MODELS)
        species = table["SPECIES"].astype(str)
        names = dict.fromkeys(species.tolist())
        plot = np.empty(len(species), dtype=np.int64)
        for name in names:
            mask = species == name
            plot[mask] = np.arange(mask.sum())
        return cls(species, plot, table["OBSERVED"], {model: table[model] for model in MODELS})

    def rows(self, model: str, mask: Array | None = None, *, clustered: bool = True) -> Predictions:
        """Predictions of a model for all rows or those of a mask (n,), by default with plots as clusters."""
        mask = np.ones(len(self.y), dtype=bool) if mask is None else mask
        cluster = self.plot[mask] if clustered else None
        return Predictions(self.y[mask], self.predicted[model][mask], cluster=cluster)

    def split_plots(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Masks (n,) of the rows of a random half of the plots, and of the other half."""
        count = int(self.plot.max()) + 1
        first = np.isin(self.plot, rng.permutation(count)[: count // 2])
        return first, ~first

    def residual_correlation(self, model: str) -> float:
        """Mean squared correlation between the residuals y − p of two species over plots, mean over pairs of species.

        Its expectation is 1 / number of plots if the plots of each species are in a random order.
        """
        return _mean_squared_correlation(self._residuals_by_species(model))

    def shuffled_correlation(self, model: str, rng: np.random.Generator) -> float:
        """The same after shuffling the plots of every species."""
        return _mean_squared_correlation(rng.permuted(self._residuals_by_species(model), axis=1))

    def _residuals_by_species(self, model: str) -> Array:
        """Residuals y − p of a model, (species, plots)."""
        residuals = self.y - self.predicted[model]
        return np.stack([residuals[self.species == name] for name in dict.fromkeys(self.species.tolist())])


def _mean_squared_correlation(residuals: Array) -> float:
    """Mean of r² over all pairs of rows of the residuals, (species, plots)."""
    return float((np.corrcoef(residuals)[np.triu_indices(len(residuals), 1)] ** 2).mean())


STANDARD_ERRORS = ("se", "se rows", "se plots")  # from the fitted model, and by jackknife over rows and over plots

LEGEND = """All {n:,} rows of {plots} plots, without recalibration. δ and γ of LLO, which is MCLLO for two classes; se:
standard error for independent rows with the variance of the fitted map; se rows: jackknife over rows; se plots:
jackknife over plots. p rows: MCLLO's likelihood-ratio test, assuming independent rows; p plots: Wald test for whole
plots; p flips: score test with the signs of the residuals of whole plots flipped (smallest p-value {min_pvalue:g}).
clipped: rows with a probability closer to 0 or 1 than {min_prob:g}; outcomes at 0: observed outcomes that had
probability 0, each of which rejects and makes the log loss infinite. ECE: presence, {bins} bins (√n). r²: mean squared
correlation of the residuals of two species over plots; r² shuffled: the mean of the same for {shuffles} shuffles of
plots within species; p of r²: share of shuffles with at least this value, including the data."""

SPECIES_LEGEND = """One row per plot, so the rows are independent; p: MCLLO's likelihood-ratio test. p Holm: Holm's
adjusted p-value for {species} species. se: standard error of γ. δ and γ are missing if no finite estimates exist.
event rate: observed. outcomes at 0: observed outcomes that had probability 0. ECE: {bins} bins (√n); the log loss is
infinite if an observed outcome had probability 0."""

HALVES_LEGEND = """Fitted on half of the plots, evaluated on the other half; mean over {splits}. loss, se, maximum
loss: log loss in nats per row after mixing with a share of 1/(n + 1) of the uniform distribution: mean, its standard
error assuming independent splits, and maximum; infinite loss: share of splits with an infinite log loss without
mixing. ECE: presence, √n bins. p > 0.05: share in which MCLLO's score test, with the signs of whole plots flipped,
does not reject. changed: share of rows whose predicted class changes. difference: loss minus that without
recalibration; corrected se: standard error of its mean, multiplied by √(1 + J) for the plots that J splits share
(Nadeau & Bengio 2003); share worse: share of splits in which it is above 0. chosen: methods chosen by auto, with
their frequencies."""


def build_result(plots: SurveyPlots, results: Sequence[Row], plan: Any) -> StudyResult:
    """All tables of the study, by model first; `results` has one row per model and split of the plots."""
    by_model = tuple(model_row(plots, model, plan) for model in MODELS)
    species = tuple(row for model in MODELS for row in species_table(plots, model))
    n_species, n_plots = len(species) // len(MODELS), int(plots.plot.max()) + 1
    halves = recalibration_table(results)
    legend = LEGEND.format(
        n=len(plots.y),
        plots=n_plots,
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
            SPECIES_LEGEND.format(species=n_species, bins=sqrt_bin_count(n_plots)),
        ),
        StudyResult(
            "ecology.halves",
            summarize_halves(halves),
            halves,
            plan.__dict__,
            HALVES_LEGEND.format(splits=format_count(plan.splits, "random halving")),
        ),
    )
    return StudyResult("ecology", summarize(by_model, n_species, n_plots), by_model, plan.__dict__, legend, also)


def model_row(plots: SurveyPlots, model: str, plan: Any) -> dict[str, Any]:
    """The row of one model: parameters with three standard errors, p-values, error, and dependence of the rows."""
    rows, independent = plots.rows(model), plots.rows(model, clustered=False)
    by_model, by_row, by_plot = (
        test(preds, "mcllo", min_prob=MIN_PROB, variance=variance)
        for preds, variance in ((independent, None), (independent, "empirical"), (rows, None))
    )
    flips = test(rows, "mcllo", null="redraw", min_prob=MIN_PROB, resamples=plan.resamples)
    correlation, rng = plots.residual_correlation(model), np.random.default_rng([plan.seed, MODELS.index(model)])
    draws = np.array([plots.shuffled_correlation(model, rng) for _ in range(plan.shuffles)])
    event = by_model.parts["event"]
    events = [verdict.parts["event"] for verdict in (by_model, by_row, by_plot)]
    return {
        "model": model,
        "delta": event["delta"],
        **{f"delta {kind}": event["delta"] * one["tau_se"] for kind, one in zip(STANDARD_ERRORS, events, strict=True)},
        "gamma": event["gamma"],
        **{f"gamma {kind}": one["gamma_se"] for kind, one in zip(STANDARD_ERRORS, events, strict=True)},
        "p rows": by_model.pvalue,
        "p plots": by_plot.pvalue,
        "p flips": flips.pvalue,
        **count_zeros(independent),
        "ECE": float(measure(independent, "ece", bins=sqrt_bin_count(independent.n), interval=None)),
        "log loss": float(measure(independent, "log_loss", interval=None)),
        "r²": correlation,
        "r² shuffled": float(draws.mean()),
        "p of r²": float((1 + (draws >= correlation).sum()) / (1 + len(draws))),
    }


def count_zeros(preds: Predictions) -> dict[str, int]:
    """`clipped`: rows with a probability below MIN_PROB; `outcomes at 0`: observed outcomes with probability 0."""
    assert preds.y is not None
    min_probs = preds.P.min(axis=1)
    return {
        "clipped": int((min_probs < MIN_PROB).sum()),
        "outcomes at 0": int((preds.P[np.arange(preds.n), preds.y] == 0).sum()),
    }


def species_table(plots: SurveyPlots, model: str) -> list[dict[str, Any]]:
    """One row per species: event rate, parameters, p-value with and without Holm's correction, and error of a model."""
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
                "event rate": float(preds.y.mean()),
                "delta": event["delta"] if finite else None,
                "gamma": event["gamma"] if finite else None,
                "se": event["gamma_se"] if finite else None,
                "p": verdict.pvalue,
                "p Holm": 1.0,
                "outcomes at 0": count_zeros(preds)["outcomes at 0"],
                "ECE": float(measure(preds, "ece", bins=sqrt_bin_count(preds.n), interval=None)),
                "log loss": float(measure(preds, "log_loss", interval=None)),
            }
        )
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p Holm"] = float(p)
    return rows


def recalibration_table(results: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per model and method: means over the splits, and differences from no recalibration."""
    rows = []
    for model in MODELS:
        runs = [result["rows"] for result in results if result["model"] == model]
        none = [run[0] for run in runs]
        for number, first in enumerate(runs[0]):
            method_rows = [run[number] for run in runs]
            row = {"model": model, "method": first["method"]} | summarize_splits(method_rows)
            rows.append(row if number == 0 else row | loss_changes(method_rows, none, shared=1.0))
    return tuple(rows)


def summarize_species(rows: Sequence[Row]) -> str:
    """In words, the number of species for which calibration is rejected, by model."""
    phrases = []
    for model in MODELS:
        is_significant = [row["p Holm"] <= 0.05 for row in rows if row["model"] == model]
        phrases.append(f"{sum(is_significant)} of {len(is_significant)} for {model}")
    return f"By species, MCLLO's test rejects at 5 % with Holm's correction: {', '.join(phrases)}."


def summarize_halves(rows: Sequence[Row]) -> str:
    """In words, the log loss on held-out plots without recalibration, after MCLLO and with auto, by model."""
    phrases = []
    for model in MODELS:
        by_method = {row["method"]: row for row in rows if row["model"] == model}
        lowest = min(by_method.values(), key=lambda row: float(row["loss"]))
        phrases.append(
            f"{model} {by_method['none']['loss']:.3f} without recalibration, {by_method['MCLLO']['loss']:.3f} after"
            f" MCLLO, {by_method['auto']['loss']:.3f} with auto (lowest: {lowest['loss']:.3f}, {lowest['method']})"
        )
    return f"Log loss on the other half of the plots: {'; '.join(phrases)}."


def summarize(rows: Sequence[Row], species: int, plots: int) -> str:
    """In words, γ with its p-value by model, and how much larger standard errors are for whole plots."""
    ratios_to_model = [row[f"{name} se plots"] / row[f"{name} se"] for row in rows for name in ("delta", "gamma")]
    ratios_to_rows = [row[f"{name} se plots"] / row[f"{name} se rows"] for row in rows for name in ("delta", "gamma")]
    phrases = [
        f"{row['model']} γ {row['gamma']:.2f} ± {row['gamma se plots']:.2f} (p = {row['p flips']:.2g})" for row in rows
    ]
    return (
        f"The paper's ecology data are not public; {species} tree species on {plots} plots are used instead."
        f" {', '.join(phrases)}, with whole plots as clusters. Standard errors for whole plots are"
        f" {format_range(ratios_to_model, 2)} times those of the model, and {format_range(ratios_to_rows, 2)} times"
        " those of a jackknife over single rows."
    )


def draw_halves(results: Sequence[Row], path: Path) -> Any:
    """Draw log loss and p-value on held-out plots by model and method, one dot per split, and return the figure."""
    models = list(dict.fromkeys(result["model"] for result in results))
    grouped = {model: [result["rows"] for result in results if result["model"] == model] for model in models}
    panels = (("mixed", "log loss, nats per row", None), ("p", "p of MCLLO's test, whole plots", 0.05))
    titles = {model: model for model in models}
    return draw_split_dots(
        grouped, titles, panels, "Recalibration fitted on half of the plots, evaluated on the other half", path
    )
