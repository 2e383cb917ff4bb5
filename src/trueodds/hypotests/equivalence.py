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
from trueodds.hypotests.event_rates import EventRate
from trueodds.lenses.base import Lens
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.measure import estimate_error
from trueodds.tallies.tally import Tally

Margin = Annotated[float, Range(0, 1, closed="right")]
SQUARED_ERROR_FORMS = (("mmce", "unbiased"), ("mmce", "weighted"))


def error_to_compare(test: HypothesisTest, margin: float, lenses: Sequence[Lens]) -> Estimator:
    """The estimator compared with the margin; raises InputError before any draws if there is none."""
    if len(lenses) != 1:
        raise InputError(
            "TO205", "A margin requires a single lens.", f"margin with {len(lenses)} lenses", "Pass one lens."
        )
    error = test.error_estimator()
    if error is None:
        raise InputError(
            "TO205",
            f"The statistic of {test.name} is not an error with a confidence interval, so it has no equivalence"
            " margin.",
            f"margin={margin} with {test.name}",
            "Use consistency, whose statistic can be any error.",
        )
    if not is_in_probability_units(error):
        raise InputError(
            "TO205",
            f"A margin requires an error in probability units that is 0 under calibration, which {error.name} is not.",
            f"margin={margin} with {error.name}",
            "Choose an error such as ece, rmsce or smece.",
        )
    return error


def is_in_probability_units(error: Estimator) -> bool:
    """Whether the error is in probability units and 0 for a calibrated model."""
    if error.norm_power != 1 or error.best_value != 0 or isinstance(error, ProperScore):
        return False
    # Means over pairs of rows estimate a square and do not take the root.
    return error.name != "skce" and (error.name, getattr(error, "form", "biased")) not in SQUARED_ERROR_FORMS


def add_equivalence_decision(
    margin: float,
    verdict: Verdict,
    test: HypothesisTest,
    error: Estimator,
    data: Predictions | Tally,
    lens: Lens,
    level: float,
    rng: np.random.Generator,
) -> Verdict:
    """Add the equivalence decision to the verdict: within, beyond or undecided, from the interval of the error.

    Within: the interval lies at or below the margin. Beyond: it lies above the margin. The interval is that of
    `to.measure` with the same seed. Without an interval the decision is undecided. The note TN240 says that a margin
    which is not exceeded is at least half of the event rate.
    """
    aggregate = getattr(test, "aggregate", None) or lens.aggregate
    estimate = estimate_error(data, error, lens, aggregate, IntervalSpec(level=level), rng)
    low, high = (None, None) if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
    decision = classify_interval(low, high, margin)
    settings = dict(verdict.settings) | {
        "margin": float(margin), "decision": decision, "low": low, "high": high, "level": level,
    }  # fmt: skip
    notes = [*verdict.notes, Note("TN230", _describe_decision(estimate, margin, decision))]
    if estimate.interval is not None and decision != "beyond":
        views = data.views(lens) if isinstance(data, Tally) else lens.views(data)
        rate = EventRate.from_views(str(lens), views)
        if rate is not None and (note := rate.margin_note("equivalence margin", margin)) is not None:
            notes.append(note)
    return replace(verdict, settings=settings, notes=tuple(notes))


def classify_interval(low: float | None, high: float | None, margin: float) -> str:
    """Position of an interval relative to the margin.

    >>> classify_interval(0.01, 0.02, 0.02), classify_interval(0.021, 0.03, 0.02)
    ('within', 'beyond')
    >>> classify_interval(0.01, 0.03, 0.02), classify_interval(None, None, 0.02)
    ('undecided', 'undecided')
    """
    if low is None or high is None:
        return "undecided"
    return "within" if high <= margin else "beyond" if low > margin else "undecided"


def _describe_decision(estimate: Estimate, margin: float, decision: str) -> str:
    """The decision in one or two sentences."""
    if estimate.interval is None:
        reason = next(
            (note.text for note in estimate.notes if note.code in ("TN201", "TN402")), "There is no interval."
        )
        return f"No decision about the equivalence margin of {margin:g} for {estimate.estimator} is possible. {reason}"
    interval_text = f"The interval of {estimate.estimator}, {estimate.interval},"
    if decision == "within":
        return f"{interval_text} lies at or below the equivalence margin of {margin:g}, whatever the p-value is."
    if decision == "beyond":
        return f"{interval_text} lies above the equivalence margin of {margin:g}."
    return f"{interval_text} contains the equivalence margin of {margin:g}. More rows are needed for a decision."
