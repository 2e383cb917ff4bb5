"""Counts of special rows, such as rows with tied or zero probabilities, from which a tally makes its notes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from trueodds.core.errors import Note

# Fields of `SpecialRowCounts` that are merged by their maximum. The other fields are added.
MAXIMUM_FIELDS = ("excess", "worst_sum")


@dataclass(frozen=True, slots=True)
class SpecialRowCounts:
    """Counts of special rows, such as rows with tied probabilities. The counts of two tallies are merged with `+`.

    >>> both = SpecialRowCounts(zeros=2, excess=1e-7) + SpecialRowCounts(zeros=1, excess=3e-7)
    >>> both.zeros, both.excess
    (3, 3e-07)
    """

    zeros: int = 0  # probabilities that are exactly 0, over all classes
    ones: int = 0  # probabilities that are exactly 1
    above: int = 0  # probabilities above 1 by rounding
    inexact_sums: int = 0  # rows whose sum differs from 1 by more than the rounding of their dtype
    ties: int = 0  # rows with several largest probabilities
    true_zeros: int = 0  # rows with an observed outcome of predicted probability 0
    voted: int = 0  # rows whose outcome is votes
    excess: float = 0.0  # largest excess of a probability over 1
    worst_sum: float = 0.0  # largest difference of the sum of a row from 1

    def __add__(self, other: SpecialRowCounts) -> SpecialRowCounts:
        merged = {}
        for field in fields(self):
            a, b = getattr(self, field.name), getattr(other, field.name)
            merged[field.name] = max(a, b) if field.name in MAXIMUM_FIELDS else a + b
        return SpecialRowCounts(**merged)

    def notes(self) -> tuple[Note, ...]:
        """Notes on probabilities above 1 and on sums other than 1, which are kept as given."""
        notes = []
        if self.above:
            subject = "value is" if self.above == 1 else "values are"
            text = (
                f"{self.above:,} {subject} above 1 by rounding (at most {self.excess:.1e}); kept as given, binned as 1."
            )
            notes.append(Note("TN102", text))
        if self.inexact_sums:
            subject = "row has a sum that deviates" if self.inexact_sums == 1 else "rows have sums that deviate"
            text = (
                f"{self.inexact_sums:,} {subject} from 1 by up to {self.worst_sum:.1e}; the values are used as given."
            )
            notes.append(Note("TN101", text))
        return tuple(notes)


COUNT_FIELDS = tuple(field.name for field in fields(SpecialRowCounts))  # names of all fields
