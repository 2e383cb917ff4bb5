"""The typed result of an audit: its sections with named fields, and every judgement on them, made once.

The sentence of the verdict, the summary, the tables, the page and the methods paragraph only read these judgements, so
that they cannot contradict each other. A section is also a mapping of its fields, with the keys of the JSON.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, Self

from scipy.special import ndtri

from trueodds.hypotests.group_results import evidence_order

# Errors below these limits are called slight: the O:E ratio of two classes or its inverse, for others the difference
# of mean confidence and accuracy, and the distance of a slope from 1.
SLIGHT_RATIO, SLIGHT_GAP, SLIGHT_SLOPE = 1.05, 0.01, 0.1
# Calibration-in-the-large gives a direction only if it is at least this share of the calibration error; otherwise
# errors of both signs cancel in the mean.
MIN_SHARE_IN_THE_LARGE = 1 / 3
# With fewer rows (or clusters) a test has hardly any power, so that the state is "too few rows" unless it rejects.
MIN_ROWS_FOR_VERDICT = 20
# Standard errors that a slope or a mean difference must exceed to give a direction: 2 (p about 0.05) if the test
# through the default lens rejects, and 3 (p about 0.003) if only other tests of the family reject.
MIN_Z_IF_REJECTED, MIN_Z_UNLESS_REJECTED = 2.0, 3.0
NOT_ATTEMPTED = "not attempted"  # the status of a recalibration without candidates
# How the p-values of subgroups are adjusted: from joint null draws, or without them.
STEP_DOWN_MIN_P, HOLM = "step-down min-p", "Holm"

Notes = Sequence[Mapping[str, str]]  # each with its code and its text


class Section(Mapping[str, Any]):
    """A part of an audit: a dataclass whose fields are the keys of a JSON object, in their order."""

    def __getitem__(self, name: str) -> Any:
        if name not in _converters(type(self)):
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(_converters(type(self)))

    def __len__(self) -> int:
        return len(_converters(type(self)))

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Self:
        """Return the section of a JSON object; keys that earlier versions did not write have their defaults."""
        if isinstance(entry, cls):
            return entry
        return cls(**{name: convert(entry[name]) for name, convert in _converters(cls).items() if name in entry})

    def to_dict(self) -> dict[str, Any]:
        """Return the section as a new JSON object."""
        return {name: _to_json(value) for name, value in self.items()}


@cache
def _converters(cls: type) -> dict[str, Any]:
    """Return the function that reads each field from JSON, by its annotation."""
    hints = typing.get_type_hints(cls)
    return {field.name: _converter(hints[field.name]) for field in fields(cls)}


def _converter(hint: Any) -> Any:
    """Return the function that reads a value from JSON: sections from objects, and tuples of these from lists."""
    options = typing.get_args(hint)
    if isinstance(hint, types.UnionType) and type(None) in options:
        convert = _converter(next(option for option in options if option is not type(None)))
        return lambda value: None if value is None else convert(value)
    if typing.get_origin(hint) is tuple:
        convert = _converter(options[0])
        return lambda values: tuple(convert(value) for value in values or ())
    if isinstance(hint, type) and issubclass(hint, Section):
        return hint.from_dict
    return lambda value: value


def _to_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _to_json(item) for name, item in value.items()}
    return [_to_json(item) for item in value] if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True, kw_only=True)
class AuditInterval(Section):
    """A confidence interval; an infinite limit is None."""

    low: float | None
    high: float | None
    level: float
    method: str = ""

    @property
    def limits(self) -> tuple[float, float]:
        """The limits, with infinite ones."""
        return (-math.inf if self.low is None else self.low), (math.inf if self.high is None else self.high)

    def excludes(self, point: float) -> bool:
        """Whether the interval does not contain a point."""
        low, high = self.limits
        return not low <= point <= high


@dataclass(frozen=True, kw_only=True)
class AuditData(Section):
    """The description of the data."""

    source: str
    n: int
    k: int
    kind: str
    classes: tuple[str, ...] = ()
    event: str | None = None  # the second of two classes
    mean_confidence: float | None = None
    accuracy: float | None = None
    vote_share: float | None = None  # what `accuracy` is with votes
    mean_prediction: float | None = None  # of the second of two classes
    event_rate: float | None = None
    weighted: bool = False
    weight: float | None = None
    votes: bool = False
    clusters: int | None = None
    fingerprint: str | None = None
    group_columns: tuple[str, ...] = ()
    resolution: str | None = None
    logits: str | None = None
    zeros: int | None = None
    true_class_zeros: int = 0  # rows whose outcome had predicted probability 0

    @property
    def is_binary(self) -> bool:
        """Whether the data have two classes, so that one probability is predicted."""
        return self.event_rate is not None

    @property
    def means(self) -> tuple[float, float] | None:
        """Mean prediction and event rate of two classes, else mean confidence and accuracy; None for labels."""
        pair = (self.mean_prediction, self.event_rate) if self.is_binary else (self.mean_confidence, self.accuracy)
        return None if pair[0] is None or pair[1] is None else (pair[0], pair[1])

    @property
    def n_units(self) -> int:
        """Number of independent units: clusters, or rows."""
        return self.n if self.clusters is None else self.clusters


@dataclass(frozen=True, kw_only=True)
class AuditVerdict(Section):
    """The verdict: its sentences, the state of calibration and the family-wise p-value."""

    sentence: str = ""  # the headline: what was found, how large it is, and what to do
    details: str = ""  # the evidence, an example, and the conditions under which the recalibration is valid
    state: str
    spread: str | None = None  # what the slope shows: too extreme, too moderate or reversed
    rejected: bool | None  # None if no p-value could have been small enough
    reason: str = ""
    pvalue: float | None
    min_pvalue: float | None = None
    # Mean observed − mean predicted: of the second of two classes, else of the predicted class.
    calibration_in_the_large: float | None = None
    calibration_in_the_large_z: float | None = None  # the same in standard errors of a calibrated model
    alpha: float
    excludes_ideal: tuple[str, ...] = ()  # standard measures whose intervals exclude the value of a calibrated model
    unexamined_groups: int = 0

    @property
    def is_test_significant(self) -> bool:
        """Whether the family-wise test rejects calibration; outcomes of predicted probability 0 may do so, too."""
        return self.pvalue is not None and self.pvalue <= self.alpha

    @property
    def is_testable(self) -> bool:
        """Whether the p-value could have been small enough."""
        return self.min_pvalue is None or self.min_pvalue <= self.alpha

    @property
    def in_the_large(self) -> tuple[float, float]:
        """Calibration-in-the-large, and its absolute value in standard errors, which JSON has as None if infinite."""
        mean, z = self.calibration_in_the_large or 0.0, self.calibration_in_the_large_z
        return mean, abs(z) if z is not None else math.inf if abs(mean) > 1e-12 else 0.0


@dataclass(frozen=True, kw_only=True)
class AuditMeasure(Section):
    """An estimated score or error through a lens."""

    schema: str = ""
    estimator: str
    lens: str
    value: float | None
    interval: AuditInterval | None = None
    noise_floor: float | None = None
    debiased: float | None = None
    parts: Mapping[str, float]
    n: int
    settings: Mapping[str, Any]
    notes: Notes = ()

    @property
    def is_above_noise(self) -> bool:
        """Whether the error is larger than its noise floor."""
        return self.debiased is None or self.debiased > 0


@dataclass(frozen=True, kw_only=True)
class StandardMeasure(Section):
    """A standard measure, such as the calibration slope, with its interval and the value of a calibrated model."""

    name: str
    value: float | None  # None if undefined on these rows
    interval: AuditInterval | None
    ideal: float | None = None  # None if a calibrated model has no such value, as for the AUC

    @property
    def excludes_ideal(self) -> bool:
        """Whether the interval excludes the value of a calibrated model."""
        return self.interval is not None and self.ideal is not None and self.interval.excludes(self.ideal)

    def distance_in_se(self, point: float) -> float:
        """Return the difference of the value from a point, in standard errors; 0 without a value or an interval.

        The standard error is that of a normal interval of the same width. This is exact for a Wald interval of
        independent rows, and an approximation for Student's t and for intervals from resamples.
        """
        if self.interval is None or self.value is None:
            return 0.0
        low, high = self.interval.limits
        half_width, z = (high - low) / 2, float(ndtri((1 + self.interval.level) / 2))
        return (self.value - point) * z / half_width if half_width > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class AuditTest(Section):
    """The test of calibration through a lens, or that of the family of all hypotheses."""

    schema: str = ""
    test: str
    lens: str
    statistic: float | None
    pvalue: float | None
    min_pvalue: float | None = None
    family_pvalue: float | None = None
    effect: float | None = None
    parts: Mapping[str, Mapping[str, float]]
    n: int
    null: str = ""
    settings: Mapping[str, Any]
    notes: Notes = ()


@dataclass(frozen=True, kw_only=True)
class AuditCandidate(Section):
    """A candidate calibrator with its cross-validated scores."""

    method: str
    parameters: Any = None
    log_loss: float | None = None
    brier: float | None = None
    difference: float | None = None
    se: float | None = None
    chosen: bool = False
    label_flips: int | None = None
    accuracy_change: float | None = None
    dropped: bool = False
    keeps_order: bool | None = None


@dataclass(frozen=True, kw_only=True)
class AuditRecalibration(Section):
    """The recalibration: its candidates, the chosen one, and its gain on rows that neither fitted nor chose it."""

    candidates: tuple[AuditCandidate, ...] = ()
    chosen: str = "identity"
    confirmed: bool = False
    outcome: str | None = None
    applied: str | None = None
    alpha: float | None = None
    gain: float | None = None
    gain_of: str | None = None
    gain_percent: float | None = None
    gain_low_percent: float | None = None
    gain_se: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    pvalue: float | None = None
    required_rows: int | None = None
    detectable_gain: float | None = None
    log_loss_before: float | None = None
    log_loss_after: float | None = None
    accuracy_before: float | None = None
    accuracy_after: float | None = None
    label_flips: int | None = None
    rows: Mapping[str, int] | None = None
    mixing: float | None = None
    min_prob: float | None = None
    summary: str = ""
    notes: Notes = ()
    diagrams: Mapping[str, Any] | None = None

    @property
    def status(self) -> str:
        """The outcome, or `not attempted`.

        It is `confirmed`, `gain not established` (the miscalibration is confirmed, but the interval of the gain
        includes 0), `not judged` for training rows, `too few rows`, or `no gain`.
        """
        return self.outcome if self.candidates and self.outcome else NOT_ATTEMPTED

    @property
    def is_mixed_only(self) -> bool:
        """Whether original probabilities of infinite log loss were mixed with the uniform distribution, and no more."""
        return not self.confirmed and self.log_loss_before is None and self.log_loss_after is not None


@dataclass(frozen=True, kw_only=True)
class AuditGroup(Section):
    """The error of a subgroup, its p-values and its status."""

    column: str = ""
    value: str = ""
    label: str
    n: int
    accuracy: float | None = None
    mean_prob: float | None = None
    event_rate: float | None = None
    error: float | None = None
    interval: AuditInterval | None = None
    noise_floor: float | None = None
    pvalue: float | None = None
    joint: float | None = None
    min_detectable: float | None = None
    status: str
    direction: str | None = None

    @property
    def evidence(self) -> tuple[float, float, float]:
        """Sort key by the evidence of miscalibration, strongest first."""
        return evidence_order(self.joint, self.pvalue, self.error)


@dataclass(frozen=True, kw_only=True)
class AuditGap(Section):
    """The largest difference between two subgroups of a column."""

    column: str = ""
    first: str = ""
    second: str = ""
    difference: float | None = None
    interval: AuditInterval | None = None
    settled: bool = False  # whether the interval excludes 0


@dataclass(frozen=True, kw_only=True)
class AmongGroups(Section):
    """The joint results of all subgroups."""

    pvalue: float | None = None
    min_pvalue: float | None = None  # the smallest possible joint p-value
    correction: str = ""
    min_effect: float | None = None
    level: float = 0.95
    alpha: float | None = None  # level of the joint p-values; None in reports of earlier versions
    worst: str | None = None
    unexamined: Sequence[Mapping[str, str]] = ()
    widest: tuple[AuditGap, ...] = ()
    multicalibration: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
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
    decisions: Mapping[str, Any] | None = None
    people: Mapping[str, Any] | None = None
    groups: tuple[AuditGroup, ...] = ()
    among_groups: AmongGroups | None = None
    diagrams: Sequence[Mapping[str, Any]] = ()
    settings: Mapping[str, Any] | None = None
    notes: Notes = ()

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
        Otherwise it is `no evidence`, `too few rows`, or `not tested` if no p-value could have been small enough.
        """
        if self.data.true_class_zeros > 0 or self.verdict.is_test_significant:
            return "reversed" if self.spread == "reversed" else self.level or self.spread or "miscalibrated"
        if not self.verdict.is_testable:
            return "not tested"
        return "too few rows" if self.data.n_units < MIN_ROWS_FOR_VERDICT else "no evidence"

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
    def unexamined_groups(self) -> Sequence[Mapping[str, str]]:
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
    def is_inconclusive(self) -> bool:
        """Whether calibration is not rejected, but other facts leave it open."""
        return self.verdict.state == "no evidence" and self.has_doubts

    @property
    def conclusion(self) -> str:
        """The state of the verdict in a few words, or `inconclusive`."""
        return "inconclusive" if self.is_inconclusive else self.verdict.state

    @property
    def recalibrates_sample(self) -> bool:
        """Whether calibrators were fitted to a random sample of the rows, as is done if rows were tallied."""
        rows = (self.recalibration and self.recalibration.rows) or {}
        return rows.get("fit", self.data.n) < self.data.n

    def all_notes(self, *, include_diagrams: bool = True) -> Iterator[Mapping[str, str]]:
        """Iterate over the notes of the audit and then of its parts; a note may occur several times."""
        yield from self.notes
        yield from () if self.recalibration is None else self.recalibration.notes
        diagrams = self.diagrams if include_diagrams else ()
        for part in (*(self.decisions or {}).values(), *self.measures, *self.tests, *diagrams):
            yield from part.get("notes") or ()

    def notes_by_code(self, *, include_diagrams: bool = True) -> list[tuple[str, str]]:
        """Return the code of each kind of note with the different texts that it has, joined by spaces."""
        texts_by_code: dict[str, dict[str, None]] = {}  # the inner dictionaries serve as ordered sets
        for note in self.all_notes(include_diagrams=include_diagrams):
            texts_by_code.setdefault(note["code"], {})[note["text"]] = None
        return [(code, " ".join(texts)) for code, texts in texts_by_code.items()]
