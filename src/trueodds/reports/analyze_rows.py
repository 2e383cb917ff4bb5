"""Estimates and tests of an audit on rows: errors with intervals, a family of tests, subgroups, standard measures."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.progress import Progress
from trueodds.core.results import Verdict
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.hypotests.consistency_verdict import lens_result_from_draws
from trueodds.hypotests.group_tests import GroupEstimands, GroupPValues, joint_group_pvalues
from trueodds.hypotests.omnibus import Omnibus
from trueodds.hypotests.per_view import DEFAULT_RESAMPLES
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Classwise
from trueodds.lenses.lens import default_lens
from trueodds.reports.audit_results import AuditResults
from trueodds.reports.calibration_in_the_large import calibration_in_the_large_of_rows
from trueodds.reports.data_description import duplicate_notes
from trueodds.reports.family_wise_test import add_groups_to_family, group_alpha, required_resamples
from trueodds.reports.interval_consistency import reconcile_intervals
from trueodds.reports.standard_measures import standard_measures, standard_notes
from trueodds.reports.subgroups import AuditGroups, GroupSpec, adjust_by_holm, measure_groups
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.noise_floor import noise_floor_draws
from trueodds.resampling.null_distribution import null_draws

NOISE_FLOOR_DRAWS = 199  # null draws behind the noise floors
MAX_CANONICAL_CLASSES = 100  # with more classes a tree over the simplex has too few rows per cell


def audit_lenses(preds: Predictions) -> list[Lens]:
    """The lenses of the audit: the default lens, every class, and the whole probability vector."""
    first = default_lens(preds)
    if preds.kind != "classes" or preds.k == 2:
        return [first]
    return [first, Classwise(), *([Canonical()] if preds.k <= MAX_CANONICAL_CLASSES else [])]


def analyze_rows(
    preds: Predictions,
    resamples: int | None,
    level: float,
    alpha: float,
    rng: np.random.Generator,
    progress: Progress,
    group_spec: GroupSpec = GroupSpec(),  # noqa: B008 - frozen
) -> AuditResults:
    """Compute all estimates and tests of an audit on rows in memory."""
    ece = ESTIMATORS.make("ece", {})
    lenses = audit_lenses(preds)
    notes = duplicate_notes(preds)
    if preds.kind == "classes" and preds.k > MAX_CANONICAL_CLASSES:
        notes.append(
            Note(
                "TN205",
                f"With {preds.k} classes the audit does not test the whole probability vector. Call test with"
                " lens='canonical'.",
            )
        )
    estimands = [Estimand.from_predictions(ece, lens, preds) for lens in lenses]
    # Holm's correction requires more draws the more classes there are.
    n_views = max(len(estimand.views) for estimand in estimands)
    n_groups = len(group_spec.groups) if _has_independent_labels(preds) else 1
    n_draws = required_resamples(resamples, max(n_views, n_groups), alpha)

    # The same draws as those of `by_group` with this seed, whatever else is tested.
    group_rng = copy.deepcopy(rng)
    group_tests = (
        _test_groups(preds, group_spec, ece, lenses[0], n_draws, alpha, group_rng) if group_spec.groups else None
    )

    def run_omnibus(test: Omnibus) -> list[Verdict]:
        return test.verdicts(
            preds, lenses, rng, lambda share: progress(0.02 + 0.23 * share, "simulating the null distribution")
        )

    tests = run_omnibus(Omnibus(resamples=resamples))  # without a number it adds draws if p is close to a usual level
    if resamples is None and n_draws > DEFAULT_RESAMPLES and _could_become_significant(tests):
        tests = run_omnibus(Omnibus(resamples=n_draws))
    progress(0.25, "bootstrapping intervals")
    scores = [
        Estimand.from_predictions(ESTIMATORS.make(name, {}), _score_lens(preds), preds)
        for name in ("brier", "log_loss")
    ]
    floor_draws: list[Array | None] = []

    def draw_noise_floors(every: Sequence[Estimand]) -> Sequence[Array | None]:
        floor_draws[:] = noise_floor_draws(preds, every, rng, NOISE_FLOOR_DRAWS)
        return floor_draws

    estimates = estimate_all(preds, [*scores, *estimands], IntervalSpec(level=level), rng, draw_noise_floors)
    tests = [
        _add_errors_to_parts(verdict, estimands, floor_draws[len(scores) :])
        for verdict in _prepend_family(tests, estimands)
    ]
    progress(0.55, "testing subgroups")
    group_results = AuditGroups()
    if group_tests is not None:
        group_results = measure_groups(
            preds,
            group_spec,
            group_tests,
            level,
            group_alpha(tests[0], alpha),
            rng,
            lambda share: progress(0.55 + 0.15 * share, "measuring subgroups"),
        )
        tests = [add_groups_to_family(tests[0], group_tests.joint, group_tests.min_pvalue), *tests[len(tests) > 1 :]]
    errors = reconcile_intervals(estimates[2:], tests, preds.k, alpha)
    standard = standard_measures(preds, level, rng)
    in_the_large, z = calibration_in_the_large_of_rows(preds)
    notes = [*notes, *standard_notes(preds), *(note for note in group_results.notes if note not in tests[0].notes)]
    n_draws = tests[-1].settings["resamples"]
    return AuditResults(estimates[:2], errors, tests, in_the_large, z, n_draws, notes, group_results, standard)


def _score_lens(preds: Predictions) -> Lens:
    return Canonical() if preds.kind == "classes" else default_lens(preds)


def _has_independent_labels(preds: Predictions) -> bool:
    """Whether several labels are drawn independently, so that their errors have no joint null distribution."""
    return preds.kind == "multilabel" and preds.k > 1


def _prepend_family(tests: Sequence[Verdict], estimands: Sequence[Estimand]) -> list[Verdict]:
    """The tests with the family-wise test first; one lens of several views is a family by itself."""
    if len(estimands) > 1 or len(estimands[0].views) == 1:
        return list(tests)
    (only,) = tests
    family = replace(only, lens="family", pvalue=only.family_pvalue or only.pvalue, parts={})
    return [family, only]


def _could_become_significant(tests: Sequence[Verdict]) -> bool:
    """Whether a view has so small a p-value that more draws could make it significant after Holm's correction."""
    threshold = 2 / (1 + DEFAULT_RESAMPLES)
    return any(part["pvalue"] <= threshold for test in tests[-2:] for part in test.parts.values())


def _add_errors_to_parts(
    verdict: Verdict, estimands: Sequence[Estimand], floor_draws: Sequence[Array | None]
) -> Verdict:
    """The test with the ECE and the noise floor of each of its views."""
    for estimand, draws in zip(estimands, floor_draws, strict=False):
        if str(estimand.lens) != verdict.lens or len(estimand.views) == 1 or draws is None:
            continue
        errors_by_view = {
            view.name: {"error": float(value), "noise_floor": float(drawn.mean())}
            for view, value, drawn in zip(estimand.views, estimand.values, draws, strict=True)
        }
        return replace(
            verdict, parts={name: {**part, **errors_by_view.get(name, {})} for name, part in verdict.parts.items()}
        )
    return verdict


def _test_groups(
    preds: Predictions,
    group_spec: GroupSpec,
    ece: Estimator,
    lens: Lens,
    resamples: int,
    alpha: float,
    rng: np.random.Generator,
) -> GroupPValues:
    """The p-values of the subgroups: joint over the null draws, or Holm-adjusted for several independent labels."""
    if not _has_independent_labels(preds):
        return joint_group_pvalues(preds, group_spec.groups, ece, lens, "mean", resamples, alpha, rng)
    group_estimands = GroupEstimands.from_groups(preds, group_spec.groups, ece, lens, "mean")
    draws = null_draws(preds, group_estimands.estimands, resamples, rng)
    pvalues = [
        lens_result_from_draws(estimand, drawn, joint=False).pvalue
        for estimand, drawn in zip(group_estimands.estimands, draws, strict=True)
    ]
    return adjust_by_holm(pvalues, 1 / (1 + resamples))
