"""What do confidence and correctness tell of one network, what does a fix gain, and how do three networks compare?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.api.comparing import compare
from trueodds.api.verbs import fit, measure, test
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.lenses.selective import selective_risk
from trueodds_studies.top1.needs import MIN_PROB
from trueodds_studies.top1.nets import halves

COVERAGES = (0.5, 0.8, 0.95)
COMPARED = ("ece", "debiased_l2", "smece", "brier", "log_loss")
SCORES = (("ECE", "ece"), ("log loss", "log_loss"), ("Brier", "brier"))


def estimates(preds: Predictions, resamples: int, seed: int) -> list[dict[str, Any]]:
    """Every estimator that takes these rows, with interval and noise floor."""
    rows = []
    for name in ESTIMATORS.names():
        try:
            answer = measure(preds, name, resamples=resamples, rng=seed)
        except InputError:
            continue  # why is told once, in the table of what works
        low, high = (answer.interval.low, answer.interval.high) if answer.interval else (None, None)
        rows.append(
            {"estimator": name, "value": answer.value, "low": low, "high": high, "noise floor": answer.noise_floor}
        )
    return rows


def verdicts(preds: Predictions, redraws: int, seed: int) -> list[dict[str, Any]]:
    """Every test that takes these rows, with a floor where it needs one."""
    rows = []
    for name in TESTS.names():
        resample_settings: dict[str, Any] = {"resamples": redraws} if TESTS.takes(name, "resamples") else {}
        tries: tuple[dict[str, Any], ...] = ({}, {"min_prob": MIN_PROB})
        for min_prob_settings in tries:
            try:
                verdict = test(preds, name, rng=seed, **resample_settings, **min_prob_settings)
            except InputError:
                continue
            rows.append(
                {
                    "test": name,
                    "floor": min_prob_settings.get("min_prob"),
                    "statistic": verdict.statistic,
                    "p": verdict.pvalue,
                }
            )
            break
    return rows


def fixed(preds: Predictions, resamples: int, seed: int) -> dict[str, Any]:
    """What `auto` makes of one half of the rows, and how it does on the other."""
    learn, held_out = halves(preds, seed)
    calibrator = fit(learn, "auto", rng=seed)
    assert held_out.y is not None
    after = Predictions.from_confidence(calibrator.predict_proba(held_out.p)[:, 1], held_out.y)
    row: dict[str, Any] = {"fix": str(calibrator.report), "method": calibrator.method}
    for label, name in SCORES:
        for when, rows in (("before", held_out), ("after", after)):
            answer = measure(rows, name, resamples=resamples, rng=seed)
            row[f"{label} {when}"] = answer.value
            row[f"{label} {when} low"], row[f"{label} {when} high"] = _ends(answer.interval)
            row[f"{label} {when} floor"] = answer.noise_floor
    return row


def risk(preds: Predictions, resamples: int, seed: int) -> dict[str, Any]:
    """AURC with its interval, and the risk where only the surest answers are given."""
    curve = selective_risk(preds, at=COVERAGES, resamples=resamples, rng=seed)
    low, high = _ends(curve.interval)
    row: dict[str, Any] = {"AURC": curve.aurc, "low": low, "high": high, "random": curve.random, "ideal": curve.ideal}
    return row | {f"risk at {share:g}": float(r) for share, r in zip(COVERAGES, curve.at["risk"], strict=True)}


def compare_pairs(
    models: Mapping[str, Predictions], resamples: int, seed: int, *, paired: bool
) -> list[dict[str, Any]]:
    """Every pair of networks by several errors; the intervals of one error hold together."""
    rows = []
    for name in COMPARED:
        for pair in compare(dict(models), name, paired=paired, resamples=resamples, rng=seed).pairs:
            low, high = _ends(pair.interval)
            row: dict[str, Any] = {"estimator": name, "pair": " − ".join(pair.names), "difference": pair.difference}
            rows.append(row | {"low": low, "high": high, "p": pair.pvalue, "smaller": pair.better or "not settled"})
    return rows


def _ends(interval: Any) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)
