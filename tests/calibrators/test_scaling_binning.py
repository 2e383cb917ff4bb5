"""Scaling-binning."""

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, one_hot, powers
from tests.reference import frame, golden
from trueodds.calibrators._glm.log_probabilities import log_odds
from trueodds.calibrators._glm.logistic_regression import intercept_and_score, logistic_likelihood
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.histogram import HistogramSpec, ScalingBinningSpec
from trueodds.data.predictions import Predictions


def fit_map(P, y, w=None, **settings):
    return ScalingBinningSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def test_shares_that_are_a_sigmoid_are_averaged_by_twos():
    # The outcomes are the odds' square roots exactly, so the sigmoid has slope 1/2: odds 1/9, 1/4, 4, 9 become
    # 1/3, 1/2, 2, 3, that is 1/4, 1/3, 2/3, 3/4. Two bins: means 7/24 and 17/24.
    P = both([0.1, 0.2, 0.8, 0.9])
    m = ScalingBinningSpec(bins=2).fit(P, powers(P, 0.5), np.ones(4))
    assert m.curves[0].sigmoid.slope == pytest.approx(0.5, abs=1e-10)
    assert m.curves[0].steps.edges == pytest.approx([0.0, 0.5, 1.0])
    assert m.apply(both([0.05, 0.49, 0.51, 0.99]))[:, 1] == pytest.approx(np.array([7, 7, 17, 17]) / 24, abs=1e-10)


def test_the_reference_numbers():
    # uncertainty-calibration 0.1.4 agrees to the tolerance of its optimizer, 3.5e-5
    # (recalibration/scaling_binning.json).
    want, rows = golden("recalibration/scaling_binning.json"), frame("recalibration/binary.csv")
    curve = fit_map(both(rows["p"]), rows["y"], bins=10).curves[0]
    assert curve.sigmoid.slope == pytest.approx(want["slope"], abs=1e-8)
    assert curve.sigmoid.intercept == pytest.approx(want["intercept"], abs=1e-8)
    assert curve.steps.edges == pytest.approx(np.array(want["edges"]), abs=1e-8)
    assert curve.steps.values == pytest.approx(np.array(want["values"]), abs=1e-8)
    assert curve(np.array(want["grid"])) == pytest.approx(np.array(want["pred_grid"]), abs=1e-8)


def test_the_slope_of_the_likelihood_vanishes():
    P, y = draw_predictions(2000, 4, 2.0, 0)
    for c, curve in enumerate(fit_map(P, y).curves):
        theta = np.array([curve.sigmoid.intercept, curve.sigmoid.slope])
        at = logistic_likelihood(
            intercept_and_score(log_odds(P[:, c], 1e-12)), (y == c).astype(float), np.ones(2000), theta
        )
        assert abs(at.gradient).max() / 2000 <= 1e-8


@pytest.mark.parametrize("bins", [1, 7, 15, "auto"])
def test_the_mean_prediction_is_the_event_rate_whatever_the_bins(bins):
    # The intercept makes Σ(g − y) zero, and means of g keep its sum.
    P, y = draw_predictions(500, 2, 1.8, 1)
    w = np.random.default_rng(0).random(500)
    q = fit_map(P, y, w, bins=bins).apply(P)[:, 1]
    assert w @ q == pytest.approx(w @ y, abs=1e-6)


def test_only_so_many_values_are_predicted_and_they_increase():
    P, y = draw_predictions(800, 2, 1.8, 2)
    q = fit_map(P, y, bins=12).apply(P)[np.argsort(P[:, 1], kind="stable"), 1]
    assert len(np.unique(q)) == 12
    assert (np.diff(q) >= 0).all()


@pytest.mark.slow
def test_its_values_vary_less_than_outcome_rates_do():
    # 200 samples of a truth that is a sigmoid: the ratio of variances of two equally noisy values, each from 200, is
    # below 1.55 in 99.9 % (F with 199 and 199 degrees of freedom).
    values = np.empty((2, 200))
    for seed in range(200):
        P, y = draw_predictions(600, 2, 1.5, [seed, 9])
        rows = P, one_hot(y), np.ones(600)
        values[0, seed] = HistogramSpec(15, "equal-mass").fit(*rows).apply(both([0.5]))[0, 1]
        values[1, seed] = ScalingBinningSpec(15).fit(*rows).apply(both([0.5]))[0, 1]
    assert values[0].var() / values[1].var() > 1.55


def test_tied_scores_are_never_split_and_their_row_order_is_irrelevant():
    p, y = np.repeat([0.2, 0.6, 0.7], 50), np.tile([0, 1, 1], 50)
    order = np.random.default_rng(0).permutation(150)
    one, other = fit_map(both(p), y, bins=8), fit_map(both(p[order]), y[order], bins=8)
    assert len(one.curves[0].steps.values) == 3
    grid = both(np.arange(101) / 100)
    assert one.apply(grid) == pytest.approx(other.apply(grid), abs=1e-12)


def test_a_score_finds_its_bin_wherever_it_stands_in_memory():
    # Logarithms of the same number may differ in their last bit; a tie at an edge would then change its bin.
    rng = np.random.default_rng(1)
    p = rng.integers(1, 40, 3000) / 40
    m = fit_map(both(p), rng.random(3000) < p**1.5, bins=15)
    recalibrated = m.apply(both(p))
    assert all((m.apply(both(p[i : i + 1])) == recalibrated[i]).all() for i in range(100))
    assert (m.apply(both(p)[::3]) == recalibrated[::3]).all()


def test_exact_zeros_and_ones_stay_out_of_the_map_though_the_fit_floors_them():
    P = both([0.0] * 20 + [0.3] * 20 + [0.7] * 20 + [1.0] * 20)
    y = [0] * 20 + [0, 0, 0, 1] * 5 + [1, 1, 1, 0] * 5 + [1] * 20
    result = fit(ScalingBinningSpec(bins=4), Predictions(y, P))
    q = result.predict_proba([0.0, 0.3, 0.7, 1.0])[:, 1]
    assert q[0] == 0.0
    assert q[3] == 1.0
    assert 0.1 < q[1] < q[2] < 0.9
    assert {note.code for note in result.notes} == {"TN502", "TN505"}


def test_separated_outcomes_get_a_finite_answer_and_a_note():
    result = fit(ScalingBinningSpec(bins=2), Predictions([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]))
    assert not result.calibration_map.converged
    assert "TN515" in [note.code for note in result.notes]
    assert np.isfinite(result.predict_proba([0.0, 0.5, 1.0])).all()
    assert calibrator_from_dict(result.to_dict()).calibration_map.converged is False


def test_scores_that_point_the_wrong_way_are_turned_round_and_noted():
    result = fit(ScalingBinningSpec(bins=2), Predictions([1, 1, 0, 1, 0, 0], [0.1, 0.2, 0.3, 0.7, 0.8, 0.9]))
    assert "TN517" in [note.code for note in result.notes]
    q = result.predict_proba([0.0, 1.0])[:, 1]
    assert q[0] > q[1]


@pytest.mark.parametrize("y", [[0, 0, 0], [1, 1, 1], [0, 1, 1]])
def test_one_score_says_about_the_base_rate(y):
    q = fit_map(both([0.4] * 3), y).apply(both([0.1, 0.4, 0.9]))
    assert np.isfinite(q).all()
    assert q[1, 1] == pytest.approx(np.mean(y), abs=0.21)  # of equal outcomes one more of either kind is imagined


def test_rows_without_weight_votes_and_an_absent_class():
    rng = np.random.default_rng(5)
    P, w = rng.dirichlet(np.ones(3), 120), rng.random(120)
    Y = np.zeros((120, 3))
    Y[:, :2] = rng.dirichlet([1, 1], 120)
    w[90:] = 0
    one, other = ScalingBinningSpec().fit(P, Y, w), ScalingBinningSpec().fit(P[:90], Y[:90], w[:90])
    assert one.apply(P) == pytest.approx(other.apply(P), abs=1e-12)
    assert one.apply(P)[:, 2].max() < 0.1
