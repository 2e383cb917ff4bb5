"""What does each recalibration do to rows it has not seen? One row per method, as in the tables of the MCLLO paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueodds.api.verbs import fit, measure, test
from trueodds.calibrators.base import CalibrationMap
from trueodds.core.results import Verdict
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

MIN_PROB = 1e-6  # of the tests: what stands in for smaller probabilities


@dataclass(frozen=True)
class Method:
    """A calibrator with its settings, and the name in the table."""

    label: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


METHODS = (
    Method("none", "identity"),
    Method("MCLLO", "mcllo"),
    Method("MCLLO, ridge", "mcllo", {"penalty": 0.5}),
    Method("binning", "histogram"),
    Method("evidential (Xu)", "evidential"),
    Method("temperature on log p", "temperature"),
    Method("vector on log p", "vector"),
)
"""Those of the paper: MCLLO and four others; the ridge is ours."""

LEGEND = """n: rows of the table's part that no fit saw. p: of MCLLO's likelihood-ratio test there, floor {min_prob:g}. ECE: confidence, {bins} bins
(√n). log loss: nats per row, infinite where an outcome had probability 0. changed: share of rows whose label changes."""


def method_rows(
    learn: Predictions, held_out: Predictions, methods: Sequence[Method] = METHODS, *, baseline: int = -1, rng: int = 0
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
    learn: Predictions, held_out: Predictions, methods: Sequence[Method] = METHODS, *, baseline: int = -1, rng: int = 0
) -> Iterator[EvaluatedMethod]:
    """The same with what was fitted; where rows come in clusters p is that of whole clusters flipped."""
    labels = held_out.P.argmax(axis=1)
    for method in methods:
        settings = dict(method.settings) | ({"baseline": baseline} if method.name == "mcllo" else {})
        calibrator = fit(learn, method.name, rng=rng, **settings)
        after = replace_probs(held_out, calibrator.predict_proba(held_out))
        row, verdict = judgment(method.label, after, labels, baseline)
        yield EvaluatedMethod(row, calibrator.calibration_map, after, verdict)


def replace_probs(preds: Predictions, Q: Array) -> Predictions:
    """The same outcomes with other probabilities."""
    assert preds.y is not None  # labels, no votes
    return Predictions(preds.y, Q, cluster=preds.cluster)


def judgment(label: str, after: Predictions, labels: Array, baseline: int = -1) -> tuple[dict[str, Any], Verdict]:
    """The row of what a method made of the rows that it has not seen, and the verdict its p is from."""
    null_settings: dict[str, Any] = {} if after.cluster is None else {"null": "redraw"}
    verdict = test(after, "mcllo", baseline=baseline, min_prob=MIN_PROB, **null_settings)
    changed = after.P.argmax(axis=1)
    return {
        "method": label,
        "n": after.n,
        "p": float(verdict),
        "ECE": float(measure(after, "ece", bins=bins(after.n), interval=None)),
        "log loss": float(measure(after, "log_loss", interval=None)),
        "accuracy": float(np.mean(changed == after.y)),
        "changed": float(np.mean(changed != labels)),
    }, verdict


def bins(n: int) -> int:
    """The paper's number of bins, √n."""
    return math.ceil(math.sqrt(n))
