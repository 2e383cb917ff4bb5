"""The results of an audit: its estimates and tests, and the standard measures of clinical and credit-risk reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scipy.special import ndtri

from trueodds.core.errors import Note
from trueodds.core.json_files import strict_json
from trueodds.core.results import Estimate, Interval, Verdict
from trueodds.reports.subgroups import AuditGroups


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

        The standard error is that of a normal interval of the same width. This is exact for a Wald interval of
        independent rows, and an approximation for Student's t and for intervals from resamples.
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
class AuditResults:
    """Estimates, tests and notes, as `analyze_rows` and `analyze_tally` return them."""

    scores: list[Estimate]  # Brier score and log loss
    errors: list[Estimate]  # ECE by lens, the default lens first
    # The family-wise test first, then by lens in the order of the errors; a single lens has one test.
    tests: list[Verdict]
    # Mean observed − mean predicted: of the second of two classes, else of the predicted class.
    calibration_in_the_large: float | None
    calibration_in_the_large_z: float | None  # the same in standard errors under the null hypothesis
    resamples: int  # null draws behind the p-values
    notes: list[Note]  # on the data and on what was not tested
    groups: AuditGroups = field(default_factory=AuditGroups)  # the subgroups; empty without group columns
    standard_measures: tuple[StandardMeasure, ...] = ()  # calibration-in-the-large, calibration slope, …

    @property
    def default_test(self) -> Verdict:
        """The test through the default lens: the one after that of the family, or the only one."""
        return self.tests[min(1, len(self.tests) - 1)]
