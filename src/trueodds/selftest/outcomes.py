"""One check of the self-test: what was compared, with which result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trueodds.core.errors import InputError
from trueodds.core.json_files import JsonObject

PASSED, FAILED, NOT_CHECKED = "passed", "failed", "not checked"
# The sections in the order in which they run, and what each compares.
SECTIONS = {
    "installation": "files, packages, threads and processor of this machine",
    "reference numbers": "values of independent programs, stored with their source",
    "level": "how often tests reject calibrated predictions, by simulation",
    "coverage": "how often intervals contain the true value, by simulation",
    "laws": "what must hold for any rows: merging, order, weights and names",
}


@dataclass(frozen=True, slots=True)
class Check(JsonObject):
    """One check.

    Attributes
    ----------
    section : str
        The section of the self-test.
    name : str
        What is checked.
    status : {"passed", "failed", "not checked"}
        The result. Only ``"passed"`` was compared and found right.
    detail : str
        The numbers that were compared, or why nothing was.
    source : str
        The program that the expected value comes from; empty if it follows from a law.
    methods : tuple of str
        The methods that are checked, such as ``"estimators:ece"``.
    """

    section: str
    name: str
    status: str
    detail: str
    source: str = ""
    methods: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the comparison was made and came out wrong."""
        return self.status == FAILED


def largest_deviation(
    values: Sequence[float], expected: Sequence[float], rtol: float, atol: float
) -> tuple[float, str, str]:
    """Return the largest deviation as a multiple of what is tolerated, and the two numbers that deviate so much.

    A missing number deviates infinitely, and so does an undefined one, unless both are undefined. Of several numbers,
    the text of the first says which one it is.

    >>> largest_deviation([1.0, 2.5], [1.0, 2.0], rtol=0.0, atol=0.25)
    (2.0, 'number 2 of 2, 2.5', '2')
    """
    if len(values) != len(expected) or not expected:
        return math.inf, f"{len(values)} {'number' if len(values) == 1 else 'numbers'}", f"{len(expected)}"
    deviations = [
        0.0
        if value == target or (math.isnan(value) and math.isnan(target))
        else abs(value - target) / (atol + rtol * abs(target))
        if rtol or atol
        else math.inf
        for value, target in zip(values, expected, strict=True)
    ]
    deviations = [math.inf if math.isnan(deviation) else deviation for deviation in deviations]
    worst = deviations.index(max(deviations))
    place = f"number {worst + 1} of {len(values)}, " if len(values) > 1 else ""
    return deviations[worst], f"{place}{values[worst]:.12g}", f"{expected[worst]:.12g}"


def describe_error(problem: Exception) -> str:
    """Return the type and the text of an error as the detail of a failed check.

    >>> describe_error(ValueError("no rows"))
    'ValueError: no rows'
    """
    return str(problem) if isinstance(problem, InputError) else f"{type(problem).__name__}: {problem}"


def count(checks: Iterable[Check], status: str) -> int:
    """Return the number of checks with this result."""
    return sum(check.status == status for check in checks)
