"""Are the proper scores the textbook's, at 0, at 1, with votes and weights?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests import reference
from tests.problem.refused import refused
from trueodds import Predictions
from trueodds.estimators.proper import Brier, LogLoss
from trueodds.problem.lens import as_lens
from trueodds.problem.view import View


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
    off = 2.0**-30
    view = View([[1 - off, off, 0.0]], [[1, 0, 0]]) if joint else View([1 - off], [1])
    assert float(Brier()(view)) == pytest.approx((1 + joint) * off**2, rel=1e-12, abs=0)


@pytest.mark.parametrize("joint", [False, True])
def test_a_vote_of_seven_tenths_is_two_weighted_rows(joint: bool) -> None:
    p = [0.6, 0.3, 0.1] if joint else 0.6
    votes = [0.7, 0.0, 0.3] if joint else 0.7
    pure = [[1, 0, 0], [0, 0, 1]] if joint else [1, 0]
    for score in (Brier(), LogLoss()):
        one, two = View([p], [votes]), View([p, p], pure, [0.7, 0.3])
        assert float(score(one)) == pytest.approx(float(score(two)), rel=1e-14)


def test_the_brier_score_of_binary_cells_is_that_of_their_rows() -> None:
    rng = np.random.default_rng(0)
    p, w = rng.random(200), rng.random(200)
    rows = View(p, rng.random(200) < p, w)
    for view in (rows, rows.pool(np.arange(200) % 7, 7), rows.pool(np.zeros(200, int), 1)):
        assert float(Brier()(view)) == pytest.approx(float(Brier()(rows)), rel=1e-12)
        assert Brier().expected(view) == pytest.approx(Brier().expected(rows), rel=1e-12)


def test_cells_of_vectors_do_not_pretend_to_know_the_score() -> None:
    P = np.random.default_rng(0).dirichlet([1, 1, 1], 20)
    cells = View(P, np.eye(3)[np.arange(20) % 3]).pool(np.arange(20) % 4, 4)
    with refused("TO205", "4 cells of 20 rows", fix="tally"):
        Brier()(cells)
    with refused("TO205"):
        Brier().expected(cells)


def test_the_impossible_costs_infinity_and_is_noted_and_counted() -> None:
    answer = LogLoss()(View([0.0, 1.0, 0.5], [1, 0, 1]))
    assert float(answer) == math.inf
    assert answer.to_dict()["value"] is None
    (note,) = answer.notes
    assert note.code == "TN104"
    assert note.text.startswith("2 outcomes")
    assert float(LogLoss()(View([0.0, 1.0], [0, 1]))) == 0  # 0 log 0 is nothing


def test_a_floor_is_asked_for_and_says_how_many_rows_it_touched() -> None:
    answer = LogLoss(1e-3)(View([0.0, 0.5, 0.9995], [1, 1, 1]))
    assert float(answer) == pytest.approx(-(math.log(1e-3) + math.log(0.5) + math.log(0.9995)) / 3, rel=1e-14)
    assert [note.code for note in answer.notes] == ["TN104", "TN106"]
    assert "touched 2 rows" in answer.notes[1].text
    assert answer.settings == {"floor": 1e-3}


def test_a_row_of_weight_zero_is_no_evidence() -> None:
    answer = LogLoss()(View([0.0, 0.5], [1, 1], [0, 1]))
    assert float(answer) == pytest.approx(math.log(2))
    assert answer.notes == ()
    assert answer.n == 1


@pytest.mark.parametrize("floor", [-0.1, 1.0, float("nan"), "0.1"])
def test_a_floor_that_is_none_is_refused(floor: Any) -> None:
    with refused("TO203", repr(floor)):
        LogLoss(floor)


def test_the_expected_score_is_the_mean_over_redrawn_labels() -> None:
    # E of the mean score given p is `expected`; 4.5 standard errors of 400 draws
    rng = np.random.default_rng(3)
    P = rng.dirichlet([1, 1, 1], 100)
    cumulative = P.cumsum(axis=1)
    for score in (Brier(), LogLoss()):
        drawn = []
        for _ in range(400):
            y = (rng.random(100)[:, None] > cumulative).sum(axis=1).clip(0, 2)
            drawn.append(score.value(View(P, np.eye(3)[y])))
        assert score.expected(View(P, P)) == pytest.approx(np.mean(drawn), abs=4.5 * np.std(drawn) / 20)


def test_the_best_constant_is_the_rate() -> None:
    y = np.arange(10) < 3
    for score in (Brier(), LogLoss()):
        said = [float(score(View(np.full(10, p), y))) for p in (0.2, 0.25, 0.3, 0.35, 0.4)]
        assert int(np.argmin(said)) == 2
