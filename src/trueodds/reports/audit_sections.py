"""The typed sections of an audit: dataclasses whose fields are the keys of its published JSON, `schema/audit.json`."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from typing import Any, Self, dataclass_transform

from scipy.special import ndtri

from trueodds.core.errors import Note
from trueodds.hypotests.group_results import UnexaminedGroup, evidence_order

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
NOT_ATTEMPTED = "not attempted"  # Saved: the status of a recalibration without candidates
# Saved: how the p-values of subgroups are adjusted: from joint null draws, or without them.
STEP_DOWN_MIN_P, HOLM = "step-down min-p", "Holm"


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Section:
    """A part of an audit: a frozen dataclass whose fields are the keys of a JSON object, in their order."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def from_dict(cls, entry: Any) -> Self:
        """Return the section of a JSON object; keys that earlier versions did not write have their defaults."""
        section: Self = _read_fields(cls, entry)
        return section

    def to_dict(self) -> dict[str, Any]:
        """Return the section as a new JSON object."""
        cls: Any = type(self)
        return {name: _to_json(getattr(self, name)) for name in _converters(cls)}


def _read_fields(cls: Any, entry: Any) -> Any:
    if isinstance(entry, cls):
        return entry
    return cls(**{name: convert(entry[name]) for name, convert in _converters(cls).items() if name in entry})


@cache
def _converters(cls: Any) -> dict[str, Any]:
    """Return the function that reads each field from JSON, by its annotation."""
    hints = typing.get_type_hints(cls)
    return {field.name: _converter(hints[field.name]) for field in fields(cls)}


def _converter(hint: Any) -> Any:
    """Return the function that reads a value from JSON: dataclasses from objects, and tuples of these from lists."""
    options = typing.get_args(hint)
    if isinstance(hint, types.UnionType) and type(None) in options:
        convert = _converter(next(option for option in options if option is not type(None)))
        return lambda value: None if value is None else convert(value)
    if typing.get_origin(hint) is tuple:
        convert = _converter(options[0])
        return lambda values: tuple(convert(value) for value in values or ())
    if typing.get_origin(hint) is Mapping and is_dataclass(options[1]):
        convert = _converter(options[1])
        return lambda values: {name: convert(value) for name, value in values.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return partial(_read_fields, hint)
    return lambda value: value


def _to_json(value: Any) -> Any:
    if isinstance(value, (Section, Note, UnexaminedGroup)):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _to_json(item) for name, item in value.items()}
    return [_to_json(item) for item in value] if isinstance(value, (list, tuple)) else value


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
    def event_counts(self) -> tuple[int, int] | None:
        """Numbers of events and non-events of two classes; None if rows have weights or votes."""
        if self.event_rate is None or self.weighted or self.votes:
            return None
        return (events := round(self.event_rate * self.n)), self.n - events

    @property
    def n_units(self) -> int:
        """Number of independent units: clusters, or rows."""
        return self.n if self.clusters is None else self.clusters


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
    notes: tuple[Note, ...] = ()

    @property
    def is_above_noise(self) -> bool:
        """Whether the error is larger than its noise floor."""
        return self.debiased is None or self.debiased > 0


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
    notes: tuple[Note, ...] = ()


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


class AuditDiagram(Section):
    """The numbers of a diagram: a row of the table per bin or cell, and one of the panels per view."""

    schema: str = ""
    diagram: str
    lens: str
    table: Mapping[str, Any]
    panels: Mapping[str, Any] | None = None
    settings: Mapping[str, Any]
    notes: tuple[Note, ...] = ()


class HeldOutDiagrams(Section):
    """The reliability diagrams of the held-out rows, before and after the recalibration."""

    n: int
    before: AuditDiagram
    after: AuditDiagram

    @property
    def by_time(self) -> dict[str, AuditDiagram]:
        """Both diagrams, by "before" and "after"."""
        return {"before": self.before, "after": self.after}


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
    map_text: str = ""
    notes: tuple[Note, ...] = ()
    diagrams: HeldOutDiagrams | None = None

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
    standard_measures: tuple[StandardMeasure, ...] = ()  # of two classes: O:E ratio and calibration slope

    @property
    def evidence(self) -> tuple[float, float, float]:
        """Sort key by the evidence of miscalibration, strongest first."""
        return evidence_order(self.joint, self.pvalue, self.error)


class AuditGap(Section):
    """The largest difference between two subgroups of a column."""

    column: str = ""
    first: str = ""
    second: str = ""
    difference: float | None = None
    interval: AuditInterval | None = None
    settled: bool = False  # whether the interval excludes 0


class AuditMulticalibration(Section):
    """The multicalibration error: the largest standardized cumulative residual of any subgroup."""

    value: float | None
    sigma: float | None  # in standard errors
    pvalue: float | None
    worst: str  # the label of the group
    noise_floor: float | None


class AmongGroups(Section):
    """The joint results of all subgroups."""

    pvalue: float | None = None
    min_pvalue: float | None = None  # the smallest possible joint p-value
    correction: str = ""
    min_effect: float | None = None
    level: float = 0.95
    alpha: float | None = None  # level of the joint p-values; None in reports of earlier versions
    worst: str | None = None
    unexamined: tuple[UnexaminedGroup, ...] = ()
    widest: tuple[AuditGap, ...] = ()
    multicalibration: AuditMulticalibration | None = None


class AuditDecisions(Section):
    """The decision regret and its test."""

    regret: AuditMeasure
    test: AuditTest


class VoteCounts(Section):
    """The numbers of annotators per row."""

    median: float
    min: int
    max: int


class MajorityOutcomes(Section):
    """Calibration against the majority vote of each row."""

    accuracy: float | None
    named: float | None  # share of rows whose predicted class is the majority
    tied: int
    rule: str = ""
    ece_if_right: float | None  # expected ECE if votes are drawn from the predicted probabilities
    ece: AuditMeasure
    log_loss: AuditMeasure


class ShareOutcomes(Section):
    """Calibration against the vote shares of each row."""

    ece: AuditMeasure
    log_loss: AuditMeasure


class FurthestRow(Section):
    """A row with a large distance between prediction and votes."""

    row: int
    model: str  # the most probable class
    predicted: float  # its probability
    people: str  # the class with the most votes
    voted: float  # its share of the votes
    votes: int | None
    distance: float
    critical_value: float | None
    pvalue: float | None


class FurthestRows(Section):
    """The rows with the largest distances, and how many exceed the critical value of all distances."""

    listed: tuple[FurthestRow, ...]
    alpha: float
    limit: float | None
    beyond: int | None
    n: int
    draws: int | None


class AuditPeople(Section):
    """The comparison with the votes of annotators."""

    votes: VoteCounts | None
    measures: tuple[AuditMeasure, ...]
    majority: MajorityOutcomes
    distribution: ShareOutcomes
    rows: FurthestRows
