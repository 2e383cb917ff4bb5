"""Compute those estimates and tests of an audit that can be computed from a tally, the sums of rows in cells."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.progress import Progress
from trueodds.core.results import Estimate, Verdict
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.consistency import Consistency
from trueodds.hypotests.group_results import BEYOND_MAX_GROUPS, Group
from trueodds.hypotests.group_status import (
    classify_status,
    group_notes,
    margin_notes,
    mean_prediction_and_event_rate,
    notes_on_unexamined,
    prediction_direction,
    tally_subgroups,
)
from trueodds.hypotests.lens_family import lens_family
from trueodds.hypotests.omnibus import Omnibus
from trueodds.kernels.holm import holm
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical
from trueodds.reports.audit_result import HOLM
from trueodds.reports.audit_results import AuditResults
from trueodds.reports.calibration_in_the_large import calibration_in_the_large
from trueodds.reports.family_wise_test import add_groups_to_family, group_alpha, holm_resamples, replace_family
from trueodds.reports.interval_consistency import reconcile_intervals
from trueodds.reports.subgroups import AuditGroups, GroupSpec, adjust_by_holm
from trueodds.resampling import tally_estimates
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally


def analyze_tally(
    tally: Tally,
    resamples: int | None,
    level: float,
    alpha: float,
    rng: np.random.Generator,
    progress: Progress,
    group_spec: GroupSpec = GroupSpec(),  # noqa: B008 - frozen
) -> AuditResults:
    """Compute all estimates and tests of an audit that can be computed from the cells of a tally.

    The parameters are those of `analyze_rows`. The subgroups are those that the tally was made with.
    """
    lenses, notes = lens_family(tally)
    n_groups = sum(len(values) for values in tally.groups.values())
    n_draws = holm_resamples(resamples, tally.k, n_groups, alpha)
    score_lens = Canonical() if tally.kind == "classes" else lenses[0]
    scores = [_estimate_from_tally(tally, name, score_lens, n_draws, level, rng) for name in ("brier", "log_loss")]
    errors, tests, gap_rng = [], [], copy.deepcopy(rng)  # the state in which the first error is resampled
    for i, lens in enumerate(lenses):
        progress(0.1 + 0.6 * i / len(lenses), f"testing {lens}")
        errors.append(_estimate_from_tally(tally, "ece", lens, n_draws, level, rng))
        tests.append(Omnibus(resamples=n_draws).from_tally(tally, [lens], rng))
    if len(tests) > 1:
        tests = [_family_by_holm(tests), *tests]
    alpha_of_groups = group_alpha(tests[0], alpha)
    groups = _test_groups(tally, lenses[0], Consistency(resamples=n_draws), level, group_spec, alpha_of_groups, rng)
    if groups.groups:
        joint_pvalues = [group.joint for group in groups.groups]
        tests = replace_family(tests, add_groups_to_family(tests[0], joint_pvalues, groups.min_pvalue))
    mean_gap = None
    if tally.kind != "multilabel":
        mean_gap = _estimate_from_tally(tally, "calibration_in_the_large", lenses[0], n_draws, level, gap_rng).interval
    errors = reconcile_intervals(errors, tests, tally.k, alpha, mean_gap)
    in_the_large, z = _calibration_in_the_large_of_tally(tally, lenses[0])
    return AuditResults(
        scores=scores,
        errors=errors,
        tests=tests,
        calibration_in_the_large=in_the_large,
        calibration_in_the_large_z=z,
        resamples=n_draws,
        notes=[*notes, *groups.notes],
        groups=groups,
    )


def _family_by_holm(tests: Sequence[Verdict]) -> Verdict:
    """Return the family-wise test of several lenses, whose p-value is the smallest Holm-adjusted one."""
    strongest = tests[int(np.argmin([test.pvalue for test in tests]))]
    joint_pvalue = min(holm([test.family_pvalue or test.pvalue for test in tests]))
    min_pvalue = min(1.0, len(tests) * min(test.min_pvalue or 0.0 for test in tests))
    return replace(
        strongest, lens="family", pvalue=joint_pvalue, family_pvalue=joint_pvalue, min_pvalue=min_pvalue, parts={}
    )


def _estimate_from_tally(
    tally: Tally, name: str, lens: Lens, n_draws: int, level: float, rng: np.random.Generator
) -> Estimate:
    """Estimate the mean over the views of a lens, with `n_draws` null draws for the noise floor."""
    return tally_estimates.estimate_from_tally(
        tally, ESTIMATORS.make(name, {}), lens, "mean", IntervalSpec(level=level), n_draws, rng
    )


def _test_groups(
    tally: Tally,
    lens: Lens,
    test: Consistency,
    level: float,
    group_spec: GroupSpec,
    alpha: float,
    rng: np.random.Generator,
) -> AuditGroups:
    """Test each subgroup separately with Holm-adjusted p-values, because the cells of subgroups have no joint draws."""
    subgroups, unexamined = tally_subgroups(tally, group_spec.max_groups)
    if not subgroups:
        return AuditGroups(unexamined=unexamined)
    min_effect = group_spec.min_effect
    n_untested = sum(group.reason == BEYOND_MAX_GROUPS for group in unexamined)
    estimates = [_estimate_from_tally(part, "ece", lens, test.resamples, level, rng) for _, _, part in subgroups]
    group_tests = adjust_by_holm(
        [test.from_tally(part, [lens], rng).pvalue for *_, part in subgroups], 1 / (1 + test.resamples), n_untested
    )
    groups = []
    for (column, value, part), estimate, p, joint in zip(
        subgroups, estimates, group_tests.pvalues, group_tests.adjusted, strict=True
    ):
        interval = estimate.interval
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        name, means_and_direction = str(value), _describe_means(part, lens, level)
        status = classify_status(joint, low, high, min_effect, alpha)
        groups.append(Group(column, name, f"{column}={name}", estimate, p, joint, None, status, *means_and_direction))
    note = Note(
        "TN166",
        "A tally keeps each group separately, so the joint p-values are Holm-adjusted. Detectable errors, differences "
        "between groups, crossings and the multicalibration error require mode='exact' (--mode exact).",
    )
    accuracies = tuple(part.accuracy if np.isfinite(part.accuracy) else None for *_, part in subgroups)
    n_examined = Counter(column for column, *_ in subgroups)
    notes = (
        note,
        *notes_on_unexamined([(column, n_examined[column]) for column in tally.groups], unexamined),
        *group_notes(groups, alpha, joint=False),
        *margin_notes(groups, ESTIMATORS.make("ece", {}), str(lens), min_effect),
    )
    return AuditGroups(
        groups=tuple(groups),
        accuracies=accuracies,
        min_pvalue=group_tests.min_pvalue,
        correction=HOLM,
        min_effect=min_effect,
        level=level,
        alpha=alpha,
        notes=notes,
        unexamined=unexamined,
    )


def _calibration_in_the_large_of_tally(tally: Tally, lens: Lens) -> tuple[float | None, float | None]:
    """Return calibration-in-the-large through a lens, also in standard errors; None for independent labels."""
    if tally.kind == "multilabel":
        return None, None
    (view,) = tally.views(lens)
    return calibration_in_the_large(view)


def _describe_means(tally: Tally, lens: Lens, level: float) -> tuple[float | None, float | None, str | None]:
    """Return mean predicted probability, event rate and direction; None with several views or without weight."""
    views = tally.views(lens)
    if len(views) > 1 or views[0].total <= 0:
        return None, None, None
    return *mean_prediction_and_event_rate(views[0]), prediction_direction(views[0], None, level)
