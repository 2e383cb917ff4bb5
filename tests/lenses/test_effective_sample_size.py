"""Clustered rows: how many independent rows they are worth, and intervals of the right width and coverage."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, t

import trueodds as to
from trueodds.data.predictions import Predictions
from trueodds.lenses.effective_sample_size import (
    EffectiveSampleSize,
    critical_value,
    effective_n,
    effective_sample_size,
    equal_clusters,
    n_represented,
    unit_weight,
)
from trueodds.lenses.view import View


def cohort(seed, sizes, cluster_sd=0.0, slope=1.0, shift=0.0):
    """Rows of clusters of these sizes, whose log odds are shifted by a normal effect of each cluster."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    x = rng.normal(-1, 1.3, len(cluster))
    effect = cluster_sd * rng.normal(size=len(sizes))[cluster]
    return (rng.random(len(cluster)) < expit(shift + slope * x + effect)).astype(int), expit(x), cluster


@pytest.mark.parametrize(
    ("w", "unit", "represented", "effective"),
    [
        (None, 1.0, 3, 3.0),
        ([1.0, 2.0, 3.0], 1.0, 6, 36 / 14),  # counts of rows
        ([0.5, 1.0, 1.5], 0.5, 3, 9 / 3.5),  # multiples of a half
        ([0.5, 0.7, 0.0], None, 2, 1.44 / 0.74),
        ([0.0, 0.0, 0.0], 1.0, 0, 0.0),
    ],
)
def test_weights_stand_for_rows_if_they_are_counts(w, unit, represented, effective):
    view = View([0.2, 0.5, 0.9], [0, 1, 1], w)
    assert (unit_weight(view), n_represented(view)) == (unit, represented)
    assert effective_n(view) == pytest.approx(effective, rel=1e-14)


def test_copies_of_a_row_are_one_row():
    # ρ = 1: the sums of 20 clusters of 10 copies have the variance of 20 rows. One pseudo-outcome changes nothing.
    rng = np.random.default_rng(0)
    y, p = np.repeat(rng.integers(0, 2, 20), 10).astype(float), np.repeat(rng.random(20), 10)
    rows = effective_sample_size([View(p=p, y=y)], np.repeat(np.arange(20), 10))
    assert rows.effective_rows == pytest.approx(20)
    assert rows.effective_clusters == pytest.approx(20)


def test_rows_without_outcomes_of_both_kinds_count_by_cluster():
    # Nothing shows how correlated they are, so ρ is that of the pseudo-outcome, 1.
    rows = effective_sample_size([View(p=np.linspace(0.01, 0.03, 400), y=np.zeros(400))], np.arange(400) % 25)
    assert rows.effective_rows == pytest.approx(25)


def test_effective_numbers_of_unequal_clusters_by_hand():
    # Residuals ½ and −½ by turns, in clusters of 1, 2 and 3 pairs, add up to 0: ρ is estimated as 0. There are 6
    # outcomes of either kind, so it shrinks to 1/7. Σw² = 12, ΣW² = 4 + 16 + 36 = 56, Σv = 12 + 44/7.
    cluster = np.repeat([0, 1, 2], [2, 4, 6])
    rows = effective_sample_size([View(p=np.full(12, 0.5), y=np.tile([0.0, 1.0], 6))], cluster)
    assert rows.effective_rows == pytest.approx(144 / (12 + 44 / 7))
    v = np.array([2 + 2 / 7, 4 + 12 / 7, 6 + 30 / 7])
    assert rows.effective_clusters == pytest.approx(v.sum() ** 2 / (v**2).sum())
    assert equal_clusters(np.ones(12), cluster) == pytest.approx(144 / 56)


def literal_sizes(P, Y, w, cluster):
    """Effective rows and clusters (n, m) as defined, with the line of each outcome by NumPy's polyfit."""
    lines = [np.polyval(np.polyfit(p, y - p, 1, w=np.sqrt(w)), p) for p, y in zip(P.T, Y.T, strict=True)]
    residuals = w[:, None] * (Y - P - np.transpose(lines))  # times weight
    groups = [np.flatnonzero(cluster == c) for c in np.unique(cluster)]
    n_groups, n_pairs = len(groups), sum(w[g].sum() ** 2 - (w[g] ** 2).sum() for g in groups)
    of_sums = sum((residuals[g].sum(axis=0) ** 2).sum() for g in groups)
    # Of G sums about a fitted mean only G − 1 vary freely.
    covariance = (of_sums * n_groups / (n_groups - 1) - (residuals**2).sum()) / n_pairs
    rho = np.clip(covariance / ((residuals**2).sum() / (w**2).sum()), 0, 1)
    rates = w @ Y / w.sum()
    n_rarer = (1 - rates.max() if len(rates) > 2 else rates.min()) * w.sum() ** 2 / (w**2).sum()
    rho = (n_rarer * rho + 1) / (n_rarer + 1)
    v = np.array([(1 - rho) * (w[g] ** 2).sum() + rho * w[g].sum() ** 2 for g in groups])
    totals = np.array([w[g].sum() for g in groups])
    return w.sum() ** 2 / v.sum(), max(v.sum() ** 2 / (v**2).sum(), totals.sum() ** 2 / (totals**2).sum() / 2)


@pytest.mark.parametrize("sizes", [[3, 1, 7, 4, 10, 2, 8, 5], [60, 1, 1, 1, 1, 1, 1]], ids=["unequal", "dominating"])
@pytest.mark.parametrize("effect", [0.0, 1.0])
def test_effective_numbers_are_those_of_their_definition(sizes, effect):
    rng = np.random.default_rng(1)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    shares = rng.dirichlet(np.ones(3), len(sizes))[cluster] if effect else rng.dirichlet(np.ones(3), len(cluster))
    y = np.array([rng.choice(3, p=share) for share in shares])
    P, Y, w = rng.dirichlet(np.ones(3), len(y)), np.eye(3)[y], rng.choice([0.5, 1.0, 3.0], len(y))
    event = [np.stack([1 - x[:, 0], x[:, 0]], axis=1) for x in (P, Y)]
    sizes = []
    for view, joint in ((View(P, Y, w), (P, Y)), (View(P[:, 0], Y[:, 0], w), event)):
        expected = literal_sizes(*joint, w, cluster)
        rows = effective_sample_size([view], cluster)
        assert (rows.effective_rows, rows.effective_clusters) == pytest.approx(expected, rel=1e-12)
        sizes.append(expected)
    # Of several views the smallest numbers count, and none of a view without weight.
    no_weight = View(P[:, 0], Y[:, 0], np.zeros(len(y)))
    rows = effective_sample_size([View(P, Y, w), no_weight, View(P[:, 0], Y[:, 0], w)], cluster)
    assert (rows.effective_rows, rows.effective_clusters) == pytest.approx(np.min(sizes, axis=0), rel=1e-12)
    assert effective_sample_size([no_weight], cluster) == EffectiveSampleSize(0.0, 0.0)


def test_few_or_dominating_clusters_have_a_note():
    y, p, cluster = cohort(8, [300, *[5] * 40])
    for data, n_noted in (
        (cluster, 1),
        (np.arange(500) % 5, 1),
        (np.arange(500) % 10, 0),
        (np.zeros(500, dtype=int), 0),
    ):
        notes = to.measure(Predictions(y, p, cluster=data), "o_e", resamples=100).notes
        assert [note.code for note in notes].count("TN271") == n_noted


def test_single_rows_as_clusters_are_independent_rows():
    y, p, _ = cohort(1, np.ones(300, dtype=int))
    rows = effective_sample_size([View(p=p, y=y.astype(float))], np.arange(300))
    assert rows.effective_rows == rows.effective_clusters == pytest.approx(300)


def test_the_correlation_within_clusters_is_estimated():
    # Clusters of 20 rows of which each copies the first with probability ½: pairs have ρ = ¼ (½ with the first).
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        copied = rng.random((100, 20)) < 0.5
        y = np.where(copied, rng.random((100, 1)) < 0.3, rng.random((100, 20)) < 0.3).astype(float).ravel()
        rows = effective_sample_size([View(p=np.full(2000, 0.3), y=y)], np.repeat(np.arange(100), 20))
        ratios.append(2000 / rows.effective_rows)
    # The design effect is 1 + 19/4 = 5.75; that of one data set has a standard error of about 10 %.
    assert np.mean(ratios) == pytest.approx(5.75, rel=0.4 / np.sqrt(20))


def test_the_critical_value_is_that_of_student_with_the_bootstrap_variance_corrected():
    assert EffectiveSampleSize(1000, 25).critical_value(0.95) == pytest.approx(t.ppf(0.975, 24) * np.sqrt(25 / 24))
    assert EffectiveSampleSize(1000, 1.2).critical_value(0.9) == pytest.approx(t.ppf(0.95, 1) * np.sqrt(2))
    assert critical_value(None, 0.95) == pytest.approx(1.959964)


@pytest.mark.parametrize("name", ["ece", "ici", "e50", "e90"])
def test_clusters_drawn_at_random_hardly_widen_an_interval(name):
    # As a bound, Wilson's margin for one row per cluster made intervals of 25 clusters two to four times as wide.
    y, p, _ = cohort(2, np.full(1000, 1), slope=0.8)
    plain, clustered = (
        to.measure(Predictions(y, p, cluster=cluster), name, resamples=400).interval
        for cluster in (None, np.random.default_rng(3).permutation(1000) % 25)
    )
    # The critical value is 1.075 times as large; the standard deviation of 25 clusters has a standard error of 14 %.
    assert clustered.high - clustered.low < 1.075 * (1 + 3 * 0.14) * (plain.high - plain.low)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["equal", "unequal"])
def test_intervals_of_correlated_clusters_cover_and_are_not_too_wide(case):
    sets, shift = 60, 0.7
    sizes = np.full(30, 20) if case == "equal" else np.round(np.geomspace(5, 60, 30)).astype(int)
    x, effects = np.random.default_rng(4).normal(-1, 1.3, 20_000), np.random.default_rng(5).normal(size=20_000)
    # More events than predicted at every risk: the error is the mean difference.
    truth = float((expit(shift + x + 0.7 * effects) - expit(x)).mean())
    values, widths, covered = [], [], 0
    for seed in range(sets):
        y, p, cluster = cohort([6, seed], sizes, cluster_sd=0.7, shift=shift)
        estimate = to.measure(Predictions(y, p, cluster=cluster), "ece", resamples=199)
        ends = estimate.interval
        values.append(estimate.value)
        widths.append(ends.high - ends.low)
        covered += ends.low <= truth <= ends.high
    assert covered >= binom.ppf(0.001, sets, 0.93)
    # The standard deviation of 60 values has a standard error of 9 %.
    assert np.mean(widths) < 1.5 * 2 * t.ppf(0.975, 29) * np.std(values, ddof=1) * (1 + 3 * 0.09)


def test_bca_intervals_of_few_clusters_have_the_levels_of_student():
    # Percentiles at Φ(±t √(G/(G − 1))) instead of Φ(±1.96); a mean of ten clusters is 1.25 times as wide.
    y, p, _ = cohort(7, np.full(500, 1))
    preds = Predictions(y, p, cluster=np.arange(500) % 10)
    bca, percentile = (to.measure(preds, "o_e", interval=name).interval for name in ("auto", "percentile"))
    ratio = (bca.high - bca.low) / (percentile.high - percentile.low)
    assert ratio == pytest.approx(t.ppf(0.975, 9) * np.sqrt(10 / 9) / 1.96, rel=0.1)
    assert (bca.level, bca.method) == (0.95, "bca")
