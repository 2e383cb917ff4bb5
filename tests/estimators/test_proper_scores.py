"""Are the proper scores the textbook's, at 0, at 1, with votes and weights?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.proper_scores import Brier, LogLoss, RankedProbability, Spherical
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

SCORES = (Brier(), LogLoss(), Spherical(), RankedProbability(), RankedProbability(normalize=True))


def canonical(preds: Predictions) -> View:
    return as_lens("canonical").views(preds)[0]


@pytest.mark.reference
def test_reference_numbers() -> None:
    truth = reference.estimators()
    b, c = reference.frame("estimators/b_multi1000.csv"), reference.frame("estimators/c_binary500.csv")
    four, two = canonical(Predictions(b["y"], reference.columns(b))), canonical(Predictions(c["y"], c["p"]))
    assert float(Brier()(four)) == pytest.approx(truth["b.brier_sum"]["value"], rel=1e-10)
    assert float(LogLoss()(four)) == pytest.approx(truth["b.logloss"]["value"], rel=1e-10)
    assert float(Brier()(two)) == pytest.approx(truth["c.brier_binary"]["value"], rel=1e-10)
    assert float(LogLoss()(two)) == pytest.approx(truth["c.logloss_binary"]["value"], rel=1e-10)
    assert 1 - float(Spherical()(four)) == pytest.approx(truth["b.spherical_reward"]["value"], rel=1e-10)
    assert float(RankedProbability()(four)) == pytest.approx(truth["b.rps_sum"]["value"], rel=1e-10)
    assert float(RankedProbability(normalize=True)(four)) == pytest.approx(truth["b.rps_norm"]["value"], rel=1e-10)


@pytest.mark.reference
@pytest.mark.parametrize("net", ["densenet121", "resnet18"])
def test_the_scores_of_real_nets(net: str) -> None:
    # Reference: golden anchors, cifar_lenses; each p is off by up to half a float32 ulp of the decimal text, so the
    # log of a small p by up to 6e-8 relative.
    truth = reference.golden("anchors/golden.json")["analytic_and_literal"]["cifar_lenses"][net]
    arrays = reference.data("widmann_cifar10_4nets.npz")
    view = canonical(Predictions(arrays["labels"], arrays[f"probs_{net}"]))
    assert float(Brier()(view)) == pytest.approx(truth["brier"], abs=1e-7)
    assert float(LogLoss()(view)) == pytest.approx(truth["nll"], abs=1e-7)


def test_by_hand() -> None:
    # Brier: (.5² + .3² + .2²) = .38 and (.1² + .7² + .6²) = .86, mean .62; log loss −(log .5 + log .3)/2
    view = canonical(Predictions([0, 1], [[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]]))
    assert float(Brier()(view)) == pytest.approx(0.62, rel=1e-14)
    assert float(LogLoss()(view)) == pytest.approx(-(math.log(0.5) + math.log(0.3)) / 2, rel=1e-14)


def test_two_classes_are_scored_once() -> None:
    # (p − y)² for two classes, the sum over classes above: said in the docs, and the same in either input shape
    for p in ([0.3, 0.8], [[0.7, 0.3], [0.2, 0.8]]):
        assert float(Brier()(canonical(Predictions([0, 1], p)))) == pytest.approx((0.09 + 0.04) / 2, rel=1e-14)


@pytest.mark.parametrize("joint", [False, True])
def test_the_score_of_sharp_and_right_predictions_keeps_its_digits(joint: bool) -> None:
    # p² − 2py + y loses all digits of (1 − p)² near p = 1, and can be negative.
    epsilon = 2.0**-30
    view = View([[1 - epsilon, epsilon, 0.0]], [[1, 0, 0]]) if joint else View([1 - epsilon], [1])
    assert float(Brier()(view)) == pytest.approx((1 + joint) * epsilon**2, rel=1e-12, abs=0)


@pytest.mark.parametrize("joint", [False, True])
def test_a_vote_of_seven_tenths_is_two_weighted_rows(joint: bool) -> None:
    p = [0.6, 0.3, 0.1] if joint else 0.6
    votes = [0.7, 0.0, 0.3] if joint else 0.7
    pure = [[1, 0, 0], [0, 0, 1]] if joint else [1, 0]
    for score in SCORES:
        one, two = View([p], [votes]), View([p, p], pure, [0.7, 0.3])
        assert float(score(one)) == pytest.approx(float(score(two)), rel=1e-14)


def test_the_brier_score_of_binary_cells_is_that_of_their_rows() -> None:
    rng = np.random.default_rng(0)
    p, w = rng.random(200), rng.random(200)
    rows = View(p, rng.random(200) < p, w)
    for view in (rows, rows.pool(np.arange(200) % 7, 7), rows.pool(np.zeros(200, int), 1)):
        assert float(Brier()(view)) == pytest.approx(float(Brier()(rows)), rel=1e-12)
        assert Brier().expected_if_calibrated(view) == pytest.approx(Brier().expected_if_calibrated(rows), rel=1e-12)


def test_cells_of_vectors_do_not_pretend_to_know_the_score() -> None:
    P = np.random.default_rng(0).dirichlet([1, 1, 1], 20)
    cells = View(P, np.eye(3)[np.arange(20) % 3]).pool(np.arange(20) % 4, 4)
    with refused("TO205", "4 cells of 20 rows", fix="tally"):
        Brier()(cells)
    with refused("TO205"):
        Brier().expected_if_calibrated(cells)


def test_the_impossible_costs_infinity_and_is_noted_and_counted() -> None:
    answer = LogLoss()(View([0.0, 1.0, 0.5], [1, 0, 1]))
    assert float(answer) == math.inf
    assert answer.to_dict()["value"] is None
    (note,) = answer.notes
    assert note.code == "TN104"
    assert note.text.startswith("2 observed outcomes")
    assert float(LogLoss()(View([0.0, 1.0], [0, 1]))) == 0  # 0 log 0 is nothing


def test_min_prob_is_opt_in_and_says_how_many_rows_it_touched() -> None:
    answer = LogLoss(1e-3)(View([0.0, 0.5, 0.9995], [1, 1, 1]))
    assert float(answer) == pytest.approx(-(math.log(1e-3) + math.log(0.5) + math.log(0.9995)) / 3, rel=1e-14)
    assert [note.code for note in answer.notes] == ["TN104", "TN106"]
    assert "clipped probabilities in 2 rows" in answer.notes[1].text
    assert answer.settings == {"min_prob": 1e-3}


def test_a_row_of_weight_zero_is_no_evidence() -> None:
    answer = LogLoss()(View([0.0, 0.5], [1, 1], [0, 1]))
    assert float(answer) == pytest.approx(math.log(2))
    assert answer.notes == ()
    assert answer.n == 1


@pytest.mark.parametrize("name", ["brier", "log_loss", "spherical", "rps", "murphy_loss", "net_benefit", "bas"])
def test_the_score_without_weight_is_undefined(name: str) -> None:
    score = ESTIMATORS.make(name, {"threshold": 0.5} if name in ("murphy_loss", "net_benefit") else {})
    view = View([0.2, 0.6], [0, 1], [0, 0])
    assert math.isnan(score.value(view))
    assert math.isnan(score.expected_if_calibrated(view))


@pytest.mark.parametrize("min_prob", [-0.1, 1.0, float("nan"), "0.1"])
def test_a_floor_that_is_none_is_refused(min_prob: Any) -> None:
    with refused("TO203", repr(min_prob)):
        LogLoss(min_prob)


def test_the_expected_score_is_the_mean_over_resampled_labels() -> None:
    # E of the mean score given p is `expected`; 4.5 standard errors of 400 draws
    rng = np.random.default_rng(3)
    P = rng.dirichlet([1, 1, 1], 100)
    cumulative = P.cumsum(axis=1)
    for score in SCORES:
        drawn = []
        for _ in range(400):
            y = (rng.random(100)[:, None] > cumulative).sum(axis=1).clip(0, 2)
            drawn.append(score.value(View(P, np.eye(3)[y])))
        assert score.expected_if_calibrated(View(P, P)) == pytest.approx(np.mean(drawn), abs=4.5 * np.std(drawn) / 20)


def test_the_best_constant_is_the_rate() -> None:
    y = np.arange(10) < 3
    for score in SCORES:
        losses = [float(score(View(np.full(10, p), y))) for p in (0.2, 0.25, 0.3, 0.35, 0.4)]
        assert int(np.argmin(losses)) == 2


# Spherical and ranked


def test_the_spherical_score_by_hand() -> None:
    # (.6, 0, .8) has length 1, so its multiple of sum 1, (.6, 0, .8)/1.4, has the cosines .6, 0, .8
    p = np.array([0.6, 0.0, 0.8]) / 1.4
    for k, loss in enumerate([0.4, 1.0, 0.2]):
        assert float(Spherical()(View([p], np.eye(3)[[k]]))) == pytest.approx(loss, rel=1e-14)
    # binary: the vector (1 − p, p); p = .6 gives the norm √.52
    assert float(Spherical()(View([0.6], [1]))) == pytest.approx(1 - 0.6 / 0.52**0.5, rel=1e-14)
    assert float(Spherical()(View([0.6], [0]))) == pytest.approx(1 - 0.4 / 0.52**0.5, rel=1e-14)


def test_even_odds_cost_what_the_docstring_says() -> None:
    for k in (2, 3, 10, 1000):
        even = View(np.full((4, k), 1 / k), np.eye(k)[[0, 1, k - 1, 0]])
        assert float(Spherical()(even)) == pytest.approx(1 - k**-0.5, rel=1e-12)
        assert Spherical().expected_if_calibrated(even) == pytest.approx(1 - k**-0.5, rel=1e-12)


def test_the_ranked_score_by_hand() -> None:
    # F = (.5, .8); y = 0: (.5 − 1)² + (.8 − 1)² = .29; y = 1: .25 + .04 = .29; y = 2: .25 + .64 = .89
    for k, loss in enumerate([0.29, 0.29, 0.89]):
        view = View([[0.5, 0.3, 0.2]], np.eye(3)[[k]])
        assert float(RankedProbability()(view)) == pytest.approx(loss, rel=1e-14)
        assert float(RankedProbability(normalize=True)(view)) == pytest.approx(loss / 2, rel=1e-14)


def test_the_ranked_score_is_the_sum_of_the_brier_scores_of_its_cuts() -> None:
    rng = np.random.default_rng(5)
    P, w = rng.dirichlet([0.5] * 4, 60), rng.random(60)
    votes = rng.dirichlet([0.3] * 4, 60)
    cuts = [View(P[:, :k].sum(axis=1), votes[:, :k].sum(axis=1), w) for k in (1, 2, 3)]
    ranked, view = RankedProbability(), View(P, votes, w)
    assert ranked.value(view) == pytest.approx(sum(Brier().value(cut) for cut in cuts), rel=1e-12)
    assert ranked.expected_if_calibrated(view) == pytest.approx(
        sum(Brier().expected_if_calibrated(cut) for cut in cuts), rel=1e-12
    )
    for score in (ranked, RankedProbability(normalize=True)):
        assert score.value(cuts[0]) == pytest.approx(Brier().value(cuts[0]), rel=1e-14)


def test_only_the_order_of_classes_counts_and_not_its_direction() -> None:
    rng = np.random.default_rng(6)
    P, y = rng.dirichlet([1, 1, 1], 40), np.eye(3)[rng.integers(0, 3, 40)]
    straight = RankedProbability().value(View(P, y))
    assert RankedProbability().value(View(P[:, ::-1], y[:, ::-1])) == pytest.approx(straight, rel=1e-12)
    swapped = [1, 0, 2]
    assert abs(RankedProbability().value(View(P[:, swapped], y[:, swapped])) - straight) > 1e-3


@pytest.mark.parametrize("score", [Spherical(), RankedProbability()], ids=["spherical", "rps"])
def test_sharp_and_right_keeps_its_digits(score: Any) -> None:
    # 1 − p/‖p‖ is 0 in double precision for p = 1 − 1e-9, where the score is q²/(‖p‖(‖p‖ + p)) = 5e-19
    epsilon = 2.0**-30
    once = {"spherical": epsilon**2 / 2, "rps": epsilon**2}[score.name]
    assert float(score(View([[epsilon, 1 - epsilon, 0.0]], [[0, 1, 0]]))) == pytest.approx(once, rel=1e-8, abs=0)
    assert float(score(View([1 - epsilon], [1]))) == pytest.approx(once, rel=1e-8, abs=0)
    assert float(score(View([epsilon], [0]))) == pytest.approx(once, rel=1e-8, abs=0)


@pytest.mark.parametrize("score", [Spherical(), RankedProbability(normalize=True)], ids=["spherical", "rps"])
def test_scores_on_the_edge_of_the_data(score: Any) -> None:
    # exact 0s and 1s: right costs 0, wrong at the far end costs 1; a single row, one class, all alike, K beyond n
    for view, loss in [
        (View([1.0, 0.0], [1, 0]), 0.0),
        (View([1.0, 0.0], [0, 1]), 1.0),
        (View([[1.0, 0.0, 0.0]], [[1, 0, 0]]), 0.0),
        (View([[1.0, 0.0, 0.0]], [[0, 0, 1]]), 1.0),
        (View(np.eye(1000)[:30], np.eye(1000)[:30]), 0.0),
    ]:
        assert float(score(view)) == loss
        assert score.expected_if_calibrated(view) == 0
    assert 0 <= float(score(View([1 + 2**-52], [1]))) < 1e-30  # rounding above 1 is kept, and is no error


@pytest.mark.parametrize("score", [Spherical(), RankedProbability()], ids=["spherical", "rps"])
def test_half_precision_is_summed_in_double(score: Any) -> None:
    # torchmetrics: float16 with n > 65,504 rows gives exactly 0
    rng = np.random.default_rng(7)
    P = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]], np.float16)[rng.integers(0, 2, 70_000)]
    y = np.eye(3)[rng.integers(0, 3, 70_000)]
    for predicted, observed in ((P, y), (P[:, 1], y[:, 1])):
        exact = score.value(View(predicted.astype(np.float64), observed))
        assert score.value(View(predicted, observed)) == exact > 0.1
        assert score.expected_if_calibrated(View(predicted, observed)) == score.expected_if_calibrated(
            View(predicted.astype(np.float64), observed)
        )


@pytest.mark.parametrize("score", [Spherical(), RankedProbability()], ids=["spherical", "rps"])
def test_cells_do_not_pretend_to_know_a_score_of_rows(score: Any) -> None:
    rows = View(np.linspace(0, 1, 20), np.arange(20) % 2)
    with refused("TO205", "4 cells of 20 rows", fix="rows"):
        score(rows.pool(np.arange(20) % 4, 4))


@pytest.mark.parametrize("normalize", ["yes", 1, None])
def test_a_convention_that_is_none_is_refused(normalize: Any) -> None:
    with refused("TO203", repr(normalize)):
        RankedProbability(normalize=normalize)


def test_the_convention_is_read_back() -> None:
    assert RankedProbability()(View([0.5], [1])).settings == {"normalize": False}
    assert RankedProbability(normalize=True)(View([0.5], [1])).settings == {"normalize": True}


@pytest.mark.parametrize("name", ["spherical", "rps"])
def test_the_facade_gives_an_interval_around_the_score_and_its_exact_floor(name: str) -> None:
    rng = np.random.default_rng(8)
    P = rng.dirichlet([1, 1, 1], 300)
    y = (rng.random(300)[:, None] > P.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    estimate = to.measure(to.Predictions(y, P), name, resamples=200)
    assert estimate.lens == "canonical"
    assert estimate.interval is not None
    assert estimate.interval.method == "bca"
    assert estimate.interval.low < estimate.value < estimate.interval.high
    assert estimate.noise_floor == pytest.approx(
        ESTIMATORS.make(name, {}).expected_if_calibrated(View(P, P)), rel=1e-12
    )
    assert estimate.debiased is None


@pytest.mark.parametrize("name", ["log_loss", "bas"])
@pytest.mark.parametrize("lens", ["classwise", "top-label", "confidence"])
def test_an_infinite_score_is_noted_through_every_lens(name: str, lens: str) -> None:
    # The third row predicts class 0 with certainty, and class 2 was observed.
    P = [[0.5, 0.5, 0], [0.2, 0.8, 0], [1, 0, 0], [0.6, 0.4, 0], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    estimate = to.measure(to.Predictions([0, 1, 2, 0, 1, 0], P), name, lens=lens)
    assert np.isinf(estimate.value)
    assert "TN104" in [note.code for note in estimate.notes]
