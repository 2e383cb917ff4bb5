"""The family-wise test of an audit: lenses, subgroups and recalibration by weighted Holm correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trueodds.core.results import Verdict
from trueodds.hypotests.per_view import DEFAULT_RESAMPLES
from trueodds.reports.audit_results import AuditResults

MAX_RESAMPLES = 9_999  # maximum number of null draws for Holm-adjusted p-values
DRAWS_MARGIN = 2.5  # null draws as a multiple of the fewest whose smallest p-value could be significant
GROUP_WEIGHT = 0.25  # weight of the subgroups in the family of tests; the lenses have the rest
RECALIBRATION_WEIGHT = 0.05  # weight of the gain of a recalibration in the family; lenses and subgroups have the rest


def required_resamples(resamples: int | None, n_hypotheses: int, alpha: float) -> int:
    """Return the number of null draws: 999, or what Holm's correction for so many hypotheses requires, up to 9,999.

    If not even 9,999 draws could make the smallest of so many p-values significant, it is 999.
    """
    if resamples is not None:
        return resamples
    is_attainable = n_hypotheses / (1 + MAX_RESAMPLES) <= alpha
    return (
        max(DEFAULT_RESAMPLES, min(MAX_RESAMPLES, math.ceil(DRAWS_MARGIN * n_hypotheses / alpha) - 1))
        if is_attainable
        else DEFAULT_RESAMPLES
    )


def group_alpha(lens_family: Verdict, alpha: float) -> float:
    """Return the level of the tests of subgroups: their share of alpha, or all of it once the lenses have rejected.

    Either is the part of alpha that the recalibration leaves.
    """
    alpha_of_tests = alpha * (1 - RECALIBRATION_WEIGHT)
    return (
        alpha_of_tests if lens_family.pvalue <= alpha_of_tests * (1 - GROUP_WEIGHT) else alpha_of_tests * GROUP_WEIGHT
    )


def add_groups_to_family(family: Verdict, joint: Sequence[float], min_pvalue: float) -> Verdict:
    """Add the subgroups to the family-wise test, by weighted Holm correction with most of the weight on the lenses.

    `joint` are the joint p-values of the subgroups, NaN where one is undefined, and `min_pvalue` is the smallest
    possible one.
    """
    p = min(
        [family.pvalue / (1 - GROUP_WEIGHT), *(joint_p / GROUP_WEIGHT for joint_p in joint if not np.isnan(joint_p))]
    )
    family_min_pvalue = max(
        (family.min_pvalue or 0.0) / (1 - GROUP_WEIGHT),
        min_pvalue / GROUP_WEIGHT if p < family.pvalue / (1 - GROUP_WEIGHT) else 0.0,
    )
    return _replace_family_pvalue(family, p, family_min_pvalue)


def recalibration_alpha(family: Verdict, alpha: float) -> float:
    """Return the level of the gain of a recalibration: its share of alpha, or all once other tests have rejected."""
    return alpha if family.pvalue <= alpha * (1 - RECALIBRATION_WEIGHT) else alpha * RECALIBRATION_WEIGHT


def add_recalibration_to_family(results: AuditResults, pvalue: float | None, alpha: float) -> AuditResults:
    """Add the gain of a recalibration to the family-wise test, by weighted Holm correction with a small weight.

    The family-wise test keeps its level, and a recalibration is confirmed only if calibration is rejected. The p-value
    of the gain comes from an asymptotic distribution and may be tiny, so it is that of the family only if the other
    tests do not reject.
    """
    family, gain_pvalue = results.tests[0], 1.0 if pvalue is None else pvalue / RECALIBRATION_WEIGHT
    family_pvalue = family.pvalue / (1 - RECALIBRATION_WEIGHT)
    if alpha < family_pvalue and gain_pvalue < family_pvalue:
        combined = _replace_family_pvalue(family, gain_pvalue, None)
    else:
        combined = _replace_family_pvalue(
            family, family_pvalue, None if family.min_pvalue is None else family.min_pvalue / (1 - RECALIBRATION_WEIGHT)
        )
    return replace(results, tests=[combined, *results.tests[len(results.tests) > 1 :]])


def _replace_family_pvalue(verdict: Verdict, pvalue: float, min_pvalue: float | None) -> Verdict:
    """Return the verdict as the family-wise test with this p-value, at most 1, and without `parts` of a single lens."""
    joint, joint_min_pvalue = min(pvalue, 1.0), None if min_pvalue is None else min(min_pvalue, 1.0)
    parts = verdict.parts if verdict.lens == "family" else {}
    return replace(verdict, lens="family", pvalue=joint, family_pvalue=joint, min_pvalue=joint_min_pvalue, parts=parts)
