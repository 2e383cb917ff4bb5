"""Gates: parse the conditions of --fail-on, such as 'ece.low>0.05', and exit with status 1 if one of them holds.

A gate bounds a number of the result (NAME), of a subgroup ([GROUP]), or a part of it (.PART, such as an end of the
interval), through a lens (@LENS); or it is a word such as "reject". The name of a selective risk includes its coverage
(risk@0.8). `gate_values` finds the numbers in the results.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import click

from trueodds.cli import output
from trueodds.cli.messages import note_line
from trueodds.core.errors import InputError
from trueodds.core.formatting import format_number
from trueodds.core.suggestions import suggest_names

if TYPE_CHECKING:
    from trueodds.core.errors import Note
    from trueodds.core.results import Estimate

GATE_FAILED = 1  # exit code if a condition holds; invalid input has another one

_SYNTAX_REMEDY = (
    "Write {words}NAME[GROUP].PART@LENS and >, >=, < or <= and a number, where only NAME is needed, for instance"
    " {example}."
)
# NAME@COVERAGE[GROUP].PART@LENS OPERATOR LIMIT, where only the name, the operator and the limit are required. Digits
# after the decimal point of a coverage belong to it, letters are a part.
_GATE_PATTERN = re.compile(
    r"\s*(?P<name>[^\s\[.@<>=][^\[.@<>=]*?)(?:@(?P<coverage>\d+(?:\.\d+)?|\.\d+))?(?:\[(?P<group>.+?)\])?(?:\.(?P<part>[A-Za-z_]+))?(?:@(?P<lens>.+?))?"
    r"\s*(?P<operator>>=|<=|>|<)\s*(?P<limit>\S+)\s*"
)
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda x, limit: x > limit,
    ">=": lambda x, limit: x >= limit,
    "<": lambda x, limit: x < limit,
    "<=": lambda x, limit: x <= limit,
}
# The parts that a gate may name of a number without and with an interval: the value, and the ends of the interval.
VALUE_PART, VALUE_AND_ENDS = ("value",), ("value", "low", "high")
PARTS = (*VALUE_AND_ENDS, "floor", "noise_floor", "debiased")
RISK = "risk"  # the number whose name includes a coverage
WORST_GROUP = "worst"  # stands for the group that is nearest to failing
GATES_ON_ALL_GROUPS = ("reject", "pvalue")  # decisions and numbers for which all groups are tested
MAX_NAMED_GROUPS = 5  # maximum number of groups that an error names


@dataclass(frozen=True, slots=True)
class Scope:
    """The words, numbers and estimators that the gates of one command may name; anything else is refused at once."""

    command: str  # name of the command
    words: tuple[str, ...] = ()  # conditions without a bound, such as "reject"
    numbers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # numbers that are no estimates, with parts
    estimators: tuple[str, ...] | None = ()  # None allows any
    estimators_by_group: tuple[str, ...] | None = ()  # those that are known for every group; None allows any
    accepts_lens: bool = False  # whether a lens may be named
    omits_intervals: bool = False  # whether estimates have no interval and no noise floor
    estimator: Any = None  # the estimator of the command with its settings, if it has one
    example: str = "'ece.low>0.02'"  # a condition for error messages

    @property
    def gated_names(self) -> list[str]:
        return [*(self.estimators or ()), *self.numbers]


AUDIT_SCOPE = Scope(
    "audit",
    ("reject",),
    {"pvalue": VALUE_PART},
    None,
    None,
    accepts_lens=True,
)


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition under which a command fails; for its syntax see the docstring of the module."""

    text: str  # the condition as it was written
    name: str  # name of an estimator or a number, or a word such as "reject"; that of a risk includes its coverage
    part: str = "value"  # one of `PARTS`
    group: str | None = None  # label of a subgroup, or `WORST_GROUP`
    lens: str | None = None
    operator: str = ""  # empty for a word
    limit: float = 0.0  # the bound with which the number is compared

    @classmethod
    def parse(cls, text: str, scope: Scope = AUDIT_SCOPE) -> Gate:
        """Parse a condition; invalid text raises an error, so that no typo becomes a gate that never fails.

        >>> gate = Gate.parse("ece.low@classwise >= 0.02")
        >>> gate.name, gate.part, gate.lens, gate.operator, gate.limit
        ('ece', 'low', 'classwise', '>=', 0.02)
        >>> Gate.parse("ece[worst]>0.1").group
        'worst'
        >>> gates = [Gate.parse(text) for text in ("risk@0.8.low>0.4", "risk.low@0.8>0.4")]
        >>> [(gate.name, gate.part, gate.coverage) for gate in gates]
        [('risk@0.8', 'low', 0.8), ('risk@0.8', 'low', 0.8)]
        """
        if text.strip() in scope.words:
            return cls(text, text.strip())
        match = _GATE_PATTERN.fullmatch(text)
        if match is None and re.search("==|=>|=<", text):
            raise _invalid_gate_error("--fail-on compares with >, >=, < or <=.", text, f"For instance {scope.example}.")
        if match is None:
            words = "".join(f"{word}, or " for word in scope.words)
            raise _invalid_gate_error(
                "--fail-on has no condition.", text, _SYNTAX_REMEDY.format(words=words, example=scope.example)
            )
        part = "noise_floor" if match["part"] == "floor" else match["part"] or "value"
        name, lens = _split_coverage(match["name"], match["coverage"], match["lens"], scope)
        gate = cls(text, name, part, match["group"], lens, match["operator"], _parse_limit(match["limit"]))
        _check_gate(gate, scope)
        return gate

    @property
    def coverage(self) -> float | None:
        """The coverage of a risk, or None if it is not between 0 and 1."""
        name, _, text = self.name.partition("@")
        coverage = float(text) if name == RISK and text else 0.0
        return coverage if 0 < coverage <= 1 else None

    @property
    def base_name(self) -> str:
        return self.name.partition("@")[0]

    def fails(self, number: float) -> bool:
        return _OPERATORS[self.operator](number, self.limit)

    @property
    def fails_above(self) -> bool:
        return self.operator in (">", ">=")

    def not_evaluable_error(self, got: str, fix: str) -> InputError:
        return InputError("TO611", f"--fail-on {self.text!r} cannot be evaluated.", got, fix)


class GatedResult(Protocol):
    """The result of a command, from which gates read numbers and decisions."""

    def number(self, gate: Gate) -> tuple[float | None, str]:
        """Return the number that the gate names and its label; None if there is none."""
        ...

    def evaluate_condition(self, gate: Gate) -> tuple[bool, str]:
        """Return whether the condition that the word names is true, so that the gate fails, and why."""
        ...


@runtime_checkable
class GatedGroupResult(GatedResult, Protocol):
    """A result with an estimate for every group that was examined."""

    @property
    def n_groups(self) -> int:
        """The number of groups, examined or not."""
        ...

    @property
    def unexamined(self) -> Sequence[Mapping[str, Any]]:
        """The groups that exist and were not examined, as JSON objects."""
        ...

    @property
    def accepts_unexamined(self) -> bool:
        """Whether the user accepts that they were not examined."""
        ...

    def estimates_of_groups(self, gate: Gate) -> Mapping[str, Estimate]:
        """Return the estimate of each group, by its label."""
        ...


def parse_gates(texts: Sequence[str], scope: Scope) -> list[Gate]:
    """Parse the gates of a command; invalid ones are rejected before the command runs."""
    return [Gate.parse(text, scope) for text in texts]


def evaluate_gates(
    ctx: click.Context,
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
        ctx.exit(GATE_FAILED)


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
    if fails or not isinstance(result, GatedGroupResult) or result.accepts_unexamined or not result.unexamined:
        return
    if gate.group != WORST_GROUP and gate.name not in GATES_ON_ALL_GROUPS:
        return
    labels = [group["label"] for group in result.unexamined]
    raise InputError(
        "TO612",
        f"--fail-on {gate.text!r} could not be checked: {len(labels):,} of {result.n_groups:,} groups were not"
        " examined.",
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
    if gate.group != WORST_GROUP or not isinstance(result, GatedGroupResult):
        return []
    gates_of_groups = [replace(gate, group=label) for label in result.estimates_of_groups(gate)]
    numbers = [(result.number(group_gate)[0], group_gate) for group_gate in gates_of_groups]
    failing = [(number, group_gate) for number, group_gate in numbers if number is not None and gate.fails(number)]
    # The sort keeps the order of equal numbers, so the first one is the group that the gate has named.
    failing.sort(key=lambda pair: pair[0], reverse=gate.fails_above)
    return [evaluate_gate(group_gate, result)[1] for _, group_gate in failing[1:]]


def _split_coverage(name: str, coverage: str | None, lens: str | None, scope: Scope) -> tuple[str, str | None]:
    """Return the name, with the coverage if it is a risk, and the lens. The coverage may also follow the part."""
    if name != RISK:
        return name, lens if coverage is None else coverage
    if coverage is None and lens is not None:
        coverage, _, rest = lens.partition("@")
        lens = rest or None
    if coverage is None:  # that of the command, if it has one
        own_name = getattr(scope.estimator, "name", "")
        return own_name if own_name.partition("@")[0] == RISK else name, lens
    try:
        return f"{name}@{float(coverage):.12g}", lens
    except ValueError:
        return name, coverage


def _parse_limit(text: str) -> float:
    """Parse the bound of a condition, which must be a finite number."""
    try:
        limit = float(text)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        fix = "Repeat --fail-on for every bound." if "," in text else "For instance 'ece.low>0.02'."
        raise _invalid_gate_error("--fail-on compares with a finite number.", text, fix)
    return limit


def _check_gate(gate: Gate, scope: Scope) -> None:
    """Reject a gate on a number that the command does not have."""
    parts = scope.numbers.get(gate.base_name)
    if gate.base_name == RISK and gate.coverage is None:
        raise _invalid_gate_error("A risk needs a coverage.", gate.text, "For instance 'risk@0.8>0.05'.")
    if parts is None:
        _check_estimator(gate, scope)
        parts = PARTS
    if gate.part not in parts:
        fix = suggest_names(gate.part, parts) if gate.part not in PARTS else f"It has {', '.join(parts)}."
        raise _invalid_gate_error(f"{gate.name} has no such part.", gate.part, fix)
    if gate.base_name in scope.numbers and gate.group is not None:
        raise _invalid_gate_error(f"{gate.name} is not available by group.", gate.text, f"Leave [{gate.group}] out.")
    if gate.lens is not None:
        if not scope.accepts_lens or gate.base_name in scope.numbers or gate.group is not None:
            raise _invalid_gate_error(
                f"A gate on {gate.name} cannot name a lens here.", gate.text, f"Leave @{gate.lens} out."
            )
        from trueodds.lenses.lens_by_name import as_lens

        _refuse_part_after_lens(gate)
        as_lens(gate.lens)
    _check_attainable(gate, *_value_range(gate, scope))


def _refuse_part_after_lens(gate: Gate) -> None:
    """Raise an error for a part at the end of the lens, as in ece@classwise.low, which belongs before the @."""
    lens, _, part = str(gate.lens).rpartition(".")
    if lens and part in (*PARTS, "floor") and gate.part == "value" and not is_lens(str(gate.lens)):
        fix = f"Write '{gate.name}.{part}@{lens}{gate.operator}{gate.limit:g}'."
        raise _invalid_gate_error("The part of the number comes before the lens.", gate.text, fix)


def is_lens(name: str) -> bool:
    """Return whether this is a lens, and not a part of an estimate such as `over`; a class may have any name."""
    from trueodds.lenses.lens_by_name import as_lens

    try:
        as_lens(name)
    except InputError:
        return False
    return True


def _value_range(gate: Gate, scope: Scope) -> tuple[float, float]:
    if gate.name in ("statistic", "effect"):
        return -math.inf, math.inf
    if gate.base_name in scope.numbers and gate.name != "difference":
        return 0.0, 1.0
    estimator = make_default_estimator(gate.name) if scope.estimator is None else scope.estimator
    # On a class, `max_value` is a property, not a number.
    upper = estimator.max_value if isinstance(estimator.max_value, float) else math.inf
    if gate.name == "difference":
        return estimator.lower_bound - upper, upper - estimator.lower_bound
    return -math.inf if gate.part == "debiased" else estimator.lower_bound, upper  # a debiased error may be negative


def _check_attainable(gate: Gate, lower: float, upper: float) -> None:
    """Reject a bound outside the range of the number: such a gate could never fail."""
    number, limit = gate.text[: gate.text.rindex(gate.operator)].strip(), gate.limit
    if _OPERATORS[gate.operator](upper if gate.fails_above else lower, limit):
        return
    bound = f"at most {upper:g}" if gate.fails_above else f"at least {lower:g}"
    is_percentage = gate.fails_above and upper == 1 < limit <= 100
    fix = f"Bound it {'below' if gate.fails_above else 'above'} {upper if gate.fails_above else lower:g}."
    if is_percentage:
        fix = f"Write '{number}{gate.operator}{limit / 100:g}' for {limit:g} %."
    raise _invalid_gate_error(f"{gate.name} is {bound}; this gate could never fail.", gate.text, fix)


def _check_estimator(gate: Gate, scope: Scope) -> None:
    """Reject a gate on an estimator, a group or a part that the command does not report."""
    if scope.estimators is not None and gate.name not in scope.estimators:
        suggestion = (
            suggest_names(gate.name, scope.gated_names) if scope.gated_names else "It has only words, no numbers."
        )
        raise _invalid_gate_error(f"trueodds {scope.command} has no such number.", gate.name, suggestion)
    estimator = make_default_estimator(gate.name) if scope.estimator is None else scope.estimator
    by_group = scope.estimators_by_group
    if gate.group is not None and by_group is not None and gate.name not in by_group:
        fix = f"trueodds groups FILE --group C --estimator {gate.name} --fail-on {gate.text!r}"
        problem = f"trueodds {scope.command} does not report the {gate.name} of every group."
        raise _invalid_gate_error(problem, gate.text, fix)
    if scope.omits_intervals and gate.part != "value":
        raise _invalid_gate_error(
            "--interval none omits the interval and the noise floor.", gate.text, "Leave --interval out."
        )
    if gate.part in ("low", "high") and estimator.interval is None:
        problem = f"{gate.name} has no interval with known coverage."
        raise _invalid_gate_error(problem, gate.text, f"Bound {gate.name} itself, or {gate.name}.debiased.")
    if gate.part == "debiased" and (estimator.interval == "bca" or not estimator.vanishes_if_calibrated):
        problem = f"{gate.name} is not biased upward by noise, so it has no debiased form."
        raise _invalid_gate_error(problem, gate.text, f"Bound {gate.name} or {gate.name}.low.")


def make_estimator(estimator: str, settings: Mapping[str, Any]) -> Any:
    """Create the estimator with those of the command's settings that it has."""
    from trueodds.estimators import ESTIMATORS

    try:
        settings_of_estimator = {
            name: value for name, value in settings.items() if ESTIMATORS.has_setting(estimator, name)
        }
        return ESTIMATORS.make(estimator, settings_of_estimator)
    except InputError:  # the command itself reports invalid settings
        return make_default_estimator(estimator)


def make_default_estimator(estimator: str) -> Any:
    """Create the estimator with its default settings; return its class if it has settings without a default."""
    from trueodds.estimators import ESTIMATORS

    try:
        return ESTIMATORS.make(estimator, {})
    except InputError as problem:
        if problem.code == "TO201":
            raise _invalid_gate_error("--fail-on names no estimator.", estimator, problem.fix) from None
        return ESTIMATORS.load(estimator)


def _invalid_gate_error(problem: str, got: Any, fix: str) -> InputError:
    return InputError("TO610", problem, repr(got), fix)
