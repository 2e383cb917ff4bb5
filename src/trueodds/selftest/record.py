"""Run all checks, and keep what was compared with which result, and which claims of the documentation it concerns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from trueodds.core.errors import Note
from trueodds.core.formatting import format_count
from trueodds.core.json_files import JsonObject
from trueodds.core.progress import Progress
from trueodds.core.results import Result
from trueodds.data.predictions import Predictions
from trueodds.selftest import levels
from trueodds.selftest.installation import check_installation, describe_machine
from trueodds.selftest.laws import built_in_rows, check_laws
from trueodds.selftest.outcomes import FAILED, NOT_CHECKED, PASSED, SECTIONS, Check, count, describe_error
from trueodds.selftest.reference_numbers import check_reference_numbers, read_stored

# The share of the run time at which each section ends.
_ENDS = {"installation": 0.02, "reference numbers": 0.25, "level": 0.6, "coverage": 0.9, "laws": 1.0}


@dataclass(frozen=True, slots=True)
class TracedClaim(JsonObject):
    """A claim of the documentation, the tests of the repository that check it, and what the self-test found here.

    Attributes
    ----------
    page : str
        The page of the documentation.
    claim : str
        The method and what the page says about it, or a statement.
    tests : tuple of str
        Tests of the repository, which the self-test does not run.
    checks : tuple of str
        Names of the checks of this run that concern the claim.
    status : {"passed", "failed", "not checked"}
        The result of these checks; ``"not checked"`` without any.
    """

    page: str
    claim: str
    tests: tuple[str, ...]
    checks: tuple[str, ...]
    status: str


@dataclass(frozen=True, slots=True, repr=False)
class SelftestReport(Result):
    """What a self-test compared, with which result.

    Attributes
    ----------
    checks : tuple of Check
        The checks in the order in which they were made.
    trace : tuple of TracedClaim
        The claims of the documentation with their tests and the result of their checks.
    machine : mapping
        Versions, processor and threads.
    rows : str or None
        On which rows of which file the laws were checked, too.
    seconds : float
        Run time.
    notes : tuple of Note
        Facts to report.
    """

    json_schema: ClassVar[str] = "trueodds.selftest/1"
    json_keys: ClassVar[tuple[str, ...]] = (
        "passed", "n_passed", "n_failed", "n_not_checked", "false_alarm", "seconds", "rows", "machine", "checks",
        "trace", "notes",
    )  # fmt: skip

    checks: tuple[Check, ...]
    trace: tuple[TracedClaim, ...]
    machine: Mapping[str, str]
    rows: str | None = None
    seconds: float = 0.0
    notes: tuple[Note, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether something was checked and nothing failed."""
        return self.n_passed > 0 and self.n_failed == 0

    @property
    def n_passed(self) -> int:
        """Number of checks that passed."""
        return count(self.checks, PASSED)

    @property
    def n_failed(self) -> int:
        """Number of checks that failed."""
        return count(self.checks, FAILED)

    @property
    def n_not_checked(self) -> int:
        """Number of checks that could not be made."""
        return count(self.checks, NOT_CHECKED)

    @property
    def false_alarm(self) -> float:
        """Bound of the probability that a right program fails by chance, if the seed were random."""
        return levels.FALSE_ALARM

    @property
    def chance_sentence(self) -> str:
        """The bound of false alarms in a sentence."""
        odds = f"1 in {round(1 / self.false_alarm):,}"
        return f"With a random seed, a program without faults would fail with a probability below {odds}."

    @property
    def headline(self) -> str:
        """The result in a sentence."""
        counts = f"{format_count(self.n_passed, 'check')} passed, {self.n_failed} failed"
        missing = f", {self.n_not_checked} could not be made" if self.n_not_checked else ""
        return f"Self-test {'passed' if self.passed else 'failed'}: {counts}{missing}."

    def describe(self) -> str:
        """Describe the result of each section, then what failed and what was not checked.

        Returns
        -------
        str
            Several lines.
        """
        lines = [self.headline]
        for section in SECTIONS:
            checks = [check for check in self.checks if check.section == section]
            lines.append(f"  {section}: {self.describe_section(checks)}")
        if self.rows is not None:
            lines.append(f"The laws were also checked on {self.rows}.")
        for status in (FAILED, NOT_CHECKED):
            named = [check for check in self.checks if check.status == status]
            if named:
                lines.append(f"{status.capitalize()}:")
                lines += [f"  {check.section}, {check.name}: {check.detail}" for check in named]
        results = [claim.status for claim in self.trace]
        traced = {status: results.count(status) for status in (PASSED, FAILED, NOT_CHECKED)}
        lines.append(
            f"Of {format_count(len(self.trace), 'claim')} of the documentation, {traced[PASSED]} were checked and hold,"
            f" {traced[FAILED]} failed, and {traced[NOT_CHECKED]} were not checked here."
        )
        lines.append(f"{self.chance_sentence} The self-test took {self.seconds:.0f} seconds.")
        return "\n".join(lines)

    @staticmethod
    def describe_section(checks: Sequence[Check]) -> str:
        """Describe how many checks of a section had which result, and of how many methods.

        Parameters
        ----------
        checks : sequence of Check
            The checks of the section.

        Returns
        -------
        str
            The numbers, separated by commas.
        """
        counts = [f"{n} {status}" for status in (PASSED, FAILED, NOT_CHECKED) if (n := count(checks, status))]
        methods = {method for check in checks for method in check.methods}
        return ", ".join(counts or ["nothing checked"]) + (
            f" ({format_count(len(methods), 'method')})" if methods else ""
        )


def run_selftest(progress: Progress, preds: Predictions | None = None, rows: str | None = None) -> SelftestReport:
    """Make all checks.

    Parameters
    ----------
    progress : callable
        Called with the share that is done and the section.
    preds : Predictions, optional
        Rows of the user, on which the laws are checked, too.
    rows : str, optional
        Which rows of which file they are.

    Returns
    -------
    SelftestReport
        The report.
    """
    start = time.perf_counter()
    checks: list[Check] = []
    begin = 0.0
    for section, end in _ENDS.items():
        progress(begin, section)
        report_share = partial(_report_share, progress, section, begin, end)
        checks += _guard(section, partial(_run_section, section, report_share, preds, rows))
        begin = end
    return SelftestReport(
        checks=tuple(checks),
        trace=trace_claims(checks),
        machine=describe_machine(),
        rows=rows,
        seconds=time.perf_counter() - start,
    )


def _report_share(progress: Progress, section: str, begin: float, end: float, share: float) -> None:
    progress(begin + (end - begin) * share, section)


def _run_section(
    section: str, report_share: Callable[[float], None], preds: Predictions | None, rows: str | None
) -> Iterator[Check]:
    if section == "installation":
        yield from check_installation()
    elif section == "reference numbers":
        yield from check_reference_numbers(report_share)
    elif section == "level":
        yield from levels.check_levels(report_share)
    elif section == "coverage":
        yield from levels.check_coverage(report_share)
    else:
        for k in (2, 3):
            yield from check_laws(built_in_rows(k), f"{k} classes, built in", report_share, are_built_in=True)
        if preds is not None:
            yield from check_laws(preds, str(rows), report_share)


def _guard(section: str, checks: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """Yield the checks of a section; an error that ends it is a check that failed."""
    try:
        yield from checks()
    except Exception as problem:  # noqa: BLE001 - a damaged installation can raise anything, and the others shall run
        yield Check(section, "all checks are made", FAILED, describe_error(problem))


def trace_claims(checks: Sequence[Check]) -> tuple[TracedClaim, ...]:
    """Return the claims of the documentation, each with the result of the checks that concern it."""
    try:
        stored: Mapping[str, Any] = read_stored()
    except (OSError, ValueError):  # which the section of reference numbers reports
        return ()
    claims = []
    for page, text, key, numbers in stored["claims"]:
        own = [check for check in checks if key in check.methods or f"{check.section}: {check.name}".startswith(key)]
        made = [check.status for check in own if check.status != NOT_CHECKED]
        status = FAILED if FAILED in made else PASSED if made else NOT_CHECKED
        tests = tuple(f"{stored['files'][file]}::{name}" for file, name in (stored["tests"][n] for n in numbers))
        names = tuple(f"{check.section}: {check.name}" for check in own)
        claims.append(TracedClaim(stored["pages"][page], text, tests, names, status))
    return tuple(claims)
