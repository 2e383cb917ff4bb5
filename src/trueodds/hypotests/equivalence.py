"""Equivalence margins: whether the interval of an error lies within a margin, and margins too large for rare events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.results import Estimate, Verdict
from trueodds.core.settings import Range
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.hypotests.base import HypothesisTest
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.resampling.estimate import estimate_error
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally, lens_views

Margin = Annotated[float, Range(0, 1, closed="right")]


def error_to_compare(test: HypothesisTest, margin: float, lenses: Sequence[Lens]) -> Estimator:
    """Return the error of a test that is compared with the margin; raise InputError before any draws without one."""
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
            f"⟨margin={margin}⟩ with {test.name}",
            "Use consistency, whose statistic can be any error.",
        )
    if not error.is_in_probability_units:
        raise InputError(
            "TO205",
            f"A margin requires an error in probability units that is 0 under calibration, which {error.name} is not.",
            f"⟨margin={margin}⟩ with {error.name}",
            "Choose an error such as ece, rmsce or smece.",
        )
    return error


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
    """Return the verdict with the equivalence decision: within, beyond or undecided, from the interval of the error.

    The decision is that of `classify_interval`; without an interval it is undecided. The interval is that of
    `to.measure` with the same seed. If the margin is not exceeded, but at least half of the event rate, the note TN240
    says so.
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
        rate = EventRate.from_views(str(lens), lens_views(data, lens))
        if rate is not None and (note := rate.margin_note("equivalence margin", margin)) is not None:
            notes.append(note)
    return replace(verdict, settings=settings, notes=tuple(notes))


def classify_interval(low: float | None, high: float | None, margin: float) -> str:
    """Return "within" if the interval lies at or below the margin, "beyond" if it lies above it, and else "undecided".

    >>> classify_interval(0.01, 0.02, 0.02), classify_interval(0.021, 0.03, 0.02)
    ('within', 'beyond')
    >>> classify_interval(0.01, 0.03, 0.02), classify_interval(None, None, 0.02)
    ('undecided', 'undecided')
    """
    if low is None or high is None:
        return "undecided"
    if high <= margin:
        return "within"
    return "beyond" if low > margin else "undecided"


def _describe_decision(estimate: Estimate, margin: float, decision: str) -> str:
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


LARGEST_SHARE_OF_EVENT_RATE = 0.5  # share of the event rate from which a margin hides errors by a factor of two
MARGIN_TOLERANCE = 1e-12  # rounding error of a margin that equals half of the event rate


@dataclass(frozen=True)
class EventRate:
    """How often the events of a lens on classes are observed, to compare a margin with it.

    A margin of at least half of the event rate hides errors by a factor of two: a model that predicts half as many
    events as occur has an error of half of the event rate.

    >>> rare = EventRate(0.04)
    >>> print(rare.margin_note("equivalence margin", 0.05))
    [TN240] The equivalence margin of 0.05 is at least half of the rate of the rarer outcome, 4 %, so predictions that \
are wrong by a factor of two can lie within it. Choose a smaller one, or also bound the ratio o_e.
    >>> rare.margin_note("equivalence margin", 0.01) is None
    True
    """

    value: float  # of the rarer outcome of one event, or the mean event rate of several classes
    n_classes: int = 1  # number of events

    @classmethod
    def from_views(cls, lens_name: str, views: Sequence[View]) -> EventRate | None:
        """Return the event rate of the views of a lens; None for a lens on the confidence, on vectors, or a custom one.

        >>> EventRate.from_views("positive", [View(p=[0.9, 0.8, 0.6, 0.7], y=[1, 1, 1, 0])]).value
        0.25
        """
        if not is_lens_on_classes(lens_name) or any(view.joint or view.total <= 0 for view in views):
            return None
        rates = [float(weighted_sum(view.w, view.y) / view.total) for view in views]
        return cls.from_rate(rates[0]) if len(rates) == 1 else cls(sum(rates) / len(rates), len(rates))

    @classmethod
    def from_rate(cls, event_rate: float) -> EventRate:
        """Return the rate of the rarer outcome of one event."""
        return cls(min(event_rate, 1 - event_rate))

    def hides_factor_of_two(self, margin: float) -> bool:
        """Whether predictions that are wrong by a factor of two can have an error within the margin."""
        return 0 < LARGEST_SHARE_OF_EVENT_RATE * self.value <= margin + MARGIN_TOLERANCE

    def margin_note(self, margin_name: str, margin: float) -> Note | None:
        """Return the note TN240 if the margin is at least half of the event rate."""
        if not self.hides_factor_of_two(margin):
            return None
        rate_name = "rate of the rarer outcome" if self.n_classes == 1 else "mean event rate of the classes"
        return Note(
            "TN240",
            f"The {margin_name} of {margin:g} is at least half of the {rate_name},"
            f" {100 * self.value:.2g} %, so predictions that are wrong by a factor of two can lie within it. Choose a"
            " smaller one, or also bound the ratio o_e.",
        )


def is_lens_on_classes(lens_name: str) -> bool:
    """Whether a lens examines the events of classes, and not the confidence or whole vectors.

    >>> is_lens_on_classes("class:cat"), is_lens_on_classes("confidence")
    (True, False)
    """
    return lens_name in ("positive", "classwise") or lens_name.startswith("class:")
