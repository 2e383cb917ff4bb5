"""Is utility calibration the supremum over utilities (named, linear, several, decisions), for rows and draws?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.core.typing import Array
from trueodds.estimators.cumulative import CumulativeRange
from trueodds.estimators.utility import UtilityCells, UtilityError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


def tenths(n: int, k: int, seed: int) -> tuple[Array, Array]:
    """Decimal vectors as whole tenths (n, k), and labels."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, 11, (n, k - 1)), axis=1)
    return np.diff(cuts, axis=1, prepend=0, append=10), rng.integers(0, k, n)


def supremum(P_tenths: Array, y: Array, w: Array, u: Any) -> float:
    """Over all pairs of ends, in fractions: no rounding decides what ties. `u(row, class)` is a whole number."""
    k = P_tenths.shape[1]
    v = [sum(Fraction(int(P_tenths[i, c]), 10) * u(i, c) for c in range(k)) for i in range(len(y))]
    residuals = [int(w[i]) * (u(i, int(y[i])) - v[i]) for i in range(len(y))]
    largest = Fraction(0)
    for low in v:
        for high in v:
            largest = max(
                largest, abs(sum((r for r, at in zip(residuals, v, strict=True) if low <= at <= high), Fraction(0)))
            )
    return float(largest / int(w.sum()))


def view_of(P_tenths: Array, y: Array, w: Array) -> View:
    return View(P_tenths / 10, np.eye(P_tenths.shape[1])[y], w)


# By hand


def test_the_top_class_by_hand() -> None:
    # Expected .5, .6 and .9; came 0, 1, 1: −.5, .4, .1. The path is −.5, −.1, 0: range .5 of 3.
    P = [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.9, 0.1, 0.0]]
    assert UtilityError().value(View(P, np.eye(3)[[1, 2, 0]])) == pytest.approx(0.5 / 3, rel=1e-14)


def test_payoffs_by_hand() -> None:
    # Payoffs −1, 0, 2: expected −.1 and 1; came 2 and −1: 2.1, then −2. Range 2.1 of 2 rows.
    P = [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]
    assert UtilityError([-1, 0, 2]).value(View(P, np.eye(3)[[2, 0]])) == pytest.approx(2.1 / 2, rel=1e-14)


def test_acting_by_hand() -> None:
    # A miss costs 4, a false alarm 1: act from .2 on. Row 1 (.1) waits and expects −.4; row 2 (.5) acts and expects
    # −.5. Both came: −4 and 0. The range of −3.6, −3.1 is 3.6, of two rows.
    error = UtilityError(cost=[[0, 4], [1, 0]])
    assert error.value(View([0.1, 0.5], [1, 1])) == pytest.approx(1.8, rel=1e-14)


# The definition


@pytest.mark.parametrize("seed", range(12))
def test_the_value_is_the_supremum_over_intervals(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    k = 3 + seed % 2
    P_tenths, y = tenths(10, k, seed)
    w = rng.integers(1, 4, 10).astype(float)
    view = view_of(P_tenths, y, w)
    a = rng.integers(-3, 4, k)
    assert UtilityError(a).value(view) == pytest.approx(supremum(P_tenths, y, w, lambda i, c: int(a[c])), abs=1e-13)
    top = P_tenths.argmax(axis=1)
    value = supremum(P_tenths, y, w, lambda i, c: int(c == top[i]))
    assert UtilityError().value(view) == pytest.approx(value, abs=1e-13)
    two = np.argsort(-P_tenths, axis=1, kind="stable")[:, :2]
    value = supremum(P_tenths, y, w, lambda i, c: int(c in two[i]))
    assert UtilityError("top-2").value(view) == pytest.approx(value, abs=1e-13)


def test_expectations_that_tie_by_arithmetic_are_one_score() -> None:
    # Each row expects .2 exactly, but in floats their last digits differ, and a path that followed those would leave 0.
    # Two came .1 below and two .1 above: together nothing.
    P = np.array([[0.3, 0.4, 0.3], [0.1, 0.8, 0.1], [0.45, 0.1, 0.45], [0.25, 0.5, 0.25]])
    a = [0.1, 0.2, 0.3]
    assert len(set((P @ np.array(a)).tolist())) > 1
    assert UtilityError(a).value(View(P, np.eye(3)[[0, 2, 0, 2]])) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_the_top_and_a_class_are_the_worst_interval_of_their_lens(dtype: type) -> None:
    rng = np.random.default_rng(0)
    P, y = rng.dirichlet([1, 1, 1, 1], 300).astype(dtype), rng.integers(0, 4, 300)
    preds = Predictions(y, P, weight=rng.random(300), sum_tolerance=0.01)
    (canonical,) = as_lens("canonical").views(preds)
    for utility, lens in (("top", "confidence"), ("class:2", "class:2")):
        (one,) = as_lens(lens).views(preds)
        assert UtilityError(utility).value(canonical) == pytest.approx(CumulativeRange().value(one), rel=1e-11)


def test_two_classes_are_a_vector_of_two() -> None:
    rng = np.random.default_rng(1)
    p, y = rng.integers(0, 11, 40) / 10, rng.integers(0, 2, 40)
    P = np.stack([1 - p, p], axis=1)
    for utility in ("top", "class:0", "class:1", [0, 2], [1, -1], [[0, 1], [2, 0]]):
        one, two = View(p, y), View(P, np.eye(2)[y])
        assert UtilityError(utility).value(one) == pytest.approx(UtilityError(utility).value(two), rel=1e-12)


def test_of_several_payoffs_the_worst_counts_and_each_is_a_part() -> None:
    P_tenths, y = tenths(60, 3, 5)
    view = view_of(P_tenths, y, np.ones(60))
    rows = [[0, 0, 1], [1, 0, -1], [0, 2, 1]]
    values = [UtilityError(row).value(view) for row in rows]
    assert UtilityError(rows).value(view) == max(values)
    assert list(UtilityError(rows).parts(view).values()) == values


def test_a_function_of_the_probabilities_pays_row_by_row() -> None:
    P_tenths, y = tenths(60, 3, 6)
    view = view_of(P_tenths, y, np.ones(60))
    assert UtilityError(lambda P: np.eye(3)[P.argmax(axis=1)]).value(view) == UtilityError().value(view)
    assert UtilityError(lambda P: np.tile([0.0, 1.0, 3.0], (len(P), 1))).value(view) == pytest.approx(
        UtilityError([0, 1, 3]).value(view), rel=1e-12
    )


# Draws


def random_view(n: int, k: int, seed: int) -> View:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return View(P, np.eye(k)[rng.integers(0, k, n)], rng.integers(0, 3, n).astype(float))


def sums_of(view: View, one: Any, rows: Array) -> tuple[Array, Array, Array]:
    """Sums per cell when `rows` (draws, n) are drawn."""
    joint = view.p if view.joint else view.p[:, None]
    outcomes = view.y if view.joint else view.y[:, None]
    w = np.stack([np.bincount(one.index[r], view.w[r], one.size) for r in rows])
    wp, wy = (
        np.stack([np.stack([np.bincount(one.index[r], view.w[r] * c[r], one.size) for c in x.T], axis=1) for r in rows])
        for x in (joint, outcomes)
    )
    return (w, wp, wy) if view.joint else (w, wp[..., 0], wy[..., 0])


UTILITIES: tuple[Any, ...] = ("top", "top-2", "class:1", [0, 1, 5], [[0, 1, 5], [1, 0, 0]], lambda P: P**2)


@pytest.mark.parametrize("utility", UTILITIES, ids=lambda u: "function" if callable(u) else str(u))
def test_draws_read_the_value_of_the_rows_drawn(utility: Any) -> None:
    view = random_view(80, 3, 7)
    error = UtilityError(utility)
    one = error.cell_statistic(view)
    assert one is not None
    rng = np.random.default_rng(8)
    rows = np.concatenate([np.arange(80)[None], rng.integers(0, 80, (5, 80))])
    observed, draws = sums_of(view, one, rows[:1]), sums_of(view, one, rows)
    values = one.statistic(*draws)
    assert one.value() == pytest.approx(error.value(view), rel=1e-12)
    assert values == pytest.approx([error.value(view.take(r)) for r in rows], rel=1e-10)
    # A seminorm: no draw is further from 0 than the rows are, plus how far the draw is from them.
    norms = one.centered_norms(*(x[0] for x in observed), draws)
    assert norms is not None
    assert norms[0] == pytest.approx(0, abs=1e-14)
    assert (np.abs(values - values[0]) <= norms + 1e-12).all()


def test_draws_of_many_scores_pool_neighbors_and_stay_near() -> None:
    view = random_view(30_000, 3, 9)
    for error in (UtilityError(), UtilityError([0, 1, 3])):
        one = error.cell_statistic(view)
        assert isinstance(one, UtilityCells)
        assert one.size <= 3 * 4096
        (value,) = one.statistic(*sums_of(view, one, np.arange(30_000)[None]))
        # A group holds 1/4096 of the weight, and no payoff is off by more than 3.
        assert value == pytest.approx(error.value(view), abs=2 * 3 / 4096)


@pytest.mark.slow
def test_where_rows_and_outcomes_are_too_many_there_are_no_cells() -> None:
    view = random_view(5_000, 1000, 10)
    assert UtilityError(lambda P: P).cell_statistic(view) is None


def test_the_noise_floor_is_the_range_of_a_random_walk() -> None:
    # E range of Brownian motion on [0, 1] is 2 √(2/π) = 1.596; a walk of 2,000 steps misses about 1.2/√2000 of it.
    rng = np.random.default_rng(11)
    P = rng.dirichlet([1, 1, 1], 2000)
    y = (P.cumsum(axis=1) > rng.random(2000)[:, None]).argmax(axis=1)
    a = np.array([0.0, 1.0, -1.0])
    estimate = to.measure(Predictions(y, P), "utility", utility=a, resamples=100)
    scale = (float((P @ a**2 - (P @ a) ** 2).mean()) / 2000) ** 0.5
    assert estimate.noise_floor is not None
    assert 1.596 - 0.1 < estimate.noise_floor / scale < 1.596 + 0.05
    assert estimate.interval is not None
    assert estimate.interval.method == "residual-norm"
    assert estimate.settings["payoffs"] == [-1.0, 1.0]


# Notes and refusals


def test_a_utility_that_pays_the_same_whatever_comes_is_noted() -> None:
    view = random_view(20, 3, 12)
    for error in (UtilityError([2, 2, 2]), UtilityError("top-3")):
        assert error.value(view) == pytest.approx(0, abs=1e-15)
        assert [note.code for note in error.notes(view)] == ["TN134"]
    assert UtilityError().notes(view) == []


def test_costs_that_mean_nothing_are_refused() -> None:
    with refused("TO203"):
        UtilityError(cost=[1, 2])
    with refused("TO203"):
        UtilityError("class:0", cost=[[0, 1], [1, 0]])


@pytest.mark.parametrize(
    "error",
    [
        UtilityError([0, 1]),
        UtilityError("class:3"),
        UtilityError(lambda P: P[:, :2]),
        UtilityError(lambda P: P * np.inf),
        UtilityError(cost=[[0, 1], [1, 0]]),
    ],
)
def test_payoffs_that_do_not_fit_the_outcomes_are_refused(error: UtilityError) -> None:
    with refused("TO205"):
        error.value(random_view(5, 3, 13))


def test_cells_of_many_rows_are_refused() -> None:
    view = View([0.2, 0.3], [0, 1]).pool(np.array([0, 0]), 1)
    with refused("TO205"):
        UtilityError().value(view)


def test_equal_settings_are_equal() -> None:
    assert UtilityError([0, 1]) == UtilityError(np.array([0.0, 1.0]))
    assert UtilityError(cost=[[0, 1], [1, 0]]) != UtilityError()
    assert hash(UtilityError([[0, 1], [1, 0]])) == hash(UtilityError(((0.0, 1.0), (1.0, 0.0))))


@pytest.mark.slow
def test_edge_data_give_numbers() -> None:
    assert UtilityError().value(View([0.7], [1])) == pytest.approx(0.3)
    many = np.random.default_rng(14).dirichlet(np.full(1000, 0.05), 30)
    estimate = to.measure(Predictions(np.arange(30), many), "utility", resamples=50)
    assert 0 <= estimate.value <= 1
    assert UtilityError().value(View(np.eye(3), np.eye(3))) == 0.0
    assert UtilityError().value(View(np.eye(3), np.eye(3)[[1, 2, 0]])) == pytest.approx(1.0)


@pytest.mark.parametrize("settings", [{"cost": [[1e308, -1e308], [0, 1]]}, {"utility": [1e308, -1e308]}])
def test_costs_whose_sums_could_overflow_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(to.InputError, match=r"TO203.*at most 1e\+100"):
        to.measure([0, 1], [0.2, 0.7], "utility", interval=None, **settings)
    small = {name: (np.array(values) * 1e-208).tolist() for name, values in settings.items()}
    assert np.isfinite(to.measure([0, 1], [0.2, 0.7], "utility", resamples=19, **small).value)
