"""What two columns or logits tell of small probabilities reaches every use of logarithms."""

import json
import math

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit

import trueodds as to
from tests.calibrators.rows import GROUP_SETTINGS
from trueodds.calibrators import CALIBRATORS
from trueodds.data.log_probabilities import log_softmax
from trueodds.data.predictions import Predictions
from trueodds.estimators.corp import Corp
from trueodds.lenses.lens_by_name import as_lens
from trueodds.tallies.tally import Tally

TINY = Predictions([0, 1], [[1e-30, 1.0], [0.5, 0.5]])


def sharp(n=600, seed=0):
    """Float32 rows of two classes in which one column often is 1 although the other is not 0."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * 14
    P = np.stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))], axis=1).astype(np.float32)
    y = (rng.random(n) < 1 / (1 + np.exp(-z * 0.3))).astype(int)
    assert (P == 1).any(axis=1).sum() > 50
    assert (P > 0).all()
    return Predictions(y, P)


def overflowing(k=3, n=700, seed=3):
    """Logits whose softmax underflows for a third of the outcomes; the labels follow them at a temperature of 500."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 1000
    q = np.exp(log_softmax(z / 500))
    y = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    return y, z


def test_log_loss_reads_the_column_of_the_first_class():
    # −(log 1e-30 + log .5)/2
    assert to.measure(TINY, "log_loss", interval=None).value == pytest.approx((30 * math.log(10) + math.log(2)) / 2)


def test_no_outcome_has_probability_0_that_its_own_column_gives_a_chance():
    assert not to.measure(TINY, "log_loss").notes
    assert not [note for note in to.test(TINY, "spiegelhalter").notes if note.code == "TN215"]
    assert to.audit(sharp(), rng=0).to_dict()["data"]["true_class_zeros"] == 0


def test_a_float32_softmax_has_the_log_loss_of_its_columns():
    preds = sharp(5000)
    direct = -np.log(preds.P[np.arange(5000), preds.y].astype(np.float64)).mean()
    assert to.measure(preds, "log_loss", interval=None).value == pytest.approx(direct, rel=1e-12)
    assert Tally.from_predictions(preds).score("log_loss")["mean"] == pytest.approx(direct, rel=1e-12)


@pytest.mark.parametrize("name", ["log_loss", "spherical", "skce", "brier"])
def test_an_estimate_does_not_depend_on_which_of_two_classes_comes_first(name):
    preds = sharp()
    swapped = Predictions(1 - preds.y, preds.P[:, ::-1])
    one, other = (to.measure(data, name, interval=None).value for data in (preds, swapped))
    assert np.isfinite(one)
    # float32 rows sum to 1 within 6e-8, and what reads p alone moves by no more
    assert one == pytest.approx(other, rel=1e-12 if name in ("log_loss", "spherical") else 1e-6)


def test_the_log_score_that_corp_takes_apart_is_that_of_both_columns():
    preds = sharp()
    (view,) = as_lens("positive").views(preds)
    parts = Corp(score="log_loss").parts(view)
    assert parts["score"] == pytest.approx(to.measure(preds, "log_loss", interval=None).value, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("spiegelhalter", {}),
        ("score", {}),
        ("score", {"statistic": "log_loss"}),
        ("cox", {}),
        ("giviti", {}),
        ("mcllo", {}),
        ("bins", {}),
    ],
)
def test_a_test_does_not_depend_on_which_of_two_classes_comes_first(name, settings):
    preds = sharp()
    swapped = Predictions(1 - preds.y, preds.P[:, ::-1])
    one, other = (to.test(data, name, **settings) for data in (preds, swapped))
    assert np.isfinite(one.statistic)
    assert abs(one.statistic) == pytest.approx(abs(other.statistic), rel=1e-6)
    assert not [note for note in one.notes if note.code == "TN215"]


@pytest.mark.slow
def test_outcomes_whose_logits_underflow_are_improbable_and_not_impossible():
    y, z = overflowing()
    preds = Predictions.from_logits(y, z)
    logs = log_softmax(z)[np.arange(len(y)), y]
    assert (preds.P[np.arange(len(y)), y] == 0).sum() > 30
    assert np.isfinite(logs).all()
    report = to.audit(preds, rng=0).to_dict()
    (loss,) = (measure for measure in report["measures"] if measure["estimator"] == "log_loss")
    assert loss["value"] == pytest.approx(-logs.mean(), rel=1e-12)
    assert report["data"]["true_class_zeros"] == report["data"]["zeros"] == 0
    assert "impossible" not in json.dumps(report)
    assert Tally.from_predictions(preds).score("log_loss")["mean"] == pytest.approx(-logs.mean(), rel=1e-12)
    assert Tally.from_predictions(preds).counts.true_zeros == Tally.from_predictions(preds).counts.zeros == 0


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_temperature_of_logits_that_underflow_is_that_of_greatest_likelihood(k):
    y, z = overflowing(k)
    calibrator = to.fit(Predictions.from_logits(y, z), "temperature")

    def loss(t):
        return -log_softmax(z / t)[np.arange(len(y)), y].mean()

    optimum = minimize_scalar(loss, bounds=(100, 3000), method="bounded", options={"xatol": 1e-9}).x
    assert 1 / calibrator.calibration_map.beta == pytest.approx(optimum, rel=1e-6)
    assert calibrator.calibration_map.converged


LOGARITHMIC = [
    name for name in CALIBRATORS.names()
    if CALIBRATORS.load(name).takes_logs
    # A Gaussian has a least width. Means of scores (centered_isotonic) and priors (bbq) depend on the scale of scores.
    and name not in ("auto", "kernel", "centered_isotonic", "bbq")
]  # fmt: skip
# Curves of one class against the rest, which for k > 2 see another score if the logits are larger.
SCORE_CURVES = ("platt", "irova_ts", "scaling_binning", "isotonic", "centered_isotonic", "enir", "venn_abers", "bbq",
                "spline", "kernel")  # fmt: skip
EQUIVARIANT = ("temperature", "top_vs_all", "bias_corrected_temperature", "llo", "boldness", "evidential",
               "structured", "mcllo", *SCORE_CURVES)  # fmt: skip


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", LOGARITHMIC)
def test_a_fit_to_logits_is_the_fit_to_their_probabilities_where_none_underflows(name, k):
    if CALIBRATORS.load(name).two_classes and k > 2:
        return
    y, z = overflowing(k)
    preds = Predictions.from_logits(y, z / 250)
    of_logits, of_columns = (
        to.fit(rows, name, **GROUP_SETTINGS.get(name, {})) for rows in (preds, Predictions(y, preds.P))
    )
    expected = of_columns.predict_proba(preds.P)
    np.testing.assert_allclose(of_logits.predict_proba(z / 250, logits=True), expected, atol=1e-9)
    np.testing.assert_allclose(of_logits.predict_proba(preds), expected, atol=1e-9)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", EQUIVARIANT)
def test_logits_a_thousand_times_as_large_are_recalibrated_to_the_same_probabilities(name, k):
    # Powers of p absorb the scale of logits, and so do curves of the log odds.
    if k > 2 and (CALIBRATORS.load(name).two_classes or name in SCORE_CURVES):
        return
    y, z = overflowing(k)
    small, large = (to.fit(Predictions.from_logits(y, logits), name) for logits in (z / 250, z / 2))
    one, other = small.predict_proba(z / 250, logits=True), large.predict_proba(z / 2, logits=True)
    np.testing.assert_allclose(one, other, atol=1e-8)
    assert small.calibration_map.converged == large.calibration_map.converged


@pytest.mark.parametrize("lens", ["positive", "class:0", "confidence", "classwise"])
def test_log_odds_of_the_second_class_are_logits_of_both(lens):
    rng = np.random.default_rng(5)
    z = rng.normal(30, 25, 2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-z / 3))).astype(int)
    log_odds, *pairs = (
        Predictions.from_logits(y, logits)
        for logits in (z, np.stack([0 * z, z], axis=1), np.stack([-z, 0 * z], axis=1))
    )
    assert ((log_odds.P > 0) & (log_odds.P < 1e-17)).any()
    for name in ("ece", "ace", "sweep", "debiased_l1", "debiased_l2", "corp", "log_loss"):
        if name == "log_loss" and lens not in ("positive", "class:0"):
            continue
        expected = to.measure(log_odds, name, lens=lens, interval=None).value
        for pair in pairs:
            assert to.measure(pair, name, lens=lens, interval=None).value == pytest.approx(expected, rel=1e-9)
    for name in ("hosmer_lemeshow", "debiased_l2", "spiegelhalter"):
        expected = to.test(log_odds, name, lens=lens).statistic
        for pair in pairs:
            assert to.test(pair, name, lens=lens).statistic == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", CALIBRATORS.names())
def test_a_probability_above_1_by_rounding_leaves_every_fit_finite(name):
    if name == "prior_shift":
        return  # it is told the frequencies to expect
    p = np.array([np.nextafter(np.float32(1), np.float32(2)), 0.3, 0.2, 0.8] * 10, dtype=np.float32)
    y = np.array([1, 0, 0, 1] * 8 + [0, 1, 1, 0] * 2)
    q = to.fit(Predictions(y, p), name, **GROUP_SETTINGS.get(name, {})).predict_proba(p)
    assert np.isfinite(q).all()
    assert q.min() >= 0


def powers_of_odds(z, y):
    """Twice the gain in log-likelihood of the best a + bz over z itself."""
    scale, rate = np.abs(z).max(), y.mean()

    def loss(theta):
        eta = theta[0] + theta[1] * z / scale
        q = expit(eta)
        return np.logaddexp(0, eta).sum() - y @ eta, np.array([(q - y).sum(), ((q - y) @ z) / scale])

    starts = [(logit(rate), 0.0), (0.0, 1.0), (0.0, 20.0), (0.0, scale)]
    min_loss = min(minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-8}).fun for start in starts)
    return 2 * (loss((0.0, scale))[0] - min_loss)


OFTEN_WRONG = [1, 0, 1, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("z", "y"),
    [
        ([60, -30, 20, 7] * 20, [0, 1, 1, 0] * 20),
        ([1, -70, -84, 70, 91, 77, -105, 119], OFTEN_WRONG),  # by the null one row holds all information
        ([20, -80, -92, 80, 98, 86, -110, 122], OFTEN_WRONG),
        ([1, -60, -48, 60, 52, 44, -60, 68], OFTEN_WRONG),
        ([800, -800] * 5, [1, 0, 1, 0, 1, 0, 0, 1, 0, 0]),  # by the null none does
    ],
)
def test_likelihood_ratios_of_sharp_logits_that_are_far_off_reach_the_maximum(z, y):
    z, y = np.array(z, dtype=float), np.array(y)
    preds = Predictions.from_logits(y, z)
    for name in ("cox", "giviti", "mcllo"):
        verdict = to.test(preds, name)
        assert verdict.statistic == pytest.approx(powers_of_odds(z, y), rel=1e-6)
        assert not [note for note in verdict.notes if note.code == "TN217"]
    assert to.test(preds, "cox", null="redraw", resamples=99).pvalue == 0.01


def test_outcomes_whose_probability_no_float_can_hold_are_noted():
    preds = Predictions.from_logits([1, 0, 1, 0, 1, 0, 0, 1, 0, 0], np.array([800.0, -800.0] * 5))
    for name in ("spiegelhalter", "score"):
        verdict = to.test(preds, name)
        assert (verdict.statistic, verdict.pvalue) == (np.inf, 0.0)
        assert [note.code for note in verdict.notes if note.code == "TN215"]


@pytest.mark.slow
def test_likelihood_ratios_of_random_logits_reach_the_maximum():
    rng = np.random.default_rng(8)
    for _ in range(40):
        n, scale = int(rng.integers(20, 200)), 10 ** rng.uniform(0.5, 2.5)
        z = rng.standard_t(3, n) * scale
        y = (rng.random(n) < expit(z * 10 ** rng.uniform(-3, 0))).astype(int)
        if 2 <= y.sum() <= n - 2:
            preds = Predictions.from_logits(y, z)
            assert to.test(preds, "mcllo").statistic == pytest.approx(powers_of_odds(z, y), rel=1e-6, abs=1e-5)
