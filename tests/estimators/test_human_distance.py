"""Is the squared distance from the crowd free of vote noise, and is its split that of the nearest ordered vector?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.human_calibration import HumanDistance, project_nonincreasing, squared_distance_to_vote_order
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import null_draws


def canonical(preds: Predictions) -> View:
    (view,) = as_lens("canonical").views(preds)
    return view


def crowd(n: int, k: int, votes: int, seed: int = 0) -> tuple[Array, Array, Predictions]:
    """A model P that is wrong by a known amount: the votes are drawn from Q."""
    rng = np.random.default_rng(seed)
    P, Q = rng.dirichlet(np.ones(k), n), rng.dirichlet(np.ones(k), n)
    return P, Q, Predictions(rng.multinomial(votes, Q), P)


# By hand


def test_three_rows_by_hand() -> None:
    # Row 1: P − V = (−.4, .2, .2), .24; noise (.25 + .25)/9 = .0556.
    # Votes 5, 0, 5: order .7, .1 | .2, pooled to .15: .005.
    # Row 2: P = V: 0; noise 2 · .25/3 = .1667; in order.
    # Row 3: P − V = (.6, −.8, .2), 1.04; noise 0 (one class has all). Votes 4 | 0, 0: .2 | .6, .2;
    # .2 and .6 pooled to .4: .08.
    view = View(
        [[0.1, 0.2, 0.7], [0.5, 0.5, 0.0], [0.6, 0.2, 0.2]],
        [[0.5, 0.0, 0.5], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]],
        votes=[10, 4, 4],
    )
    rows = HumanDistance().row_scores(view)
    assert rows == pytest.approx([0.24 - 0.5 / 9, -0.5 / 3, 0.36 + 0.64 + 0.04], rel=1e-13)
    answer = HumanDistance()(view)
    noise = (0.5 / 9 + 0.5 / 3) / 3
    assert answer.value == pytest.approx((0.24 + 1.04) / 3 - noise, rel=1e-13)
    order = (0.005 + 0.08) / 3
    assert answer.parts == pytest.approx(
        {"order": order, "size": answer.value - order, "vote_noise": noise, "median_votes": 4.0}, rel=1e-12
    )


def test_weights_and_rows_of_weight_zero_by_hand() -> None:
    # .02 with weight 3 and .5 with weight 1, and no votes but one each: (.06 + .5)/4
    view = View([[0.9, 0.1], [0.5, 0.5], [0.0, 1.0]], [[1, 0], [1, 0], [1, 0]], [3, 1, 0], votes=[1, 1, 50])
    answer = HumanDistance()(view)
    assert answer.value == pytest.approx(0.14, rel=1e-13)
    assert answer.parts["median_votes"] == 1.0
    assert "2 of 2 rows" in answer.notes[0].text


# Reference numbers: the table of votes of the shared golden estimators; worked row by row in fractions of 100


@cache
def table() -> tuple[Array, Array]:
    frame = reference.frame("estimators/e_votes.csv")
    return reference.columns(frame), reference.columns(frame, "v")


@pytest.mark.reference
def test_the_table_of_votes() -> None:
    # Σ (P − V)² − Σ V(1 − V)/99 with V in hundredths. Row 1: equal, and ΣV² = .54: −.46/99.
    # Row 4: (.05, −.1, .05): .015.
    P, V = table()
    rows = HumanDistance().row_scores(canonical(Predictions(V, P)))
    assert rows[0] == pytest.approx(-0.46 / 99, rel=1e-12)
    assert rows[3] == pytest.approx(0.015, rel=1e-12)
    # Row 2: .01 + .0225 + .0025; row 3: .0036 + .0049 + .0169; rows 5 and 7: twice .0025; row 6: twice .09;
    # row 8: equal.
    squares = np.array([0, 0.0350, 0.0254, 0.015, 0.005, 0.18, 0.005, 0.0])
    agreement = np.array([0.54, 0.455, 0.36, 1.0, 0.38, 0.38, 0.485, 0.38])
    assert rows == pytest.approx(squares - (1 - agreement) / 99, rel=1e-10, abs=1e-15)
    # Where RankCS says that the order agrees nothing is lost to it.
    golden = reference.estimators()["e.rankcs_tie_tolerant"]["per_item"]
    lost = squared_distance_to_vote_order(P, V)
    assert (lost[np.array(golden) == 1] < 1e-15).all()


# The nearest vector in the order of the votes


def partitions(classes: list[int]) -> Iterator[list[list[int]]]:
    """Every way to put the classes into blocks."""
    if not classes:
        yield []
        return
    first, *rest = classes
    for size in range(len(rest) + 1):
        for beside in combinations(rest, size):
            for others in partitions([c for c in rest if c not in beside]):
                yield [[first, *beside], *others]


def nearest(P: Array, V: Array) -> Array:
    """The projection by every set of active constraints: such a set makes the classes of each block equal.

    The nearest vector with equal classes in each block has their means. The projection is the nearest of those that are
    in the order of the votes.
    """
    k = len(P)
    above = V[:, None] > V
    closest = np.full(k, P.mean())
    for blocks in partitions(list(range(k))):
        S = np.empty(k)
        for block in blocks:
            S[block] = P[block].mean()
        in_order = (S[:, None] >= S - 1e-15)[above].all()
        if in_order and ((P - S) ** 2).sum() < ((P - closest) ** 2).sum():
            closest = S
    return closest


@pytest.mark.parametrize("k", [2, 3, 5])
def test_order_is_the_distance_of_the_projection_ties_in_votes_and_in_probabilities_included(k: int) -> None:
    rng = np.random.default_rng(k)
    P = np.r_[rng.dirichlet(np.ones(k), 120), rng.multinomial(5, np.ones(k) / k, 120) / 5]
    V = rng.multinomial(4, np.ones(k) / k, 240)
    tied = (np.diff(np.sort(V, axis=1), axis=1) == 0).any(axis=1)
    assert tied.any()
    expected = [((p - nearest(p, v)) ** 2).sum() for p, v in zip(P, V, strict=True)]
    np.testing.assert_allclose(squared_distance_to_vote_order(P, V), expected, atol=1e-12)


def test_the_nearest_ordered_vector_is_on_the_simplex_without_being_constrained_to_it() -> None:
    # So the cone and the cone within the simplex have the same projection.
    rng = np.random.default_rng(1)
    for k in (3, 6):
        S = project_nonincreasing(rng.dirichlet(np.full(k, 0.2), 500))
        assert (np.diff(S, axis=1) <= 0).all()
        assert S.min() >= 0
        np.testing.assert_allclose(S.sum(axis=1), 1, rtol=1e-12)


def test_classes_with_equal_votes_are_not_pooled_into_one() -> None:
    # Votes 4, 4, 2 and P (.5, .1, .4): only .1 and .4 are pooled, to .25: .045.
    # With 4, 4 made equal first: .3 < .4, so all three become 1/3, and .0867 would be lost.
    P, V = np.array([[0.5, 0.1, 0.4]]), np.array([[4, 4, 2]])
    assert squared_distance_to_vote_order(P, V)[0] == pytest.approx(0.045, rel=1e-12)
    assert np.square(P - 1 / 3).sum() == pytest.approx(0.0867, abs=1e-4)


def test_the_parts_add_up_and_the_mixed_term_is_never_negative() -> None:
    P, _, preds = crowd(400, 4, 12)
    view = canonical(preds)
    parts = HumanDistance().parts(view)
    assert parts["order"] + parts["size"] == pytest.approx(HumanDistance().value(view), rel=1e-12)
    # Row by row |P − V|² ≥ |P − S|² + |S − V|²: the votes are in their own order, so S is nearer to them than P is.
    order = np.lexsort((-P, -preds.votes), axis=1)
    predicted, observed = np.take_along_axis(P, order, axis=1), np.take_along_axis(preds.votes, order, axis=1)
    S = project_nonincreasing(predicted)
    mixed = 2 * ((predicted - S) * (S - observed)).sum(axis=1)
    assert mixed.min() > -1e-12
    assert mixed.max() > 0.1  # it is there: Pythagoras does not hold
    total = np.square(predicted - observed).sum(axis=1)
    np.testing.assert_allclose(
        np.square(predicted - S).sum(axis=1) + np.square(S - observed).sum(axis=1) + mixed, total
    )


def test_one_class_off_in_size_alone_is_all_size_and_swapped_classes_have_order() -> None:
    V = np.array([[8, 6, 6], [7, 7, 6]])
    scaled = Predictions(V[:1], [[0.8, 0.1, 0.1]])
    assert HumanDistance().parts(canonical(scaled))["order"] == 0.0
    swapped = Predictions(V[:1], [[0.3, 0.4, 0.3]])
    # .3 and .4 pooled: .05² + .05²
    assert HumanDistance().parts(canonical(swapped))["order"] == pytest.approx(0.005, rel=1e-12)


# The noise of the votes


@pytest.mark.parametrize(("k", "votes"), [(2, 2), (3, 5), (4, 40)])
def test_the_distance_from_the_crowd_is_unbiased_from_two_votes_on(k: int, votes: int) -> None:
    P, Q, preds = crowd(4000, k, votes, seed=votes)
    truth = np.square(P - Q).sum(axis=1)
    rows = HumanDistance().row_scores(canonical(preds))
    # The errors of the rows are independent with mean 0: 4.5 standard errors of their mean.
    error = rows - truth
    assert abs(error.mean()) < 4.5 * error.std() / 4000**0.5
    # And without the term it would be too large by Σ Q(1 − Q)/votes, which this many rows tell apart.
    plain = np.square(preds.P - preds.votes).sum(axis=1) - truth
    noise = (Q * (1 - Q)).sum(axis=1) / votes
    assert plain.mean() == pytest.approx(noise.mean(), abs=4.5 * plain.std() / 4000**0.5)
    assert noise.mean() > 4.5 * error.std() / 4000**0.5


def test_vote_noise_is_what_a_model_equal_to_the_crowd_would_score_without_the_term() -> None:
    _, Q, preds = crowd(4000, 3, 8, seed=3)
    expected = (Q * (1 - Q)).sum(axis=1) / 8
    V = preds.votes
    row_noise = (V * (1 - V)).sum(axis=1) / 7
    vote_noise = HumanDistance().parts(canonical(preds))["vote_noise"]
    assert vote_noise == pytest.approx(expected.mean(), abs=4.5 * (row_noise - expected).std() / 4000**0.5)


@pytest.mark.parametrize("votes", [1, 2, 9])
def test_the_noise_floor_known_without_draws_is_the_mean_over_resampled_votes(votes: int) -> None:
    rng = np.random.default_rng(votes)
    P = rng.dirichlet(np.ones(3), 300)
    preds = Predictions(rng.multinomial(votes, P), P)
    estimand = Estimand.from_predictions(HumanDistance(), as_lens("canonical"), preds)
    draws = null_draws(preds, [estimand], 200, np.random.default_rng(0))[0]
    expected = HumanDistance().expected_if_calibrated(canonical(preds))
    assert expected == pytest.approx(1 - np.square(P).sum(axis=1).mean() if votes == 1 else 0.0, abs=1e-12)
    assert draws.mean() == pytest.approx(expected, abs=4.5 * draws.std() / 200**0.5)
    assert to.measure(preds, "human_distance", resamples=100).noise_floor == pytest.approx(expected, abs=1e-12)


def test_a_perfect_models_votes_are_no_surprise_and_another_crowds_are() -> None:
    P, _, other = crowd(150, 3, 10)
    right = Predictions(np.random.default_rng(5).multinomial(10, P), P)
    settings = {"statistic": "human_distance", "lens": "canonical", "resamples": 99}
    assert to.test(right, "consistency", **settings).pvalue > 0.01
    assert to.test(other, "consistency", **settings).pvalue == 0.01


# Votes, shares, labels, lenses


def test_an_answer_has_an_interval_parts_and_no_debiased_form() -> None:
    answer = to.measure(crowd(300, 3, 20)[2], "human_distance", resamples=200)
    assert (answer.lens, answer.noise_floor, answer.debiased, answer.notes) == ("canonical", 0.0, None, ())
    assert answer.interval is not None
    assert answer.interval.low < answer.value < answer.interval.high
    assert set(answer.parts) == {"order", "size", "vote_noise", "median_votes"}


def test_shares_have_nothing_taken_off_no_floor_and_say_why() -> None:
    _, _, preds = crowd(100, 3, 20)
    answer = to.measure(Predictions(preds.votes, preds.P), "human_distance", resamples=100)
    assert answer.value == pytest.approx(np.square(preds.P - preds.votes).sum(axis=1).mean(), rel=1e-13)
    assert answer.noise_floor is None
    assert [note.code for note in answer.notes] == ["TN132", "TN140"]
    assert (answer.parts["vote_noise"], "median_votes" in answer.parts) == (0.0, False)


def test_a_single_label_is_the_brier_score_and_says_so() -> None:
    _, _, preds = crowd(100, 3, 1)
    labels = preds.votes.argmax(axis=1)
    for predictions in (Predictions(labels, preds.P), preds):
        answer = to.measure(predictions, "human_distance", resamples=100)
        assert answer.value == pytest.approx(to.measure(predictions, "brier", interval=None).value, rel=1e-13)
        assert [note.code for note in answer.notes] == ["TN141"]
        assert answer.noise_floor == pytest.approx(1 - np.square(preds.P).sum(axis=1).mean(), rel=1e-12)


def test_only_the_rows_of_one_vote_keep_their_noise() -> None:
    preds = Predictions([[1, 0], [1, 1]], [[0.5, 0.5], [0.5, 0.5]])
    answer = HumanDistance()(canonical(preds))
    # .5 of the label; 0 less 2 · .25/1 of the pair
    assert answer.value == pytest.approx((0.5 - 0.5) / 2, abs=1e-15)
    assert answer.notes[0].text.startswith("1 of 2 rows")
    assert HumanDistance().expected_if_calibrated(canonical(preds)) == pytest.approx(0.25)


def test_two_classes_are_a_vector_of_two() -> None:
    _, _, preds = crowd(60, 2, 12)
    both = View(preds.P, preds.Y, votes=preds.counts)
    assert not canonical(preds).joint
    assert HumanDistance()(canonical(preds)).value == pytest.approx(HumanDistance()(both).value, rel=1e-13)
    assert HumanDistance()(canonical(preds)).parts == pytest.approx(HumanDistance()(both).parts, rel=1e-12)


def test_votes_that_a_lens_adds_up_tie_though_their_shares_round_apart() -> None:
    # 1 + 2 votes of 10 against 3: .1 + .2 is .30000000000000004. Tied, so that .4 above .1 costs nothing.
    preds = Predictions([[1, 2, 3, 4]], [[0.05, 0.05, 0.4, 0.5]])
    (view,) = as_lens("groups:[[0,1],[2],[3]]").views(preds)
    assert view.y[0, 0] != view.y[0, 1]
    assert HumanDistance().parts(view)["order"] == 0.0


def test_cells_and_tallies_hold_no_votes_and_there_are_no_settings() -> None:
    _, _, preds = crowd(40, 3, 12)
    with refused("TO205", "cells"):
        HumanDistance()(canonical(preds).pool(np.arange(40) % 4, 4))
    with refused("TO403"):
        to.measure(to.tally(preds), "human_distance")
    with refused("TO202"):
        ESTIMATORS.make("human_distance", {"ties": "index"})
