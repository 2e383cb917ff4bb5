"""The equivalence decision: whether the interval of an error lies within an equivalence margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Estimate, Verdict
from trueodds.core.settings import Range
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator, ProperScore
from trueodds.hypotests.base import HypothesisTest
from trueodds.lenses.base import Lens
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.measure import estimate_error
from trueodds.tallies.tally import Tally

Margin = Annotated[float, Range(0, 1, closed="right")]
SQUARED = (("mmce", "unbiased"), ("mmce", "weighted"))


def error_to_compare(test: HypothesisTest, margin: float, lenses: Sequence[Lens]) -> Estimator:
    """The error that is compared with the margin; refused where there is none, before anything is drawn."""
    if len(lenses) != 1:
        raise InputError(
            "TO205", "A margin is judged one lens at a time.", f"margin with {len(lenses)} lenses", "Name one lens."
        )
    error = test.error()
    if error is None:
        raise InputError(
            "TO205",
            f"The statistic of {test.name} is no error with an interval, so no margin can be compared with it.",
            f"margin={margin} with {test.name}",
            "Use consistency, whose statistic may be any error.",
        )
    if not _is_probability(error):
        raise InputError(
            "TO205",
            f"A margin is an error in units of probability that is 0 for a calibrated model, and {error.name} is none.",
            f"margin={margin} with {error.name}",
            "Choose an error such as ece, rmsce or smece.",
        )
    return error


def _is_probability(error: Estimator) -> bool:
    """Whether it is an error in units of probability, 0 for a calibrated model."""
    if error.power != 1 or error.best_value != 0 or isinstance(error, ProperScore):
        return False
    # Means over pairs of rows are squares, of which they take no root.
    return error.name != "skce" and (error.name, getattr(error, "form", "biased")) not in SQUARED


def verdict_by_margin(
    margin: float,
    verdict: Verdict,
    test: HypothesisTest,
    error: Estimator,
    rows: Predictions | Tally,
    lens: Lens,
    level: float,
    rng: np.random.Generator,
) -> Verdict:
    """The verdict with its decision: within, beyond or undecided, by the interval of the error and not by p.

    Within: the whole interval lies at or below the margin. Beyond: the whole interval lies above it. The interval is
    the one that `measure` gives with the same seed; where there is none nothing is decided.
    """
    aggregate = getattr(test, "aggregate", None) or lens.aggregate
    estimate = estimate_error(rows, error, lens, aggregate, IntervalSpec(level=level), rng)
    low, high = (None, None) if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
    decision = decide(low, high, margin)
    settings = dict(verdict.settings) | {
        "margin": float(margin), "decision": decision, "low": low, "high": high, "level": level,
    }  # fmt: skip
    return replace(
        verdict,
        settings=settings,
        notes=(*verdict.notes, Note("TN230", _describe_decision(estimate, margin, decision))),
    )


def decide(low: float | None, high: float | None, margin: float) -> str:
    """Where an interval lies.

    >>> decide(0.01, 0.02, 0.02), decided(0.021, 0.03, 0.02), decided(0.01, 0.03, 0.02), decided(None, None, 0.02)
    ('within', 'beyond', 'undecided', 'undecided')
    """
    if low is None or high is None:
        return "undecided"
    return "within" if high <= margin else "beyond" if low > margin else "undecided"


def _describe_decision(result: Estimate, margin: float, decision: str) -> str:
    if result.interval is None:
        why = next((note.text for note in result.notes if note.code in ("TN201", "TN402")), "There is no interval.")
        return f"Whether {result.estimator} exceeds the margin of {margin:g} cannot be told. {why}"
    where = f"The interval of {result.estimator}, {result.interval},"
    if decision == "within":
        return f"{where} ends at or below the margin of {margin:g}: what error there may be is small enough, whatever p is."
    if decision == "beyond":
        return f"{where} begins above the margin of {margin:g}: the error is larger than was said to matter."
    return (
        f"{where} holds the margin of {margin:g}: these rows cannot tell on which side the error lies; more rows can."
    )
