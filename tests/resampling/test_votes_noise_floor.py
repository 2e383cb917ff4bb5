"""The noise floor with votes: the value of a calibrated model with the same number of votes."""

from __future__ import annotations

from itertools import product
from math import factorial, prod
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator
from trueodds.estimators.binned import BinnedError
from trueodds.estimators.human_calibration import DistributionError, EntropyError, RankAgreement
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.subgroups import GroupLens
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import null_draws

DISTCE = DistributionError()


def crowd(n: int = 60, k: int = 3, votes: Any = 20, seed: int = 0, **extra: Any) -> Predictions:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return Predictions(rng.multinomial(votes, P), P, **extra)


def drawn(
    preds: Predictions, estimator: Estimator = DISTCE, draws: int = 300, seed: int = 1, lens: Any = None
) -> Array:
    estimand = Estimand.from_predictions(estimator, as_lens(lens or "canonical"), preds)
    (values,) = null_draws(preds, [estimand], draws, np.random.default_rng(seed))
    assert values.shape == (len(estimand.views), draws)
    return values


def of_one_mean(a: Array, b: Array) -> bool:
    """Whether two sets of draws have the same mean, within 4.5 standard errors of the difference."""
    return bool(abs(a.mean() - b.mean()) < 4.5 * np.sqrt(a.var() / a.size + b.var() / b.size))


def test_a_seed_gives_the_same_draws_and_another_seed_others() -> None:
    preds = crowd()
    np.testing.assert_array_equal(drawn(preds, seed=4), drawn(preds, seed=4))
    assert len(np.intersect1d(drawn(preds, seed=4), drawn(preds, seed=5))) < 3
    np.testing.assert_array_equal(drawn(preds, draws=10), drawn(preds, draws=300)[:, :10])


def test_every_draw_is_another_one() -> None:
    assert len(np.unique(drawn(crowd()))) > 290


def test_the_law_does_not_depend_on_the_order_of_rows_or_classes() -> None:
    preds = crowd(40, 4, np.arange(1, 41))
    there = drawn(preds, draws=1000)
    back = preds[np.arange(39, -1, -1)]
    assert of_one_mean(there, drawn(back, draws=1000, seed=2))
    turned = Predictions(np.rint(preds.votes * preds.counts[:, None])[:, [2, 0, 3, 1]], preds.P[:, [2, 0, 3, 1]])
    assert of_one_mean(there, drawn(turned, draws=1000, seed=3))
    assert not of_one_mean(there, drawn(crowd(40, 4, 5), draws=1000))  # the comparison can fail


@pytest.mark.slow
def test_the_law_is_that_of_exact_enumeration() -> None:
    # One row, four votes, three classes: 15 outcomes with multinomial probabilities
    P = np.array([0.5, 0.3, 0.2])
    preds = Predictions([[4, 0, 0]], [P])
    pmf: dict[float, float] = {}
    for votes in (counts for counts in product(range(5), repeat=3) if sum(counts) == 4):
        distance = round(float(np.abs(np.array(votes) / 4 - P).sum() / 2), 9)
        chance = factorial(4) / prod(map(factorial, votes)) * float(np.prod(P**votes))
        pmf[distance] = pmf.get(distance, 0.0) + chance
    assert sum(pmf.values()) == pytest.approx(1)
    values = drawn(preds, draws=20_000)[0].round(9)
    assert set(values) == set(pmf)
    for distance, chance in pmf.items():
        # below 4.5 binomial standard errors each: one failure in 10,000 runs over all of them
        assert (values == distance).mean() == pytest.approx(chance, abs=4.5 * np.sqrt(chance * (1 - chance) / 20_000))


def test_the_floor_falls_with_the_root_of_the_number_of_votes() -> None:
    # E|V − P| is σ√(2/π)/√m (1 + O(1/m)) while mP is large, so four times the votes halve the floor. P is at least .1:
    # at m = 50 and 200 the relative error of that law is below (1 − 6P(1 − P))/(24 m P(1 − P)) ~ .5 %.
    rng = np.random.default_rng(3)
    P = 0.1 + 0.7 * rng.dirichlet(np.ones(3), 300)
    small, many = (drawn(Predictions(np.tile([m, 0, 0], (300, 1)), P)) for m in (50, 200))
    ratio = many.mean() / small.mean()
    noise = 4.5 * np.hypot(small.std() / small.mean(), many.std() / many.mean()) / 300**0.5
    assert ratio == pytest.approx(0.5, rel=noise + 0.01)
    expected = np.sqrt(P * (1 - P) / (2 * np.pi * 200)).sum(axis=1).mean()
    assert many.mean() == pytest.approx(expected, rel=noise + 0.01)


def test_each_row_has_as_many_votes_as_it_had() -> None:
    # With one vote DistCE is 1 − P of the class drawn, with a million it is 0
    P = np.array([[0.6, 0.4], [0.6, 0.4]])
    values = drawn(Predictions([[1, 0], [10**6, 0]], P))[0]
    assert set(np.round(values * 2, 1)) == {0.4, 0.6}
    shares = np.round(values * 2, 2)
    assert (np.abs(shares - np.round(shares, 1)) <= 0.01).all()


def test_a_class_said_to_be_impossible_gets_no_vote() -> None:
    preds = Predictions([[5, 0, 0]] * 20, [[0.0, 1.0, 0.0]] * 20)
    assert (drawn(preds) == 0).all()
    assert (drawn(preds, RankAgreement()) == 1).all()


def test_a_row_with_a_label_has_one_vote() -> None:
    # E(1 − P of the class drawn) = 1 − Σ P²
    preds = crowd(100)
    labels = Predictions(np.zeros(100, dtype=int), preds.P)
    values = drawn(labels)
    assert values.mean() == pytest.approx((1 - (preds.P**2).sum(axis=1)).mean(), abs=4.5 * values.std() / 300**0.5)
    one_hot = Predictions(np.eye(3)[np.zeros(100, dtype=int)], preds.P)
    np.testing.assert_array_equal(values, drawn(one_hot))


def test_shares_without_counts_cannot_be_drawn() -> None:
    preds = crowd()
    with refused("TO205", "shares", fix="counts"):
        drawn(Predictions(preds.votes, preds.P))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_that_sum_to_one_only_roughly_are_drawn_too(dtype: Any) -> None:
    preds = crowd(k=7)
    rough = Predictions(np.rint(preds.votes * 20), preds.P.astype(dtype))
    assert of_one_mean(drawn(rough), drawn(preds, seed=9))


def test_two_columns_are_one() -> None:
    preds = crowd(k=2)
    one = Predictions(np.rint(preds.votes * 20), preds.P[:, 1])
    np.testing.assert_allclose(drawn(preds), drawn(one), rtol=1e-12)
    (view,) = as_lens("canonical").views(preds)
    assert not view.joint


def test_one_set_of_votes_serves_all_lenses() -> None:
    # Draw by draw, half the sum over classes of |P − V| is the total variation of the vector
    preds = crowd(k=4)
    estimands = [
        Estimand.from_predictions(DISTCE, as_lens(lens), preds) for lens in ("classwise", "canonical", "confidence")
    ]
    classwise, canonical, top = null_draws(preds, estimands, 50, np.random.default_rng(1))
    np.testing.assert_allclose(classwise.sum(axis=0) / 2, canonical[0], rtol=1e-12)
    np.testing.assert_array_equal(canonical, drawn(preds, draws=50))
    assert (top[0] <= canonical[0] + 1e-15).all()  # a coarser outcome cannot be further off


def test_answers_keep_the_order_of_the_questions() -> None:
    preds = crowd()
    estimators: list[Estimator] = [EntropyError(), BinnedError(), DISTCE]
    lens = as_lens("canonical")
    joint = null_draws(
        preds,
        [Estimand.from_predictions(estimator, lens, preds) for estimator in estimators],
        30,
        np.random.default_rng(1),
    )
    for estimator, values in zip(estimators, joint, strict=True):
        np.testing.assert_array_equal(values, drawn(preds, estimator, draws=30))


def test_a_subgroup_has_the_floor_of_its_own_rows() -> None:
    preds = crowd(80, group={"site": np.repeat(["A", "B"], 40)})
    within = drawn(preds, lens=GroupLens(as_lens("canonical"), "site", "B"), draws=1000)
    assert of_one_mean(within, drawn(preds[np.arange(40, 80)], seed=7, draws=1000))


def test_independent_labels_are_drawn_apart() -> None:
    rng = np.random.default_rng(0)
    P = rng.random((200, 2))
    values = drawn(Predictions.from_multilabel(rng.random((200, 2)) < P, P), lens="classwise", draws=500)
    exact = (2 * P * (1 - P)).mean(axis=0)
    np.testing.assert_allclose(values.mean(axis=1), exact, atol=4.5 * values.std() / 500**0.5)
    assert abs(np.corrcoef(values)[0, 1]) < 4.5 / 500**0.5


@pytest.mark.slow
def test_many_rows_need_few_draws_of_their_votes() -> None:
    # A floor is a mean over rows: 4 million drawn shares make it, and the settings say how many draws that was
    small, many = crowd(50), crowd(20_000, 4)
    assert to.measure(small, "distce", resamples=20).settings["redraws"] == 999
    answer = to.measure(many, "distce", resamples=20)
    assert answer.settings["redraws"] == 50
    # two means of 50 draws each
    assert answer.noise_floor == pytest.approx(drawn(many, draws=50).mean(), abs=4.5 * drawn(many, draws=50).std() / 5)


def test_a_test_of_single_labels_takes_a_vote_for_each() -> None:
    # The null of consistency for a statistic of votes: calibrated labels are not rejected, flipped ones are
    rng = np.random.default_rng(2)
    P = rng.dirichlet(np.ones(3), 200)
    labels = np.array([rng.choice(3, p=p) for p in P])
    right, wrong = Predictions(labels, P), Predictions((labels + 1) % 3, P)
    assert to.test(right, "consistency", statistic="distce", lens="canonical", resamples=99).pvalue > 0.01
    assert to.test(wrong, "consistency", statistic="distce", lens="canonical", resamples=99).pvalue == 0.01
