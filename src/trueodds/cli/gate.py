"""Gates: parse the conditions of --fail-on, such as 'ece.low>0.05', and reject those that a command cannot evaluate.

A gate bounds a number of the result (NAME), of a subgroup ([GROUP]), or a part of it (.PART, such as an end of the
interval), through a lens (@LENS); or it is a word such as "reject". The name of a selective risk includes its coverage
(risk@0.8). `gate_values` reads the numbers from the results, and evaluates the conditions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trueodds.core.errors import InputError
from trueodds.core.suggestions import suggest_names

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
# Of an estimate, where "floor" is short for "noise_floor" in conditions and no part of a `Gate`.
PARTS = ("value", "low", "high", "floor", "noise_floor", "debiased")
RISK = "risk"  # the number whose name includes a coverage
WORST_GROUP = "worst"  # stands for the group that is nearest to failing


@dataclass(frozen=True, slots=True)
class Scope:
    """The words, numbers and estimators that the gates of one command may name, and where its result has them.

    A path has the names of fields, or keys, from the result to a number, as in its JSON.
    """

    command: str  # name of the command
    words: tuple[str, ...] = ()  # conditions without a bound, such as "reject"
    # Numbers that are no estimates: the paths of their parts.
    numbers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # The paths of "estimates", of the groups that are "unexamined", and of "min_pvalue".
    paths: Mapping[str, str] = field(default_factory=dict)
    estimators: tuple[str, ...] | None = ()  # None allows any
    estimators_by_group: tuple[str, ...] | None = ()  # those that are known for every group; None allows any
    accepts_lens: bool = False  # whether a lens may be named
    omits_intervals: bool = False  # whether estimates have no interval and no noise floor
    estimator: Any = None  # the estimator of the command with its settings, if it has one
    example: str = "'ece.low>0.02'"  # a condition for error messages

    @property
    def gated_names(self) -> list[str]:
        return [*(self.estimators or ()), *self.numbers]


def with_ends(value: str, interval: str) -> dict[str, str]:
    """Return the paths of a number and of the ends of its interval."""
    return {"value": value, "low": f"{interval}.low", "high": f"{interval}.high"}


AUDIT_SCOPE = Scope(
    "audit",
    ("reject",),
    numbers={"pvalue": {"value": "verdict.pvalue"}},
    paths={"estimates": "measures", "unexamined": "among_groups.unexamined", "min_pvalue": "verdict.min_pvalue"},
    estimators=None,
    estimators_by_group=None,
    accepts_lens=True,
)
ANSWERS_SCOPE = Scope(
    "answers",
    numbers={
        "accuracy": with_ends("accuracy.value", "accuracy"),
        "overall_accuracy": {"value": "overall_accuracy"},
        "coverage": {"value": "coverage"},
        "mean_confidence": {"value": "mean_confidence"},
        "aurc": with_ends("selective_risk.aurc", "selective_risk.interval"),
        "risk": with_ends("selective_risk.at.[coverage].risk", "selective_risk.at.[coverage]"),
    },
    paths={"estimates": "measures"},
    estimators=("rmsce", "bas"),
    example="'risk@0.8>0.05'",
)


THRESHOLD_SCOPE = Scope(
    "threshold",
    numbers={name: {"value": name} for name in ("threshold", "coverage", "risk")},
    example="'coverage<0.5'",
)


EXPECT_SCOPE = Scope(
    "expect",
    # The expected value, and the share of draws in which it is undefined.
    numbers={"value": with_ends("value", "interval"), "undefined": {"value": "undefined"}},
    example="'value<0.8' or 'value.low<0.8'",
)
JUDGE_SCOPE = Scope("judge", numbers={"value": with_ends("value", "interval")}, example="'value.low<0.9'")


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
    numbers = {name: {"value": name} for name in ("pvalue", "statistic", "effect")}
    return Scope("test", words, numbers=numbers, paths={"min_pvalue": "min_pvalue"}, example="reject or 'pvalue<=0.01'")


def groups_scope(estimator: str, settings: Mapping[str, Any]) -> Scope:
    """Return the scope of `trueodds groups`: the errors of all rows and of every group, and the family-wise p-value."""
    made = make_estimator(estimator, settings)
    return Scope(
        "groups", ("reject",), numbers={"pvalue": {"value": "pvalue"}},
        paths={"estimates": "overall", "unexamined": "unexamined", "min_pvalue": "settings.min_pvalue"},
        estimators=(made.name,), estimators_by_group=(made.name,),
        omits_intervals=settings.get("interval", "auto") is None, estimator=made,
        example=f"'{estimator}[worst].low>0.02'",
    )  # fmt: skip


def compare_scope(estimator: str, settings: Mapping[str, Any]) -> Scope:
    """Return the scope of `trueodds compare`: the difference of two models and its p-value."""
    return Scope(
        "compare", ("reject",),
        numbers={"difference": with_ends("difference", "interval"), "pvalue": {"value": "pvalue"}},
        paths={"min_pvalue": "min_pvalue"}, estimator=make_estimator(estimator, settings), example="'difference.low>0'",
    )  # fmt: skip


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
        gate = cls(
            text,
            name,
            part,
            group=match["group"],
            lens=lens,
            operator=match["operator"],
            limit=_parse_limit(match["limit"]),
        )
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


def parse_gates(texts: Sequence[str], scope: Scope) -> list[Gate]:
    """Parse the gates of a command; invalid ones are rejected before the command runs."""
    return [Gate.parse(text, scope) for text in texts]


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
    parts: Sequence[str] = list(scope.numbers.get(gate.base_name, ()))
    if gate.base_name == RISK and gate.coverage is None:
        raise _invalid_gate_error("A risk needs a coverage.", gate.text, "For instance 'risk@0.8>0.05'.")
    if not parts:
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
    if lens and part in PARTS and gate.part == "value" and not is_lens(str(gate.lens)):
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
    if gate.part == "noise_floor" and estimator.has_fixed_expectation:
        problem = f"The {gate.name} expected of a calibrated model does not depend on the data."
        raise _invalid_gate_error(problem, gate.text, f"Bound {gate.name}, {gate.name}.low or {gate.name}.high.")
    if gate.part == "debiased" and (estimator.interval in ("bca", "wald") or not estimator.vanishes_if_calibrated):
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
