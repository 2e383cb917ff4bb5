"""How many null draws does an audit make for the Holm-adjusted p-values of many classes?"""

import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.hypotests.multiple_testing import check_draws, sufficient_draws
from trueodds.hypotests.per_view import DEFAULT_RESAMPLES, MAX_RESAMPLES, required_resamples


@pytest.mark.parametrize("claims", [1, 2, 20])
def test_few_hypotheses_have_the_default_number(claims):
    assert required_resamples(None, claims, 0.05) == DEFAULT_RESAMPLES


@pytest.mark.parametrize("claims", [50, 100, 200, 400])
def test_the_smallest_attainable_p_value_is_significant_after_correction(claims):
    draws = required_resamples(None, claims, 0.05)
    assert DEFAULT_RESAMPLES < draws <= MAX_RESAMPLES
    assert claims / (1 + draws) <= 0.05


def test_no_draws_are_added_that_could_not_make_any_class_significant():
    # 1,000 classes need 20,000 draws for 1,000 / (1 + draws) <= 0.05.
    assert required_resamples(None, 1_000, 0.05) == DEFAULT_RESAMPLES


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.0475, 0.005])
@pytest.mark.parametrize("claims", [1, 3, 20])
def test_one_draw_fewer_than_the_sufficient_number_rejects_nothing(alpha, claims):
    # The smallest of B + 1 equally likely p-values, corrected for the hypotheses, is claims / (1 + B).
    draws = sufficient_draws(alpha, claims)
    assert claims / (1 + draws) <= alpha + 1e-12 < claims / draws
    check_draws(draws, alpha, claims)
    with refused("TO203", fix=f"at least {draws}."):
        check_draws(draws - 1, alpha, claims)


def test_an_audit_names_the_number_of_draws_for_the_share_of_alpha_that_its_tests_have():
    # The tests have 95 % of alpha: 1/(1 + B) <= .0475 needs B >= 21.05 - 1, so 21.
    y, p = [0, 1] * 50, [0.4, 0.6] * 50
    with refused("TO203", fix="at least 21."):
        to.audit(y, p, resamples=20)
    assert to.audit(y, p, resamples=21).to_dict()["settings"]["resamples"] == 21


def test_a_number_of_the_caller_is_kept():
    assert required_resamples(77, 1_000, 0.05) == 77
