"""Wald intervals of the standard measures of a report, from standard errors of sums over rows or clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.json_files import strict_json
from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.reports.audit_result import StandardMeasure
from trueodds.resampling.intervals.normal import normal_interval, t_interval


@dataclass(frozen=True)
class WaldIntervals:
    """Wald intervals from standard errors: normal, or Student's t with clusters."""

    level: float  # confidence level
    degrees_of_freedom: float | None  # (effective) number of clusters minus one; None if rows are independent

    def interval(self, value: float, se: float) -> Interval | None:
        """Return the interval; None if the standard error is unknown, or 0 because there are too few rows."""
        if not np.isfinite(se) or se <= 0 or self.degrees_of_freedom == 0:
            return None
        return (
            normal_interval(value, se, self.level)
            if self.degrees_of_freedom is None
            else t_interval(value, se, self.degrees_of_freedom, self.level)
        )

    def measure(self, name: str, value: float, se: float, ideal: float | None) -> StandardMeasure:
        """Return a measure with its interval; `se` is its standard error, and the value is None if it is not finite."""
        interval = self.interval(value, se) if np.isfinite(value) else None
        return standard_measure(name, value, interval, ideal)


def standard_measure(name: str, value: float, interval: Interval | None, ideal: float | None) -> StandardMeasure:
    """Return a measure with an interval; the value is None if it is not finite."""
    entry = {"name": name, "value": strict_json(float(value)), "ideal": ideal}
    return StandardMeasure.from_dict({**entry, "interval": None if interval is None else interval.to_dict()})


def variance_of_sum(terms: Array, cluster: Array | None) -> float:
    """Return the variance of a sum of terms (n,) of mean 0, which are independent by row or by cluster (n,).

    With m rows or clusters it is m/(m − 1) times the sum of their squared totals; NaN for fewer than two.
    """
    if cluster is not None:
        _, unit = np.unique(cluster, return_inverse=True)
        terms = np.bincount(unit, terms)
    n_units = len(terms)
    return float((terms**2).sum()) * n_units / (n_units - 1) if n_units > 1 else float("nan")
