"""Do the laws hold for every diagram of the registry?

The bars of a diagram take weights as importance (DESIGN rule 9), so "weight two is two rows" is asked of what is
seen and said, not of the bars; with frequency weights it holds for every column.
"""

import json

import numpy as np
import pytest

import trueodds as to
from tests.laws.rows import three_classes, two_shapes
from trueodds.diagrams import DIAGRAMS

CASES = [(name, lens) for name in DIAGRAMS.names() for lens in ("confidence", "classwise", "class:1")]
BARS = ("bar_low", "bar_high", "outside", "n")


def numbers(diagram, *, bars=True):
    return {name: column for name, column in diagram.table.items() if bars or name not in BARS}


def assert_same(a, b):
    assert list(a) == list(b)
    for name, column in a.items():
        if np.asarray(column).dtype.kind == "f":
            np.testing.assert_allclose(column, b[name], rtol=1e-10, atol=1e-14, err_msg=name)
        else:
            assert list(column) == list(b[name]), name


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_row_order_is_irrelevant(name, lens):
    y, P, w = three_classes()
    order = np.random.default_rng(1).permutation(len(y))
    a = to.draw(to.Predictions(y, P, weight=w), name, lens=lens)
    b = to.draw(to.Predictions(y[order], P[order], weight=w[order]), name, lens=lens)
    assert_same(numbers(a), numbers(b))


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_a_weight_of_two_is_two_rows(name, lens):
    y, P, w = three_classes()
    times = w.astype(int)
    weighted = to.Predictions(y, P, weight=w)
    rows = to.draw(to.Predictions(np.repeat(y, times), np.repeat(P, times, axis=0)), name, lens=lens)
    assert_same(numbers(to.draw(weighted, name, lens=lens), bars=False), numbers(rows, bars=False))
    assert_same(numbers(to.draw(weighted, name, lens=lens, weight_kind="frequency")), numbers(rows))


@pytest.mark.parametrize("name", DIAGRAMS.names())
def test_binary_is_two_class(name):
    one, two = two_shapes()
    assert_same(numbers(to.draw(one, name)), numbers(to.draw(two, name)))


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_a_tally_draws_what_the_rows_draw(name, lens):
    y, P, _ = three_classes(n=400)
    preds = to.Predictions(y, P)
    exact, tallied = to.draw(preds, name, lens=lens), to.draw(to.tally(preds), name, lens=lens)
    assert_same(numbers(exact, bars=False), numbers(tallied, bars=False))


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_the_table_is_strict_json_and_settings_are_read_back(name, lens):
    y, P, w = three_classes()
    diagram = to.draw(to.Predictions(y, P, weight=w), name, lens=lens, bins=4, level=0.8)
    told = json.loads(json.dumps(diagram.to_dict(), allow_nan=False))
    assert told["settings"]["level"] == 0.8
    assert "4" in str(told["settings"]["partition"])
    assert told == json.loads(
        json.dumps(to.draw(to.Predictions(y, P, weight=w), name, lens=lens, bins=4, level=0.8).to_dict())
    )


@pytest.mark.parametrize("name", DIAGRAMS.names())
def test_permuting_classes_permutes_the_panels(name):
    y, P, _ = three_classes()
    order = np.array([2, 0, 1])
    a = to.draw(to.Predictions(y, P), name, lens="classwise").table
    b = to.draw(to.Predictions(np.argsort(order)[y], P[:, order]), name, lens="classwise").table
    for new, old in enumerate(order):
        mine = np.asarray(b["view"]) == f"class:{new}"
        theirs = np.asarray(a["view"]) == f"class:{old}"
        for column in ("n", "mean_prediction", "outcome_rate"):
            np.testing.assert_allclose(np.asarray(b[column])[mine], np.asarray(a[column])[theirs], rtol=1e-12)
