"""Are cohorts judged while rows are read as they are judged afterwards, and few of them kept?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.monitoring import monitor
from trueodds.monitoring.cohort_tally import RowBatch
from trueodds.monitoring.monitor import update_from_batches

DAYS, ROWS = 30, 80
RNG = np.random.default_rng(3)
DAY = np.repeat(np.arange(DAYS), ROWS)
P = RNG.beta(2, 6, DAY.size)
Y = (RNG.random(DAY.size) < np.where(DAY < 12, P, 1.3 * P).clip(0, 1)).astype(float)
REGION = RNG.choice(["north", "south"], DAY.size)


def batches_of(order: Any, size: int, y: np.ndarray = Y) -> list[RowBatch]:
    parts = [order[first : first + size] for first in range(0, len(order), size)]
    return [RowBatch(to.Predictions(y[part], P[part], group={"region": REGION[part]}), DAY[part]) for part in parts]


def read(batches: list[RowBatch], as_of: int, *, judges: bool, settings: dict[str, Any] | None = None) -> to.Monitor:
    result = to.Monitor(3, "integer", group="region", center=0.25, **(settings or {}))
    update_from_batches(result, batches, as_of, allow_fewer=False, judges=judges)
    return result


def open_at_a_judgment(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of open cohorts whenever cohorts are judged."""
    found, judge_due_cohorts = [], monitor.judge_due_cohorts

    def judge(state: Any, before: int | None = None) -> Any:
        found.append(len(state.open))
        return judge_due_cohorts(state, before)

    monkeypatch.setattr(monitor, "judge_due_cohorts", judge)
    return found


@pytest.mark.parametrize("size", [37, 80, 500])
def test_cohorts_that_are_judged_while_rows_are_read_give_the_same_state(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = batches_of(np.arange(DAY.size), size)
    later = read(batches, DAYS, judges=False)
    report = later.report()
    counts = open_at_a_judgment(monkeypatch)
    now = read(batches, DAYS, judges=True)
    assert max(counts) <= max(4, size // ROWS + 4)  # those of a batch, and those whose horizon has not passed
    assert now.n_open == 3
    assert now.to_dict() == later.to_dict()
    assert now.report().to_dict() == report.to_dict()
    assert report.alarm


@pytest.mark.slow
def test_rows_that_are_not_in_the_order_of_time_are_judged_after_all_were_read() -> None:
    ordered, mixed = np.arange(DAY.size), np.random.default_rng(0).permutation(DAY.size)
    late = np.concatenate([ordered[ROWS:], ordered[:ROWS]])  # the first day comes last
    for order in (mixed, late):
        batches = batches_of(order, 200)
        now, later = read(batches, DAYS, judges=True), read(batches, DAYS, judges=False)
        assert now.report().to_dict() == later.report().to_dict()
        assert now.to_dict() == later.to_dict()


def test_open_cohorts_of_an_earlier_call_are_replaced_before_they_are_judged() -> None:
    y = np.where(DAY >= 10, np.nan, Y)  # labels that have not come by day 12
    results = []
    for judges in (True, False):
        result = read(batches_of(np.flatnonzero(DAY < 12), 100, y), 12, judges=judges)
        result.report()
        update_from_batches(result, batches_of(np.flatnonzero(DAY > 4), 100), DAYS, allow_fewer=False, judges=judges)
        results.append((result.report().to_dict(), result.to_dict()))
    assert results[0] == results[1]
    assert results[0][0]["status"]["judged"] == DAYS - 3


def test_missing_labels_are_refused_by_the_report_and_not_while_rows_are_read() -> None:
    y = np.where(DAY == 8, np.nan, Y)
    now, later = (read(batches_of(np.arange(DAY.size), 100, y), DAYS, judges=judges) for judges in (True, False))
    for result in (now, later):
        with pytest.raises(to.InputError, match=r"TO907.*80 of 80 rows in cohort 8"):
            result.report()
    assert (now.n_judged, now.to_dict()) == (8, later.to_dict())


def test_a_call_that_fails_in_a_later_batch_changes_nothing() -> None:
    batches = batches_of(np.arange(DAY.size), 100)
    result = to.Monitor(3, "integer", group="region", center=0.25)
    with pytest.raises(to.InputError, match="TO902"):
        update_from_batches(result, batches, 20, allow_fewer=False, judges=True)
    assert (result.n_judged, result.n_open, result.as_of) == (0, 0, None)
