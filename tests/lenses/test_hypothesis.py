"""Is another calibration function than the identity tested as it should be?"""

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from tests.rates import rate_is_at_level
from trueodds.lenses.hypothesis import apply_hypothesis
from trueodds.lenses.lens_by_name import as_lens


def sharpened(P):
    Q = np.asarray(P) ** 1.5
    return Q / Q.sum(axis=1, keepdims=True)


def drawn(rng, Q):
    return (rng.random(len(Q))[:, None] > np.cumsum(Q, axis=1)).sum(axis=1).clip(0, Q.shape[1] - 1)


def three(rng, n):
    P = rng.dirichlet(np.ones(3), n)
    return P, drawn(rng, sharpened(P))


@pytest.mark.parametrize(
    "lens", ["confidence", "classwise", "class:1", "rank:2", "top-2", "canonical", "groups:[[0,2],[1]]"]
)
def test_the_prediction_is_what_rho_gives_the_event_of_the_lens(lens):
    P, y = three(np.random.default_rng(0), 50)
    preds = to.Predictions(y, P)
    preds_under, (lens_under,) = apply_hypothesis(preds, sharpened, [as_lens(lens)])
    Q = sharpened(P)
    for view, own in zip(lens_under.views(preds_under), as_lens(lens).views(preds), strict=True):
        assert (view.partition_values == own.p).all()
        assert (view.y == own.y).all()
        if lens == "confidence":  # what ρ says of the class that the model prefers
            np.testing.assert_allclose(view.p, Q[np.arange(50), P.argmax(axis=1)], rtol=1e-15)
        if lens == "rank:2":
            np.testing.assert_allclose(view.p, Q[np.arange(50), np.argsort(-P, axis=1)[:, 1]], rtol=1e-15)
        if lens == "groups:[[0,2],[1]]":
            np.testing.assert_allclose(view.p, Q[:, 1], rtol=1e-15)  # of two groups the second


def test_the_identity_as_rho_is_the_default_hypothesis():
    P, y = three(np.random.default_rng(1), 200)
    preds = to.Predictions(y, P)
    for lens in ("confidence", "classwise", "canonical"):
        a = to.test(preds, lens=lens, resamples=199)
        b = to.test(preds, lens=lens, resamples=199, hypothesis=lambda Q: Q)
        assert (a.statistic, a.pvalue) == pytest.approx((b.statistic, b.pvalue), rel=1e-12)


@pytest.mark.slow
def test_size_where_the_truth_is_rho_and_power_where_it_is_not():
    rng = np.random.default_rng(2)
    false = []

    def is_rejected(seed):
        P, y = three(rng, 200)
        preds = to.Predictions(y, P)
        settings = {"lens": ["confidence", "classwise"], "resamples": 99, "rng": seed}
        false.append(to.test(preds, **settings).pvalue <= 0.05)
        return to.test(preds, hypothesis=sharpened, **settings).pvalue <= 0.05

    assert rate_is_at_level(map(is_rejected, range(300)), 0.05, excluded=0.15)
    assert np.mean(false) > 0.15


def test_a_fitted_calibrator_is_a_hypothesis_and_is_named():
    P, y = three(np.random.default_rng(3), 2000)
    preds = to.Predictions(y, P)
    calibrator = to.fit(preds[:1000], "temperature")
    verdict = to.test(preds[1000:], hypothesis=calibrator, resamples=199)
    assert verdict.pvalue > 0.01
    assert to.test(preds[1000:], resamples=199).pvalue < 0.01
    assert verdict.settings["hypothesis"] == "temperature"


def test_two_classes_give_one_column_or_two_and_other_tests_take_the_hypothesis_too():
    rng = np.random.default_rng(4)
    p = rng.random(3000)
    preds = to.Predictions((rng.random(3000) < p**2).astype(int), p)
    verdicts = [
        to.test(preds, "spiegelhalter", hypothesis=rho)
        for rho in (lambda P: P[:, 1] ** 2, lambda P: np.stack([1 - P[:, 1] ** 2, P[:, 1] ** 2], axis=1))
    ]
    assert verdicts[0].to_dict() == {**verdicts[1].to_dict(), "settings": verdicts[0].to_dict()["settings"]}
    assert abs(verdicts[0].statistic) < 3.3


def test_independent_labels_and_bare_confidence_have_hypotheses_too():
    rng = np.random.default_rng(5)
    P = rng.random((1500, 2))
    labels = to.Predictions.from_multilabel((rng.random(P.shape) < P**2).astype(int), P)
    assert to.test(labels, hypothesis=lambda Q: Q**2, resamples=199).pvalue > 0.01
    assert to.test(labels, resamples=199).pvalue <= 0.01  # the floor of two labels
    bare = to.Predictions.from_confidence(P[:, 0], rng.random(1500) < P[:, 0] ** 2)
    assert to.test(bare, hypothesis=lambda Q: Q[:, 1] ** 2, resamples=199).pvalue > 0.01


def test_votes_keep_their_rows():
    rng = np.random.default_rng(6)
    P = rng.dirichlet(np.ones(3), 400)
    votes = np.stack([rng.multinomial(9, q) for q in sharpened(P)])
    assert to.test(to.Predictions(votes, P), hypothesis=sharpened, resamples=199).pvalue > 0.01


def test_string_labels_and_weights_survive():
    P, y = three(np.random.default_rng(7), 300)
    w = np.random.default_rng(8).integers(1, 4, 300).astype(float)
    names = np.array(["ant", "bee", "cat"])
    preds = to.Predictions(names[y], P, weight=w, classes=list(names))
    plain = to.Predictions(y, P, weight=w)
    a, b = (to.test(x, lens="class:1", hypothesis=sharpened, resamples=99) for x in (preds, plain))
    assert (a.statistic, a.pvalue) == (b.statistic, b.pvalue)


@pytest.mark.parametrize(
    ("rho", "code"),
    [
        ("human readable", "TO203"),
        (lambda P: P[:, :1], "TO203"),
        (lambda P: P * 2, "TO102"),
        (lambda P: P * 0.5, "TO104"),
        (lambda P: np.full(P.shape, np.nan), "TO103"),
    ],
)
def test_a_function_that_gives_no_probabilities_is_refused(rho, code):
    P, y = three(np.random.default_rng(9), 20)
    with refused(code):
        to.test(to.Predictions(y, P), hypothesis=rho)


def test_a_tally_and_resampled_rows_have_no_other_hypothesis():
    P, y = three(np.random.default_rng(10), 50)
    preds = to.Predictions(y, P)
    with refused("TO403"):
        to.test(to.tally(preds), hypothesis=sharpened)
    with refused("TO205"):
        to.test(preds, hypothesis=sharpened, redraw="both")
