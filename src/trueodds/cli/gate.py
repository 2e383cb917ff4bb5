"""Does the audit pass? Conditions of --fail-on, read before the work begins and judged when it is done."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.core.results import figure

_HOW = "Write reject, or NAME[.low|.high|.floor|.debiased][@LENS] and >, >=, < or <= and a number: 'ece@classwise>0.1'."
_FORM = re.compile(
    r"\s*(?P<name>[a-z][a-z0-9_]*)(?:\.(?P<end>[a-z_]+))?(?:@(?P<lens>.+?))?\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>\S+)\s*"
)
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda x, limit: x > limit,
    ">=": lambda x, limit: x >= limit,
    "<": lambda x, limit: x < limit,
    "<=": lambda x, limit: x <= limit,
}
MEASURED = ("ece", "brier", "log_loss")  # what every audit measures; a test holds it to that
_ENDS = ("value", "low", "high", "floor", "noise_floor", "debiased")


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition under which the audit fails."""

    text: str
    name: str = "reject"
    end: str = "value"
    lens: str | None = None
    sign: str = ""
    limit: float = 0.0

    @classmethod
    def of(cls, text: str) -> Gate:
        """The condition behind the text; one that cannot be read is an error, not a gate that always holds.

        >>> gate = Gate.of("ece.low@classwise >= 0.02")
        >>> gate.name, gate.end, gate.lens, gate.sign, gate.limit
        ('ece', 'low', 'classwise', '>=', 0.02)
        """
        if text.strip() == "reject":
            return cls(text)
        found = _FORM.fullmatch(text)
        if found is None:
            raise InputError("TO610", "--fail-on holds no condition.", repr(text), _HOW)
        if found["name"] not in MEASURED:
            known = f"The audit measures {', '.join(MEASURED)}."
            raise InputError("TO610", "--fail-on names no error that the audit measures.", repr(found["name"]), known)
        end = found["end"] or "value"
        if end not in _ENDS:
            raise InputError("TO610", "--fail-on names no part of an estimate.", repr(end), near(end, _ENDS))
        try:
            limit = float(found["limit"])
        except ValueError:
            limit = math.nan
        if not math.isfinite(limit):
            raise InputError("TO610", "--fail-on compares with a finite number.", repr(found["limit"]), _HOW)
        if found["name"] == "ece" and limit > 1:
            fix = f"Write 'ece{found['sign']}{limit / 100:g}' for {limit:g} %."
            raise InputError("TO610", "An ece lies between 0 and 1; this bound would never be passed.", repr(text), fix)
        return cls(text, found["name"], end, found["lens"], found["sign"], limit)

    def judge(self, audit: Mapping[str, Any]) -> tuple[bool, str]:
        """Whether the gate holds, and why; TO611 where the audit has no such number: that is no pass."""
        if self.name == "reject":
            verdict = audit["verdict"]
            if verdict.get("rejected") is None or verdict.get("pvalue") is None:
                raise InputError(
                    "TO611", "--fail-on reject cannot be judged.", "no p-value for all claims", "See the notes."
                )
            return not verdict["rejected"], verdict["reason"]
        number, said = self._number(audit)
        failed = _SIGNS[self.sign](number, self.limit)
        return not failed, f"{said} is {figure(number)}, and the gate fails if {self.sign} {self.limit:g}"

    def _number(self, audit: Mapping[str, Any]) -> tuple[float, str]:
        measured = [each for each in audit["measures"] if each["estimator"] == self.name]
        if not measured:
            known = dict.fromkeys(each["estimator"] for each in audit["measures"])
            raise self._unknown(f"no {self.name}", near(self.name, known))
        lens, number = self._found(measured)
        where = f"{self.name}{'' if self.end == 'value' else '.' + self.end}@{lens}"
        if number is None or not math.isfinite(number):
            raise self._unknown(f"no number for {where}", "It is infinite or was not computed: see the notes.")
        return float(number), where

    def _found(self, measured: list[Mapping[str, Any]]) -> tuple[str, Any]:
        """The number under its lens; the audit lists the default lens first, and classes as parts."""
        lenses = [each["lens"] for each in measured]
        if self.lens is None or self.lens in lenses:
            each = measured[0 if self.lens is None else lenses.index(self.lens)]
            return each["lens"], _part(each, self.end)
        parts = {name: x for each in measured for name, x in each.get("parts", {}).items()}
        if self.lens in parts and self.end == "value":
            return self.lens, parts[self.lens]
        raise self._unknown(f"no {self.name} through the lens {self.lens}", near(self.lens, [*lenses, *parts]))

    def _unknown(self, got: str, fix: str) -> InputError:
        return InputError("TO611", f"--fail-on {self.text!r} cannot be judged.", got, fix)


def _part(estimate: Mapping[str, Any], end: str) -> Any:
    if end in ("low", "high"):
        return (estimate.get("interval") or {}).get(end)
    return estimate.get("noise_floor" if end == "floor" else end)
