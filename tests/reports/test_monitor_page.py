"""Is the page of a monitor self-contained and small, and does it have the parts of the report?"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import trueodds as to
from trueodds.monitoring.monitor_report import MonitorReport

MAX_BYTES = 300_000


@pytest.fixture(scope="module")
def report() -> MonitorReport:
    """Two and a half years of days, whose last month is wrong, with a group whose name is HTML."""
    rng = np.random.default_rng(4)
    day = np.repeat(np.arange(900), 30)
    p = rng.beta(2, 6, day.size)
    y = (rng.random(day.size) < np.where(day < 860, p, np.minimum(1.6 * p, 1))).astype(int)
    group = {"site": np.where(rng.random(day.size) < 0.5, "<b>north", "south")}
    preds = to.Predictions(y, p, group=group)
    monitor = to.Monitor("5d", group="site").update(preds, np.datetime64("2024-01-01") + day, "2026-06-18")
    return monitor.report()


@pytest.mark.slow
def test_the_page_has_every_part_of_the_report(report: MonitorReport, tmp_path: Path) -> None:
    path = tmp_path / "monitor.html"
    page = report.to_html(path)
    assert path.read_text(encoding="utf-8") == page
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page.replace("\u00a0", " ").replace("&#39;", "'")))
    assert report.alarm
    assert report.since is not None
    for line in report.describe().splitlines()[:3]:
        assert re.sub(r"\s+", " ", line.replace("\u00a0", " ")) in text
    for part in ("Drift of the predictions", "Open cohorts", "What contributes to the evidence", report.since):
        assert part in text
    assert report.advice.fit_command in text
    for assumption in report.assumptions[1:]:
        assert assumption in text
    assert "<b>north" not in page
    assert "<dt>group</dt><dd>site</dd>" in page
    assert "An alarm needs a log e-value of 3.00." in text


@pytest.mark.slow
def test_the_page_is_small_and_loads_nothing(report: MonitorReport) -> None:
    page = report.to_html()
    assert len(page.encode()) <= MAX_BYTES
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    assert "default-src 'none'" in page


def test_a_page_before_any_judgment_says_so() -> None:
    assert "Nothing judged yet" in to.Monitor().report().to_html()


@pytest.mark.slow
def test_the_page_of_several_classes_names_the_one_that_it_is_about() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 4000)
    cohort = np.arange(4000) // 200
    label = np.array(["a", "b", "c"])[(P.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)]
    for labels, name in ((label, "a"), (np.where((cohort > 9) & (label == "a"), "b", label), "")):
        report = to.Monitor(0, "integer").update(to.Predictions(labels, P, classes=list("abc")), cohort, 20).report()
        page = report.to_html()
        about = name or report.contributions[0].view.removeprefix("class:")
        assert f"observed − predicted, {about} " in page
        assert f"The events are those of {about}." in page
        assert re.search(r"\b\d+\.\d\u00a0% of the rows moved", page)  # no further decimals
