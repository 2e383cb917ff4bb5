"""The numbers that gates of --fail-on read from the result of each command, and the exit status if one of them fails.

A scope (`gate.Scope`) has the path of each number in the JSON of the result. The result itself is read by it, because
JSON has null instead of an infinite number. TN240 says of a gate that passed that its bound is so large, compared with
the event rate, that gross errors pass.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from trueodds.cli import output
from trueodds.cli.gate import AUDIT_SCOPE, WORST_GROUP, Gate, Scope, is_lens, make_default_estimator, with_ends
from trueodds.cli.messages import note_line
from trueodds.core.errors import InputError
from trueodds.core.formatting import format_number
from trueodds.core.suggestions import suggest_names

if TYPE_CHECKING:
    from trueodds.core.errors import Note
    from trueodds.hypotests.group_results import ByGroup
    from trueodds.reports.audit_result import AuditResult
    from trueodds.reports.audit_sections import AmongGroups, AuditGroup, AuditMeasure

GATE_FAILED = 1  # exit code if a condition holds; invalid input has another one
GATES_ON_ALL_GROUPS = ("reject", "pvalue")  # decisions and numbers for which all groups are tested
MAX_NAMED_GROUPS = 5  # maximum number of groups that an error names
MORE_RESAMPLES = "Give more --resamples."
MORE_CLUSTERS = "Groups need more clusters; leave --group out otherwise."
UNTESTABLE_GROUP = (
    "A group that cannot be tested does not pass: see the notes. The p-value of G clusters is at least 2^(1 − G): use"
    " groups of more clusters."
)
NOT_SUBTRACTED_REMARK = "far above its noise floor, so nothing is subtracted"
ESTIMATE_PATHS = with_ends("value", "interval") | {"noise_floor": "noise_floor", "debiased": "debiased"}


@dataclass(frozen=True)
class GatedResult:
    """The result of a command, from which gates read numbers and decisions by the paths of its scope."""

    scope: Scope
    result: Any  # with fields, or keys, that are those of its JSON
    remark: str = ""  # says more of a number with an interval, behind its name
    accepts_unexamined: bool = False  # whether gates may pass although some groups were not examined

    def read(self, name: str) -> Any:
        """Return what the result has at one of the paths of the scope; None if there is no such path."""
        return read_path(self.result, self.scope.paths[name]) if name in self.scope.paths else None

    @property
    def unexamined(self) -> Sequence[Mapping[str, Any]]:
        """The groups that exist and were not examined, as JSON objects."""
        return [group if isinstance(group, Mapping) else group.to_dict() for group in self.read("unexamined") or ()]

    @property
    def alpha(self) -> float:
        """The largest p-value that rejects calibration, or the equality of models."""
        from trueodds.core.results import DECISION_LEVEL

        return DECISION_LEVEL

    def number(self, gate: Gate) -> tuple[float | None, str]:
        """Return the number that the gate names and its label; None if there is none."""
        if paths := self.scope.numbers.get(gate.base_name):
            if gate.name == "pvalue":
                _check_min_pvalue(gate, self.read("min_pvalue"), gate.limit)
            name = f"{_format_gate_number_name(gate, None)}{self.remark if len(paths) > 1 else ''}"
            return read_number(self.result, paths, gate), name
        if gate.group is not None:
            return find_group_number(gate, self.estimates_of_groups(gate), self.unexamined)
        return number_of_estimate(gate, self.estimates(gate)[0])

    def estimates(self, gate: Gate) -> Sequence[Any]:
        """Return the estimates of all rows by the estimator that the gate names, that of the default lens first."""
        estimates = self.read("estimates") if "estimates" in self.scope.paths else self.result
        if not isinstance(estimates, (list, tuple)):
            return [estimates]
        return [estimate for estimate in estimates if estimate.estimator == gate.name]

    def estimates_of_groups(self, gate: Gate) -> Mapping[str, Any]:
        """Return the estimate of each group that was examined, by its label."""
        return {group.label: group.estimate for group in self.result.groups}

    def evaluate_condition(self, gate: Gate) -> tuple[bool, str]:
        """Return whether the condition that the word names is true, so that the gate fails, and why."""
        if gate.name != "reject":
            decision = self.result.decision
            if decision is None:
                raise gate.not_evaluable_error("no decision", "See the notes.")
            return decision == gate.name, f"the decision is {decision}"
        pvalue = self.result.pvalue
        _check_min_pvalue(gate, self.read("min_pvalue"), self.alpha)
        if pvalue is None or math.isnan(pvalue):
            raise gate.not_evaluable_error("no p-value", "See the notes.")
        rejects = pvalue <= self.alpha
        return rejects, f"p {format_number(pvalue)} {'<=' if rejects else '>'} {format_number(self.alpha)}"


@dataclass(frozen=True)
class GatedGroups(GatedResult):
    """The errors of all groups, which are tested jointly."""

    @property
    def alpha(self) -> float:
        return 1 - float(self.result.level)

    def evaluate_condition(self, gate: Gate) -> tuple[bool, str]:
        """Return whether any group is miscalibrated, jointly over all groups."""
        self._require_testable_groups(gate, self.alpha)
        fails, reason = super().evaluate_condition(gate)
        if not fails:
            self._require_pvalues(gate)
            groups = [(group.label, group.pvalue) for group in self.result.groups]
            _require_enough_draws(gate, groups, 1 / (1 + self.result.settings["redraws"]))
        return fails, reason

    def number(self, gate: Gate) -> tuple[float | None, str]:
        """Return the number that the gate names; of the p-value only if the groups could have been rejected."""
        if gate.name == "pvalue":
            self._require_testable_groups(gate, gate.limit)
            if not gate.fails_above and not self.result.pvalue <= gate.limit:
                self._require_pvalues(gate)
        return super().number(gate)

    def _require_pvalues(self, gate: Gate) -> None:
        """Raise TO611 if a group has no p-value."""
        undefined_labels = [group.label for group in self.result.groups if math.isnan(group.joint)]
        if undefined_labels:
            raise gate.not_evaluable_error(f"no p-value of {list_groups(undefined_labels)}", UNTESTABLE_GROUP)

    def _require_testable_groups(self, gate: Gate, limit: float) -> None:
        """Raise TO611 if the number of clusters in the groups, not that of draws, makes every p-value too large."""
        if self.result.settings["min_pvalue"] > (1 + len(self.unexamined)) / (1 + self.result.settings["redraws"]):
            _check_min_pvalue(gate, self.result.settings["min_pvalue"], limit, MORE_CLUSTERS)


@dataclass(frozen=True, kw_only=True)
class GatedAudit(GatedResult):
    """An audit; what it does not report, or reports as null, is computed on its rows."""

    scope: Scope = AUDIT_SCOPE
    result: AuditResult
    measure: Callable[[Gate], Any]  # computes the estimate of a gate that the audit does not report
    # Computes the estimate of a gate for every group, if the audit does not report it.
    measure_groups: Callable[[Gate], Mapping[str, Any]] = lambda _gate: {}

    def number(self, gate: Gate) -> tuple[float | None, str]:
        """Return a number that the audit reports, else one that is computed for the gate."""
        if gate.name == "pvalue":
            number = super().number(gate)[0]
            if self.result.among_groups and number is not None and number > gate.limit:
                self._require_conclusive_groups(gate, self.result.among_groups, gate.limit / self.result.verdict.alpha)
            return number, "family-wise p"
        if gate.group is not None:
            return super().number(gate)
        reported = self.estimates(gate)
        for estimate in reported if gate.lens else reported[:1]:
            if gate.lens in (None, estimate.lens) or (gate.lens in estimate.parts and gate.part == "value"):
                number, name = number_of_estimate(gate, estimate)
                if number is not None and not math.isnan(number):
                    return number, name
        return number_of_estimate(gate, self.measure(gate))

    def estimates_of_groups(self, gate: Gate) -> Mapping[str, Any]:
        if gate.name != "ece":
            return self.measure_groups(gate)
        return {group.label: _error_of_group(group) for group in self.result.groups}

    def evaluate_condition(self, gate: Gate) -> tuple[bool, str]:
        """Return whether the audit rejects calibration, and why."""
        verdict = self.result.verdict
        if verdict.rejected is None or verdict.pvalue is None:
            raise gate.not_evaluable_error("no family-wise p-value", "See the notes.")
        if self.result.among_groups and not verdict.rejected:
            self._require_conclusive_groups(gate, self.result.among_groups)
        return verdict.rejected, verdict.reason

    def _require_conclusive_groups(self, gate: Gate, among_groups: AmongGroups, share: float = 1.0) -> None:
        """Raise TO611 if the number of null draws, or of clusters, decided that no group was rejected, or is not known.

        `share` is the bound of a p-value divided by alpha.
        """
        from trueodds.hypotests.group_results import BEYOND_MAX_GROUPS
        from trueodds.reports.audit_sections import HOLM

        groups, alpha, min_pvalue = self.result.groups, among_groups.alpha, among_groups.min_pvalue
        if alpha is None or min_pvalue is None:  # in reports of earlier versions
            raise gate.not_evaluable_error("no level of the tests of the groups", "Repeat the audit.")
        needs_clusters = self.result.data.clusters is not None and among_groups.correction != HOLM
        fix = MORE_CLUSTERS if needs_clusters else MORE_RESAMPLES
        _check_min_pvalue(gate, min_pvalue, share * alpha, fix)
        undefined_labels = [group.label for group in groups if group.pvalue is None]
        if undefined_labels and not gate.fails_above:
            raise gate.not_evaluable_error(f"no p-value of {list_groups(undefined_labels)}", UNTESTABLE_GROUP)
        n_untested = sum(group["reason"] == BEYOND_MAX_GROUPS for group in self.unexamined)
        n_added = n_untested + (len(groups) if among_groups.correction == HOLM else 1)
        pvalues = [(group.label, group.pvalue) for group in groups if group.status != "miscalibrated"]
        _require_enough_draws(gate, pvalues, min_pvalue / n_added)


def read_path(entry: Any, path: str, coverage: float | None = None) -> Any:
    """Return the field, or the key, to which a path leads; None if a part on the way is missing.

    The step `[coverage]` leads to the row of that coverage in a table.

    >>> [read_path({"interval": interval}, "interval.low") for interval in ({"low": 0.1}, None)]
    [0.1, None]
    """
    for step in path.split("."):
        if entry is None:
            return None
        if step == "[coverage]":
            entry = next((row for row in entry if math.isclose(row["coverage"], coverage or 0.0)), None)
        else:
            entry = entry[step] if isinstance(entry, Mapping) else getattr(entry, step)
    return entry


def read_number(entry: Any, paths: Mapping[str, str], gate: Gate) -> float | None:
    """Return the part of a number that the gate names.

    The ends of an infinite mean are the mean: a row of infinite loss makes the mean of the population infinite, too.
    """
    from trueodds.estimators.base import Mean

    number = read_path(entry, paths[gate.part], gate.coverage)
    if number is None and gate.part in ("low", "high"):
        value = read_path(entry, paths["value"], gate.coverage)
        if value is not None and math.isinf(value) and isinstance(make_default_estimator(entry.estimator), Mean):
            return float(value)
    return None if number is None else float(number)


def number_of_estimate(gate: Gate, estimate: Any) -> tuple[float | None, str]:
    """Return the number that the gate names, of an estimate or of one of its views, and its label."""
    if gate.lens in (None, estimate.lens):
        number, remark = find_part_and_remark(estimate, gate)
        return number, _append_remarks(_format_gate_number_name(gate, estimate.lens), remark)
    if gate.lens in estimate.parts and gate.part == "value":
        return estimate.parts[gate.lens], f"{gate.name}@{gate.lens}"
    lens_suggestion = suggest_names(str(gate.lens), [estimate.lens, *filter(is_lens, estimate.parts)])
    raise gate.not_evaluable_error(f"{estimate.estimator} through the lens {estimate.lens}", lens_suggestion)


def report_and_evaluate(
    result: GatedResult,
    json_path: str | None,
    gates: Sequence[Gate],
    note_on_bound: Callable[[Gate], Note | None] | None = None,
) -> None:
    """Print the result of a command with its notes, or write its JSON, and then evaluate the gates."""
    gated: Any = result.result
    output.print_result(gated.describe(), gated.notes, gated.to_dict(), json_path)
    evaluate_gates(gates, result, gated.notes, note_on_bound)


def evaluate_gates(
    gates: Sequence[Gate],
    result: GatedResult,
    notes: Iterable[Note],
    note_on_bound: Callable[[Gate], Note | None] | None = None,
) -> None:
    """Print on stderr which gates passed; exit with 1 if one failed. A gate that cannot be evaluated is an error.

    `notes` are those of the result: if the data were probably misread, no gate passes; other doubts about the data are
    repeated after a gate that passed. `note_on_bound` returns what has to be known about the bound of such a gate.
    """
    failed, errors, notes = False, [], list(notes)
    for gate in gates:
        try:
            fails, reason = evaluate_gate(gate, result)
            if not fails:
                _require_plausible_data(gate, notes)
        except InputError as problem:
            errors.append(problem)
            continue
        output.print_text(f"gate {'failed' if fails else 'passed'}: {reason}", err=True)
        if fails:
            for other_reason in _reasons_of_other_groups(gate, result):
                output.print_text(f"gate failed: {other_reason}", err=True)
        else:
            note_on_gate = None if note_on_bound is None else note_on_bound(gate)
            for note in [*([] if note_on_gate is None else [note_on_gate]), *_doubts_about_data(notes)]:
                output.print_text(f"  {note_line(note)}", err=True)
        failed = failed or fails
    if errors:
        raise errors[0]
    if failed:
        click.get_current_context().exit(GATE_FAILED)


def evaluate_gate(gate: Gate, result: GatedResult) -> tuple[bool, str]:
    """Return whether the gate fails, and why; TO611 if the number does not exist."""
    if not gate.operator:
        fails, reason = result.evaluate_condition(gate)
        _require_examined_groups(gate, result, fails=fails)
        return fails, f"{gate.name} ({reason})"
    number, name = result.number(gate)
    if number is None or math.isnan(number):
        raise gate.not_evaluable_error(f"no number for {name}", "It is undefined or was not computed: see the notes.")
    fails, number_text = gate.fails(number), format_number(number)
    _require_examined_groups(gate, result, fails=fails)
    if gate.fails(float(number_text)) != fails:  # rounding would show the other outcome
        number_text = repr(number)
    return fails, f"{name} = {number_text}{'' if fails else ', not'} {gate.operator} {gate.limit:g}"


def _require_plausible_data(gate: Gate, notes: Sequence[Note]) -> None:
    """Raise TO613 for a gate that would pass if the notes say that the data were probably misread."""
    from trueodds.core.codes import load_codes, plain_text
    from trueodds.io.stated_confidence import DOUBTFUL_SCALE_CODES
    from trueodds.reports.text.recalibration import IMPLAUSIBLE_DATA_TEXTS

    for note in notes:
        if note.code not in IMPLAUSIBLE_DATA_TEXTS and note.code not in DOUBTFUL_SCALE_CODES:
            continue
        code = load_codes()[note.code]
        text = IMPLAUSIBLE_DATA_TEXTS.get(note.code, code.meaning)
        remedy = re.sub("`(.*?)`", r"⟨\1⟩", plain_text(code.remedy))
        raise InputError(
            "TO613",
            f"--fail-on {gate.text!r} would pass, but the data seem to be misread.",
            f"{note.code}: {text.rstrip('.')}",
            remedy,
        )


def _doubts_about_data(notes: Sequence[Note]) -> list[Note]:
    """Return the notes on rows that are unlike new ones, or may be misread, for which a pass may mean little."""
    from trueodds.reports.text.recalibration import DOUBTFUL_DATA_TEXTS

    return [note for note in notes if note.code in (*DOUBTFUL_DATA_TEXTS, "TN185")]


def _require_examined_groups(gate: Gate, result: GatedResult, *, fails: bool) -> None:
    """Raise TO612 if a gate on all groups would pass although some of them were not examined.

    A gate that fails on the examined groups fails whatever the others are.
    """
    if fails or result.accepts_unexamined or not result.unexamined:
        return
    if gate.group != WORST_GROUP and gate.name not in GATES_ON_ALL_GROUPS:
        return
    labels = [group["label"] for group in result.unexamined]
    n_groups = len(result.result.groups) + len(labels)
    raise InputError(
        "TO612",
        f"--fail-on {gate.text!r} could not be checked: {len(labels):,} of {n_groups:,} groups were not examined.",
        list_groups(labels),
        f"{_examine_remedy(result.unexamined)} Or accept this by --accept-unexamined.",
    )


def list_groups(labels: Sequence[str]) -> str:
    """Return the first labels as text, and how many more there are."""
    more = f" and {len(labels) - MAX_NAMED_GROUPS:,} more" if len(labels) > MAX_NAMED_GROUPS else ""
    return f"{', '.join(labels[:MAX_NAMED_GROUPS])}{more}"


def unexamined_group_error(gate: Gate, group: Mapping[str, Any]) -> InputError:
    from trueodds.hypotests.group_results import NO_WEIGHT

    return InputError(
        "TO612",
        f"--fail-on {gate.text!r} could not be checked: the group exists, but was not examined.",
        f"{group['label']}, {'with rows of weight 0 only' if group['reason'] == NO_WEIGHT else 'beyond --max-groups'}",
        _examine_remedy([group]),
    )


def _examine_remedy(unexamined: Sequence[Mapping[str, Any]]) -> str:
    from trueodds.hypotests.group_results import NO_WEIGHT

    if all(group["reason"] == NO_WEIGHT for group in unexamined):
        return "Give their rows weight, or remove them from the file."
    return "Leave --max-groups out, which examines every group that has weight."


def _reasons_of_other_groups(gate: Gate, result: GatedResult) -> list[str]:
    """Return the reasons of the groups that fail a gate on the worst group, except for that group itself."""
    if gate.group != WORST_GROUP:
        return []
    gates_of_groups = [replace(gate, group=label) for label in result.estimates_of_groups(gate)]
    numbers = [(result.number(group_gate)[0], group_gate) for group_gate in gates_of_groups]
    failing = [(number, group_gate) for number, group_gate in numbers if number is not None and gate.fails(number)]
    # The sort keeps the order of equal numbers, so the first one is the group that the gate has named.
    failing.sort(key=lambda pair: pair[0], reverse=gate.fails_above)
    return [evaluate_gate(group_gate, result)[1] for _, group_gate in failing[1:]]


def find_part_and_remark(estimate: Any, gate: Gate) -> tuple[float | None, str]:
    """Return the part of an estimate that the gate names, and a remark on it, "" if it needs none.

    An estimate has a debiased value only near its noise floor. Far above it nothing is subtracted, so the value itself
    is returned, with a remark.
    """
    if gate.part != "debiased" or estimate.debiased is not None:
        return read_number(estimate, ESTIMATE_PATHS, gate), ""
    if make_default_estimator(estimate.estimator).interval == "debiased":
        return estimate.value, "debiased by itself"
    if estimate.noise_floor is None or estimate.value is None or not math.isfinite(estimate.value):
        return None, ""
    return estimate.value, NOT_SUBTRACTED_REMARK


def find_group_number(
    gate: Gate, groups: Mapping[str, Any], unexamined: Sequence[Mapping[str, Any]]
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
        number, remark = find_part_and_remark(groups[requested], gate)
        return number, _append_remarks(gate_text, remark)
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
        number, remarks[label] = find_part_and_remark(estimate, gate)
        if number is not None and not math.isnan(number):
            defined_numbers[label] = number
    nearest_to_failing = max if gate.fails_above else min
    worst = nearest_to_failing(defined_numbers, key=lambda label: defined_numbers[label]) if defined_numbers else None
    if worst is None or (len(defined_numbers) < len(groups) and not gate.fails(defined_numbers[worst])):
        undefined_labels = ", ".join(label for label in groups if label not in defined_numbers)
        raise gate.not_evaluable_error(
            f"no {gate.part} of {undefined_labels}", "A group that cannot be evaluated does not pass: see the notes."
        )
    return defined_numbers[worst], _append_remarks(gate_text, worst, remarks[worst])


def _append_remarks(name: str, *remarks: str) -> str:
    """Return a name followed by the remarks that are not empty, in parentheses."""
    texts = [remark for remark in remarks if remark]
    return f"{name} ({', '.join(texts)})" if texts else name


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


def requested_coverages(gates: Sequence[Gate]) -> list[float]:
    return [gate.coverage for gate in gates if gate.coverage is not None]


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


def _format_gate_number_name(gate: Gate, lens: str | None) -> str:
    """Return the name of the number as a gate writes it, such as `ece[worst].low@classwise`."""
    group = "" if gate.group is None else f"[{gate.group}]"
    part = "" if gate.part == "value" else f".{gate.part}"
    return f"{gate.name}{group}{part}" + ("" if lens is None else f"@{lens}")


def _error_of_group(group: AuditGroup) -> AuditMeasure:
    """Return the error of a group in an audit, debiased as `measure` does it."""
    from trueodds.core.json_files import strict_json
    from trueodds.reports.audit_sections import AuditMeasure
    from trueodds.resampling.null_distribution import subtract_noise_floor

    debiased = None
    if group.error is not None and group.noise_floor is not None:
        debiased = strict_json(float(subtract_noise_floor(group.error, group.noise_floor)))
    return AuditMeasure(
        estimator="ece", lens="", value=group.error, interval=group.interval, noise_floor=group.noise_floor,
        debiased=debiased, parts={}, n=group.n, settings={},
    )  # fmt: skip


def note_in_audit(gate: Gate, audit: AuditResult) -> Note | None:
    """Return the note TN240, if it applies, for a gate that an audit of two classes passed."""
    if gate.lens not in (None, "positive") or audit.data.event_rate is None:
        return None
    return _note_on_rate(gate, audit.data.event_rate, {group.label: group.event_rate for group in audit.groups})


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
