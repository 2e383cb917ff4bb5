"""Container of the estimates and tests of an audit, from which its report is written."""

from __future__ import annotations

from dataclasses import dataclass, field

from trueodds.core.errors import Note
from trueodds.core.results import Estimate, Verdict
from trueodds.reports.subgroups import AuditGroups
from trueodds.reports.wald_intervals import StandardMeasure


@dataclass(frozen=True)
class AuditResults:
    """Estimates, tests and notes, as `analyze_rows` and `analyze_tally` return them."""

    scores: list[Estimate]  # Brier score and log loss
    errors: list[Estimate]  # ECE by lens, the default lens first
    tests: list[
        Verdict
    ]  # the family-wise test first, then by lens in the order of the errors; a single lens has one test
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
