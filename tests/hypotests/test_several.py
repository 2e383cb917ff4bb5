"""Multiple testing: corrections keep their level."""

import numpy as np
import pytest

from trueodds.hypotests.multiple_testing import family_pvalue
from trueodds.kernels.holm import holm
from trueodds.resampling.pvalues import pvalue


def test_a_p_value_is_never_zero():
    # CalibrationTests.jl and reliabilitydiag divide hits by B, so that their p can be 0
    assert pvalue(10.0, np.zeros(999)) == 0.001


def test_draws_that_tie_with_the_data_count_as_hits():
    # 0.1 + 0.2 and 0.3 are one number to a statistic
    assert pvalue(0.1 + 0.2, np.full(99, 0.3)) == 1.0


def test_holm_by_hand():
    # sorted .005 .01 .03 .04: times 4 3 2 1 = .02 .03 .06 .04, made monotone .02 .03 .06 .06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_the_family_of_one_claim_is_the_claim():
    draws = np.random.default_rng(0).normal(size=199)
    for observed in (-1.0, 0.3, 2.2):
        assert family_pvalue(np.array([observed]), draws[None]) == pytest.approx(pvalue(observed, draws))


def test_many_claims_do_not_raise_the_floor():
    rng = np.random.default_rng(0)
    observed = np.r_[50.0, rng.normal(size=19)]
    assert family_pvalue(observed, rng.normal(size=(20, 999))) == 0.001


def test_no_lens_wins_by_the_width_of_its_null():
    rng = np.random.default_rng(0)
    draws = np.stack([rng.normal(size=999), 100 * rng.normal(size=999)])
    assert family_pvalue(np.array([5.0, 0.0]), draws) <= 0.002


def test_the_family_keeps_its_level_for_dependent_claims():
    # the observed data are one more draw: rejections at 5 % over 600 families are Binomial(600, .05),
    # inside 13..50 with 99.9 %
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(0.8 * np.ones((6, 6)) + 0.2 * np.eye(6))
    rejections = 0
    for _ in range(600):
        all_draws = root @ rng.normal(size=(6, 200))
        rejections += family_pvalue(all_draws[:, 0] ** 3, all_draws[:, 1:] ** 3) <= 0.05
    assert 13 <= rejections <= 50
