"""Wald intervals of the standard measures of a report, from standard errors of sums over rows or clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from trueodds.core.json_files import strict_json
from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.resampling.intervals.normal import normal_interval, t_interval


@dataclass(frozen=True)
class StandardMeasure:
    """A standard measure, such as the calibration slope, with its interval and the value of a calibrated model."""

    name: str  # such as "calibration_slope", as in the JSON
    value: float | None  # None if undefined on these rows
    interval: Interval | None
    ideal: float | None = None  # value of a calibrated model; None if it has no such value, as for the AUC

    def to_dict(self) -> dict[str, Any]:
        """Return the measure as a JSON object."""
        interval = None if self.interval is None else self.interval.to_dict()
        return {"name": self.name, "value": strict_json(self.value), "interval": interval, "ideal": self.ideal}

    def distance_in_se(self, point: float) -> float:
        """Return the difference of the value from a point, in standard errors; 0 without a value or an interval.

        The standard error is that of a normal interval of the same width. With clusters this is an approximation,
        because the interval is Student's t.
        """
        if self.interval is None or self.value is None:
            return 0.0
        half_width = (self.interval.high - self.interval.low) / 2
        z = float(ndtri((1 + self.interval.level) / 2))
        return (self.value - point) * z / half_width if half_width > 0 else 0.0


def measures_by_name(measures: tuple[StandardMeasure, ...]) -> Mapping[str, StandardMeasure]:
    """Return the measures by name."""
    return {measure.name: measure for measure in measures}


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
        if not np.isfinite(value):
            return StandardMeasure(name, None, None, ideal)
        return StandardMeasure(name, value, self.interval(value, se), ideal)


def variance_of_sum(terms: Array, cluster: Array | None) -> float:
    """Return the variance of a sum of terms (n,) of mean 0, which are independent by row or by cluster (n,).

    With m rows or clusters it is m/(m − 1) times the sum of their squared totals; NaN for fewer than two.
    """
    if cluster is not None:
        _, unit = np.unique(cluster, return_inverse=True)
        terms = np.bincount(unit, terms)
    n_units = len(terms)
    return float((terms**2).sum()) * n_units / (n_units - 1) if n_units > 1 else float("nan")
