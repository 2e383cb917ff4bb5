"""The bin of a reliability diagram that contributes most to the calibration error, and its rates in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trueodds.reports.text.formatting import format_distinct_percents, is_binary

MIN_BIN_ROWS = 10  # of a bin that is named


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
    """Return the bin outside its consistency bar that contributes most to the error; None without one.

    With `sign` 1 its mean prediction is further from the `center` than its outcome rate, as in overconfident
    predictions, and with −1 it is closer.

    >>> bins = [Bin(900, 0.01, 0.02, True), Bin(50, 0.9, 0.6, True), Bin(99, 0.5, 0.1, False)]
    >>> largest_deviation(bins), largest_deviation(bins, 0.1, -1)
    (Bin(n=50, mean_prediction=0.9, outcome_rate=0.6, outside=True), None)
    """
    candidates = (
        one
        for one in bins
        if one.outside
        and one.n >= MIN_BIN_ROWS
        and (not sign or sign * (one.mean_prediction - center) * one.deviation > 0)
    )
    return max(candidates, key=lambda one: one.n * abs(one.deviation), default=None)


def describe_bin(one: Bin | None, data: Mapping[str, Any]) -> str:
    """Return the mean prediction and the outcome rate of a bin in words; empty without a bin, and for votes.

    >>> describe_bin(Bin(986, 0.011, 0.122, True), {"event_rate": 0.48})
    '986 rows predicted at 1.1 % on average have an event rate of 12.2 %'
    """
    if one is None or data.get("votes"):
        return ""
    predicted, observed = format_distinct_percents(one.mean_prediction, one.outcome_rate)
    if is_binary(data):
        return f"{one.n:,} rows predicted at {predicted} on average have an event rate of {observed}"
    return f"{one.n:,} rows with mean confidence {predicted} are right {observed} of the time"
