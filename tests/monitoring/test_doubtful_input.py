"""Does a monitor count what it should once, and refuse what it cannot place?"""

import json
import os
import re
import threading

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from trueodds.cli.messages import spell_options
from trueodds.core.errors import InputError


def stream(n_days=30, rows=60, seed=0, factor=1.0, first="2026-01-01"):
    rng = np.random.default_rng(seed)
    day = np.repeat(np.datetime64(first) + np.arange(n_days), rows)
    p = rng.beta(2, 8, day.size)
    return (rng.random(day.size) < np.minimum(factor * p, 1)).astype(float), p, day


def test_open_cohorts_of_the_old_model_do_not_count_after_a_reset():
    y, p, day = stream(90, 100, factor=1.6)
    monitor = to.Monitor(horizon="14d")
    assert monitor.update(to.Predictions(y, p), day, as_of="2026-04-01").report().alarm
    assert monitor.n_open > 10
    monitor.reset("recalibrated")
    later = stream(40, 100, seed=1, first="2026-04-01")
    y, p, day = (np.concatenate(parts) for parts in zip((y, p, day), later, strict=True))
    report = monitor.update(to.Predictions(y, p), day, as_of="2026-06-01").report()
    assert not report.alarm
    assert report.status.judged == 40
    assert sum(row.cohorts for row in report.judged_cohorts) == 130
    assert {row.epoch for row in report.judged_cohorts if row.cohort < "2026-04-01"} == {0}
    assert report.error.rows == 4000


def test_a_cohort_that_was_given_before_a_reset_does_not_count_although_it_began_with_as_of():
    y, p, day = stream(30)
    monitor = to.Monitor("1d").update(to.Predictions(y, p), day)  # as_of is the beginning of the newest day
    monitor.report()
    assert monitor.n_open == 2
    monitor.reset("recalibrated")
    report = monitor.update(to.Predictions(y, p), day, as_of="2026-02-20").report()
    assert (report.status.judged, report.status.open) == (0, 0)


def test_a_reset_may_say_since_when_the_new_model_predicts():
    y, p, day = stream(40, 100)
    monitor = to.Monitor(horizon="1d").update(to.Predictions(y, p), day, as_of="2026-02-20")
    monitor.reset("new model", since="2026-01-21T12:00")
    report = monitor.report()
    assert report.status.judged == 19  # from 2026-01-22 to 2026-02-09
    assert report.error.rows == 1900
    # The predictions of the old model are no reference for those of the new one: the first 9 of 19 days.
    first = (day >= np.datetime64("2026-01-22")) & (day <= np.datetime64("2026-01-30"))
    assert (report.drift.rows_before, report.drift.mean_before) == (900, pytest.approx(p[first].mean()))


def test_a_group_column_that_is_named_twice_is_refused():
    with pytest.raises(InputError, match=r"TO203.*monitored once.*'r' twice"):
        to.Monitor(group=["r", "r"])


@pytest.mark.parametrize("is_left", [True, False])
def test_judged_cohorts_are_not_lost_beside_a_monitor_that_was_reset(is_left):
    y, p, day = stream()
    judged = to.Monitor(horizon="1d", center=0.2).update(to.Predictions(y, p), day, as_of="2026-03-01")
    judged.report()
    other = to.Monitor(horizon="1d", center=0.2).reset("x")
    with pytest.raises(InputError, match="TO908"):
        _ = judged + other if is_left else other + judged


def test_an_impossible_outcome_counts_once_as_often_as_its_weight_and_not_without_weight():
    def impossible(P, y, weight=None, **settings):
        monitor = to.Monitor(horizon=0, unit="integer", **settings)
        return monitor.update(to.Predictions(y, P, weight=weight), np.zeros(len(y), dtype=int), as_of=1).report()

    p, y = np.array([0.0, 0.4, 0.6]), np.array([1, 0, 1])
    assert impossible(p, y).status.impossible == 1
    assert not impossible(p, y, weight=np.array([0.0, 1.0, 1.0])).alarm
    assert impossible(p, y, weight=np.array([0.3, 1.0, 1.0])).status.impossible == 1
    assert impossible(p, y, weight=np.array([3.0, 1.0, 2.0]), weight_kind="frequency").status.impossible == 3
    assert impossible(1 - p, 1 - y).status.impossible == 1
    P = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]])
    assert impossible(P, np.array([1, 2, 0])).status.impossible == 2


@pytest.mark.parametrize(
    "time",
    [
        pd.array(["2026-01-01", pd.NA], dtype="string"),
        [{}, {}],
        ["2026-01-01T00:00:00+02:00", "2026-01-02"],
    ],
    ids=["missing", "mappings", "with and without zone"],
)
def test_times_that_are_missing_or_ambiguous_are_refused(time):
    with pytest.raises(InputError, match="TO901"):
        to.Monitor().update(to.Predictions([0, 1], [0.2, 0.7]), time)


def test_times_with_a_zone_are_those_of_utc():
    time = pd.to_datetime(["2026-01-01 23:30", "2026-01-01 12:00"]).tz_localize("America/New_York")
    monitor = to.Monitor().update(to.Predictions([0, 1], [0.2, 0.7]), time, as_of="2026-01-10")
    assert [row.cohort for row in monitor.report().open_cohorts] == ["2026-01-01", "2026-01-02"]


def test_a_missing_moment_and_ids_of_several_types_have_coded_errors():
    rows = to.Predictions([0, 1, 1], [0.2, 0.7, 0.6])
    day = ["2026-01-01"] * 3
    with pytest.raises(InputError, match="TO901"):
        to.Monitor().update(rows, day, as_of=pd.NA)
    to.Monitor().update(rows, day, ids=np.array([1, "a", 2.5], dtype=object))
    with pytest.raises(InputError, match=r"TO909.*'a' in 2 rows"):
        to.Monitor().update(rows, day, ids=np.array([1, "a", "a"], dtype=object))


def test_a_horizon_of_more_than_a_century_is_refused():
    with pytest.raises(InputError, match=r"TO203.*at most 100 years.*9999999999d"):
        to.Monitor(horizon="9999999999d")


def test_a_ratio_of_very_rare_events_is_short():
    monitor = to.Monitor(horizon=0, unit="integer")
    report = monitor.update(to.Predictions([1, 0], [1e-300, 1e-300]), [0, 0], as_of=1).report()
    assert max(map(len, report.describe().splitlines())) < 200


def test_a_cohort_that_was_judged_by_the_rows_of_half_a_day_has_a_note():
    rows = to.Predictions([0, 1], [0.2, 0.7])
    monitor = to.Monitor(horizon="1d").update(rows, ["2026-01-01T08:00"] * 2, as_of="2026-01-01T12:00")
    monitor.update(rows, ["2026-01-05T08:00"] * 2, as_of="2026-01-06")
    notes = {note.code: note.text for note in monitor.report().notes}
    assert "1 cohort (2026-01-01)" in notes["TN909"]
    whole = to.Monitor(horizon="1d").update(rows, ["2026-01-01T08:00"] * 2, as_of="2026-01-02")
    whole.update(rows, ["2026-01-05T08:00"] * 2, as_of="2026-01-06")
    assert "TN909" not in {note.code for note in whole.report().notes}


def test_missing_labels_do_not_hide_an_alarm_of_earlier_cohorts():
    y, p, day = stream(60, 100, factor=1.8)
    y[-1] = np.nan
    monitor = to.Monitor(horizon="1d").update(to.Predictions(y, p), day, as_of="2026-04-01")
    with pytest.raises(InputError, match="TO907") as refused:
        monitor.report()
    assert re.search(r"has passed, and cohort 2026-01-\d\d raised an alarm\.", refused.value.problem)
    assert refused.value.got.startswith("1 of 100 rows in cohort 2026-")
    assert refused.value.fix.startswith("Add them, or")
    assert refused.value.fix.endswith("recalibrate, and use monitor.reset('recalibrated').")
    assert spell_options(refused.value.fix).endswith("recalibrate, and use --reset recalibrated.")
    calm = to.Monitor(horizon="1d").update(to.Predictions([np.nan], [0.5]), day[:1], as_of="2026-04-01")
    with pytest.raises(InputError, match="TO907") as refused:
        calm.report()
    assert "alarm" not in refused.value.problem + refused.value.fix


def test_an_older_table_cannot_replace_newer_labels_of_an_open_cohort():
    y, p, day = stream()
    older = np.where(day > np.datetime64("2026-01-20"), np.nan, y)
    newer = to.Monitor().update(to.Predictions(y, p), day, as_of="2026-02-05")
    before = newer.to_dict()
    with pytest.raises(InputError, match=r"TO903.*stands for as_of.*2026-01-30 after 2026-02-05"):
        newer.update(to.Predictions(older, p), day)
    with pytest.raises(InputError, match=r"TO903.*runs backwards"):
        newer.update(to.Predictions(older, p), day, as_of="2026-02-01")
    with pytest.raises(InputError, match=r"TO906.*2026-01-21 has fewer labels.*0 instead of 60"):
        newer.update(to.Predictions(older, p), day, as_of="2026-02-06")
    assert newer.to_dict() == before
    newer.update(to.Predictions(older, p), day, as_of="2026-02-06", allow_fewer=True)
    assert newer.report().status.open_unlabeled == np.isnan(older).sum()


def test_a_group_column_of_integers_that_became_floats_has_the_same_groups():
    y, p, day = stream(20, 30)
    group = np.arange(y.size) % 3
    settings = {"horizon": "1d", "group": {"site": [0, 1.0, 2]}, "center": 0.2}

    def part(values, mask):
        rows = to.Predictions(y[mask], p[mask], group={"site": values[mask]})
        return to.Monitor(**settings).update(rows, day[mask], as_of="2026-03-01")

    half = np.arange(y.size) % 2 == 0
    as_objects = np.array([float(g) if i % 2 else int(g) for i, g in enumerate(group)], dtype=object)
    for other in (group.astype(float), as_objects):
        both = part(group, half) + part(other, ~half)
        both.report()
        assert list(both.to_dict()["capital"][0]) == ["", "site=0", "site=1", "site=2"]


def test_a_declared_group_that_never_comes_is_named():
    y, p, day = stream()
    rows = to.Predictions(y, p, group={"r": np.repeat("north", y.size)})
    monitor = to.Monitor(horizon="1d", group={"r": ["north", "suoth"]}).update(rows, day, as_of="2026-03-01")
    notes = {note.code: note.text for note in monitor.report().notes}
    assert "1 declared group without a row so far: r=suoth" in notes["TN910"]
    assert "TN910" not in {note.code for note in to.Monitor("1d", group="r").update(rows, day).report().notes}


def test_settings_that_differ_show_horizons_as_they_are_given():
    y, p, day = stream()
    a, b = (to.Monitor(horizon, center=0.2).update(to.Predictions(y, p), day) for horizon in ("14d", "36h"))
    with pytest.raises(InputError, match=r"TO904.*horizon 14d and 36h"):
        a + b
    with pytest.raises(InputError, match=r"TO904.*7d instead of 14d"):
        a.settings.refuse_others({"horizon": "1w"})


@pytest.mark.parametrize("given", [{"unit": "integer"}, {"unit": "integer", "horizon": 3}, {"unit": "week"}])
def test_another_unit_is_a_changed_setting_and_no_invalid_horizon(given):
    with pytest.raises(InputError, match=r"TO904.*unit cannot change"):
        to.Monitor("14d").settings.refuse_others(given)
    with pytest.raises(InputError, match=r"TO904.*unit cannot change"):
        to.Monitor(14, "integer").settings.refuse_others({"unit": "day"})


@pytest.mark.parametrize("as_of", ["2026-01-04", "2026-01-04T00:00", np.datetime64("2026-01-04")])
def test_a_date_of_the_extraction_is_the_beginning_of_its_day_of_which_rows_may_come(as_of):
    # The horizon of the day 2026-01-02 passes with the end of January 3rd, and that of the next one a day later.
    times = ["2026-01-02T08:00", "2026-01-03T08:00", "2026-01-04T23:59"]
    monitor = to.Monitor(horizon="1d").update(to.Predictions([0, 1, np.nan], [0.2, 0.7, 0.5]), times, as_of)
    status = monitor.report().status
    assert (status.judged, status.last_judged, status.next_due) == (1, "2026-01-02", "2026-01-05")
    with pytest.raises(InputError, match="TO902"):
        to.Monitor().update(to.Predictions([0], [0.2]), ["2026-01-05T00:00"], as_of)
    with pytest.raises(InputError, match="TO902"):
        to.Monitor().update(to.Predictions([0], [0.2]), ["2026-01-04T23:59"], "2026-01-04T12:00")


def test_the_moment_of_the_extraction_with_a_zone_is_one_of_utc():
    rows = to.Predictions([0, 1], [0.2, 0.7])
    monitor = to.Monitor().update(rows, ["2026-01-01T12:00", "2026-01-01T13:00"], as_of="2026-01-02T01:00+02:00")
    assert monitor.as_of == "2026-01-01T23:00:00"
    zoned = to.Monitor().update(rows, ["2026-01-01T12:00+01:00", "2026-01-01T13:00+01:00"], as_of="2026-01-02")
    assert zoned.as_of == "2026-01-02"


def test_the_first_save_of_a_state_waits_for_that_of_another_process(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    y, p, day = stream(3)
    a, b = (to.Monitor().update(to.Predictions(y, p), day) for _ in range(2))
    path = tmp_path / "monitor.json"
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)  # as another process does while it saves
    thread = threading.Thread(target=a.save, args=(path,))
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    assert not path.exists()
    os.close(folder)
    thread.join()
    assert json.loads(path.read_text(encoding="utf-8"))["version"] == to.__version__
    with pytest.raises(InputError, match="TO913"):
        b.save(path)


def test_many_groups_are_summed_in_parts_with_the_same_result(monkeypatch):
    y, p, day = stream(12, 40)
    rows = to.Predictions(y, p, group={"g": np.arange(y.size) % 7, "h": np.arange(y.size) % 3})
    settings = {"horizon": "1d", "group": ["g", "h"]}
    whole = to.Monitor(**settings).update(rows, day, as_of="2026-03-01")
    monkeypatch.setattr("trueodds.monitoring.cohort_tally._MAX_PAIRS", 5)
    parts = to.Monitor(**settings).update(rows, day, as_of="2026-03-01")
    assert parts.to_dict() == whole.to_dict()
    assert parts.report().to_dict() == whole.report().to_dict()


def test_an_e_value_beyond_the_range_of_floats_is_a_power_of_ten():
    p, y = np.tile([1e-3, 1 - 1e-3], 200), np.tile([1.0, 0.0], 200)
    monitor = to.Monitor(horizon=0, unit="integer").update(to.Predictions(y, p), np.arange(400) // 20, as_of=21)
    report = monitor.report()
    assert report.log_evidence == pytest.approx(890.8, abs=0.1)  # 386.87 · log 10
    assert "(e-value 10^386, an alarm needs 20" in report.describe()
    json.dumps(report.to_dict(), allow_nan=False)


def test_the_expected_events_of_a_cohort_are_those_of_its_rows_with_a_label():
    p, day = [0.2, 0.4, 0.6, 0.8], ["2026-01-01"] * 4
    monitor = to.Monitor("1d", missing="least").update(to.Predictions([0, 1, None, None], p), day, as_of="2026-02-01")
    report = monitor.report()
    (row,) = report.cohorts
    assert (row.rows, row.unlabeled, row.observed) == (4, 2, 1)
    assert (row.expected, row.variance) == pytest.approx((0.2 + 0.4, 0.2 * 0.8 + 0.4 * 0.6))
    # The error is that of all rows: the unlabeled ones count as predicted, and as 0 and 2 events at the ends.
    assert (report.error.rows, report.error.observed) == (4, pytest.approx(1 + 0.6 + 0.8))
    assert report.error.expected == pytest.approx(2.0)
    assert "] 95 %, O:E 1.20 [" in report.describe()
    variance = 0.4 + 2 * 0.7 * 0.3
    variance *= max(1, 0.6 * 0.4 / (0.5 * 0.5))
    width = np.sqrt((variance + 50) * (2 * np.log(20) + np.log1p(variance / 50)))
    assert report.error.o_e_interval.high == pytest.approx((3 + width) / 2.0)


@pytest.mark.parametrize("missing", ["exclude", "least"])
def test_judged_cohorts_without_any_label_are_no_evidence_that_all_is_well(missing):
    _, p, day = stream()
    monitor = to.Monitor("1d", missing=missing).update(to.Predictions(None, p), day, as_of="2026-03-01")
    report = monitor.report()
    assert report.describe().startswith("No evidence yet: no row of 30 judged cohorts has a label.")
    assert "TN905" in {note.code for note in report.notes}
    with pytest.raises(InputError, match=r"TO911.*No judged row has a label.*30 judged and 0 open cohorts"):
        monitor.report(require_judged=True)
