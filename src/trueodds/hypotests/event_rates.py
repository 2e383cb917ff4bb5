"""Compare an equivalence margin with the event rate: for rare events, a margin may hide errors by a factor of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueodds.core.errors import Note
from trueodds.lenses.view import View

# A model that predicts half as many events as occur has an error of half of the event rate.
LARGEST_SHARE_OF_EVENT_RATE = 0.5
TOLERANCE = 1e-12  # of a margin that equals half of the event rate


@dataclass(frozen=True)
class EventRate:
    """How often the events of a lens on classes are observed.

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
        rates = [float(view.w @ view.y / view.total) for view in views]
        return cls.from_rate(rates[0]) if len(rates) == 1 else cls(sum(rates) / len(rates), len(rates))

    @classmethod
    def from_rate(cls, event_rate: float) -> EventRate:
        """Return the rate of the rarer outcome of one event."""
        return cls(min(event_rate, 1 - event_rate))

    def hides_factor_of_two(self, margin: float) -> bool:
        """Whether predictions that are wrong by a factor of two can have an error within the margin."""
        return 0 < LARGEST_SHARE_OF_EVENT_RATE * self.value <= margin + TOLERANCE

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
