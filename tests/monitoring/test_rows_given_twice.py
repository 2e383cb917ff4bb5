"""Are rows that were given to two monitors found, and rows that only look alike not refused?"""

import numpy as np
import pytest

import trueodds as to
from trueodds.core.errors import InputError


def rows(n=500, days=5, seed=0, decimals=17):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(2, 8, n), decimals)
    y = (rng.random(n) < p).astype(float)
    return y, p, np.datetime64("2026-01-01") + rng.integers(0, days, n)


def monitor(y, p, day, mask=slice(None), *, as_of="2026-01-10", ids=None):
    given = None if ids is None else np.asarray(ids)[mask]
    return to.Monitor("30d", center=0.2).update(to.Predictions(y[mask], p[mask]), day[mask], as_of, given)


@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("n", [3, 500, 20_000])
def test_the_same_rows_of_two_moments_are_refused_although_labels_came_meanwhile(n, has_ids):
    y, p, day = rows(n)
    before = np.where(np.arange(n) % 3 == 0, np.nan, y)
    ids = np.arange(n) if has_ids else None
    with pytest.raises(InputError, match=r"TO908.*labels may differ.*one call"):
        monitor(before, p, day, ids=ids) + monitor(y, p, day, as_of="2026-01-20", ids=ids)


@pytest.mark.slow
def test_a_common_row_in_a_thousand_is_found_by_ids():
    # Five cohorts of 40,000 rows, of which 2 % are common: each row of the sample of 64 of a cohort is common with a
    # probability of .02, and none of 5 · 64 rows with .98^320 = .002.
    y, p, day = rows(200_000)
    first, second = np.arange(200_000) < 102_000, np.arange(200_000) >= 98_000
    text = [f"row {i}" for i in range(200_000)]
    with pytest.raises(InputError, match="TO908"):
        monitor(y, p, day, first, ids=text) + monitor(y, p, day, second, ids=text)
    disjoint = monitor(y, p, day, first, ids=text) + monitor(y, p, day, ~first, ids=text)
    assert sum(row.rows for row in disjoint.report().open_cohorts) == 200_000


def test_rows_that_one_monitor_has_beside_others_are_found_without_ids():
    y, p, day = rows(2000)
    with pytest.raises(InputError, match="TO908"):
        monitor(y, p, day) + monitor(y, p, day, np.arange(2000) < 400)


@pytest.mark.parametrize("decimals", [1, 2, 3, 17])
@pytest.mark.parametrize("n", [40, 400, 4000, 40_000])
def test_different_rows_with_tied_predictions_are_added(n, decimals):
    y, p, day = rows(n, decimals=decimals)
    half = np.arange(n) % 2 == 0
    both = monitor(y, p, day, half) + monitor(y, p, day, ~half)
    assert sum(row.rows for row in both.report().open_cohorts) == n


def test_equal_rows_with_different_ids_are_added():
    y, p, day = np.array([1.0]), np.array([0.5]), np.array(["2026-01-01"], dtype="datetime64[D]")
    with pytest.raises(InputError, match=r"TO908.*pass ids="):
        monitor(y, p, day) + monitor(y, p, day)
    assert (monitor(y, p, day, ids=["a"]) + monitor(y, p, day, ids=["b"])).n_open == 1
    # An integer column that became floats has the same ids.
    with pytest.raises(InputError, match="TO908"):
        monitor(y, p, day, ids=[7]) + monitor(y, p, day, ids=[7.0])


def test_a_sum_with_and_without_ids_is_refused():
    y, p, day = rows(10)
    with pytest.raises(InputError, match=r"TO908.*ids to both or to none"):
        monitor(y, p, day, ids=np.arange(10)) + monitor(y, p, day)


def test_a_sum_of_three_finds_a_row_of_the_first_and_the_last():
    y, p, day = rows(300)
    third = np.arange(300) % 3
    parts = [monitor(y, p, day, third == i, ids=np.arange(300)) for i in range(3)]
    with pytest.raises(InputError, match="TO908"):
        sum([*parts, parts[0]])
    assert sum(row.rows for row in sum(parts).report().open_cohorts) == 300


def test_the_same_rows_with_other_weights_are_refused():
    y, p, day = rows(200)
    parts = [
        to.Monitor(center=0.2).update(to.Predictions(y, p, weight=np.full(200, w)), day, "2026-01-10")
        for w in (0.5, 0.7)
    ]
    with pytest.raises(InputError, match="TO908"):
        parts[0] + parts[1]
