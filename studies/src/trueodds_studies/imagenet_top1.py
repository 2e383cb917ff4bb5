"""Estimates, tests and recalibration from the confidence and correctness of three ImageNet networks alone."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds.api.compare import compare
from trueodds.api.draw import draw
from trueodds.api.fit import fit
from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.calibrators import CALIBRATORS
from trueodds.core.errors import InputError
from trueodds.core.progress import Progress
from trueodds.core.registry import Registry
from trueodds.core.results import Interval
from trueodds.data.predictions import Predictions
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.lenses import LENS_NAMES
from trueodds.lenses.selective_risk import selective_risk
from trueodds_studies.common.data_files import hash_file
from trueodds_studies.common.figures import make_figure, save_figure
from trueodds_studies.common.network_predictions import (
    IMAGENET_FILE,
    IMAGENET_NETWORKS,
    check_network,
    have_equal_labels,
    load_imagenet_top1,
    split_in_halves,
)
from trueodds_studies.common.resumable_runs import Row, run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder

ALL_NETS = "together"  # instead of a network: the cell that compares all of them


@dataclass(frozen=True)
class Plan:
    """Number of rows per network (all by default), resamples of an interval, and redraws of a test."""

    rows: int | None = None
    resamples: int = 500
    redraws: int = 199
    seed: int = 0


QUICK = Plan(rows=1500, resamples=100, redraws=99)
SMALL_ROWS = 2000  # rows with which it is checked which methods work

ESTIMATORS_LEGEND = "value [95 % interval] (noise floor: the mean if the confidence were calibrated)."
TESTS_LEGEND = """p-values; 0: smaller than the smallest floating-point number. min_prob: replacement of confidences of
0 and 1, whose log odds are infinite, if a network has any."""
RECALIBRATION_LEGEND = f"auto fitted on a random half of the rows, scores for the other half: {ESTIMATORS_LEGEND}"
RISKS_LEGEND = """AURC [95 % interval]: area under the risk-coverage curve; random, ideal: for a random and for the best
order. risk at 0.5: error rate of the more confident half."""
PAIRS_LEGEND = """difference [low, high]: simultaneous 95 % intervals for the pairs of one error, with adjusted
p-values; smaller: the network with the smaller error."""
REQUIREMENTS_LEGEND = (
    "With 2,000 rows of the first network. with min_prob: required by methods that use log odds if a confidence is 0"
    " or 1."
)


@dataclass(frozen=True)
class Cell:
    """One network, or the comparison of all of them."""

    net: str  # or ALL_NETS
    data: str | None  # folder of the data files, which does not change the results
    nets: tuple[str, ...] = ()  # that are compared

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
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
) -> StudyResult:
    """Three ImageNet networks with confidence and correctness only, evaluated by all methods that do not require more.

    Tables: every estimator and test; recalibration by `auto`; risk and coverage; pairwise
    comparisons; and every lens, estimator, test, calibrator, and diagram with its requirements. A
    figure. `methods` are networks. Source of the rows: Lee, Huang, Hassani & Dobriban (2023), T-Cal.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder, data_folder = make_folder(out), None if data is None else str(data)
    nets = tuple(check_network(name, IMAGENET_NETWORKS) for name in methods or IMAGENET_NETWORKS)
    cells = [*(Cell(net, data_folder) for net in nets), Cell(ALL_NETS, data_folder, nets)]
    *net_rows, joint_row = run_cells(
        "imagenet_top1",
        cells,
        measure_cell,
        plan,
        folder,
        progress,
        {IMAGENET_FILE: hash_file(IMAGENET_FILE, data_folder)},
    )
    tables = (
        ("tests", "All tests that support these data.", pvalue_table(net_rows), TESTS_LEGEND),
        ("fixes", "Effect of recalibration.", recalibration_table(net_rows), RECALIBRATION_LEGEND),
        ("risk", "Selective prediction.", risk_table(net_rows), RISKS_LEGEND),
        ("pairs", "Comparison of the networks in pairs.", tuple(joint_row["pairs"]), PAIRS_LEGEND),
        ("needs", "Supported methods, and requirements of the others.", tuple(joint_row["needs"]), REQUIREMENTS_LEGEND),
    )
    also = tuple(
        StudyResult(f"imagenet_top1.{name}", sentence, rows, plan.__dict__, legend)
        for name, sentence, rows, legend in tables
    )
    sentence = summarize(net_rows, joint_row["needs"])
    finding = StudyResult("imagenet_top1", sentence, estimator_table(net_rows), plan.__dict__, ESTIMATORS_LEGEND, also)
    if folder is not None:
        finding.save(folder)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            models = {net: load_imagenet_top1(net, data_folder, plan.rows, plan.seed) for net in nets}
            draw_reliability_diagrams(models, folder / "imagenet_top1.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """All results for one network, or comparisons in pairs and requirements of all methods for `ALL_NETS`."""
    if cell.net == ALL_NETS:
        models = {net: load_imagenet_top1(net, cell.data, plan.rows, plan.seed) for net in cell.nets}
        sample = load_imagenet_top1(cell.nets[0], cell.data, SMALL_ROWS, plan.seed)
        pairs = (
            compare_pairs(models, plan.resamples, plan.seed, paired=have_equal_labels(cell.data))
            if len(models) > 1
            else []
        )
        return {"pairs": pairs, "needs": check_requirements(sample)}
    preds = load_imagenet_top1(cell.net, cell.data, plan.rows, plan.seed)
    return {
        "net": cell.net,
        "estimates": estimate_rows(preds, plan.resamples, plan.seed),
        "tests": verdict_rows(preds, plan.redraws, plan.seed),
        "fixed": recalibrate(preds, plan.resamples, plan.seed),
        "risk": risk_row(preds, plan.resamples, plan.seed),
    }


COVERAGES = (0.5, 0.8, 0.95)  # shares of the most confident rows whose risk is reported
COMPARED = ("ece", "debiased_l2", "smece", "brier", "log_loss")  # estimators by which networks are compared in pairs
SCORES = (("ECE", "ece"), ("log loss", "log_loss"), ("Brier", "brier"))  # column and estimator


def estimate_rows(preds: Predictions, resamples: int, seed: int) -> list[dict[str, Any]]:
    """One row per estimator that supports these data: value, interval and noise floor."""
    rows = []
    for name in ESTIMATORS.names():
        try:
            answer = measure(preds, name, resamples=resamples, rng=seed)
        except InputError:
            continue  # `check_requirements` reports the reason
        low, high = (answer.interval.low, answer.interval.high) if answer.interval else (None, None)
        rows.append(
            {"estimator": name, "value": answer.value, "low": low, "high": high, "noise floor": answer.noise_floor}
        )
    return rows


def verdict_rows(preds: Predictions, redraws: int, seed: int) -> list[dict[str, Any]]:
    """One row per test that supports these data: `min_prob` if it is required, statistic and p-value."""
    rows = []
    for name in TESTS.names():
        resample_settings: dict[str, Any] = {"resamples": redraws} if TESTS.has_setting(name, "resamples") else {}
        attempts: tuple[dict[str, Any], ...] = ({}, {"min_prob": MIN_PROB})
        for min_prob_settings in attempts:
            try:
                verdict = test(preds, name, rng=seed, **resample_settings, **min_prob_settings)
            except InputError:
                continue
            rows.append(
                {
                    "test": name,
                    "min_prob": min_prob_settings.get("min_prob"),
                    "statistic": verdict.statistic,
                    "p": verdict.pvalue,
                }
            )
            break
    return rows


def recalibrate(preds: Predictions, resamples: int, seed: int) -> dict[str, Any]:
    """Fit `auto` on one half of the rows; return the map, and scores of the other half before and after it."""
    learn, held_out = split_in_halves(preds, seed)
    calibrator = fit(learn, "auto", rng=seed)
    assert held_out.y is not None
    after = Predictions.from_confidence(calibrator.predict_proba(held_out.p)[:, 1], held_out.y)
    row: dict[str, Any] = {"recalibration": str(calibrator.report), "method": calibrator.method}
    for label, name in SCORES:
        for when, rows in (("before", held_out), ("after", after)):
            answer = measure(rows, name, resamples=resamples, rng=seed)
            row[f"{label} {when}"] = answer.value
            row[f"{label} {when} low"], row[f"{label} {when} high"] = _interval_limits(answer.interval)
            row[f"{label} {when} noise floor"] = answer.noise_floor
    return row


def risk_row(preds: Predictions, resamples: int, seed: int) -> dict[str, Any]:
    """Area under the risk-coverage curve (AURC) with its interval, and the error rates of the most confident rows."""
    curve = selective_risk(preds, at=COVERAGES, resamples=resamples, rng=seed)
    low, high = _interval_limits(curve.interval)
    row: dict[str, Any] = {"AURC": curve.aurc, "low": low, "high": high, "random": curve.random, "ideal": curve.ideal}
    return row | {f"risk at {share:g}": float(r) for share, r in zip(COVERAGES, curve.at["risk"], strict=True)}


def compare_pairs(
    models: Mapping[str, Predictions], resamples: int, seed: int, *, paired: bool
) -> list[dict[str, Any]]:
    """Compare every pair of networks by several errors, with simultaneous intervals for each error."""
    rows = []
    for name in COMPARED:
        for pair in compare(dict(models), name, paired=paired, resamples=resamples, rng=seed).pairs:
            low, high = _interval_limits(pair.interval)
            row: dict[str, Any] = {"estimator": name, "pair": " − ".join(pair.names), "difference": pair.difference}
            rows.append(row | {"low": low, "high": high, "p": pair.pvalue, "smaller": pair.better or "not established"})
    return rows


def _interval_limits(interval: Interval | None) -> tuple[float | None, float | None]:
    """The limits of an interval, or None twice without one."""
    return (None, None) if interval is None else (interval.low, interval.high)


METHOD_KINDS: Mapping[str, tuple[Registry, Callable[..., Any]]] = {
    "estimator": (ESTIMATORS, lambda preds, name, **settings: measure(preds, name, interval=None, **settings)),
    "test": (TESTS, lambda preds, name, **settings: test(preds, name, **_resample_settings(name), **settings)),
    "calibrator": (CALIBRATORS, fit),
    "diagram": (DIAGRAMS, draw),
}
"""By kind of method: its registry, and the function that applies a method by name to predictions."""
MIN_PROB = 1e-6  # for methods that use log odds, if a confidence is 0 or 1


def check_requirements(preds: Predictions) -> list[dict[str, str]]:
    """One row per lens and method: whether it works (`yes`, or with `min_prob`), or the error with its code."""
    rows = [
        {"kind": "lens", "name": name, "supported": _check_method(measure, preds, "ece", lens=name)}
        for name in LENS_NAMES
    ]
    for kind, (registry, apply_method) in METHOD_KINDS.items():
        for name in registry.names():
            answer = _check_method(apply_method, preds, name)
            if answer != "yes" and _check_method(apply_method, preds, name, min_prob=MIN_PROB) == "yes":
                answer = f"with min_prob={MIN_PROB:g} ({answer.split(':')[0]} without)"
            rows.append({"kind": kind, "name": name, "supported": answer})
    return rows


def _check_method(apply_method: Callable[..., Any], preds: Predictions, name: str, **settings: Any) -> str:
    """`yes` if the method works, else the code and the problem of the error."""
    try:
        apply_method(preds, name, **settings)
    except InputError as refusal:
        return f"{refusal.code}: {refusal.problem}"
    return "yes"


def _resample_settings(name: str) -> dict[str, Any]:
    return {"resamples": 19} if TESTS.has_setting(name, "resamples") else {}


def estimator_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per estimator, with a column `value [95 % interval] (noise floor)` per network."""
    names = [row["estimator"] for row in cells[0]["estimates"]]
    table = []
    for name in names:
        rows = {cell["net"]: next(r for r in cell["estimates"] if r["estimator"] == name) for cell in cells}
        table.append({"estimator": name} | {net: format_estimate(row) for net, row in rows.items()})
    return tuple(table)


def pvalue_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per test, with a column of p-values per network."""
    names = [row["test"] for row in cells[0]["tests"]]
    table = []
    for name in names:
        rows = {cell["net"]: next((r for r in cell["tests"] if r["test"] == name), None) for cell in cells}
        min_probs = [row["min_prob"] for row in rows.values() if row is not None]
        entry = {"test": name} | {net: None if row is None else row["p"] for net, row in rows.items()}
        table.append(entry | {"min_prob": next((min_prob for min_prob in min_probs if min_prob is not None), None)})
    return tuple(table)


def recalibration_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per network: the map fitted by `auto`, and scores of the held-out rows before and after it."""
    rows = []
    for cell in cells:
        row, entry = cell["fixed"], {"network": cell["net"], "recalibration": cell["fixed"]["recalibration"]}
        for score, _ in SCORES:
            for when in ("before", "after"):
                prefix = f"{score} {when}"
                estimate = {"value": row[prefix], "low": row[f"{prefix} low"], "high": row[f"{prefix} high"]}
                entry[prefix] = format_estimate(estimate | {"noise floor": row[f"{prefix} noise floor"]})
        rows.append(entry)
    return tuple(rows)


def risk_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per network: AURC with its interval, and the error rates of the most confident rows."""
    rows = []
    for cell in cells:
        row = dict(cell["risk"])
        area = format_estimate(
            {"value": row.pop("AURC"), "low": row.pop("low"), "high": row.pop("high"), "noise floor": None}
        )
        rows.append({"network": cell["net"], "AURC": area, **row})
    return tuple(rows)


def summarize(cells: Sequence[Row], needs: Sequence[Row]) -> str:
    """In words, how many methods work, and the ECE of each network before and after recalibration."""
    works = sum(row["supported"] == "yes" for row in needs)
    with_min_prob = sum(row["supported"].startswith("with min_prob") for row in needs)
    phrases = [
        f"{cell['net']} ECE {_estimate_value(cell, 'ece'):.4f}, after recalibration with {cell['fixed']['method']}"
        f" {cell['fixed']['ECE after']:.4f} on held-out rows"
        for cell in cells
    ]
    return (
        f"Of {len(needs)} lenses and methods, {works} work with confidence and correctness alone, {with_min_prob} more"
        f" with min_prob, and {len(needs) - works - with_min_prob} state what they require. {'; '.join(phrases)}."
    )


def format_estimate(row: Row) -> str:
    """Format as value [low, high] (noise floor)."""
    between = "" if row["low"] is None else f" [{row['low']:.4f}, {row['high']:.4f}]"
    return f"{row['value']:.4f}{between}" + ("" if row["noise floor"] is None else f" ({row['noise floor']:.4f})")


def _estimate_value(cell: Row, name: str) -> float:
    """The value of an estimator for a network."""
    return float(next(row["value"] for row in cell["estimates"] if row["estimator"] == name))


def draw_reliability_diagrams(models: Mapping[str, Predictions], path: Path) -> None:
    """Draw the reliability diagrams of the networks side by side, with one legend below."""
    figure = make_figure((4.2 * len(models), 4.6))
    axes = figure.subplots(1, len(models), squeeze=False)[0]
    diagrams = [draw(preds, "reliability") for preds in models.values()]
    for ax, name, reliability in zip(axes, models, diagrams, strict=True):
        reliability.less("legend").draw(ax)
        ax.set_title(name, fontsize=10)
    handles, names = zip(*max((reliability.legend() for reliability in diagrams), key=len), strict=True)
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize=9)
    save_figure(figure, path)
