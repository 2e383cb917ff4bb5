r"""The family-wise p-value of an audit: tests of lenses, subgroups and recalibration by weighted Holm correction.

Hypotheses i with weights :math:`w_i` that sum to 1 are first tested at :math:`\alpha w_i`; once one is rejected, the
others share its part of alpha (Holm 1979). The smallest adjusted p-value is :math:`\min_i p_i / w_i`. Here the
recalibration has the weight 0.05; of the rest, the subgroups have a quarter and the lenses three quarters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trueodds.core.results import Verdict
from trueodds.hypotests.per_view import required_resamples

GROUP_WEIGHT = 0.25  # weight of the subgroups beside the lenses
RECALIBRATION_WEIGHT = 0.05  # weight of the gain of a recalibration beside lenses and subgroups


def holm_resamples(resamples: int | None, n_views: int, n_groups: int, alpha: float) -> int:
    """Return `resamples`, or if it is None the number of null draws for views and subgroups with Holm's correction.

    It suffices to reject a single subgroup at the level that subgroups have if no lens is rejected, if that is possible
    with at most 9,999 draws.
    """
    n_draws = required_resamples(resamples, max(n_views, n_groups), alpha)
    return max(n_draws, required_resamples(resamples, n_groups, smallest_group_alpha(alpha))) if n_groups else n_draws


def group_alpha(lens_family: Verdict, alpha: float) -> float:
    """Return the level at which subgroups are tested: their share of alpha, or all of it if a lens is rejected.

    Alpha is here the part that remains for lenses and subgroups beside the recalibration.
    """
    alpha_of_tests = alpha * (1 - RECALIBRATION_WEIGHT)
    is_lens_rejected = lens_family.pvalue <= alpha_of_tests * (1 - GROUP_WEIGHT)
    return alpha_of_tests if is_lens_rejected else smallest_group_alpha(alpha)


def smallest_group_alpha(alpha: float) -> float:
    """Return the level at which subgroups are tested if no lens is rejected."""
    return alpha * (1 - RECALIBRATION_WEIGHT) * GROUP_WEIGHT


def add_groups_to_family(family: Verdict, joint: Sequence[float], min_pvalue: float) -> Verdict:
    """Return the family-wise test of lenses and subgroups, by weighted Holm correction.

    `family` is the family-wise test of the lenses. `joint` are the joint p-values of the subgroups, NaN where one is
    undefined, and `min_pvalue` is the smallest possible one.
    """
    lens_pvalue = family.pvalue / (1 - GROUP_WEIGHT)
    pvalue = min([lens_pvalue, *(group_p / GROUP_WEIGHT for group_p in joint if not np.isnan(group_p))])
    family_min_pvalue = (family.min_pvalue or 0.0) / (1 - GROUP_WEIGHT)
    if pvalue < lens_pvalue:
        family_min_pvalue = max(family_min_pvalue, min_pvalue / GROUP_WEIGHT)
    return _replace_family_pvalue(family, pvalue, family_min_pvalue)


def recalibration_alpha(family: Verdict, alpha: float) -> float:
    """Return the level at which the gain of a recalibration is tested: its share of alpha, or all if a test rejects."""
    return alpha if family.pvalue <= alpha * (1 - RECALIBRATION_WEIGHT) else alpha * RECALIBRATION_WEIGHT


def add_recalibration_to_family(tests: Sequence[Verdict], pvalue: float | None, alpha: float) -> list[Verdict]:
    """Return the tests with the gain of a recalibration in the family-wise test, by weighted Holm correction.

    The family-wise test keeps its level, and a recalibration is confirmed only if calibration is rejected. The p-value
    of the gain comes from an asymptotic distribution and may be tiny, so it becomes the p-value of the family only if
    the other tests do not reject. `pvalue` is None if no gain was tested.
    """
    family, gain_pvalue = tests[0], 1.0 if pvalue is None else pvalue / RECALIBRATION_WEIGHT
    family_pvalue = family.pvalue / (1 - RECALIBRATION_WEIGHT)
    if alpha < family_pvalue and gain_pvalue < family_pvalue:
        combined = _replace_family_pvalue(family, gain_pvalue, None)
    else:
        min_pvalue = None if family.min_pvalue is None else family.min_pvalue / (1 - RECALIBRATION_WEIGHT)
        combined = _replace_family_pvalue(family, family_pvalue, min_pvalue)
    return replace_family(tests, combined)


def replace_family(tests: Sequence[Verdict], family: Verdict) -> list[Verdict]:
    """Return the tests with this family-wise test as the first; a single test is that of a lens, and is kept."""
    tests_of_lenses = tests[1:] if len(tests) > 1 else tests
    return [family, *tests_of_lenses]


def _replace_family_pvalue(verdict: Verdict, pvalue: float, min_pvalue: float | None) -> Verdict:
    """Return the verdict as the family-wise test with this p-value, at most 1, and without `parts` of a single lens."""
    joint, joint_min_pvalue = min(pvalue, 1.0), None if min_pvalue is None else min(min_pvalue, 1.0)
    parts = verdict.parts if verdict.lens == "family" else {}
    return replace(verdict, lens="family", pvalue=joint, family_pvalue=joint, min_pvalue=joint_min_pvalue, parts=parts)
