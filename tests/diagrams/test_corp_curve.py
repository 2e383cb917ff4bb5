"""Bands around diagonal and curve: reference values, coverage, weights and votes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from tests.diagrams.test_corp import anchor
from tests.reference import data, golden
from trueodds.data.predictions import Predictions
from trueodds.diagrams import corp_curve, distinct_score_sums
from trueodds.diagrams.corp_curve import chernoff_quantile, find_segments_outside
from trueodds.diagrams.distinct_score_sums import sum_by_score
from trueodds.kernels.isotonic import isotonic_means
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally


def test_the_quantiles_of_chernoffs_law_are_those_of_the_published_table():
    # Groeneboom & Wellner (2001), as far as the R package has them; between .97 and .98 it draws a line, 1.0015.
    for q, value in ((0.95, 0.845081), (0.97, 0.960057), (0.98, 1.043030), (0.99, 1.171530), (0.995, 1.286659)):
        assert chernoff_quantile(q) == pytest.approx(value, abs=3e-5 if q == 0.98 else 1e-5)
    assert chernoff_quantile(0.975) == pytest.approx(0.998181, abs=2e-6)
    assert chernoff_quantile(0.5) == 0


@pytest.mark.parametrize(("band", "key"), [("consistency", "diag"), ("confidence", "est")])
def test_discrete_limits_are_those_of_the_reference(band, key):
    expected = golden("anchors/golden.json")["r_packages"]["corp_bands"][f"g2_ties_discrete_{key}_90"]
    limits = corp_curve.discrete_band(sum_by_score(View(*anchor("g2_300_ties"))), band, 0.9)
    np.testing.assert_allclose(limits.x_low, expected["x"], atol=1e-15)
    np.testing.assert_allclose(limits.low, expected["lower"], atol=1e-14)
    np.testing.assert_allclose(limits.high, expected["upper"], atol=1e-14)


def test_continuous_limits_are_those_of_the_reference():
    expected = golden("anchors/golden.json")["r_packages"]["corp_bands"]["hockey_continuous_diag_90"]
    limits = corp_curve.continuous_band(sum_by_score(View(*anchor("hockey_x"))), 0.9)
    # Their quantile has six decimals, ours is exact to about 1e-6.
    np.testing.assert_allclose(limits.low, expected["lower"], atol=1e-6)
    np.testing.assert_allclose(limits.high, expected["upper"], atol=1e-6)


@pytest.mark.parametrize(
    ("case", "level", "key"),
    [("g2_300_ties", 0.95, "g2_300_ties_0.05_standard"), ("precip_EMOS", 0.9, "precip_EMOS_0.1_standard")],
)
def test_honest_limits_are_those_of_the_reference(case, level, key):
    expected = golden("anchors/golden.json")["calibrationband"][key]
    limits = corp_curve.simultaneous_limits(sum_by_score(View(*anchor(case))), level)
    place = np.searchsorted(expected["x"], limits.low)
    np.testing.assert_allclose(limits.lower, np.array(expected["lower"])[place], atol=1e-12)
    np.testing.assert_allclose(limits.upper, np.array(expected["upper"])[place], atol=1e-12)
    # The reference also gives the ends, 0 and 1.
    assert limits.upper[0] == pytest.approx(expected["upper"][0])
    assert limits.lower[-1] == pytest.approx(expected["lower"][-1])


def test_honest_limits_by_hand():
    # One row that came: m = 1, a = .1/2; the lower limit of 1 in 1 at .05 is .05 itself.
    limits = corp_curve.simultaneous_limits(sum_by_score(View([0.4], [1])), 0.9)
    assert limits.lower[0] == pytest.approx(0.05)
    assert limits.upper[0] == 1
    # Of two votes that fall and rise nothing is exact: a/e, and 1/2 rounded outward to 0 and 1.
    votes = corp_curve.simultaneous_limits(sum_by_score(View([0.4], [0.5])), 0.9)
    assert (votes.lower[0], votes.upper[0], votes.method) == (0, 1, "Bentkus")


def misses(limits, at, rates):
    low, high = limits.band().limits_at(at)
    return bool(((rates < low - 1e-12) | (rates > high + 1e-12)).any())


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("kind", ["one score", "two scores", "rising", "votes", "weights"])
def test_an_honest_band_holds_all_rates_at_once_as_often_as_it_says(level, kind):
    # It misses in at most a share 1 − level of data sets: stay below the 99.9 % quantile of the binomial.
    rng, sets = np.random.default_rng(11), 400
    at = {"one score": np.array([0.4]), "two scores": np.array([0.3, 0.6])}.get(kind, np.linspace(0.05, 0.95, 12))
    rates, n = at**1.5, 10
    p = np.repeat(at, n)
    n_misses = 0
    for _ in range(sets):
        y = rng.random(len(p)) < np.repeat(rates, n)
        if kind == "votes":
            y = rng.binomial(3, np.repeat(rates, n)) / 3
        w = rng.choice([1.0, 2.0], len(p)) if kind == "weights" else None
        n_misses += misses(corp_curve.simultaneous_limits(sum_by_score(View(p, y, w)), level), at, rates)
    assert n_misses <= binom.ppf(0.999, sets, 1 - level)
    if kind == "one score" and level == 0.5:  # and it is no wider than it must be
        assert n_misses > 0.1 * sets


def test_groups_of_scores_are_rounded_outward():
    # The truth jumps within each group from 0 to 1. A group that spoke for its own low scores would miss it always.
    at = np.linspace(0.001, 0.999, 1000)
    rates = (at > 0.4995).astype(float)
    scores = sum_by_score(View(np.repeat(at, 30), np.repeat(rates, 30)))
    for max_groups in (2, 7, 191):
        limits = corp_curve.simultaneous_limits(scores, 0.9, max_groups)
        assert len(limits.low) <= max_groups
        assert not misses(limits, at, rates)
    odd = corp_curve.simultaneous_limits(scores, 0.9, 3)  # the middle one of three holds the jump
    assert odd.low[1] < 0.4995 < odd.high[1]
    low, high = odd.band().limits_at(at[(at >= odd.low[1]) & (at < odd.high[1])])
    assert (low < 0.1).all()  # only from its last score on
    assert (high > 0.9)[1:].all()


def test_fewer_groups_than_scores_hold_the_rates_of_scores_between():
    rng = np.random.default_rng(3)
    p = np.sort(rng.random(2000))
    missed = sum(
        misses(corp_curve.simultaneous_limits(sum_by_score(View(p, rng.random(2000) < p**2)), 0.5, 40), p, p**2)
        for _ in range(60)
    )
    assert missed <= binom.ppf(0.999, 60, 0.5)


@pytest.mark.parametrize("redraw", ["labels", "both"])
def test_a_consistency_band_holds_the_curve_of_a_calibrated_model_score_by_score(redraw):
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(150))
    scores = sum_by_score(View(p, np.zeros(150)))
    low, high = corp_curve.resampled_band(scores, "consistency", 0.9, 4999, redraw, rng).limits_at(p)
    sets = 1000
    fits = isotonic_means(np.ones(150), (rng.random((sets, 150)) < p).astype(float))
    inside = ((fits >= low - 1e-12) & (fits <= high + 1e-12)).mean(axis=0)[20:-20]
    # At one score: binomial, sd √(.09/1000) = .0095; either end's quantile, from 4,999 draws, sd √(.0475/4999) = .0031,
    # together √(.0095² + 2 · .0031²) = .0105. The least of 110 highly dependent scores: 4.5 of them.
    assert inside.min() > 0.9 - 4.5 * 0.0105
    # A band by rows and labels is somewhat too wide for fixed predictions; neither is far from what it says.
    assert inside.mean() < 0.97


def test_grouped_draws_hold_the_curve_of_sharp_predictions_where_chernoffs_law_does_not():
    # VGG16: 88 % of its confidences exceed .98, and the paper's rule takes 10,000 rows for dense scores.
    dataset = data("plambda_cifar10_vgg16.npz")
    predicted = as_lens("confidence").views(Predictions(dataset["labels"], dataset["probs"]))[0].p.astype(float)
    p = np.minimum(predicted, 1)
    scores = sum_by_score(View(p, np.zeros(len(p))))
    assert corp_curve.choose_band_method(scores, "consistency") == "continuous"
    rng = np.random.default_rng(0)
    drawn = corp_curve.resampled_band(scores, "consistency", 0.9, 999, "labels", rng)
    shares = []
    for band in (drawn, corp_curve.continuous_band(scores, 0.9)):
        out = []
        for _ in range(40):
            fit = isotonic_means(
                scores.w, rng.binomial(scores.n.astype(int), np.minimum(scores.score, 1)).astype(float)
            )
            out.append(sum(segment.share for segment in find_segments_outside(band, scores.score, scores.w, fit)))
        shares.append(np.mean(out))
    # In the mean over sets whose curves are each largely in or out: the share is below .1, sd over 40 sets at most .05.
    assert shares[0] < 0.1 + 3 * 0.05
    assert shares[1] > 0.5


def test_the_papers_rule():
    def select_method(n, unique, band="consistency"):
        return corp_curve.choose_band_method(sum_by_score(View(np.arange(n) % unique / unique, np.zeros(n))), band)

    assert select_method(1000, 1000) == "resampling"
    assert select_method(5000, 5000) == "resampling"
    assert select_method(5001, 5001) == "continuous"
    assert select_method(1001, 10) == "discrete"  # more than 50 · 10, and than 8 · 10²
    assert select_method(1001, 20) == "continuous"  # 50 · 20 = 1000 < 1001 < 8 · 20²
    assert select_method(5001, 5001, "confidence") == "resampling"
    votes = sum_by_score(View(np.linspace(0, 1, 6000), np.full(6000, 0.5)))
    assert corp_curve.choose_band_method(votes, "consistency") == "resampling"


def drawn(view, rates, size=20000, rows=False):
    scores = sum_by_score(view)
    labels = distinct_score_sums.ResampledLabels(scores, np.broadcast_to(rates, len(scores.score)).astype(float))
    rng = np.random.default_rng(1)
    return labels.draw_rows_and_events(size, rng) if rows else labels.draw_events(size, rng)


def test_labels_come_with_their_rate_and_rows_keep_their_weight():
    # 5 rows of weight 2 at one score: Σwy is 2 · Binomial(5, .3): mean 3, variance 4 · 1.05.
    wy = drawn(View([0.3] * 5, [1, 0, 0, 0, 0], [2.0] * 5), 0.3)
    assert set(np.unique(wy)) == {0, 2, 4, 6, 8, 10}
    # Bounds are 4.5 standard errors: of the mean √(4.2/20000) = .0145; of the variance about √(2/20000) · 4.2 = .042.
    assert abs(wy.mean() - 3) < 4.5 * 0.0145
    assert abs(wy.var() - 4.2) < 4.5 * 0.042 * 1.2
    # Rows that weigh 1 and 3: normal with variance (1 + 9) · .21.
    wy = drawn(View([0.3, 0.3], [1, 0], [1.0, 3.0]), 0.3)
    assert abs(wy.mean() - 1.2) < 4.5 * np.sqrt(2.1 / 20000)
    assert abs(wy.var() - 2.1) < 4.5 * 2.1 * np.sqrt(2 / 20000)


def test_votes_keep_the_size_of_their_residual():
    # .7 was said and .5 of a crowd agreed: .5 or .9, each half of the time; around a rate of .6 it is .5 or .7.
    for rate, ends in ((0.7, [0.5, 0.9]), (0.6, [0.5, 0.7])):
        np.testing.assert_allclose(np.unique(drawn(View([0.7], [0.5]), rate).round(12)), ends)
    # Two such rows of one score are tallied like one sum: variance 2 · .2².
    wy = drawn(View([0.7, 0.7], [0.5, 0.5]), 0.7)
    assert abs(wy.var() - 0.08) < 4.5 * 0.08 * np.sqrt(2 / 20000)


def test_rows_are_drawn_with_replacement_only_on_request():
    w, wy = drawn(View([0.2, 0.4, 0.4], [0, 0, 1]), np.array([0.2, 0.4]), rows=True)
    assert (w.sum(axis=1) == 3).all()
    assert abs(w[:, 0].mean() - 1) < 4.5 * np.sqrt(2 / 3 / 20000)
    assert (wy <= w).all()
    assert abs(wy[:, 1].mean() - 0.8) < 4.5 * np.sqrt(1 / 20000)


def test_a_tallys_cells_know_between_which_edges_their_rows_lie():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    rows = Predictions((rng.random(4000) < p).astype(int), p)
    cells = sum_by_score(Tally.from_predictions(rows).views("positive")[0])
    assert (cells.low <= cells.score).all()
    assert (cells.score <= cells.high).all()
    place = np.clip(np.searchsorted(cells.high, p, "left"), 0, len(cells.score) - 1)
    assert ((cells.low[place] <= p) & (p <= cells.high[place])).all()
    assert cells.n.sum() == 4000


def test_groups_for_draws_keep_all_rows_and_both_ends():
    rng = np.random.default_rng(0)
    p = np.sort(rng.beta(0.1, 2, 30000))
    scores = sum_by_score(View(p, rng.random(30000) < p))
    groups = scores.merge_for_isotonic_fit(1024)
    assert len(groups.score) <= 1100
    assert groups.n.sum() == 30000
    assert groups.wy.sum() == scores.wy.sum()
    assert (np.diff(groups.score) > 0).all()
    np.testing.assert_array_equal(groups.score[:100], scores.score[:100])
    np.testing.assert_array_equal(groups.score[-100:], scores.score[-100:])
    assert scores.merge_for_isotonic_fit(40000) is scores
