"""Does the diagram of a monitor have the numbers of its report, and mark alarm, onset, resets and open cohorts?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.diagrams._style.marks import LEGEND_SIZE


@pytest.fixture(scope="module")
def monitor() -> to.Monitor:
    rng = np.random.default_rng(4)
    day = np.repeat(np.arange(40), 150)
    p = rng.beta(2, 6, day.size)
    y = (rng.random(day.size) < np.where(day < 15, p, np.minimum(1.4 * p, 1))).astype(int)
    return to.Monitor("5d").update(to.Predictions(y, p), np.datetime64("2026-03-01") + day, "2026-04-10")


def labels(diagram: Any) -> set[str]:
    marks = [mark for mark in diagram.marks(0, LEGEND_SIZE) if not mark.is_empty]
    return {mark.label for mark in marks if mark.label}


def test_the_table_has_the_cohorts_of_the_report(monitor: to.Monitor) -> None:
    report = monitor.report()
    table = report.draw().table
    assert table["cohort"].tolist() == [row.cohort for row in report.cohorts]
    assert table["part"].tolist() == ["judged"] * 35 + ["open"] * 5
    judged = report.judged_cohorts[20]
    assert table["ratio"][20] == pytest.approx(judged.observed / judged.expected)
    assert judged.log_evidence is not None
    half_width = 1.959964 * np.sqrt(judged.variance) / judged.expected
    assert table["high"][20] - table["ratio"][20] == pytest.approx(half_width, rel=1e-6)
    assert table["log10_evidence"][20] == pytest.approx(judged.log_evidence / np.log(10))
    first = np.datetime64("2026-03-01").astype(int)
    assert (table["start"] - first).tolist() == list(range(40))
    assert (table["end"] - table["start"] == 1).all()


def test_alarm_onset_and_open_cohorts_are_marked(monitor: to.Monitor) -> None:
    report = monitor.report()
    diagram = report.draw()
    assert {"alarm", "onset", "onset region", "alarm at 20", "open cohorts"} <= labels(diagram)
    days = {name: np.datetime64(int(diagram.panels[name][0]), "D") for name in ("onset", "earliest", "latest", "alarm")}
    assert report.onset is not None
    assert str(days["onset"]) == report.since
    assert str(days["earliest"]) == report.onset.earliest
    assert str(days["latest"] - 1) == report.onset.latest  # its end
    assert str(days["alarm"] - 1) == report.status.alarm_cohort
    assert "alarm" in labels(diagram.less("onset"))


def test_a_quiet_monitor_has_no_alarm_and_a_reset_is_marked(monitor: to.Monitor) -> None:
    quiet = to.Monitor("90d").update(to.Predictions([0, 1], [0.2, 0.7]), ["2026-03-01", "2026-03-02"])
    assert labels(quiet.draw()) == {"alarm at 20", "open cohorts"}
    day = np.repeat(np.arange(10), 50)
    preds = to.Predictions(np.tile([0, 0, 0, 0, 1], 100), np.full(500, 0.2))
    reset = to.Monitor(0, "integer")
    for half in (day < 5, day >= 5):
        reset.update(preds[half], day[half], int(day[half].max()) + 1)
        reset.report()
        reset.reset("recalibrated")
    assert "reset" in labels(reset.draw())


@pytest.mark.slow
def test_every_size_can_be_saved(monitor: to.Monitor, tmp_path: Path) -> None:
    diagram = monitor.draw()
    for style in (None, "paper", "slide"):
        diagram.save(tmp_path / f"{style}.svg", style=style)
        assert "<svg" in (tmp_path / f"{style}.svg").read_text(encoding="utf-8")
    diagram.save(tmp_path / "rows.csv")
    assert len((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()) == 41


def test_a_monitor_without_rows_has_no_diagram() -> None:
    with pytest.raises(to.InputError, match="TO108"):
        to.Monitor().draw()


def test_draw_takes_a_monitor_or_its_report(monitor: to.Monitor) -> None:
    drawn = to.draw(monitor, "monitor", level=0.5)
    default = to.draw(monitor.report(), "monitor", title="Risk")
    assert default.to_dict()["table"] == monitor.draw().to_dict()["table"]
    # The half width of a normal interval of 50 % is 0.6745 standard deviations, of 95 % 1.96.
    widths = [(diagram.table["high"] - diagram.table["ratio"])[0] for diagram in (drawn, default)]
    assert widths[0] / widths[1] == pytest.approx(0.6744898 / 1.959964, rel=1e-6)
    assert drawn.settings["level"] == 0.5


def test_a_monitor_and_predictions_are_not_confused(monitor: to.Monitor) -> None:
    with pytest.raises(to.InputError, match=r"TO205.*draws predictions"):
        to.draw(monitor)
    with pytest.raises(to.InputError, match=r"TO205.*draws a Monitor"):
        to.draw(to.Predictions([0, 1], [0.2, 0.7]), "monitor")
    with pytest.raises(to.InputError, match=r"TO203.*lens does not apply"):
        to.draw(monitor, "monitor", lens="positive")


def test_the_title_names_the_class_with_the_largest_evidence() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 4000)
    cohort = np.arange(4000) // 200
    label = np.array(["a", "b", "c"])[(P.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)]
    drifted = np.where((cohort > 9) & (label == "a"), "b", label)
    for labels, title in ((label, "a"), (drifted, "")):
        report = to.Monitor(0, "integer").update(to.Predictions(labels, P, classes=list("abc")), cohort, 20).report()
        name = title or report.contributions[0].view.removeprefix("class:")
        ratio = report.draw().draw().axes[0].child_axes[0]
        assert ratio.get_title(loc="left") == f"Observed / expected events of {name}"
