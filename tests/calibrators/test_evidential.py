"""Evidential calibration: belief, plausibility, and what is made of them."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from tests.calibrators.rows import both, draw_predictions, one_hot
from tests.reference import columns, frame, golden
from trueodds.calibrators._glm import logistic_regression
from trueodds.calibrators._glm.logistic_regression import intercept_and_score, logistic_likelihood
from trueodds.calibrators.evidential import (
    CUT_RADII,
    CUT_WEIGHTS,
    EvidentialSpec,
    _split_overlaps,
)
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.logistic import PlattSpec
from trueodds.calibrators.temperature import TemperatureSpec
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions


def fit_map(P, y, **settings):
    return EvidentialSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


def test_two_scores_by_hand():
    # One slope on log odds ±ln 9; of four said .9 three came, likewise mirrored. N₀ = N₁ = 4: t = 5/6 and 1/6, so
    # the mean share at .9 is (3·5/6 + 1/6)/4 = 2/3 and θ ln 9 = ln 2.
    m = fit_map(both([0.9] * 4 + [0.1] * 4), [1, 1, 1, 0, 0, 0, 0, 1], parameters=1, output="point")
    assert m.contour.theta == pytest.approx(np.log(2) / np.log(9), abs=1e-9)
    assert m.apply(both([0.9]))[0, 1] == pytest.approx(2 / 3, abs=1e-9)


@pytest.mark.parametrize(("key", "on"), [("on_probabilities", "probabilities"), ("on_logp", "log p")])
def test_the_reference_numbers_of_one_parameter(key, on):
    # θ and its point by a second program 4e-11; beliefs by 100,000 Monte Carlo draws, whose standard error is
    # at most .0016; two programs agreed within .004 (golden/recalibration/xu_evidential.json).
    want = golden("recalibration/xu_evidential.json")[key]
    rows, test = frame("recalibration/multi4.csv"), columns(frame("recalibration/multi4_test.csv"))[:6]
    m = fit_map(columns(rows), rows["y"], on=on)
    assert m.contour.theta == pytest.approx(want["theta"], abs=1e-8)
    # Near its top the contour is a parabola: its first cut is the standard error, up to third differences.
    assert (m.contour.high[0] - m.contour.low[0]) / (2 * CUT_RADII[0]) == pytest.approx(want["se"], rel=1e-4)
    beliefs = m.beliefs(test)
    assert m.contour.plug_in_probabilities(m._to_scores(test)) == pytest.approx(np.array(want["point"]), abs=1e-8)
    assert beliefs.plausibility == pytest.approx(np.array(want["pl"]), abs=0.004)
    assert beliefs.belief == pytest.approx(np.array(want["bel"]), abs=0.004)
    assert beliefs.pignistic == pytest.approx(np.array(want["betp"]), abs=0.004)
    # All are within five of their own standard errors. Left out are classes with a band of cumulative probability so
    # thin that it slips through that program's grid of θ: one that sweeps over .0004 of Z has a plausibility of .0004.
    mask = np.array(want["point"]) > 1e-3
    for name, values in (("pl", beliefs.plausibility), ("bel", beliefs.belief)):
        away = np.abs(np.array(want[name]) - values)
        assert (away <= 5 * np.sqrt(values * (1 - values) / 1e5) + 1e-4)[mask].all()
    assert 1 - beliefs.belief.sum(axis=1) == pytest.approx(np.array(want["mass_ignorance"]), abs=0.004)


def test_the_reference_numbers_of_two_parameters():
    # Quadrature of an independent program (golden/recalibration/xu_evidential_binary.json).
    want, rows = golden("recalibration/xu_evidential_binary.json"), frame("recalibration/binary.csv")
    m = fit_map(both(rows["p"]), rows["y"])
    assert m.contour.theta == pytest.approx([want["theta0"], want["theta1"]], abs=1e-8)
    for point in want["points"]:
        P = both([1 / (1 + np.exp(-point["x"]))])
        low, high = m.interval(P)
        assert (low[0, 1], high[0, 1]) == pytest.approx((point["bel1"], point["pl1"]), abs=1e-6)
        assert (low[0, 0], high[0, 0]) == pytest.approx((1 - point["pl1"], 1 - point["bel1"]), abs=1e-6)
        assert m.contour.plug_in_probabilities(np.array([point["x"]]))[0, 1] == pytest.approx(
            point["omega_hat"], abs=1e-9
        )
        assert m.apply(P)[0, 1] == pytest.approx((point["bel1"] + point["pl1"]) / 2, abs=1e-6)


def test_its_point_is_platt_scaling():
    P, y = draw_predictions(300, 2, 1.5, 0)
    assert fit_map(P, y, output="point").apply(P) == pytest.approx(
        PlattSpec().fit(P, one_hot(y), np.ones(300)).apply(P), abs=1e-9
    )
    raw = PlattSpec(on="raw").fit(P, one_hot(y), np.ones(300))
    assert fit_map(P, y, output="point", on="probabilities").apply(P) == pytest.approx(raw.apply(P), abs=1e-9)


@pytest.mark.parametrize("x", [-3.0, 0.4, 5.0])
def test_belief_is_the_integral_of_the_contour_at_a_score(x):
    # pl_x(q) is the largest likelihood of a line through logit q at x, by a slope search; Bel = q̂ − ∫ pl_x below q̂.
    P, y = draw_predictions(80, 2, 1.5, 1)
    m = fit_map(P, y)
    z, n1 = np.log(P[:, 1] / P[:, 0]), y.sum()
    t = np.where(y == 1, (n1 + 1) / (n1 + 2), 1 / (80 - n1 + 2))
    top = logistic_likelihood(intercept_and_score(z), t, np.ones(80), m.contour.theta).value

    def pl(q):
        def slope(g):
            at = logistic_likelihood(intercept_and_score(z), t, np.ones(80), np.array([np.log(q / (1 - q)) - g * x, g]))
            return at.gradient[1] - x * at.gradient[0]

        g = brentq(slope, -60, 60)
        value = logistic_likelihood(
            intercept_and_score(z), t, np.ones(80), np.array([np.log(q / (1 - q)) - g * x, g])
        ).value
        return np.exp(top - value)

    q = m.contour.plug_in_probabilities(np.array([x]))[0, 1]
    below, above = (quad(pl, *ends, epsabs=1e-8)[0] for ends in ((1e-9, q), (q, 1 - 1e-9)))
    beliefs = m.contour.beliefs(np.array([x]))
    assert beliefs.belief[0, 1] == pytest.approx(q - below, abs=1e-5)
    assert beliefs.plausibility[0, 1] == pytest.approx(q + above, abs=1e-5)


@pytest.mark.parametrize("settings", [{}, {"parameters": 1}, {"on": "probabilities"}])
@pytest.mark.parametrize("k", [2, 4])
def test_beliefs_are_ordered_and_split_what_is_open(settings, k):
    P, y = draw_predictions(120, k, 2.0, 2)
    m = fit_map(P, y, **settings)
    beliefs = m.beliefs(P)
    assert (beliefs.belief >= 0).all()
    assert (beliefs.plausibility <= 1 + 1e-12).all()
    assert (beliefs.belief <= beliefs.pignistic + 1e-12).all()
    assert (beliefs.pignistic <= beliefs.plausibility + 1e-12).all()
    assert beliefs.pignistic.sum(axis=1) == pytest.approx(1, abs=1e-12)
    if k == 2:
        assert beliefs.pignistic == pytest.approx((beliefs.belief + beliefs.plausibility) / 2, abs=1e-12)


def test_shares_of_overlapping_intervals_by_hand():
    # [0, .5], [.25, .75], [.5, 1]: alone to .25, in twos to .75, alone to 1.
    start, end = np.array([[0.0, 0.25, 0.5]]), np.array([[0.5, 0.75, 1.0]])
    assert _split_overlaps(start, end)[0] == pytest.approx([0.375, 0.25, 0.375])
    assert CUT_WEIGHTS.sum() == pytest.approx(1.0)


def test_ignorance_shrinks_as_the_theory_of_large_samples_says():
    # For many rows the cut at γ is η̂ ± t se, and E t = √(π/2): ignorance is 2 q(1 − q) se √(π/2), up to 1/√n of it.
    rng = np.random.default_rng(3)
    x = rng.normal(size=40_000)
    P, y = both(1 / (1 + np.exp(-x))), rng.random(40_000) < 1 / (1 + np.exp(-x))
    m = fit_map(P, y)
    cov = np.linalg.inv(
        logistic_likelihood(intercept_and_score(x), y.astype(float), np.ones(40_000), m.contour.theta).hessian
    )
    for z in (-2.0, 0.0, 1.5):
        way = np.array([1.0, z])
        q = m.contour.plug_in_probabilities(np.array([z]))[0, 1]
        beliefs = m.contour.beliefs(np.array([z]))
        want = 2 * q * (1 - q) * np.sqrt(way @ cov @ way * np.pi / 2)
        assert (beliefs.plausibility - beliefs.belief)[0, 1] == pytest.approx(want, rel=0.01)


@pytest.mark.slow
def test_many_scores_in_groups_are_as_good_as_one_by_one(monkeypatch):
    P, y = draw_predictions(2500, 2, 1.5, 4)
    grouped = fit_map(P, y)
    monkeypatch.setattr(logistic_regression, "MAX_SCORE_GROUPS", 10**6)
    for one, other in zip(grouped.interval(P), fit_map(P, y).interval(P), strict=True):
        assert one == pytest.approx(other, abs=1e-6)


@pytest.mark.slow
def test_on_log_p_it_nearly_includes_the_identity_and_on_p_it_does_not():
    P, y = draw_predictions(20_000, 4, 1.0, 5)
    on_logs, on_p = fit_map(P, y), fit_map(P, y, on="probabilities")
    assert np.abs(on_logs.apply(P) - P).mean() < 0.01
    assert np.abs(on_p.apply(P) - P).mean() > 0.03
    # With many rows it is temperature scaling: the shares that are held off move a gradient per row by 3/5000 times
    # gaps of about 4 in log p, against a curvature of about 1.
    beta = TemperatureSpec().fit(P, one_hot(y, 4), np.ones(20_000)).beta
    assert on_logs.contour.theta == pytest.approx(beta, abs=4e-3)


def test_the_three_outputs_are_made_of_the_same_beliefs():
    P, y = draw_predictions(60, 3, 1.5, 6)
    beliefs = fit_map(P, y).beliefs(P)
    assert fit_map(P, y).apply(P) == pytest.approx(beliefs.pignistic, abs=1e-12)
    plausible = beliefs.plausibility / beliefs.plausibility.sum(axis=1, keepdims=True)
    assert fit_map(P, y, output="plausibility").apply(P) == pytest.approx(plausible, abs=1e-12)


@pytest.mark.parametrize(("n", "upper_bound"), [(60, 0.1), (6000, 0.01)])
def test_the_order_of_the_classes_matters_for_beliefs_while_rows_are_few_and_never_for_the_point(n, upper_bound):
    P, y = draw_predictions(n, 3, 1.5, 7)
    order = np.array([2, 0, 1])
    turned = fit_map(P[:, order], np.argsort(order)[y], output="point")
    assert turned.apply(P[:, order]) == pytest.approx(fit_map(P, y, output="point").apply(P)[:, order], abs=1e-9)
    away = np.abs(fit_map(P[:, order], np.argsort(order)[y]).apply(P[:, order]) - fit_map(P, y).apply(P)[:, order])
    assert 0 < away.max() < upper_bound


def test_rows_that_say_nothing_leave_one_parameter_and_are_noted():
    result = fit(EvidentialSpec(), Predictions([0, 1, 2], np.full((3, 3), 1 / 3)))
    assert "TN517" in [note.code for note in result.notes]
    P = np.array([[0.2, 0.3, 0.5]])
    assert result.predict_proba(P) == pytest.approx(P)
    low, high = result.predict_interval(P)
    assert low == pytest.approx(high, abs=1e-12)
    equal = fit(EvidentialSpec(), Predictions([0, 1, 1], [0.6] * 3))
    low, high = equal.predict_interval([0.6, 0.9])
    assert low[0] == pytest.approx(low[1])  # no slope is told, so all scores get the same
    assert (high - low)[0, 1] > 0.2


def test_separated_outcomes_and_exact_zeros_have_finite_answers():
    P = np.concatenate([np.eye(2), both([0.2, 0.8])])
    result = fit(EvidentialSpec(), Predictions([0, 1, 0, 1], P))
    assert np.isfinite(result.predict_proba(P)).all()
    assert "TN502" in [note.code for note in result.notes]
    low, high = result.predict_interval(np.eye(2))
    assert (low <= high).all()
    three = fit(EvidentialSpec(), Predictions([0, 1, 2], np.eye(3)))
    assert np.isfinite(three.predict_proba(np.eye(3))).all()


def test_intervals_come_through_the_fitted_calibrator():
    P, y = draw_predictions(100, 3, 1.5, 8)
    result = fit(EvidentialSpec(), Predictions(y, P))
    low, high = result.predict_interval(P)
    q = result.predict_proba(P)
    assert ((low <= q + 1e-12) & (q <= high + 1e-12)).all()


def test_two_parameters_are_for_two_classes():
    P, y = draw_predictions(30, 3, 1.0, 0)
    with pytest.raises(InputError, match=r"TO203.*3 classes"):
        fit_map(P, y, parameters=2)
