"""Labels drawn from the predictions: the same distribution on every path and for any number of threads."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests import reference
from trueodds.binning.median_variance import MedianVariance
from trueodds.binning.uniform import Uniform
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.binned import BinnedError
from trueodds.kernels import random_labels
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.subgroups import GroupLens
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import null_description, null_draws


@dataclass(frozen=True)
class RowByRow(BinnedError):
    """ECE that hides its bins, so that every draw is evaluated from whole views."""

    def cell_statistic(self, view):
        return None


def simulated(n=300, k=4, seed=0, **extra):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    y = np.array([rng.choice(k, p=p) for p in P])
    return Predictions(y, P, **extra)


LENSES = [
    "confidence",
    "classwise",
    "canonical",
    "top-2",
    "rank:2",
    "class:1",
    "groups:[[0,1],[2,3]]",
    "groups:[[0],[1],[2,3]]",
]


@pytest.mark.parametrize("lens", LENSES)
def test_the_short_cut_by_bins_equals_whole_views_draw_by_draw(lens):
    preds = simulated(weight=np.random.default_rng(1).integers(0, 3, 300))
    fast = null_draws(
        preds, [Estimand.from_predictions(BinnedError(), as_lens(lens), preds)], 40, np.random.default_rng(3)
    )[0]
    slow = null_draws(
        preds, [Estimand.from_predictions(RowByRow(), as_lens(lens), preds)], 40, np.random.default_rng(3)
    )[0]
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("lens", ["confidence", "classwise", "canonical"])
def test_flipped_signs_by_bins_equal_whole_views_draw_by_draw(lens):
    preds = simulated(cluster=np.arange(300) // 5)
    fast = null_draws(
        preds, [Estimand.from_predictions(BinnedError(), as_lens(lens), preds)], 40, np.random.default_rng(3)
    )[0]
    slow = null_draws(
        preds, [Estimand.from_predictions(RowByRow(), as_lens(lens), preds)], 40, np.random.default_rng(3)
    )[0]
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-13)


def test_one_set_of_draws_serves_all_lenses():
    preds = simulated()
    both = [Estimand.from_predictions(BinnedError(), as_lens(lens), preds) for lens in ("confidence", "classwise")]
    joint = null_draws(preds, both, 50, np.random.default_rng(4))
    alone = null_draws(preds, both[1:], 50, np.random.default_rng(4))
    np.testing.assert_allclose(joint[1], alone[0], rtol=1e-12)


def test_a_subgroup_is_drawn_as_if_it_stood_alone():
    preds = simulated(group={"site": np.repeat(["A", "B"], 150)})
    within = GroupLens(as_lens("confidence"), "site", "A")
    fast = null_draws(preds, [Estimand.from_predictions(BinnedError(), within, preds)], 40, np.random.default_rng(3))[0]
    slow = null_draws(preds, [Estimand.from_predictions(RowByRow(), within, preds)], 40, np.random.default_rng(3))[0]
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-13)
    alone = preds[np.arange(150)]
    observed = Estimand.from_predictions(BinnedError(), within, preds).values[0]
    assert observed == pytest.approx(
        Estimand.from_predictions(BinnedError(), as_lens("confidence"), alone).values[0], abs=1e-15
    )


def test_the_law_is_that_of_exact_enumeration():
    # nine rows, 2^9 outcomes enumerated: golden a2.exact_null_pvalue, p = 0.8675 and mean 0.2014
    known = reference.estimators()["a2.exact_null_pvalue_fixed_scores.confidence_ece.ew5"]
    rows = reference.frame("estimators/a2_blog9.csv")
    preds = Predictions(rows["y"].astype(int), reference.columns(rows))
    estimand = Estimand.from_predictions(ESTIMATORS.make("ece", {"bins": 5}), as_lens("confidence"), preds)
    drawn = null_draws(preds, [estimand], 40_000, np.random.default_rng(0))[0][0]
    share = (drawn >= estimand.values[0] - 1e-12).mean()
    # 3.3 binomial standard errors: 99.9 %
    assert abs(share - known["value"]) < 3.3 * np.sqrt(0.8675 * 0.1325 / 40_000)
    assert abs(drawn.mean() - known["null_mean"]) < 3.3 * drawn.std() / np.sqrt(40_000)


def test_the_noise_floor_agrees_with_the_reference_draws():
    # golden c.consistency_fixed.ece_ew10: null mean 0.04376 from 999 draws, none as large as the statistic
    rows = reference.frame("estimators/c_binary500.csv")
    preds = Predictions(rows["y"].astype(int), rows["p"])
    estimand = Estimand.from_predictions(ESTIMATORS.make("ece", {"bins": 10}), as_lens("positive"), preds)
    drawn = null_draws(preds, [estimand], 999, np.random.default_rng(0))[0][0]
    known = reference.estimators()["c.consistency_fixed.ece_ew10"]["value"]
    assert abs(drawn.mean() - known["null_mean"]) < 3.3 * drawn.std() * np.sqrt(2 / 999)  # two means of 999 draws
    assert (drawn >= estimand.values[0]).sum() <= 5


def test_resampled_rows_and_labels_agree_with_the_reference_draws():
    rows = reference.frame("estimators/c_binary500.csv")
    preds = Predictions(rows["y"].astype(int), rows["p"])
    estimand = Estimand.from_predictions(ESTIMATORS.make("ece", {"bins": 10}), as_lens("positive"), preds)
    drawn = null_draws(preds, [estimand], 299, np.random.default_rng(0), "both")[0][0]
    known = reference.estimators()["c.consistency_resampled.ece_ew10"]["value"]
    assert abs(drawn.mean() - known["null_mean"]) < 3.3 * drawn.std() * np.sqrt(1 / 299 + 1 / 999)


def test_labels_come_as_often_as_stated():
    P = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    drawn = random_labels.draw_labels(P, key=7, start=0, stop=30_000)
    shares = np.bincount(drawn[:, 0], minlength=3) / 30_000
    assert (np.abs(shares - P[0]) < 3.9 * np.sqrt(P[0] * (1 - P[0]) / 30_000)).all()  # 99.99 % each
    assert (drawn[:, 1] == 0).all()
    assert (drawn[:, 2] == 2).all()


def test_a_label_of_probability_zero_is_never_drawn_though_a_row_sums_below_one():
    P = np.tile(np.array([[0.3, 0.7 - 1e-6, 0.0]], dtype=np.float32), (2000, 1))
    assert random_labels.draw_labels(P, key=1, start=0, stop=50).max() == 1


def test_many_classes_are_drawn_right_too():
    p = np.arange(1, 41) / np.arange(1, 41).sum()  # more than 16 classes: found by bisection
    drawn = random_labels.draw_labels(p[None], key=3, start=0, stop=60_000)[:, 0]
    shares = np.bincount(drawn, minlength=40) / 60_000
    assert (np.abs(shares - p) < 4.3 * np.sqrt(p / 60_000)).all()  # 40 classes at 99.998 % each


def test_draws_do_not_depend_on_threads_or_blocks(monkeypatch):
    preds = simulated()
    estimands = [Estimand.from_predictions(BinnedError(), as_lens("classwise"), preds)]
    monkeypatch.setenv("TRUEODDS_THREADS", "1")
    one = null_draws(preds, estimands, 300, np.random.default_rng(5))[0]
    monkeypatch.setenv("TRUEODDS_THREADS", "3")
    three = null_draws(preds, estimands, 300, np.random.default_rng(5))[0]
    np.testing.assert_array_equal(one, three)
    first = null_draws(preds, estimands, 10, np.random.default_rng(5))[0]
    np.testing.assert_array_equal(first, one[:, :10])


@pytest.mark.parametrize("lens", ["canonical", "classwise"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_met_in_the_order_of_their_cells_draw_the_same_labels(lens, weighted, monkeypatch):
    weight = np.random.default_rng(8).integers(0, 3, simulated().n) * 0.7 if weighted else None
    preds = simulated(weight=weight)
    estimands = [Estimand.from_predictions(BinnedError(), as_lens(lens), preds)]
    expected = null_draws(preds, estimands, 30, np.random.default_rng(5))[0]
    monkeypatch.setattr(random_labels, "MAX_VECTORIZED_CELLS", 0)
    for threads in ("1", "3"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        values = null_draws(preds, estimands, 30, np.random.default_rng(5))[0]
        np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_signs_are_fair_and_shared_within_a_cluster():
    signs = random_labels.random_signs(50, key=2, start=0, stop=4000)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert np.abs(signs.mean(axis=0)).max() < 4.3 / np.sqrt(4000)  # 50 means at 99.998 %
    sums = random_labels.sum_sign_flips(
        np.zeros(6, dtype=np.int64), np.zeros((6, 1), dtype=np.int32), np.ones((6, 1)), 1, 2, 0, 100
    )
    assert set(np.unique(sums)) == {-6.0, 6.0}


def test_labels_of_a_multilabel_row_are_drawn_apart():
    rng = np.random.default_rng(0)
    P = rng.random((200, 3))
    preds = Predictions.from_multilabel((rng.random((200, 3)) < P).astype(int), P)
    fast = null_draws(
        preds, [Estimand.from_predictions(BinnedError(), as_lens("classwise"), preds)], 400, np.random.default_rng(3)
    )[0]
    slow = null_draws(
        preds, [Estimand.from_predictions(RowByRow(), as_lens("classwise"), preds)], 400, np.random.default_rng(3)
    )[0]
    # two samplers of one law: means of 400 draws each
    scale = np.sqrt((fast.var(axis=1) + slow.var(axis=1)) / 400)
    assert (np.abs(fast.mean(axis=1) - slow.mean(axis=1)) < 3.9 * scale).all()


def test_a_partition_chosen_with_the_labels_is_chosen_again_on_each_draw():
    preds = simulated(k=2)
    sweep = ESTIMATORS.make("ece", {"partition": "sweep"})
    estimand = Estimand.from_predictions(sweep, as_lens("positive"), preds)
    assert estimand.cell_statistics is None
    assert len(np.unique(null_draws(preds, [estimand], 20, np.random.default_rng(1))[0])) == 20


def test_the_null_is_described_in_words():
    assert "predicted probabilities" in null_description(simulated())
    assert "clusters" in null_description(simulated(cluster=np.arange(300) // 2))
    assert "rows drawn" in null_description(simulated(), "both")


def test_questions_of_many_cells_are_drawn_by_themselves_with_the_same_labels(monkeypatch):
    rng = np.random.default_rng(0)
    preds = Predictions(rng.integers(0, 3, 300), rng.dirichlet(np.ones(3), 300))
    estimands = [
        Estimand.from_predictions(BinnedError(), as_lens(lens), preds)
        for lens in ("confidence", "canonical", "classwise")
    ]
    joint = null_draws(preds, estimands, 40, np.random.default_rng(1))
    monkeypatch.setattr(
        "trueodds.resampling.null_distribution.MAX_SHARED_CELLS", 30
    )  # 15 cells of confidence; more of the others
    shares: list[float] = []
    separate = null_draws(preds, estimands, 40, np.random.default_rng(1), progress=shares.append)
    for one, other in zip(joint, separate, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("weighted", [False, True])
def test_thresholds_draw_the_labels_that_a_search_draws(weighted):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(5) / 3, 200)
    P[0], P[1] = (0, 0, 1, 0, 0), (0.5, 0, 0.5, 0, 0)
    w = rng.random(200) if weighted else np.ones(200)
    cells = np.minimum((P * 15).astype(np.int32), 14) + 15 * np.arange(5, dtype=np.int32)
    top = np.where(np.arange(5) == P.argmax(axis=1)[:, None], 75 + cells % 15, -1).astype(np.int32)
    tables = np.stack([cells, top])
    by_thresholds = random_labels.sum_label_weights(P, w, tables, 90, 7, 0, 50)
    labels = random_labels.DrawnLabels(P, 7, 50).labels(0, 50)
    by_labels = random_labels.sum_weights_of_labels(labels, w, tables, 90)
    np.testing.assert_allclose(by_thresholds, by_labels, rtol=1e-12, atol=1e-12)


def test_a_joint_null_distribution_has_the_same_labels_for_every_lens():
    """Of many rows, the confidence had labels drawn with 16-bit integers, and the vector others with 32 bits."""
    n = random_labels.MIN_ROWS_OF_SHORT_INTEGERS
    p = np.linspace(0.6, 0.8, n)
    preds = Predictions(np.zeros(n, dtype=int), np.stack([p, 1 - p, np.zeros(n)], axis=1))
    # In one bin, both errors are |mean(p) − share of the first label|.
    estimands = [
        Estimand.from_predictions(BinnedError(partition=partition), as_lens(lens), preds)
        for lens, partition in (("confidence", Uniform(1)), ("canonical", MedianVariance(bins=1)))
    ]
    confidence, vector = null_draws(preds, estimands, 25, np.random.default_rng(1))
    np.testing.assert_allclose(confidence, vector, rtol=1e-9)
