"""The reliability curve through a Gaussian, as a map."""

import numpy as np
import pytest
from scipy.special import expit, logit

from tests.calibrators.rows import both, draw_predictions, one_hot, powers
from tests.reference import frame, golden
from trueodds.binning.sorted_scores import SortedScores
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.kernel import KernelSpec, bin_scores, kernel_regression, select_bandwidth
from trueodds.data.predictions import Predictions

BANDWIDTHS = pytest.mark.parametrize(("bandwidth", "key"), [("silverman", "silverman_09"), ("normal", "silverman_106")])


def kernel(P, y, w=None, **settings):
    settings = {"scale": "probability", "monotone": False, **settings}
    return KernelSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def by_hand(x, s, y, h):
    """The curve of the method's text: sums of Gaussians and of their images at 0 and 1."""
    g = sum(np.exp(-((x - image) ** 2) / (2 * h * h)) for image in (s, -s, 2 - s))
    return (g * y).sum() / g.sum()


@BANDWIDTHS
def test_the_reference_numbers(bandwidth, key):
    # scipy's gaussian_kde with explicit reflection, 1e-15 (golden/recalibration/kde_recal.json).
    want, rows = golden("recalibration/kde_recal.json"), frame("recalibration/binary.csv")
    m = kernel(both(rows["p"]), rows["y"], bandwidth=bandwidth)
    assert m.curves[0].bandwidth == pytest.approx(want[key]["h"], rel=1e-12)
    assert m.apply(both(want["grid"]))[:, 1] == pytest.approx(np.array(want[key]["pred_grid"]), abs=1e-8)
    s, w, wy = SortedScores(rows["p"], rows["y"]).sums_by_score()
    exact = kernel_regression(np.array(want["grid"]), s, w, wy, m.curves[0].bandwidth)[0]
    assert exact == pytest.approx(np.array(want[key]["pred_grid"]), abs=1e-12)


def test_two_scores_by_hand():
    # .3 came, .7 did not; h = .2 at s = .4: distances .1 and .3, images −.3, −.7, 1.7, 1.3 at .7, 1.1, 1.3, .9.
    near, distant = (sum(np.exp(-((d / 0.2) ** 2) / 2) for d in ds) for ds in ((0.1, 0.7, 1.3), (0.3, 1.1, 0.9)))
    m = kernel(both([0.3, 0.7]), [1, 0], bandwidth=0.2)
    assert m.apply(both([0.4]))[0, 1] == pytest.approx(near / (near + distant), abs=1e-9)


@pytest.mark.parametrize("h", [0.05, 0.3, 1.0])
def test_the_map_between_its_places_is_the_curve(h):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p) * 1.0
    x = rng.random(300)
    s, w, wy = SortedScores(p, y).sums_by_score()
    exact = kernel_regression(x, s, w, wy, h)[0]
    assert kernel(both(p), y, bandwidth=h).apply(both(x))[:, 1] == pytest.approx(exact, abs=1e-8)
    if h < 0.1:  # wider ones see images of images, which the text leaves out
        assert exact == pytest.approx([by_hand(score, p, y, h) for score in x], abs=1e-12)


def test_on_log_odds_nothing_is_mirrored_and_beyond_the_scores_it_is_flat():
    P, y = draw_predictions(150, 2, 1.5, 0)
    m = kernel(P, y, scale="logit", bandwidth=0.5)
    s = logit(P[:, 1])
    x = np.linspace(s.min(), s.max(), 50)
    g = np.exp(-(((x[:, None] - s) / 0.5) ** 2) / 2)
    assert m.apply(both(expit(x)))[:, 1] == pytest.approx((g * y).sum(axis=1) / g.sum(axis=1), abs=1e-8)
    ends = m.apply(both([0.0, expit(s.min()), expit(s.max()), 1.0]))[:, 1]
    assert ends[[0, 3]] == pytest.approx(ends[[1, 2]], abs=1e-9)


@pytest.mark.parametrize(("scale", "h"), [("probability", 0.03), ("logit", 0.2)])
def test_the_rising_curve_rises_and_is_no_further_off_than_the_other_falls(scale, h):
    P, y = draw_predictions(400, 2, 2.0, 1)
    x = np.arange(1, 20_000) / 20_000
    rises, free = (kernel(P, y, scale=scale, bandwidth=h, monotone=m).apply(both(x))[:, 1] for m in (True, False))
    # Pooling moves a value by no more than the curve falls somewhere below its height so far.
    falls = (np.maximum.accumulate(free) - free).max()
    assert falls > 0.05
    assert (np.diff(rises) >= -1e-15).all()
    assert 0 < np.abs(rises - free).max() < falls + 1e-3  # between the places both are cubics


def test_many_scores_are_seen_in_fine_cells_that_hardly_move_the_curve():
    rng = np.random.default_rng(2)
    p = rng.random(30_000)
    s, w, wy = SortedScores(p, (rng.random(30_000) < p**2) * 1.0).sums_by_score()
    h = select_bandwidth(s, w, "silverman", "probability")
    cells = bin_scores(s, w, wy, h)
    assert len(cells[0]) <= 32 / h + 1
    assert [cells[1].sum(), cells[2].sum(), cells[0] @ cells[1]] == pytest.approx([w.sum(), wy.sum(), s @ w])
    x = np.linspace(0, 1, 101)
    # An even cell widens h² by (h/32)²/12, a share of 8e-5, and moves the curve by that share of h² r''/2 and noise.
    assert kernel_regression(x, *cells, h)[0] == pytest.approx(kernel_regression(x, s, w, wy, h)[0], abs=1e-4)
    assert bin_scores(s[:4000], w[:4000], wy[:4000], h)[0].tolist() == s[:4000].tolist()


def test_a_known_distortion_is_recovered_within_bias_and_noise():
    # Uniform scores, truth p²: mirrored smoothing moves it by at most h² r''/2 = h² inside; the noise of one place has
    # the variance r(1 − r)/(2 √π n h) ≤ 1/(8 √π n h). Four deviations over places more than 4 h from the ends.
    n = 20_000
    rng = np.random.default_rng(3)
    p = rng.random(n)
    m = kernel(both(p), rng.random(n) < p**2)
    h = m.curves[0].bandwidth
    x = np.linspace(4 * h, 1 - 4 * h, 50)
    noise = (8 * np.pi**0.5 * n * h) ** -0.5
    assert np.abs(m.apply(both(x))[:, 1] - x**2).max() < h**2 + 4 * noise


def test_a_curve_for_each_class_improves_on_overconfident_predictions():
    P, y = draw_predictions(5000, 4, 2.0, 0)
    fresh, y_fresh = draw_predictions(5000, 4, 2.0, 1)
    loss = [
        -np.log(Q[np.arange(5000), y_fresh]).mean()
        for Q in (fresh, kernel(P, y, scale="logit").apply(fresh), powers(fresh, 0.5))
    ]
    assert loss[2] - 0.005 < loss[1] < loss[0] - 0.1


def test_a_place_without_scores_says_what_the_nearest_says():
    m = kernel(both([0.1, 0.1, 0.9, 0.9, 0.9]), [1, 0, 1, 1, 0], bandwidth=0.002)
    assert m.apply(both([0.3, 0.49, 0.51, 0.7]))[:, 1] == pytest.approx([1 / 2, 1 / 2, 2 / 3, 2 / 3])
    # The jump between them stays between them, though no place of the grid lies in it.
    x = m.apply(both(0.49 + np.arange(2001) / 1e5))[:, 1]
    assert x.min() > 0.45
    assert x.max() < 0.72


def test_one_score_becomes_its_rate_and_the_least_bandwidth_is_noted():
    for scale, min_bandwidth in (("probability", 0.002), ("logit", 0.02)):
        result = fit(KernelSpec(scale=scale, monotone=False), Predictions([1, 1, 1, 0], [0.9] * 4))
        assert result.predict_proba([0.0, 0.5, 0.9])[:, 1] == pytest.approx([0.75] * 3)
        assert result.calibration_map.curves[0].bandwidth == min_bandwidth
        assert "TN530" in [note.code for note in result.notes]
    assert fit(KernelSpec(0.002, scale="probability", monotone=False), Predictions([1, 0], [0.9, 0.9])).notes == ()


def test_outcomes_of_one_kind_give_exact_zeros_that_are_noted():
    result = fit(KernelSpec(scale="probability"), Predictions([1, 1, 1], [0.2, 0.7, 0.9]))
    assert result.predict_proba([0.5]).tolist() == [[0.0, 1.0]]
    assert "TN505" in [note.code for note in result.notes]


def test_the_floor_counts_on_log_odds_only():
    P, y = draw_predictions(100, 2, 1.0, 0)
    preds = Predictions([*y, 0], np.concatenate([P, [[1.0, 0.0]]]))
    assert "TN502" in [note.code for note in fit(KernelSpec(scale="logit"), preds).notes]
    assert "TN502" not in [note.code for note in fit(KernelSpec(scale="probability"), preds).notes]


def test_votes_are_shares_and_weights_count_as_rows():
    P, y = draw_predictions(50, 2, 1.0, 4)
    votes = KernelSpec(scale="probability").fit(P, np.stack([1 - 0.3 * y, 0.3 * y], axis=1), np.ones(50))
    assert votes.apply(P)[:, 1] == pytest.approx(0.3 * kernel(P, y).apply(P)[:, 1], abs=1e-12)
    double, twice = kernel(P, y, np.full(50, 2.0)), kernel(np.tile(P, (2, 1)), np.tile(y, 2))
    assert double.curves[0].bandwidth == pytest.approx(twice.curves[0].bandwidth, rel=1e-12)
    # Weights that are no counts only weigh rows against each other.
    assert kernel(P, y, np.full(50, 0.01)).curves[0].bandwidth == pytest.approx(kernel(P, y).curves[0].bandwidth)


def test_exact_zeros_and_ones_do_not_widen_the_bandwidth():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 500)
    y = (rng.random(500) < p).astype(int)
    more, outcomes = np.concatenate([p, np.zeros(200), np.ones(200)]), np.concatenate([y, np.zeros(200), np.ones(200)])
    alone = KernelSpec().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(500))
    beside = KernelSpec().fit(np.stack([1 - more, more], axis=1), np.eye(2)[outcomes.astype(int)], np.ones(900))
    assert beside.curves[0].bandwidth == pytest.approx(alone.curves[0].bandwidth)
