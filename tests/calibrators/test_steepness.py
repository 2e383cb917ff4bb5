"""The power of the probabilities that is best."""

import sys
import tracemalloc

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, one_hot, powers
from trueodds.calibrators._glm.log_probabilities import replacement_notes
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.temperature import MAX_BETA, MIN_BETA, TemperatureSpec, local_minimum_beta, minimize_beta
from trueodds.data.predictions import Predictions
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_linear, softmax_tempered


def sums_of(P, y):
    return lambda beta: softmax_tempered(P, y, np.ones(len(P)), beta, 1e-12)


@pytest.mark.parametrize("start", [MIN_BETA, 0.01, 0.9, 1.0, 30.0, MAX_BETA])
@pytest.mark.parametrize("sharpness", [0.2, 1.0, 3.0])
def test_every_start_leads_to_the_same_place(sharpness, start):
    P, y = draw_predictions(300, 4, sharpness, 0)
    beta, n_passes = minimize_beta(sums_of(P, y), start)
    assert beta == pytest.approx(minimize_beta(sums_of(P, y))[0], rel=1e-11)
    assert n_passes < 25
    assert abs(sums_of(P, y)(beta).gradient[0]) / 300 < 1e-10


@pytest.mark.parametrize("start", [MIN_BETA, 0.5, 1.0, 30.0, MAX_BETA])
def test_every_start_leads_to_the_end_of_the_range_where_that_is_best(start):
    P = both([0.2, 0.7, 0.9])
    assert minimize_beta(sums_of(P, np.array([0, 1, 1])), start)[0] == MAX_BETA
    assert minimize_beta(sums_of(P, np.array([1, 0, 0])), start)[0] == MIN_BETA


def test_higher_derivatives_save_passes_and_change_nothing():
    P, y = draw_predictions(1000, 5, 2.0, 1)

    def plain(beta):
        at = sums_of(P, y)(beta)
        return Likelihood(at.value, at.gradient, at.hessian, at.weight, at.n)

    (one, short), (other, long) = minimize_beta(sums_of(P, y)), minimize_beta(plain)
    assert one == pytest.approx(other, rel=1e-11)
    assert short < long


@pytest.mark.parametrize("truth", [40.0, 150.0, 600.0])
def test_a_wide_step_does_not_lose_the_minimum_where_everything_underflows(truth):
    # Exact shares as outcomes: the minimum is at the truth, far from the start and from where the curvature is 0.
    P = both([0.49, 0.495, 0.505, 0.51])
    assert minimize_beta(sums_of(P, powers(P, truth)))[0] == pytest.approx(truth, rel=1e-8)


def big(monkeypatch, P):
    """As if it were many rows: samples of every 64th and every 8th come first."""
    monkeypatch.setattr(sys.modules[TemperatureSpec.__module__], "_MIN_SAMPLE_SIZE", P.size // 64)


def test_a_sample_to_start_from_changes_nothing(monkeypatch):
    P, y = draw_predictions(6400, 5, 2.0, 2)
    w = np.random.default_rng(0).random(6400)
    direct = TemperatureSpec().fit(P, y, w)
    big(monkeypatch, P)
    order = np.random.default_rng(1).permutation(6400)
    for one in (TemperatureSpec().fit(P, y, w), TemperatureSpec().fit(P[order], y[order], w[order])):
        assert one.beta == pytest.approx(direct.beta, rel=1e-11)
        assert one.n_passes < direct.n_passes
        assert abs(softmax_tempered(P, y, w, one.beta, 1e-12).gradient[0]) / w.sum() < 1e-10


@pytest.mark.parametrize("misleading", ["right", "wrong", "uniform", "weightless"])
def test_a_sample_that_misleads_does_no_harm(misleading, monkeypatch):
    P, y = draw_predictions(6400, 3, 2.0, 3)
    w = np.ones(6400)
    if misleading == "right":
        y[::8] = P[::8].argmax(axis=1)
    if misleading == "wrong":
        y[::8] = P[::8].argmin(axis=1)
    if misleading == "uniform":
        P[::8] = 1 / 3
    if misleading == "weightless":
        w[::8] = 0
    direct = TemperatureSpec().fit(P, y, w).beta
    big(monkeypatch, P)
    assert TemperatureSpec().fit(P, y, w).beta == pytest.approx(direct, rel=1e-11)


def test_labels_and_one_hot_shares_are_the_same():
    P, y = draw_predictions(500, 4, 2.0, 4)
    one, other = (TemperatureSpec().fit(P, Y, np.ones(500)) for Y in (y, one_hot(y, 4)))
    assert one.beta == pytest.approx(other.beta, rel=1e-13)


def test_the_sums_of_probabilities_are_those_of_their_logs():
    P, y = draw_predictions(200, 4, 2.0, 5)
    w = np.random.default_rng(0).random(200)
    one = softmax_tempered(P, y, w, 0.7, 1e-12)
    other = softmax_linear(np.log(P)[:, :, None], one_hot(y, 4), w, np.array([0.7]))
    assert (one.n, one.weight) == (other.n, other.weight)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert one.gradient == pytest.approx(other.gradient, abs=1e-11)
    assert one.hessian == pytest.approx(other.hessian, rel=1e-11)
    assert one.higher_derivatives == pytest.approx(other.higher_derivatives, rel=1e-9)
    assert (one + other).higher_derivatives == pytest.approx(2 * one.higher_derivatives, rel=1e-9)


def test_a_fit_copies_neither_probabilities_nor_labels():
    rng = np.random.default_rng(6)
    P = rng.dirichlet(np.ones(100), 20_000).astype(np.float32)  # the fingerprint of up to 65,536 of them takes 2 MB
    preds = Predictions(rng.integers(0, 100, 20_000), P)
    fit(TemperatureSpec(), preds)  # whatever is made once
    tracemalloc.start()
    fit(TemperatureSpec(), preds)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < P.nbytes / 2


def test_the_floor_is_counted_alike_for_labels_shares_and_every_type():
    P = np.array([[1e-12, 0.5, 0.5], [1e-13, 0.5, 0.5], [0.0, 1.0, 0.0]])
    y = np.array([0, 0, 1])
    expected = "3 of 9 probabilities were below 1e-12 and raised to it in the fit, 1 of them of observed outcomes"
    for Y in (y, one_hot(y, 3)):
        assert expected in replacement_notes(P, Y, 1e-12)[0].text
    # As float32, 1e-12 is less than 1e-12.
    narrow = P.astype(np.float32)
    assert narrow[0, 0].astype(float) < 1e-12
    assert (
        "4 of 9 probabilities were below 1e-12 and raised to it in the fit, 2 of them of observed outcomes"
        in replacement_notes(narrow, y, 1e-12)[0].text
    )
    assert replacement_notes(narrow.astype(np.float64), y, 1e-12) == replacement_notes(narrow, y, 1e-12)
    assert replacement_notes(P.astype(np.float16), y, 1e-12)[0].text.startswith("4 of 9 probabilities were below 1e-12")
    assert replacement_notes(np.full((2, 2), 0.5), y[:2], 1e-12) == []


def test_the_valley_downhill_is_taken_not_the_deepest():
    # (b − 1/2)(b − 2)(b − 8): minima at 1/2 and 8, a hill at 2.
    def slopes(b):
        first = (b - 0.5) * (b - 2) * (b - 8)
        return first, (b - 2) * (b - 8) + (b - 0.5) * (b - 8) + (b - 0.5) * (b - 2)

    assert local_minimum_beta(slopes, 1.0)[0] == pytest.approx(0.5, rel=1e-12)
    assert local_minimum_beta(slopes, 3.0)[0] == pytest.approx(8, rel=1e-12)
    assert local_minimum_beta(slopes, 100.0)[0] == pytest.approx(8, rel=1e-12)
    assert local_minimum_beta(slopes, 0.5) == (0.5, 1)


def test_a_valley_without_end_ends_at_the_range():
    assert local_minimum_beta(lambda b: (-1.0, 0.0))[0] == MAX_BETA
    assert local_minimum_beta(lambda b: (1.0, 0.0))[0] == MIN_BETA
