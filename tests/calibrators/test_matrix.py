"""Matrix scaling."""

import numpy as np
import pytest

from tests.calibrators.linear import reference, slope_left
from tests.calibrators.rows import draw_predictions, one_hot
from tests.reference import golden
from trueodds.calibrators.auto import AutoSpec
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.matrix import DirichletSpec, MatrixSpec
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions


@pytest.mark.parametrize("lam", ["0.01_0.01", "0.001_0.1"])
def test_the_reference_numbers_with_odir(lam):
    # The reference adds λ Σ W_ij² + μ Σ b_j²; ours divides by K(K − 1) and K
    # (golden/recalibration/matrix_dirichlet.json).
    want, rows = golden("recalibration/matrix_dirichlet.json")[f"matrix_logits_odir_{lam}"], reference()
    spec = MatrixSpec(logits=True, penalty=12 * want["lam"], bias_penalty=4 * want["mu"])
    m = spec.fit(rows.z, rows.Y, rows.w)
    assert m.weights == pytest.approx(np.array(want["W"]), abs=1e-8)
    assert m.bias == pytest.approx(want["b"], abs=1e-8)
    assert m.apply(rows.test_z) == pytest.approx(np.array(want["pred"]), abs=1e-8)
    assert slope_left(m, rows.z, rows.Y, rows.w, spec._penalty_strengths(4, 400.0), np.eye(4, 5)) <= 1e-8


def test_the_reference_numbers_with_a_ridge():
    want, rows = golden("recalibration/matrix_dirichlet.json")["matrix_logits_l2_0.001"], reference()
    m = MatrixSpec(logits=True, penalty=0.001, shrink="l2", target="zero").fit(rows.z, rows.Y, rows.w)
    assert m.apply(rows.test_z) == pytest.approx(np.array(want["pred"]), abs=1e-8)


def test_on_log_probabilities_it_is_dirichlet_calibration():
    P, y = draw_predictions(300, 3, 1.5, 0)
    one, other = (spec.fit(P, one_hot(y, 3), np.ones(300)) for spec in (MatrixSpec(), DirichletSpec()))
    assert (one.weights == other.weights).all()
    assert (one.name, other.name) == ("matrix", "dirichlet")


def test_logits_that_differ_by_a_constant_per_row_are_another_model():
    P, y = draw_predictions(300, 3, 1.5, 1)
    z = np.log(P)
    moved = z + 3 * np.sin(np.arange(300))[:, None]
    one, other = (fit(MatrixSpec(logits=True), Predictions.from_logits(y, x)) for x in (z, moved))
    assert np.abs(one.predict_proba(z, logits=True) - other.predict_proba(moved, logits=True)).max() > 1e-4
    with pytest.raises(InputError, match="TO509"):
        one.predict_proba(P)


def test_a_logit_of_minus_infinity_is_floored_in_fit_and_map():
    z = np.array([[0.0, -np.inf, 1.0], [1.0, 0.0, -1.0]] * 30)
    result = fit(MatrixSpec(logits=True, min_prob=1e-6), Predictions.from_logits([0, 1] * 15 + [2, 0] * 15, z))
    floored = z[:1].copy()
    floored[0, 1] = np.log(np.exp(z[0, [0, 2]]).sum()) + np.log(1e-6)
    recalibrated = result.predict_proba(z[:1], logits=True)
    assert recalibrated == pytest.approx(result.predict_proba(floored, logits=True), abs=1e-12)
    assert (recalibrated > 0).all()
    assert "TN502" in [note.code for note in result.notes]


def test_log_odds_of_two_classes_are_logits_of_the_second():
    rng = np.random.default_rng(2)
    z = rng.normal(size=200) * 2
    y = (rng.random(200) < 1 / (1 + np.exp(-z / 2))).astype(int)
    result = fit(MatrixSpec(logits=True, penalty=0), Predictions.from_logits(y, z))
    q = result.predict_proba(z, logits=True)[:, 1]
    # Two parameters are told apart, and their slopes vanish: Σ(q − y) = Σ(q − y)z = 0.
    assert (q - y).sum() == pytest.approx(0, abs=1e-6)
    assert (q - y) @ z == pytest.approx(0, abs=1e-6)


def test_auto_does_not_try_it_unasked():
    assert not MatrixSpec().is_suitable(10_000, 3)
    assert "matrix" not in AutoSpec().settings()["candidates"]
