"""A page that can be signed: title, author, date and lines for signatures; and events counted beside rows."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.reports.example import example
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.reports.audit import Audit, audit
from trueodds.reports.html.audit_page import render_html
from trueodds.reports.html.rendering import Cover
from trueodds.reports.text import result_tables
from trueodds.reports.text.summary import summary_lines


def _two_classes(**columns: Any) -> Predictions:
    rng = np.random.default_rng(3)
    p = rng.uniform(0.1, 0.9, 80)
    return Predictions((rng.random(80) < p).astype(int), p, **columns)


@pytest.fixture(scope="module")
def report() -> Audit:
    return audit(_two_classes(), resamples=99)


def _header(html: str) -> str:
    return re.sub(r"<[^>]+>|\s+", " ", html.split("<header")[1].split("</header>")[0])


def test_a_page_states_its_title_author_and_date_and_has_lines_for_signatures(report: Audit, tmp_path: Path) -> None:
    html = report.to_html(tmp_path / "a.html", title="Validation <B>", author="A. Author", date="2026-03-01")
    assert "<title>Validation &lt;B&gt;</title>" in html
    assert [text in _header(html) for text in ("Validation &lt;B&gt;", "A. Author", "2026-03-01")] == [True] * 3
    signatures = html.split('id="signatures"')[1].split("</dl>")[0]
    assert re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", signatures) == [
        ("Prepared by", "A. Author"), ("Date, signature", ""), ("Approved by", ""), ("Date, signature", ""),
    ]  # fmt: skip
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == html


def test_a_page_without_title_author_and_date_has_no_date_and_no_lines(report: Audit) -> None:
    html = report.to_html()
    assert 'id="signatures"' not in html
    assert "<title>Calibration audit: predictions in memory</title>" in html
    assert datetime.date.today().isoformat() not in html


def test_the_date_is_that_of_the_caller_or_today() -> None:
    assert Cover.of(date=datetime.date(2026, 3, 1)).date == "2026-03-01"
    assert Cover.of(date=datetime.datetime(2026, 3, 1, 12)).date == "2026-03-01"
    before = datetime.date.today()
    assert before <= datetime.date.fromisoformat(Cover.of(author="A").date) <= datetime.date.today()
    assert Cover.of() == Cover()


@pytest.mark.parametrize("settings", [{"date": "1 March 2026"}, {"date": 20260301}, {"title": 3}, {"author": ["A"]}])
def test_other_values_are_refused(report: Audit, settings: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        report.to_html(**settings)
    assert caught.value.code == "TO203"


def test_controls_in_a_title_are_escaped(report: Audit) -> None:
    assert Cover.of(title="a\u202eb\n c").title == r"a\u202eb\n c"


def test_events_and_non_events_are_counted_beside_rows(report: Audit) -> None:
    events = int(_two_classes().y.sum())
    rows = dict(result_tables.data_table(_typed(report)).rows)
    assert list(rows)[1:4] == ["rows", "events", "non-events"]
    assert (rows["events"], rows["non-events"]) == (str(events), str(80 - events))
    (line,) = [line for line in summary_lines(_typed(report)) if line.label == "Observed event rate"]
    assert line.remark.startswith(f"class 1, {events} events and {80 - events} non-events in 80 rows; ")


def test_events_of_weighted_rows_and_of_several_classes_are_not_counted() -> None:
    weighted = audit(_two_classes(weight=np.linspace(0.5, 2, 80)), resamples=39)
    assert _typed(weighted).data.event_counts is None
    assert "events" not in dict(result_tables.data_table(_typed(weighted)).rows)
    assert "events" not in dict(result_tables.data_table(_typed(example())).rows)


def test_the_standard_measures_come_before_the_evidence(report: Audit) -> None:
    html = report.to_html()
    assert html.index('class="tiles"') < html.index('id="table-standard"') < html.index('id="evidence"')


def test_bins_of_classes_that_are_not_drawn_are_for_the_screen_only() -> None:
    document = example()
    (classwise,) = [
        one for one in document["diagrams"] if one["diagram"] == "reliability" and one["lens"] == "classwise"
    ]
    row = {name: values[0] for name, values in classwise["table"].items() if isinstance(values, list)}
    views = [f"class:c{i}" for i in range(14)]
    classwise["table"] = {name: [value] * 14 for name, value in row.items()} | {"view": views}
    rows = re.findall(r'<tr id="numbers-figure-reliability-classwise-\d+"( class="screen")?>', render_html(document))
    assert [bool(mark) for mark in rows] == [False] * 12 + [True] * 2


def _typed(report: Any) -> Any:
    from trueodds.reports.audit_result import AuditResult

    return AuditResult.from_dict(report.facts if isinstance(report, Audit) else report)
