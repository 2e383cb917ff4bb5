"""Render the record of a self-test as one self-contained HTML page, with the style of the page of an audit."""

from __future__ import annotations

import os

import trueodds
from trueodds.core.printable import printable_tree, to_printable
from trueodds.core.table import Column, Table
from trueodds.reports.html.rendering import render_page
from trueodds.selftest.outcomes import FAILED, NOT_CHECKED, SECTIONS, Check
from trueodds.selftest.record import SelftestReport

MAX_TESTS = 3  # of a claim, in the table; all are in the JSON


def selftest_page(report: SelftestReport, path: str | os.PathLike[str] | None = None) -> str:
    """Return the page of a report, and write it to a file if there is a path.

    >>> from trueodds.selftest.record import SelftestReport
    >>> selftest_page(SelftestReport((), (), {})).startswith("<!doctype html>")
    True
    """
    return render_page(
        "selftest_page.html.jinja",
        path=path,
        state="passed" if report.passed else "failed",
        role="good" if report.passed else "bad",
        sentence=report.headline,
        details=_details(report),
        tiles=_tiles(report),
        problems=[
            (heading, _check_table(heading, [check for check in report.checks if check.status == status]))
            for status, heading in ((FAILED, "What failed"), (NOT_CHECKED, "What was not checked"))
        ],
        sections=[
            (f"section-{number}", _section_table(report, section, content))
            for number, (section, content) in enumerate(SECTIONS.items())
        ],
        trace=_trace_table(report),
        machine=Table.from_entries("Machine and versions", printable_tree(list(report.machine.items()))),
        version=trueodds.__version__,
        schema=report.json_schema,
    )


def _details(report: SelftestReport) -> list[str]:
    lines = [f"{report.chance_sentence} What was not checked does not count as passed."]
    if report.rows is not None:
        lines.append(to_printable(f"The laws were also checked on {report.rows}."))
    return lines


def _tiles(report: SelftestReport) -> list[dict[str, str]]:
    tiles = []
    for section, content in SECTIONS.items():
        checks = [check for check in report.checks if check.section == section]
        failed = sum(check.failed for check in checks)
        value = f"{failed} failed" if failed else f"{sum(check.status == 'passed' for check in checks)} passed"
        missing = sum(check.status == NOT_CHECKED for check in checks)
        remark = content + (f"; {missing} not checked" if missing else "")
        tiles.append({"label": section, "value": value, "remark": remark, "tone": "bad" if failed else ""})
    return tiles


def _check_table(title: str, checks: list[Check], intro: str = "") -> Table:
    columns = {
        "check": [check.name for check in checks],
        "result": [check.status for check in checks],
        "what was compared": [check.detail for check in checks],
        "expected value from": [check.source for check in checks],
    }
    shown = {name: cells for name, cells in columns.items() if name != "expected value from" or any(cells)}
    return _text_table(title, shown, intro)


def _section_table(report: SelftestReport, section: str, content: str) -> Table:
    checks = [check for check in report.checks if check.section == section]
    title = section[0].upper() + section[1:]
    return _check_table(title, checks, f"{content[0].upper()}{content[1:]}. {report.describe_section(checks)}.")


def _trace_table(report: SelftestReport) -> Table:
    tests = ["; ".join(claim.tests[:MAX_TESTS]) for claim in report.trace]
    columns = {
        "claim": [claim.claim for claim in report.trace],
        "page": [claim.page for claim in report.trace],
        "result here": [claim.status for claim in report.trace],
        "tests of the repository": tests,
    }
    intro = (
        "Methods and statements of the documentation, and the tests of the repository that concern them. The self-test"
        " does not run these tests; the result is that of its own checks of the same method or statement."
    )
    return _text_table("From claims to tests and results", columns, intro)


def _text_table(title: str, columns: dict[str, list[str]], intro: str = "") -> Table:
    cells = (Column(name, [to_printable(text) for text in texts], "text") for name, texts in columns.items())
    return Table(title, tuple(cells), to_printable(intro))
