"""The score test: what it equals, worked values, level, temperature, impossible outcomes, effects, tallies."""

import numpy as np
import pytest

import trueodds as to
from tests import reference
from trueodds.core.errors import InputError
from trueodds.hypotests.spiegelhalter import Score, Spiegelhalter, _std_and_skewness
from trueodds.lenses.view import View

SCORES = ("brier", "log_loss")


def run_test(preds, **settings):
    return to.test(preds, "score", **settings)


def drawn(rng, P):
    return (rng.random(len(P))[:, None] > np.cumsum(P, axis=1)).sum(axis=1).clip(0, P.shape[1] - 1)


def four_classes():
    rows = reference.frame("estimators/b_multi1000.csv")
    return to.Predictions(rows["y"].astype(int), reference.columns(rows))


def codes(verdict):
    return [note.code for note in verdict.notes]


def test_through_a_binary_lens_briers_form_is_spiegelhalters_z():
    preds = four_classes()
    for lens in ("confidence", "class:2", "rank:2"):
        a, b = run_test(preds, lens=lens), to.test(preds, "spiegelhalter", lens=lens)
        assert (a.statistic, a.pvalue, a.effect) == (b.statistic, b.pvalue, b.effect)
    # golden: the confidence lens of the same rows, by R rms::val.prob
    known = reference.estimators()["b_conf.spiegelhalter"]["value"]
    verdict = run_test(preds, lens="confidence")
    assert (verdict.statistic, verdict.pvalue) == pytest.approx((known["z"], known["p_two_sided"]), rel=1e-10)


@pytest.mark.parametrize("score", SCORES)
def test_a_vector_of_two_outcomes_is_one_score(score):
    rng = np.random.default_rng(4)
    p = rng.random(300)
    y = rng.random(300) < p**2
    single = Score(statistic=score).evaluate(View(p, y))
    joint = Score(statistic=score).evaluate(View(np.stack([1 - p, p], axis=1), np.stack([~y, y], axis=1)))
    assert (joint.statistic, joint.effect) == pytest.approx((single.statistic, single.effect), rel=1e-10)


def test_by_hand():
    # p = (½, ¼, ¼), the third comes. Log loss in units of log 2: paid 2, promised ½·1 + ½·2 = 1.5, variance .25, so
    # z = .5/.5 = 1; the span is from 1 to 2, so the effect is .5.
    # Brier: paid ¼ + 1/16 + 9/16 = .875, promised 1 − (¼ + 2/16) = .625; scores .375 and .875, variance .0625, span .5.
    view = View(p=[[0.5, 0.25, 0.25]], y=[[0, 0, 1]])
    for score in SCORES:
        result = Score(statistic=score).evaluate(view)
        assert (result.statistic, result.effect) == pytest.approx((1.0, 0.5), rel=1e-12)
        assert result.pvalue == pytest.approx(0.31731050786, rel=1e-9)  # two-sided, one standard error


@pytest.mark.parametrize("score", SCORES)
def test_the_promise_is_the_mean_and_variance_over_all_labels(score):
    # every label of one row with its probability as weight: the mean surplus is 0, and its square the variance
    P = np.random.default_rng(0).dirichlet(np.ones(5))
    z = [Score(statistic=score).evaluate(View(P[None], np.eye(5)[[k]])).statistic for k in range(5)]
    assert P @ z == pytest.approx(0.0, abs=1e-12)
    assert P @ np.square(z) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_size_under_the_null(score):
    # Rejections at 5 % over 600 data sets are Binomial(600, .05): inside 14..49 with 99.9 %.
    rng, rejections = np.random.default_rng(1), 0
    for _ in range(600):
        P = rng.dirichlet(np.ones(4), 100)
        w = np.exp(rng.uniform(-1, 1, 100))
        view = View(P, np.eye(4)[drawn(rng, P)], w)
        rejections += Score(statistic=score).evaluate(view).pvalue <= 0.05
    assert 14 <= rejections <= 49


@pytest.mark.parametrize("score", SCORES)
def test_z_and_effect_are_positive_for_overconfidence_and_negative_for_timidity(score):
    rng = np.random.default_rng(2)
    P = rng.dirichlet(np.ones(3), 2000)
    for power, sign in ((2.0, 1), (0.5, -1)):
        predicted = P**power / (P**power).sum(axis=1, keepdims=True)
        verdict = run_test(to.Predictions(drawn(rng, P), predicted), statistic=score)
        assert verdict.pvalue < 1e-6
        assert sign * verdict.statistic > 0
        assert 0.02 < sign * verdict.effect < 1


@pytest.mark.parametrize("score", SCORES)
def test_the_effect_is_at_most_the_probability_misplaced(score):
    # With every label counted at its true probability q the surplus is its expectation, and the effect is at most the
    # mean total variation with the spans as weights, which is at most the largest.
    rng = np.random.default_rng(3)
    P, Q = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.ones(4), 50)
    result = Score(statistic=score).evaluate(View(P, Q))
    assert abs(result.effect) <= (np.abs(P - Q).sum(axis=1) / 2).max()
    # all rows alike, and mass .1 moved from the likeliest to the least likely outcome: the bound is met
    alike, moved = np.tile([0.6, 0.3, 0.1], (5, 1)), np.tile([0.5, 0.3, 0.2], (5, 1))
    assert Score(statistic=score).evaluate(View(alike, moved)).effect == pytest.approx(0.1, rel=1e-12)


def test_the_log_loss_form_is_the_score_test_of_temperature_one():
    # d/dβ of Σ log softmax(β log p)_y at β = 1 is −Σ(S − E S); the information is Σ Var S
    preds = four_classes()
    log = np.log(preds.P)
    rows, step = np.arange(preds.n), 1e-5

    def likelihood(beta):
        return (beta * log[rows, preds.y] - np.log(np.exp(beta * log).sum(axis=1))).sum()

    slope = (likelihood(1 + step) - likelihood(1 - step)) / (2 * step)
    curvature = -(likelihood(1 + 1e-3) - 2 * likelihood(1) + likelihood(1 - 1e-3)) / 1e-6
    verdict = run_test(preds, statistic="log_loss")
    assert verdict.statistic == pytest.approx(-slope / np.sqrt(curvature), rel=1e-5)


def test_an_outcome_of_probability_zero_makes_the_log_loss_infinite():
    P = np.array([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.2, 0.2, 0.6]] * 10)
    y = np.array([0, 1, 0, 2] * 10)
    assert np.isfinite(run_test(to.Predictions(y, P), statistic="log_loss").statistic)
    y[1] = 2
    verdict = run_test(to.Predictions(y, P), statistic="log_loss")
    # one of the 20 rows that rule a class out
    assert (verdict.statistic, verdict.pvalue, verdict.effect) == (np.inf, 0.0, 1 / 20)
    assert "TN215" in codes(verdict)
    monte_carlo = run_test(to.Predictions(y, P), statistic="log_loss", null="redraw", resamples=99)
    assert (monte_carlo.statistic, monte_carlo.pvalue) == (np.inf, 0.01)
    # Brier's score stays finite, and the fact is told all the same
    brier = run_test(to.Predictions(y, P))
    assert np.isfinite(brier.statistic)
    assert "TN215" in codes(brier)
    # one score: no row of the class comes, or it comes for sure
    for lens, late in (("class:2", True), ("class:0", False)):
        single = run_test(to.Predictions(y, P), lens=lens, statistic="log_loss")
        assert np.isinf(single.statistic) == late


def test_clusters_with_an_impossible_outcome_are_infinite_in_every_draw():
    P = np.array([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0]] * 10)
    y = np.array([0, 2] + [1] * 18)
    preds = to.Predictions(y, P, cluster=np.repeat(np.arange(10), 2))
    verdict = run_test(preds, statistic="log_loss", null="redraw", resamples=19)
    # a flipped residual is as impossible as the one seen, so the flips alone say nothing, and the larger p counts
    assert (verdict.statistic, verdict.pvalue) == (np.inf, 1.0)


@pytest.mark.parametrize("score", SCORES)
def test_where_no_score_can_vary_z_is_undefined(score):
    P = np.array([[1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    verdict = run_test(to.Predictions([2, 0, 1], P), statistic=score)
    assert np.isnan([verdict.statistic, verdict.pvalue, verdict.effect]).all()
    assert "TN214" in codes(verdict)
    monte_carlo = run_test(to.Predictions([2, 0, 1], P), statistic=score, null="redraw", resamples=19)
    assert np.isnan(monte_carlo.pvalue)
    broken = run_test(to.Predictions([2, 0, 2], P), statistic=score)
    assert (broken.statistic, broken.pvalue) == (np.inf, 0.0)


@pytest.mark.parametrize("score", SCORES)
def test_redraws_agree_with_the_normal_law(score):
    # the p of 999 draws has a standard error of at most √(.25/999) = .016
    rng = np.random.default_rng(6)
    P = rng.dirichlet([2, 2, 2], 1000)
    preds = to.Predictions(drawn(rng, P), P)
    asymptotic, draws = run_test(preds, statistic=score), run_test(preds, statistic=score, null="redraw")
    assert draws.statistic == asymptotic.statistic
    assert draws.pvalue == pytest.approx(asymptotic.pvalue, abs=4 * 0.016)


def test_a_skewed_promise_is_a_doubt_that_redraws_answer():
    P = np.array([[0.999, 0.0005, 0.0005]] * 100)
    verdict = run_test(to.Predictions([0] * 100, P), statistic="log_loss")
    assert "TN212" in codes(verdict)
    assert "TN212" not in codes(
        run_test(to.Predictions([0] * 100, P), statistic="log_loss", null="redraw", resamples=19)
    )
    assert "TN212" not in codes(run_test(four_classes(), statistic="log_loss"))


def test_a_tally_keeps_briers_form_and_refuses_the_log_loss():
    preds = four_classes()
    tally = to.tally(preds, grid=60)
    for lens in ("confidence", "canonical"):
        rows, cells = run_test(preds, lens=lens), run_test(tally, lens=lens)
        # scores move by at most half a cell, 1/7680 or 1/120
        assert cells.statistic == pytest.approx(rows.statistic, rel=0.001 if lens == "confidence" else 0.03)
    with pytest.raises(InputError, match="TO403"):
        run_test(tally, lens="confidence", statistic="log_loss")


def test_an_unknown_score_is_refused():
    with pytest.raises(InputError, match="TO203"):
        run_test(four_classes(), statistic="spherical")


def test_spiegelhalter_shares_its_redraws():
    view = View(p=[0.9, 0.9, 0.8, 0.1], y=[1, 0, 1, 0])
    assert (
        Score().cell_statistic(view).value()
        == Spiegelhalter().cell_statistic(view).value()
        == abs(Score().evaluate(view).statistic)
    )


def test_the_skewness_of_tiny_variances_is_finite():
    # Four rows with moments of 1e-220: std = √4e-220 = 2e-110, whose cube is 0, and the skewness 4e-220 / std³ = 5e109.
    moments = np.full(4, 1e-220)
    std, skewness = _std_and_skewness(View(p=[0.5] * 4, y=[0, 1, 0, 1]), moments, moments)
    assert (std, skewness) == pytest.approx((2e-110, 5e109))
