"""Does the study of monitors simulate what it says, and is its evidence that of a monitor?"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit

import trueodds as to
from trueodds.cli.study import installed_studies
from trueodds.monitoring.monitor_settings import MonitorSettings
from trueodds_studies.monitor import dependence, peers
from trueodds_studies.monitor.batch import BatchMonitor
from trueodds_studies.monitor.charts import Charts, hosmer_lemeshow_pvalues
from trueodds_studies.monitor.streams import DRIFTS, MARGIN, SCORES, draw_labels, within_margin
from trueodds_studies.monitor.study import PROMISES, QUICK


@pytest.mark.parametrize("groups", [0, 4])
def test_the_evidence_of_a_batch_is_that_of_a_monitor_of_each_stream(groups):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, (6, 3, 40))  # cohorts, streams, rows
    y = rng.random(p.shape) < np.where(np.arange(6)[:, None, None] > 2, 1.3 * p, p).clip(0, 1)
    center = float(logit(0.25))
    batch = BatchMonitor(3, MonitorSettings(), center, groups=groups)
    logs = [batch.judge(p[cohort][None], y[cohort][None]) for cohort in range(6)][-1]
    for stream in range(3):
        group = None if not groups else {"group": {"part": [str(g) for g in range(groups)]}}
        rows = to.Predictions(
            y[:, stream].ravel(), p[:, stream].ravel(),
            group=None if not groups else {"part": (np.arange(240) % 40 % groups).astype(str)},
        )  # fmt: skip
        monitor = to.Monitor(horizon=0, unit="integer", center=0.25, **(group or {}))
        report = monitor.update(rows, np.repeat(np.arange(6), 40), as_of=6).report()
        assert report.log_evidence == pytest.approx(logs[stream], abs=1e-9)


def keep_cohorts(monkeypatch):
    """Keep the cohorts and shocks that the study draws, in the list that is returned."""
    drawn = []
    draw = dependence.Draws.cohort

    def draw_and_keep(draws, shock=0.0):
        drawn.append((*draw(draws, shock), shock))
        return drawn[-1][:2]

    monkeypatch.setattr(dependence.Draws, "cohort", draw_and_keep)
    return drawn


@pytest.mark.slow
def test_labels_that_come_late_do_not_change_the_evidence_of_a_monitor_that_is_called_every_week(monkeypatch):
    drawn = keep_cohorts(monkeypatch)
    days, streams = 40, 3
    cell = dependence.DependenceCell("late labels", "40 %", 2)
    largest = dependence.largest_evidence(cell, streams, 0, replace(QUICK, cohorts=days))
    p, y = (np.concatenate([views[i] for views in drawn]) for i in range(2))
    day = np.repeat(np.arange(days), 2)
    for stream in range(streams):
        risk, event = p[:, stream].ravel(), y[:, stream].ravel()
        known = day + np.where(event, 4, 60)
        monitor = to.Monitor(horizon=60, unit="integer", complete=True, center=0.4)
        for now in (*range(7, days + 60, 7), days + 60):
            given = day < now
            label = np.where(known <= now, event, np.nan)[given]
            report = monitor.update(to.Predictions(label, risk[given]), day[given], as_of=now).report()
        assert report.status.judged == days
        assert report.status.max_log_evidence == pytest.approx(largest[0, stream], abs=1e-9)
        # Otherwise days count in the order in which all of their labels are known.
        order = np.argsort(known.reshape(days, 2).max(axis=1), kind="stable")
        turn = np.repeat(np.argsort(order), 2)
        monitor = to.Monitor(horizon=0, unit="integer", center=0.4)
        report = monitor.update(to.Predictions(event, risk), turn, as_of=days).report()
        assert (order != np.arange(days)).any()
        assert report.status.max_log_evidence == pytest.approx(largest[1, stream], abs=1e-9)


@pytest.mark.parametrize(
    ("case", "with_setting", "without_it"),
    [
        ("shocks", {"shock_sd": 0.1}, {}),
        ("shocks over four cohorts", {"shock_sd": 0.1, "horizon": 4, "overlap": "threads"}, {"shock_sd": 0.1}),
    ],
)
def test_the_evidence_with_shocks_is_that_of_a_monitor_of_each_stream(case, with_setting, without_it, monkeypatch):
    drawn = keep_cohorts(monkeypatch)
    cohorts, rows, streams = 9, 300, 3
    cell, plan = dependence.DependenceCell(case, "13 %"), replace(QUICK, cohorts=cohorts, rows=rows)
    largest = dependence.largest_evidence(cell, streams, 0, plan)
    p, y = (np.concatenate([views[i] for views in drawn]) for i in range(2))
    cohort = np.repeat(np.arange(cohorts), rows)
    for i, settings in enumerate((with_setting, without_it)):
        for stream in range(streams):
            monitor = to.Monitor(unit="integer", center=0.13, **{"horizon": 0, **settings})
            monitor.update(to.Predictions(y[:, stream].ravel(), p[:, stream].ravel()), cohort, as_of=cohorts + 4)
            assert monitor.report().status.max_log_evidence == pytest.approx(largest[i, stream], abs=1e-9)


@pytest.mark.parametrize(
    ("case", "correlations"), [("shocks", [0] * 5), ("shocks over four cohorts", [0.75, 0.5, 0.25, 0, 0])]
)
def test_shocks_have_their_standard_deviation_and_are_shared_by_the_cohorts_of_a_horizon(
    case, correlations, monkeypatch
):
    drawn = keep_cohorts(monkeypatch)
    monkeypatch.setattr(dependence.BatchMonitor, "log_ratios", lambda *args: np.zeros((400, 1, 1, 188)))
    cell = dependence.DependenceCell(case, "13 %", 1)
    dependence.largest_evidence(cell, 400, 0, replace(QUICK, cohorts=9))
    shocks = np.array([shock for _, _, shock in drawn])  # (cohorts, streams)
    assert shocks.std() == pytest.approx(0.1, rel=0.05)
    # The standard error of a correlation of 400 streams is at most 0.05.
    seen = [np.corrcoef(shocks[0], shocks[lag])[0, 1] for lag in range(1, 6)]
    np.testing.assert_allclose(seen, correlations, atol=0.2)


def test_errors_within_the_margin_are_as_large_as_it_and_no_larger():
    p = SCORES["13 %"](np.random.default_rng(0), 10_000)
    shift = np.abs(logit(within_margin(p, np.random.default_rng(1))) - logit(p))
    assert 0.99 * MARGIN < shift.max() <= MARGIN * (1 + 1e-9)


@pytest.mark.parametrize("drift", DRIFTS, ids=lambda drift: drift.name)
def test_a_drift_changes_the_events_by_what_its_name_says(drift):
    P = SCORES[drift.scores](np.random.default_rng(1), 40_000)
    np.testing.assert_array_equal(drift.probabilities(P, 4, 5), P)
    truth = drift.probabilities(P, 200, 5)
    if P.ndim == 2:
        np.testing.assert_allclose(truth.sum(axis=1), 1)
    gap = float((truth - P).mean() if P.ndim == 1 else (truth - P)[:, 0].mean())
    if "+3 points" in drift.name or "+6 points" in drift.name:
        assert gap == pytest.approx(float(drift.name.split("+")[1][0]) / 100, abs=5e-4)
    elif "×" in drift.name:
        assert truth.mean() / P.mean() == pytest.approx(1.5, abs=0.01)
    else:
        assert abs(gap) < 0.006  # slopes and waves nearly keep the number of events


def test_the_charts_of_a_stream_are_those_of_a_calculation_by_hand():
    p = np.full((1, 100), 0.5)
    y = np.zeros((1, 100))
    y[:, :62] = 1  # 12 events too many, of which the standard deviation is 5: z = 2.4
    charts = Charts(1, 99)
    for cohort in range(5):
        charts.observe(cohort, p, y)
    # The sum is 1.9 per cohort: beyond 5 in the third one, and beyond 7 in the fourth.
    assert {name: int(alarm[0]) for name, alarm in charts.alarms.items() if name != "Hosmer-Lemeshow"} == {
        "CUSUM 5": 2, "CUSUM 7": 3, "Shewhart 3": 99,
    }  # fmt: skip
    # Ten groups of ten rows; events are the first in the order of rows: gaps of 5 in six groups, of -3 and three of -5.
    assert hosmer_lemeshow_pvalues(p, y)[0] == pytest.approx(1.4e-15, rel=0.2)


def test_other_monitors_are_those_that_are_installed_and_see_a_stream_until_its_alarm(monkeypatch):
    class Counter:
        """Alarms when the events exceed the expected ones by 3; the reference rows are events."""

        def __init__(self, reference):
            p, y = reference
            assert (p.shape, y.sum()) == ((4,), 4)

        def observe(self, p, y):
            assert y.dtype == float
            return y.sum() > p.sum() + 3

    monkeypatch.setattr(peers, "PEERS", {"probcal": Counter, "mapie": Counter})
    monkeypatch.setattr(peers, "find_spec", lambda package: package if package == "mapie" else None)
    watched = peers.Peers((np.full((2, 4), 0.5), np.ones((2, 4))), never=99)
    p = np.full((2, 10), 0.5)
    for cohort, events in enumerate(([5, 5], [9, 5], [9, 9])):
        watched.observe(cohort, p, np.arange(10) < np.array(events)[:, None])
    assert {name: alarms.tolist() for name, alarms in watched.alarms.items()} == {"MAPIE": [1, 2]}


def test_labels_of_vectors_occur_as_often_as_predicted():
    P = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    counts = np.bincount(draw_labels(P, np.random.default_rng(0)), minlength=3)
    # Binomial counts lie within 4.5 standard errors of their means.
    np.testing.assert_allclose(counts / 20_000, P[0], atol=4.5 * 0.5 / 20_000**0.5)


@pytest.mark.slow
def test_a_quick_study_has_its_tables_and_no_false_alarms(tmp_path):
    study = installed_studies().load("monitor")(quick=True, out=tmp_path)
    tables = {table.name: table for table in study.also}
    assert set(tables) == {
        "monitor.delays",
        "monitor.promises",
        "monitor.dependence",
        "monitor.reports",
        "monitor.real",
    }
    assert [row["method"] for row in tables["monitor.promises"].rows] == list(PROMISES)
    assert all(row["streams"] in (QUICK.streams, QUICK.few_streams) for row in study.rows)
    # At most 5 % of the streams of a design: 9 or more of 40 have a probability below 0.001.
    assert all(row["alarms 5 %"] * row["streams"] < 9 for row in study.rows)
    assert (tmp_path / "monitor.delays.md").exists()
