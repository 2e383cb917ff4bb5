"""Evaluation of every calibrator on held-out rows of real predictions."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import trueodds as to
from benchmarks.real_data import Split
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.auto import AutoSpec
from trueodds.calibrators.base import CalibratorSpec
from trueodds.calibrators.cross_validation import accuracy, count_label_flips, mean_and_standard_error, row_losses
from trueodds.calibrators.uniform_mixture import mix_with_uniform, uniform_share
from trueodds.core.errors import InputError


@dataclass(frozen=True)
class Line:
    """Result of one calibrator on the evaluation rows."""

    method: str
    log_loss: float  # after mixing with the uniform distribution
    endless: bool  # whether it is infinite without mixing
    brier: float
    debiased: float  # signed debiased L2 error of the confidence
    pvalue: float  # consistency of the confidence
    accuracy: float
    flips: int
    seconds: float
    parameters: str
    per_row: np.ndarray  # log loss of each row


def calibrator_specs(split: Split) -> Iterator[tuple[str, CalibratorSpec]]:
    """Every calibrator with its default settings, and its variant for logits if it has one."""
    for name in CALIBRATORS.names():
        spec_type = CALIBRATORS.load(name)
        if spec_type.two_classes and split.fit.k > 2:
            continue
        settings: dict[str, Any] = {"target": split.test.P} if name == "prior_shift" else {}
        yield name, CALIBRATORS.make(name, settings)
        if split.fit.logits is not None and CALIBRATORS.has_setting(name, "logits"):
            yield f"{name}, logits", CALIBRATORS.make(name, settings | {"logits": True})


def lines(split: Split) -> list[Line]:
    """One result per calibrator, starting with the identity."""
    results = []
    for name, spec in calibrator_specs(split):
        start = time.perf_counter()
        try:
            calibrator = to.fit(split.fit, spec)
        except InputError as problem:
            print(f"  {name}: {problem}")
            continue
        elapsed = time.perf_counter() - start
        on_logits = calibrator.calibration_map.logits
        Q = calibrator.predict_proba(split.test.logits if on_logits else split.test.p, logits=on_logits)
        results.append(
            evaluate(
                name,
                Q,
                split,
                elapsed,
                chosen(calibrator) if isinstance(spec, AutoSpec) else calibrator.calibration_map.describe(),
            )
        )
    return results


def chosen(calibrator: Any) -> str:
    """Description of the map that `auto` applies."""
    return (
        f"{calibrator.method}, {calibrator.calibration_map.describe()}"
        if calibrator.method != "identity"
        else "no recalibration could be confirmed"
    )


def evaluate(name: str, Q: np.ndarray, split: Split, seconds: float, parameters: str) -> Line:
    """Evaluate recalibrated probabilities."""
    test = split.test
    P, Y, w = test.P, test.Y, test.w
    blend = mix_with_uniform(Q, uniform_share(split.fit.n))
    log_loss = row_losses(blend, Y)[0]
    preds = to.Predictions(test.y, Q, classes=test.classes, sum_tolerance=1e-6)
    lens = "confidence"
    return Line(
        name,
        float(log_loss.mean()),
        bool((Q[np.arange(test.n), test.y] == 0).any()),
        float(row_losses(Q, Y)[1].mean()),
        to.measure(preds, "debiased_l2", lens=lens, interval=None).value,
        to.test(preds, "consistency", lens=lens).pvalue,
        accuracy(Q, Y, w),
        count_label_flips(P, Q),
        seconds,
        parameters,
        log_loss,
    )


def against(one: Line, other: Line) -> tuple[float, float]:
    """Difference in log loss, `one` minus `other`, and its paired standard error."""
    d = one.per_row - other.per_row
    return mean_and_standard_error(d, np.ones(len(d)))


def lowest_loss(lines: list[Line]) -> Line:
    """The calibrator with the lowest log loss on the evaluation rows, except `auto` and the identity."""
    return min((line for line in lines if line.method not in ("auto", "identity")), key=lambda line: line.log_loss)


def z(one: Line, other: Line) -> float:
    """The difference in standard errors; 0 if both are equal."""
    mean, se = against(one, other)
    return 0.0 if mean == 0 else mean / se if se > 0 else math.copysign(math.inf, mean)
