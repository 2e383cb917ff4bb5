"""Temperature scaling."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.calibrators.rows import both, draw_predictions, one_hot, powers
from tests.reference import columns, frame, golden
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.temperature import MAX_BETA, MIN_BETA, TemperatureMap, TemperatureSpec, minimize_beta
from trueodds.data.predictions import Predictions
from trueodds.tallies.softmax_likelihood import softmax_linear


def fit_map(P, y, w=None, **settings):
    return TemperatureSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def test_three_correct_of_four_at_point_nine_is_a_temperature_of_two():
    # .9^b/(.9^b + .1^b) = 3/4 means 9^b = 3: b = 1/2.
    m = fit_map(both([0.9] * 4), [1, 1, 1, 0])
    assert m.beta == pytest.approx(0.5, abs=1e-12)
    assert m.describe() == "T = 2.00"


def test_the_reference_numbers():
    # beta, predictions: scikit-learn 5e-9, probmetrics 1e-9, dirichletcal 2e-16
    # (golden/recalibration/temperature.json).
    want = golden("recalibration/temperature.json")
    rows, test = frame("recalibration/multi4.csv"), frame("recalibration/multi4_test.csv")
    m = fit_map(columns(rows), rows["y"])
    assert m.beta == pytest.approx(want["beta"], abs=1e-8)
    assert m.apply(columns(test)) == pytest.approx(np.array(want["pred"]), abs=1e-8)
    assert m.n_passes <= 10


def test_float32_is_calibrated_like_float64():
    # netcal 1.4 returns T = 1.0 for float32 input where the answer is 1.498.
    P, y = draw_predictions(2000, 2, 1.5, 0)
    wide, narrow = (fit(TemperatureSpec(), Predictions(y, p)) for p in (P, P.astype(np.float32)))
    assert abs(1 / wide.calibration_map.beta - 1.0) > 0.2
    # Rounding p moves each log p by 6e-8 relative to 1; the mean moves by no more.
    assert narrow.calibration_map.beta == pytest.approx(wide.calibration_map.beta, rel=1e-5)


def test_two_classes_are_one_probability():
    P, y = draw_predictions(300, 2, 2.0, 1)
    assert fit(TemperatureSpec(), Predictions(y, P[:, 1])).calibration_map.beta == pytest.approx(
        fit_map(P, y).beta, rel=1e-9
    )


def test_an_independent_minimizer_finds_the_same_with_votes_and_weights():
    rng = np.random.default_rng(3)
    P, _ = draw_predictions(200, 4, 1.7, 2)
    Y, w = rng.dirichlet(np.ones(4), 200), rng.random(200)
    m = TemperatureSpec().fit(P, Y, w)

    def loss(beta):
        return -(w[:, None] * Y * np.log(powers(P, beta))).sum()

    optimum = minimize_scalar(loss, bounds=(0.001, 10), method="bounded", options={"xatol": 1e-9}).x
    # A minimizer that compares values resolves sqrt(eps) of the parameter at best.
    assert m.beta == pytest.approx(optimum, abs=1e-6)


def test_the_estimate_is_within_its_standard_error_of_the_truth():
    P, y = draw_predictions(5000, 5, 2.0, 4)
    m = fit_map(P, y)
    h = softmax_linear(np.log(P)[:, :, None], one_hot(y, 5), np.ones(5000), np.array([m.beta])).hessian[0, 0]
    assert abs(m.beta - 0.5) < 4 / np.sqrt(h)  # four standard errors: once in 16,000 seeds


def test_all_right_has_no_finite_temperature_and_says_so():
    preds = Predictions([0, 1, 1], both([0.2, 0.7, 0.9]))
    result = fit(TemperatureSpec(), preds)
    assert result.calibration_map.beta == MAX_BETA
    assert not result.calibration_map.converged
    assert [note.code for note in result.notes] == ["TN503"]


def test_predictions_that_point_the_wrong_way_become_uniform_and_say_so():
    preds = Predictions([1, 0, 0, 1], both([0.2, 0.7, 0.9, 0.6]))
    result = fit(TemperatureSpec(), preds)
    assert result.calibration_map.beta == MIN_BETA
    assert "TN504" in [note.code for note in result.notes]
    assert result.predict_proba([0.9]) == pytest.approx(np.array([[0.5, 0.5]]), abs=1e-3)


def test_uniform_rows_keep_a_temperature_of_one():
    assert fit_map(np.full((6, 3), 1 / 3), [0, 1, 2, 0, 1, 2]).beta == 1.0


def one_surprise():
    """Four hundred rows said with .7, of which three hundred come, and an exact zero that comes."""
    return np.concatenate([both([0.7] * 400), [[0.0, 1.0]]]), [1] * 300 + [0] * 100 + [0]


def test_an_exact_zero_stays_zero_and_the_floor_of_the_fit_is_noted():
    P, y = one_surprise()
    result = fit(TemperatureSpec(), Predictions(y, P))
    assert 0.001 < result.calibration_map.beta < 1
    assert result.predict_proba(P)[-1].tolist() == [0.0, 1.0]
    assert [note.code for note in result.notes] == ["TN502", "TN505"]
    assert (
        "1 of 802 probabilities was below 1e-12 and raised to it in the fit, 1 of them of observed outcomes"
        in result.notes[0].text
    )


def test_min_prob_is_a_setting_that_matters_where_zeros_occurred():
    P, y = one_surprise()
    assert fit_map(P, y, min_prob=1e-3).beta > fit_map(P, y, min_prob=1e-12).beta + 0.01


@pytest.mark.parametrize("truth", [0.002, 0.03, 1.0, 30.0, 700.0])
def test_it_converges_whatever_the_truth(truth):
    # Exact shares as outcomes: the minimum is at the truth.
    P = both([0.499, 0.5005, 0.501, 0.502]) if truth > 10 else both([0.02, 0.3, 0.6, 0.999])
    m = TemperatureSpec().fit(P, powers(P, truth), np.ones(4))
    assert m.beta == pytest.approx(truth, rel=1e-6)
    assert m.n_passes < 40


def test_a_fit_over_batches_is_the_fit_of_all():
    P, y = draw_predictions(500, 3, 1.6, 6)
    Y, spec = one_hot(y, 3), TemperatureSpec()

    def batch_sums(beta):
        parts = [slice(0, 100), slice(100, 101), slice(101, 500)]
        sums = [softmax_linear(np.log(P[r])[:, :, None], Y[r], np.ones(len(Y[r])), np.array([beta])) for r in parts]
        return sums[0] + sums[1] + sums[2]

    assert minimize_beta(batch_sums)[0] == pytest.approx(spec.fit(P, Y, np.ones(500)).beta, rel=1e-12)


def test_the_map_with_beta_one_changes_nothing():
    P = draw_predictions(50, 4, 1.0, 7)[0]
    assert TemperatureMap(1.0).apply(P) == pytest.approx(P, abs=1e-15)
