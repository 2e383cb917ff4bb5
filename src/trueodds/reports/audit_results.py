"""The results of an audit: its estimates and tests, and the standard measures of clinical and credit-risk reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from trueodds.core.errors import Note
from trueodds.core.results import Estimate, Verdict
from trueodds.reports.audit_result import StandardMeasure
from trueodds.reports.subgroups import AuditGroups


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
