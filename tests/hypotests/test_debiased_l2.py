"""The debiased L2 test: reference values, variance by enumeration, and skewed null distributions."""

import math
from itertools import product

import numpy as np
import pytest

import trueodds as to
from tests import reference
from trueodds.binning.equal_mass import Sweep
from trueodds.binning.uniform import Uniform
from trueodds.estimators.debiased import DebiasedL2
from trueodds.hypotests.debiased_l2 import DebiasedL2Test
from trueodds.lenses.view import View


def calibrated(rng, n):
    p = 1 / (1 + np.exp(-1.3 * rng.standard_normal(n)))
    return (rng.random(n) < p).astype(int), p


def test_the_reference_value_of_500_rows():
    # golden c.sun_*: T agrees with the authors' code, the exact variance was worked out apart
    known, rows = reference.estimators(), reference.frame("estimators/c_binary500.csv")
    result = DebiasedL2Test(partition=Uniform(15)).evaluate(View(rows["p"], rows["y"]))
    assert result.parts["error"]["squared"] == pytest.approx(known["c.sun_T_mn.m15"]["value"], rel=1e-12)
    assert result.statistic == pytest.approx(known["c.sun_null_z.m15"]["value"], rel=1e-12)
    assert result.pvalue == pytest.approx(known["c.sun_null_z.m15"]["p_normal"], rel=1e-10)
    variance = (result.parts["error"]["squared"] / result.statistic) ** 2
    assert variance == pytest.approx(known["c.sun_null_var_exact.m15"]["value"], rel=1e-12)
    assert result.effect == pytest.approx(math.sqrt(known["c.sun_T_mn.m15"]["value"]))


@pytest.mark.parametrize("weighted", [False, True])
def test_mean_0_and_the_variance_by_all_outcomes(weighted):
    # all 2^9 outcomes with their probabilities, in 3 bins of unlike sizes
    rng = np.random.default_rng(0)
    p = np.array([0.1, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 0.95])
    w = rng.gamma(1, 1, 9) if weighted else np.ones(9)
    mean = square = 0.0
    for y in product((0, 1), repeat=9):
        chance = np.prod(np.where(y, p, 1 - p))
        theta = DebiasedL2(Uniform(3)).signed_value(View(p, y, w))
        mean, square = mean + chance * theta, square + chance * theta**2
    result = DebiasedL2Test(partition=Uniform(3)).evaluate(View(p, np.arange(9) % 2, w))
    assert mean == pytest.approx(0, abs=1e-14)
    assert (result.parts["error"]["squared"] / result.statistic) ** 2 == pytest.approx(square, rel=1e-10)


def test_cells_of_equal_rows_are_the_rows():
    p, y = np.repeat([0.2, 0.3, 0.7, 0.9], 5), np.arange(20) % 3 == 0
    rows = View(p, y)
    cells = rows.pool(np.repeat(np.arange(4), 5), 4)
    test = DebiasedL2Test(partition=Uniform(2))
    assert test.evaluate(cells).statistic == pytest.approx(test.evaluate(rows).statistic, rel=1e-12)


@pytest.mark.slow
def test_the_normal_law_says_how_far_it_is_off():
    # the null law on few bins is a sum of few χ²: 6 to 8 % measured at 5 %.
    # 1,000 sets at 8 % stay below 109 with 99.9 %, at 5 % above 29.
    rng, rejected = np.random.default_rng(1), 0
    for _ in range(1000):
        y, p = calibrated(rng, 200)
        result = DebiasedL2Test(partition=Uniform(10)).evaluate(View(p, y))
        rejected += result.pvalue <= 0.05
        assert "6." in result.asymptotic_warnings[0]
    assert 29 < rejected < 109
    y, p = calibrated(rng, 20_000)
    assert DebiasedL2Test(partition=Uniform(200)).evaluate(View(p, y)).asymptotic_warnings == ()


@pytest.mark.slow
def test_redraws_keep_the_level():
    # Rejections at 5 % over 400 data sets are Binomial(400, .05): inside 8..36 with 99.9 %.
    rng, rejected = np.random.default_rng(2), 0
    for seed in range(400):
        y, p = calibrated(rng, 50)
        rejected += to.test(to.Predictions(y, p), "debiased_l2", null="redraw", resamples=99, rng=seed).pvalue <= 0.05
    assert 8 <= rejected <= 36


def test_only_an_error_above_0_speaks_against_the_model():
    # outcomes that alternate are closer to .5 than chance lets them be
    verdict = to.test(to.Predictions(np.arange(100) % 2, np.full(100, 0.5)), "debiased_l2", null="redraw", resamples=99)
    assert verdict.statistic < 0
    assert verdict.effect < 0
    assert verdict.pvalue == 1


def test_settings_are_those_of_the_estimator_and_read_back():
    y, p = calibrated(np.random.default_rng(3), 300)
    preds = to.Predictions(y, p)
    assert to.test(preds, "debiased_l2").settings["partition"] == "equal-mass auto"
    assert to.test(preds, "debiased_l2").settings["bins"] == 10  # ⌈300^.4⌉
    verdict = to.test(preds, "debiased_l2", bins=7, partition="uniform")
    assert (verdict.settings["partition"], verdict.settings["occupied_bins"]) == ("uniform 7", 7)
    assert verdict.effect == pytest.approx(DebiasedL2(Uniform(7)).parts(View(p, y))["signed_root"], rel=1e-9)
    with pytest.raises(to.InputError, match="TO203"):
        DebiasedL2Test(partition=Sweep())


def test_bins_of_one_row_tell_nothing():
    verdict = to.test(to.Predictions([0, 1], [0.2, 0.7]), "debiased_l2", bins=2, partition="uniform")
    assert math.isnan(verdict.pvalue)
    assert "TN224" in [note.code for note in verdict.notes]
    assert math.isnan(
        to.test(to.Predictions([0, 1], [0.2, 0.7]), "debiased_l2", bins=2, partition="uniform", null="redraw").pvalue
    )


def test_probabilities_of_0_and_1_leave_nothing_to_chance():
    wrong = to.test(to.Predictions([1, 1, 1], [0.0, 0.0, 1.0]), "debiased_l2", bins=2, partition="uniform")
    assert (wrong.pvalue, wrong.statistic) == (0, math.inf)
    assert "TN223" in [note.code for note in wrong.notes]
    right = to.test(to.Predictions([0, 0, 1], [0.0, 0.0, 1.0]), "debiased_l2", bins=2, partition="uniform")
    assert right.pvalue == 1
