"""Does a monitor give the same numbers however its rows arrive, and refuse what would bias them?"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.test_schemas import assert_valid
from trueodds.monitoring.cohorts import Unit

DAYS = 40


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    """Forty days of predictions, of which those from day 15 on are too low."""
    rng = np.random.default_rng(11)
    day = np.repeat(np.arange(DAYS), rng.integers(20, 120, DAYS))
    p = rng.beta(2, 6, day.size)
    region = np.where(rng.random(day.size) < 0.3, "south", "north")
    y = rng.random(day.size) < np.where(day < 15, p, np.minimum(1.25 * p, 1))
    return {"time": np.datetime64("2026-03-01") + day, "day": day, "p": p, "y": y.astype(int), "region": region}


def rows_of(table: dict[str, Any], mask: Any = slice(None)) -> to.Predictions:
    return to.Predictions(table["y"][mask], table["p"][mask], group={"region": table["region"][mask]})


def monitor(**settings: Any) -> to.Monitor:
    return to.Monitor("5d", **({"center": 0.25} | settings))


def once(table: dict[str, Any], **settings: Any) -> to.Monitor:
    return monitor(**settings).update(rows_of(table), table["time"], "2026-05-01")


def numbers(report: Any) -> Any:
    """All numbers of a report, without the notes on the last call."""
    return {key: value for key, value in report.to_dict().items() if key not in ("notes", "status")}


def assert_equal(a: Any, b: Any, tolerance: float) -> None:
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_equal(a[key], b[key], tolerance)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, z in zip(a, b, strict=True):
            assert_equal(x, z, tolerance)
    elif isinstance(a, float):
        assert a == pytest.approx(b, abs=tolerance, rel=tolerance)
    else:
        assert a == b


@pytest.mark.parametrize("settings", [{}, {"group": "region"}, {"overlap": "threads"}, {"missing": "least"}], ids=str)
def test_judged_nightly_weekly_or_once_the_numbers_are_the_same(
    table: dict[str, Any], settings: dict[str, Any]
) -> None:
    expected = numbers(once(table, **settings).report())
    for every in (1, 7):
        nightly = monitor(**settings)
        for last in range(DAYS):
            mask = table["day"] <= last
            nightly.update(rows_of(table, mask), table["time"][mask], np.datetime64("2026-03-01") + last)
            if last % every == 0:
                nightly.report()
        nightly.update(rows_of(table), table["time"], "2026-05-01")
        assert_equal(numbers(nightly.report()), expected, 1e-12)
    if settings.get("overlap") == "threads":  # five threads of eight cohorts each
        assert not expected["alarm"]
    else:
        assert expected["alarm"]
        assert "2026-03-10" < expected["since"] < "2026-03-22"


@pytest.mark.parametrize("settings", [{}, {"group": "region"}, {"shock_sd": 0.05}], ids=str)
def test_the_sum_of_parts_is_the_monitor_of_all_rows(table: dict[str, Any], settings: dict[str, Any]) -> None:
    expected = numbers(once(table, **settings).report())
    part = np.random.default_rng(1).integers(0, 3, table["day"].size)
    parts = [
        monitor(**settings).update(rows_of(table, part == i), table["time"][part == i], "2026-05-01") for i in range(3)
    ]
    assert_equal(numbers(sum(parts[::-1]).report()), expected, 1e-9)
    assert_equal(numbers((parts[0] + (parts[1] + parts[2])).report()), expected, 1e-9)
    assert parts[0].n_judged == 0  # addition changes neither of the two


def test_a_judged_monitor_takes_tallies_of_later_cohorts(table: dict[str, Any]) -> None:
    early, late = table["day"] < 20, table["day"] >= 20
    judged = monitor().update(rows_of(table, early), table["time"][early], "2026-04-10")
    judged.report()
    later = monitor().update(rows_of(table, late), table["time"][late], "2026-05-01")
    assert_equal(numbers((judged + later).report()), numbers(once(table).report()), 1e-12)
    assert_equal(numbers((later + judged).report()), numbers(once(table).report()), 1e-12)


def test_merges_that_would_count_rows_twice_are_refused(table: dict[str, Any]) -> None:
    a, b = once(table), once(table)
    with pytest.raises(to.InputError, match=r"TO908.*same rows"):
        a + b
    a.report()
    with pytest.raises(to.InputError, match=r"TO908.*later cohorts only"):
        a + b
    b.report()
    with pytest.raises(to.InputError, match=r"TO908.*have judged cohorts"):
        a + b
    for other in (monitor(alpha=0.01), monitor(center=0.3), to.Monitor("6d", center=0.25)):
        with pytest.raises(to.InputError, match="TO904"):
            once(table) + other
    unset = [to.Monitor("5d").update(rows_of(table, table["day"] % 2 == i), table["time"][table["day"] % 2 == i])
             for i in range(2)]  # fmt: skip
    with pytest.raises(to.InputError, match=r"TO904.*center"):
        unset[0] + unset[1]


@pytest.mark.slow
def test_a_saved_monitor_continues_as_if_it_had_not_been_saved(table: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "monitor.json"
    continued = monitor(group="region", shock_sd=0.02)
    for last in (12, 25, DAYS - 1):
        mask = table["day"] <= last
        continued.update(rows_of(table, mask), table["time"][mask])
        continued.report()
        continued.save(path)
        loaded = to.load(path)
        assert isinstance(loaded, to.Monitor)
        assert loaded.to_dict() == continued.to_dict()
        assert_equal(loaded.report().to_dict(), continued.report().to_dict(), 0)
        continued = loaded
    continued.update(rows_of(table), table["time"], "2026-05-01")
    assert_equal(numbers(continued.report()), numbers(once(table, group="region", shock_sd=0.02).report()), 1e-12)


def test_a_changed_or_truncated_state_is_refused(table: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "monitor.json"
    good = once(table)
    good.report()
    good.save(path)
    text = path.read_text(encoding="utf-8")
    state = json.loads(text)
    state["epochs"][0]["alarm_cohort"] = None
    for changed in (text[: len(text) // 2], json.dumps(state), "{}", "[1]", text.replace("state/1", "state/2")):
        path.write_text(changed, encoding="utf-8")
        with pytest.raises(to.InputError) as caught:
            to.load(path)
        assert caught.value.code in ("TO905", "TO503")
        with pytest.raises(to.InputError, match="TO913"):  # what is there is not overwritten either
            good.save(path)
        assert path.read_text(encoding="utf-8") == changed


def test_of_two_writers_the_second_is_refused(table: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "monitor.json"
    once(table).save(path)
    first, second = to.load(path), to.load(path)
    first.report()
    first.save(path)
    first.save(path)
    written = path.read_bytes()
    second.report()
    with pytest.raises(to.InputError, match="TO913"):
        second.save(path)
    with pytest.raises(to.InputError, match="TO913"):  # a new monitor does not replace it by accident
        once(table).save(path)
    assert path.read_bytes() == written
    assert [file.name for file in tmp_path.iterdir()] == ["monitor.json"]


@pytest.mark.parametrize(
    ("time", "as_of", "code"),
    [
        (["2026-01-01", None], None, "TO901"),
        (["2026-01-01", "soon"], None, "TO901"),
        ([np.datetime64("NaT"), np.datetime64("2026-01-01")], None, "TO901"),
        ([1, 2], None, "TO901"),
        (["2026-01-01", "2026-01-03"], "2026-01-02", "TO902"),
        (["2026-01-01"], None, "TO107"),
        (["2026-01-01", "2026-01-03"], "yesterday", "TO901"),
    ],
)
def test_times_that_give_no_cohort_are_refused(time: Any, as_of: Any, code: str) -> None:
    new = to.Monitor()
    with pytest.raises(to.InputError, match=code):
        new.update(to.Predictions([0, 1], [0.2, 0.7]), time, as_of)
    assert new.as_of is None


def test_a_date_as_of_includes_the_predictions_of_its_day() -> None:
    new = to.Monitor().update(
        to.Predictions([0, 1], [0.2, 0.7]), ["2026-01-01T08:00", "2026-01-01T22:00"], "2026-01-01"
    )
    assert new.as_of == "2026-01-01"
    assert new.update(to.Predictions([0, 1], [0.2, 0.7]), ["2026-01-02", "2026-01-03"]).as_of == "2026-01-03"


def test_an_as_of_that_runs_backwards_is_refused(table: dict[str, Any]) -> None:
    new = once(table)
    with pytest.raises(to.InputError, match="TO903"):
        new.update(rows_of(table), table["time"], "2026-04-30")


def test_rows_that_break_the_evidence_are_refused() -> None:
    time, y, p = ["2026-01-01"] * 3, [0, 1, 0], [0.2, 0.7, 0.1]
    bad: list[tuple[Any, dict[str, Any], str]] = [
        (to.Predictions(y, p, weight=[1, 2, 0.5]), {}, "TO910"),
        (to.Predictions(y, p, cluster=[1, 1, 2]), {}, "TO910"),
        (to.Predictions([[1, 2], [0, 3], [1, 1]], [[0.2, 0.8]] * 3), {}, "TO910"),
        (to.Predictions.from_multilabel([[0, 1]] * 3, [[0.2, 0.8]] * 3), {}, "TO910"),
        (to.Predictions(y, p), {"ids": ["a", "b", "a"]}, "TO909"),
        (to.Predictions(y, p).with_row_id([1, 1, 2]), {}, "TO909"),
        (to.Predictions(y, p), {"ids": ["a"]}, "TO107"),
        ((y, p), {}, "TO302"),
    ]
    for preds, options, code in bad:
        new = to.Monitor()
        with pytest.raises(to.InputError, match=code):
            new.update(preds, time, **options)
        assert new.n_open == 0
    to.Monitor().update(to.Predictions(y, p, cluster=[1, 1, 2]), ["2026-01-01", "2026-01-02", "2026-01-01"])
    with pytest.raises(to.InputError, match="TO110"):
        to.Monitor(weight_kind="frequency").update(to.Predictions(y, p, weight=[1, 2, 0.5]), time)


def test_frequencies_are_rows() -> None:
    rng = np.random.default_rng(2)
    p, count = rng.random(300), rng.integers(0, 5, 300)
    y = rng.random(300) < p
    time = np.datetime64("2026-01-01") + np.arange(300) // 50
    weighted = to.Monitor("1d", weight_kind="frequency", center=0.5)
    weighted.update(to.Predictions(y, p, weight=count), time, "2026-02-01")
    repeated = to.Monitor("1d", weight_kind="frequency", center=0.5)
    repeated.update(to.Predictions(np.repeat(y, count), np.repeat(p, count)), np.repeat(time, count), "2026-02-01")
    assert_equal(numbers(weighted.report()), numbers(repeated.report()), 1e-9)


def test_another_model_and_other_settings_are_refused(table: dict[str, Any]) -> None:
    new = once(table, group="region")
    with pytest.raises(to.InputError, match=r"TO904.*classes"):
        new.update(to.Predictions([0, 2], [[0.2, 0.3, 0.5]] * 2), ["2026-05-01"] * 2)
    with pytest.raises(to.InputError, match=r"TO904.*group column"):
        new.update(to.Predictions([0, 1], [0.2, 0.3]), ["2026-05-01"] * 2)
    new.settings.refuse_others({"alpha": 0.05, "horizon": "5d", "group": "region", "center": 0.25})
    new.settings.refuse_others({"horizon": datetime.timedelta(days=5)})
    for changed in ({"alpha": 0.01}, {"horizon": "6d"}, {"group": None}, {"odds_margin": 1.0}, {"lens": "confidence"}):
        with pytest.raises(to.InputError, match="TO904"):
            new.settings.refuse_others(changed)


def test_an_open_cohort_with_fewer_rows_than_before_is_refused(table: dict[str, Any]) -> None:
    new = monitor().update(rows_of(table), table["time"])
    fewer = np.arange(table["day"].size) > 0
    before = new.to_dict()
    with pytest.raises(to.InputError, match=r"TO906.*2026-03-01"):
        new.update(rows_of(table, fewer), table["time"][fewer])
    assert new.to_dict() == before
    new.update(rows_of(table, fewer), table["time"][fewer], allow_fewer=True)
    assert new.report().cohorts[0].rows == int((table["day"] == 0).sum()) - 1


def test_a_judged_cohort_that_changed_is_reported_and_not_judged_again(table: dict[str, Any]) -> None:
    new = once(table)
    before = numbers(new.report())
    new.update(rows_of(table), table["time"], "2026-05-02")
    assert "TN901" not in [note.code for note in new.report().notes]
    changed = dict(table, y=table["y"].copy())
    changed["y"][0] = 1 - changed["y"][0]
    new.update(rows_of(changed), table["time"], "2026-05-03")
    report = new.report()
    (note,) = [note for note in report.notes if note.code == "TN901"]
    sign = 1 if changed["y"][0] else -1
    assert f"2026-03-01: {-sign:+d} labels 0, {sign:+d} labels 1" in note.text
    assert_equal(numbers(report), before, 0)


def test_rows_before_judged_cohorts_are_reported(table: dict[str, Any]) -> None:
    new = once(table)
    before = new.report().log_evidence
    new.update(to.Predictions([0, 1], [0.2, 0.3]), ["2026-02-01", "2026-06-01"], "2026-06-01")
    report = new.report()
    (note,) = [note for note in report.notes if note.code == "TN903"]
    assert "2026-02-01" in note.text
    assert report.log_evidence == before
    assert report.status.open == 1


def test_nothing_is_judged_before_the_horizon_has_passed(table: dict[str, Any]) -> None:
    first = table["day"] == 0
    new = monitor().update(rows_of(table, first), table["time"][first], "2026-03-06T23:00")
    report = new.report()
    assert (report.status.judged, report.status.next_due, report.alarm) == (0, "2026-03-07", False)
    assert "Nothing judged yet" in report.summary()
    assert "TN905" in [note.code for note in report.notes]
    with pytest.raises(to.InputError, match="TO911"):
        new.report(require_judged=True)
    new.update(rows_of(table, first), table["time"][first], "2026-03-07")
    assert new.report(require_judged=True).status.judged == 1


def test_complete_cohorts_count_early_only_after_all_earlier_ones(table: dict[str, Any]) -> None:
    early = monitor(complete=True).update(rows_of(table), table["time"], "2026-04-12")
    assert early.report().status.judged == DAYS
    assert_equal(numbers(early.report()), numbers(once(table, complete=True).report()), 0)


def test_open_cohorts_without_an_unlabeled_row_are_reported(table: dict[str, Any]) -> None:
    new = monitor().update(rows_of(table), table["time"])
    assert "TN902" in [note.code for note in new.report().notes]
    immediate = to.Monitor("0d").update(rows_of(table), table["time"])
    assert "TN902" not in [note.code for note in immediate.report().notes]


def test_a_reset_starts_an_epoch_with_its_own_evidence(table: dict[str, Any]) -> None:
    early = table["day"] < 30
    new = monitor().update(rows_of(table, early), table["time"][early], "2026-04-05")
    assert new.report().alarm
    new.reset("recalibrated", since="2026-03-31")
    assert (new.report().alarm, new.report().log_evidence) == (False, 0.0)
    with pytest.raises(to.InputError, match="TO203"):
        new.reset(" ")
    late = ~early
    new.update(rows_of(table, late), table["time"][late], "2026-05-01")
    report = new.report()
    alone = monitor().update(rows_of(table, late), table["time"][late], "2026-05-01").report()
    assert report.log_evidence == pytest.approx(alone.log_evidence, abs=1e-12)
    assert (report.status.epoch, report.status.reset_reason) == (1, "recalibrated")


def test_an_impossible_event_is_an_alarm() -> None:
    p, time = [0.0] * 50 + [0.5] * 50, ["2026-01-01"] * 100
    y = np.r_[np.zeros(50), np.tile([0, 1], 25)].astype(int)
    assert not to.Monitor("1d").update(to.Predictions(y, p), time, "2026-02-01").report().alarm
    y[3] = 1
    report = to.Monitor("1d").update(to.Predictions(y, p), time, "2026-02-01").report()
    assert report.alarm
    assert report.status.impossible == 1
    assert "TN907" in [note.code for note in report.notes]
    assert "predicted probability 0" in report.summary()


def test_old_cohorts_are_folded_and_the_numbers_remain() -> None:
    rng = np.random.default_rng(3)
    n = 400
    day = np.repeat(np.arange(n), 3)
    p = rng.random(day.size)
    y = rng.random(day.size) < p
    time = np.datetime64("2026-01-01") + day
    new = to.Monitor("0d", center=0.5).update(to.Predictions(y, p), time, "2028-01-01")
    report = new.report()
    assert report.status.judged == n
    assert len(report.cohorts) < 170
    assert sum(row.cohorts for row in report.cohorts) == n
    assert sum(row.rows for row in report.cohorts) == day.size
    assert sum(row.observed for row in report.cohorts) == y.sum()
    assert report.cohorts[0].last == "2026-01-16"


@pytest.mark.parametrize("unit", ["hour", "day", "week", "month"])
def test_a_period_ends_where_the_next_one_begins(unit: Any) -> None:
    period = Unit(unit)
    for number in (-5, 0, 682, 2970):
        start, end = period.start(number), period.start(number + 1)
        assert isinstance(start, np.datetime64)
        moments = np.array([start, end - np.timedelta64(1, "us"), end])
        assert period.numbers(moments).tolist() == [number, number, number + 1]
        assert period.has_passed(number, 3600, end + np.timedelta64(1, "h"))
        assert not period.has_passed(number, 3601, end + np.timedelta64(1, "h"))
    monday = Unit("week").start(2970)
    assert isinstance(monday, np.datetime64)
    assert monday.astype(datetime.datetime).weekday() == 0


def test_integers_are_cohorts() -> None:
    rng = np.random.default_rng(4)
    p = rng.random(900)
    preds = to.Predictions(rng.random(900) < p, p)
    new = to.Monitor(2, "integer").update(preds, np.repeat(np.arange(9), 100), 9)
    report = new.report()
    assert (report.status.judged, report.status.open, report.status.next_due) == (7, 2, "10")
    assert [row.cohort for row in report.open_cohorts] == ["7", "8"]


def test_invalid_settings_are_refused() -> None:
    for settings in (
        {"horizon": "1 month"}, {"horizon": 30}, {"unit": "year"}, {"alpha": 1}, {"odds_margin": 0.9}, {"group": 3},
        {"missing": "drop"}, {"overlap": True}, {"shock_sd": -1}, {"center": 0}, {"horizon": "5d", "unit": "integer"},
    ):  # fmt: skip
        with pytest.raises(to.InputError, match="TO203"):
            to.Monitor(**settings)


def test_the_json_of_a_report_keeps_its_schema(table: dict[str, Any]) -> None:
    assert_valid(to.Monitor().report().to_dict(), "monitor")
    assert_valid(once(table, group="region").report().to_dict(), "monitor")
    assert_valid(monitor().update(rows_of(table), table["time"]).report().to_dict(), "monitor")


@pytest.mark.slow
def test_the_state_of_ten_years_of_days_is_smaller_than_a_megabyte(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    day = np.repeat(np.arange(3650), 4)
    p = rng.beta(2, 5, day.size)
    y = (rng.random(day.size) < p).astype(int)
    path = tmp_path / "monitor.json"
    new = to.Monitor("30d").update(to.Predictions(y, p), np.datetime64("2026-01-01") + day)
    assert new.report().status.open == 31
    new.save(path)
    assert path.stat().st_size < 1e6
    assert_equal(to.load(path).report().to_dict(), new.report().to_dict(), 0)


def test_the_parts_of_an_alarm_remain_when_its_evidence_fades() -> None:
    rng = np.random.default_rng(7)
    day = np.repeat(np.arange(40), 400)
    p = rng.beta(2, 5, day.size)
    y = rng.random(day.size) < np.where((day >= 5) & (day < 9), 1.35 * p, p)
    time = np.datetime64("2026-01-01") + day
    new = to.Monitor("0d")
    new.update(to.Predictions(y[day < 10], p[day < 10]), time[day < 10], "2026-01-11")
    first = new.report()
    new.update(to.Predictions(y, p), time, "2026-04-01")
    later = new.report()
    assert later.alarm
    assert later.log_evidence < first.log_evidence
    assert later.contributions == first.contributions
    assert later.status.max_log_evidence == first.status.max_log_evidence
