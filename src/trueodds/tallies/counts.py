"""How many rows are special? Counts of exact zeros, ones, ties and the like, which add."""

from __future__ import annotations

from dataclasses import dataclass, fields

from trueodds.core.errors import Note

EXTREMES = ("excess", "worst_sum")


@dataclass(frozen=True, slots=True)
class Counts:
    """Facts about rows, counted; what Predictions put into notes, in a form that adds.

    >>> both = Counts(zeros=2, excess=1e-7) + Counts(zeros=1, excess=3e-7)
    >>> both.zeros, both.excess
    (3, 3e-07)
    """

    zeros: int = 0  # probabilities that are exactly 0, over all classes
    ones: int = 0
    above: int = 0  # probabilities above 1 by rounding
    inexact_sums: int = 0  # rows off from sum 1 by more than the rounding of their dtype
    ties: int = 0  # rows with several largest probabilities
    true_zeros: int = 0  # rows where something came that was said to be impossible
    voted: int = 0  # rows whose outcome is votes
    excess: float = 0.0  # the largest excess over 1
    worst_sum: float = 0.0  # the largest distance from sum 1

    def __add__(self, other: Counts) -> Counts:
        merged = {}
        for field in fields(self):
            a, b = getattr(self, field.name), getattr(other, field.name)
            merged[field.name] = max(a, b) if field.name in EXTREMES else a + b
        return Counts(**merged)

    def notes(self) -> tuple[Note, ...]:
        """The notes that Predictions of all rows would carry, and what the tally had to leave out."""
        notes = []
        if self.above:
            are = "value is" if self.above == 1 else "values are"
            notes.append(
                Note(
                    "TN102",
                    f"{self.above:,} {are} above 1 by rounding (at most {self.excess:.1e}); kept as given, binned as 1.",
                )
            )
        if self.inexact_sums:
            rows = "row sums" if self.inexact_sums == 1 else "rows sum"
            notes.append(
                Note("TN101", f"{self.inexact_sums:,} {rows} to 1 only within {self.worst_sum:.1e}; used as given.")
            )
        return tuple(notes)


COUNTS = tuple(field.name for field in fields(Counts))
