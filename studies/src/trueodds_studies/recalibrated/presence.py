"""How right are three models of where trees grow, and what recalibrates them? The tables of the ecology study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.api.verbs import measure, test
from trueodds.data.predictions import Predictions
from trueodds.kernels.holm import holm
from trueodds_studies.base import Finding, counted, span
from trueodds_studies.comparators import MIN_PROB, bins
from trueodds_studies.recalibrated.losses import changes, summarize_splits
from trueodds_studies.recalibrated.plots import MODELS, Plots
from trueodds_studies.resumable_runs import Row

KINDS = ("se", "se rows", "se plots")  # by the model's variance, by that of rows, by that of plots

LEGEND = """All {n:,} rows of {plots} plots, as they are. δ and γ of LLO, which is MCLLO for two classes; se: of independent rows whose variance is as the
fitted map says; se rows: as the rows show (jackknife); se plots: as the plots show (jackknife). p rows: of MCLLO's likelihood-ratio test, as if
rows were independent; p plots: Wald's test, of whole plots; p flips: the score test, the signs of whole plots' residuals flipped (floor {min_pvalue:g}). floored: rows nearer to 0 or 1 than {min_prob:g};
missed: outcomes that had probability 0, which alone rejects and makes the log loss infinite. ECE: presence, {bins} bins (√n). alike: mean squared
correlation of two species' residuals over plots; shuffled: the same, mean of {shuffles} shuffles of plots within species; p alike: share of
shuffles with as much, itself counted."""

BY_SPECIES = """One row per plot, so that rows are independent and p is of MCLLO's likelihood-ratio test on them. holm: the same for {species} species at once. se: of γ.
No δ and γ where no finite ones are best. rate: how often the species was there. ECE: {bins} bins (√n); log loss infinite where an outcome had probability 0."""

HALVES = """Fitted on half of the plots, judged on the other; mean over {splits}. loss, se, worst: nats per row, after 1/(n + 1) of the
uniform is mixed in, mean with its standard error as if halvings were independent, and largest; infinite: share of halvings with an
infinite log loss without that. ECE: presence, √n bins. p>.05: share in which MCLLO's score test, whole plots flipped, passes.
difference: loss less that without recalibration; wide: standard error of its mean, widened for the plots that halvings share by
√(1 + J) for J halvings (Nadeau & Bengio 2003); worse: share above 0. chose: what auto took, and how often."""


def ecology(plots: Plots, results: Sequence[Row], plan: Any) -> Finding:
    """The tables, that by model first; `results` has every halving."""
    by_model = tuple(of_model(plots, model, plan) for model in MODELS)
    species = tuple(row for model in MODELS for row in by_species(plots, model))
    every, places = len(species) // len(MODELS), int(plots.plot.max()) + 1
    halves = recalibrated(results)
    legend = LEGEND.format(
        n=len(plots.y),
        plots=places,
        min_pvalue=1 / (plan.resamples + 1),
        min_prob=MIN_PROB,
        bins=bins(len(plots.y)),
        shuffles=plan.shuffles,
    )
    also = (
        Finding(
            "ecology.species",
            many(species),
            species,
            plan.__dict__,
            BY_SPECIES.format(species=every, bins=bins(places)),
        ),
        Finding(
            "ecology.halves",
            halves_sentence(halves),
            halves,
            plan.__dict__,
            HALVES.format(splits=counted(plan.splits, "seeded halving")),
        ),
    )
    return Finding("ecology", sentence(by_model, every, places), by_model, plan.__dict__, legend, also)


def of_model(plots: Plots, model: str, plan: Any) -> dict[str, Any]:
    """What is found on all rows of one model."""
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
        "delta": event["delta"], **{f"delta {kind}": event["delta"] * one["tau_se"] for kind, one in zip(KINDS, errors, strict=True)},
        "gamma": event["gamma"], **{f"gamma {kind}": one["gamma_se"] for kind, one in zip(KINDS, errors, strict=True)},
        "p rows": float(by_model), "p plots": float(by_plot), "p flips": float(flips),
        **zeros(independent), "ECE": float(measure(independent, "ece", bins=bins(independent.n), interval=None)),
        "log loss": float(measure(independent, "log_loss", interval=None)),
        "alike": correlation, "shuffled": float(draws.mean()), "p alike": float((1 + (draws >= correlation).sum()) / (1 + len(draws))),
    }  # fmt: skip


def zeros(preds: Predictions) -> dict[str, int]:
    """Rows that the floor moves, and outcomes that had probability 0."""
    assert preds.y is not None
    min_probs = preds.P.min(axis=1)
    return {
        "floored": int((min_probs < MIN_PROB).sum()),
        "missed": int((preds.P[np.arange(preds.n), preds.y] == 0).sum()),
    }


def by_species(plots: Plots, model: str) -> list[dict[str, Any]]:
    """One row per species."""
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(plots.species.tolist()):
        preds = plots.rows(model, plots.species == name, clustered=False)
        verdict = test(preds, "mcllo", min_prob=MIN_PROB)
        event = verdict.parts["event"]
        finite = bool(np.isfinite(event["gamma"]))
        assert preds.y is not None
        rows.append({
            "model": model, "species": name, "rate": float(preds.y.mean()),
            "delta": event["delta"] if finite else None, "gamma": event["gamma"] if finite else None,
            "se": event["gamma_se"] if finite else None, "p": float(verdict), "holm": 1.0,
            "missed": zeros(preds)["missed"],
            "ECE": float(measure(preds, "ece", bins=bins(preds.n), interval=None)),
            "log loss": float(measure(preds, "log_loss", interval=None)),
        })  # fmt: skip
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["holm"] = float(p)
    return rows


def recalibrated(results: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Each model and method over the halvings."""
    rows = []
    for model in MODELS:
        runs = [one["rows"] for one in results if one["model"] == model]
        none = [run[0] for run in runs]
        for number, first in enumerate(runs[0]):
            method_rows = [run[number] for run in runs]
            row = {"model": model, "method": first["method"]} | summarize_splits(method_rows)
            rows.append(row if number == 0 else row | changes(method_rows, none, shared=1.0))
    return tuple(rows)


def many(rows: Sequence[Row]) -> str:
    """How many species each model has wrong."""
    phrases = []
    for model in MODELS:
        own = [row["holm"] <= 0.05 for row in rows if row["model"] == model]
        phrases.append(f"{sum(own)} of {len(own)} for {model}")
    return f"By species MCLLO's test rejects at 5 %, by Holm's correction, {', '.join(phrases)}."


def halves_sentence(rows: Sequence[Row]) -> str:
    """What recalibration gains on plots that it has not seen."""
    phrases = []
    for model in MODELS:
        by = {row["method"]: row for row in rows if row["model"] == model}
        low = min(by.values(), key=lambda row: float(row["loss"]))
        phrases.append(
            f"{model} {by['none']['loss']:.3f} as it is, {by['MCLLO']['loss']:.3f} after MCLLO, {by['auto']['loss']:.3f} by auto's choice"
            f" (least: {low['loss']:.3f}, {low['method']})"
        )
    return f"Log loss on the other half of the plots: {'; '.join(phrases)}."


def sentence(rows: Sequence[Row], species: int, plots: int) -> str:
    """What the study shows."""
    wider = [row[f"{name} se plots"] / row[f"{name} se"] for row in rows for name in ("delta", "gamma")]
    beyond = [row[f"{name} se plots"] / row[f"{name} se rows"] for row in rows for name in ("delta", "gamma")]
    phrases = [
        f"{row['model']} γ {row['gamma']:.2f} ± {row['gamma se plots']:.2f} (p = {row['p flips']:.2g})" for row in rows
    ]
    return (
        f"The paper's ecology data are not public; {species} tree species on {plots} plots stand in. {', '.join(phrases)}, plots kept "
        f"whole. Standard errors that respect plots are {span(wider, 2)} times the model's, and {span(beyond, 2)} times those of a jackknife over single rows."
    )
