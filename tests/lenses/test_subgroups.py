"""Which subgroups there are, and which rows are published."""

import numpy as np
import pytest

from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.subgroups import Subgroup, group_zscores, rows_of_groups, subgroup_partitions
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


def test_every_group_with_weight_is_examined_by_default():
    values = np.repeat(np.arange(60), 3)
    weight = np.where(values == 0, 0.0, 1.0)
    (partition,) = subgroup_partitions(Predictions(values % 2, np.full(len(values), 0.5), group=values, weight=weight))
    assert len(partition.groups) == 59
    assert not partition.unexamined_groups
    assert [group.label for group in partition.zero_weight_groups] == ["group=0"]


def test_with_a_limit_the_groups_that_deviate_most_in_standard_errors_are_examined():
    # Ten rows of 0.5 each have variance 2.5. Residuals: group 0: 0, group 1: 1, group 2: −3, group 3: 2 → z of 2 and 3.
    values, events = np.repeat(np.arange(4), 10), np.concatenate([np.arange(10) < k for k in (5, 6, 2, 7)])
    preds = Predictions(events.astype(int), np.full(40, 0.5), group=values)
    (partition,) = subgroup_partitions(preds, max_groups=2)
    assert [group.label for group in partition.groups] == ["group=2", "group=3"]
    assert [group.label for group in partition.unexamined_groups] == ["group=0", "group=1"]
    zscores = group_zscores(as_lens("positive").views(preds), values, 4)
    assert zscores == pytest.approx(np.array([0, 1, 3, 2]) / np.sqrt(2.5))


@pytest.mark.parametrize("lens", ["canonical", "classwise"])
def test_a_z_score_is_the_largest_of_all_outcomes_with_squared_weights_in_its_variance(lens):
    rng = np.random.default_rng(0)
    P, y, w, groups = rng.dirichlet([1, 1, 1], 60), rng.integers(0, 3, 60), rng.integers(1, 4, 60), np.arange(60) % 4
    z = np.zeros(4)
    for group in range(4):
        for c in range(3):
            rows = [i for i in range(60) if groups[i] == group]
            residual = sum(w[i] * ((y[i] == c) - P[i, c]) for i in rows)
            variance = sum(w[i] ** 2 * P[i, c] * (1 - P[i, c]) for i in rows)
            z[group] = max(z[group], abs(residual) / variance**0.5)
    assert group_zscores(as_lens(lens).views(Predictions(y, P, weight=w)), groups, 4) == pytest.approx(z, rel=1e-12)


def test_a_group_whose_certain_predictions_are_contradicted_has_the_largest_z_score():
    preds = Predictions([0, 1, 0, 1], [0.0, 1.0, 1.0, 1.0], group=["a", "a", "b", "b"])
    assert group_zscores(as_lens("positive").views(preds), np.array([0, 0, 1, 1]), 2).tolist() == [0.0, np.inf]


def test_the_rows_of_each_group_are_those_of_its_mask():
    preds = rows()
    groups = [group for partition in subgroup_partitions(preds, 2) for group in partition.groups]
    groups.append(Subgroup((("a", 7), ("b", "x"))))  # a value that no row has
    for group, numbers in zip(groups, rows_of_groups(preds, groups), strict=True):
        assert numbers.tolist() == np.flatnonzero(group.row_mask(preds)).tolist()


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_an_estimator_sees_in_place_what_it_sees_of_the_rows_alone(name):
    preds, lens, estimator = rows(), as_lens("positive"), ESTIMATORS.make(name, {})
    for group in subgroup_partitions(preds)[0].groups:
        within = Estimand.from_predictions(estimator, group.restrict_lens(lens), preds).values[0]
        alone = Estimand.from_predictions(estimator, lens, preds[group.row_mask(preds)]).values[0]
        assert within == pytest.approx(alone, abs=1e-9, nan_ok=True)
