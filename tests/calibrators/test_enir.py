"""Near-isotonic curves, averaged."""

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, one_hot
from tests.reference import frame, golden
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.isotonic import EnirSpec, IsotonicSpec, bic_weights, model_log_likelihood
from trueodds.data.predictions import Predictions
from trueodds.kernels.isotonic import average_levels, near_isotonic_path


def fit_map(P, y, w=None):
    return EnirSpec().fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def path_of(rows):
    scores, which = np.unique(rows["p"], return_inverse=True)
    return scores, near_isotonic_path(np.bincount(which).astype(float), np.bincount(which, rows["y"]))


def test_two_models_are_averaged_by_their_bic():
    # Rates .2, .8, .5, .6 of ten rows each: at λ = 1 they are .2, .7, .6, .6, at λ = 5/3 .2 and three times 19/30.
    p, y = np.repeat([0.1, 0.2, 0.3, 0.4], 10), np.concatenate([np.arange(10) < n_events for n_events in (2, 8, 5, 6)])
    ends = 2 * np.log(0.2) + 8 * np.log(0.8)
    first = ends + 8 * np.log(0.7) + 2 * np.log(0.3) + 11 * np.log(0.6) + 9 * np.log(0.4)
    last = ends + 19 * np.log(19 / 30) + 11 * np.log(11 / 30)
    odds = np.exp(first - last - (3 - 2) * np.log(40) / 2)  # one level less costs log(40) / 2
    want = (odds * np.array([0.7, 0.6]) + 19 / 30) / (1 + odds)
    assert fit_map(both(p), y).apply(both([0.1, 0.2, 0.35, 0.9]))[:, 1] == pytest.approx(
        [0.2, want[0], want[1], want[1]]
    )


@pytest.mark.parametrize(("key", "file"), [("ties", "binary_ties"), ("binary", "binary")])
def test_the_reference_numbers(key, file):
    # The path equals that of the authors' package; its optimality was checked with SLSQP (recalibration/enir.json).
    reference, rows = golden("recalibration/enir.json"), frame(f"recalibration/{file}.csv")
    want, (scores, path) = reference[key], path_of(rows)
    assert path.lambdas == pytest.approx(np.array(want["lambdas"]), abs=1e-10)
    assert path.n_blocks.tolist() == want["dfs"]
    weights = bic_weights(path, np.log(len(rows["p"])))
    assert weights[0] == 0
    assert weights[1:] == pytest.approx(np.array(want["weights"]), abs=1e-12)
    got = fit_map(both(rows["p"]), rows["y"]).apply(both(reference["grid"]))[:, 1]
    assert got == pytest.approx(np.array(want["pred_grid"]), abs=1e-10)
    if key == "ties":
        assert scores == pytest.approx(want["knots"])
        bic = [np.log(200) * size - 2 * model_log_likelihood(path, model) for model, size in enumerate(want["dfs"])]
        assert bic == pytest.approx(want["bic"], abs=1e-9)


@pytest.mark.parametrize(("key", "file"), [("ties", "binary_ties"), ("binary", "binary")])
def test_with_the_price_of_the_authors_package_its_numbers_come_out(key, file):
    # Its BIC adds log 2π to log n, and it rounds levels to 1e-6 (recalibration/enir_official_bic.json).
    want, rows = golden("recalibration/enir_official_bic.json"), frame(f"recalibration/{file}.csv")
    scores, path = path_of(rows)
    level = average_levels(path, bic_weights(path, np.log(2 * np.pi * len(rows["p"]))))
    got = np.interp(want["grid"], scores, level)
    assert got == pytest.approx(np.array(want[key]), abs=1e-10)
    assert got == pytest.approx(np.array(want[f"official_R_unsmoothed_{key}"]), abs=5e-7)


def test_no_model_that_matters_is_passed_over():
    rng = np.random.default_rng(0)
    p, w = np.sort(rng.random(400)), rng.random(400) + 0.5
    path = near_isotonic_path(w, w * rng.binomial(3, 0.5 + 0.4 * np.sin(9 * p)) / 3)
    models = range(1, len(path.lambdas))
    bic = np.array([path.n_blocks[m] * np.log(400) - 2 * model_log_likelihood(path, m) for m in models])
    every = np.exp(-(bic - bic.min()) / 2)
    assert bic_weights(path, np.log(400))[1:] == pytest.approx(every / every.sum(), abs=1e-15)


def test_the_likelihood_never_rises_along_the_path():
    # The bound by which models are passed over: dℓ/dλ = −λ Σ c²/(W f (1 − f)) between meetings.
    _, outcomes = draw_predictions(300, 2, 1.5, 1)
    path = near_isotonic_path(np.ones(300), outcomes.astype(float))
    likelihoods = [model_log_likelihood(path, model) for model in range(len(path.lambdas))]
    assert (np.diff(likelihoods) <= 1e-9).all()


def test_what_rises_already_is_isotonic_regression():
    P, y = both([0.1, 0.1, 0.2, 0.2, 0.3, 0.3]), [0, 0, 0, 1, 1, 1]
    grid = both(np.arange(21) / 20)
    assert fit_map(P, y).apply(grid) == pytest.approx(IsotonicSpec().fit(P, one_hot(y), np.ones(6)).apply(grid))


def test_a_fall_that_the_data_insist_on_is_kept():
    # .8 below the middle and .2 above, 2,000 rows each. The mean of the curve over a half is that half's rate ∓ λ/2000
    # with λ of the model. Within halves falls are gone before λ reaches the largest distance of a Brownian bridge,
    # 1.95 · .4 · √2000 = 35 in all but one of 1,000 samples: 35/2000 and four standard errors .4/√2000 make .054.
    rng = np.random.default_rng(2)
    p = rng.random(4000)
    curve = fit_map(both(p), rng.random(4000) < np.where(p < 0.5, 0.8, 0.2))
    q = curve.apply(both(p))[:, 1]
    assert q[p < 0.5].mean() == pytest.approx(0.8, abs=0.054)
    assert q[p >= 0.5].mean() == pytest.approx(0.2, abs=0.054)


def test_votes_are_shares_of_a_row_and_rows_without_weight_are_none():
    P, y = draw_predictions(200, 2, 1.5, 3)
    Y, w = one_hot(y), np.ones(200)
    Y[:50] = [0.4, 0.6]
    w[150:] = 0
    grid = both(np.arange(21) / 20)
    assert EnirSpec().fit(P, Y, w).apply(grid) == pytest.approx(
        EnirSpec().fit(P[:150], Y[:150], w[:150]).apply(grid), abs=1e-15
    )


def test_weights_that_are_no_counts_tell_nothing_about_how_many_rows_there_are():
    P, y = draw_predictions(300, 3, 1.5, 4)
    grid, w = P[:50], np.random.default_rng(0).random(300)
    assert fit_map(P, y, w).apply(grid) == pytest.approx(fit_map(P, y, w / 1000).apply(grid), abs=1e-12)


@pytest.mark.parametrize("y", [[0], [1]])
def test_one_row_is_answered(y):
    result = fit(EnirSpec(), Predictions(y, [0.3], classes=[0, 1]))
    assert result.predict_proba([0.3, 0.9]).tolist() == [[1 - y[0], y[0]]] * 2
    assert {note.code for note in result.notes} == {"TN501", "TN505"}


def test_exact_zeros_and_ones_among_scores_and_absent_classes_are_answered():
    P = np.array([[1.0, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [0.25, 0.75, 0]] * 5)
    Q = fit_map(P, [0, 1, 0, 1] * 5).apply(np.vstack([P, [[0, 0, 1]]]))
    assert np.isfinite(Q).all()
    assert Q.sum(axis=1) == pytest.approx(1)


def test_a_hundred_thousand_rows_hold_no_curve_per_model():
    # 30,000 levels at the start: a curve for each of 3,000 models would take 700 MB.
    rng = np.random.default_rng(5)
    p = rng.random(100_000)
    curve = fit_map(both(p), rng.random(100_000) < p).curves[0]
    assert len(curve.x) < 1000
    # Isotonic regression errs by about (4 p'(1−p)p/n)^(1/3) ≈ .02 in a point; ten times the mean of that is far.
    assert abs(curve(np.arange(1, 20) / 20) - np.arange(1, 20) / 20).max() < 0.1
