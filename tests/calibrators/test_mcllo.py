"""Multicategory linear in log odds."""

import numpy as np
import pytest
from scipy.stats import chi2

from tests.calibrators.linear import derived_chance, reference, surplus
from tests.calibrators.rows import both, draw_predictions, labels, one_hot
from tests.reference import columns, frame, golden
from trueodds.calibrators._glm.log_probabilities import floored_logs, softmax
from trueodds.calibrators._glm.newton import minimize_newton
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.llo import LloSpec
from trueodds.calibrators.mcllo import MclloMap, MclloSpec
from trueodds.calibrators.vector import BiasCorrectedTemperatureSpec
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.tallies.softmax_likelihood import softmax_by_class


def fit_map(P, y, w=None, **settings):
    return MclloSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def codes(result):
    return [note.code for note in result.notes]


def slope_left(m, P, Y, w, penalty):
    """The largest slope per row of loss and penalty at a map's parameters."""
    x = floored_logs(P, m.min_prob)
    x = x - x[:, [m.baseline]]
    theta = np.column_stack([m._insert_baseline(m.gamma, 0.0), m._insert_baseline(m.tau, 0.0)])
    left = softmax_by_class(x[:, :, None], Y, w, theta.reshape(-1)).gradient.reshape(-1, 2)
    left = np.delete(left, m.baseline, axis=0) + 2 * penalty * np.column_stack([m.gamma - 1, m.tau])
    return np.abs(left).max() / w.sum()


def test_two_kinds_of_rows_get_their_rates():
    # Two kinds of rows, two parameters for each of two classes: τ and γ are met exactly. Against class 2 the stated log
    # odds are ±log 6 for class 0 and 0, log 3 for class 1; those of what came log 2, −log 2 and 0, 0.
    # So τ₀ + γ₀ log 6 = log 2 and τ₀ − γ₀ log 6 = −log 2: γ₀ = log 2 / log 6, τ₀ = 0; class 1 has τ = γ = 0.
    P = np.array([[0.6, 0.3, 0.1]] * 4 + [[1, 6, 6]] * 0 + [[0.1, 0.6, 0.6]] * 0)
    P = np.concatenate([P, np.array([[0.1, 0.6, 0.6]] * 4) / 1.3])
    m = fit_map(P, [0, 0, 1, 2, 0, 1, 1, 2])
    assert m.apply(P[[0, 4]]) == pytest.approx(np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]), abs=1e-9)
    # Class 1 against 2: said log 3 and 0, came 0 and log 2, so τ₁ = log 2 and γ₁ = −log 2 / log 3.
    assert (m.tau[1], m.gamma[1]) == (pytest.approx(np.log(2)), pytest.approx(-np.log(2) / np.log(3)))


@pytest.mark.parametrize("baseline", range(4))
def test_the_reference_numbers(baseline):
    # scipy's BFGS on δ 5e-8; with the last class dirichletcal's VectorScaling 4e-13 (golden/recalibration/mcllo.json).
    want, rows = golden("recalibration/mcllo.json")[f"base{baseline}"], reference()
    m = MclloSpec(baseline=baseline).fit(rows.P, rows.Y, rows.w)
    assert m.tau == pytest.approx(want["tau"], abs=1e-9)
    assert m.gamma == pytest.approx(want["gamma"], abs=1e-9)
    assert m.apply(rows.test) == pytest.approx(np.array(want["pred"]), abs=1e-9)
    changed = int((m.apply(rows.P).argmax(axis=1) != rows.P.argmax(axis=1)).sum())
    assert changed == want["argmax_changed"]
    assert m.n_passes <= 8
    # scipy's inverse Hessian, at parameters 5e-8 off.
    V = m.uncertainty.covariance
    assert np.sqrt(V[:, 0, 0]) == pytest.approx(want["se_tau"], abs=1e-7)
    assert np.sqrt(V[:, 1, 1]) == pytest.approx(want["se_gamma"], abs=1e-7)
    assert V[:, 0, 1] == pytest.approx(np.array(want["cov_tau_gamma"])[:3, 3:].diagonal(), abs=1e-7)
    assert (m.uncertainty.likelihood_ratio, m.uncertainty.rank) == (pytest.approx(want["lrt"], abs=1e-8), want["df"])
    assert m.uncertainty.pvalue == pytest.approx(want["p_lrt"], rel=1e-7)


def test_sums_of_parts_of_the_rows_find_the_same_fit():
    # Seven random parts of the rows; their sums differ from those of all by rounding, and Newton's last step is exact.
    rows = reference()
    part = np.random.default_rng(0).integers(0, 7, 400)
    x = floored_logs(rows.P, 1e-12)
    x = x[:, [1, 2, 3]] - x[:, [0]]
    means = sum(x[part == i].sum(axis=0) for i in range(7)) / 400
    x = np.insert(x - means, 0, 0.0, axis=1)
    ties = np.eye(8)[:, 2:]

    def sums(theta):
        partial_sums = [
            softmax_by_class(x[part == i, :, None], rows.Y[part == i], rows.w[part == i], theta, tying=ties)
            for i in range(7)
        ]
        return sum(partial_sums[1:], start=partial_sums[0])

    solution = minimize_newton(sums, np.column_stack([np.ones(3), means]).reshape(-1))
    m = MclloSpec(baseline=0).fit(rows.P, rows.Y, rows.w)
    assert solution.theta[::2] == pytest.approx(m.gamma, abs=1e-12)
    assert solution.theta[1::2] - solution.theta[::2] * means == pytest.approx(m.tau, abs=1e-12)


def test_each_baseline_is_another_model_and_negative_ones_count_from_the_last():
    rows = reference()
    recalibrated = [MclloSpec(baseline=c).fit(rows.P, rows.Y, rows.w).apply(rows.test) for c in (-4, -3, -2, -1)]
    max_difference = max(np.abs(a - b).max() for a in recalibrated for b in recalibrated)
    assert max_difference == pytest.approx(golden("recalibration/mcllo.json")["max_pred_diff_between_bases"], abs=1e-9)


def test_for_two_classes_it_is_llo():
    P, y = draw_predictions(800, 2, 2.0, 6)
    w = np.random.default_rng(0).random(800)
    want = LloSpec().fit(P, one_hot(y), w)
    for baseline in (0, 1):
        m = fit_map(P, y, w, baseline=baseline)
        assert m.apply(P) == pytest.approx(want.apply(P), abs=1e-10)
        assert m.gamma[0] == pytest.approx(want.gamma, abs=1e-10)
        assert m.tau[0] == pytest.approx(want.tau if baseline == 0 else -want.tau, abs=1e-10)


def test_with_equal_slopes_in_truth_it_finds_the_bias_corrected_temperature():
    P = draw_predictions(300, 4, 1.5, 2)[0]
    Y = softmax(0.6 * np.log(P) + np.array([0.3, -0.2, 0.1, -0.2]))
    other = BiasCorrectedTemperatureSpec().fit(P, Y, np.ones(300)).apply(P)
    for baseline in range(4):
        assert MclloSpec(baseline=baseline).fit(P, Y, np.ones(300)).apply(P) == pytest.approx(other, abs=1e-8)


@pytest.mark.parametrize("penalty", [0, 0.5, 20.0])
@pytest.mark.parametrize("k", [2, 4, 7])
def test_no_slope_is_left(penalty, k):
    rng = np.random.default_rng(k)
    P, _ = draw_predictions(500, k, 1.7, k)
    Y, w = rng.dirichlet(np.ones(k), 500), rng.random(500)
    m = MclloSpec(penalty=penalty, baseline=k // 2).fit(P, Y, w)
    assert m.converged
    assert slope_left(m, P, Y, w, penalty) <= 1e-8


@pytest.mark.slow
def test_many_classes_go_without_curvature():
    # 520 classes have 1,038 parameters: more than are solved for by Newton's method.
    P = np.random.default_rng(0).dirichlet(np.full(520, 0.3), 2000)
    Y, w = softmax(0.8 * np.log(np.maximum(P, 1e-12))), np.ones(2000)
    m = MclloSpec(penalty=1.0).fit(P, Y, w)
    assert m.converged
    assert slope_left(m, P, Y, w, 1.0) <= 1e-8
    assert m.uncertainty.std_error_method == "many"
    assert m.table(tuple(range(520)))[-1].startswith("No standard errors: beyond 501 classes")


def test_a_fit_to_its_own_result_changes_nothing():
    # Such maps form a group, so a likelihood ratio after recalibration is 0 on the rows of the fit:
    # it confirms nothing.
    P, y = draw_predictions(800, 4, 2.0, 6)
    refitted = fit_map(fit_map(P, y).apply(P), y)
    assert (refitted.tau, refitted.gamma) == (pytest.approx(0, abs=1e-7), pytest.approx(1, abs=1e-7))


def test_the_parameters_are_within_their_errors_of_the_truth():
    true = MclloMap(np.array([0.4, -0.3]), np.array([0.5, 1.3]), 2, 1e-12)
    P = draw_predictions(20_000, 3, 1.0, 5)[0]
    m = fit_map(P, labels(true.apply(P), np.random.default_rng(5)))
    x = np.log(P) - np.log(P[:, [2]])
    theta = np.array([0.5, 0.4, 1.3, -0.3, 0.0, 0.0])
    H = softmax_by_class(x[:, :, None], np.full((20_000, 3), 1 / 3), np.ones(20_000), theta).hessian[:4, :4]
    deviation = np.column_stack([m.gamma - true.gamma, m.tau - true.tau]).reshape(-1)
    assert deviation @ H @ deviation < chi2.isf(1e-4, 4)  # Wald's statistic has 2(K − 1) degrees of freedom


def test_with_few_rows_the_penalty_costs_less_than_doing_without():
    # Unpenalized on n = 396, K = 7 it was worse than doing nothing (log loss .565 against .501).
    penalized, unpenalized = (surplus(MclloSpec(penalty=p), 396, 7, 8, seed=1, sharpness=3.0).mean() for p in (0.5, 0))
    assert penalized < unpenalized
    assert penalized < derived_chance(12, 396, 8)
    P, y = draw_predictions(100, 7, 1.0, 1)
    assert "TN535" in codes(fit(MclloSpec(), Predictions(y, P)))
    assert "TN535" not in codes(fit(MclloSpec(penalty=0.5), Predictions(y, P)))


def test_a_tiny_baseline_throws_the_row_to_the_largest_slope():
    # golden/recalibration/mcllo_boundary_artifact.json: δ = 1, γ = (2, 4), p = (.6, .4, ε) over its sum.
    m = MclloMap(np.zeros(2), np.array([2.0, 4.0]), 2, 1e-12)
    for epsilon, q in golden("recalibration/mcllo_boundary_artifact.json")["q_by_eps"]:
        P = np.array([[0.6, 0.4, epsilon]])
        assert m.apply(P / P.sum())[0] == pytest.approx(q, rel=1e-7)


def test_such_rows_are_counted_and_a_safer_baseline_is_named():
    rng = np.random.default_rng(3)
    P = rng.dirichlet([4, 4, 0.05], 2000) + 1e-9
    P /= P.sum(axis=1, keepdims=True)
    true = MclloMap(np.zeros(2), np.array([0.5, 1.5]), 2, 1e-12)
    result = fit(MclloSpec(), Predictions(labels(true.apply(P), rng), P))
    (note,) = [note for note in result.notes if note.code == "TN542"]
    assert "baseline=0" in note.text or "baseline=1" in note.text
    assert "TN542" not in codes(fit(MclloSpec(baseline=0), Predictions(labels(P, rng), P)))


def test_exact_zeros_and_slopes_of_any_sign():
    P = np.array([[0.0, 0.3, 0.7]])
    stays, joins, takes = (MclloMap(np.zeros(2), np.array([a, 1.0]), 2, 1e-12).apply(P)[0] for a in (0.5, 0.0, -1.0))
    # Against the baseline .7 class 1 has odds 3/7; class 0 has odds 0, or 0⁰ = 1, or .7e12.
    assert stays == pytest.approx([0, 0.3, 0.7])
    assert joins == pytest.approx(np.array([1, 3 / 7, 1]) / (2 + 3 / 7))
    # The fit takes class 0 for 1e-12, so that 1/0 is 0.7e12 against the baseline.
    assert takes == pytest.approx([1, (3 / 7) / 0.7e12, 1 / 0.7e12], rel=1e-9)


def test_a_baseline_of_exactly_zero_is_not_needed_where_slopes_are_equal():
    P = np.array([[0.2, 0.8, 0.0], [0.0, 1.0, 0.0]])
    equal = MclloMap(np.array([0.3, 0.3]), np.array([2.0, 2.0]), 2, 1e-12).apply(P)
    assert equal == pytest.approx(np.array([[1 / 17, 16 / 17, 0], [0, 1, 0]]), abs=1e-15)
    assert equal[:, 2].tolist() == [0.0, 0.0]
    clipped = MclloMap(np.zeros(2), np.array([1.0, 2.0]), 2, 1e-3).apply(P)  # odds 200 and 800² against the floor
    assert clipped[0] == pytest.approx(np.array([200, 640_000, 1]) / 640_201)


def test_outcomes_of_probability_zero_are_evidence_and_the_floor_decides():
    votes = columns(frame("recalibration/multi3_votes.csv"))
    y = frame("recalibration/multi3_votes.csv")["y"].astype(int)
    want = golden("recalibration/mcllo_zeros.json")
    preds = Predictions(y, votes)
    for min_prob in (1e-12, 1e-6, 1e-3):
        name = f"clip_{min_prob:g}"
        for baseline, one in enumerate(want[name]["by_base"]):
            result = fit(MclloSpec(baseline=baseline, min_prob=min_prob), preds)
            assert np.exp(result.calibration_map.tau) == pytest.approx(one["delta"], abs=1e-8)
            assert result.calibration_map.gamma == pytest.approx(one["gamma"], abs=1e-8)
    (note,) = [note for note in result.notes if note.code == "TN541"]
    assert note.text.startswith("5 observed outcomes had predicted probability 0")
    assert "TN502" in codes(result)


@pytest.mark.parametrize("absent", [1, 2])
def test_a_class_that_never_occurred_keeps_its_odds_against_the_baseline(absent):
    P, y = draw_predictions(300, 3, 1.5, 3)
    mask = y != absent
    result = fit(MclloSpec(), Predictions(y[mask], P[mask], classes=range(3)))
    m = result.calibration_map
    assert not m.converged
    assert {"TN501", "TN540"} <= set(codes(result))
    Q, left = m.apply(P), [c for c in range(3) if c != absent]
    if absent == 1:
        assert (m.tau[1], m.gamma[1]) == (0.0, 1.0)
        assert Q[:, 1] / Q[:, 2] == pytest.approx(P[:, 1] / P[:, 2])
        # The others are fitted as if the class were not there.
        two = P[:, left] / P[:, left].sum(axis=1, keepdims=True)
        other = fit_map(two[mask], (y[mask] > 0).astype(int), baseline=1)
        assert (m.tau[0], m.gamma[0]) == (pytest.approx(other.tau[0]), pytest.approx(other.gamma[0]))
    rates = (Q[mask][:, left] / Q[mask][:, left].sum(axis=1, keepdims=True)).mean(axis=0)
    assert rates == pytest.approx([(y[mask] == c).mean() for c in left], abs=1e-9)
    with_penalty = fit(MclloSpec(penalty=0.5), Predictions(y[mask], P[mask], classes=range(3)))
    assert with_penalty.calibration_map.converged
    assert "TN540" not in codes(with_penalty)


@pytest.mark.parametrize("penalty", [0, 0.5])
def test_separated_outcomes_are_finite(penalty):
    P = draw_predictions(60, 3, 1.0, 4)[0]
    y = P.argmax(axis=1)
    result = fit(MclloSpec(penalty=penalty), Predictions(y, P))
    assert result.calibration_map.converged is (penalty > 0)
    assert ("TN532" in codes(result)) is (penalty == 0)
    assert np.isfinite(result.calibration_map.tau).all()
    assert np.isfinite(result.calibration_map.gamma).all()
    assert ("No standard errors" in result.summary()) is (penalty == 0)


def test_equal_rows_shift_and_keep_their_slopes():
    m = fit_map(np.full((8, 2), 0.5) @ np.diag([0.4, 1.6]), [0, 0, 0, 1] * 2)
    assert m.gamma[0] == pytest.approx(1.0)
    assert m.apply(both([0.8])) == pytest.approx(np.array([[0.75, 0.25]]), abs=1e-9)


def test_predictions_that_point_the_wrong_way_say_so():
    P, y = draw_predictions(500, 3, 1.0, 7)
    assert "TN533" in codes(fit(MclloSpec(), Predictions((y + 1) % 3, P[:, ::-1])))


def test_logits_and_probabilities_give_the_same_fit():
    P, y = draw_predictions(300, 4, 2.0, 8)
    one, other = fit(MclloSpec(), Predictions(y, P)), fit(MclloSpec(), Predictions.from_logits(y, np.log(P) + 5.0))
    assert one.calibration_map.gamma == pytest.approx(other.calibration_map.gamma, abs=1e-9)


def test_its_terms_are_the_map_and_equal_slopes_need_no_floor():
    P = draw_predictions(50, 4, 1.0, 9)[0]
    for gamma in ([0.5, 1.2, 0.9], [0.7, 0.7, 0.7]):
        m = MclloMap(np.array([0.3, -0.2, 0.1]), np.array(gamma), 1, 1e-12)
        (term,) = m.mixture_terms(4)
        W = term.W if term.W.ndim == 2 else np.diag(term.W)
        assert softmax(np.log(P) @ W.T + term.b) == pytest.approx(m.apply(P), abs=1e-13)
        assert (term.min_prob_by_class > 0).tolist() == [False, len(set(gamma)) > 1, False, False]


def test_it_says_its_ranges_and_baseline():
    m = MclloMap(np.log([0.5, 2.0]), np.array([0.7, 0.7]), 1, 1e-12)
    assert m.describe() == "δ 0.5 to 2, γ 0.7, against class 1"


def test_a_baseline_may_be_named_where_names_are_known():
    P, y = draw_predictions(200, 3, 1.0, 0)
    names = ["cat", "dog", "truck"]
    preds = Predictions(np.array(names)[y], P, classes=names)
    assert fit(MclloSpec(baseline="class:cat"), preds).calibration_map.baseline == 0
    assert fit(MclloSpec(baseline="class:cat"), preds).settings["baseline"] == "class:cat"
    with pytest.raises(InputError, match=r"TO203.*0 is cat, 1 is dog, 2 is truck.*'class:cow'"):
        fit(MclloSpec(baseline="class:cow"), preds)
    with pytest.raises(InputError, match=r"TO203.*Class names are not known"):
        fit_map(P, y, baseline="class:cat")


def test_left_out_it_is_the_last_and_of_two_the_first():
    for k, baseline in ((2, 0), (3, 2), (5, 4)):
        P, y = draw_predictions(100, k, 1.0, k)
        assert fit_map(P, y).baseline == baseline


@pytest.mark.parametrize("baseline", [3, -4])
def test_a_baseline_beyond_the_classes_is_refused(baseline):
    P, y = draw_predictions(30, 3, 1.0, 0)
    with pytest.raises(InputError, match="TO203"):
        fit_map(P, y, baseline=baseline)
