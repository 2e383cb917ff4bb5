"""Boldness-recalibration."""

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, one_hot
from tests.reference import frame, golden
from trueodds.calibrators._glm.log_probabilities import log_ratio
from trueodds.calibrators._glm.logistic_regression import (
    LikelihoodSurface,
    ScoreCells,
    group_by_score,
    intercept_and_score,
    logistic_likelihood,
    unit_vectors,
)
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.llo import BoldnessMap, BoldnessSpec, LloSpec
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions


def fit_map(P, y, w=None, **settings):
    return BoldnessSpec(**settings).fit(P, one_hot(y), np.ones(len(P)) if w is None else w)


def prediction_std(P, m, w=None):
    return np.sqrt(np.cov(m.apply(P)[:, 1], fweights=w))


def gain(P, y, m):
    """How much log-likelihood is given up against the best shift and slope."""
    Y, mle = one_hot(y), LloSpec().fit(P, one_hot(y), np.ones(len(P)))
    return float(np.log((Y * mle.apply(P)).sum(axis=1)).sum() - np.log((Y * m.apply(P)).sum(axis=1)).sum())


@pytest.mark.parametrize("level", ["0.99", "0.95", "0.9", "0.8"])
def test_the_reference_numbers(level):
    # The optimum is flat: 1e-8 in sd is 1e-4 in the parameters. R BRcal stops 1e-5 short of the shift and slope, and
    # 1e-7 short in sd, beyond its bound by as much (golden/recalibration/llo_boldness.json, brcal_R.json).
    want, other = golden("recalibration/llo_boldness.json")["boldness"][level], golden("recalibration/brcal_R.json")
    rows = frame("recalibration/binary.csv")
    P, y = both(rows["p"]), rows["y"]
    m = fit_map(P, y, posterior=float(level))
    assert prediction_std(P, m) == pytest.approx(want["sd"], rel=1e-10)
    assert (m.delta, m.gamma) == pytest.approx((want["delta"], want["gamma"]), abs=1e-7)
    assert gain(P, y, m) == pytest.approx(want["loglik_slack"], abs=1e-8)
    delta, gamma, sd = other["brcal"][level]
    assert (m.delta, m.gamma) == pytest.approx((delta, gamma), abs=6e-5)
    assert prediction_std(P, m) == pytest.approx(sd, abs=3e-7)


def test_two_scores_that_mirror_each_other_by_hand():
    # ±ln(7/3), 60 of 80 right, so τ = 0 by symmetry. sd grows with q = σ(γ ln(7/3)), so the bound is met:
    # 60 ln q + 20 ln(1 − q) = 60 ln(3/4) + 20 ln(1/4) − (ln 80 − ln 19).
    P, y = both([0.7, 0.3] * 40), [1, 0, 1, 0, 1, 0, 0, 1] * 10
    m = fit_map(P, y)
    q = m.apply(both([0.7]))[0, 1]
    assert m.tau == pytest.approx(0, abs=1e-9)
    assert 60 * np.log(q) + 20 * np.log(1 - q) == pytest.approx(
        60 * np.log(0.75) + 20 * np.log(0.25) - np.log(80) + np.log(19), abs=1e-9
    )
    assert q > 0.75


@pytest.mark.parametrize("seed", range(4))
def test_no_other_map_within_the_bound_is_bolder(seed):
    rng = np.random.default_rng(seed)
    P, y = draw_predictions(200, 2, [0.6, 1.0, 2.0, 4.0][seed], seed)
    m = fit_map(P, y)
    tolerance, mle = BoldnessSpec().max_log_likelihood_loss(200), LloSpec().fit(P, one_hot(y), np.ones(200))
    assert gain(P, y, m) == pytest.approx(tolerance, abs=1e-8)
    tried = np.array([mle.tau, mle.gamma]) + rng.normal(size=(4000, 2)) * [0.5, 0.5 * mle.gamma]
    eta = tried @ intercept_and_score(log_ratio(P, 1e-12)).T
    lost = (np.logaddexp(0, eta) - y * eta).sum(axis=1)
    top = logistic_likelihood(
        intercept_and_score(log_ratio(P, 1e-12)), y.astype(float), np.ones(200), np.array([mle.tau, mle.gamma])
    ).value
    allowed = lost - top <= tolerance
    assert allowed.sum() > 50
    assert (1 / (1 + np.exp(-eta[allowed]))).std(axis=1, ddof=1).max() <= prediction_std(P, m) + 1e-9


def test_the_slope_of_the_spread_is_along_that_of_the_likelihood():
    P, y = draw_predictions(300, 2, 1.5, 9)
    m = fit_map(P, y)
    theta, h = np.array([m.tau, m.gamma]), 1e-6
    ascent = [
        (prediction_std(P, BoldnessMap(*(theta + h * e))) - prediction_std(P, BoldnessMap(*(theta - h * e)))) / (2 * h)
        for e in np.eye(2)
    ]
    slope = logistic_likelihood(intercept_and_score(log_ratio(P, 1e-12)), y.astype(float), np.ones(300), theta).gradient
    # Central differences of sd: rounding 1e-16/h = 1e-10, of slopes of about .1.
    assert ascent[0] * slope[1] == pytest.approx(ascent[1] * slope[0], rel=1e-6)


def test_many_scores_are_searched_in_groups_and_polished_on_all():
    # Beyond 2,048 distinct scores the walk is on groups; the bound holds exactly on the rows all the same.
    P, y = draw_predictions(6000, 2, 1.5, 10)
    m = fit_map(P, y)
    assert gain(P, y, m) == pytest.approx(BoldnessSpec().max_log_likelihood_loss(6000), abs=1e-7)


def test_weights_are_numbers_of_rows():
    P, y = draw_predictions(60, 2, 1.5, 11)
    w = np.arange(60) % 3 + 1
    many = np.repeat(np.arange(60), w)
    one, other = fit_map(P, y, w.astype(float)), fit_map(P[many], y[many])
    assert (one.tau, one.gamma) == pytest.approx((other.tau, other.gamma), abs=1e-9)
    note = BoldnessSpec().notes(one, P, one_hot(y), w.astype(float))[-1]
    assert f"{prediction_std(P, one, w):.3g}"[:4] in note.text
    assert note == BoldnessSpec().notes(other, P[many], one_hot(y[many]), np.ones(len(many)))[-1]


def test_its_note_says_how_bold_and_how_probable():
    P, y = draw_predictions(300, 2, 1.5, 9)
    note = fit(BoldnessSpec(), Predictions(y, P)).notes[-1]
    assert note.code == "TN518"
    assert "posterior probability of calibration is 0.95." in note.text


def test_a_posterior_beyond_reach_is_refused_with_the_one_in_reach():
    # Four rows: the best fit has posterior odds of 4 to 1.
    with pytest.raises(InputError, match=r"TO514.*4 rows.*at most 0\.8.*posterior=0\.95"):
        fit_map(both([0.2, 0.4, 0.6, 0.8]), [0, 1, 0, 1])
    nineteen = both(np.linspace(0.1, 0.9, 19)), np.arange(19) % 2
    assert fit_map(*nineteen).gamma == pytest.approx(
        LloSpec().fit(nineteen[0], one_hot(nineteen[1]), np.ones(19)).gamma
    )
    with pytest.raises(InputError, match="TO514"):
        fit_map(*nineteen, prior=0.4)


def test_separated_outcomes_have_a_finite_answer_and_say_so():
    result = fit(BoldnessSpec(posterior=0.5), Predictions([0, 0, 1, 1], [0.2, 0.3, 0.7, 0.9]))
    assert not result.calibration_map.converged
    assert np.isfinite([result.calibration_map.tau, result.calibration_map.gamma]).all()
    assert [note.code for note in result.notes] == ["TN515", "TN518"]


def test_equal_scores_cannot_spread():
    m = fit_map(both([0.6] * 40), [1, 0] * 20)
    assert (m.gamma, m.apply(both([0.6]))[0, 1]) == (1.0, pytest.approx(0.5))


def test_where_the_slope_may_be_of_either_sign_the_positive_one_is_taken():
    # Outcomes that do not depend on the score: maps and their mirror images are equally bold.
    P = both([0.2, 0.2, 0.8, 0.8] * 30)
    assert fit_map(P, [1, 0, 1, 0] * 30).gamma > 0.1


def test_the_contour_of_a_parabola_is_a_circle_in_the_units_of_its_curvature():
    # Many rows and a small fall: F rises as |β|²/2, up to terms of order √(fall/n) = 3e-4.
    rng = np.random.default_rng(0)
    x = rng.normal(size=100_000)
    rows = group_by_score(x, 1 / (1 + np.exp(-(0.5 + x))), np.ones(100_000))
    surface, grouped = (
        LikelihoodSurface.around_minimum(data, np.array([0.5, 1.0])) for data in (rows, rows.pool_neighbors())
    )
    angles = np.linspace(0, 2 * np.pi, 9)
    radii = grouped.radii(angles, 0.01)
    assert radii == pytest.approx(np.ones(9), abs=1e-3)
    assert radii == pytest.approx(surface.radii(angles, 0.01), abs=1e-5)
    points = surface.to_tau_gamma(np.sqrt(0.02) * surface.radii(angles, 0.01)[:, None] * unit_vectors(angles))
    base = logistic_likelihood(intercept_and_score(rows.x), rows.wy / rows.w, rows.w, surface.theta).value
    for point in points:
        risen = logistic_likelihood(intercept_and_score(rows.x), rows.wy / rows.w, rows.w, point).value - base
        assert risen == pytest.approx(0.01, rel=1e-5)


def test_groups_of_scores_keep_the_sums():
    rng = np.random.default_rng(1)
    rows = group_by_score(rng.normal(size=9000), rng.random(9000), rng.random(9000))
    grouped = rows.pool_neighbors()
    assert len(grouped.x) <= 2048
    assert (np.diff(grouped.x) > 0).all()
    assert (grouped.w.sum(), grouped.wy.sum(), grouped.w @ grouped.x) == pytest.approx(
        (rows.w.sum(), rows.wy.sum(), rows.w @ rows.x)
    )
    assert ScoreCells(rows.x[:10], rows.w[:10], rows.wy[:10]).pool_neighbors().x.tolist() == rows.x[:10].tolist()
