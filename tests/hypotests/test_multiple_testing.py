"""Multiple testing: corrections keep their level, by Holm, by joint draws, and step by step."""

import numpy as np
import pytest
from scipy.stats import binom

from trueodds.core.pvalues import holm, pvalue
from trueodds.hypotests.group_tests import required_group_draws
from trueodds.hypotests.multiple_testing import JointDraws, family_pvalue


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


def test_the_smallest_family_p_value_is_that_of_one_claim():
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


def test_step_down_by_hand():
    # Values at least as large, observed first: claim a (5; 1, 2, 6) has 2, 4, 3, 1 of 4,
    # claim b (3; 1, 4, 2) 2, 4, 1, 3.
    # a lies .73 standard deviations above its mean, b .45: a comes first. Least of both: 2, 4, 1, 1, so 3 of 4 are as
    # surprising as a. Among b alone 2 of 4 are, which may not be less than what came before it.
    both = JointDraws(np.array([5.0, 3.0]), np.array([[1.0, 2.0, 6.0], [1.0, 4.0, 2.0]]))
    assert both.unadjusted.tolist() == [0.5, 0.5]
    assert both.adjusted.tolist() == [0.75, 0.75]


def test_one_claim_is_not_adjusted():
    draws = np.random.default_rng(0).normal(size=199)
    for observed in (-1.0, 0.3, 2.2, 9.0):
        one = JointDraws(np.array([observed]), draws[None])
        assert one.adjusted[0] == one.unadjusted[0] == pytest.approx(pvalue(observed, draws))


def test_a_duplicate_claim_costs_nothing():
    draws = np.random.default_rng(1).normal(size=(2, 199))
    once = JointDraws(np.array([2.0, 1.0]), draws).adjusted
    twice = JointDraws(np.array([2.0, 1.0, 2.0, 1.0]), np.concatenate([draws, draws])).adjusted
    assert twice.tolist() == [*once, *once]


def test_no_adjusted_p_is_below_its_own_or_above_holms():
    rng = np.random.default_rng(2)
    for _ in range(20):
        draws = rng.normal(size=(5, 399)) + 0.7 * rng.normal(size=399)
        observed = rng.normal(1, 1.2, 5)
        joint_draws = JointDraws(observed, draws)
        assert (joint_draws.adjusted >= joint_draws.unadjusted).all()
        # Holm adds the shares of draws; here a draw that lies far out for two claims counts once.
        assert (joint_draws.adjusted <= np.array(holm(joint_draws.unadjusted.tolist())) + 1e-12).all()


def test_an_undefined_statistic_stays_undefined_and_costs_nothing():
    draws = np.random.default_rng(3).normal(size=(2, 99))
    joint_draws = JointDraws(np.array([2.5, np.nan]), draws)
    assert np.isnan(joint_draws.adjusted[1])
    assert np.isnan(joint_draws.unadjusted[1])
    assert joint_draws.adjusted[0] == joint_draws.unadjusted[0]
    assert joint_draws.min_detectable(0.05)[1] is None or np.isnan(joint_draws.observed[1])


def test_many_claims_do_not_raise_the_floor():
    draws = np.random.default_rng(4).normal(size=(80, 99))
    observed = np.concatenate([[30.0], draws[1:, 0]])
    joint_draws = JointDraws(observed, draws)
    assert joint_draws.adjusted[0] == 0.01
    assert family_pvalue(observed, draws) == 0.01


def test_the_level_holds_for_true_claims_beside_false_ones():
    # With three false claims of eight, rejections of a true one at 5 % are at most Binomial(400, .05).
    rng, rejected = np.random.default_rng(5), 0
    for _ in range(400):
        common = rng.normal(size=100)
        sample = 0.8 * common + rng.normal(size=(8, 100))
        observed = sample[:, 0] + np.where(np.arange(8) < 3, 10.0, 0.0)
        rejected += JointDraws(observed, sample[:, 1:]).adjusted[3:].min() <= 0.05
    assert rejected <= binom.ppf(0.999, 400, 0.05)


def test_what_is_seen_is_where_the_rejections_begin():
    rng = np.random.default_rng(6)
    draws = np.sort(rng.normal(size=(3, 999)), axis=1)
    observed = np.zeros(3)
    threshold, *_ = JointDraws(observed, draws).min_detectable(0.05)
    for shift, rejected in ((1e-6, True), (-0.05, False)):
        alone = JointDraws(np.array([threshold + shift, 0.0, 0.0]), draws)
        assert (alone.adjusted[0] <= 0.05) == rejected


def raised(observed, draws, i, alpha, values):
    """The first of these values with which claim i is rejected, by trying them one after the other."""
    for value in values:
        if JointDraws(np.where(np.arange(len(observed)) == i, value, observed), draws).adjusted[i] <= alpha:
            return value
    return None


@pytest.mark.slow
@pytest.mark.parametrize(("claims", "redraws"), [(1, 39), (6, 59), (13, 99), (13, 199)])
def test_what_is_seen_is_what_raising_the_statistic_finds(claims, redraws):
    # So many claims for so few draws that the largest draw of each is no rare thing among the largest of all: the
    # threshold lies above every draw of the claim, whether or not its own statistic does.
    rng = np.random.default_rng(claims + redraws)
    draws = rng.gamma(2, size=(claims, redraws)) + 0.5 * rng.gamma(2, size=redraws)
    observed = rng.gamma(2, size=claims) + np.where(np.arange(claims) % 4 == 0, 9.0, 0.0)
    values = np.linspace(0, 14, 701)
    thresholds = JointDraws(observed, draws).min_detectable(0.05, lambda _: 14.0)
    for i in {0, 1, claims // 2, claims - 1} & set(range(claims)):
        threshold = raised(observed, draws, i, 0.05, values)
        assert (thresholds[i] is None) == (threshold is None)
        assert threshold is None or 0 <= threshold - thresholds[i] <= 0.02 + 1e-9
        # and so a claim is rejected exactly where its own statistic is at least as large
        assert (JointDraws(observed, draws).adjusted[i] <= 0.05) == (
            thresholds[i] is not None and observed[i] >= thresholds[i]
        )


def test_what_is_seen_does_not_hang_on_the_statistic_itself():
    # Once the own statistic lay above all draws, it was itself named as the smallest that would do.
    draws = np.random.default_rng(8).normal(size=(13, 199))
    for statistic in (5.0, 9.0, 50.0):
        observed = np.array([statistic, *draws[1:, 0]])
        assert JointDraws(observed, draws).min_detectable(0.05, lambda _: 60.0)[0] == pytest.approx(
            JointDraws(np.array([0.0, *draws[1:, 0]]), draws).min_detectable(0.05, lambda _: 60.0)[0], abs=1e-4
        )


def test_a_claim_that_can_never_surprise_is_never_seen():
    # One row said .9: the worst that can come is an error of .9, and it comes in a tenth of the draws.
    rng = np.random.default_rng(7)
    row = np.where(rng.random(999) < 0.1, 0.9, 0.1)
    assert JointDraws(np.array([0.1]), row[None]).min_detectable(0.05) == [None]
    assert JointDraws(np.array([0.1]), row[None]).min_detectable(0.2) == [0.9]


def test_untested_hypotheses_count_with_their_number_times_p():
    # Of 9 draws, the first statistic has p = 1/10. Two untested hypotheses add 2 × 1/10.
    draws = np.arange(9.0)[None] / 10
    assert JointDraws(np.array([5.0]), draws, n_untested=2).adjusted.tolist() == pytest.approx([0.3])
    assert JointDraws(np.array([-1.0]), draws, n_untested=2).adjusted.tolist() == [1.0]


@pytest.mark.slow
def test_the_level_holds_over_all_hypotheses_if_the_data_select_those_that_are_tested():
    # Of 20 true hypotheses, the 4 largest statistics are tested: the hardest selection. Rejections at 5 % are at most
    # Binomial(1000, .05). If the others did not count, they would be far more.
    rng, rejected, without = np.random.default_rng(8), 0, 0
    for _ in range(1000):
        observed = rng.normal(size=20)
        selected = np.argsort(-observed)[:4]
        draws = rng.normal(size=(4, 1999))
        rejected += JointDraws(observed[selected], draws, n_untested=16).adjusted.min() <= 0.05
        without += JointDraws(observed[selected], draws).adjusted.min() <= 0.05
    assert rejected <= binom.ppf(0.999, 1000, 0.05)
    assert rejected > 10  # it is no test that never rejects
    assert without > 150


def test_the_smallest_detectable_statistic_accounts_for_untested_hypotheses():
    rng = np.random.default_rng(9)
    draws, observed = rng.normal(size=(3, 999)), np.array([1.0, 0.5, 0.0])
    for i, threshold in enumerate(JointDraws(observed, draws, n_untested=10).min_detectable(0.05, lambda _: 9.0)):
        assert threshold is not None
        for shift, is_rejected in ((1e-3, True), (-1e-2, False)):
            changed = np.where(np.arange(3) == i, threshold + shift, observed)
            adjusted = JointDraws(changed, draws, n_untested=10).adjusted[i]
            assert bool(adjusted <= 0.05) == is_rejected, (i, shift)


def test_many_groups_have_enough_draws_to_reject_one_that_exceeds_all_its_draws() -> None:
    assert required_group_draws(None, 1000, 20, 0, 0.05) == 999
    assert required_group_draws(None, 1000, 100, 0, 0.05) == 1999  # (1 + 99)/2000 = 0.05 at most
    assert required_group_draws(None, 1000, 5000, 0, 0.05) == 9999
    assert required_group_draws(None, 10**7, 100, 0, 0.05) == 999  # too many labels
    assert required_group_draws(199, 1000, 100, 0, 0.05) == 199
    rng = np.random.default_rng(0)
    skewed = (rng.random((100, 1999)) < 1e-3) * rng.random((100, 1999))  # rare and larger than other draws by far
    draws = np.concatenate([rng.normal(size=(1, 1999)), skewed[1:]])
    observed = np.array([draws[0].max() + 1, *np.zeros(99)])
    assert JointDraws(observed, draws).adjusted[0] <= 0.05
