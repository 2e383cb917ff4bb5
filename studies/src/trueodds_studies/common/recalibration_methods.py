"""Fit recalibration methods on one part of the rows, score them on another, and average losses over splits."""

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

MIN_PROB = 1e-6  # of the tests: what replaces smaller probabilities


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
"""Those of the paper: MCLLO and four others; the ridge is ours."""

METHODS_LEGEND = """n: rows of the table's part that no fit saw. p: of MCLLO's likelihood-ratio test there, floor
{min_prob:g}. ECE: confidence, {bins} bins (√n). log loss: nats per row, infinite where an outcome had probability 0.
changed: share of rows whose label changes."""


def method_rows(
    learn: Predictions,
    held_out: Predictions,
    methods: Sequence[RecalibrationMethod] = METHODS,
    *,
    baseline: int = -1,
    rng: int = 0,
) -> tuple[dict[str, Any], ...]:
    """Each method fitted on the rows `learn` and judged on the rows `held_out`."""
    return tuple(
        evaluation.row for evaluation in evaluate_methods(learn, held_out, methods, baseline=baseline, rng=rng)
    )


@dataclass(frozen=True, eq=False)
class EvaluatedMethod:
    """A method's row, and what it was made from."""

    row: dict[str, Any]
    calibration_map: CalibrationMap
    after: Predictions  # the rows that no fit saw, recalibrated
    verdict: Verdict


def evaluate_methods(
    learn: Predictions,
    held_out: Predictions,
    methods: Sequence[RecalibrationMethod] = METHODS,
    *,
    baseline: int = -1,
    rng: int = 0,
) -> Iterator[EvaluatedMethod]:
    """The same with what was fitted; where rows come in clusters p is that of whole clusters flipped."""
    labels = held_out.P.argmax(axis=1)
    for method in methods:
        settings = dict(method.settings) | ({"baseline": baseline} if method.name == "mcllo" else {})
        calibrator = fit(learn, method.name, rng=rng, **settings)
        after = replace_probs(held_out, calibrator.predict_proba(held_out))
        row, verdict = evaluate_predictions(method.label, after, labels, baseline)
        yield EvaluatedMethod(row, calibrator.calibration_map, after, verdict)


def replace_probs(preds: Predictions, Q: Array) -> Predictions:
    """The same outcomes with other probabilities."""
    assert preds.y is not None  # labels, no votes
    return Predictions(preds.y, Q, cluster=preds.cluster)


def evaluate_predictions(
    label: str, after: Predictions, labels: Array, baseline: int = -1
) -> tuple[dict[str, Any], Verdict]:
    """The row of what a method made of the rows that it has not seen, and the verdict its p is from."""
    null_settings: dict[str, Any] = {} if after.cluster is None else {"null": "redraw"}
    verdict = test(after, "mcllo", baseline=baseline, min_prob=MIN_PROB, **null_settings)
    changed = after.P.argmax(axis=1)
    return {
        "method": label,
        "n": after.n,
        "p": float(verdict),
        "ECE": float(measure(after, "ece", bins=sqrt_bin_count(after.n), interval=None)),
        "log loss": float(measure(after, "log_loss", interval=None)),
        "accuracy": float(np.mean(changed == after.y)),
        "changed": float(np.mean(changed != labels)),
    }, verdict


def sqrt_bin_count(n: int) -> int:
    """The paper's number of bins, √n."""
    return math.ceil(math.sqrt(n))


def mixed_log_loss(P: Array, y: Array, n: int) -> float:
    """Log loss after 1/(n + 1) of the uniform is mixed in: what `auto` scores maps by that were fitted on n rows.

    >>> round(mixed_log_loss(np.array([[0.0, 1.0]]), np.array([0]), 1), 4)  # −log(¼)
    1.3863
    """
    share = 1 / (n + 1)
    return float(-np.log((1 - share) * P[np.arange(len(y)), y] + share / P.shape[1]).mean())


def standard_error(values: Array) -> float | None:
    """The standard error of a mean over splits; none of one split."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def split_values(rows: Sequence[Row], name: str) -> Array:
    """One number of each split."""
    return np.array([row[name] for row in rows], dtype=np.float64)


def summarize_splits(rows: Sequence[Row]) -> dict[str, Any]:
    """A method's rows of several splits as one."""
    loss = split_values(rows, "mixed")
    return {
        "splits": len(rows),
        "loss": float(loss.mean()),
        "se": standard_error(loss),
        "worst": float(loss.max()),
        "infinite": float(np.isinf(split_values(rows, "log loss")).mean()),
        "ECE": float(split_values(rows, "ECE").mean()),
        "p>.05": float((split_values(rows, "p") > 0.05).mean()),
        "accuracy": float(split_values(rows, "accuracy").mean()),
        "changed": float(split_values(rows, "changed").mean()),
    }


def loss_changes(method_rows: Sequence[Row], none: Sequence[Row], *, shared: float) -> dict[str, Any]:
    """A method's losses less those without recalibration on the same rows.

    Splits of the same rows are not independent: the standard error of the mean over J of them is multiplied by
    √(1 + J · `shared`), shared being the rows judged on over the others. Source: Nadeau & Bengio (2003).
    """
    differences = split_values(method_rows, "mixed") - split_values(none, "mixed")
    se, choices = standard_error(differences), [row["chose"] for row in method_rows]
    chose = ", ".join(f"{choices.count(name)} {name}" for name in sorted(set(choices)))
    return {
        "difference": float(differences.mean()),
        "difference se": se,
        "wide": None if se is None else se * float(np.sqrt(1 + len(differences) * shared)),
        "worse": float((differences > 0).mean()),
        "worst difference": float(differences.max()),
        "chose": chose if method_rows[0]["method"] == "auto" else "",
    }
