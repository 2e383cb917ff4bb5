"""Is the worst decision the worst of all, and is the regret at given costs what each row's actions cost?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import trueodds as to
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.binning.equal_mass import EqualMass, Sweep
from trueodds.binning.simplex_grid import Distinct
from trueodds.binning.uniform import Uniform
from trueodds.calibrators.histogram import HistogramSpec
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.binned import BinnedError
from trueodds.estimators.costs import Costs
from trueodds.estimators.decision_regret import CostRegret, DecisionRegret
from trueodds.lenses.view import View


def worst_score(w: Array, p: Array, q: Array) -> float:
    """The definition as a linear program: the proper score in [0, 1] that gains most when p becomes q.

    A score is a payoff for either outcome at each number that may be said; properness: at each of them as the truth,
    saying it pays best.
    """
    grid = np.unique(np.concatenate([p, q]))
    at = {x: i for i, x in enumerate(grid)}
    m = len(grid)
    gain = np.zeros(2 * m)  # payoffs if it does not come, then if it does
    for share, one, rate in zip(w / w.sum(), p, q, strict=True):
        for x, sign in ((rate, 1), (one, -1)):
            gain[at[x]] += sign * share * (1 - rate)
            gain[m + at[x]] += sign * share * rate
    proper = []
    for i, truth in enumerate(grid):
        for j in range(m):
            row = np.zeros(2 * m)
            row[j] += 1 - truth
            row[m + j] += truth
            row[i] -= 1 - truth
            row[m + i] -= truth
            proper.append(row)
    result = linprog(-gain, A_ub=np.array(proper), b_ub=np.zeros(len(proper)), bounds=(0, 1), method="highs")
    return float(-result.fun)


def two_actions(w: Array, p: Array, q: Array) -> float:
    """The worst of the tasks of two actions, over a fine grid of thresholds and both sides of every number."""
    t = np.concatenate([np.arange(1001) / 1000, p - 1e-12, p + 1e-12, q - 1e-12, q + 1e-12])
    t = t[(t >= 0) & (t <= 1)][:, None]
    regret = (w / w.sum() * np.abs(q - t) * ((p < t) != (q < t))).sum(axis=1)
    return float((regret / np.maximum(t, 1 - t)[:, 0]).max())


def binned(w: Array, p: Array, q: Array) -> View:
    """A view whose cells of distinct scores have these sums."""
    return View(np.repeat(p, 2), np.tile([1.0, 0.0], len(p)), np.stack([w * q, w * (1 - q)], axis=1).ravel())


# The worst decision, by hand


def test_one_bin_by_hand() -> None:
    # Said .8, came .25. The task with threshold just under .8 pays 1/.8 at most: act for |.25 − .8|/.8. A second kink
    # would not help, D rises to .8 and falls to 0 beyond.
    estimate = DecisionRegret()(View([0.8] * 4, [1, 0, 0, 0]))
    assert estimate.value == pytest.approx(0.55 / 0.8, rel=1e-12)
    assert estimate.parts["two_actions"] == pytest.approx(0.55 / 0.8, rel=1e-12)
    assert estimate.parts["threshold"] == pytest.approx(0.8, rel=1e-12)
    assert estimate.settings["worst_thresholds"] == pytest.approx([0.8])


def test_two_bins_make_a_task_of_three_actions_by_hand() -> None:
    # Halves of the rows: said .3, came .0; said .7, came 1. D(.3−) = .5·.3 = .15 and D(.7+) = .5·.3 = .15; the line
    # through both is .15 at 1/2: twice that is .3. The best task of two actions has .15/.7.
    view = View([0.3, 0.3, 0.7, 0.7], [0, 0, 1, 1])
    estimate = DecisionRegret()(view)
    assert estimate.value == pytest.approx(0.3, rel=1e-12)
    assert estimate.parts["two_actions"] == pytest.approx(0.15 / 0.7, rel=1e-12)
    assert estimate.settings["worst_thresholds"] == pytest.approx([0.3, 0.7])


def test_right_rates_leave_nothing_to_gain() -> None:
    view = View([0.25] * 4 + [0.75] * 4, [1, 0, 0, 0, 1, 1, 1, 0])
    estimate = DecisionRegret()(view)
    assert estimate.value == 0.0
    assert estimate.parts == {"two_actions": 0.0}
    assert estimate.settings["worst_thresholds"] == []


# The definition


@pytest.mark.parametrize("seed", range(25))
def test_the_value_is_the_worst_proper_score(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 7))
    p = np.sort(rng.choice(np.arange(0, 21) / 20, k, replace=False)) if seed % 2 else np.sort(rng.random(k))
    q = rng.integers(0, 11, k) / 10 if seed % 3 else rng.random(k)
    w = rng.random(k) + 0.1
    estimate = DecisionRegret(Distinct())(binned(w, p, q))
    assert estimate.value == pytest.approx(worst_score(w, p, q), rel=1e-7, abs=1e-9)
    assert estimate.parts["two_actions"] == pytest.approx(two_actions(w, p, q), rel=1e-3, abs=1e-9)
    assert estimate.parts["two_actions"] >= two_actions(w, p, q) - 1e-9
    assert estimate.parts["two_actions"] - 1e-12 <= estimate.value <= 2 * estimate.parts["two_actions"] + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_the_value_is_at_most_twice_the_ece(seed: int) -> None:
    rng = np.random.default_rng(seed)
    view = View(rng.random(200), rng.integers(0, 2, 200))
    for partition in (Uniform(15), EqualMass(10), Distinct()):
        assert 0 < DecisionRegret(partition).value(view) <= 2 * BinnedError(partition).value(view) + 1e-12


def test_mirrored_predictions_are_as_bad() -> None:
    rng = np.random.default_rng(30)
    p, y = rng.random(100), rng.integers(0, 2, 100)
    value = DecisionRegret(Distinct()).value(View(p, y))
    assert DecisionRegret(Distinct()).value(View(1 - p, 1 - y)) == pytest.approx(value, rel=1e-10)


# Draws of the worst decision


def test_draws_read_the_value_and_move_no_further_than_their_spread() -> None:
    rng = np.random.default_rng(31)
    p = rng.random(400)
    view = View(p, (rng.random(400) < p**1.5).astype(float))
    error = DecisionRegret(Uniform(10))
    one = error.cell_statistic(view)
    assert one is not None
    w, wp, wy = (np.bincount(one.index, x, one.size) for x in (view.w, view.w * view.p, view.w * view.y))
    drawn = np.stack([np.bincount(one.index, rng.random(400) < p, one.size) for _ in range(200)])
    w_draws, wp_draws = np.broadcast_to(w, drawn.shape), np.broadcast_to(wp, drawn.shape)
    assert one.statistic(w[None], wp[None], wy[None])[0] == pytest.approx(error.value(view), rel=1e-12)
    values = one.statistic(w[None], wp[None], drawn)
    norms = one.centered_norms(w, wp, wy, (w_draws, wp_draws, drawn))
    assert norms is not None
    assert (np.abs(values - error.value(view)) <= norms + 1e-12).all()
    assert one.centered_norms(w, wp, wy, (w[None], wp[None], wy[None]))[0] == pytest.approx(0, abs=1e-15)


def test_a_bin_that_a_draw_leaves_empty_is_absent() -> None:
    view = View([0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1])
    one = DecisionRegret(Uniform(2)).cell_statistic(view)
    assert one is not None
    half = View([0.1, 0.1], [0, 1])
    sums = [np.array([[2.0, 0.0]]), np.array([[0.2, 0.0]]), np.array([[1.0, 0.0]])]
    assert one.statistic(*sums)[0] == pytest.approx(DecisionRegret(Uniform(2)).value(half), rel=1e-12)
    w, wp, wy = np.array([2.0, 2.0]), np.array([0.2, 1.8]), np.array([1.0, 2.0])
    assert np.isfinite(one.centered_norms(w, wp, wy, tuple(sums))).all()  # type: ignore[arg-type]


def test_bins_chosen_with_the_labels_have_no_draws_of_their_own() -> None:
    assert DecisionRegret(Sweep()).cell_statistic(View([0.1, 0.9], [0, 1])) is None


def test_measured_it_has_an_interval_and_a_floor() -> None:
    rng = np.random.default_rng(32)
    p = rng.random(1000)
    estimate = to.measure(Predictions((rng.random(1000) < p).astype(int), p), "decision_regret", bins=10, resamples=200)
    assert estimate.interval is not None
    assert (estimate.interval.method, estimate.interval.low) == ("residual-norm", 0.0)
    assert estimate.noise_floor is not None
    assert 0 < estimate.noise_floor < 0.1
    assert estimate.settings["partition"] == "uniform 10"


# Given costs


COST = [[0.0, 4.0], [1.0, 0.0]]


def test_given_costs_by_hand() -> None:
    # Halves: the second is judged by the first's rate. Said .1, so nobody acts (4 · .1 < .9); of the first half all
    # came, so the second half acts. Of those one came (saves 4) and one did not (costs 1): 3 of 2 rows.
    half = np.random.default_rng(0).permutation(4) % 2
    y = np.ones(4)
    y[np.flatnonzero(half == 1)[0]] = 0
    estimate = CostRegret(cost=COST, calibrator=HistogramSpec(bins=1), folds=2)(View([0.1] * 4, y))
    assert estimate.value == pytest.approx(1.5, rel=1e-12)
    # All rows were left alone, so the regret is published: action 0. Acting pays from 4p = 1 − p on, p = 1/5, where the
    # fit on all rows has three of four.
    parts = {
        "stated": 2.0,
        "recalibrated": 0.5,
        "changed": 1.0,
        "action:0": 1.5,
        "action:1": 0.0,
        "called for:0": 1.0,
        "called for:1": 0.0,
    }
    parts |= {"threshold:0 → 1": 0.2, "rate there:0 → 1": 0.75}
    assert dict(estimate.parts) == pytest.approx(parts)
    assert estimate.settings["cost"] == ((0.0, 4.0), (1.0, 0.0))


@pytest.mark.parametrize("fit_on", ["earlier", "others"])
@pytest.mark.parametrize("seed", range(4))
def test_the_regret_is_what_each_row_pays_and_would_have_paid(fit_on: str, seed: int) -> None:
    rng = np.random.default_rng(40 + seed)
    n, k = 60, 3
    P, y, w = rng.dirichlet([1, 1, 1], n), rng.integers(0, k, n), rng.random(n)
    C = rng.integers(0, 6, (4, k)).astype(float)
    spec = HistogramSpec(bins=3)
    fold = np.random.default_rng(seed).permutation(n) % 4
    lost = weight = 0.0
    for i in range(n):
        fit = fold < fold[i] if fit_on == "earlier" else fold != fold[i]
        if not fit.any():
            continue
        q = spec.fit(P[fit], np.eye(k)[y[fit]], w[fit]).apply(P[i : i + 1])[0]
        lost += w[i] * (C[np.argmin(C @ P[i]), y[i]] - C[np.argmin(C @ q), y[i]])
        weight += w[i]
    error = CostRegret(cost=C, calibrator=spec, folds=4, fit_on=fit_on, rng=seed)
    view = View(P, np.eye(k)[y], w)
    assert error.value(view) == pytest.approx(lost / weight, rel=1e-12)
    assert error.parts(view)["stated"] - error.parts(view)["recalibrated"] == pytest.approx(lost / weight, rel=1e-10)


def test_a_calibrated_model_is_never_expected_to_gain() -> None:
    # Whatever actions a fit chooses, by the stated probabilities the stated actions cost least: the expectation of
    # each row's gain is at most 0, exactly.
    rng = np.random.default_rng(41)
    P, Q = rng.dirichlet([1, 1, 1], 500), rng.dirichlet([1, 1, 1], 500)
    costs = Costs(rng.random((4, 3)), P, View(P, P), "decision_regret")
    stated = costs.optimal_actions(P)
    assert (costs.row_costs(stated, P) <= costs.row_costs(costs.optimal_actions(Q, stated), P) + 1e-15).all()


def test_a_tie_leaves_the_action_as_it_is() -> None:
    P = np.array([[0.5, 0.5], [0.2, 0.8]])
    costs = Costs([[0, 1], [1, 0]], P, View(P, P), "decision_regret")
    assert costs.optimal_actions(P).tolist() == [0, 1]
    # .1 + .2 against .3: equal but for rounding.
    three = np.array([[0.1, 0.2, 0.7]])
    tied = Costs([[1, 1, 0], [3, 0, 0]], three, View(three, three), "decision_regret")
    assert tied.optimal_actions(three).tolist() == [0]
    assert tied.optimal_actions(three, np.array([1])).tolist() == [1]


def test_votes_share_out_what_an_action_costs() -> None:
    P = np.array([[0.7, 0.3]])
    costs = Costs(COST, P, View(P, P), "decision_regret")
    assert costs.row_costs(np.array([0]), np.array([[0.75, 0.25]])).tolist() == [1.0]


def test_a_function_gives_costs_row_by_row() -> None:
    rng = np.random.default_rng(42)
    P, y = rng.dirichlet([1, 1], 200), rng.integers(0, 2, 200)
    view = View(P, np.eye(2)[y])
    table = CostRegret(cost=COST, calibrator="isotonic").value(view)
    assert CostRegret(cost=lambda _P: np.array(COST), calibrator="isotonic").value(view) == table
    assert CostRegret(cost=lambda P: np.array([COST] * len(P)), calibrator="isotonic").value(view) == table


def test_a_recalibration_that_changes_no_action_is_noted() -> None:
    rng = np.random.default_rng(43)
    preds = Predictions(rng.integers(0, 3, 90), rng.dirichlet([1, 1, 1], 90))
    # One temperature keeps the order within a row, and with it the most probable class.
    estimate = to.measure(
        preds, "decision_regret", cost=(1 - np.eye(3)).tolist(), calibrator="temperature", resamples=50
    )
    assert (estimate.value, estimate.parts["changed"], estimate.lens) == (0.0, 0.0, "canonical")
    assert {"TN135", "TN138"} <= {note.code for note in estimate.notes}


def test_measured_at_given_costs_it_says_what_its_interval_is_for() -> None:
    rng = np.random.default_rng(44)
    p = rng.random(800)
    preds = Predictions((rng.random(800) < p**2).astype(int), p)
    estimate = to.measure(preds, "decision_regret", cost=COST, resamples=300)
    assert estimate.interval is not None
    assert estimate.interval.method == "bca"
    assert estimate.noise_floor == 0.0
    (note,) = (note for note in estimate.notes if note.code == "TN135")
    assert "lower bound on the full regret" in note.text


def test_a_table_per_row_prices_each_row_by_itself() -> None:
    # One row in two costs ten times as much to miss; a weight of 0 takes its row's costs along.
    rng = np.random.default_rng(45)
    p, y, w = rng.random(120), rng.integers(0, 2, 120), (rng.random(120) > 0.2).astype(float)
    table = np.array([COST, [[0.0, 40.0], [1.0, 0.0]]])[np.arange(120) % 2]
    error, view = CostRegret(cost=table), View(p, y, w)
    out_of_fold = error.out_of_fold(view)
    P, Q, label = out_of_fold.P, out_of_fold.recalibrated, out_of_fold.Y[:, 1].astype(int)
    paid = [
        sum(table[i][np.argmin(table[i] @ probs[j])][label[j]] for j, i in enumerate(out_of_fold.row))
        for probs in (P, Q)
    ]
    assert error.value(view) == pytest.approx((paid[0] - paid[1]) / len(out_of_fold.row), rel=1e-10)
    assert error.settings_used(view)["cost"] == "a table per row, 2 actions, 2 classes"
    with pytest.raises(ValueError, match="TO205"):
        CostRegret(cost=table[:50]).value(view)


def test_three_actions_switch_where_their_lines_cross() -> None:
    # Waiting costs 10p, a test 1 + 4p, treating 4(1 − p) : waiting until 10p = 1 + 4p, p = 1/6; the test until
    # 1 + 4p = 4 − 4p, p = 3/8. A fourth action that is never best changes nothing.
    P = np.array([[0.5, 0.5]])
    costs = Costs([[0, 10], [1, 5], [4, 0], [6, 6]], P, View(P, P), "decision_regret")
    assert costs.action_thresholds() == [(pytest.approx(1 / 6), 0, 1), (pytest.approx(3 / 8), 1, 2)]
    assert Costs([[1, 0], [2, 1]], P, View(P, P), "decision_regret").action_thresholds() == []


def test_actions_have_names_and_their_regrets_add_up() -> None:
    rng = np.random.default_rng(46)
    p = rng.random(600)
    preds = Predictions((rng.random(600) < p**2).astype(int), p)
    estimate = to.measure(preds, "decision_regret", cost=COST, actions=["wait", "treat"], resamples=100)
    assert estimate.value == pytest.approx(estimate.parts["action:wait"] + estimate.parts["action:treat"], rel=1e-12)
    assert estimate.parts["threshold:wait → treat"] == pytest.approx(0.2)
    # The truth is p², so at .2 it comes .04 of the time: the isotonic fit there is far below .2.
    assert estimate.parts["rate there:wait → treat"] < 0.15
    for actions, code in ((["a", "a"], "TO203"), ("ab", "TO203"), (["a"], "TO205")):
        with pytest.raises(ValueError, match=code):
            to.measure(preds, "decision_regret", cost=COST, actions=actions, resamples=100)


def test_without_costs_every_wrong_class_costs_one() -> None:
    rng = np.random.default_rng(47)
    P, y = rng.dirichlet([1, 1, 1], 200), rng.integers(0, 3, 200)
    view = View(P, np.eye(3)[y])
    assert CostRegret().value(view) == CostRegret(cost=1 - np.eye(3)).value(view)


# Settings


def test_costs_choose_between_the_worst_decision_and_one() -> None:
    assert isinstance(ESTIMATORS.make("decision_regret", {"bins": 5}), DecisionRegret)
    assert isinstance(ESTIMATORS.make("decision_regret", {"cost": COST, "folds": 3}), CostRegret)
    assert isinstance(ESTIMATORS.make("decision_regret", {"cost": None}), DecisionRegret)


def test_costs_that_do_not_fit_the_outcomes_are_refused() -> None:
    view = View(np.full((6, 3), 1 / 3), np.eye(3)[[0, 1, 2] * 2])
    with refused("TO205", "(2, 2)"):
        CostRegret(cost=COST).value(view)
    with refused("TO205"):
        CostRegret(cost=lambda P: np.zeros((2, 2, 3))).value(view)


def test_the_worst_decision_is_for_one_score() -> None:
    with refused("TO205"):
        DecisionRegret().value(View(np.full((2, 3), 1 / 3), np.eye(3)[:2]))


def test_edge_data_give_numbers() -> None:
    # Said .7, and came: the task with threshold just above .7 waits, and loses .3 of the 1/.7 that it is worth.
    assert DecisionRegret().value(View([0.7], [1])) == pytest.approx(0.3 / 0.7, rel=1e-12)
    assert DecisionRegret().value(View([0.0, 1.0], [1, 0])) == pytest.approx(1.0)
    assert DecisionRegret().value(View([0.0, 1.0], [0, 1])) == 0.0
    assert DecisionRegret().value(View([0.5] * 4, [1, 1, 1, 1])) == pytest.approx(1.0)  # act: half right or all
    assert CostRegret(cost=COST).value(View([0.7], [1])) == 0.0
    p = np.random.default_rng(45).random(300).astype(np.float16)
    y = np.arange(300) % 2
    assert DecisionRegret().value(View(p, y)) == pytest.approx(DecisionRegret().value(View(p.astype(float), y)))
