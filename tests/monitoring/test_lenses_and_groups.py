"""Do classes, groups and missing labels have the evidence that their definitions give them?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.monitoring.judgment import GROUPS, RESERVE

START = np.datetime64("2026-01-01")


def table(k: int, n_days: int = 30, rows: int = 120, drift: float = 0.0, seed: int = 1) -> tuple[Any, Any, Any]:
    """Days, probabilities and labels of k classes; from day 10 on, the last class is more frequent."""
    rng = np.random.default_rng(seed)
    day = np.repeat(np.arange(n_days), rows)
    P = rng.dirichlet(np.ones(k), day.size)
    truth = P.copy()
    truth[day >= 10, -1] *= np.exp(drift)
    truth /= truth.sum(axis=1, keepdims=True)
    return day, P, (truth.cumsum(axis=1) < rng.random((day.size, 1))).sum(axis=1)


def report(preds: to.Predictions, day: Any, **settings: Any) -> Any:
    return to.Monitor("1d", **settings).update(preds, START + day, "2026-06-01").report()


def test_class_wise_evidence_is_the_mean_of_the_evidence_of_the_classes() -> None:
    day, P, y = table(4)
    together = report(to.Predictions(y, P), day, center=0.25)
    single = [report(to.Predictions(y, P), day, center=0.25, lens=f"class:{c}").evidence for c in range(4)]
    # A single class has 14 cells and 6 gaps; as one of several it has 8 and 4, so that only their size agrees.
    assert together.evidence == pytest.approx(np.mean(single), rel=0.5)
    assert {part.view for part in together.contributions} <= {f"class:{c}" for c in range(4)}


def test_the_two_classes_of_a_binary_model_have_the_same_evidence_class_wise() -> None:
    day, P, y = table(2)
    views = [report(to.Predictions(y, P), day, center=0.5, lens=lens) for lens in ("positive", "class:0")]
    assert views[0].log_evidence == pytest.approx(views[1].log_evidence, abs=1e-9)
    both = report(to.Predictions(y, P), day, center=0.5, lens="classwise")
    assert both.log_evidence == pytest.approx(views[0].log_evidence, abs=1e-9)


def test_a_class_that_becomes_more_frequent_is_named() -> None:
    day, P, y = table(5, drift=0.6)
    alarm = report(to.Predictions(y, P, classes=list("abcde")), day)
    assert alarm.alarm
    assert alarm.contributions[0].view == "class:e"
    assert alarm.contributions[0].direction == "too low"
    assert "class:e" in alarm.summary()
    assert alarm.advice.action == "shift"
    assert not report(to.Predictions(*table(5)[:0:-1]), day).alarm


def test_confidence_is_monitored_with_and_without_the_classes() -> None:
    day, P, y = table(3)
    confidence, correct = P.max(axis=1), P.argmax(axis=1) == y
    by_lens = report(to.Predictions(y, P), day, center=0.5, lens="confidence")
    alone = report(to.Predictions.from_confidence(confidence, correct), day, center=0.5)
    assert by_lens.log_evidence == pytest.approx(alone.log_evidence, abs=1e-9)
    with pytest.raises(to.InputError, match="TO204"):
        report(to.Predictions(y, P), day, lens="canonical")


def test_groups_get_their_share_of_the_capital() -> None:
    """E = .7 of all rows + .25 / 2 of each declared group + the reserve, which is not invested."""
    day, P, y = table(2)
    region = np.where(np.arange(day.size) % 3 == 0, "south", "north")
    with_groups = report(to.Predictions(y, P[:, 1], group={"region": region}), day, group="region", center=0.5)
    parts = {
        name: report(to.Predictions(y[rows], P[rows, 1]), day[rows], center=0.5).evidence
        for name, rows in {"all": day >= 0, "north": region == "north", "south": region == "south"}.items()
    }
    share = (GROUPS - RESERVE) / 2
    expected = (1 - GROUPS) * parts["all"] + share * (parts["north"] + parts["south"]) + RESERVE
    assert with_groups.evidence == pytest.approx(expected, rel=1e-9)


def test_new_groups_take_from_the_reserve_by_cohort_and_then_name() -> None:
    day, P, y = table(2)
    region = np.where(day < 5, "north", np.where(np.arange(day.size) % 2, "west", "east"))
    region[(day >= 3) & (day < 5) & (np.arange(day.size) % 4 == 0)] = "zone"
    monitor = to.Monitor("1d", group="region", center=0.5)
    monitor.update(to.Predictions(y, P[:, 1], group={"region": region}), START + day, "2026-06-01").report()
    groups = dict(monitor.to_dict()["epochs"][0]["groups"])
    assert groups == {
        "region=north": GROUPS - RESERVE,
        "region=zone": RESERVE / 2,
        "region=east": RESERVE / 4,
        "region=west": RESERVE / 8,
    }
    declared = to.Monitor("1d", group={"region": ["east", "west"]}, center=0.5)
    declared.update(to.Predictions(y, P[:, 1], group={"region": region}), START + day, "2026-06-01").report()
    assert list(dict(declared.to_dict()["epochs"][0]["groups"]).values()) == [0.125, 0.125, RESERVE / 2, RESERVE / 4]


def test_one_group_that_drifts_raises_an_alarm_and_is_named() -> None:
    day, P, y = table(2, rows=400)
    region = np.where(np.arange(day.size) % 8 == 0, "south", "north")
    rng = np.random.default_rng(9)
    drifting = (region == "south") & (day >= 10)
    y = np.where(drifting, rng.random(day.size) < np.minimum(1.4 * P[:, 1], 1), y)
    alarm = report(to.Predictions(y, P[:, 1], group={"region": region}), day, group="region")
    assert alarm.alarm
    assert alarm.contributions[0].group == "region=south"
    assert "2026-01-08" <= alarm.since <= "2026-01-14"
    assert alarm.error.interval.low > 0
    assert "region=south" in alarm.advice.text


def test_missing_labels_are_treated_as_the_setting_says() -> None:
    day, P, y = table(2)
    p = P[:, 1]
    rng = np.random.default_rng(2)
    is_missing = rng.random(day.size) < 0.1
    preds = to.Predictions(np.where(is_missing, np.nan, y), p)
    with pytest.raises(to.InputError, match=r"TO907.*2026-01-01.*'least'.*'exclude'.*'no-event'"):
        report(preds, day)
    kept = ~is_missing
    evidence = {
        name: report(preds, day, center=0.5, missing=name).log_evidence for name in ("least", "exclude", "no-event")
    }
    assert evidence["exclude"] == pytest.approx(
        report(to.Predictions(y[kept], p[kept]), day[kept], center=0.5).log_evidence, abs=1e-9
    )
    assert evidence["no-event"] == pytest.approx(
        report(to.Predictions(np.where(is_missing, 0, y), p), day, center=0.5).log_evidence, abs=1e-9
    )
    worst = [report(to.Predictions(np.where(is_missing, fill, y), p), day, center=0.5) for fill in (0, 1)]
    assert evidence["least"] <= min(other.log_evidence for other in worst) + 1e-9
    with pytest.raises(to.InputError, match="TO205"):
        report(to.Predictions([0, np.nan, 2], [[0.2, 0.3, 0.5]] * 3), np.arange(3), missing="no-event")


def test_a_missing_label_stops_the_judgment_at_its_cohort() -> None:
    day, P, y = table(2)
    y = y.astype(float)
    y[np.flatnonzero(day == 7)[0]] = np.nan
    monitor = to.Monitor("1d").update(to.Predictions(y, P[:, 1]), START + day, "2026-06-01")
    with pytest.raises(to.InputError, match=r"TO907.*1 of 120 rows in cohort 2026-01-08"):
        monitor.report()
    assert (monitor.n_judged, monitor.n_open) == (7, 23)
    y[np.isnan(y)] = 1
    monitor.update(to.Predictions(y, P[:, 1]), START + day, "2026-06-02")
    assert monitor.report().status.judged == 30


def test_labels_that_were_extracted_too_early_do_not_count() -> None:
    """A cohort that is not given again has the labels of its last extraction, which are selected by their delay."""
    day, P, y = table(2)
    labels = np.where(np.arange(day.size) % 2, y, np.nan)
    for missing in ("exclude", "no-event"):
        monitor = to.Monitor("9d", missing=missing).update(to.Predictions(labels, P[:, 1]), START + day)
        monitor.update(to.Predictions([0], [0.3]), ["2026-05-01"])
        with pytest.raises(to.InputError, match=r"TO907.*extracted on 2026-01-30"):
            monitor.report()
        assert monitor.n_judged == 20


def test_predictions_without_labels_drift_apart_from_calibration() -> None:
    day, P, y = table(2)
    p = np.where(day >= 20, P[:, 1] * 0.5, P[:, 1])
    labels = np.where(day < 15, y, np.nan)
    drift = to.Monitor("14d").update(to.Predictions(labels, p), START + day).report().drift
    assert drift.mean_before == pytest.approx(p[day < 15].mean(), abs=1e-9)
    assert drift.rows_now == 15 * 120
    assert drift.mean_now == pytest.approx(p[day >= 15].mean(), abs=1e-9)
    assert drift.distance > 0.2


def test_threads_combine_only_cohorts_whose_horizons_do_not_overlap() -> None:
    day, P, y = table(2)
    p = P[:, 1]
    threads = to.Monitor("3d", overlap="threads", center=0.5)
    result = threads.update(to.Predictions(y, p), START + day, "2026-06-01").report()
    first = int((START - np.datetime64("1970-01-01")).astype(int))
    evidence = [
        report(to.Predictions(y[rows], p[rows]), day[rows], center=0.5).evidence
        for rows in ((day + first) % 3 == i for i in range(3))
    ]
    assert result.evidence == pytest.approx(max(evidence) / 3, rel=1e-9)
    assert threads.settings.n_threads == 3


def test_a_stated_shock_bounds_the_evidence() -> None:
    rng = np.random.default_rng(3)
    day, P, _ = table(2, rows=2000)
    p = P[:, 1]
    shock = 0.2 * rng.standard_normal(30)[day]
    y = rng.random(day.size) < p * np.exp(shock) / (1 - p + p * np.exp(shock))
    assert report(to.Predictions(y, p), day).alarm
    calm = report(to.Predictions(y, p), day, shock_sd=0.2)
    assert not calm.alarm
    assert {part.claim for part in calm.contributions if part.share > 0} <= {"level", "scores"}
    assert "shock" in " ".join(calm.assumptions)


def test_an_error_within_the_margin_is_no_error() -> None:
    rng = np.random.default_rng(4)
    day, P, _ = table(2, rows=4000)
    p = P[:, 1]
    y = rng.random(day.size) < p * 1.05 / (1 - p + p * 1.05)
    assert not report(to.Predictions(y, p), day).alarm
    exact = report(to.Predictions(y, p), day, odds_margin=1)
    assert exact.alarm
    assert "not exact" in exact.summary()
