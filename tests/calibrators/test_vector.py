"""Vector scaling."""

import numpy as np
import pytest
from scipy.stats import chi2

from tests.calibrators.linear import derived_chance, reference, slope_left, surplus
from tests.calibrators.rows import draw_predictions, labels, one_hot
from tests.reference import golden
from trueodds.calibrators._glm.newton import FALLBACK_RIDGE
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.vector import VectorMap, VectorSpec
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.tallies.softmax_likelihood import softmax_by_class


def fit_map(P, y, w=None, **settings):
    return VectorSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def test_two_kinds_of_rows_get_their_rates():
    # Slopes and bias are three parameters for two kinds of rows of two classes: the most likely map says their rates.
    P = np.array([[0.8, 0.2]] * 4 + [[0.5, 0.5]] * 5)
    m = fit_map(P, [0, 0, 0, 1, 0, 1, 1, 1, 1], penalty=0)
    assert m.apply(P[[0, 4]]) == pytest.approx(np.array([[0.75, 0.25], [0.2, 0.8]]), abs=1e-9)


def test_the_ridge_by_hand():
    # Rows (½, ½), three of four of class 0: by symmetry a − 1 = ±s, b = ±t and η₀ − η₁ = 2u with u = t + s log ½.
    # The least 2λ(s² + t²) for a given u is 2λu²/(1 + log²½), so 4(σ(2u) − ¾)·2 + 4λu/(1 + log²½) = 0.
    m = fit_map(np.full((4, 2), 0.5), [0, 0, 0, 1], penalty=2.0)
    q = m.apply(np.full((1, 2), 0.5))[0, 0]
    u = np.log(q / (1 - q)) / 2
    assert 8 * (q - 0.75) + 8 * u / (1 + np.log(0.5) ** 2) == pytest.approx(0, abs=1e-9)
    assert m.bias.sum() == pytest.approx(0, abs=1e-12)


def test_the_reference_numbers():
    # dirichletcal 5e-13 for log p; both are different models (golden/recalibration/vector_scaling.json).
    want, rows = golden("recalibration/vector_scaling.json"), reference()
    logs = VectorSpec(penalty=0).fit(rows.P, rows.Y, rows.w)
    assert logs.apply(rows.test) == pytest.approx(np.array(want["logp"]["pred"]), abs=1e-8)
    assert logs.weights == pytest.approx(want["logp"]["scale"], abs=1e-8)
    assert logs.bias == pytest.approx(want["logp"]["bias_centred"], abs=1e-8)
    z = VectorSpec(penalty=0, logits=True).fit(rows.z, rows.Y, rows.w)
    assert z.apply(rows.test_z) == pytest.approx(np.array(want["logits"]["pred"]), abs=1e-8)
    assert z.bias == pytest.approx(want["logits"]["bias_centred"], abs=1e-8)
    assert z.logits
    assert max(logs.n_passes, z.n_passes) <= 8


@pytest.mark.parametrize("penalty", [0, 0.5, 20.0])
@pytest.mark.parametrize("k", [2, 4, 7])
def test_no_slope_is_left(penalty, k):
    rng = np.random.default_rng(k)
    P, _ = draw_predictions(500, k, 1.7, k)
    Y, w = rng.dirichlet(np.ones(k), 500), rng.random(500)
    m = VectorSpec(penalty=penalty).fit(P, Y, w)
    assert m.converged
    assert slope_left(m, P, Y, w, penalty / w.sum(), [1, 0]) <= 1e-8


def test_the_parameters_are_within_their_errors_of_the_truth():
    a, b = np.array([0.5, 1.0, 1.4]), np.array([0.3, 0.0, -0.3])
    rng = np.random.default_rng(5)
    P = draw_predictions(20_000, 3, 1.0, 5)[0]
    R = np.exp(a * np.log(P) + b)
    y = labels(R / R.sum(axis=1, keepdims=True), rng)
    m = fit_map(P, y, penalty=0)
    deviation = np.column_stack([m.weights - a, m.bias - b]).reshape(-1)
    theta = np.column_stack([m.weights, m.bias]).reshape(-1)
    H = softmax_by_class(np.log(P)[:, :, None], one_hot(y, 3), np.ones(20_000), theta).hessian
    assert deviation @ H @ deviation < chi2.isf(1e-4, 5)  # Wald's statistic has 2K − 1 degrees of freedom


def test_seven_classes_and_400_calibrated_rows_cost_no_more_than_chance():
    # Unpenalized MCLLO on n = 396, K = 7 was worse than doing nothing (log loss .565 against .501).
    excess = surplus(VectorSpec(), 400, 7, games=20, seed=1)
    assert excess.mean() < derived_chance(13, 400, 20)


def test_the_default_penalty_is_worth_it_on_sharp_rows():
    # Rows so sure that hardly one in ten surprises: few of 300 say anything about a slope.
    penalized, unpenalized = (surplus(VectorSpec(penalty=p), 300, 7, 6, seed=2, sharpness=5.0).mean() for p in (0.5, 0))
    assert penalized < unpenalized


def test_a_class_that_never_occurred_keeps_its_column_and_is_noted():
    P, y = draw_predictions(300, 4, 1.5, 3)
    mask = y != 2
    for penalty, converged in ((0.5, True), (0, False)):
        result = fit(VectorSpec(penalty=penalty), Predictions(y[mask], P[mask], classes=range(4)))
        assert result.calibration_map.converged is converged
        assert "TN501" in [note.code for note in result.notes]
        assert ("TN532" in [note.code for note in result.notes]) is not converged
        Q = result.predict_proba(P)
        assert np.isfinite(Q).all()
        assert (Q[:, 2] > 0).all()
        # The slope by its bias vanishes: what it is given over all rows is −2λb.
        pull = 2 * max(penalty, FALLBACK_RIDGE) * result.calibration_map.bias[2]
        assert Q[mask][:, 2].sum() == pytest.approx(-pull, abs=1e-6)


@pytest.mark.parametrize("penalty", [0, 0.5])
def test_every_label_right_is_finite(penalty):
    P = draw_predictions(60, 3, 1.0, 4)[0]
    m = fit_map(P, P.argmax(axis=1), penalty=penalty)
    assert m.converged is (penalty > 0)
    assert np.isfinite(m.weights).all()
    assert penalty > 0 or (m.apply(P).argmax(axis=1) == P.argmax(axis=1)).all()


def test_constant_scores_become_the_rates():
    P = np.full((8, 2), 0.5)
    assert fit_map(P, [0, 0, 0, 1] * 2, penalty=0).apply(P[:1]) == pytest.approx(np.array([[0.75, 0.25]]), abs=1e-9)


def test_exact_zeros_and_slopes_of_any_sign():
    P = np.array([[0.0, 0.3, 0.7]])
    zero = np.zeros(3)
    stays, joins, takes = (VectorMap(np.array([a, 1.0, 1.0]), zero, 1e-12).apply(P)[0] for a in (0.5, 0.0, -1.0))
    assert stays.tolist() == [0.0, 0.3, 0.7]
    assert joins == pytest.approx([0.5, 0.15, 0.35])  # p⁰ = 1 beside .3 and .7
    assert takes == pytest.approx([1, 0.3e-12, 0.7e-12], rel=1e-9)  # odds of .3 and .7 to 1e12, as in the fit


def test_a_logit_of_minus_infinity_is_an_exact_zero():
    z = np.array([[0.0, -np.inf, 1.0], [1.0, 0.0, -1.0]] * 30)
    y = [0, 1] * 15 + [2, 0] * 15
    result = fit(VectorSpec(logits=True), Predictions.from_logits(y, z))
    assert result.predict_proba(z, logits=True)[0, 1] == 0
    assert "30 of 180 probabilities" in next(note.text for note in result.notes if note.code == "TN502")


def test_a_map_of_logits_refuses_probabilities():
    P, y = draw_predictions(100, 3, 1.5, 6)
    result = fit(VectorSpec(logits=True), Predictions.from_logits(y, np.log(P) + 5))
    with pytest.raises(InputError, match="TO509"):
        result.predict_proba(P)
    with pytest.raises(InputError, match="TO509"):
        fit(VectorSpec(logits=True), Predictions(y, P))


def test_slopes_below_zero_and_few_rows_are_noted():
    P, y = draw_predictions(60, 3, 1.0, 7)
    codes = [note.code for note in fit(VectorSpec(penalty=0), Predictions((y + 1) % 3, P[:, ::-1])).notes]
    assert "TN533" in codes or "TN535" in codes
    notes = fit(VectorSpec(penalty=0), Predictions(y[:49], P[:49])).notes
    assert any("49 rows for 5 parameters" in note.text for note in notes)
    assert not any(note.code == "TN535" for note in fit(VectorSpec(), Predictions(y[:49], P[:49])).notes)
    assert not any(note.code == "TN535" for note in fit(VectorSpec(penalty=0), Predictions(y, P)).notes)


def test_auto_tries_it_with_few_classes_only():
    assert VectorSpec().is_suitable(1000, 30)
    assert not VectorSpec().is_suitable(1000, 31)
