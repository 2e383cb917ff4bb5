"""Which subgroups there are, and which rows are published."""

import numpy as np
import pytest

from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.subgroups import MAX_EVALUATED_GROUPS, Subgroup, subgroup_partitions
from trueodds.resampling.estimand import Estimand


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(2)
    return Predictions(
        (rng.random(n) < p).astype(int), p, group={"a": rng.integers(0, 2, n), "b": rng.choice(["x", "y", "z"], n)}
    )


@pytest.mark.parametrize("crossings", [1, 2])
def test_every_row_lies_in_one_subgroup_of_each_partition(crossings):
    preds = rows()
    subgroupings = subgroup_partitions(preds, crossings)
    assert [partition.column for partition in subgroupings] == ["a", "b", "a × b"][: 1 + crossings]
    for partition in subgroupings:
        assert (np.sum([group.row_mask(preds) for group in partition.groups], axis=0) == 1).all()


def test_a_crossing_holds_the_rows_of_both():
    preds = rows()
    both = Subgroup((("a", 1), ("b", "y")))
    assert (both.row_mask(preds) == ((preds.group["a"] == 1) & (preds.group["b"] == "y"))).all()
    assert (Subgroup(both.values, is_complement=True).row_mask(preds) == ~both.row_mask(preds)).all()


def test_combinations_without_a_row_are_counted():
    preds = Predictions([0, 1, 1], [0.2, 0.5, 0.9], group={"a": list("uvv"), "b": list("xxy")})
    (crossed,) = subgroup_partitions(preds, 2)[2:]
    assert [group.label for group in crossed.groups] == ["a=u, b=x", "a=v, b=x", "a=v, b=y"]
    assert crossed.n_empty == 1


def test_what_is_left_out_is_reported():
    values = np.repeat(np.arange(60), np.where(np.arange(60) < 50, 3, 2))
    weight = np.where(values == 0, 0.0, 1.0)
    (partition,) = subgroup_partitions(Predictions(values % 2, np.full(len(values), 0.5), group=values, weight=weight))
    assert len(partition.groups) == MAX_EVALUATED_GROUPS
    assert [group.label for group in partition.zero_weight_groups] == ["group=0"]
    assert len(partition.groups) + len(partition.unevaluated_groups) + len(partition.zero_weight_groups) == 60
    assert all(group.values[0][1] >= 50 for group in partition.unevaluated_groups)


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_an_estimator_sees_in_place_what_it_sees_of_the_rows_alone(name):
    preds, lens, estimator = rows(), as_lens("positive"), ESTIMATORS.make(name, {})
    for group in subgroup_partitions(preds)[0].groups:
        within = Estimand.from_predictions(estimator, group.restrict_lens(lens), preds).values[0]
        alone = Estimand.from_predictions(estimator, lens, preds[group.row_mask(preds)]).values[0]
        assert within == pytest.approx(alone, abs=1e-9, nan_ok=True)
