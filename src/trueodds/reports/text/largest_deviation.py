"""Select the bin of a reliability diagram that contributes most to the calibration error, and describe it in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trueodds.core.formatting import format_distinct_percents
from trueodds.reports.audit_sections import AuditData

MIN_BIN_ROWS = 10  # smallest number of rows of a bin that may be selected


class Bin(NamedTuple):
    """A bin of a reliability diagram."""

    n: int
    mean_prediction: float
    outcome_rate: float
    outside: bool  # whether the outcome rate is outside the consistency bar

    @property
    def deviation(self) -> float:
        """Mean prediction minus outcome rate."""
        return self.mean_prediction - self.outcome_rate


def read_bins(table: Mapping[str, Sequence[Any]]) -> list[Bin]:
    """Return the bins of the table of a reliability diagram."""
    columns = (table[name] for name in ("n", "mean_prediction", "outcome_rate", "outside"))
    return [Bin(*row) for row in zip(*columns, strict=True)]


def largest_deviation(bins: Sequence[Bin], center: float = 0.0, sign: int = 0) -> Bin | None:
    """Return the bin outside its consistency bar with the largest share of the calibration error; None without one.

    With `sign` 1 only bins are considered whose mean prediction is too far above or too far below the `center`, as in
    overconfident predictions; with −1 only those in which it is not far enough.

    >>> bins = [Bin(900, 0.01, 0.02, True), Bin(50, 0.9, 0.6, True), Bin(99, 0.5, 0.1, False)]
    >>> largest_deviation(bins), largest_deviation(bins, 0.1, -1)
    (Bin(n=50, mean_prediction=0.9, outcome_rate=0.6, outside=True), None)
    """
    candidates = [bin_ for bin_ in bins if bin_.outside and bin_.n >= MIN_BIN_ROWS]
    if sign:
        candidates = [bin_ for bin_ in candidates if sign * (bin_.mean_prediction - center) * bin_.deviation > 0]
    return max(candidates, key=lambda bin_: bin_.n * abs(bin_.deviation), default=None)


def describe_bin(bin_: Bin | None, data: AuditData) -> str:
    """Return the mean prediction and the outcome rate of a bin in words; empty without a bin, and for votes.

    >>> data = AuditData(source="", n=9999, k=2, kind="classes", event_rate=0.48)
    >>> describe_bin(Bin(986, 0.011, 0.122, True), data)
    '986 rows predicted at 1.1 % on average have an event rate of 12.2 %'
    """
    if bin_ is None or data.votes:
        return ""
    predicted, observed = format_distinct_percents(bin_.mean_prediction, bin_.outcome_rate)
    if data.is_binary:
        return f"{bin_.n:,} rows predicted at {predicted} on average have an event rate of {observed}"
    return f"{bin_.n:,} rows with mean confidence {predicted} are right {observed} of the time"
