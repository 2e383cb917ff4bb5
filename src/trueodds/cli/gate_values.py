"""What gates of --fail-on may name for each command (scopes), the numbers that they find in its results, and a note.

TN240 says of a gate that passed that its bound is so large, compared with the event rate, that gross errors pass.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trueodds.cli.gate import (
    RISK,
    VALUE_AND_ENDS,
    VALUE_PART,
    WORST_GROUP,
    Gate,
    Scope,
    is_lens,
    list_groups,
    make_default_estimator,
    make_estimator,
    unexamined_group_error,
)
from trueodds.core.formatting import format_number
from trueodds.core.suggestions import suggest_names

if TYPE_CHECKING:
    from trueodds.core.errors import Note
    from trueodds.core.results import Estimate, Interval, Verdict
    from trueodds.hypotests.group_results import ByGroup
    from trueodds.lenses.selective_risk import SelectiveRisk
    from trueodds.resampling.comparison.comparison_results import Comparison


MORE_RESAMPLES = "Give more --resamples."
NOT_SUBTRACTED_REMARK = "far above its noise floor, so nothing is subtracted"


def measure_scope(estimator: str, settings: Mapping[str, Any]) -> Scope:
    """Return the scope of `trueodds measure`: the one estimate."""
    made = make_estimator(estimator, settings)
    return Scope(
        "measure", estimators=(made.name,), accepts_lens=True, omits_intervals=settings.get("interval", "auto") is None,
        estimator=made, example=f"'{estimator}.high>0.05'",
    )  # fmt: skip


def test_scope(margin: Any) -> Scope:
    """Return the scope of `trueodds test`: p-value, statistic, effect and the decision about a margin."""
    words = ("reject",) if margin is None else ("reject", "beyond", "undecided")
    return Scope(
        "test", words, dict.fromkeys(("pvalue", "statistic", "effect"), VALUE_PART), example="reject or 'pvalue<=0.01'"
    )


def groups_scope(estimator: str, settings: Mapping[str, Any]) -> Scope:
    """Return the scope of `trueodds groups`: the errors of all rows and of every group, and the family-wise p-value."""
    made = make_estimator(estimator, settings)
    return Scope(
        "groups", ("reject",), {"pvalue": VALUE_PART}, (made.name,), (made.name,),
        omits_intervals=settings.get("interval", "auto") is None, estimator=made,
        example=f"'{estimator}[worst].low>0.02'",
    )  # fmt: skip


def compare_scope(estimator: str, settings: Mapping[str, Any]) -> Scope:
    """Return the scope of `trueodds compare`: the difference of two models and its p-value."""
    return Scope(
        "compare", ("reject",), {"difference": VALUE_AND_ENDS, "pvalue": VALUE_PART},
        estimator=make_estimator(estimator, settings), example="'difference.low>0'",
    )  # fmt: skip


ANSWERS_SCOPE = Scope(
    "answers",
    numbers={
        "accuracy": VALUE_AND_ENDS,
        "overall_accuracy": VALUE_PART,
        "coverage": VALUE_PART,
        "mean_confidence": VALUE_PART,
        "aurc": VALUE_AND_ENDS,
        "risk": VALUE_AND_ENDS,
    },
    estimators=("rmsce", "bas"),
    example="'risk@0.8>0.05'",
)


@dataclass(frozen=True)
class GatedEstimate:
    """Numbers of one estimate and of the views of its lens."""

    estimate: Estimate

    def number(self, gate: Gate) -> tuple[float | None, str]:
        """Return the number that the gate names, of the estimate or of one of its views."""
        estimate = self.estimate
        if gate.lens in (None, estimate.lens):
            number, remark = find_part_and_remark(estimate, gate.part)
            return number, f"{_format_gate_number_name(gate, estimate.lens)}{remark}"
        if gate.lens in estimate.parts and gate.part == "value":
            return estimate.parts[gate.lens], f"{gate.name}@{gate.lens}"
        lens_suggestion = suggest_names(str(gate.lens), [estimate.lens, *filter(is_lens, estimate.parts)])
        raise gate.not_evaluable_error(f"{estimate.estimator} through the lens {estimate.lens}", lens_suggestion)

    def evaluate_condition(self, gate: Gate) -> tuple[bool, str]:
        """Raise InputError, because an estimate decides nothing."""
        raise gate.not_evaluable_error("an estimate", "Name a number, with a bound.")


@dataclass(frozen=True)
class GatedVerdict:
    """Numbers and decisions of one test."""

    verdict: Verdict

    def number(self, gate: Gate) -> tuple[float | None, str]:
        if gate.name == "pvalue":
            _check_min_pvalue(gate, self.verdict.min_pvalue, gate.limit)
        number: float | None = getattr(self.verdict, gate.name)
        return number, gate.name

    def evaluate_condition(self, gate: Gate) -> tuple[bool, str]:
        """Return whether calibration is rejected at 5 %, or whether the decision about the margin is this word."""
        if gate.name != "reject":
            decision = self.verdict.decision
            if decision is None:
                raise gate.not_evaluable_error("no decision", "See the notes.")
            return decision == gate.name, f"the decision is {decision}"
        return _is_rejected(gate, self.verdict.pvalue, self.verdict.min_pvalue)


@dataclass(frozen=True)
class GatedComparison:
    """Numbers and decision of the difference of two models, the first minus the second."""

    comparison: Comparison

    def number(self, gate: Gate) -> tuple[float | None, str]:
        comparison = self.comparison
        if gate.name == "pvalue":
            _check_min_pvalue(gate, comparison.min_pvalue, gate.limit)
            return comparison.pvalue, gate.name
        name = f"{_format_gate_number_name(gate, None)} ({comparison.estimator} {' − '.join(comparison.names)})"
        return _value_or_end(gate.part, comparison.difference, comparison.interval, comparison.estimator), name

    def evaluate_condition(self, gate: Gate) -> tuple[bool, str]:
        """Return whether the models differ significantly at 5 %."""
        return _is_rejected(gate, self.comparison.pvalue, self.comparison.min_pvalue)


@dataclass(frozen=True)
class GatedGroups:
    """Numbers and decision of the errors of all groups and of all rows."""

    by_group: ByGroup
    accepts_unexamined: bool = False  # whether gates may pass although some groups were not examined

    @property
    def unexamined(self) -> Sequence[Mapping[str, Any]]:
        return [group.to_dict() for group in self.by_group.unexamined]

    @property
    def n_groups(self) -> int:
        return len(self.by_group.groups) + len(self.by_group.unexamined)

    def number(self, gate: Gate) -> tuple[float | None, str]:
        min_pvalue = float(self.by_group.settings["min_pvalue"])
        if gate.name == "pvalue":
            _check_min_pvalue(gate, min_pvalue, gate.limit)
            return self.by_group.pvalue, gate.name
        if gate.group is None:
            return GatedEstimate(self.by_group.overall).number(gate)
        return find_group_number(gate, self.estimates_of_groups(gate), self.unexamined)

    def estimates_of_groups(self, gate: Gate) -> Mapping[str, Estimate]:
        return {group.label: group.estimate for group in self.by_group.groups}

    def evaluate_condition(self, gate: Gate) -> tuple[bool, str]:
        """Return whether any group is miscalibrated, jointly over all groups."""
        fails, reason = _is_rejected(
            gate, self.by_group.pvalue, float(self.by_group.settings["min_pvalue"]), 1 - self.by_group.level
        )
        undefined_labels = [group.label for group in self.by_group.groups if math.isnan(group.joint)]
        if undefined_labels and not fails:
            fix = "A group that cannot be tested does not pass: see the notes."
            raise gate.not_evaluable_error(f"no p-value of {', '.join(undefined_labels)}", fix)
        if not fails:
            groups = [(group.label, group.pvalue) for group in self.by_group.groups]
            _require_enough_draws(gate, groups, 1 / (1 + self.by_group.settings["redraws"]))
        return fails, reason


@dataclass(frozen=True)
class GatedAnswers:
    """Numbers of `trueodds answers`, from its JSON report."""

    report: Mapping[str, Any]  # of schema trueodds.answers/1
    risk: SelectiveRisk
    measures: Sequence[Estimate]  # RMSCE and BAS

    def number(self, gate: Gate) -> tuple[float | None, str]:
        for estimate in self.measures:
            if estimate.estimator == gate.name:
                return GatedEstimate(estimate).number(gate)
        if gate.base_name in ("aurc", RISK):
            return find_risk(gate, self.risk)
        value = self.report[gate.name]
        return (value[gate.part] if isinstance(value, Mapping) else value), _format_gate_number_name(gate, None)

    def evaluate_condition(self, gate: Gate) -> tuple[bool, str]:
        """Raise InputError, because answers decide nothing."""
        raise gate.not_evaluable_error("answers", "Name a number, with a bound.")


@dataclass(frozen=True)
class GatedAudit:
    """Numbers of an audit, from its JSON report; other numbers are computed on its rows."""

    report: Mapping[str, Any]
    measure: Callable[[Gate], Estimate]  # computes the estimate of a gate that the audit does not report
    # Computes the estimate of a gate for every group, if the audit does not report it.
    measure_groups: Callable[[Gate], Mapping[str, Estimate]] = lambda _gate: {}
    accepts_unexamined: bool = False  # whether gates may pass although some groups were not examined

    @property
    def unexamined(self) -> Sequence[Mapping[str, Any]]:
        among_groups = self.report.get("among_groups") or {}
        return among_groups.get("unexamined") or ()

    @property
    def n_groups(self) -> int:
        return len(self.report.get("groups") or ()) + len(self.unexamined)

    def number(self, gate: Gate) -> tuple[float | None, str]:
        """Return a number that the audit reports, else one that is computed for the gate."""
        if gate.name == "pvalue":
            verdict = self.report["verdict"]
            _check_min_pvalue(gate, verdict.get("min_pvalue"), gate.limit)
            return verdict.get("pvalue"), "family-wise p"
        if gate.group is not None:
            return find_group_number(gate, self.estimates_of_groups(gate), self.unexamined)
        reported_estimates = [
            _estimate_from_json(measure) for measure in self.report["measures"] if measure["estimator"] == gate.name
        ]
        for estimate in reported_estimates if gate.lens else reported_estimates[:1]:  # the default lens comes first
            if gate.lens in (None, estimate.lens) or (gate.lens in estimate.parts and gate.part == "value"):
                number, name = GatedEstimate(estimate).number(gate)
                if number is not None and not math.isnan(number):
                    return number, name
        return GatedEstimate(self.measure(gate)).number(gate)

    def estimates_of_groups(self, gate: Gate) -> Mapping[str, Estimate]:
        if gate.name != "ece":
            return self.measure_groups(gate)
        return {group["label"]: _group_estimate_from_json(group) for group in self.report.get("groups") or ()}

    def evaluate_condition(self, gate: Gate) -> tuple[bool, str]:
        """Return whether the audit rejects calibration, and why."""
        verdict = self.report["verdict"]
        if verdict.get("rejected") is None or verdict.get("pvalue") is None:
            raise gate.not_evaluable_error("no family-wise p-value", "See the notes.")
        among_groups = self.report.get("among_groups")
        if among_groups and not verdict["rejected"]:
            self._require_conclusive_groups(gate, among_groups)
        return verdict["rejected"], verdict["reason"]

    def _require_conclusive_groups(self, gate: Gate, among_groups: Mapping[str, Any]) -> None:
        """Raise TO611 if the number of null draws decided that no group was rejected."""
        from trueodds.hypotests.group_results import BEYOND_MAX_GROUPS
        from trueodds.reports.audit_result import HOLM

        groups, min_pvalue = self.report["groups"], among_groups["min_pvalue"]
        needs_clusters = self.report["data"].get("clusters") is not None and among_groups["correction"] != HOLM
        fix = "Groups need more clusters; leave --group out otherwise." if needs_clusters else MORE_RESAMPLES
        _check_min_pvalue(gate, min_pvalue, among_groups["alpha"], fix)
        n_untested = sum(group["reason"] == BEYOND_MAX_GROUPS for group in self.unexamined)
        n_added = n_untested + (len(groups) if among_groups["correction"] == HOLM else 1)
        pvalues = [(group["label"], group["pvalue"]) for group in groups if group["status"] != "miscalibrated"]
        _require_enough_draws(gate, pvalues, min_pvalue / n_added)


def find_part_and_remark(estimate: Estimate, part: str) -> tuple[float | None, str]:
    """Return a part of an estimate, one of `gate.PARTS`, and a remark to be appended to its name, "" if it needs none.

    An estimate has a debiased value only near its noise floor. Far above it nothing is subtracted, so the value itself
    is returned, with a remark.
    """
    if part in ("low", "high"):
        return _value_or_end(part, estimate.value, estimate.interval, estimate.estimator), ""
    if part != "debiased" or estimate.debiased is not None:
        number: float | None = getattr(estimate, part)
        return number, ""
    if make_default_estimator(estimate.estimator).interval == "debiased":
        return estimate.value, " (debiased by itself)"
    if estimate.noise_floor is None or not math.isfinite(estimate.value):
        return None, ""
    return estimate.value, f" ({NOT_SUBTRACTED_REMARK})"


def find_group_number(
    gate: Gate, groups: Mapping[str, Estimate], unexamined: Sequence[Mapping[str, Any]] = ()
) -> tuple[float | None, str]:
    """Return the number of the group that the gate names, and its label; "worst" is the group nearest to failing.

    `groups` has the estimates by group, and `unexamined` are JSON objects of the other groups. If the number of a group
    is undefined, a gate on the worst group fails if another group fails it, and otherwise cannot be evaluated.
    """
    if not groups:
        raise gate.not_evaluable_error("no groups", "Add --group C for every group column.")
    gate_text = _format_gate_number_name(gate, None)
    requested = str(gate.group)
    if requested in groups:
        number, remark = find_part_and_remark(groups[requested], gate.part)
        return number, f"{gate_text}{remark}"
    if requested != WORST_GROUP:
        for group in unexamined:
            if group["label"] == requested:
                raise unexamined_group_error(gate, group)
        labels = [*groups, *(group["label"] for group in unexamined)]
        fix = _explain_combination(requested, labels) or _suggest_group(requested, labels)
        raise gate.not_evaluable_error(f"no group {requested!r}", fix)
    remarks: dict[str, str] = {}
    defined_numbers: dict[str, float] = {}
    for label, estimate in groups.items():
        number, remarks[label] = find_part_and_remark(estimate, gate.part)
        if number is not None and not math.isnan(number):
            defined_numbers[label] = number
    nearest_to_failing = max if gate.fails_above else min
    worst = nearest_to_failing(defined_numbers, key=lambda label: defined_numbers[label]) if defined_numbers else None
    if worst is None or (len(defined_numbers) < len(groups) and not gate.fails(defined_numbers[worst])):
        undefined_labels = ", ".join(label for label in groups if label not in defined_numbers)
        raise gate.not_evaluable_error(
            f"no {gate.part} of {undefined_labels}", "A group that cannot be evaluated does not pass: see the notes."
        )
    remark = remarks[worst].replace(" (", ", ").removesuffix(")")  # inside the parentheses of the group
    return defined_numbers[worst], f"{gate_text} ({worst}{remark})"


def _explain_combination(requested: str, labels: Sequence[str]) -> str:
    """Return why there is no group for a combination of existing values; empty for other names.

    >>> _explain_combination("a=x, b=z", ["a=x", "b=z", "b=y", "a=x, b=y"])
    'No row has a=x and b=z, so there is nothing to check.'
    >>> _explain_combination("a=x, b=z", ["a=x", "b=z"]), _explain_combination("c=1", ["a=x"])
    ('Combinations of columns are groups with --crossings only.', '')
    """
    parts = requested.split(", ")
    if len(parts) < 2 or not set(parts) <= set(labels):
        return ""
    for label in labels:
        if sorted(label.split(", ")) == sorted(parts):
            return f"Write {label}."
    columns = sorted(part.partition("=")[0] for part in parts)
    if not any(sorted(part.partition("=")[0] for part in label.split(", ")) == columns for label in labels):
        return "Combinations of columns are groups with --crossings only."
    return f"No row has {' and '.join(parts)}, so there is nothing to check."


def _suggest_group(requested: str, labels: Sequence[str]) -> str:
    """Return the hint for an unknown label: those with this value, else similar ones, or all labels.

    >>> _suggest_group("west", ["region=west", "region=east"]), _suggest_group("wrost", ["region=west"])
    ('Did you mean region=west?', 'Did you mean worst?')
    """
    values = [label.rpartition("=")[2].casefold() for label in labels]
    value = requested.rpartition("=")[2].casefold()
    nearest = [value] if value in values else difflib.get_close_matches(value, {WORST_GROUP, *values}, n=1)
    names = [label for label, other in zip(labels, values, strict=True) if other in nearest]
    names += [WORST_GROUP] if WORST_GROUP in nearest else []
    return f"Did you mean {' or '.join(names[:3])}?" if names else suggest_names(requested, [WORST_GROUP, *labels])


def find_risk(gate: Gate, risk: SelectiveRisk) -> tuple[float | None, str]:
    """Return a number of the risk-coverage curve, and its label: its area, or the risk at the coverage of the gate."""
    if gate.name == "aurc":
        return _value_or_end(gate.part, risk.aurc, risk.interval, gate.name), _format_gate_number_name(gate, None)
    column = "risk" if gate.part == "value" else gate.part
    index = next(i for i, coverage in enumerate(risk.at["coverage"]) if math.isclose(coverage, gate.coverage or 0.0))
    return float(risk.at[column][index]), _format_gate_number_name(gate, None)


def requested_coverages(gates: Sequence[Gate]) -> list[float]:
    return [gate.coverage for gate in gates if gate.coverage is not None]


def _is_rejected(
    gate: Gate, pvalue: float | None, min_pvalue: float | None, alpha: float | None = None
) -> tuple[bool, str]:
    """Return whether a p-value is at most `alpha` (by default 0.05, as for a test), and the comparison as text."""
    from trueodds.core.results import DECISION_LEVEL

    alpha = DECISION_LEVEL if alpha is None else alpha
    _check_min_pvalue(gate, min_pvalue, alpha)
    if pvalue is None or math.isnan(pvalue):
        raise gate.not_evaluable_error("no p-value", "See the notes.")
    return pvalue <= alpha, f"p {format_number(pvalue)} {'<=' if pvalue <= alpha else '>'} {format_number(alpha)}"


def _check_min_pvalue(gate: Gate, min_pvalue: float | None, limit: float, fix: str = MORE_RESAMPLES) -> None:
    """Raise an error if no p-value that the null draws can give would fail the gate."""
    if not gate.fails_above and min_pvalue is not None and min_pvalue > limit * (1 + 1e-9):
        raise gate.not_evaluable_error(f"no p-value below {format_number(min_pvalue)} was possible", fix)


def _require_enough_draws(gate: Gate, groups: Sequence[tuple[str, float | None]], smallest: float) -> None:
    """Raise TO611 if groups, none of which is rejected, have the smallest unadjusted p-value that the draws can give.

    Their true p-values may be far smaller, and significant after the adjustment for all groups.
    """
    labels = [label for label, pvalue in groups if pvalue is not None and pvalue <= smallest * (1 + 1e-9)]
    if labels:
        raise gate.not_evaluable_error(
            f"more extreme than all null draws: {list_groups(labels)}; so many groups need more",
            "Give more --resamples, for example ten times as many.",
        )


def _value_or_end(part: str, value: float, interval: Interval | None, estimator: str) -> float | None:
    """Return the value, or the end "low" or "high" of its interval, if there is one.

    The ends of an infinite mean are the mean: a row of infinite loss makes the mean of the population infinite, too.
    """
    from trueodds.estimators.base import Mean

    if part == "value":
        return value
    if interval is None and math.isinf(value) and isinstance(make_default_estimator(estimator), Mean):
        return value
    return None if interval is None else float(getattr(interval, part))


def _format_gate_number_name(gate: Gate, lens: str | None) -> str:
    """Return the name of the number as a gate writes it, such as `ece[worst].low@classwise`."""
    group = "" if gate.group is None else f"[{gate.group}]"
    part = "" if gate.part == "value" else f".{gate.part}"
    return f"{gate.name}{group}{part}" + ("" if lens is None else f"@{lens}")


def _estimate_from_json(report: Mapping[str, Any]) -> Estimate:
    """Restore an estimate from its JSON, in which a value that is not finite is null."""
    from trueodds.core.results import Estimate, Interval

    interval = report.get("interval")
    value = math.nan if report["value"] is None else report["value"]
    return Estimate(
        report["estimator"], report["lens"], value, report["n"], Interval(**interval) if interval else None,
        report.get("noise_floor"), report.get("debiased"), report.get("parts") or {},
    )  # fmt: skip


def _group_estimate_from_json(report: Mapping[str, Any]) -> Estimate:
    """Return the error of a group from the JSON of an audit, debiased as `measure` does it."""
    from trueodds.resampling.null_distribution import subtract_noise_floor

    error, noise_floor = report["error"], report.get("noise_floor")
    debiased_error = (
        math.nan if error is None or noise_floor is None else float(subtract_noise_floor(error, noise_floor))
    )
    debiased = None if math.isnan(debiased_error) else debiased_error
    return _estimate_from_json(
        {**report, "estimator": "ece", "lens": "", "value": error, "debiased": debiased, "parts": {}}
    )


def note_in_audit(gate: Gate, report: Mapping[str, Any]) -> Note | None:
    """Return the note TN240, if it applies, for a gate that an audit of two classes passed.

    `report` is the JSON object of the audit.
    """
    if gate.lens not in (None, "positive") or report["data"]["event_rate"] is None:
        return None
    rates = {group["label"]: group["event_rate"] for group in report["groups"]}
    return _note_on_rate(gate, report["data"]["event_rate"], rates)


def note_in_groups(gate: Gate, by_group: ByGroup) -> Note | None:
    """Return the note TN240, if it applies, for a gate on the error of a group that passed."""
    from trueodds.hypotests.equivalence import is_lens_on_classes

    if not is_lens_on_classes(by_group.lens):
        return None
    return _note_on_rate(gate, None, {group.label: group.event_rate for group in by_group.groups})


def note_in_rows(gate: Gate, rows: Any, lens_name: str, region: Any) -> Note | None:
    """Return the note TN240, if it applies, for a gate on the error of all rows that passed.

    `rows` are Predictions or a Tally, `lens_name` is the lens of the estimate, and `region` restricts the rows.
    """
    from trueodds.api.arguments import restrict_to_region
    from trueodds.hypotests.equivalence import EventRate, is_lens_on_classes
    from trueodds.lenses.lens_by_name import as_lens
    from trueodds.tallies.tally import lens_views

    if not (_bounds_an_error(gate) and is_lens_on_classes(lens_name)):
        return None
    rows, lens = restrict_to_region(rows, region), as_lens(gate.lens or lens_name)
    rate = EventRate.from_views(lens.name, lens_views(rows, lens))
    return None if rate is None else rate.margin_note("bound", gate.limit)


def _note_on_rate(gate: Gate, event_rate: float | None, rates_of_groups: Mapping[str, float | None]) -> Note | None:
    """Return the note for the event rate of all rows, of the gate's group, or of "worst", the rarest of all groups."""
    from trueodds.hypotests.equivalence import EventRate

    if not _bounds_an_error(gate):
        return None
    rates = [event_rate]
    if gate.group is not None:
        rates = list(rates_of_groups.values()) if gate.group == WORST_GROUP else [rates_of_groups.get(gate.group)]
    known_rates = [EventRate.from_rate(rate) for rate in rates if rate is not None]
    if not known_rates:
        return None
    return min(known_rates, key=lambda rate: rate.value or 1.0).margin_note("bound", gate.limit)


def _bounds_an_error(gate: Gate) -> bool:
    """Return whether the gate fails for large values of an error in units of probability."""
    from trueodds.estimators import ESTIMATORS
    from trueodds.estimators.base import Estimator

    if not gate.operator or not gate.fails_above or gate.part == "noise_floor" or gate.name not in ESTIMATORS:
        return False
    estimator = make_default_estimator(gate.name)
    return isinstance(estimator, Estimator) and estimator.is_in_probability_units
