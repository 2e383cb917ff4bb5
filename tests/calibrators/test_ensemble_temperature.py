"""Tempered, unchanged and uniform rows, mixed."""

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, labels, one_hot, powers
from tests.reference import columns, frame, golden
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.temperature import (
    EnsembleTemperatureMap,
    EnsembleTemperatureSpec,
    TemperatureSpec,
    _brier_derivatives,
    _fit_weights_by_brier,
    _fit_weights_by_likelihood,
)
from trueodds.data.predictions import Predictions

KEYS = {"log": "ce", "brier": "mse"}


def noisy(y):
    """Every fifth label replaced by the next of the classes in turn."""
    i = np.arange(len(y))
    return np.where(i % 5 == 0, (i // 5) % 4, y)


def fit_map(P, y, loss="log"):
    return EnsembleTemperatureSpec(loss).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


@pytest.mark.parametrize("loss", ["log", "brier"])
@pytest.mark.parametrize("labels", ["ets", "ets_noisy"])
def test_the_reference_numbers(labels, loss):
    # The official Mix-n-Match code agrees with these to 1.4e-7 in T and 5e-7 in the shares. They were found by
    # comparing values, which leaves 1e-8 of β where the slope is known to vanish.
    want = golden(f"recalibration/{labels}.json")[KEYS[loss]]
    rows, test = frame("recalibration/multi4.csv"), frame("recalibration/multi4_test.csv")
    y = rows["y"].astype(int)
    m = fit_map(columns(rows), noisy(y) if labels == "ets_noisy" else y, loss)
    assert m.beta == pytest.approx(want["beta"], abs=1e-8)
    assert m.shares == pytest.approx(want["weights_ts_id_unif"], abs=1e-8)
    assert m.apply(columns(test)) == pytest.approx(np.array(want["pred"]), abs=1e-8)


def test_the_setting_of_the_loss_is_heeded():
    # The official code fits the squares whichever loss is asked for.
    P, y = draw_predictions(800, 4, 2.0, 0)
    log, brier = fit_map(P, noisy(y)), fit_map(P, noisy(y), "brier")
    assert abs(log.beta - brier.beta) > 1e-3
    assert log.beta == TemperatureSpec().fit(P, one_hot(noisy(y), 4), np.ones(800)).beta


def score(P, Y, beta, shares, loss):
    k = P.shape[1]
    Q = shares[0] * powers(P, beta) + shares[1] * P + shares[2] / k
    return -(Y * np.log(Q)).sum() if loss == "log" else ((Q - Y) ** 2).sum()


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_nothing_nearby_is_better(loss):
    P, y = draw_predictions(600, 3, 2.5, 1)
    y[::7] = 0
    Y = np.random.default_rng(0).dirichlet(np.ones(3) / 2, 600) * 0.3 + 0.7 * one_hot(y, 3)
    m = EnsembleTemperatureSpec(loss).fit(P, Y, np.ones(600))
    lowest = score(P, Y, m.beta, m.shares, loss)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        other = np.array(m.shares)
        moved = min(1e-3, other[i])
        other[i] -= moved
        other[j] += moved
        assert score(P, Y, m.beta, other, loss) >= lowest - 1e-9
    for other in (m.beta - 1e-4, m.beta + 1e-4):
        assert score(P, Y, other, (1, 0, 0), loss) > score(P, Y, m.beta, (1, 0, 0), loss)


def test_the_slopes_of_the_squares_are_those_of_the_score():
    P, y = draw_predictions(50, 3, 2.5, 1)
    Y = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    for outcomes in (Y, one_hot(y, 3)):
        for beta in (0.3, 1.0, 2.5):
            h = 1e-5  # central differences: h² of the third derivative and eps/h of rounding
            first, second = _brier_derivatives(P, outcomes, np.ones(50), beta)
            up, down = (score(P, outcomes, beta + step, (1, 0, 0), "brier") for step in (h, -h))
            assert first == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-6)
            up, down = (_brier_derivatives(P, outcomes, np.ones(50), beta + step)[0] for step in (h, -h))
            assert second == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-6)


def test_no_slope_is_left():
    P, y = draw_predictions(2000, 3, 2.5, 1)
    y[::7] = 0
    m = fit_map(P, y, "brier")
    assert abs(_brier_derivatives(P, y, np.ones(2000), m.beta)[0]) / 2000 < 1e-8
    m = fit_map(P, y)
    likelihoods = np.stack([powers(P, m.beta), P, np.full_like(P, 1 / 3)])[:, np.arange(2000), y]
    gains = (likelihoods / (np.array(m.shares) @ likelihoods)).mean(axis=1) - 1
    assert gains.max() < 1e-8
    assert gains[np.array(m.shares) > 0] == pytest.approx(0, abs=1e-8)


def test_labels_and_one_hot_shares_are_the_same():
    P, y = draw_predictions(400, 3, 2.0, 4)
    for loss in ("log", "brier"):
        one, other = (EnsembleTemperatureSpec(loss).fit(P, Y, np.ones(400)) for Y in (y, one_hot(y, 3)))
        assert one.beta == pytest.approx(other.beta, rel=1e-12)
        assert one.shares == pytest.approx(other.shares, abs=1e-10)


@pytest.mark.parametrize("shares_of", [_fit_weights_by_likelihood, _fit_weights_by_brier])
def test_known_shares_are_found_again(shares_of):
    # Outcomes as exact shares of the mixture: it is the likeliest and has the least squares.
    P, _ = draw_predictions(400, 3, 3.0, 2)
    Y = 0.6 * powers(P, 0.4) + 0.1 * P + 0.3 / 3
    assert shares_of(P, Y, np.ones(400), 0.4) == pytest.approx([0.6, 0.1, 0.3], abs=1e-8)


def test_the_estimate_is_within_its_standard_error_of_the_truth():
    # Half the labels by the tempered row, half by chance; the temperature is known.
    P, _ = draw_predictions(5000, 4, 2.0, 5)
    R = 0.5 * powers(P, 0.5) + 0.5 / 4
    y = labels(R, np.random.default_rng(6))
    v = _fit_weights_by_likelihood(P, y, np.ones(5000), 0.5)
    likelihoods = np.stack([powers(P, 0.5)[np.arange(5000), y], P[np.arange(5000), y], np.full(5000, 0.25)], axis=1)
    along = likelihoods[:, [0, 2]] - likelihoods[:, [1]]
    hessian = (along / (likelihoods @ v)[:, None] ** 2).T @ along
    # Four standard errors of the uniform's share: once in 16,000 seeds.
    assert abs(v[2] - 0.5) < 4 * np.sqrt(np.linalg.inv(hessian)[1, 1])


def test_exact_zeros_that_come_need_the_uniform_and_no_floor_of_the_shares():
    P = np.concatenate([both([0.7] * 400), [[0.0, 1.0]] * 4])
    y = [1] * 300 + [0] * 100 + [1, 1, 1, 0]
    result = fit(EnsembleTemperatureSpec(), Predictions(y, P))
    assert result.calibration_map.shares[2] > 0
    assert 0 < result.predict_proba([[0.0, 1.0]])[0, 0] < 0.5
    assert [note.code for note in result.notes] == ["TN502"]
    assert [note.code for note in fit(EnsembleTemperatureSpec("brier"), Predictions(y, P)).notes] == []


def test_predictions_that_point_the_wrong_way_keep_their_labels_and_say_so():
    P, y = both([0.2, 0.7, 0.9, 0.6]), [1, 0, 0, 1]
    result = fit(EnsembleTemperatureSpec(), Predictions(y, P))
    assert result.calibration_map.shares == (0.0, 1e-6, 1 - 1e-6)
    assert (result.predict_proba(P).argmax(axis=1) == P.argmax(axis=1)).all()
    assert [note.code for note in result.notes] == ["TN511"]


def test_all_correct_predictions_are_noted():
    result = fit(EnsembleTemperatureSpec(), Predictions([0, 1, 1], both([0.2, 0.7, 0.9])))
    assert not result.calibration_map.converged
    assert [note.code for note in result.notes] == ["TN503"]


def test_rows_whose_sum_is_a_little_off_give_rows_that_sum_to_one():
    Q = EnsembleTemperatureMap(0.5, (0.5, 0.3, 0.2)).apply(np.array([[0.3, 0.3, 0.4001]]))
    assert Q.sum() == pytest.approx(1, abs=1e-15)


def test_a_mixture_is_described_by_its_parts_and_the_largest_comes_first():
    mixture = EnsembleTemperatureMap(1 / 1.53, (0.004, 0.936, 0.06))
    assert mixture.describe() == "a mixture: 94 % the original, 6 % uniform, 0 % temperature scaling (T = 1.53)"
