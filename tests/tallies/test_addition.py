"""The laws of adding: order, batching and machines do not matter, and what differs refuses."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tallies.batches import decimal, numbers, same, softmaxed
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.tallies import block_sums, tally, tally_sums
from trueodds.tallies.tally import Tally

NAMED = ("groups:[[0,1],[2]]",)


def counted(preds: Predictions) -> Tally:
    return Tally.from_predictions(preds, lenses=NAMED, grid=5)


@pytest.mark.slow
@settings(max_examples=30)
@given(decimal(), decimal(), decimal())
def test_adding_is_associative_commutative_and_pure(a, b, c):
    x, y, z = counted(a), counted(b), counted(c)
    before = numbers(x), numbers(y)
    same((x + y) + z, x + (y + z))
    same(x + y, y + x)
    for original, now in zip(before, (numbers(x), numbers(y)), strict=True):
        for key, array in original.items():
            np.testing.assert_array_equal(array, now[key])


@pytest.mark.slow
@pytest.mark.claim("docs/evidence.md", "Merged tallies are the tally of all rows.", "laws: merged tallies")
@settings(max_examples=30)
@given(decimal(), st.randoms(use_true_random=False))
def test_any_batching_and_any_order_of_rows_is_one_pass(preds, random):
    rows = list(range(preds.n))
    random.shuffle(rows)
    cuts = sorted(random.sample(range(1, preds.n), random.randint(0, preds.n - 1))) if preds.n > 1 else []
    batches = np.split(np.array(rows), cuts)
    same(reduce(Tally.__add__, [counted(preds[batch]) for batch in batches]), counted(preds))


def test_blocks_and_threads_change_no_bit(monkeypatch):
    preds = softmaxed(5000, 3, 1, group={"site": np.arange(5000) % 3})
    full = counted(preds)
    monkeypatch.setattr(tally, "MIN_ROWS_PER_BLOCK", 300)
    results = []
    for threads in ("1", "2"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        results.append(counted(preds))
    for key, array in numbers(results[0]).items():
        np.testing.assert_array_equal(array, numbers(results[1])[key])
    same(results[0], full, rtol=1e-10)  # 5000 sums of 1e-16 each


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_that_share_many_classes_change_no_bit(monkeypatch, dtype):
    preds = softmaxed(200, 70, 1, dtype)
    full = Tally.from_predictions(preds)
    monkeypatch.setattr(block_sums, "VALUES_PER_TASK", 70 * 30)
    for threads in ("1", "2"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        for key, array in numbers(Tally.from_predictions(preds)).items():
            np.testing.assert_array_equal(array, numbers(full)[key], err_msg=key)


@pytest.mark.slow
@settings(max_examples=30)
@given(decimal(weighted=False))
def test_a_weight_of_two_is_two_rows(preds):
    outcome = preds.y if preds.votes is None else preds.votes
    heavy = counted(Predictions(outcome, preds.p, weight=np.full(preds.n, 2.0)))
    twice = counted(preds) + counted(preds)
    heavy_cells, twice_cells = heavy.cells.with_explicit_sums(), twice.cells.with_explicit_sums()
    linear = [0, 1, 2, 4, 5, 6]  # w, wp, wy, wpp, wpy, wyy
    np.testing.assert_array_equal(heavy_cells.index, twice_cells.index)
    np.testing.assert_allclose(heavy_cells.sums[:, linear], twice_cells.sums[:, linear], rtol=1e-12, atol=1e-12)
    assert heavy.score("brier")["mean"] == pytest.approx(twice.score("brier")["mean"], abs=1e-12)
    assert heavy.weight == twice.weight


@pytest.mark.slow
@settings(max_examples=30)
@given(decimal(k=2))
def test_binary_is_two_class(preds):
    outcome = preds.y if preds.votes is None else preds.votes
    # (20 − i)/20 and 1 − i/20 may be neighbors, so the first column is what the single one leaves.
    two = np.stack([1 - preds.p[:, 1], preds.p[:, 1]], axis=1)
    column = Tally.from_predictions(Predictions(outcome, preds.p[:, 1], weight=preds.weight, group=preds.group))
    same(column, Tally.from_predictions(Predictions(outcome, two, weight=preds.weight, group=preds.group)))


def test_permuting_classes_permutes_the_tally():
    preds = softmaxed(500, 4, 2)  # without ties, which class order breaks
    order = np.array([2, 0, 3, 1])
    permuted = Tally.from_predictions(Predictions(np.argsort(order)[preds.y], preds.p[:, order]))
    straight = Tally.from_predictions(preds)
    for c, old in enumerate(order):
        (new,), (was,) = permuted.views(f"class:{c}"), straight.views(f"class:{old}")
        np.testing.assert_array_equal(new.p, was.p)
        np.testing.assert_array_equal(new.y, was.y)
    for lens in ("confidence", "rank:2", "rank:3"):
        (new,), (was,) = permuted.views(lens), straight.views(lens)
        np.testing.assert_array_equal(new.p, was.p)
    cells = np.add.outer(order * 15, np.arange(15)).ravel()
    np.testing.assert_allclose(permuted.null_covariance, straight.null_covariance[np.ix_(cells, cells)], atol=1e-12)
    assert permuted.score("log_loss") == pytest.approx(straight.score("log_loss"))


def test_counts_do_not_depend_on_weights_being_given():
    preds = softmaxed(300, 3, 3)
    same(
        Tally.from_predictions(preds),
        Tally.from_predictions(Predictions(preds.y, preds.p, weight=np.ones(300))),
        rtol=1e-10,
    )


def test_different_things_refuse_to_add():
    P = [[0.2, 0.3, 0.5]]
    base = Tally.from_predictions(Predictions([0], P))
    others = {
        "classes": Tally.from_predictions(Predictions(["a"], P, classes=["a", "b", "c"])),
        "kind": Tally.from_predictions(Predictions.from_multilabel([[0, 0, 1]], P)),
        "lenses": Tally.from_predictions(Predictions([0], P), lenses=["groups:[[0,1],[2]]"]),
        "bins": Tally.from_predictions(Predictions([0], P), bins=10),
        "group columns": Tally.from_predictions(Predictions([0], P, group=["a"])),
    }
    for what, other in others.items():
        for a, b in ((base, other), (other, base)):
            with pytest.raises(InputError, match=rf"TO401.*different {what}"):
                a + b
    with pytest.raises(InputError, match=r"TO401.*different (lenses|grid)"):
        Tally.from_predictions(Predictions([0], P), grid=5) + Tally.from_predictions(Predictions([0], P), grid=10)


def test_a_group_seen_in_one_batch_only_is_kept():
    a = Tally.from_predictions(Predictions([0, 1], [0.2, 0.7], group=["x", "y"]))
    b = Tally.from_predictions(Predictions([1], [0.9], group=["z"]))
    assert {value: part.n for value, part in (b + a).groups["group"].items()} == {"x": 1, "y": 1, "z": 1}


def test_dtypes_are_joined():
    single, double = Tally.from_predictions(softmaxed(5, 3, 1, np.float32)), Tally.from_predictions(softmaxed(5, 3, 1))
    assert (double + single + double).dtype == "float32+float64"


def test_sum_adds_a_list_of_tallies():
    tallies = [Tally.from_predictions(softmaxed(50, 3, seed)) for seed in range(3)]
    assert tally_sums.dumps(sum(tallies)) == tally_sums.dumps(tallies[0] + tallies[1] + tallies[2])
    assert sum(tallies[:1]) is tallies[0]


@pytest.mark.parametrize("other", [1, 0.0, False, None, "tally", softmaxed(5, 3, 0)])
def test_only_tallies_can_be_added_to_a_tally(other):
    total = Tally.from_predictions(softmaxed(50, 3, 1))
    for add in (lambda: total + other, lambda: other + total):
        with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate"):
            add()


def test_a_shard_whose_rows_all_have_weight_0_is_to_be_left_out():
    y, p, w = np.arange(60) % 2, np.linspace(0.1, 0.9, 60), np.repeat([0.0, 1.0], 30)
    with pytest.raises(InputError, match=r"TO110.*leave out this file or part"):
        Predictions(y[:30], p[:30], weight=w[:30])
    rest = Tally.from_predictions(Predictions(y[30:], p[30:], weight=w[30:]))
    assert tally_sums.dumps(rest) == tally_sums.dumps(Tally.from_predictions(Predictions(y, p, weight=w)))
