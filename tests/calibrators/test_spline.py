"""Smooth curves: the penalized spline in the log odds, and the one through the running sums of the confidence."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.special import expit, logit

from tests.calibrators.rows import both, draw_predictions, one_hot, powers
from tests.reference import columns, frame, golden
from trueodds.calibrators._curves.natural_spline import (
    MAX_SCORE_GROUPS,
    MIN_KNOT_GAP,
    CurvatureDirections,
    NaturalSpline,
    OutcomeCounts,
    banded_matrices,
    fit_spline,
    place_knots,
    second_derivative_matrix,
)
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.spline import ConfidenceMap, SplineSpec, fit_cumulative_spline
from trueodds.data.predictions import Predictions

KNOTS = np.array([-3.0, -1.0, -0.5, 2.0, 2.2])


def spline(P, y, w=None, **settings):
    P = np.asarray(P)
    return SplineSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def sorted_rows(x, y):
    """Single rows by rising log odds."""
    order = np.argsort(x)
    y = np.asarray(y, dtype=float)[order]
    return OutcomeCounts(x[order], y, 1 - y)


def excess(r, q):
    """How many nats per row q loses to the truth r: what a log loss on endless rows would show."""
    return float(np.mean(r * np.log(r / q) + (1 - r) * np.log((1 - r) / (1 - q))))


def roughness_matrix(knots):
    """K with ∫f″(x)² dx = fᵀKf for the spline through the values f at the knots, (m, m)."""
    return banded_matrices(knots)[0] @ second_derivative_matrix(knots)[1:-1]


# The curve


def test_the_curve_is_the_natural_cubic_spline():
    f = np.array([0.3, -1.0, 2.0, 0.0, 0.7])
    want, got = CubicSpline(KNOTS, f, bc_type="natural"), NaturalSpline(KNOTS, f)
    x = np.linspace(-3, 2.2, 101)
    assert got(x) == pytest.approx(want(x), abs=1e-12)
    assert got.slope(x) == pytest.approx(want(x, 1), abs=1e-11)
    assert got.second_derivatives == pytest.approx(want(KNOTS, 2), abs=1e-10)
    # Beyond the knots it is a line.
    assert got(np.array([-5.0])) == pytest.approx(f[0] - 2 * want(-3.0, 1))
    assert got(np.array([4.2])) == pytest.approx(f[-1] + 2 * want(2.2, 1))


def test_the_roughness_is_the_integral_of_the_squared_second_derivative():
    # f'' is a chain of straight pieces: ∫ over one of width h from a to b is h (a² + ab + b²)/3.
    f = np.array([0.3, -1.0, 2.0, 0.0, 0.7])
    g = second_derivative_matrix(KNOTS) @ f
    pieces = np.diff(KNOTS) * (g[:-1] ** 2 + g[:-1] * g[1:] + g[1:] ** 2) / 3
    assert f @ roughness_matrix(KNOTS) @ f == pytest.approx(pieces.sum(), rel=1e-12)


def test_an_infinite_place_is_where_the_line_leads_and_a_level_line_stays():
    line = NaturalSpline(np.array([0.0, 1.0]), np.array([0.0, 2.0]))
    assert line(np.array([-np.inf, np.inf])).tolist() == [-np.inf, np.inf]
    level = NaturalSpline(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    assert level(np.array([-np.inf, np.inf])).tolist() == [0.5, 0.5]


def test_knots_keep_a_distance_and_mirrored_scores_have_mirrored_knots():
    x = np.sort(np.concatenate([np.random.default_rng(0).normal(size=50), np.full(300, 1.0)]))
    knots = place_knots(OutcomeCounts(x, np.ones(350), np.ones(350)), 12)
    mirrored = place_knots(OutcomeCounts(-x[::-1], np.ones(350), np.ones(350)), 12)
    assert knots == pytest.approx(-mirrored[::-1], abs=1e-12)
    assert knots[[0, -1]].tolist() == x[[0, -1]].tolist()
    assert np.diff(knots).min() >= MIN_KNOT_GAP * (x[-1] - x[0]) / 11 * (1 - 1e-9)


# The penalized fit


def test_two_scores_are_met_exactly():
    # One of four came at .2, two of three at .6: the line in the log odds through 1/4 and 2/3 has the largest
    # likelihood, and no roughness.
    m = spline(both([0.2] * 4 + [0.6] * 3), [1, 0, 0, 0, 1, 1, 0])
    assert m.apply(both([0.2, 0.6]))[:, 1] == pytest.approx([1 / 4, 2 / 3], abs=1e-9)
    assert m.describe() == "2.0 degrees of freedom"


def test_the_reference_numbers_with_the_roughness_as_penalty():
    # Objective checked by quadrature to 1e-12 (golden/recalibration/spline_lucena.json, "roughness").
    want, rows = golden("recalibration/spline_lucena.json"), frame("recalibration/binary.csv")
    knots, expected = np.array(want["knots_logit"]), want["roughness"]
    solution = fit_spline(sorted_rows(logit(rows["p"]), rows["y"]), knots, expected["lam"])
    assert solution.curve.values == pytest.approx(np.array(expected["f_at_knots"]), abs=1e-8)
    assert expit(solution.curve(logit(np.array(expected["grid"])))) == pytest.approx(
        np.array(expected["pred_grid"]), abs=1e-8
    )
    eta = solution.curve(logit(rows["p"]))
    rough = solution.curve.values @ roughness_matrix(knots) @ solution.curve.values
    loss = (np.logaddexp(0, eta) - rows["y"] * eta).sum()
    assert (loss + expected["lam"] * rough) / len(eta) == pytest.approx(expected["value"], abs=1e-12)
    assert solution.converged


def truncated_powers(x, knots):
    """The basis of splinecalib, after Hastie, Tibshirani & Friedman: 1, x, and differences of truncated cubes."""
    last = knots[-1]
    cubes = [(np.maximum(x - k, 0) ** 3 - np.maximum(x - last, 0) ** 3) / (last - k) for k in knots[:-1]]
    return np.stack([np.ones_like(x), x, *(c - cubes[-1] for c in cubes[:-1])], axis=1)


def test_the_curves_of_splinecalib_are_curves_of_ours():
    # splinecalib 0.0.13's objective, mean loss + λ|coef|²/m, at its own optimum: value and predictions.
    want, rows = golden("recalibration/spline_lucena.json"), frame("recalibration/binary.csv")
    knots, expected = np.array(want["knots_logit"]), want["package_objective"]
    coef = np.array(expected["coef"])
    curve = NaturalSpline(knots, truncated_powers(knots, knots) @ coef)
    eta = curve(logit(rows["p"]))
    objective = (np.logaddexp(0, eta) - rows["y"] * eta).mean() + expected["lam"] * (coef @ coef) / len(coef)
    assert objective == pytest.approx(expected["objective"], abs=1e-10)
    assert expit(curve(logit(np.array(expected["grid"])))) == pytest.approx(np.array(expected["pred_grid"]), abs=1e-10)


def test_no_slope_is_left_and_an_independent_minimizer_finds_the_same_with_votes_and_weights():
    rng = np.random.default_rng(1)
    x, y, w = np.sort(rng.normal(size=80) * 2), rng.random(80), rng.random(80)
    knots, penalty = np.array([x[0], -1.0, 0.0, 1.0, x[-1]]), 0.7
    solution = fit_spline(OutcomeCounts(x, w * y, w * (1 - y)), knots, penalty)
    B = np.stack([NaturalSpline(knots, values)(x) for values in np.eye(5)], axis=1)
    K = roughness_matrix(knots)

    def slope(f):
        return B.T @ (w * (expit(B @ f) - y)) + 2 * penalty * K @ f

    def loss(f):
        return w @ (np.logaddexp(0, B @ f) - y * (B @ f)) + penalty * f @ K @ f

    assert np.abs(slope(solution.curve.values)).max() / w.sum() < 1e-8
    result = minimize(loss, np.zeros(5), jac=slope, method="BFGS", options={"gtol": 1e-10})
    assert solution.curve.values == pytest.approx(result.x, abs=1e-6)


def test_a_large_penalty_gives_the_line_and_a_small_one_the_rate_at_each_knot():
    P, y = draw_predictions(500, 2, 2.0, 3)
    x = logit(P[:, 1])
    line = minimize(lambda t: (np.logaddexp(0, t[0] + t[1] * x) - y * (t[0] + t[1] * x)).sum(), [0.0, 1.0]).x
    at = np.array([0.1, 0.5, 0.8])
    # A minimizer that compares values stops within about 1e-5 of the parameters.
    assert spline(P, y, penalty=1e9).apply(both(at))[:, 1] == pytest.approx(
        expit(line @ [[1] * 3, logit(at)]), abs=1e-4
    )
    # Three scores, three knots: nothing but the penalty keeps the curve from the rates.
    predicted, outcomes = np.repeat([0.2, 0.5, 0.8], 10), np.repeat([1, 0, 1, 0, 1, 0], [7, 3, 2, 8, 6, 4])
    close = spline(both(predicted), outcomes, knots=3, penalty=1e-9).apply(both([0.2, 0.5, 0.8]))[:, 1]
    assert close == pytest.approx([0.7, 0.2, 0.6], abs=1e-6)


def test_the_penalty_is_chosen_by_groups_almost_as_by_all_scores():
    rng = np.random.default_rng(5)
    x = rng.normal(size=8 * MAX_SCORE_GROUPS) * 2
    y = (rng.random(len(x)) < expit(x + 0.8 * np.sin(1.5 * x))) * 1.0
    rows = sorted_rows(x, y)
    knots = place_knots(rows, 12)
    grouped, all_of_them = rows.pool_scores(MAX_SCORE_GROUPS), rows.pool_scores(len(x))
    assert len(grouped.x) <= MAX_SCORE_GROUPS
    assert grouped.events.sum() == pytest.approx(y.sum())
    one, other = fit_spline(grouped, knots), fit_spline(all_of_them, knots)
    assert one.degrees_of_freedom == pytest.approx(other.degrees_of_freedom, abs=0.2)
    assert 4 < one.degrees_of_freedom < 12


def test_penalties_that_are_not_tried_would_not_have_been_chosen(monkeypatch):
    rng = np.random.default_rng(0)
    x = [np.sort(rng.normal(size=n) * 2) for n in (50, 200, 200, 1000, 1000)]
    shapes = [lambda x: x, lambda x: x - 3, lambda x: -x, lambda x: np.abs(x) - 1, lambda x: x + np.sin(2 * x)]
    rows = [sorted_rows(a, rng.random(len(a)) < expit(f(a))) for a, f in zip(x, shapes, strict=True)]
    quick = [fit_spline(data, place_knots(data, 12)) for data in rows]
    monkeypatch.setattr(CurvatureDirections, "max_likelihood_gain", lambda self, penalty: np.inf)
    slow = [fit_spline(data, place_knots(data, 12)) for data in rows]
    assert [one.degrees_of_freedom for one in quick] == [one.degrees_of_freedom for one in slow]
    assert sum(one.n_passes for one in quick) < 0.8 * sum(one.n_passes for one in slow)


def test_a_known_smooth_distortion_is_recovered():
    # No smoother of 12 knots loses more than 12 free parameters would: χ²₁₂ / 2n on average, within three of its
    # standard deviations; unfixed, the distortion costs twenty times that.
    n, at = 20_000, np.random.default_rng(0).normal(size=5_000) * 2
    rng = np.random.default_rng(7)
    x = rng.normal(size=n) * 2
    distorted = lambda x: x + 0.8 * np.sin(1.5 * x)
    m = spline(both(expit(x)), rng.random(n) < expit(distorted(x)))
    bound = (12 + 3 * 24**0.5) / (2 * n)
    assert excess(expit(distorted(at)), expit(at)) > 20 * bound
    assert excess(expit(distorted(at)), m.apply(both(expit(at)))[:, 1]) < bound


@pytest.mark.slow
def test_on_calibrated_rows_little_is_lost_to_leaving_them_alone():
    # As above; the mean of 40 data sets has a standard deviation of sqrt(24/40) / 2n.
    n, at, lost = 500, np.random.default_rng(0).normal(size=2_000) * 2, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=n) * 2
        m = spline(both(expit(x)), rng.random(n) < expit(x))
        lost.append(excess(expit(at), m.apply(both(expit(at)))[:, 1]))
    assert 0 < np.mean(lost) < (12 + 3 * (24 / 40) ** 0.5) / (2 * n)


def test_weights_count_as_rows_and_those_that_are_no_counts_only_weigh_rows_against_each_other():
    P, y = draw_predictions(400, 2, 1.0, 6)
    y = np.where(np.abs(P[:, 1] - 0.5) < 0.2, 1, y)  # a wave
    one, double = spline(P, y), spline(P, y, np.full(400, 2.0))
    assert double.curves[0].degrees_of_freedom == pytest.approx(
        spline(np.tile(P, (2, 1)), np.tile(y, 2)).curves[0].degrees_of_freedom
    )
    assert double.curves[0].degrees_of_freedom > one.curves[0].degrees_of_freedom > 3
    assert spline(P, y, np.full(400, 0.01)).curves[0].degrees_of_freedom == pytest.approx(
        one.curves[0].degrees_of_freedom
    )


def test_one_score_becomes_its_rate():
    m = spline(both([0.9] * 4), [1, 1, 1, 0])
    assert m.apply(both([0.9]))[0] == pytest.approx([0.25, 0.75], abs=1e-12)
    # Elsewhere the log odds move by as much: log 3 − log 9.
    assert m.apply(both([0.5]))[0, 1] == pytest.approx(1 / 4, abs=1e-12)
    # Scores that float32 tells apart by chance are one.
    near = spline(both([0.9, 0.9 + 1e-9, 0.9, 0.9 + 1e-9]), [1, 1, 1, 0])
    assert near.apply(both([0.5]))[0, 1] == pytest.approx(1 / 4, abs=1e-6)


@pytest.mark.parametrize("y", [[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1], [0, 0, 1, 0, 1, 1]])
def test_separated_outcomes_give_a_finite_line_and_say_so(y):
    P = both([0.1, 0.2, 0.4, 0.4, 0.8, 0.9])
    result = fit(SplineSpec(), Predictions(y, P))
    assert not result.calibration_map.converged
    assert "TN528" in [note.code for note in result.notes]
    assert (result.predict_proba([1e-6, 0.5, 1 - 1e-6]) > 0).all()


def test_a_class_that_never_occurred_keeps_its_column():
    P, y = draw_predictions(200, 3, 1.0, 1)
    result = fit(SplineSpec(), Predictions(np.minimum(y, 1), P))
    assert {"TN501", "TN528"} <= {note.code for note in result.notes}
    assert result.predict_proba(P)[:, 2].mean() < P[:, 2].mean() / 3


def test_one_row_gives_probabilities():
    for kind in ("natural", "gupta"):
        Q = spline(both([0.7]), [1], kind=kind).apply(both([0.0, 0.7, 1.0]))
        assert np.isfinite(Q).all()
        assert Q.sum(axis=1) == pytest.approx(1)


def test_exact_zeros_are_where_the_fit_saw_them_and_its_floor_is_noted():
    P, y = draw_predictions(300, 2, 1.5, 2)
    result = fit(SplineSpec(), Predictions([*y, 0, 1], np.concatenate([P, both([0.0, 1.0])])))
    low, high = result.predict_proba([0.0, 1.0])[:, 1]
    assert (low, high) == pytest.approx(tuple(result.predict_proba([1e-12, 1 - 1e-12])[:, 1]), rel=1e-4)
    assert 0 < low < 1e-6
    assert 0 < 1 - high < 1e-6
    assert "TN502" in [note.code for note in result.notes]


def test_a_curve_that_falls_says_so():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    result = fit(SplineSpec(), Predictions(rng.random(4000) < 4 * (p - 0.5) ** 2, p))
    note = next(note for note in result.notes if note.code == "TN529")
    total = float(np.maximum(-np.diff(result.predict_proba(np.linspace(p.min(), p.max(), 20_001))[:, 1]), 0).sum())
    assert f"decreases in places, by {total:.2g} in total" in note.text
    P, y = draw_predictions(2000, 2, 1.0, 0)
    assert fit(SplineSpec(), Predictions(y, P)).notes == ()


def test_a_curve_for_each_class_keeps_rows_whole():
    P, y = draw_predictions(3000, 4, 2.0, 0)
    m = spline(P, y)
    assert len(m.curves) == 4
    fresh, y_fresh = draw_predictions(3000, 4, 2.0, 1)
    truth = powers(fresh, 0.5)
    loss = [-np.log(Q[np.arange(3000), y_fresh]).mean() for Q in (fresh, m.apply(fresh), truth)]
    assert loss[2] - 0.005 < loss[1] < loss[0] - 0.1


# The spline of the confidence


def test_the_reference_numbers_of_the_confidence():
    # The official Spline class: knots 2e-16, curve 9e-16 (golden/recalibration/spline_gupta.json).
    want, rows = golden("recalibration/spline_gupta.json"), frame("recalibration/multi4.csv")
    P = columns(rows)
    m = spline(P, rows["y"], kind="gupta")
    assert m.confidence(np.array(want["grid"])) == pytest.approx(np.array(want["pred_grid"]), abs=1e-8)
    order = np.argsort(P.max(axis=1))
    s, right = P.max(axis=1)[order], (P.argmax(axis=1) == rows["y"])[order]
    h = np.cumsum(right - s) / 400
    curve = fit_cumulative_spline(np.arange(400) / 399, h, np.ones(400), want["knots"])
    assert curve.values == pytest.approx(np.array(want["coef"]), abs=1e-10)


def test_the_weights_between_neighbors_are_not_swapped():
    # The official code swaps them, which is up to .012 off on these rows.
    want, rows = golden("recalibration/spline_gupta.json"), frame("recalibration/multi4.csv")
    m = spline(columns(rows), rows["y"], kind="gupta")
    x = np.array(want["grid"][1:])
    j = np.searchsorted(m.scores, x)
    part = (x - m.scores[j - 1]) / (m.scores[j] - m.scores[j - 1])
    right = part * m.confidences[j] + (1 - part) * m.confidences[j - 1]
    swapped = (1 - part) * m.confidences[j] + part * m.confidences[j - 1]
    assert m.confidence(x) == pytest.approx(right, abs=1e-12)
    assert 0.005 < np.abs(m.confidence(x) - swapped).max() < 0.02


def test_equal_confidences_are_pooled_whatever_the_row_order_and_weight_two_is_two_rows():
    rng = np.random.default_rng(4)
    P = rng.integers(1, 6, size=(60, 3)) / 1.0
    P /= P.sum(axis=1, keepdims=True)
    y, w = rng.integers(0, 3, 60), rng.integers(1, 4, 60)
    one, order, many = spline(P, y, w, kind="gupta"), rng.permutation(60), np.repeat(np.arange(60), w)
    for other in (spline(P[order], y[order], w[order], kind="gupta"), spline(P[many], y[many], kind="gupta")):
        assert other.scores.tolist() == one.scores.tolist()
        assert other.confidences == pytest.approx(one.confidences, abs=1e-9)
    # Weights count for what they are worth to each other.
    assert spline(P, y, w / 1e3, kind="gupta").confidences == pytest.approx(one.confidences, abs=1e-9)


def test_the_others_share_the_rest_as_they_did():
    # Said .6 and believed .8: the others' .3 and .1 become .15 and .05.
    m = ConfidenceMap(np.array([0.5, 0.7]), np.array([0.8, 0.8]), 0)
    assert m.apply(np.array([[0.3, 0.6, 0.1]]))[0] == pytest.approx([0.15, 0.8, 0.05])
    # A sure row leaves nothing to share in: evenly.
    assert m.apply(np.array([[0.0, 1.0, 0.0]]))[0] == pytest.approx([0.1, 0.8, 0.1])


def test_the_confidence_never_falls_below_what_keeps_the_label():
    # Believed .2: with .3 of the others' .4 the next class would be more probable. At x = .75 / 1.75 both are equal.
    m = ConfidenceMap(np.array([0.5, 0.7]), np.array([0.2, 0.2]), 0)
    q = m.apply(np.array([[0.3, 0.6, 0.1]]))[0]
    assert q == pytest.approx([3 / 7, 3 / 7, 1 / 7])
    assert q[1] > q[0]
    P = np.random.default_rng(0).dirichlet(np.full(5, 0.5), 5000)
    Q = ConfidenceMap(np.array([0.2]), np.array([0.0]), 0).apply(P)
    assert (Q.argmax(axis=1) == P.argmax(axis=1)).all()
    assert Q.sum(axis=1) == pytest.approx(1, abs=1e-12)


def test_what_was_clipped_or_raised_is_noted():
    P, y = draw_predictions(400, 4, 3.0, 0)
    result = fit(SplineSpec("gupta"), Predictions(y, P))
    assert result.calibration_map.count_raised(P) > 0
    note = next(note for note in result.notes if note.code == "TN531")
    assert f"in {result.calibration_map.count_raised(P):,} of 400 rows" in note.text
    assert (result.predict_proba(P).argmax(axis=1) == P.argmax(axis=1)).all()


def test_the_confidence_becomes_believable():
    P, y = draw_predictions(20_000, 4, 2.0, 0)
    fresh, y_fresh = draw_predictions(20_000, 4, 2.0, 1)
    m = spline(P, y, kind="gupta")
    right = fresh.argmax(axis=1) == y_fresh
    q = m.apply(fresh).max(axis=1)
    for low in (0.4, 0.6, 0.8):  # mean said less share right, in groups of more than 2,000: five standard errors
        inside = (q > low) & (q < low + 0.2)
        assert inside.sum() > 2000
        assert abs(q[inside].mean() - right[inside].mean()) < 5 * 0.5 / inside.sum() ** 0.5
    x = fresh.max(axis=1)
    assert x[x > 0.8].mean() - right[x > 0.8].mean() > 0.1


def test_one_confidence_becomes_its_rate():
    m = spline(np.tile([0.2, 0.7, 0.1], (4, 1)), [1, 1, 0, 2], kind="gupta")
    assert m.apply(np.array([[0.2, 0.7, 0.1]]))[0] == pytest.approx([1 / 3, 0.5, 1 / 6])


# Settings and files


def test_the_knots_that_were_used_are_read_back():
    assert [SplineSpec(kind).settings()["knots"] for kind in ("natural", "gupta")] == [12, 6]
    assert SplineSpec(knots=5).settings()["knots"] == 5
