"""Linear in log odds."""

import numpy as np
import pytest
from scipy.stats import binom

from tests.calibrators.rows import both, draw_predictions, one_hot, powers
from tests.reference import frame, golden
from trueodds.calibrators._glm.log_probabilities import log_ratio
from trueodds.calibrators._glm.logistic_regression import intercept_and_score, logistic_likelihood
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.llo import BoldnessMap, LloMap, LloSpec
from trueodds.calibrators.mcllo import MclloSpec
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions


def fit_map(P, y, w=None, **settings):
    return LloSpec(**settings).fit(P, one_hot(y), np.ones(len(P)) if w is None else w)


def reference():
    rows = frame("recalibration/binary.csv")
    return both(rows["p"]), rows["y"]


def test_two_scores_are_met_exactly():
    # Of four said .9 three came, of four said .1 two: log odds τ + γ ln 9 = ln 3 and τ − γ ln 9 = 0.
    # So τ = ln 3 / 2 and γ = 1/4.
    m = fit_map(both([0.9] * 4 + [0.1] * 4), [1, 1, 1, 0, 1, 1, 0, 0])
    assert (m.tau, m.gamma) == (pytest.approx(np.log(3) / 2), pytest.approx(0.25))
    assert m.apply(both([0.9, 0.1]))[:, 1] == pytest.approx([0.75, 0.5])
    assert m.describe() == "δ = 1.7321, γ = 0.25"


def test_the_reference_numbers():
    # An independent Newton, statsmodels 1e-9, and R BRcal (golden/recalibration/llo_boldness.json, brcal_R.json).
    want, other = golden("recalibration/llo_boldness.json"), golden("recalibration/brcal_R.json")
    P, y = reference()
    m = fit_map(P, y)
    assert (m.tau, m.gamma) == (pytest.approx(want["tau"], abs=1e-10), pytest.approx(want["gamma"], abs=1e-10))
    assert m.apply(both(want["grid"]))[:, 1] == pytest.approx(np.array(want["pred_grid"]), abs=1e-10)
    # R stops where the value changes by less than 1e-14 of itself, which leaves 1e-7 in the parameters.
    assert (m.delta, m.gamma) == (pytest.approx(other["delta"], abs=3e-7), pytest.approx(other["gamma"], abs=3e-7))
    assert m.n_passes <= 10


def errors(m):
    """Standard errors of τ and γ."""
    return np.sqrt(m.uncertainty.covariance[0].diagonal())


def test_the_reference_evidence():
    want, other = golden("recalibration/llo_boldness.json"), golden("recalibration/brcal_R.json")
    m = fit_map(*reference())
    uncertainty = m.uncertainty
    assert errors(m) == pytest.approx([want["se_tau"], want["se_gamma"]], rel=1e-9)
    assert (uncertainty.likelihood_ratio, uncertainty.rank) == (pytest.approx(want["lrt"], rel=1e-10), want["df"])
    assert uncertainty.pvalue == pytest.approx(want["pvalue"], rel=1e-8)
    assert uncertainty.posterior == pytest.approx(want["posterior_cal"], rel=1e-8)
    assert (uncertainty.likelihood_ratio, uncertainty.posterior) == pytest.approx(
        (other["lrt"], other["posterior_cal"]), rel=1e-8
    )


def test_its_standard_errors_are_those_of_mcllo_of_two_classes():
    P, y = reference()
    w = np.random.default_rng(0).random(len(P))
    for weight in (np.ones(len(P)), w):
        one, other = fit_map(P, y, weight).uncertainty, MclloSpec(baseline=0).fit(P, one_hot(y), weight).uncertainty
        assert one.covariance == pytest.approx(other.covariance, rel=1e-8)
        assert (one.std_error_method, one.rank, one.n) == (other.std_error_method, other.rank, other.n)
        assert one.likelihood_ratio == (
            None if other.likelihood_ratio is None else pytest.approx(other.likelihood_ratio, rel=1e-9)
        )


def test_it_reaches_the_maximum_where_nelder_mead_stops_short():
    # BRcal's default stops 1e-4 short in δ: its likelihood ratio is the smaller one.
    short = golden("recalibration/brcal_R.json")["default_neldermead"]
    P, y = reference()
    m = fit_map(P, y)
    assert abs(m.delta - short["delta"]) > 5e-5
    assert m.uncertainty.likelihood_ratio > short["lrt"]


def test_the_slope_vanishes_at_the_solution():
    P, y = draw_predictions(2000, 2, 1.7, 5)
    m = fit_map(P, y)
    at = logistic_likelihood(
        intercept_and_score(log_ratio(P, 1e-12)), y.astype(float), np.ones(2000), np.array([m.tau, m.gamma])
    )
    assert np.abs(at.gradient).max() <= 1e-8 * 2000


def test_a_fit_to_its_own_result_changes_nothing():
    # Such maps form a group, so the second fit is the identity.
    P, y = draw_predictions(800, 2, 2.0, 6)
    refitted = fit_map(fit_map(P, y).apply(P), y)
    assert (refitted.tau, refitted.gamma) == (pytest.approx(0, abs=1e-7), pytest.approx(1, abs=1e-7))


def test_shares_as_outcomes_find_the_map_that_made_them():
    P = both([0.02, 0.3, 0.6, 0.9])
    true = LloMap(-0.7, 1.8)
    m = LloSpec().fit(P, true.apply(P), np.array([1.0, 2.0, 0.5, 3.0]))
    assert (m.tau, m.gamma) == (pytest.approx(-0.7, abs=1e-8), pytest.approx(1.8, abs=1e-8))


@pytest.mark.slow
def test_the_likelihood_ratio_keeps_its_size():
    # Calibrated labels: of 400 tests at 5 % the rejections are Binomial(400, .05); inside its 99.9 % range.
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(400):
        P = both(1 / (1 + np.exp(-rng.normal(size=1000))))
        Y = one_hot(rng.random(1000) < P[:, 1])
        rejected += LloSpec().fit(P, Y, np.ones(1000)).uncertainty.pvalue <= 0.05
    low, high = binom.ppf([0.0005, 0.9995], 400, 0.05)
    assert low <= rejected <= high


def test_the_estimate_is_within_its_standard_errors_of_the_truth():
    rng = np.random.default_rng(1)
    P = both(1 / (1 + np.exp(-2 * rng.normal(size=20_000))))
    Y = one_hot(rng.random(20_000) < LloMap(0.3, 0.6).apply(P)[:, 1])
    w = rng.random(20_000) + 0.5
    for weight in (np.ones(20_000), w):
        m = LloSpec().fit(P, Y, weight)
        # Four standard errors: once in 16,000 seeds.
        assert (np.abs([m.tau - 0.3, m.gamma - 0.6]) < 4 * errors(m)).all()
    # With weights the sandwich is wider, by Σw² n / (Σw)² in the variance, and no ratio is told.
    assert m.uncertainty.likelihood_ratio is None
    even = LloSpec().fit(P, Y, np.ones(20_000))
    kish = np.sqrt((w @ w) * 20_000) / w.sum()
    assert errors(m)[1] / errors(even)[1] == pytest.approx(kish, rel=0.05)


def test_separated_outcomes_have_no_errors():
    result = fit(LloSpec(), Predictions([0, 0, 1, 1], both([0.2, 0.3, 0.7, 0.9])))
    assert not result.calibration_map.converged
    assert [note.code for note in result.notes] == ["TN515"]
    assert result.calibration_map.uncertainty.std_error_method == "infinite"
    assert "No standard errors: no finite δ and γ are optimal" in result.summary()
    assert "likelihood ratio" not in result.summary()


def test_predictions_that_point_the_wrong_way_say_so():
    P, y = draw_predictions(500, 2, 1.0, 7)
    result = fit(LloSpec(), Predictions(1 - y, P))
    assert result.calibration_map.gamma < 0
    assert "TN517" in [note.code for note in result.notes]


def test_equal_scores_shift_and_keep_their_slope():
    result = fit(LloSpec(), Predictions([1, 1, 1, 0], [0.9] * 4))
    assert result.calibration_map.gamma == 1.0
    assert result.predict_proba([0.9])[0, 1] == pytest.approx(0.75)
    # A shift is told, and no slope: 2 [3 log .75 + log .25 − 3 log .9 − log .1] on one degree of freedom.
    uncertainty = result.calibration_map.uncertainty
    assert (uncertainty.std_error_method, uncertainty.rank) == ("untold", 1)
    assert uncertainty.likelihood_ratio == pytest.approx(2 * np.log(0.75**3 * 0.25 / (0.9**3 * 0.1)), rel=1e-9)


def test_an_exact_zero_stays_zero_and_its_floor_is_noted():
    P = np.concatenate([both([0.3, 0.3, 0.7, 0.7]), [[1.0, 0.0]]])
    result = fit(LloSpec(), Predictions([0, 1, 1, 0, 0], P))
    assert result.predict_proba(P)[-1].tolist() == [1.0, 0.0]
    assert "TN502" in [note.code for note in result.notes]
    assert LloMap(0.5, 0.0).apply(np.array([[1.0, 0.0]]))[0, 1] == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert LloMap(0.0, -1.0).apply(np.array([[1.0, 0.0]]))[0] == pytest.approx([1e-12, 1.0], rel=1e-9)  # odds 1e12


def test_both_sides_keep_their_digits():
    q = LloMap(0.0, 2.0).apply(np.array([[1e-12, 1 - 1e-12], [1 - 1e-12, 1e-12]]))
    assert [q[0, 0], q[1, 1]] == pytest.approx([1e-24, 1e-24], rel=1e-9)


def test_logits_and_probabilities_give_the_same_fit():
    P, y = draw_predictions(300, 2, 2.0, 8)
    z = np.log(powers(P, 1.0)) + 5.0
    one, other = fit(LloSpec(), Predictions(y, P)), fit(LloSpec(), Predictions.from_logits(y, z))
    assert (one.calibration_map.tau, one.calibration_map.gamma) == pytest.approx(
        (other.calibration_map.tau, other.calibration_map.gamma), abs=1e-10
    )


def test_three_classes_are_refused():
    P, y = draw_predictions(30, 3, 1.0, 0)
    with pytest.raises(InputError, match="TO511"):
        fit(LloSpec(), Predictions(y, P))


@pytest.mark.parametrize("map_type", [LloMap, BoldnessMap])
def test_a_file_for_three_classes_is_refused(map_type):
    # It gave the two probabilities of two classes, for rows of three.
    with pytest.raises(InputError, match=r"TO505.*classes must be two names\. Got 3"):
        map_type.from_dict(map_type(0.1, 0.9).to_dict(), 3)
