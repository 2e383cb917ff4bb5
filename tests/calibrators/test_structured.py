"""Structured vector and matrix scaling."""

import numpy as np
import pytest

from tests.calibrators.linear import derived_chance, effective, reference, slope_left, surplus
from tests.calibrators.rows import draw_predictions, labels, one_hot, powers
from tests.reference import golden
from trueodds.calibrators._glm import log_linear
from trueodds.calibrators._glm.log_linear import scaled_penalty
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.matrix import StructuredMap, StructuredSpec, temper_and_mix
from trueodds.calibrators.temperature import TemperatureSpec
from trueodds.data.predictions import Predictions


def fit_map(P, y, **settings):
    return StructuredSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


def test_uniform_rows_by_hand():
    # T = 1 and mixing change nothing, the logs are x = log ½. By symmetry D = ±s, b = ±t, η₀ − η₁ = 2u, u = t + sx.
    # The least penalty 2/4 · 2(s² + t²) for a given u is 2u²/(1 + x²), hence 2(σ(2u) − ¾) + 4u/(1 + x²) = 0.
    m = fit_map(np.full((4, 2), 0.5), [0, 0, 0, 1], form="vector")
    q = m.apply(np.full((1, 2), 0.5))[0, 0]
    u = np.log(q / (1 - q)) / 2
    assert 2 * (q - 0.75) + 4 * u / (1 + np.log(0.5) ** 2) / 2 == pytest.approx(0, abs=1e-9)
    assert m.share == 1 / 5


@pytest.mark.parametrize(("form", "key"), [("vector", "svs"), ("matrix", "sms")])
def test_the_reference_numbers(form, key):
    # probmetrics: svs 1.4e-6, sms 3.7e-6, its float32 (golden/recalibration/structured_scaling.json).
    want, rows = golden("recalibration/structured_scaling.json"), reference()
    m = StructuredSpec(form=form).fit(rows.P, rows.Y, rows.w)
    assert (m.beta, m.share) == (pytest.approx(want["ts_beta"], abs=1e-9), pytest.approx(want["mix"]))
    assert m.weights == pytest.approx(np.array(want[key]["v" if form == "vector" else "W"]), abs=1e-8)
    assert m.bias == pytest.approx(want[key]["b"], abs=1e-8)
    assert m.apply(rows.test) == pytest.approx(np.array(want[key]["pred"]), abs=1e-8)
    assert m.n_passes <= 12


@pytest.mark.parametrize("form", ["vector", "matrix"])
@pytest.mark.parametrize("k", [2, 5])
def test_no_slope_is_left(form, k):
    rng = np.random.default_rng(k)
    P, _ = draw_predictions(500, k, 1.7, k)
    Y, w = rng.dirichlet(np.ones(k), 500), rng.random(500)
    m = StructuredSpec(form=form).fit(P, Y, w)
    strength, target = scaled_penalty(k, w.sum(), diagonal=k), np.eye(k, k + 1)
    if form == "vector":
        strength, target = k / w.sum(), np.array([1, 0])
    assert m.converged
    assert slope_left(m._linear_step(), temper_and_mix(P, m.beta, m.share), Y, w, strength, target) <= 1e-8


def test_a_strong_penalty_leaves_the_temperature_and_a_little_of_the_uniform():
    P, y = draw_predictions(300, 4, 1.7, 0)
    first = TemperatureSpec().fit(P, one_hot(y, 4), np.ones(300))
    want = 300 / 301 * first.apply(P) + 1 / 301 / 4
    for form in ("vector", "matrix"):
        assert fit_map(P, y, form=form, penalty=1e9).apply(P) == pytest.approx(want, abs=1e-7)


def test_no_penalty_is_vector_scaling_of_the_mixture():
    P, y = draw_predictions(300, 3, 1.7, 1)
    m = fit_map(P, y, form="vector", penalty=0)
    at = slope_left(m._linear_step(), temper_and_mix(P, m.beta, m.share), one_hot(y, 3), np.ones(300), 0.0, 0.0)
    assert at <= 1e-8
    assert m.bias.sum() == pytest.approx(0, abs=1e-9)


def test_few_classes_get_a_matrix_and_many_a_vector():
    for k, dimensions in ((3, 2), (30, 2), (31, 1)):
        P, y = draw_predictions(62, k, 1.0, 2)
        assert fit_map(P, y).weights.ndim == dimensions


@pytest.mark.parametrize("form", ["vector", "matrix"])
def test_seven_classes_and_400_calibrated_rows_cost_no_more_than_chance(form):
    excess = surplus(StructuredSpec(form=form), 400, 7, games=10, seed=3)
    parameters = effective(scaled_penalty(7, 400.0, diagonal=7), 400, 7, seed=3) if form == "matrix" else 13
    assert excess.mean() < derived_chance(1 + parameters, 400, 10)  # and the temperature


def test_with_many_rows_it_reaches_what_only_a_matrix_can():
    # Outcomes in which half of what was said of class 0 belongs to class 1: the matrix must undo a confusion.
    rng = np.random.default_rng(4)
    P = powers(np.exp(rng.normal(size=(20_000, 3)) * 1.5), 1.0)
    W = np.array([[1.0, -0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    R = np.exp(np.log(P) @ W.T)
    R /= R.sum(axis=1, keepdims=True)
    y = labels(R, rng)
    loss = [-np.log(m.apply(P)[np.arange(20_000), y]).mean() for m in (fit_map(P, y), fit_map(P, y, form="vector"))]
    # In the sample the most likely of 8 parameters is 8/2n better than the truth in the mean; the ridge takes about
    # n/2 times K(K − 1)/n · 2 · ½² = 1.5 nats over all rows at most.
    assert loss[0] < -np.log(R[np.arange(20_000), y]).mean() + 1.6 / 20_000 + 1 / 20_001
    assert loss[1] > loss[0] + 0.01


def test_no_probability_becomes_zero():
    P = np.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]] * 20)
    result = fit(StructuredSpec(), Predictions([1, 0, 2] * 20, P))
    assert (result.predict_proba(P) > 0).all()
    assert "TN502" in [note.code for note in result.notes]


def test_every_label_right_is_finite_and_says_what_stopped():
    P = draw_predictions(60, 3, 1.0, 5)[0]
    result = fit(StructuredSpec(), Predictions(P.argmax(axis=1), P))
    assert not result.calibration_map.converged
    assert {"TN503"} <= {note.code for note in result.notes}
    assert np.isfinite(result.predict_proba(P)).all()


def test_a_class_that_never_occurred_keeps_its_column():
    P, y = draw_predictions(300, 4, 1.5, 6)
    result = fit(StructuredSpec(), Predictions(y[y != 2], P[y != 2], classes=range(4)))
    assert result.calibration_map.converged
    Q = result.predict_proba(P)
    assert Q.shape == P.shape
    assert (Q[:, 2] > 0).all()
    assert Q[:, 2].mean() < P[:, 2].mean() / 5


def test_many_classes_go_without_the_curvature(monkeypatch):
    P, y = draw_predictions(1000, 5, 1.7, 7)
    one = fit_map(P, y)
    monkeypatch.setattr(log_linear, "MAX_NEWTON_PARAMETERS", 8)
    assert fit_map(P, y).apply(P) == pytest.approx(one.apply(P), abs=1e-7)


def test_what_it_says_of_itself():
    m = StructuredMap(0.5, 0.01, np.array([0.9, 1.25]), np.array([-0.2, 0.2]))
    assert m.describe() == "T = 2.00, then slopes 0.9 to 1.25, biases -0.2 to 0.2"
