"""Complements and log-probabilities come from all columns, or from the logits, never from 1 − p alone."""

import itertools
import math

import numpy as np
import pytest

from trueodds.data.log_probabilities import log_observed, log_probabilities, log_softmax, log_sum_exp
from trueodds.data.predictions import Predictions
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

LENSES = ("canonical", "confidence", "class:1", "classwise", "rank:2", "top-2", "top-label", "groups:[[0,2],[1,3]]")


def by_fractions(weights, code, outcomes):
    """The log-probability of each outcome in one row, from whole-number weights 2^e summed exactly."""
    total = sum(weights)
    logs = []
    for z in range(outcomes):
        part = sum(w for w, c in zip(weights, code, strict=True) if c == z)
        logs.append(-math.inf if part == 0 else math.log(part) - math.log(total))  # math.log takes any whole number
    return logs


def test_the_sum_of_exponentials_neither_overflows_nor_underflows():
    z = np.array([[3000.0, 3000.0], [-5000.0, -np.inf], [-np.inf, -np.inf]])
    assert log_sum_exp(z).tolist() == [3000 + math.log(2), -5000.0, -np.inf]


def test_logits_that_underflow_keep_their_logarithms():
    assert log_softmax(np.array([[0.0, 5681.0]])).tolist() == [[-5681.0, 0.0]]
    assert log_softmax(np.array([-5681.0, 5681.0])).tolist() == [[0.0, -5681.0], [-5681.0, 0.0]]


@pytest.mark.parametrize("lens", LENSES)
def test_every_lens_has_the_logarithms_of_its_logits(lens):
    # Logits that are multiples of log 2: the exponentials are whole numbers, and their sums are exact.
    rng = np.random.default_rng(0)
    powers = rng.integers(0, 4000, (30, 4))
    powers[:10] = rng.integers(0, 5, (10, 4))
    labels = rng.integers(0, 4, 30)
    preds = Predictions.from_logits(labels, powers * math.log(2))
    chosen = as_lens(lens)
    for view, outcomes in zip(chosen.views(preds), chosen.outcome_codes(preds), strict=True):
        m = view.p.shape[1] if view.joint else 2
        code = np.broadcast_to(outcomes.code, (30, 4))
        expected = [by_fractions([2 ** int(e) for e in row], c, m) for row, c in zip(powers, code, strict=True)]
        assert view.has_logs
        np.testing.assert_allclose(view.log_P, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_lens_reads_the_complement_from_the_other_columns(lens, dtype):
    rng = np.random.default_rng(1)
    small = np.exp2(-rng.integers(1, 120, (30, 3)).astype(float))
    P = np.concatenate([small, np.ones((30, 1))], axis=1).astype(dtype)  # 1 beside the others is off by their sum
    P[:, 3] -= P[:, :3].sum(axis=1)
    P = np.take_along_axis(P, rng.permuted(np.tile(np.arange(4), (30, 1)), axis=1), axis=1)
    P = P[(P >= 0).all(axis=1)]
    preds = Predictions(rng.integers(0, 4, len(P)), P)
    chosen = as_lens(lens)
    for view, outcomes in zip(chosen.views(preds), chosen.outcome_codes(preds), strict=True):
        if not view.joint:
            event = np.broadcast_to(outcomes.code == 1, P.shape)
            q = [math.fsum(float(x) for x, inside in zip(row, e, strict=True) if not inside)
                 for row, e in zip(P, event, strict=True)]  # fmt: skip
            np.testing.assert_allclose(view.q, q, rtol=1e-12)
            np.testing.assert_allclose(view.log_P[:, 0], np.log(q), rtol=1e-12, atol=1e-15)


def test_two_columns_give_each_class_its_own_logarithm():
    preds = Predictions([0, 1], [[1e-30, 1.0], [1.0, 1e-30]])
    assert log_probabilities(preds).round(4).tolist() == [[-69.0776, 0.0], [0.0, -69.0776]]
    assert log_observed(preds).round(4).tolist() == [-69.0776, -69.0776]


def test_votes_without_weight_on_an_impossible_class_leave_the_mean_finite():
    preds = Predictions([[0, 3, 1]], [[0.0, 0.75, 0.25]])
    assert log_observed(preds).tolist() == pytest.approx([0.75 * math.log(0.75) + 0.25 * math.log(0.25)])


def test_chosen_rows_keep_their_complements():
    preds = Predictions([0, 1, 0], [[1e-30, 1.0], [0.4, 0.6], [1.0, 1e-20]])
    (view,) = as_lens("positive").views(preds)
    assert view.take(np.array([2, 0, 0])).q.tolist() == [1.0, 1e-30, 1e-30]
    assert view.with_y(np.ones(3)).q.tolist() == [1e-30, 0.4, 1.0]


def test_a_view_without_predictions_behind_it_takes_the_complement_for_what_is_left():
    view = View(p=[0.25, 1.0 + 1e-16], y=[1, 0])
    assert view.q.tolist() == [0.75, 0.0]
    assert view.log_P[1].tolist() == [-np.inf, 0.0]


def test_subsets_and_copies_know_the_logits():
    z = np.random.default_rng(2).normal(size=(6, 3)) * 1000
    preds = Predictions.from_logits([0, 1, 2, 0, 1, 2], z)
    for some in (preds[[0, 2]], preds[::2], preds.with_labels(np.zeros(6))):
        assert np.isfinite(log_observed(some)).all()


def test_the_logarithm_of_an_exact_zero_stays_infinite():
    rows = itertools.product(([0.0, 1.0], [1.0, 0.0]), (0, 1))
    P, y = zip(*rows, strict=True)
    assert log_observed(Predictions(y, np.array(P))).tolist() == [-np.inf, 0.0, 0.0, -np.inf]
    z = Predictions.from_logits([0, 1], [[-np.inf, 0.0], [-np.inf, 0.0]])
    assert log_observed(z).tolist() == [-np.inf, 0.0]
