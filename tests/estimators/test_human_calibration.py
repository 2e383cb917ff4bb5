"""Are EntCE, DistCE and RankCS the published numbers, and what would the best model score with so many votes?"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb, log
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.data.refused import refused
from tests.estimators.values_by_view import measure_views
from trueodds import Predictions
from trueodds.core.results import Estimate
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.human_calibration import DistributionError, EntropyError, RankAgreement, VoteMean
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import null_draws

ALL: tuple[VoteMean, ...] = (
    EntropyError(),
    EntropyError(signed=True),
    EntropyError(correction="miller-madow"),
    DistributionError(),
    RankAgreement(),
    RankAgreement("index"),
)
every_estimator = pytest.mark.parametrize("estimator", ALL, ids=str)


def voted(n: int, k: int, votes: int, seed: int = 0) -> Predictions:
    """A perfect model: the votes are drawn from its probabilities."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return Predictions(rng.multinomial(votes, P), P)


def canonical(preds: Predictions) -> View:
    (view,) = as_lens("canonical").views(preds)
    return view


def codes(answer: Estimate) -> list[str]:
    return [note.code for note in answer.notes]


# By hand


def test_two_rows_by_hand() -> None:
    # Row 1: P (.5, .5, 0) has log 2, V (1, 0, 0) has 0: +log 2, tv .5, order broken (P ties what V tells apart).
    # Row 2: P (1, 0, 0) has 0, V (.5, 0, .5) has log 2: −log 2, tv .5, order broken: the third ties with the second.
    view = View([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[1, 0, 0], [0.5, 0, 0.5]], votes=[4, 4])
    answer = EntropyError()(view)
    assert float(answer) == pytest.approx(log(2), rel=1e-14)
    assert answer.parts == pytest.approx({"mean_absolute": log(2), "mean_signed": 0.0, "median_votes": 4.0})
    assert float(EntropyError(signed=True)(view)) == pytest.approx(0.0, abs=1e-15)
    assert float(EntropyError(base="2")(view)) == pytest.approx(1.0, rel=1e-14)
    assert float(DistributionError()(view)) == pytest.approx(0.5, rel=1e-14)
    assert float(RankAgreement()(view)) == 0.0


def test_the_correction_by_hand() -> None:
    # V (.5, .5, 0) of 10 votes lacks (2 − 1)/20, V (1, 0, 0) nothing; P as V, so minus .05 and 0 are left
    view = View([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[0.5, 0.5, 0], [1, 0, 0]], votes=[10, 10])
    assert float(EntropyError(signed=True, correction="miller-madow")(view)) == pytest.approx(-0.025, rel=1e-12)
    assert float(EntropyError(signed=True, correction="miller-madow", base="2")(view)) == pytest.approx(
        -0.025 / log(2), rel=1e-12
    )
    assert float(EntropyError()(view)) == 0.0


def test_weights_by_hand() -> None:
    # tv .1 with weight 3 and .5 with weight 1
    view = View([[0.6, 0.4], [0.5, 0.5]], [[0.5, 0.5], [1, 0]], [3, 1])
    assert float(DistributionError()(view)) == pytest.approx(0.2, rel=1e-14)
    assert float(RankAgreement()(view)) == 0.75


def test_the_entropy_error_does_not_see_which_classes_are_in_doubt() -> None:
    view = View([[0.1, 0.2, 0.7]], [[0.7, 0.1, 0.2]])
    assert float(EntropyError()(view)) == pytest.approx(0.0, abs=1e-15)
    assert float(DistributionError()(view)) == pytest.approx(0.6, rel=1e-14)


# Reference numbers: shared golden estimators (DistCE, |EntCE|, signed and RankCS agree with the authors' code)


@cache
def golden() -> dict[str, Any]:
    return reference.estimators()


@cache
def crowd() -> Predictions:
    table = reference.frame("estimators/e_votes.csv")
    return Predictions(reference.columns(table, "v"), reference.columns(table))


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "estimator"),
    [
        ("e.entce_mean_abs", EntropyError()),
        ("e.entce_mean_signed", EntropyError(signed=True)),
        ("e.distce_mean", DistributionError()),
        ("e.rankcs_tie_tolerant", RankAgreement()),
        ("e.rankcs_argsort_stable", RankAgreement("index")),
    ],
)
def test_a_reference_number(key: str, estimator: VoteMean) -> None:
    assert estimator.value(canonical(crowd())) == pytest.approx(golden()[key]["value"], rel=1e-10)


@pytest.mark.reference
@pytest.mark.parametrize(
    ("truth", "estimator"),
    [
        (lambda: golden()["e.entce_per_item"]["value"], EntropyError(signed=True)),
        (lambda: golden()["e.distce_per_item"]["value"], DistributionError()),
        (lambda: golden()["e.rankcs_tie_tolerant"]["per_item"], RankAgreement()),
        (lambda: golden()["e.rankcs_argsort_stable"]["per_item"], RankAgreement("index")),
    ],
)
def test_reference_numbers_row_by_row(truth: Any, estimator: VoteMean) -> None:
    np.testing.assert_allclose(estimator.row_scores(canonical(crowd())), truth(), rtol=1e-10, atol=1e-15)


# Ranks


def agrees(P: Array, V: Array) -> bool:
    """The definition, pair by pair."""
    return all((V[a] - V[b]) * (P[a] - P[b]) > 0 for a, b in combinations(range(len(P)), 2) if V[a] != V[b])


def test_ranks_agree_as_the_definition_says_pair_by_pair() -> None:
    rng = np.random.default_rng(5)
    for k in (2, 3, 5):
        P, V = rng.multinomial(6, np.ones(k) / k, 400) / 6, rng.multinomial(4, np.ones(k) / k, 400)
        agreement = RankAgreement().row_scores(View(P, V / 4, votes=np.full(400, 4)))
        np.testing.assert_array_equal(agreement, [agrees(p, v) for p, v in zip(P, V, strict=True)])
        assert 0 < agreement.mean() < 1


def test_ties_are_broken_by_class_number_only_on_request() -> None:
    # Votes 3, 3, 4 and P (.35, .25, .4): in any order of the tied two, but not in that of the class numbers
    view = View([[0.35, 0.25, 0.4]], [[0.3, 0.3, 0.4]], votes=[10])
    assert float(RankAgreement()(view)) == 1.0
    assert float(RankAgreement("index")(view)) == 0.0
    assert RankAgreement()(view).parts["tie_rate"] == 1.0


def test_votes_that_a_lens_adds_up_tie_though_their_shares_round_apart() -> None:
    # 1 + 2 votes of 10 against 3: .1 + .2 is .30000000000000004. P puts the pair below the third class.
    preds = Predictions([[1, 2, 3, 4]], [[0.1, 0.1, 0.3, 0.5]])
    (view,) = as_lens("groups:[[0,1],[2],[3]]").views(preds)
    assert view.y[0, 0] != view.y[0, 1]
    assert float(RankAgreement()(view)) == 1.0
    assert RankAgreement()(view).parts["tie_rate"] == 1.0


# Votes, shares, single labels


@every_estimator
def test_an_answer_has_an_interval_and_the_noise_floor_of_its_votes(estimator: VoteMean) -> None:
    answer = to.measure(voted(300, 3, 40), estimator, resamples=200)
    assert answer.lens == "canonical"
    assert answer.interval is not None
    assert answer.interval.method == "bca"
    assert answer.interval.low < answer.value < answer.interval.high
    assert answer.noise_floor is not None
    assert answer.debiased is None  # a mean whose best value is not reached: √(e² − floor²) would mean nothing
    assert answer.notes == ()
    assert answer.parts["median_votes"] == 40.0


@every_estimator
def test_a_perfect_model_scores_its_noise_floor(estimator: VoteMean) -> None:
    # The votes came from P, so the value is one more draw of the floor's own law: 4.5 of its standard deviations.
    for k in (2, 4):
        preds = voted(500, k, 15, seed=k)
        estimand = Estimand.from_predictions(estimator, as_lens("canonical"), preds)
        draws = null_draws(preds, [estimand], 200, np.random.default_rng(0))[0]
        assert estimand.values[0] == pytest.approx(draws.mean(), abs=4.5 * draws.std() * (1 + 1 / 200) ** 0.5)


def de_moivre(m: int, p: float) -> float:
    """E|Bin(m, p) − mp|, exactly: 2 v C(m, v) p^v (1 − p)^(m − v + 1) with v = ⌊mp⌋ + 1."""
    v = int(np.floor(m * p)) + 1
    return 2 * v * comb(m, v) * p**v * (1 - p) ** (m - v + 1) if v <= m else 0.0


def test_de_moivre_by_hand() -> None:
    # Bin(2, 1/2): |0 − 1|/4 + |2 − 1|/4 = 1/2
    assert de_moivre(2, 0.5) == pytest.approx(0.5, rel=1e-14)


@pytest.mark.parametrize(("k", "votes"), [(2, 5), (3, 30), (6, 100)])
def test_the_noise_floor_of_distce_is_de_moivres(k: int, votes: int) -> None:
    preds = voted(200, k, votes)
    exact = np.mean([sum(de_moivre(votes, p) for p in row) / 2 / votes for row in preds.P])
    draws = null_draws(
        preds,
        [Estimand.from_predictions(DistributionError(), as_lens("canonical"), preds)],
        400,
        np.random.default_rng(1),
    )
    assert draws[0].mean() == pytest.approx(exact, abs=4.5 * draws[0].std() / 400**0.5)
    # and the rule of thumb of the docstring is of the right size
    approximation = np.sqrt(preds.P * (1 - preds.P) / (2 * np.pi * votes)).sum(axis=1).mean()
    assert exact == pytest.approx(approximation, rel=0.15)


def test_the_correction_takes_out_most_of_what_few_votes_lack() -> None:
    # E H(V) = K Σ_x Bin(m, 1/K)(x) · (−x/m log x/m), exactly, for P uniform over K = 4 classes and m = 40 votes
    k, m, n = 4, 40, 20_000
    pmf = np.array([comb(m, x) * (1 / k) ** x * (1 - 1 / k) ** (m - x) for x in range(m + 1)])
    lacking = log(k) + k * sum(pmf[x] * x / m * log(x / m) for x in range(1, m + 1))
    P = np.full((n, k), 1 / k)
    view = canonical(Predictions(np.random.default_rng(2).multinomial(m, P), P))
    plain, corrected = EntropyError(signed=True), EntropyError(signed=True, correction="miller-madow")
    rows = plain.row_scores(view)
    assert plain.value(view) == pytest.approx(lacking, abs=4.5 * rows.std() / n**0.5)
    # the next term of the expansion is (1 − Σ 1/P)/(12 m²): −15/19,200 for these; the one after is below 1e-4
    rows = corrected.row_scores(view)
    assert corrected.value(view) == pytest.approx(15 / 19_200, abs=4.5 * rows.std() / n**0.5 + 1e-4)
    assert abs(corrected.value(view)) < lacking / 10


def test_shares_without_counts_have_an_interval_but_no_floor_and_say_why() -> None:
    preds = voted(100, 3, 20)
    answer = to.measure(Predictions(preds.votes, preds.P), "distce", resamples=100)
    assert answer.value == pytest.approx(to.measure(preds, "distce", interval=None).value, rel=1e-14)
    assert answer.interval is not None
    assert answer.noise_floor is None
    assert codes(answer) == ["TN132"]
    assert answer.parts == {}


def test_a_single_label_is_a_vote_that_all_have_cast() -> None:
    # DistCE is 1 − P of the label, RankCS the accuracy, the entropy of the label 0; the floor of DistCE 1 − Σ P²
    P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.5, 0.3, 0.2]] * 30)
    preds = Predictions([0, 1, 2] * 30, P)
    answer = to.measure(preds, "distce", resamples=100)
    assert answer.value == pytest.approx((0.3 + 0.4 + 0.8) / 3, rel=1e-13)
    assert codes(answer) == ["TN131"]
    assert answer.noise_floor == pytest.approx((1 - (P**2).sum(axis=1)).mean(), abs=0.004)  # 4.5 · .25/√(90 · 999)
    assert to.measure(preds, "rankcs", interval=None).value == pytest.approx(2 / 3)
    entropy = -(P * np.log(P)).sum(axis=1).mean()
    assert to.measure(preds, "entce", interval=None).value == pytest.approx(entropy, rel=1e-12)
    one_hot = Predictions(np.eye(3)[[0, 1, 2] * 30], P)
    assert codes(to.measure(one_hot, "distce", interval=None)) == ["TN131"]


def test_few_votes_are_noted() -> None:
    assert "Every row has 7 votes" in to.measure(voted(20, 3, 7), "distce", interval=None).notes[0].text
    assert to.measure(voted(20, 3, 30), "distce", interval=None).notes == ()


def test_a_correction_without_counts_is_refused_unless_nothing_lacks() -> None:
    preds = voted(50, 3, 20)
    with refused("TO205", "shares", fix="counts"):
        to.measure(Predictions(preds.votes, preds.P), "entce", correction="miller-madow")
    single = Predictions(np.zeros(50, dtype=int), preds.P)
    values = [
        to.measure(single, "entce", interval=None, correction=correction).value for correction in (None, "miller-madow")
    ]
    assert values[0] == values[1]


def test_rows_of_weight_zero_are_no_rows() -> None:
    preds = Predictions([[3, 0], [1, 1], [40, 0]], [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], weight=[1, 1, 0])
    rank, entropy = RankAgreement()(canonical(preds)), EntropyError()(canonical(preds))
    assert (float(rank), rank.parts["tie_rate"], rank.parts["median_votes"]) == (1.0, 0.5, 2.5)
    assert entropy.parts["mean_absolute"] == pytest.approx(float(entropy), rel=1e-14)


# Lenses


@every_estimator
def test_two_classes_are_a_vector_of_two(estimator: VoteMean) -> None:
    preds = voted(40, 2, 12)
    view = canonical(preds)
    assert not view.joint
    both = View(preds.P, preds.Y, votes=preds.counts)
    assert estimator.value(view) == pytest.approx(estimator.value(both), rel=1e-13)
    assert estimator.value(view) == pytest.approx(
        estimator.value(canonical(Predictions(preds.votes * 12, preds.P[:, 1]))), rel=1e-13
    )


@pytest.mark.slow
def test_one_class_against_the_rest_is_a_binary_view() -> None:
    preds = voted(60, 3, 25)
    overall, parts = measure_views(DistributionError(), as_lens("classwise").views(preds))
    assert parts["class:1"] == pytest.approx(np.abs(preds.P[:, 1] - preds.Y[:, 1]).mean(), rel=1e-13)
    # over the classes the halves add up to the total variation of the vector
    assert 3 / 2 * overall == pytest.approx(DistributionError().value(canonical(preds)), rel=1e-12)
    answer = to.measure(preds, "distce", lens="classwise", resamples=100)
    assert codes(answer) == ["TN131"]
    assert answer.noise_floor == pytest.approx(2 / 3 * to.measure(preds, "distce", resamples=100).noise_floor, rel=1e-9)


def test_bare_confidence_and_independent_labels_have_a_number_and_a_floor() -> None:
    answer = to.measure(Predictions.from_confidence([0.9, 0.6], [1, 0]), "distce")
    assert answer.value == pytest.approx(0.35, rel=1e-13)
    assert answer.noise_floor == pytest.approx((2 * 0.09 + 2 * 0.24) / 2, abs=4.5 * 0.3 / (2 * 999) ** 0.5)
    labels = Predictions.from_multilabel([[1, 0], [1, 1]], [[0.9, 0.2], [0.6, 0.5]])
    answer = to.measure(labels, "distce")
    assert answer.lens == "classwise"
    assert answer.value == pytest.approx((0.1 + 0.2 + 0.4 + 0.5) / 4, rel=1e-13)
    exact = 2 * (0.09 + 0.16 + 0.24 + 0.25) / 4
    assert answer.noise_floor == pytest.approx(exact, abs=4.5 * 0.3 / (4 * 999) ** 0.5)


@every_estimator
def test_cells_and_tallies_hold_no_votes(estimator: VoteMean) -> None:
    preds = voted(40, 3, 12)
    with refused("TO205", "cells"):
        estimator(canonical(preds).pool(np.arange(40) % 4, 4))
    with refused("TO403"):
        to.measure(to.tally(preds), estimator)


# Settings and data at the edge


def test_settings_are_read_back_from_what_ran() -> None:
    view = canonical(voted(20, 3, 12))
    assert ESTIMATORS.make("entce", {"base": 2})(view).settings == {"signed": False, "base": "2", "correction": None}
    assert ESTIMATORS.make("rankcs", {})(view).settings == {"ties": "tolerant"}
    assert ESTIMATORS.load("rankcs").best_value == 1.0


@pytest.mark.slow
@every_estimator
def test_edge_data_give_a_number(estimator: VoteMean) -> None:
    data = [
        Predictions([[3, 1]], [[0.9, 0.1]]),  # one row
        Predictions([[5, 0, 0], [0, 5, 0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),  # sure, right, exact 0 and 1
        Predictions([[0, 0, 5]] * 4, [[1.0, 0.0, 0.0]] * 4),  # sure and wrong
        Predictions([[2, 2, 2]] * 4, np.full((4, 3), 1 / 3)),  # ties everywhere
        Predictions([[1, 3], [2, 2]], [1 + 2**-52, 0.5]),  # 1 − p rounds below 0
        Predictions(np.random.default_rng(0).multinomial(20, np.ones(1000) / 1000, 30), np.full((30, 1000), 0.001)),
    ]
    for preds in data:
        answer = to.measure(preds, estimator, resamples=20)
        assert np.isfinite(answer.value)
        assert np.isfinite(answer.noise_floor)
