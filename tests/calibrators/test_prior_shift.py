"""Other class frequencies: the map to them, their estimates, and errors under them."""

import json
import sys

import numpy as np
import pytest

import trueodds as to
from tests.calibrators.rows import both, draw_predictions, labels, one_hot
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.prior_shift import (
    PriorShiftMap,
    PriorShiftSpec,
    bbse_frequencies,
    class_weights,
    maximum_likelihood_frequencies,
    soft_bbse_frequencies,
)
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions

MEANS = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
SOURCE, TARGET = np.array([0.5, 0.3, 0.2]), np.array([0.15, 0.25, 0.6])


def drawn(n, priors, rng):
    """Points of three normal classes, and their labels."""
    y = rng.choice(3, n, p=priors)
    return MEANS[y] + rng.normal(size=(n, 2)), y


def posterior(X, priors):
    """The exact probability of each class where they have these frequencies."""
    e = np.exp(-((X[:, None, :] - MEANS) ** 2).sum(axis=2) / 2) * priors
    return e / e.sum(axis=1, keepdims=True)


def model(X):
    """A fixed model that is too sure and favors class 0, as no calibration error would be left to see."""
    q = posterior(X, np.array([0.6, 0.2, 0.2])) ** 1.8
    return q / q.sum(axis=1, keepdims=True)


def test_known_priors_by_hand():
    # Source half and half, target 9 to 1: even odds become 9 to 1, and .2 against .8 becomes 1.8/.8.
    m = PriorShiftSpec(priors=[0.9, 0.1]).fit(both([0.2, 0.8]), one_hot([0, 1]), np.ones(2))
    assert m.ratios == pytest.approx([1.8, 0.2])
    assert m.apply(both([0.5, 0.8]))[:, 0] == pytest.approx([0.9, 9 * 0.2 / (9 * 0.2 + 0.8)])
    assert m.describe() == "ratios 1.8 0.2"


def test_known_priors_give_the_exact_posterior_of_the_target():
    # Outcomes as shares with exactly the source's frequencies: then p·π_t/π_s over its sum is Bayes' rule.
    rng = np.random.default_rng(0)
    X, _ = drawn(500, TARGET, rng)
    Y = np.tile(SOURCE, (500, 1))
    m = PriorShiftSpec(priors=dict(enumerate(TARGET))).fit(posterior(X, SOURCE), Y, np.ones(500))
    assert m.apply(posterior(X, SOURCE)) == pytest.approx(posterior(X, TARGET), abs=1e-12)


def test_known_priors_bring_calibration_back():
    # Under the target the source's posterior is off, the map's is not: E Σ_k (y_k − q_k) s_k = 0 for any s of q.
    # Here s is the class's own log odds; its sum over the rows has the variance of a sum of independent terms.
    rng = np.random.default_rng(1)
    X, y = drawn(20_000, SOURCE, rng)
    m = fit(PriorShiftSpec(priors=TARGET), Predictions(y, posterior(X, SOURCE))).calibration_map
    X, y = drawn(20_000, TARGET, rng)

    def z(Q):
        e = (one_hot(y, 3) - Q)[:, 0] * np.log(Q[:, 0])
        return e.sum() / np.sqrt((e**2).sum())

    P = posterior(X, SOURCE)
    assert abs(z(P)) > 20
    # The source's frequencies are estimated from as many rows, which doubles the variance: 4 √2 standard errors.
    assert abs(z(m.apply(P))) < 4 * np.sqrt(2)


@pytest.mark.parametrize("how", ["em", "bbse", "bbse-soft"])
def test_estimated_frequencies_are_within_four_standard_errors(how):
    # Over 60 repetitions the mean of the estimates is the target's; its standard error is their spread over √60.
    rng = np.random.default_rng(2)
    shares = []
    for _ in range(60):
        X, y = drawn(2000, SOURCE, rng)
        unlabelled, _ = drawn(2000, TARGET, rng)
        spec = PriorShiftSpec(target=posterior(unlabelled, SOURCE), how=how)
        m = spec.fit(posterior(X, SOURCE), one_hot(y, 3), np.ones(2000))
        assert m.converged
        shares.append(m.ratios * np.bincount(y, minlength=3) / 2000)
    mean, se = np.mean(shares, axis=0), np.std(shares, axis=0, ddof=1) / np.sqrt(60)
    assert np.sum(shares, axis=1) == pytest.approx(1.0)
    # Up to a bias of second order, about 1/2000.
    assert (np.abs(mean - TARGET) < 4 * se + 1e-3).all()


def test_the_likelihood_is_highest_at_the_estimate():
    rng = np.random.default_rng(3)
    X, y = drawn(500, SOURCE, rng)
    unlabelled, _ = drawn(300, TARGET, rng)
    P, Y, T = posterior(X, SOURCE), one_hot(y, 3), posterior(unlabelled, SOURCE)
    solution = maximum_likelihood_frequencies(P, Y, np.ones(500), T)
    R = T / (Y.mean(axis=0))

    def loglik(share):
        return np.log(R @ share).mean()

    assert solution.converged
    assert solution.n_passes < 200
    for other in rng.dirichlet(np.ones(3), 2000):
        near = 0.99 * solution.shares + 0.01 * other
        assert loglik(near) <= loglik(solution.shares) + 1e-10
    # Plain steps, many of them, lead to the same place.
    share = np.full(3, 1 / 3)
    for _ in range(5000):
        share = share * ((1 / (R @ share)) @ R) / len(R)
    assert solution.shares == pytest.approx(share, abs=1e-4)


def alike(n):
    """Predictions (n, 3) of classes that are hard to tell apart."""
    return np.random.default_rng(4).dirichlet([5, 4, 6], n)


def even(T):
    """The most likely frequencies where the source's are equal."""
    k = T.shape[1]
    return maximum_likelihood_frequencies(T, np.full((len(T), k), 1 / k), np.ones(len(T)), T)


def test_the_likelihood_never_falls_from_pass_to_pass(monkeypatch):
    T, reached = alike(400), []
    for pass_limit in range(1, 50):
        monkeypatch.setattr(sys.modules[PriorShiftMap.__module__], "MAX_EVALUATIONS", pass_limit)
        solution = even(T)
        reached.append(np.log(3 * T @ solution.shares).mean())
        if solution.converged:
            break
        assert solution.n_passes <= pass_limit + 1
        assert "still increases" in solution.doubts[0]
    assert solution.converged
    assert pass_limit > 5
    assert (np.diff(reached) >= -1e-14).all()


@pytest.mark.parametrize("concentration", [[5, 4, 6], [1, 1, 1], [0.2] * 8, [8] * 5])
def test_rounding_decides_neither_the_passes_nor_more_than_the_last_digits_of_the_frequencies(concentration):
    # The sums over rows in another order differ in their last bits. The shares are an average of rows times the inverse
    # of the curvature: its condition number, below 1e4 here, times 1e-15 for the sums.
    rng = np.random.default_rng(6)
    T = rng.dirichlet(concentration, 400)
    plain = even(T)
    assert plain.converged
    for _ in range(10):
        permuted = even(T[rng.permutation(400)] * 0.3 / 0.3)
        assert permuted.converged
        assert permuted.n_passes == pytest.approx(plain.n_passes, abs=2)  # a gradient may lie at the tolerance itself
        assert permuted.shares == pytest.approx(plain.shares, rel=0, abs=1e-11)


def test_predicted_classes_are_unmixed_exactly():
    # A table of predicted class (row) and label on which SciPy's nnls (1.15 to 1.17) stops before the minimum.
    table = np.array([[0, 1, 1, 0], [0, 0, 0, 1], [2, 1, 0, 0], [0, 0, 0, 2]])
    predicted, observed = np.nonzero(table)
    times = table[predicted, observed]
    P, Y = np.eye(4)[np.repeat(predicted, times)], np.eye(4)[np.repeat(observed, times)]
    T = np.eye(4)[np.repeat(np.arange(4), [2, 4, 2, 1])]
    solution = bbse_frequencies(P, Y, np.ones(8), T)
    # Nothing but class 3 predicts 1 and 3: least (4/9 − ω/8)² + (1/9 − 2ω/8)², ω = (4/72 + 2/72) · 64/5. Classes 0 to 2
    # fit the rest, 2/9 and 2/9, exactly: ω₁ + ω₂ = 16/9 and 2ω₀ + ω₁ = 16/9, which does not tell which.
    omega = solution.shares / (Y.mean(axis=0))
    omega *= 16 / 15 / omega[3]
    assert omega[1] + omega[2] == pytest.approx(16 / 9, rel=1e-9)
    assert 2 * omega[0] + omega[1] == pytest.approx(16 / 9, rel=1e-9)
    assert (omega >= 0).all()


def test_a_class_that_left_gets_no_share_and_no_probability():
    rng = np.random.default_rng(5)
    X, y = drawn(1000, SOURCE, rng)
    P, T = posterior(X, SOURCE), np.eye(3)[rng.integers(0, 2, 200)]
    for estimate in (maximum_likelihood_frequencies, bbse_frequencies, soft_bbse_frequencies):
        assert estimate(P, one_hot(y, 3), np.ones(1000), T).shares[2] == pytest.approx(0, abs=1e-6)
    m = PriorShiftSpec(priors=[0.5, 0.5, 0.0]).fit(P, one_hot(y, 3), np.ones(1000))
    assert (m.apply(P)[:, 2] == 0).all()
    # A row that was sure of the class that left knows nothing of the others.
    assert m.apply(np.array([[0.0, 0.0, 1.0]]))[0].tolist() == [0.5, 0.5, 0.0]


def test_a_class_that_the_source_never_saw_keeps_its_ratio_and_is_noted():
    preds = Predictions([0, 1, 0, 1], np.full((4, 3), 1 / 3))
    result = fit(PriorShiftSpec(priors=[0.2, 0.2, 0.6]), preds)
    assert result.calibration_map.ratios == pytest.approx([0.4, 0.4, 1.0])
    assert [note.code for note in result.notes if note.code.startswith("TN5")] == ["TN501", "TN519", "TN520"]
    target = np.array([[0.0, 0.0, 1.0], [0.5, 0.25, 0.25]])
    doubtful = fit(PriorShiftSpec(target=target), preds)
    assert "1 target rows predict only classes that were never observed" in doubtful.notes[-1].text
    lost = fit(PriorShiftSpec(target=target[:1]), preds)
    assert not lost.calibration_map.converged
    assert lost.predict_proba([[0.2, 0.3, 0.5]]) == pytest.approx(np.array([[0.2, 0.3, 0.5]]))


def test_a_confusion_matrix_that_cannot_be_solved_is_noted():
    # The model never says class 1 first, so predicted classes tell nothing of it.
    P = both([0.1, 0.2, 0.3, 0.4])
    result = fit(PriorShiftSpec(target=[0.2, 0.4], how="bbse"), Predictions([0, 1, 0, 1], P))
    assert "TN520" in [note.code for note in result.notes]
    assert "nearly singular" in result.notes[-1].text
    assert np.isfinite(result.calibration_map.ratios).all()


def test_votes_weights_and_one_column_are_understood():
    rng = np.random.default_rng(6)
    P, y = draw_predictions(200, 2, 1.0, 6)
    w, target = rng.integers(1, 4, 200), rng.random(50)
    many = np.repeat(np.arange(200), w)
    for how in ("em", "bbse", "bbse-soft"):
        spec = PriorShiftSpec(target=target, how=how)
        one = spec.fit(P, one_hot(y), w.astype(float))
        other = spec.fit(P[many], one_hot(y[many]), np.ones(len(many)))
        assert one.ratios == pytest.approx(other.ratios, abs=1e-9)
        twice = PriorShiftSpec(target=both(target).astype(np.float32), how=how).fit(P, one_hot(y), w.astype(float))
        assert twice.ratios == pytest.approx(one.ratios, abs=1e-5)


def test_the_target_rows_are_not_saved():
    P, y = draw_predictions(60, 3, 1.0, 7)
    result = fit(PriorShiftSpec(target=np.tile(P, (30, 1))), Predictions(y, P))
    document = result.to_dict()
    assert document["settings"]["target"] == "1,800 predictions"
    assert len(json.dumps(document, allow_nan=False)) < 2000
    named = fit(PriorShiftSpec(priors={0: 0.2, 1: 0.3, 2: 0.5}), Predictions(y, P)).to_dict()
    assert named["settings"]["priors"] == {"0": 0.2, "1": 0.3, "2": 0.5}
    json.dumps(named, allow_nan=False)
    assert fit(PriorShiftSpec(priors=np.array([0.2, 0.3, 0.5])), Predictions(y, P)).settings["priors"] == [
        0.2,
        0.3,
        0.5,
    ]


@pytest.mark.slow
def test_weighted_source_rows_tell_the_error_on_the_target():
    # A model that is not calibrated, 200,000 labelled source rows and as many unlabelled target rows.
    rng = np.random.default_rng(8)
    n = 200_000
    X, y = drawn(n, SOURCE, rng)
    unlabelled, hidden = drawn(n, TARGET, rng)
    P, T = model(X), model(unlabelled)
    weights = class_weights(P, y, T)
    # BBSE needs no calibration. A share is a mean of n terms of at most 1, through a matrix whose inverse is
    # below 4 in norm here: its standard error is at most 4/√n, twice (source and target).
    assert weights * SOURCE == pytest.approx(TARGET, abs=4 * 2 * 4 / np.sqrt(n))
    w = weights[y]
    for estimator, lens in (("ece", "classwise"), ("brier", None), ("debiased_l2", "confidence")):
        settings = {"lens": lens, "interval": None}
        truth = to.measure(Predictions(hidden, T), estimator, **settings).value
        value = to.measure(Predictions(y, P, weight=w), estimator, **settings).value
        plain = to.measure(Predictions(y, P), estimator, **settings).value
        # Each is a mean of terms within [−1, 1] (an L2 of .1 and more has a slope of at most 1/.1 · .5): its standard
        # error is at most √Σw²/Σw, and that of the target 1/√n; the weights add published.
        tolerance = 4 * (np.sqrt(w @ w) / w.sum() + 1 / np.sqrt(n) + 8 / np.sqrt(n) / 4)
        assert abs(value - truth) < tolerance
        assert abs(plain - truth) > 2 * tolerance
    # Expectation and maximization take the model at its word, and this one is too sure: the weights are of no use.
    assert np.abs(class_weights(P, y, T, how="em") * SOURCE - TARGET).max() > 0.2


def test_weights_by_known_frequencies_are_unbiased_for_any_error():
    # With exact ω the weighted mean of any f(X, Y) is the target's: over 200 repetitions within 4 standard errors.
    rng = np.random.default_rng(9)
    omega, away = TARGET / SOURCE, []
    for _ in range(200):
        X, y = drawn(500, SOURCE, rng)
        unlabelled, hidden = drawn(500, TARGET, rng)
        brier = ((model(X) - one_hot(y, 3)) ** 2).sum(axis=1)
        there = ((model(unlabelled) - one_hot(hidden, 3)) ** 2).sum(axis=1)
        away.append((omega[y] * brier).mean() - there.mean())
    assert abs(np.mean(away)) < 4 * np.std(away, ddof=1) / np.sqrt(200)


def test_class_weights_take_what_predictions_take():
    y, p = ["no", "no", "yes", "yes"], [0.1, 0.4, 0.6, 0.9]
    with pytest.raises(InputError, match="TO106"):
        class_weights(p, y, p)
    weights = class_weights(p, [0, 0, 1, 1], p, how="bbse", weight=[1, 1, 2, 2])
    # Source shares 1/3 and 2/3; half of the target is said to be of each class.
    assert weights == pytest.approx([1.5, 0.75])
    with pytest.raises(InputError, match="TO203"):
        class_weights(p, [0, 0, 1, 1], p, how="magic")
    with pytest.raises(InputError, match="TO102"):
        class_weights(p, [0, 0, 1, 1], [1.5])


def test_the_map_does_not_depend_on_how_many_rows_are_mapped():
    m = PriorShiftMap(np.array([2.0, 0.5, 1.0]))
    P = np.random.default_rng(10).dirichlet(np.ones(3), 20)
    assert np.concatenate([m.apply(P[:7]), m.apply(P[7:])]).tolist() == m.apply(P).tolist()


def test_without_frequencies_it_says_what_it_needs():
    with pytest.raises(InputError, match=r"TO203.*neither priors nor target.*priors="):
        fit(PriorShiftSpec(), Predictions([0, 1], [0.2, 0.7]))


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"priors": [0.5, 0.6]}, "TO203"),
        ({"priors": [1.5, -0.5]}, "TO203"),
        ({"priors": [1.0]}, "TO203"),
        ({"priors": {1: 0.5, 2: 0.5}}, "TO203"),
        ({"priors": [0.5, None]}, "TO203"),
        ({"priors": [np.nan, 1.0]}, "TO203"),
        ({"target": [0.5, np.nan]}, "TO103"),
        ({"target": np.full((2, 3), 1 / 3)}, "TO501"),
        ({"target": []}, "TO108"),
    ],
)
def test_frequencies_that_are_none_are_refused(settings, code):
    with pytest.raises(InputError, match=code):
        fit(PriorShiftSpec(**settings), Predictions([0, 1], [0.2, 0.7]))


def test_a_posterior_drawn_from_keeps_the_frequencies():
    # Where source and target are alike, the estimate is the identity up to chance.
    rng = np.random.default_rng(11)
    P = rng.dirichlet(np.ones(4), 20_000)
    y = labels(P, rng)
    ratios = PriorShiftSpec(target=P).fit(P, one_hot(y, 4), np.ones(20_000)).ratios
    assert ratios == pytest.approx(np.ones(4), abs=4 * 3 / np.sqrt(20_000))  # a ratio's error is below 3/√n here


@pytest.mark.parametrize("settings", [{"target": [0.3, 0.7]}, {"priors": 0.3}])
def test_shares_of_the_classes_are_no_predictions_and_one_number_is_no_shares(settings):
    with pytest.raises(InputError, match="TO203"):
        PriorShiftSpec(**settings).fit(both([0.2, 0.8]), one_hot([0, 1]), np.ones(2))


def test_the_note_states_the_given_frequencies_of_a_class_that_the_source_lacks() -> None:
    """Regression: the note said that the target has no such class, because its ratio is 1."""
    preds = to.Predictions([0, 1] * 20, np.tile([0.4, 0.4, 0.2], (40, 1)))
    calibrator = to.fit(preds, "prior_shift", priors=[0.4, 0.4, 0.2])
    (text,) = (note.text for note in calibrator.notes if note.code == "TN519")
    assert text == "Class frequencies: 0.5 0.5 0 in the source, 0.4 0.4 0.2 in the target."
