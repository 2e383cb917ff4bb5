"""Calibration errors of multiple-choice tasks in lm-evaluation-harness, before and after recalibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueodds.api.measure import measure
from trueodds.core.errors import InputError, install_command
from trueodds.io.answers import read_answers

try:
    from lm_eval.api.registry import register_aggregation, register_metric
except ModuleNotFoundError:
    raise InputError("TO350", "These metrics need lm-eval.", "no lm_eval", install_command("harness")) from None


def measure_options(items: Sequence[tuple[int, Sequence[float]]], estimator: str) -> float:
    """Estimate a calibration error from the correct option of each question and the log-likelihoods of its options.

    Parameters
    ----------
    items : sequence of (int, sequence of float)
        What a task yields for the metric `likelihood`.
    estimator : str
        Name of the estimator.

    Returns
    -------
    float
        The value. The confidence is the softmax over the options, without division by their lengths.
    """
    records = [{"logprobs": [float(x) for x in logs], "label": int(correct)} for correct, logs in items]
    return float(measure(read_answers(records).predictions, estimator, interval=None).value)


@register_aggregation("ece")
def ece(items: Sequence[tuple[int, Sequence[float]]]) -> float:
    """Return the expected calibration error of the chosen options, with 15 bins.

    Parameters
    ----------
    items : sequence of (int, sequence of float)
        As in `measure_options`.

    Returns
    -------
    float
        The error.
    """
    return measure_options(items, "ece")


@register_aggregation("ece_recalibrated")
def ece_recalibrated(items: Sequence[tuple[int, Sequence[float]]]) -> float:
    """Return the error that remains after temperature scaling; each fold is recalibrated by a fit to the others.

    Parameters
    ----------
    items : sequence of (int, sequence of float)
        As in `measure_options`.

    Returns
    -------
    float
        The error.
    """
    return measure_options(items, "ece_recalibrated")


def _return_items(items: Any) -> Any:
    return items


# For tasks whose `process_results` yields a pair of the correct option and the log-likelihoods under these names.
for _name in ("ece", "ece_recalibrated"):
    register_metric(metric=_name, higher_is_better=False, output_type="multiple_choice", aggregation=_name)(
        _return_items
    )
