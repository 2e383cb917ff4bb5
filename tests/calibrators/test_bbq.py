"""Bayesian binning into quantiles."""

import math

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, one_hot
from tests.reference import frame, golden
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.histogram import BbqSpec, fit_binnings
from trueodds.data.predictions import Predictions


def fit_map(P, y, w=None):
    return BbqSpec().fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def test_one_bin_and_two_are_averaged_by_how_likely_they_make_the_outcomes():
    # Ten rows, so one bin or two (⌈10/5⌉); none of the lower five came, all of the upper five.
    # One: α = β = 1, score B(6, 6)/B(1, 1) = 1/2772, value 6/12.
    # Two: edge at .5, α = .5, β = 1.5, score B(.5, 6.5)/B(.5, 1.5) = .451171875 twice; lower value .5/7.
    p = [0.1, 0.2, 0.3, 0.4, 0.45, 0.55, 0.6, 0.7, 0.8, 0.9]
    one = 1 / 2772
    one /= one + 0.451171875**2
    m = fit_map(both(p), [0] * 5 + [1] * 5)
    assert m.curves[0].edges.tolist() == [0.0, 0.5, 1.0]
    assert m.curves[0].values[0] == pytest.approx(one / 2 + (1 - one) * 0.5 / 7, abs=1e-14)
    assert m.apply(both([0.5, 0.51])).sum(axis=0) == pytest.approx([1.0, 1.0])  # the mirror image above


def test_the_reference_numbers():
    # Scores equal the authors' program run in Octave to 1e-9 where its bins are the same (recalibration/bbq.json).
    want, rows = golden("recalibration/bbq.json"), frame("recalibration/binary.csv")
    candidates = fit_binnings(rows["p"], rows["y"], np.ones(300))
    assert np.diff(candidates.first_bins).tolist() == want["bins"][:-1]
    assert candidates.log_likelihoods == pytest.approx(np.array(want["log_score"]), abs=1e-9)
    assert candidates.weights == pytest.approx(np.array(want["weights"]), abs=1e-12)
    got = fit_map(both(rows["p"]), rows["y"]).apply(both(want["grid"]))[:, 1]
    assert got == pytest.approx(np.array(want["pred_grid"]), abs=1e-10)


@pytest.mark.parametrize("key", ["pred_all_models", "pred_pruned"])
def test_the_authors_program_differs_by_its_value_of_a_bin(key):
    # It takes (m + p0)/(n + 1) with another p0, its last bin takes the remainder, and it prunes: 4.2e-3 in all.
    want, rows = golden("recalibration/bbq_official_octave.json"), frame("recalibration/binary.csv")
    got = fit_map(both(rows["p"]), rows["y"]).apply(both(want["grid"]))[:, 1]
    assert got == pytest.approx(np.array(want[key]), abs=4.2e-3)


def test_it_is_the_papers_score_and_not_a_bic_over_bins_of_equal_width():
    # netcal's BBQ is that; scores squeezed into a corner would then share one bin whatever came.
    p = 0.9 + np.arange(200) / 2000
    q = fit_map(both(p), p > 0.95).apply(both([0.92, 0.98]))[:, 1]
    assert q[0] < 0.05
    assert q[1] > 0.95


def test_ties_are_never_split_and_equal_binnings_count_once():
    # Two scores, 100 rows each: whatever the number of bins, they are one bin or two.
    p, y = np.repeat([0.2, 0.6], 100), np.tile([0, 0, 0, 1], 50)
    candidates = fit_binnings(p, y.astype(float), np.ones(200))
    assert candidates.first_bins.tolist() == [0, 1]
    assert candidates.upper_edges.tolist() == [1.0, 0.4, 1.0]
    order = np.random.default_rng(0).permutation(200)
    grid = both(np.arange(101) / 100)
    assert (fit_map(both(p), y).apply(grid) == fit_map(both(p[order]), y[order]).apply(grid)).all()


def test_many_exact_zeros_and_ones_are_bins_of_their_own_and_can_be_saved():
    rng = np.random.default_rng(1)
    p = np.concatenate([np.zeros(150), rng.random(100), np.ones(150)])
    y = rng.random(400) < np.concatenate([np.full(150, 0.02), np.full(100, 0.5), np.full(150, 0.98)])
    result = fit(BbqSpec(), Predictions(y.astype(int), p))
    assert result.predict_proba([0.0])[0, 1] < 0.1
    assert result.predict_proba([1.0])[0, 1] > 0.9
    restored = calibrator_from_dict(result.to_dict())
    assert (restored.predict_proba(p) == result.predict_proba(p)).all()


def test_two_classes_never_get_exactly_zero_or_one():
    for y in ([0] * 30, [1] * 30):
        q = fit_map(both(np.linspace(0, 1, 30)), y).apply(both([0.0, 0.5, 1.0]))
        assert (q > 0).all()
        assert (q < 1).all()


@pytest.mark.slow
def test_at_one_half_it_is_right_in_the_mean():
    # Calibrated scores, symmetric about 1/2: over 400 repetitions the mean lies within four of its standard errors.
    rng = np.random.default_rng(2)
    values = []
    for _ in range(400):
        p = rng.random(200)
        values.append(fit_map(both(p), rng.random(200) < p).apply(both([0.5]))[0, 1])
    assert abs(np.mean(values) - 0.5) < 4 * np.std(values) / math.sqrt(400)


def test_weights_that_are_no_counts_tell_nothing_about_how_many_rows_there_are():
    P, y = draw_predictions(300, 3, 1.5, 4)
    w = np.random.default_rng(0).random(300)
    assert fit_map(P, y, w).apply(P) == pytest.approx(fit_map(P, y, w / 1000).apply(P), abs=1e-12)
    w[200:] = 0
    assert fit_map(P, y, w).apply(P) == pytest.approx(fit_map(P[:200], y[:200], w[:200]).apply(P), abs=1e-15)


def test_counts_as_weights_do_not_ask_for_more_memory_than_rows_could():
    candidates = fit_binnings(np.arange(1, 6) / 6, np.array([0.0, 0, 0.5, 1, 1]), np.full(5, 2.0**40))
    assert len(candidates.log_likelihoods) >= 1
    assert len(candidates.upper_edges) < 3000 * 3000 / 2


@pytest.mark.parametrize("k", [2, 4])
def test_votes_and_absent_classes_are_answered(k):
    P, _ = draw_predictions(100, k, 1.5, 0)
    Y = np.zeros((100, k))
    Y[:, :2] = np.random.default_rng(3).dirichlet([1, 1], 100)
    Q = BbqSpec().fit(P, Y, np.ones(100)).apply(P)
    assert np.isfinite(Q).all()
    assert Q.sum(axis=1) == pytest.approx(1)


def test_one_row_is_one_bin():
    # α = β = 1 and one row that came: (1 + 1)/(1 + 2).
    assert fit_map(both([0.3]), [1]).apply(both([0.9]))[0, 1] == pytest.approx(2 / 3)
