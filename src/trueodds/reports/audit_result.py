"""The typed result of an audit: its sections with named fields, and every judgement on them, made once.

The sentence of the verdict, the summary, the tables, the page and the methods paragraph only read these judgements, so
that they cannot contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from trueodds.core.errors import Note
from trueodds.hypotests.group_results import UnexaminedGroup
from trueodds.reports.audit_sections import (
    MIN_ROWS_FOR_VERDICT,
    MIN_SHARE_IN_THE_LARGE,
    MIN_Z_IF_REJECTED,
    MIN_Z_UNLESS_REJECTED,
    SLIGHT_GAP,
    SLIGHT_RATIO,
    SLIGHT_SLOPE,
    AmongGroups,
    AuditData,
    AuditDecisions,
    AuditDiagram,
    AuditGap,
    AuditGroup,
    AuditMeasure,
    AuditPeople,
    AuditRecalibration,
    AuditTest,
    AuditVerdict,
    Section,
    StandardMeasure,
)


class AuditResult(Section):
    """An audit in the schema ``trueodds.audit/1``, of which every report is a view.

    The measures begin with the proper scores, and the tests with the family-wise test unless a single lens is tested.
    """

    schema: str = "trueodds.audit/1"
    version: str
    versions: Mapping[str, str] | None = None
    data: AuditData
    verdict: AuditVerdict
    measures: tuple[AuditMeasure, ...]
    standard_measures: tuple[StandardMeasure, ...] = ()
    tests: tuple[AuditTest, ...]
    recalibration: AuditRecalibration | None = None
    decisions: AuditDecisions | None = None
    people: AuditPeople | None = None
    groups: tuple[AuditGroup, ...] = ()
    among_groups: AmongGroups | None = None
    diagrams: tuple[AuditDiagram, ...] = ()
    settings: Mapping[str, Any] | None = None
    notes: tuple[Note, ...] = ()

    @cached_property
    def standard(self) -> Mapping[str, StandardMeasure]:
        """The standard measures by name."""
        return {measure.name: measure for measure in self.standard_measures}

    @cached_property
    def default_error(self) -> AuditMeasure | None:
        """The expected calibration error through the default lens, which comes first."""
        return next((measure for measure in self.measures if measure.estimator == "ece"), None)

    @cached_property
    def default_test(self) -> AuditTest | None:
        """The test through the default lens."""
        lens = None if self.default_error is None else self.default_error.lens
        return next((test for test in self.tests if test.lens == lens), None)

    @property
    def is_default_test_significant(self) -> bool:
        """Whether the test through the default lens rejects; without one, that of the family."""
        if self.default_test is None or self.default_test.pvalue is None:
            return self.verdict.is_test_significant
        return self.default_test.pvalue <= self.verdict.alpha

    @property
    def is_default_error_established(self) -> bool:
        """Whether the test through the default lens rejects and its error is larger than its noise floor."""
        is_above_noise = self.default_error is None or self.default_error.is_above_noise
        return self.is_default_test_significant and is_above_noise

    @cached_property
    def state(self) -> str:
        """The state of calibration in a few words.

        If the family-wise test rejects, or if an outcome of predicted probability 0 was observed, it is the direction:
        a reversed ranking, else the level, else the spread, and `miscalibrated` if the data show none of them.
        Otherwise it is `no evidence`, `inconclusive` if other facts leave it open, `too few rows`, or `not tested` if
        no p-value could have been small enough.
        """
        if self.data.true_class_zeros > 0 or self.verdict.is_test_significant:
            return "reversed" if self.spread == "reversed" else self.level or self.spread or "miscalibrated"
        if not self.verdict.is_testable:
            return "not tested"
        if self.data.n_units < MIN_ROWS_FOR_VERDICT:
            return "too few rows"
        return "inconclusive" if self.has_doubts else "no evidence"

    @property
    def min_z(self) -> float:
        """Standard errors that a direction must exceed: 2 if the test through the default lens rejects, else 3."""
        return MIN_Z_IF_REJECTED if self.is_default_test_significant else MIN_Z_UNLESS_REJECTED

    @cached_property
    def level(self) -> str | None:
        """The direction of calibration-in-the-large if calibration is rejected; None if the data show none.

        It is `too high` or `too low` for two classes, else `overconfident` or `underconfident`. The difference of the
        means must be at least a third of the calibration error, because otherwise errors of both signs cancel, and the
        intervals of the standard measures of the same deviation must exclude the values of a calibrated model.
        """
        if not self.verdict.is_test_significant or self.default_error is None:
            return None
        mean, z = self.verdict.in_the_large
        error = self.default_error.value if self.default_error.debiased is None else self.default_error.debiased
        names = ("calibration_intercept", "calibration_in_the_large", "observed_to_expected")
        measures = [self.standard[name] for name in names if name in self.standard]
        is_open = any(measure.interval is not None and not measure.excludes_ideal for measure in measures)
        if is_open or z < self.min_z or abs(mean) < MIN_SHARE_IN_THE_LARGE * (error or 0.0):
            return None
        high, low = ("too high", "too low") if self.data.is_binary else ("overconfident", "underconfident")
        return high if mean < 0 else low

    @cached_property
    def spread(self) -> str | None:
        """What the calibration slope shows if calibration is rejected: `too extreme`, `too moderate` or `reversed`."""
        slope = self.standard.get("calibration_slope")
        if slope is None or not self.verdict.is_test_significant or not slope.excludes_ideal:
            return None
        if slope.distance_in_se(0.0) <= -self.min_z:
            return "reversed"
        z = slope.distance_in_se(1.0)
        return None if abs(z) < self.min_z else "too extreme" if z < 0 else "too moderate"

    @property
    def is_level_slight(self) -> bool:
        """Whether predicted and observed means hardly differ, however certain the difference is."""
        if self.data.means is None:
            return False
        predicted, observed = self.data.means
        if not self.data.is_binary:
            return abs(observed - predicted) < SLIGHT_GAP
        return max(predicted, observed) < SLIGHT_RATIO * min(predicted, observed)

    @property
    def is_spread_slight(self) -> bool:
        """Whether the slope hardly differs from 1, however certain the difference is."""
        slope = self.standard.get("calibration_slope")
        return slope is not None and slope.value is not None and abs(slope.value - 1) < SLIGHT_SLOPE

    @property
    def has_holm_pvalues(self) -> bool:
        """Whether Holm-adjusted p-values of lenses or classes are reported, not only those of parts of a test."""
        tests = (test for test in self.tests if test.lens in ("family", "classwise"))
        return any("holm" in part for test in tests for part in test.parts.values())

    @cached_property
    def rejected_classes(self) -> tuple[str, ...]:
        """The views of classes or labels for which a test rejects after Holm's adjustment."""
        holms = {name: part.get("holm") for name, part in self.class_tests.items()}
        return tuple(name for name, holm in holms.items() if holm is not None and holm <= self.verdict.alpha)

    @cached_property
    def class_tests(self) -> Mapping[str, Mapping[str, float]]:
        """The tests of single classes or labels, by view; empty if they were not tested."""
        views = ({name: part for name, part in test.parts.items() if name.startswith("class:")} for test in self.tests)
        return next((parts for parts in views if parts), {})

    @cached_property
    def miscalibrated_groups(self) -> tuple[AuditGroup, ...]:
        """The subgroups for which calibration is rejected."""
        return tuple(group for group in self.groups if group.status == "miscalibrated")

    @property
    def worst_group(self) -> AuditGroup | None:
        """The miscalibrated subgroup with the strongest evidence."""
        return min(self.miscalibrated_groups, key=lambda group: group.evidence, default=None)

    @cached_property
    def established_worst_group(self) -> AuditGroup | None:
        """The worst subgroup if it may be named without the others: it is the only miscalibrated one.

        Or its error is significantly larger than that of another subgroup of its column.
        """
        worst, gaps = self.worst_group, self._widest_gaps
        larger = {gap.first if (gap.difference or 0.0) > 0 else gap.second for gap in gaps if gap.settled}
        return worst if worst is not None and (len(self.miscalibrated_groups) == 1 or worst.label in larger) else None

    @property
    def group_errors_do_not_differ(self) -> bool:
        """Whether no gap of a column is significant; False without joint null draws, where gaps are unknown."""
        return bool(self._widest_gaps) and not any(gap.settled for gap in self._widest_gaps)

    @property
    def _widest_gaps(self) -> tuple[AuditGap, ...]:
        return () if self.among_groups is None else self.among_groups.widest

    @property
    def unexamined_groups(self) -> tuple[UnexaminedGroup, ...]:
        """The subgroups that exist and were not examined."""
        return () if self.among_groups is None else self.among_groups.unexamined

    @property
    def has_untestable_groups(self) -> bool:
        """Whether no joint p-value of a subgroup could have been small enough, for too few null draws or clusters."""
        if not self.groups or self.among_groups is None:
            return False
        alpha = self.verdict.alpha if self.among_groups.alpha is None else self.among_groups.alpha
        return (self.among_groups.min_pvalue or 0.0) > alpha * (1 + 1e-9)

    @property
    def has_doubts(self) -> bool:
        """Whether facts beside the test leave open that calibration is not rejected.

        The interval of a standard measure excludes its ideal value, or groups were not examined or could not be tested.
        """
        return bool(self.verdict.excludes_ideal or self.verdict.unexamined_groups or self.has_untestable_groups)

    @property
    def recalibrates_sample(self) -> bool:
        """Whether calibrators were fitted to a random sample of the rows, as is done if rows were tallied."""
        rows = (self.recalibration and self.recalibration.rows) or {}
        return rows.get("fit", self.data.n) < self.data.n

    def all_notes(self, *, include_diagrams: bool = True) -> Iterator[Note]:
        """Iterate over the notes of the audit and then of its parts; a note may occur several times."""
        yield from self.notes
        yield from () if self.recalibration is None else self.recalibration.notes
        decisions = () if self.decisions is None else (self.decisions.regret, self.decisions.test)
        for part in (*decisions, *self.measures, *self.tests, *(self.diagrams if include_diagrams else ())):
            yield from part.notes

    def notes_by_code(self, *, include_diagrams: bool = True) -> list[tuple[str, str]]:
        """Return the code of each kind of note with the different texts that it has, joined by spaces."""
        texts_by_code: dict[str, dict[str, None]] = {}  # the inner dictionaries serve as ordered sets
        for note in self.all_notes(include_diagrams=include_diagrams):
            texts_by_code.setdefault(note.code, {})[note.text] = None
        return [(code, " ".join(texts)) for code, texts in texts_by_code.items()]
