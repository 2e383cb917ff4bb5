"""Compute the estimates and tests of an audit, from rows in memory or from a tally, the sums of rows in cells."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.formatting import format_number
from trueodds.core.progress import Progress
from trueodds.core.pvalues import holm
from trueodds.core.results import Estimate, Interval, Verdict
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.estimators.observed_expected import CalibrationInTheLarge
from trueodds.hypotests.base import lens_family
from trueodds.hypotests.consistency import Consistency, lens_result_from_draws
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
from trueodds.hypotests.group_tests import GroupEstimands, GroupPValues, joint_group_pvalues, required_group_draws
from trueodds.hypotests.omnibus import Omnibus
from trueodds.hypotests.per_view import DEFAULT_RESAMPLES, required_resamples
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical
from trueodds.lenses.lens_by_name import default_lens
from trueodds.reports.audit_sections import HOLM, StandardMeasure
from trueodds.reports.family_wise_test import (
    add_groups_to_family,
    group_alpha,
    holm_resamples,
    replace_family,
    smallest_group_alpha,
)
from trueodds.reports.standard_measures import (
    calibration_in_the_large,
    calibration_in_the_large_of_rows,
    resampled_estimands,
    standard_measures,
    standard_notes,
)
from trueodds.reports.subgroups import AuditGroups, GroupSpec, adjust_by_holm, measure_groups
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all, estimate_from_tally
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.null_distribution import noise_floor_draws, null_draws
from trueodds.tallies.tally import Tally

RECONCILED_METHOD = "reconciled"  # the method of an interval that was changed; a note names the original one


def reconcile_intervals(
    errors: Sequence[Estimate],
    tests: Sequence[Verdict],
    n_classes: int,
    alpha: float,
    mean_gap: Interval | None = None,
) -> list[Estimate]:
    r"""Make the intervals of the errors consistent with the tests and with each other.

    An interval is extended to 0 if the test for the same lens does not reject. The interval of the first error is
    extended only to the lower limit of the absolute mean gap, whose interval for the same lens is `mean_gap`, because
    the error is at least the absolute mean gap. The interval of the canonical error is raised to that of the confidence
    error and to K/2 times that of the mean error of the classes; its lower limit is raised only if the test through its
    lens rejects. An interval is changed only if its limits, as they are displayed, change; it then has the method
    `reconciled` and a note.

    Notes
    -----
    Let q be the true class probabilities given the prediction p. The canonical error is the mean total variation
    :math:`\operatorname{E} \max_A |p(A) - q(A)| = \tfrac12 \operatorname{E} \sum_k |p_k - q_k|`. It is at least
    :math:`\operatorname{E} |p_c - q_c|` of the predicted class c, and exactly K/2 times the mean of
    :math:`\operatorname{E} |p_k - q_k|` over the classes. Both become smaller if rows of equal confidence, of equal
    :math:`p_k`, or of one bin are averaged (Jensen). Binned errors are therefore lower limits of the canonical error,
    except that its estimate averages rows too, within the cells of a tree.
    """
    pvalues = {test.lens: test.pvalue for test in tests}
    by_lens = {error.lens: error for error in errors}
    for i, (lens, error) in enumerate(by_lens.items()):
        smallest_low = max(0.0, mean_gap.low, -mean_gap.high) if i == 0 and mean_gap is not None else 0.0
        if error.interval is None or error.interval.low <= smallest_low or pvalues.get(lens, 0.0) <= alpha:
            continue
        if format_number(error.interval.low) != format_number(smallest_low):
            end = "0" if smallest_low == 0 else f"{format_number(smallest_low)}, the lower limit of the mean gap"
            by_lens[lens] = _replace_interval(
                error,
                replace(error.interval, low=smallest_low),
                f"The interval of the {lens} error ({_format_interval(error.interval)}) is extended to {end}, because"
                " the test for the same lens does not reject calibration.",
            )
    canonical = by_lens.get("canonical")
    if canonical is not None and canonical.interval is not None:
        rejected = pvalues.get("canonical", 0.0) <= alpha
        by_lens["canonical"] = _raise_limits(canonical, canonical.interval, by_lens, n_classes, rejected=rejected)
    return list(by_lens.values())


def _raise_limits(
    canonical: Estimate, interval: Interval, by_lens: dict[str, Estimate], n_classes: int, *, rejected: bool
) -> Estimate:
    """Return the canonical error with an interval whose limits are at least those of the coarser errors.

    `interval` is its interval, `by_lens` has the errors by lens, and `rejected` says whether its own test rejects. The
    coarser errors are those of the confidence and of the classes.
    """
    factors = (("confidence", 1.0), ("classwise", n_classes / 2))
    coarser_intervals = [
        (coarser, factor) for lens, factor in factors if lens in by_lens and (coarser := by_lens[lens].interval)
    ]
    low = 0.0
    if rejected:
        largest_low = max([interval.low, *(coarser.low * factor for coarser, factor in coarser_intervals)])
        low = min(largest_low, canonical.value)
    largest_high = max([interval.high, *(coarser.high * factor for coarser, factor in coarser_intervals)])
    high = min(largest_high, 1.0)
    if list(map(format_number, (low, high))) == list(map(format_number, (interval.low, interval.high))):
        return canonical
    end = "; its lower limit does not exceed the estimate" if interval.low < low == canonical.value else ""
    text = (
        f"The interval of the canonical error ({_format_interval(interval)}) is raised to the limits of the confidence"
        f" and class errors, because the true canonical error is at least as large{end}."
    )
    raised = _replace_interval(canonical, replace(interval, low=low, high=high), text)
    # A debiased value below the lower limit is wrong: the noise floor, which was subtracted, is larger than the bias.
    is_debiased_below = canonical.debiased is not None and canonical.debiased < low
    return replace(raised, debiased=None) if is_debiased_below else raised


def _replace_interval(error: Estimate, interval: Interval, text: str) -> Estimate:
    return replace(
        error,
        interval=replace(interval, method=RECONCILED_METHOD),
        settings={**error.settings, "interval": RECONCILED_METHOD},
        notes=(*error.notes, Note("TN269", text)),
    )


def _format_interval(interval: Interval) -> str:
    return f"{interval.method}, {format_number(interval.low)} to {format_number(interval.high)}"


@dataclass(frozen=True)
class Analysis:
    """Estimates, tests and notes, of the rows or the tally of an audit."""

    scores: list[Estimate]  # Brier score and log loss
    errors: list[Estimate]  # ECE by lens, the default lens first
    # The family-wise test first, then by lens in the order of the errors; a single lens has one test.
    tests: list[Verdict]
    # Mean observed − mean predicted: of the second of two classes, else of the predicted class.
    calibration_in_the_large: float | None
    calibration_in_the_large_z: float | None  # the same in standard errors under the null hypothesis
    resamples: int  # null draws behind the p-values
    notes: list[Note]  # on the data and on what was not tested
    groups: AuditGroups = field(default_factory=AuditGroups)  # the subgroups; empty without group columns
    standard_measures: tuple[StandardMeasure, ...] = ()  # calibration-in-the-large, calibration slope, …


def analyze_rows(
    preds: Predictions,
    resamples: int | None,
    level: float,
    alpha: float,
    rng: np.random.Generator,
    progress: Progress,
    group_spec: GroupSpec,
) -> Analysis:
    """Compute all estimates and tests of an audit on rows in memory.

    `level` is that of the intervals, and `alpha` that of the family-wise test. The steps share the random generator in
    a fixed order. If `resamples` is None, the number of null draws is that which Holm's correction requires.
    """
    lenses, lens_notes = lens_family(preds)
    ece = ESTIMATORS.make("ece", {})
    estimands = [Estimand.from_predictions(ece, lens, preds) for lens in lenses]
    # Holm's correction requires more draws the more classes there are.
    n_views = max(len(estimand.views) for estimand in estimands)
    n_groups = len(group_spec.groups) + group_spec.n_untested if _has_independent_labels(preds) else 0
    n_draws = holm_resamples(resamples, n_views, n_groups, alpha)
    # Beside subgroups that are not examined, a joint p-value is at least their number times the smallest p-value.
    n_untested = group_spec.n_untested
    n_group_draws = max(
        n_draws,
        required_resamples(resamples, 1 + n_untested, smallest_group_alpha(alpha)),
        required_group_draws(resamples, preds.n, len(group_spec.groups), n_untested, alpha),
    )

    # With copies of the generator in its initial state, the results are those of `by_group` and `measure` with the same
    # seed, whatever else is tested before.
    group_rng, estimate_rng = copy.deepcopy(rng), copy.deepcopy(rng)
    tests = _test_lenses(preds, lenses, resamples, n_draws, rng, progress)
    progress(0.25, "bootstrapping intervals")
    estimates = _estimate_scores_and_errors(preds, estimands, tests, level, estimate_rng)
    tests, mean_gap = estimates.tests, estimates.mean_gap
    del estimands  # which hold the bin of each row in each view
    progress(0.55, "testing subgroups")
    group_results = AuditGroups()
    if group_spec.groups:
        alpha_of_groups = group_alpha(tests[0], alpha)
        group_tests = _test_groups(
            preds, group_spec, ece, lenses[0], n_group_draws, alpha, group_rng, min_alpha=alpha_of_groups
        )
        group_results = measure_groups(
            preds,
            group_spec,
            group_tests,
            level,
            alpha_of_groups,
            rng,
            lambda share: progress(0.55 + 0.15 * share, "measuring subgroups"),
        )
        family = add_groups_to_family(tests[0], group_tests.adjusted, group_tests.min_pvalue)
        tests = replace_family(tests, family)
    in_the_large, z = calibration_in_the_large_of_rows(preds)
    return Analysis(
        scores=estimates.scores,
        errors=reconcile_intervals(
            estimates.errors, tests, preds.k, alpha, None if mean_gap is None else mean_gap.interval
        ),
        tests=tests,
        calibration_in_the_large=in_the_large,
        calibration_in_the_large_z=z,
        resamples=tests[-1].settings["resamples"],
        notes=[
            *lens_notes,
            *standard_notes(preds),
            *(note for note in group_results.notes if note not in tests[0].notes),
        ],
        groups=group_results,
        standard_measures=standard_measures(preds, level, rng, estimates.resampled, mean_gap),
    )


def _test_lenses(
    preds: Predictions,
    lenses: Sequence[Lens],
    resamples: int | None,
    n_draws: int,
    rng: np.random.Generator,
    progress: Progress,
) -> list[Verdict]:
    """Test calibration through all lenses with the omnibus test; with several lenses the family-wise test comes first.

    If `resamples` is None, the test is repeated with `n_draws` null draws where only so many could make the p-value of
    a class significant.
    """

    def run_omnibus(test: Omnibus) -> list[Verdict]:
        return test.verdicts(
            preds, lenses, rng, lambda share: progress(0.02 + 0.23 * share, "simulating the null distribution")
        )

    tests = run_omnibus(Omnibus(resamples=resamples))  # without a number it adds draws if p is close to a usual level
    if resamples is None and n_draws > DEFAULT_RESAMPLES and _could_become_significant(tests):
        tests = run_omnibus(Omnibus(resamples=n_draws))
    return tests


class _Estimates(NamedTuple):
    scores: list[Estimate]
    errors: list[Estimate]  # by lens
    mean_gap: Estimate | None  # None with several views
    resampled: list[Estimate]  # of the `resampled_estimands`
    tests: list[Verdict]  # with the errors of their views


def _estimate_scores_and_errors(
    preds: Predictions,
    estimands: Sequence[Estimand],
    tests: Sequence[Verdict],
    level: float,
    rng: np.random.Generator,
) -> _Estimates:
    """Return all estimates, which share bootstrap resamples and null draws; `estimands` are the errors by lens."""
    lens = _score_lens(preds)
    shared_views = next((estimand.views for estimand in estimands if str(estimand.lens) == str(lens)), None)
    views = shared_views or lens.views(preds)
    scores = [Estimand(ESTIMATORS.make(name, {}), lens, views) for name in ("brier", "log_loss")]
    draws_by_estimand: list[Array | None] = []

    def draw_noise_floors(estimands_to_draw: Sequence[Estimand]) -> Sequence[Array | None]:
        """Return the null draws of all estimands, and keep them for the tests."""
        draws_by_estimand[:] = noise_floor_draws(preds, estimands_to_draw, rng)
        return draws_by_estimand

    default = estimands[0]
    mean_gaps = [Estimand(CalibrationInTheLarge(), default.lens, default.views)] if len(default.views) == 1 else []
    all_estimands = [*scores, *estimands, *mean_gaps, *resampled_estimands(preds)]
    estimates = estimate_all(preds, all_estimands, IntervalSpec(level=level), rng, draw_noise_floors)
    first_error, first_gap = len(scores), len(scores) + len(estimands)
    first_resampled = first_gap + len(mean_gaps)
    return _Estimates(
        scores=estimates[:first_error],
        errors=estimates[first_error:first_gap],
        mean_gap=estimates[first_gap] if mean_gaps else None,
        resampled=estimates[first_resampled:],
        tests=[
            _add_errors_to_parts(verdict, estimands, draws_by_estimand[first_error:])
            for verdict in _prepend_family(tests, estimands)
        ],
    )


def _score_lens(preds: Predictions) -> Lens:
    """Return the lens of the proper scores: all classes jointly if there are classes."""
    return Canonical() if preds.kind == "classes" else default_lens(preds)


def _has_independent_labels(preds: Predictions) -> bool:
    """Return whether several labels are drawn independently, so that their errors have no joint null distribution."""
    return preds.kind == "multilabel" and preds.k > 1


def _prepend_family(tests: Sequence[Verdict], estimands: Sequence[Estimand]) -> list[Verdict]:
    """Return the tests with the family-wise test first; one lens of several views is a family by itself."""
    if len(estimands) > 1 or len(estimands[0].views) == 1:
        return list(tests)
    (lens_test,) = tests
    family = replace(lens_test, lens="family", pvalue=lens_test.family_pvalue or lens_test.pvalue, parts={})
    return [family, lens_test]


def _could_become_significant(tests: Sequence[Verdict]) -> bool:
    """Return whether more null draws could make a view significant after Holm's correction.

    They could if at most one draw was as extreme as the data, so that the p-value is one of the two smallest possible
    ones.
    """
    threshold = 2 / (1 + DEFAULT_RESAMPLES)
    return any(part["pvalue"] <= threshold for test in tests[-2:] for part in test.parts.values())


def _add_errors_to_parts(
    verdict: Verdict, estimands: Sequence[Estimand], draws_by_estimand: Sequence[Array | None]
) -> Verdict:
    """Return the test with the ECE and the noise floor of each of its views.

    `draws_by_estimand` holds an array (views, draws) for each estimand, or None without null draws.
    """
    for estimand, draws in zip(estimands, draws_by_estimand, strict=False):
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
    min_alpha: float,
) -> GroupPValues:
    """Return the p-values of the subgroups, joint over the null draws or, for independent labels, Holm-adjusted."""
    if not _has_independent_labels(preds):
        return joint_group_pvalues(
            preds,
            group_spec.groups,
            estimator=ece,
            lens=lens,
            aggregate="mean",
            resamples=resamples,
            alpha=alpha,
            rng=rng,
            n_untested=group_spec.n_untested,
            min_alpha=min_alpha,
        )
    group_estimands = GroupEstimands.from_groups(preds, group_spec.groups, ece, lens, "mean")
    draws = null_draws(preds, group_estimands.estimands, resamples, rng)
    pvalues = [
        lens_result_from_draws(estimand, drawn, joint=False).pvalue
        for estimand, drawn in zip(group_estimands.estimands, draws, strict=True)
    ]
    return adjust_by_holm(pvalues, 1 / (1 + resamples), group_spec.n_untested)


def analyze_tally(
    tally: Tally,
    resamples: int | None,
    level: float,
    alpha: float,
    rng: np.random.Generator,
    progress: Progress,
    group_spec: GroupSpec,
) -> Analysis:
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
    groups = _test_tallied_groups(
        tally, lenses[0], Consistency(resamples=n_draws), level, group_spec, alpha_of_groups, rng
    )
    if groups.groups:
        joint_pvalues = [group.joint for group in groups.groups]
        tests = replace_family(tests, add_groups_to_family(tests[0], joint_pvalues, groups.min_pvalue))
    mean_gap = None
    if tally.kind != "multilabel":
        mean_gap = _estimate_from_tally(tally, "calibration_in_the_large", lenses[0], n_draws, level, gap_rng).interval
    errors = reconcile_intervals(errors, tests, tally.k, alpha, mean_gap)
    in_the_large, z = _calibration_in_the_large_of_tally(tally, lenses[0])
    return Analysis(
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
    return estimate_from_tally(tally, ESTIMATORS.make(name, {}), lens, "mean", IntervalSpec(level=level), n_draws, rng)


def _test_tallied_groups(
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
        mean_prob, event_rate, direction = _describe_means(part, lens, level)
        groups.append(
            Group(
                column=column,
                value=str(value),
                label=f"{column}={value}",
                estimate=estimate,
                pvalue=p,
                joint=joint,
                min_detectable=None,
                status=classify_status(joint, low, high, min_effect, alpha),
                mean_prob=mean_prob,
                event_rate=event_rate,
                direction=direction,
            )
        )
    note = Note(
        "TN166",
        "A tally keeps each group separately, so the joint p-values are Holm-adjusted. Detectable errors, differences "
        "between groups, crossings and the multicalibration error require ⟨mode='exact' (--mode exact)⟩.",
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
