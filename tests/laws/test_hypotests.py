"""Do the laws hold for every test of the registry?

Two things are no laws of a Monte-Carlo test and are not asked: the p-value moves with the order of rows and with
weights within its Monte-Carlo error, because each row has its own stream of draws. The statistic may not move.
"""

import json

import numpy as np
import pytest

import trueodds as to
from tests.laws.rows import three_classes, two_shapes
from trueodds.hypotests import TESTS

LENSES = ("confidence", "classwise", "canonical", "rank:2", "groups:[[0,2],[1]]")
CASES = [(name, lens) for name in TESTS.names() for lens in LENSES]


def judged(preds, name, lens, **settings):
    return to.test(preds, name, lens=lens, resamples=19, **settings)


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_row_order_does_not_move_the_statistic(name, lens):
    y, P, w = three_classes()
    order = np.random.default_rng(1).permutation(len(y))
    a = judged(to.Predictions(y, P, weight=w), name, lens)
    b = judged(to.Predictions(y[order], P[order], weight=w[order]), name, lens)
    assert a.statistic == pytest.approx(b.statistic, rel=1e-12)
    assert list(a.parts) == list(b.parts)


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_a_weight_of_two_is_two_rows_in_the_statistic(name, lens):
    y, P, w = three_classes()
    times = w.astype(int)
    a = judged(to.Predictions(y, P, weight=w), name, lens)
    b = judged(to.Predictions(np.repeat(y, times), np.repeat(P, times, axis=0)), name, lens)
    assert a.statistic == pytest.approx(b.statistic, rel=1e-12)


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_frequency_weights_are_rows_to_the_last_digit(name, lens):
    y, P, w = three_classes()
    times = w.astype(int)
    a = judged(to.Predictions(y, P, weight=w), name, lens, weight_kind="frequency").to_dict()
    b = judged(to.Predictions(np.repeat(y, times), np.repeat(P, times, axis=0)), name, lens).to_dict()
    assert {**a, "settings": None} == {**b, "settings": None}


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_a_verdict_is_a_probability_above_its_floor_and_told_as_strict_json(name, lens):
    y, P, w = three_classes()
    found = judged(to.Predictions(y, P, weight=w), name, lens)
    assert 0 < found.pvalue <= 1
    assert found.floor is None or found.pvalue >= found.floor
    assert float(found) == found.pvalue
    assert found.null
    assert found.null in str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["n"] == (w > 0).sum()


@pytest.mark.parametrize("name", TESTS.names())
def test_binary_is_two_class(name):
    one, two = two_shapes()
    a, b = to.test(one, name, resamples=39), to.test(two, name, resamples=39)
    assert (a.statistic, a.pvalue) == (b.statistic, b.pvalue)


@pytest.mark.parametrize("name", TESTS.names())
def test_permuting_classes_permutes_the_parts(name):
    y, P, _ = three_classes()
    order = np.array([2, 0, 1])  # new column j is old class order[j]
    a = judged(to.Predictions(y, P), name, "classwise").parts
    b = judged(to.Predictions(np.argsort(order)[y], P[:, order]), name, "classwise").parts
    for new, old in enumerate(order):
        assert b[f"class:{new}"]["statistic"] == pytest.approx(a[f"class:{old}"]["statistic"], rel=1e-12)


@pytest.mark.parametrize("name", TESTS.names())
def test_settings_are_read_back_and_input_is_left_alone(name):
    y, P, w = three_classes()
    before = [x.copy() for x in (y, P, w)]
    found = to.test(to.Predictions(y, P, weight=w), name, lens="confidence", resamples=19, rng=7)
    assert (found.settings["resamples"], found.settings["seed"]) == (19, 7)
    assert all((x == kept).all() for x, kept in zip((y, P, w), before, strict=True))
    again = to.test(to.Predictions(y, P, weight=w), name, lens="confidence", resamples=19, rng=7)
    assert found.to_dict() == again.to_dict()
