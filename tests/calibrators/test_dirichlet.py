"""Dirichlet calibration."""

import numpy as np
import pytest
from scipy.stats import chi2

from tests.calibrators.linear import derived_chance, effective, reference, slope_left, surplus
from tests.calibrators.rows import draw_predictions, one_hot
from tests.reference import golden
from trueodds.calibrators._glm import log_linear
from trueodds.calibrators._glm.fit_data import FitData
from trueodds.calibrators._glm.log_linear import scaled_penalty
from trueodds.calibrators.base import sums_in_memory
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.matrix import PENALTY_GRID, DirichletMap, DirichletSpec
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.tallies.softmax_likelihood import softmax_by_class

# The reference program adds λ Σ W_ij² + μ Σ b_j²; the published penalty, and ours, divides by K(K − 1) and K.
SUMS = {"penalty": 12, "bias_penalty": 4}


def fit_map(P, y, **settings):
    return DirichletSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


def test_as_many_kinds_of_rows_as_parameters_get_their_rates():
    P = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])
    rates = np.array([[0.5, 0.3, 0.2], [0.25, 0.5, 0.25], [0.6, 0.2, 0.2]])
    m = DirichletSpec(penalty=0).fit(P, rates, np.ones(3))
    assert m.apply(P) == pytest.approx(rates, abs=1e-9)


@pytest.mark.parametrize("lam", ["0.01_0.01", "0.001_0.1"])
def test_the_reference_numbers_with_odir(lam):
    # dirichletcal with ref_row=False: 7e-15 and 2e-9 (golden/recalibration/matrix_dirichlet.json).
    want, rows = golden("recalibration/matrix_dirichlet.json")[f"dirichlet_logp_odir_{lam}"], reference()
    settings = {"penalty": SUMS["penalty"] * want["lam"], "bias_penalty": SUMS["bias_penalty"] * want["mu"]}
    # One test row says 4e-18: the reference has no floor.
    m = DirichletSpec(**settings, min_prob=1e-30).fit(rows.P, rows.Y, rows.w)
    assert m.weights == pytest.approx(np.array(want["W"]), abs=1e-8)
    assert m.bias == pytest.approx(want["b"], abs=1e-8)
    assert m.apply(rows.test) == pytest.approx(np.array(want["pred"]), abs=1e-8)


def test_the_reference_numbers_with_a_ridge_and_without():
    # dirichletcal L2 7e-13, scikit-learn's multinomial regression 2e-11.
    want, rows = golden("recalibration/matrix_dirichlet.json"), reference()
    ridge = DirichletSpec(penalty=0.001, shrink="l2", target="zero", min_prob=1e-30).fit(rows.P, rows.Y, rows.w)
    assert ridge.weights == pytest.approx(np.array(want["dirichlet_logp_l2_0.001"]["W"]), abs=1e-8)
    assert ridge.apply(rows.test) == pytest.approx(np.array(want["dirichlet_logp_l2_0.001"]["pred"]), abs=1e-8)
    free = DirichletSpec(penalty=0, min_prob=1e-30).fit(rows.P, rows.Y, rows.w)
    assert free.apply(rows.test) == pytest.approx(np.array(want["mle_logp"]["pred"]), abs=1e-8)
    weights = np.array(want["mle_logp"]["W_lastrow0"])
    assert free.weights - free.weights[3] == pytest.approx(weights, abs=1e-7)
    assert free.bias.sum() == pytest.approx(0, abs=1e-12)


def test_odir_neither_depends_on_class_order_nor_penalizes_the_identity():
    # dirichletcal's default subtracts the last class's row first: then the identity costs λ(K − 1).
    rows, settings = reference(), {"penalty": 0.12, "bias_penalty": 0.04, "min_prob": 1e-30}
    m = DirichletSpec(**settings).fit(rows.P, rows.Y, rows.w)
    order = np.array([3, 1, 0, 2])
    turned = DirichletSpec(**settings).fit(rows.P[:, order], rows.Y[:, order], rows.w)
    assert turned.apply(rows.test[:, order]) == pytest.approx(m.apply(rows.test)[:, order], abs=1e-10)
    faulty = np.array(golden("recalibration/matrix_dirichlet.json")["official_refrow_odir_0.01_0.01"]["pred"])
    assert np.abs(m.apply(rows.test) - faulty).max() == pytest.approx(0.024, abs=5e-4)
    calm = DirichletSpec(penalty=1e9).fit(rows.P, rows.P, rows.w)  # outcomes as said: whatever is paid is for nothing
    assert calm.weights == pytest.approx(np.eye(4), abs=1e-7)


@pytest.mark.parametrize(
    "settings",
    [{}, {"penalty": 0}, {"penalty": 0.1}, {"penalty": 0.1, "bias_penalty": 0}, {"penalty": 0.01, "shrink": "l2"}],
)
@pytest.mark.parametrize("k", [2, 4])
def test_no_slope_is_left(settings, k):
    rng = np.random.default_rng(k)
    P, _ = draw_predictions(800, k, 1.7, k)
    Y, w = rng.dirichlet(np.ones(k), 800), rng.random(800)
    spec = DirichletSpec(**settings)
    m = spec.fit(P, Y, w)
    assert m.converged
    assert slope_left(m, P, Y, w, spec._penalty_strengths(k, w.sum()), np.eye(k, k + 1)) <= 1e-8


def test_the_scaled_penalty_written_out():
    # K = 3 classes, 10 rows: 3·2/10 beside the diagonal, 1/20 on it, 3/10 for a bias.
    want = [[0.05, 0.6, 0.6, 0.3], [0.6, 0.05, 0.6, 0.3], [0.6, 0.6, 0.05, 0.3]]
    assert scaled_penalty(3, 10.0) == pytest.approx(np.array(want))


def test_rows_from_dirichlet_laws_are_read_back():
    # p | class j ~ Dirichlet(α_j), classes equally frequent:
    # log-odds of j against k are (α_j − α_k)·log p − log B(α_j)/B(α_k).
    rng, alpha = np.random.default_rng(0), np.array([[4.0, 1.0, 1.5], [1.0, 3.0, 1.0], [2.0, 2.0, 5.0]])
    y = rng.integers(0, 3, 20_000)
    P = np.stack([rng.dirichlet(alpha[c]) for c in y])
    m = fit_map(P, y, penalty=0)
    at = softmax_by_class(np.log(P), one_hot(y, 3), np.ones(20_000), np.column_stack([m.weights, m.bias]).reshape(-1))
    deviation = np.column_stack([m.weights - alpha, m.bias])
    deviation[:, 3] += [float(np.sum(_lgamma(a)) - _lgamma(a.sum())) for a in alpha]
    deviation = (deviation - deviation.mean(axis=0)).reshape(-1)
    assert deviation @ at.hessian @ deviation < chi2.isf(1e-4, 8)  # Wald's statistic: (K − 1)(K + 1) parameters


def _lgamma(x):
    from scipy.special import gammaln

    return gammaln(x)


@pytest.mark.parametrize("penalty", ["scaled", "auto"])
def test_seven_classes_and_400_calibrated_rows_cost_no_more_than_chance(penalty):
    excess = surplus(DirichletSpec(penalty=penalty), 400, 7, games=10, seed=1)
    parameters = effective(scaled_penalty(7, 400.0), 400, 7, seed=1) if penalty == "scaled" else 48
    assert excess.mean() < derived_chance(parameters, 400, 10)


def test_auto_takes_the_least_criterion_of_its_grid():
    P, y = draw_predictions(1500, 3, 1.6, 2)
    Q = P * [2.0, 1.0, 1.0]
    Q /= Q.sum(axis=1, keepdims=True)
    Y, w = one_hot(y, 3), np.ones(1500)
    criteria, thetas = [], []
    for factor in PENALTY_GRID:
        strength = scaled_penalty(3, 1500.0, factor)
        rows = sums_in_memory(FitData(Q, Y, w)).map_rows(log_linear.prepare_rows)
        solution = log_linear.fit_log_linear(rows, strength, np.eye(3, 4), np.eye(3, 4), shared_features=True)
        H = solution.likelihood.hessian
        free = np.trace(H @ np.linalg.inv(H + 3000 * np.diag(strength.reshape(-1))))
        assert 3 < free < 8
        criteria.append(solution.likelihood.value + free)
        thetas.append(solution.theta.reshape(3, 4))
    chosen = int(np.argmin(criteria))
    result = fit(DirichletSpec(penalty="auto"), Predictions(y, Q))
    assert result.calibration_map.weights == pytest.approx(thetas[chosen][:, :3], abs=1e-8)
    assert f"{PENALTY_GRID[chosen]:g} times" in next(note.text for note in result.notes if note.code == "TN534")


def test_the_scaled_penalty_vanishes_with_more_rows():
    P, y = draw_predictions(4000, 3, 1.6, 3)
    Q = P ** np.array([1.0, 0.7, 1.3])
    Q /= Q.sum(axis=1, keepdims=True)
    free = fit_map(Q, y, penalty=0).apply(Q)
    distances = [
        np.abs(DirichletSpec().fit(Q, one_hot(y, 3), np.full(4000, w)).apply(Q) - free).max() for w in (0.1, 1, 10, 100)
    ]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < distances[0] / 50


def test_many_classes_go_without_the_curvature(monkeypatch):
    P, y = draw_predictions(1000, 5, 1.7, 4)
    one = fit_map(P, y)
    monkeypatch.setattr(log_linear, "MAX_NEWTON_PARAMETERS", 8)
    other = fit_map(P, y)
    assert other.converged
    assert slope_left(other, P, one_hot(y, 5), np.ones(1000), scaled_penalty(5, 1000.0), np.eye(5, 6)) <= 1e-8
    assert other.apply(P) == pytest.approx(one.apply(P), abs=1e-7)


@pytest.mark.slow
def test_forty_classes_leave_no_slope():
    P, y = draw_predictions(3000, 40, 1.5, 5)
    m = fit_map(P, y)  # 1,640 parameters
    assert m.converged
    assert slope_left(m, P, one_hot(y, 40), np.ones(3000), scaled_penalty(40, 3000.0), np.eye(40, 41)) <= 1e-8


@pytest.mark.parametrize("penalty", [0, 0.01, "scaled", "auto"])
def test_absent_classes_and_every_label_right_are_finite(penalty):
    P, y = draw_predictions(200, 4, 1.5, 6)
    for rows in (y != 2, P.argmax(axis=1) == y):
        result = fit(DirichletSpec(penalty=penalty), Predictions(y[rows], P[rows], classes=range(4)))
        assert ("TN532" in [note.code for note in result.notes]) is not result.calibration_map.converged
        assert result.calibration_map.converged is isinstance(penalty, str)
        assert np.isfinite(result.calibration_map.weights).all()
        assert np.abs(result.calibration_map.weights).max() < 1000
        assert np.isfinite(result.predict_proba(P)).all()


def test_zeros_are_floored_where_the_map_is_applied_as_in_the_fit():
    P = np.array([[0.0, 0.4, 0.6]])
    m = DirichletMap(np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.2, 0.0, 1.0]]), np.zeros(3), 1e-6)
    logs = np.log([1e-6, 0.4, 0.6])
    want = np.exp([logs[0] + 0.5 * logs[1], logs[1], 0.2 * logs[0] + logs[2]])
    assert m.apply(P)[0] == pytest.approx(want / want.sum(), rel=1e-12)


def test_auto_tries_it_with_few_classes_only():
    assert DirichletSpec().is_suitable(1000, 30)
    assert not DirichletSpec().is_suitable(1000, 31)


def test_a_search_of_the_penalty_over_many_classes_is_refused():
    P, y = draw_predictions(64, 32, 1.0, 0)
    with pytest.raises(InputError, match="TO522"):
        fit(DirichletSpec(penalty="auto"), Predictions(y, P, classes=range(32)))
