"""Recalibration methods fitted on one part of the rows and evaluated on another, and their means over splits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueodds.api.fit import fit
from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.calibrators.base import CalibrationMap
from trueodds.core.results import Verdict
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.common.resumable_runs import Row

MIN_PROB = 1e-6  # smaller probabilities are replaced by it in the tests


@dataclass(frozen=True)
class RecalibrationMethod:
    """A calibrator with its settings, and the name in the table."""

    label: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


METHODS = (
    RecalibrationMethod("none", "identity"),
    RecalibrationMethod("MCLLO", "mcllo"),
    RecalibrationMethod("MCLLO, ridge", "mcllo", {"penalty": 0.5}),
    RecalibrationMethod("binning", "histogram"),
    RecalibrationMethod("evidential (Xu)", "evidential"),
    RecalibrationMethod("temperature on log p", "temperature"),
    RecalibrationMethod("vector on log p", "vector"),
)
"""The methods of Vennos, Xing & Franck (2026), and MCLLO with a ridge penalty."""


def method_rows(
    learn: Predictions,
    held_out: Predictions,
    methods: Sequence[RecalibrationMethod] = METHODS,
    *,
    baseline: int = -1,
    rng: int = 0,
) -> tuple[dict[str, Any], ...]:
    """One row of results per method, fitted on the rows `learn` and evaluated on the rows `held_out`."""
    return tuple(
        evaluation.row for evaluation in evaluate_methods(learn, held_out, methods, baseline=baseline, rng=rng)
    )


@dataclass(frozen=True, eq=False)
class EvaluatedMethod:
    """The row of results of a fitted method, with its map, the recalibrated rows, and the verdict of the MCLLO test."""

    row: dict[str, Any]
    calibration_map: CalibrationMap
    after: Predictions  # the held-out rows after recalibration
    verdict: Verdict


def evaluate_methods(
    learn: Predictions,
    held_out: Predictions,
    methods: Sequence[RecalibrationMethod] = METHODS,
    *,
    baseline: int = -1,
    rng: int = 0,
) -> Iterator[EvaluatedMethod]:
    """Fit each method on the rows `learn`, and evaluate it on the rows `held_out`.

    `baseline` is the baseline class of MCLLO.
    """
    labels = held_out.P.argmax(axis=1)
    for method in methods:
        settings = dict(method.settings) | ({"baseline": baseline} if method.name == "mcllo" else {})
        calibrator = fit(learn, method.name, rng=rng, **settings)
        after = replace_probs(held_out, calibrator.predict_proba(held_out))
        row, verdict = evaluate_predictions(method.label, after, labels, baseline)
        yield EvaluatedMethod(row, calibrator.calibration_map, after, verdict)


def replace_probs(preds: Predictions, Q: Array) -> Predictions:
    """The same labels and clusters with the probabilities Q, (n, K)."""
    assert preds.y is not None  # the rows have labels, not votes
    return Predictions(preds.y, Q, cluster=preds.cluster)


def evaluate_predictions(
    label: str, after: Predictions, labels: Array, baseline: int = -1
) -> tuple[dict[str, Any], Verdict]:
    """The row of results for recalibrated held-out rows, and the verdict of the MCLLO test on them.

    `labels` are the predicted classes before recalibration. If the rows have clusters, the null distribution of the
    test flips the signs of the residuals of whole clusters.
    """
    null_settings: dict[str, Any] = {} if after.cluster is None else {"null": "redraw"}
    verdict = test(after, "mcllo", baseline=baseline, min_prob=MIN_PROB, **null_settings)
    predicted = after.P.argmax(axis=1)
    return {
        "method": label,
        "n": after.n,
        "p": verdict.pvalue,
        "ECE": float(measure(after, "ece", bins=sqrt_bin_count(after.n), interval=None)),
        "log loss": float(measure(after, "log_loss", interval=None)),
        "accuracy": float(np.mean(predicted == after.y)),
        "changed": float(np.mean(predicted != labels)),
    }, verdict


def sqrt_bin_count(n: int) -> int:
    """⌈√n⌉, the number of bins in Vennos, Xing & Franck (2026)."""
    return math.ceil(math.sqrt(n))


def mixed_log_loss(P: Array, y: Array, n: int) -> float:
    """Log loss of predictions mixed with a share 1/(n + 1) of the uniform distribution, which makes it finite.

    `auto` compares maps that were fitted on n rows by this loss.

    >>> round(mixed_log_loss(np.array([[0.0, 1.0]]), np.array([0]), 1), 4)  # −log(¼)
    1.3863
    """
    share = 1 / (n + 1)
    return float(-np.log((1 - share) * P[np.arange(len(y)), y] + share / P.shape[1]).mean())


def standard_error(values: Array) -> float | None:
    """The standard error of a mean over splits; None for a single split."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def split_values(rows: Sequence[Row], name: str) -> Array:
    """The values of one column, (splits,)."""
    return np.array([row[name] for row in rows], dtype=np.float64)


def summarize_splits(rows: Sequence[Row]) -> dict[str, Any]:
    """Means over splits of the rows of one method."""
    loss = split_values(rows, "mixed")
    return {
        "splits": len(rows),
        "loss": float(loss.mean()),
        "se": standard_error(loss),
        "maximum loss": float(loss.max()),
        "infinite loss": float(np.isinf(split_values(rows, "log loss")).mean()),
        "ECE": float(split_values(rows, "ECE").mean()),
        "p > 0.05": float((split_values(rows, "p") > 0.05).mean()),
        "accuracy": float(split_values(rows, "accuracy").mean()),
        "changed": float(split_values(rows, "changed").mean()),
    }


def loss_changes(method_rows: Sequence[Row], none: Sequence[Row], *, shared: float) -> dict[str, Any]:
    """Losses of a method minus those without recalibration (`none`), over splits.

    Splits of the same rows are not independent: `corrected se` is the standard error of the mean over J splits,
    multiplied by √(1 + J · `shared`), where `shared` is the number of evaluated rows divided by that of the others.
    Source: Nadeau & Bengio (2003).
    """
    differences = split_values(method_rows, "mixed") - split_values(none, "mixed")
    se = standard_error(differences)
    choices = [row["chosen"] for row in method_rows]
    chosen = ", ".join(f"{choices.count(name)} {name}" for name in sorted(set(choices)))
    return {
        "difference": float(differences.mean()),
        "difference se": se,
        "corrected se": None if se is None else se * float(np.sqrt(1 + len(differences) * shared)),
        "share worse": float((differences > 0).mean()),
        "maximum difference": float(differences.max()),
        "chosen": chosen if method_rows[0]["method"] == "auto" else "",
    }
