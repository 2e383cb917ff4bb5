"""Null draws of a subgroup from its own rows are those of all rows, in which the other rows have weight 0."""

from __future__ import annotations

import numpy as np
import pytest

from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.kernels import random_labels
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.subgroups import rows_of_groups, subgroup_partitions
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import cluster_correlation, null_draws

N = 240


def predictions(kind: str) -> Predictions:
    """Rows of two overlapping group columns; the clusters extend over several groups."""
    rng = np.random.default_rng(3)
    groups = {"a": rng.integers(0, 4, N), "b": rng.integers(0, 3, N)}
    p, P = rng.random(N).round(2), rng.dirichlet(np.ones(3), N)
    y, labels = (rng.random(N) < p).astype(int), rng.integers(0, 3, N)
    if kind == "weights":
        return Predictions(y, p, group=groups, weight=rng.integers(1, 4, N).astype(float))
    if kind == "clusters":
        return Predictions(y, p, group=groups, cluster=rng.integers(0, 40, N))
    if kind == "votes":
        return Predictions(rng.multinomial(5, [0.3, 0.7], N), p, group=groups)
    if kind == "vote shares":
        return Predictions(rng.dirichlet(np.ones(2), N), p, group=groups)
    if kind == "classes":
        return Predictions(labels, P, group=groups)
    if kind == "clustered classes":
        return Predictions(labels, P, group=groups, cluster=rng.integers(0, 40, N))
    if kind in ("multilabel", "clustered multilabel"):
        cluster = None if kind == "multilabel" else rng.integers(0, 40, N)
        return Predictions.from_multilabel(rng.integers(0, 2, (N, 3)), P, group=groups, cluster=cluster)
    return Predictions(y, p, group=groups)


CASES = [
    *((kind, "positive", name) for kind in ("labels", "weights", "clusters", "votes", "vote shares") for name in
      ("ece", "ecce_r", "smece", "o_e", "brier")),
    *((kind, lens, "ece") for kind in ("classes", "clustered classes") for lens in
      ("confidence", "classwise", "canonical", "top-label")),
    ("classes", "canonical", "brier"),
    *((kind, "class:1", name) for kind in ("multilabel", "clustered multilabel") for name in ("ece", "smece")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "lens_name", "estimator"), CASES)
def test_draws_of_the_rows_of_a_group_are_those_with_weight_zero_elsewhere(kind, lens_name, estimator):
    preds, lens, method = predictions(kind), as_lens(lens_name), ESTIMATORS.make(estimator, {})
    groups = [group for partition in subgroup_partitions(preds, 2) for group in partition.groups]
    rows_by_group = rows_of_groups(preds, groups)
    by_rows = [Estimand.from_predictions(method, lens, preds, rows=rows) for rows in rows_by_group]
    by_weight = [Estimand.from_predictions(method, group.restrict_lens(lens), preds) for group in groups]
    shares = [None, 0.0, 0.4] if preds.cluster is not None or kind == "votes" else [None]
    for share in shares:
        expected = null_draws(preds, by_weight, 19, np.random.default_rng(1), cluster_share=share)
        drawn = null_draws(preds, by_rows, 19, np.random.default_rng(1), cluster_share=share)
        for a, b in zip(drawn, expected, strict=True):
            assert a == pytest.approx(b, abs=1e-9, nan_ok=True)
    if kind in ("clusters", "votes"):
        assert cluster_correlation(preds, by_rows) == pytest.approx(cluster_correlation(preds, by_weight))


@pytest.mark.parametrize("names", [["ece"], ["ece", "smece"]], ids=str)
def test_many_rows_have_the_same_labels_in_all_their_groups(monkeypatch, names):
    # From so many rows on, rows of weight 1 are drawn with integers of 16 bits, unless others need their labels.
    monkeypatch.setattr(random_labels, "MIN_ROWS_OF_SHORT_INTEGERS", 100)
    preds, lens = predictions("labels"), as_lens("positive")
    everything = Predictions(preds.y, preds.p, group={"all": np.zeros(N, dtype=int), **preds.group})
    groups = [group for partition in subgroup_partitions(everything) for group in partition.groups]
    one_bin = [ESTIMATORS.make(name, {"bins": 1} if name == "ece" else {}) for name in names]
    estimands = [
        Estimand.from_predictions(method, lens, everything, rows=rows)
        for method in one_bin
        for rows in rows_of_groups(everything, groups)
    ]
    draws = null_draws(everything, estimands, 25, np.random.default_rng(0))
    # The absolute residual sum of all rows is at most the sum of those of the groups, and has its parity.
    residuals = [len(estimand.rows) * d[0] for estimand, d in zip(estimands[:8], draws, strict=False)]
    assert (residuals[0] <= sum(residuals[1:5]) + 1e-9).all()
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T  # one choice of signs gives the sum of all rows
    sums = np.abs(signs @ np.array(residuals[1:5]))
    assert np.abs(sums - residuals[0]).min(axis=0) == pytest.approx(np.zeros(25), abs=1e-9)
