"""Beta calibration."""

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.calibrators.rows import both, draw_predictions, one_hot
from tests.reference import frame, golden
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.llo import LloSpec
from trueodds.calibrators.logistic import BetaCurve, BetaMap, BetaSpec
from trueodds.data.predictions import Predictions


def fit_map(P, y, parameters="abm", w=None):
    return BetaSpec(parameters).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def loss(P, Y, m, w=1.0):
    return -(w * (Y * np.log(m.apply(P))).sum(axis=1)).sum()


def bounded(P, y, w):
    """The least loss with a, b ≥ 0 that a general minimizer finds."""
    up, down = np.log(P[:, 1]), -np.log(P[:, 0])

    def value(t):
        eta = t[0] + t[1] * up + t[2] * down
        return float(w @ (np.logaddexp(0, eta) - y * eta))

    starts = ([0, 1, 1], [0, 0, 0], [0, 3, 0], [0, 0, 3])
    return min(minimize(value, s, bounds=[(None, None), (0, None), (0, None)]).fun for s in starts)


def test_two_scores_are_met_exactly():
    # One parameter, q(1/2) = 1/2: of four said .9 three came, of four said .1 one: a ln 9 = ln 3, a = 1/2.
    m = fit_map(both([0.9] * 4 + [0.1] * 4), [1, 1, 1, 0, 1, 0, 0, 0], "a")
    assert (m.curves[0].a, m.curves[0].b, m.curves[0].c) == (pytest.approx(0.5), pytest.approx(0.5), 0.0)


@pytest.mark.parametrize("parameters", ["abm", "am", "ab", "a"])
def test_the_reference_numbers(parameters):
    # Maximum likelihood by an independent program; betacal stops 1e-4 short (golden/recalibration/beta.json).
    want, rows = golden("recalibration/beta.json"), frame("recalibration/binary.csv")
    P, y = both(rows["p"]), rows["y"]
    m = fit_map(P, y, parameters)
    assert m.apply(both(want["grid"]))[:, 1] == pytest.approx(np.array(want[parameters]["pred_grid"]), abs=1e-8)
    assert loss(P, one_hot(y), m) <= want[parameters]["nll"] + 1e-9
    for name in "abc":
        assert getattr(m.curves[0], name) == pytest.approx(want[parameters][name], abs=1e-7)


def test_with_equal_powers_it_is_llo():
    P, y = draw_predictions(400, 2, 2.0, 0)
    llo = LloSpec().fit(P, one_hot(y), np.ones(400))
    assert fit_map(P, y, "am").apply(P) == pytest.approx(llo.apply(P), abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_bounds_are_kept_at_the_exact_maximum(seed):
    # Labels by curves that bend the other way, fall, or are flat: betacal drops one bound and never looks again.
    rng = np.random.default_rng(seed)
    p = rng.random(80) * 0.98 + 0.01
    truth = [p**3, 1 - (1 - p) ** 3, 1 - p, np.full(80, 0.3), 0.5 + 0.4 * np.sin(6 * p), p][seed % 6]
    P, y, w = both(p), (rng.random(80) < truth).astype(float), rng.random(80) + 0.2
    m = fit_map(P, y, w=w)
    curve = m.curves[0]
    assert min(curve.a, curve.b) >= 0
    assert loss(P, one_hot(y), m, w) <= bounded(P, y, w) + 1e-7


def test_a_bound_that_the_first_refit_breaks_is_looked_at_again():
    # Outcomes that fall with the score: without a bound a < 0, on the side a = 0 then b < 0; the best is flat.
    p = np.array([0.1, 0.2, 0.4, 0.6, 0.8, 0.9] * 2)
    y = np.array([1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0])
    curve = fit_map(both(p), y).curves[0]
    assert (curve.a, curve.b) == (0.0, 0.0)
    assert curve.c == pytest.approx(0.0, abs=1e-9)  # half of them came


@pytest.mark.parametrize("parameters", ["abm", "am", "ab", "a"])
def test_a_curve_that_cannot_rise_says_so(parameters):
    P, y = draw_predictions(300, 2, 1.0, 3)
    result = fit(BetaSpec(parameters), Predictions(1 - y, P))
    assert "TN517" in [note.code for note in result.notes]
    q = result.predict_proba([0.1, 0.9])[:, 1]
    assert q[0] == pytest.approx(q[1])


def test_it_finds_the_curve_that_made_the_shares():
    P, w = both(np.linspace(0.01, 0.99, 40)), np.linspace(1, 2, 40)
    true = BetaMap((BetaCurve(0.4, 1.7, -0.3),))
    curve = BetaSpec().fit(P, true.apply(P), w).curves[0]
    assert (curve.a, curve.b, curve.c) == pytest.approx((0.4, 1.7, -0.3), abs=1e-6)


def test_the_estimate_is_within_its_standard_errors_of_the_truth():
    rng = np.random.default_rng(4)
    P = both(rng.random(20_000))
    q = BetaMap((BetaCurve(0.6, 1.4, -0.2),)).apply(P)[:, 1]
    curve = fit_map(P, rng.random(20_000) < q).curves[0]
    X = np.stack([np.ones(20_000), np.log(P[:, 1]), -np.log(P[:, 0])], axis=1)
    errors = np.sqrt(np.diag(np.linalg.inv((X * (q * (1 - q))[:, None]).T @ X)))
    away = np.array([curve.c + 0.2, curve.a - 0.6, curve.b - 1.4])
    assert (np.abs(away) < 4 * errors).all()  # four standard errors: once in 5,000 seeds


def test_float32_is_calibrated_like_float64():
    # netcal 1.4 makes float32 input worse than it was.
    P, y = draw_predictions(2000, 2, 1.5, 0)
    wide, narrow = (fit(BetaSpec(), Predictions(y, p)).calibration_map for p in (P, P.astype(np.float32)))
    assert loss(P, one_hot(y), wide) < loss(P, one_hot(y), BetaMap((BetaCurve(1.0, 1.0, 0.0),))) - 10
    # Rounding p moves each log by 6e-8; near 1 the other side's by 6e-8/(1 − p), which few rows have above 1e-4.
    assert narrow.apply(P) == pytest.approx(wide.apply(P), abs=1e-4)


def test_more_classes_are_one_against_the_rest_over_their_sum():
    P, y = draw_predictions(500, 3, 2.0, 2)
    m = fit_map(P, y)
    raw = np.stack([fit_map(both(P[:, c]), y == c).apply(both(P[:, c]))[:, 1] for c in range(3)], axis=1)
    assert m.apply(P) == pytest.approx(raw / raw.sum(axis=1, keepdims=True), abs=1e-9)
    assert m.describe() == "3 curves"


def test_separated_outcomes_get_a_finite_curve_and_say_so():
    result = fit(BetaSpec(), Predictions([0, 0, 1, 1], [0.2, 0.3, 0.7, 0.9]))
    assert not result.calibration_map.converged
    assert "TN515" in [note.code for note in result.notes]
    q = result.predict_proba([0.2, 0.3, 0.7, 0.9])[:, 1]
    assert (np.diff(q) >= 0).all()
    assert 0 < q[0] < q[-1] < 1


def test_exact_zeros_and_ones_pass_through_where_their_power_is_positive():
    assert BetaMap((BetaCurve(1.0, 1.0, 0.3),)).apply(np.eye(2)).tolist() == np.eye(2).tolist()
    # a = 0 does not look at log p, so a zero is as any other small value.
    assert BetaMap((BetaCurve(0.0, 1.0, 0.0),)).apply(np.array([[1.0, 0.0]]))[0, 1] == pytest.approx(0.5)
    above_one = np.nextafter(1.0, 2.0)
    assert BetaMap((BetaCurve(1.0, 1.0, 0.0),)).apply(np.array([[0.0, above_one]])).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("parameters", ["abm", "am", "ab", "a"])
def test_equal_scores_have_a_finite_answer(parameters):
    m = fit_map(both([0.5] * 4), [1, 1, 1, 0], parameters)
    want = 0.75 if parameters.endswith("m") else 0.5  # q(1/2) = 1/2 where that is asked
    assert m.apply(both([0.5]))[0, 1] == pytest.approx(want)
