"""How many null draws does an audit make for the Holm-adjusted p-values of many classes?"""

import pytest

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


def test_a_number_of_the_caller_is_kept():
    assert required_resamples(77, 1_000, 0.05) == 77
