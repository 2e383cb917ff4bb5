"""Benchmark of the calibrators: each is fitted on some rows of real predictions and evaluated on others."""

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
class Evaluation:
    """Results of one calibrator on the evaluation rows of a data set."""

    method: str
    log_loss: float  # mean of `row_log_loss`
    is_infinite: bool  # whether the log loss is infinite without mixing
    brier: float
    debiased: float  # signed debiased L2 error of the confidence
    pvalue: float  # of the consistency test of the confidence
    accuracy: float
    flips: int  # number of rows whose most probable class changed
    seconds: float  # wall time of the fit
    parameters: str  # description of what was fitted
    row_log_loss: np.ndarray  # (n,) log loss of each row, after mixing with the uniform distribution


def evaluate_calibrators(split: Split) -> list[Evaluation]:
    """Return the evaluation of every calibrator, starting with the identity; one that cannot be fitted is printed."""
    evaluations = []
    for name, spec in calibrator_specs(split):
        start = time.perf_counter()
        try:
            calibrator = to.fit(split.fit, spec)
        except InputError as problem:
            print(f"  {name}: {problem}")
            continue
        seconds = time.perf_counter() - start
        on_logits = calibrator.calibration_map.logits
        Q = calibrator.predict_proba(split.test.logits if on_logits else split.test.p, logits=on_logits)
        is_auto = isinstance(spec, AutoSpec)
        parameters = describe_selection(calibrator) if is_auto else calibrator.calibration_map.describe()
        evaluations.append(evaluate_probabilities(name, Q, split, seconds, parameters))
    return evaluations


def calibrator_specs(split: Split) -> Iterator[tuple[str, CalibratorSpec]]:
    """Yield every calibrator by name with its default settings, and its variant for logits if it has one."""
    for name in CALIBRATORS.names():
        spec_type = CALIBRATORS.load(name)
        if spec_type.two_classes and split.fit.k > 2:
            continue
        settings: dict[str, Any] = {"target": split.test.P} if name == "prior_shift" else {}
        yield name, CALIBRATORS.make(name, settings)
        if split.fit.logits is not None and CALIBRATORS.has_setting(name, "logits"):
            yield f"{name}, logits", CALIBRATORS.make(name, settings | {"logits": True})


def describe_selection(calibrator: Any) -> str:
    """Describe the calibrator that `auto` selected, and its parameters."""
    if calibrator.method == "identity":
        return "no recalibration could be confirmed"
    return f"{calibrator.method}, {calibrator.calibration_map.describe()}"


def evaluate_probabilities(name: str, Q: np.ndarray, split: Split, seconds: float, parameters: str) -> Evaluation:
    """Evaluate the recalibrated probabilities Q (n, K) of the evaluation rows."""
    test = split.test
    mixture = mix_with_uniform(Q, uniform_share(split.fit.n))
    row_log_loss = row_losses(mixture, test.Y)[0]
    preds = to.Predictions(test.y, Q, classes=test.classes, sum_tolerance=1e-6)
    return Evaluation(
        method=name,
        log_loss=float(row_log_loss.mean()),
        is_infinite=bool((Q[np.arange(test.n), test.y] == 0).any()),
        brier=float(row_losses(Q, test.Y)[1].mean()),
        debiased=to.measure(preds, "debiased_l2", lens="confidence", interval=None).value,
        pvalue=to.test(preds, "consistency", lens="confidence").pvalue,
        accuracy=accuracy(Q, test.Y, test.w),
        flips=count_label_flips(test.P, Q),
        seconds=seconds,
        parameters=parameters,
        row_log_loss=row_log_loss,
    )


def log_loss_difference(evaluation: Evaluation, reference: Evaluation) -> tuple[float, float]:
    """Return the mean difference in log loss, `evaluation` minus `reference`, and its paired standard error."""
    differences = evaluation.row_log_loss - reference.row_log_loss
    return mean_and_standard_error(differences, np.ones(len(differences)))


def z_statistic(evaluation: Evaluation, reference: Evaluation) -> float:
    """Return the difference in log loss divided by its standard error; 0 if both are equal."""
    mean, standard_error = log_loss_difference(evaluation, reference)
    if mean == 0:
        return 0.0
    return mean / standard_error if standard_error > 0 else math.copysign(math.inf, mean)


def lowest_log_loss(evaluations: list[Evaluation]) -> Evaluation:
    """Return the calibrator with the lowest log loss on the evaluation rows, except `auto` and the identity."""
    single_methods = (evaluation for evaluation in evaluations if evaluation.method not in ("auto", "identity"))
    return min(single_methods, key=lambda evaluation: evaluation.log_loss)
