"""Bootstrap of rows, clusters and bins: the same distribution on every path and for any number of threads."""

import numpy as np
import pytest

import trueodds as to
from tests.resampling.questions import make_estimand, simulated
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.resampling.bootstrap import bootstrap
from trueodds.resampling.draws import MAX_SEQUENTIAL_DRAWS, Bootstrap, RandomGroupBootstrap
from trueodds.resampling.estimand import Estimand, pooled_view
from trueodds.resampling.intervals.squared_error import squared_error_draws

MANY = 400  # resamples of 3,000 rows: more than 2²⁰ draws, so that they are multiplicities


def rows_of(preds, count, seed):
    return Bootstrap(preds.n, preds.cluster, count, np.random.default_rng(seed)).row_indices(0, count)


def crowds(n=3000):
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.ones(3), n)
    return Predictions(np.array([rng.multinomial(4, p) for p in P]), P)


WEIGHTS = np.random.default_rng(7).integers(0, 3, 3000) * 0.7
CASES = {
    "one view": (simulated, "ece", "confidence", {}),
    "equal-mass": (simulated, "mce", "class:1", {"partition": "equal-mass"}),
    "every class": (simulated, "ece", "classwise", {}),
    "the whole vector": (simulated, "ece", "canonical", {"partition": "simplex-grid", "bins": 3}),
    "votes": (crowds, "rmsce", "classwise", {}),
    "weights": (lambda: simulated(weight=WEIGHTS), "ece", "classwise", {}),
    "distinct scores": (lambda: simulated(alpha=0.3), "ks", "confidence", {}),
    "clusters": (lambda: simulated(cluster=np.arange(3000) % 2900), "ece", "confidence", {}),
    "a mean": (simulated, "brier", "canonical", {}),
    "a weighted mean": (lambda: simulated(weight=WEIGHTS), "brier", "classwise", {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("count", [20, MANY])
def test_sums_give_what_the_rows_drawn_give(case, count):
    make, name, lens, settings = CASES[case]
    preds = make()
    question = make_estimand(preds, name, lens, **settings)
    (resampled,) = bootstrap(preds, [question], count, np.random.default_rng(3), "rows")
    every = rows_of(preds, count, 3)
    for r in (0, 1, 17, count - 1):
        for v, view in enumerate(question.views):
            sample = view.take(every[r])
            if question.cell_statistics is None:
                expected = question.estimator.value(sample)
            else:  # the bins of all rows, held fixed
                one, index = question.cell_statistics[v], question.cell_statistics[v].index[every[r]]
                m = 1 if sample.p.ndim == 1 else sample.p.shape[1]
                sums = [np.zeros((one.size, m)) for _ in range(2)]
                for out, x in zip(sums, (sample.p, sample.y), strict=True):
                    np.add.at(out, index, sample.w[:, None] * x.reshape(len(x), m))
                shaped = [x[None] if sample.joint else x[None, :, 0] for x in sums]
                expected = one.statistic(np.bincount(index, sample.w, one.size)[None], *shaped)[0]
            assert resampled.values[v, r] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_predicted_class_is_resampled_with_its_own_rows():
    # Each view of top-label has rows of its own; all were once given the weights of the first.
    preds = simulated(600)
    question = make_estimand(preds, "ece", "top-label")
    (joint,) = bootstrap(preds, [question], 50, np.random.default_rng(1), "rows")
    for v, view in enumerate(question.views):
        alone = Estimand(question.estimator, question.lens, (view,))
        (resampled,) = bootstrap(preds, [alone], 50, np.random.default_rng(1), "rows")
        np.testing.assert_allclose(joint.values[v], resampled.values[0], rtol=1e-12)
        np.testing.assert_allclose(joint.centered_norms[v], resampled.centered_norms[0], rtol=1e-12)


def test_few_draws_are_those_of_the_generator():
    drawn = np.random.default_rng(9).integers(0, 700, (30, 700))
    for ours, published in zip(rows_of(simulated(700), 30, 9), drawn, strict=True):
        np.testing.assert_array_equal(ours, np.sort(published))


def test_one_set_of_resamples_serves_every_question():
    preds = simulated()
    every = [make_estimand(preds), make_estimand(preds, "ece", "classwise"), make_estimand(preds, "brier", "canonical")]
    joint = bootstrap(preds, every, MANY, np.random.default_rng(2))
    for estimand, resampled in zip(every, joint, strict=True):
        (alone,) = bootstrap(preds, [estimand], MANY, np.random.default_rng(2))
        np.testing.assert_allclose(resampled.values, alone.values, rtol=1e-12)


def test_resamples_do_not_depend_on_threads(monkeypatch):
    preds = simulated()
    every = [
        make_estimand(preds, "ece", "classwise"),
        make_estimand(preds, "ece", "canonical"),
        make_estimand(preds, "brier", "canonical"),
    ]
    runs = []
    for threads in ("1", "2"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        runs.append(bootstrap(preds, every, MANY, np.random.default_rng(2)))
    for one, two in zip(*runs, strict=True):
        np.testing.assert_array_equal(one.values, two.values)


def test_clusters_come_whole():
    cluster = np.random.default_rng(0).integers(0, 2700, 5000)
    preds = simulated(5000, cluster=cluster)
    for rows in rows_of(preds, MANY, 4)[:5]:
        times = np.bincount(rows, minlength=5000)
        first = np.unique(preds.cluster, return_index=True)[1]
        np.testing.assert_array_equal(times, times[first][preds.cluster])
        assert times[first].sum() == preds.cluster.max() + 1


@pytest.mark.parametrize("clusters", [None, np.arange(3000) // 2])
def test_a_resampled_mean_varies_as_the_rows_do(clusters):
    # Over resamples of n units with sums s of m, Var Σts/Σtm is Σ(s − m s̄)²/(Σm)² for equal m, and its mean is s̄.
    preds = simulated(cluster=clusters)
    question = make_estimand(preds, "brier", "canonical")
    (resampled,) = bootstrap(preds, [question], 4000, np.random.default_rng(6))
    score = question.estimator.row_scores(question.views[0])
    unit = np.arange(3000) if clusters is None else clusters
    sums, size = np.bincount(unit, score), np.bincount(unit)
    variance = ((sums - size * score.mean()) ** 2).sum() / 3000**2
    values = resampled.values[0]
    assert abs(values.mean() - score.mean()) < 4.5 * np.sqrt(variance / 4000)
    # the variance of 4,000 nearly normal numbers has relative error √(2/4000)
    assert abs(values.var() / variance - 1) < 4.5 * np.sqrt(2 / 4000)


def test_an_endless_score_counts_where_its_row_is_drawn():
    y, p = np.tile([1, 0, 1], 1000), np.tile([0.5, 0.25, 0.75], 1000)
    y[0], p[0] = 1, 0.0
    preds = Predictions(y, p)
    (resampled,) = bootstrap(preds, [make_estimand(preds, "log_loss", "canonical")], MANY, np.random.default_rng(8))
    drawn = np.array([0 in rows for rows in rows_of(preds, MANY, 8)])
    np.testing.assert_array_equal(np.isinf(resampled.values[0]), drawn)
    assert 0 < drawn.sum() < MANY


def test_resamples_of_the_squared_error_are_those_of_the_rows():
    preds = simulated(500, k=2)
    (view,) = as_lens("positive").views(preds)
    index = np.minimum((view.p * 5).astype(int), 4)
    draws = squared_error_draws(view, index, 5, 60, np.random.default_rng(3))
    for r, rows in enumerate(rows_of(preds, 60, 3)):
        u = (view.y - view.p)[rows]
        pairs = 0.0  # Σ_b n_b/n · ((Σu)² − Σu²)/(n_b² − n_b)
        for b in range(5):
            residuals = u[index[rows] == b]
            if len(residuals) > 1:
                pairs += (residuals.sum() ** 2 - (residuals**2).sum()) / (len(residuals) - 1) / len(rows)
        assert draws[r] == pytest.approx(pairs, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "name"), [(1.0, "ece"), (0.1, "ece"), (1.0, "ks"), (1.0, "rmsce")])
def test_resampling_bins_gives_the_quantiles_of_resampling_rows(alpha, name):
    preds = simulated(4000, alpha=alpha)
    question = make_estimand(preds, name)
    (rows,) = bootstrap(preds, [question], 2000, np.random.default_rng(1), "rows")
    (bins,) = bootstrap(preds, [question], 2000, np.random.default_rng(2), "cells")
    for a, b in ((rows.values[0], bins.values[0]), (rows.centered_norms[0], bins.centered_norms[0])):
        for q in (0.025, 0.25, 0.5, 0.75, 0.975):
            # the share of one sample below a quantile of another has variance q(1 − q)(1/2000 + 1/2000)
            assert abs((b < np.quantile(a, q)).mean() - q) < 4 * np.sqrt(q * (1 - q) * 2 / 2000)


def test_bins_of_rows_without_weight_are_left_out():
    weight = np.where(simulated(k=3).P[:, 0] > 0.8, 0.0, 1.0)
    preds = simulated(k=3, weight=weight)
    for lens, settings in (("class:0", {}), ("canonical", {"partition": "simplex-grid", "bins": 5})):
        question = make_estimand(preds, "ece", lens, **settings)
        (resampled,) = bootstrap(preds, [question], 300, np.random.default_rng(1), "cells")
        (rows,) = bootstrap(preds, [question], 300, np.random.default_rng(1), "rows")
        binned = pooled_view(question.views[0], question.cell_statistics[0])
        assert len(binned.w) < question.cell_statistics[0].size
        # two means of 300 resamples
        scale = np.sqrt((resampled.values.var() + rows.values.var()) / 300)
        assert abs(resampled.values.mean() - rows.values.mean()) < 4.5 * scale


def test_reference_numbers_and_these_tests_lie_on_either_side_of_the_constant():
    assert 500 * 400 <= MAX_SEQUENTIAL_DRAWS < 2700 * MANY


def test_cells_are_resampled_in_blocks_that_fit_into_memory(monkeypatch):
    rng = np.random.default_rng(0)
    preds = Predictions(rng.integers(0, 3, 500), rng.dirichlet(np.ones(3), 500))
    estimand = Estimand.from_predictions(ESTIMATORS.make("ece", {}), as_lens("canonical"), preds)
    size = estimand.cell_statistics[0].size * 3
    monkeypatch.setattr("trueodds.resampling.cell_draws.MAX_BLOCK_ACCUMULATORS", 7 * size)  # 7 resamples at a time
    (resampled,) = bootstrap(preds, [estimand], 300, rng, "cells")
    assert resampled.values.shape == resampled.centered_norms.shape == (1, 300)
    # The draws of blocks have one law: two halves of 150 draws have means within 4 of their standard errors.
    first, last = resampled.values[0, :150], resampled.values[0, 150:]
    assert abs(first.mean() - last.mean()) < 4 * np.sqrt((first.var() + last.var()) / 150)


def test_vectors_in_as_many_cells_as_a_tree_grows_are_resampled_by_rows(monkeypatch):
    rng = np.random.default_rng(0)
    preds = Predictions(rng.integers(0, 3, 500), rng.dirichlet(np.ones(3), 500))
    estimands = [
        Estimand.from_predictions(ESTIMATORS.make("ece", {}), as_lens(lens), preds)
        for lens in ("canonical", "confidence")
    ]
    monkeypatch.setattr("trueodds.resampling.bootstrap.MAX_RESAMPLED_ROWS", 100)
    assert [resampled.resampled_units for resampled in bootstrap(preds, estimands, 20, rng)] == ["cells", "cells"]
    monkeypatch.setattr("trueodds.resampling.bootstrap.MAX_VECTOR_CELLS", 10)
    assert [resampled.resampled_units for resampled in bootstrap(preds, estimands, 20, rng)] == ["rows", "cells"]


@pytest.mark.parametrize("count", [20, MANY])
def test_views_taken_a_few_at_a_time_have_the_same_resamples(count, monkeypatch):
    preds = simulated()
    lenses = ["confidence", "classwise", "canonical", "classwise"]
    questions = [make_estimand(preds, "ece", lens) for lens in lenses] + [make_estimand(preds, "brier", "canonical")]
    expected = bootstrap(preds, questions, count, np.random.default_rng(3), "rows")
    for columns in (1, 2, 4):
        monkeypatch.setattr("trueodds.resampling.draws.MAX_ROWS_TIMES_VIEWS", columns * preds.n)
        resampled = bootstrap(preds, questions, count, np.random.default_rng(3), "rows")
        for one, other in zip(resampled, expected, strict=True):
            np.testing.assert_allclose(one.values, other.values, rtol=1e-12)
            assert (one.centered_norms is None) == (other.centered_norms is None)
            if other.centered_norms is not None:
                np.testing.assert_allclose(one.centered_norms, other.centered_norms, rtol=1e-12)


GROUP_CASES = {
    "every class": (simulated, "ece", "classwise", {}),
    "root mean squares": (crowds, "rmsce", "classwise", {}),
    "a row in one view": (lambda: simulated(weight=WEIGHTS), "ece", "top-label", {}),
}


@pytest.mark.parametrize("case", GROUP_CASES)
def test_the_sums_of_random_groups_are_those_of_their_rows(case):
    make, name, lens, settings = GROUP_CASES[case]
    preds = make()
    question = make_estimand(preds, name, lens, **settings)
    groups = RandomGroupBootstrap(question, 30, np.random.default_rng(2))
    multiplicities = groups.multiplicities(0, 30).T.astype(float)
    drawn = groups.map_sums([question], lambda _, *sums: sums)
    for view, statistic, ((w, wp, wy),) in zip(question.views, question.cell_statistics, drawn, strict=True):
        for sums, x in ((w, view.w), (wp, view.w * view.p), (wy, view.w * view.y)):
            by_row = np.zeros((30, statistic.size))
            np.add.at(by_row.T, statistic.index, (multiplicities[:, groups.group] * x).T)
            np.testing.assert_allclose(sums, by_row, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", GROUP_CASES)
def test_random_groups_of_rows_vary_as_rows_do(case, monkeypatch):
    # More than 200,000 rows of several views had no interval, because their bins were resampled independently.
    make, name, lens, settings = GROUP_CASES[case]
    preds = make()
    question = make_estimand(preds, name, lens, **settings)
    (rows,) = bootstrap(preds, [question], 4000, np.random.default_rng(6), "rows")
    monkeypatch.setattr("trueodds.resampling.bootstrap.MAX_RESAMPLED_ROWS", 100)
    (groups,) = bootstrap(preds, [question], 4000, np.random.default_rng(7))
    assert (rows.resampled_units, groups.resampled_units) == ("rows", "random groups")
    for drawn, expected in ((groups.values, rows.values), (groups.centered_norms, rows.centered_norms)):
        aggregated, by_rows = question.combine_views(drawn), question.combine_views(expected)
        # A variance from 1,000 groups has a relative error of √(2 / 1000), one from 4,000 draws of √(2 / 4000).
        assert aggregated.var() == pytest.approx(by_rows.var(), rel=4.5 * np.sqrt(2 / 1000 + 2 * 2 / 4000))
        error = np.sqrt(by_rows.var() * 2 / 4000)
        # The norms are proportional to the standard deviations of the bins. Each of these has a relative standard error
        # of 1/√2000 = .022, and their mean has a smaller one, because the errors of the bins are nearly independent.
        assert abs(aggregated.mean() - by_rows.mean()) < 4.5 * error + 0.02 * abs(by_rows.mean())


def have_many_rows(monkeypatch):
    """Let 3,000 rows stand for many."""
    for module in ("bootstrap", "intervals.method", "comparison.compared_model"):
        monkeypatch.setattr(f"trueodds.resampling.{module}.MAX_RESAMPLED_ROWS", 100)


def test_a_model_of_one_view_is_compared_with_one_of_several(monkeypatch):
    # A model that always predicts the same class is resampled by cells, and the other one by random groups.
    preds = simulated()
    p = np.tile([0.4, 0.3, 0.3], (preds.n, 1)) + np.random.default_rng(1).uniform(-0.04, 0.04, (preds.n, 3))
    constant = Predictions(preds.y, p / p.sum(axis=1, keepdims=True))
    by_rows = to.compare(preds, constant, "ece", lens="top-label").interval
    have_many_rows(monkeypatch)
    interval = to.compare(preds, constant, "ece", lens="top-label").interval
    width = by_rows.high - by_rows.low
    assert (interval.low, interval.high) == pytest.approx((by_rows.low, by_rows.high), abs=0.15 * width)


def test_two_models_share_their_random_groups(monkeypatch):
    preds = simulated()
    other = Predictions(preds.y, preds.p**1.2 / (preds.p**1.2).sum(axis=1, keepdims=True))
    by_rows = to.compare(preds, other, "ece", lens="classwise").interval
    have_many_rows(monkeypatch)
    by_groups = to.compare(preds, other, "ece", lens="classwise").interval
    width = by_rows.high - by_rows.low
    assert (by_groups.low, by_groups.high) == pytest.approx((by_rows.low, by_rows.high), abs=0.1 * width)
    independent = to.compare(preds, other, "ece", lens="classwise", paired=False).interval
    assert independent.high - independent.low > 1.2 * width


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_many_classes_or_labels_have_fewer_random_groups(kind, monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(30), 2000)
    preds = Predictions(rng.integers(0, 30, 2000), p)
    if kind == "labels":
        preds = Predictions.from_multilabel((rng.random(p.shape) < p).astype(int), p)
    lens = "classwise" if kind == "classes" else None
    by_rows = to.measure(preds, "ece", lens=lens)
    have_many_rows(monkeypatch)
    group_counts = []

    class CountedGroups(RandomGroupBootstrap):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            group_counts.append(self.n)

    monkeypatch.setattr("trueodds.resampling.bootstrap.RandomGroupBootstrap", CountedGroups)
    by_groups = to.measure(preds, "ece", lens=lens)
    assert group_counts == [250]
    assert (by_rows.settings["resample"], by_groups.settings["resample"]) == ("rows", "random groups")
    width = by_rows.interval.high - by_rows.interval.low
    assert by_groups.interval.low == pytest.approx(by_rows.interval.low, abs=0.2 * width)
    assert by_groups.interval.high == pytest.approx(by_rows.interval.high, abs=0.2 * width)
