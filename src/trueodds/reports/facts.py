"""Estimates and tests of an audit on rows: errors with intervals, a family of tests, subgroups, standard measures."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.progress import Progress
from trueodds.core.results import Estimate, Verdict
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.hypotests.consistency_verdict import lens_result_from_draws
from trueodds.hypotests.group_tests import GroupEstimands, GroupPValues, joint_group_pvalues
from trueodds.hypotests.nested_cells import has_vote_shares
from trueodds.hypotests.omnibus import Omnibus
from trueodds.hypotests.per_view import DEFAULT_RESAMPLES
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Classwise
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.view import View
from trueodds.reports.interval_consistency import reconcile_intervals
from trueodds.reports.standard_measures import Measure, standard_measures, standard_notes
from trueodds.reports.subgroups import AuditGroups, GroupSpec, adjust_by_holm, measure_groups
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.noise_floor import noise_floor_draws
from trueodds.resampling.null_distribution import null_draws

REDRAWS = 199  # null draws behind the noise floors
MAX_RESAMPLES = 9_999  # maximum number of null draws for Holm-adjusted p-values
GROUPS = 0.25  # weight of the subgroups in the family of tests; the lenses have the rest
FIX = 0.05  # weight of the gain of a recalibration in the family; lenses and subgroups have the rest
MAX_CANONICAL_CLASSES = 100  # with more classes a tree over the simplex has too few rows per cell


@dataclass(frozen=True)
class Facts:
    """The estimates and tests of an audit, from which the report is written."""

    scores: list[Estimate]
    errors: list[Estimate]  # ECE by lens, the default lens first
    tests: list[Verdict]  # the family first, then by lens in the order of the errors
    in_the_large: float | None  # mean observed − mean predicted: of the second of two classes, else the predicted class
    in_the_large_z: float | None  # the same in standard errors under the null hypothesis
    resamples: int  # null draws behind the p-values
    notes: list[Note]
    groups: AuditGroups = field(default_factory=AuditGroups)
    standard: tuple[Measure, ...] = ()  # calibration in the large, slope, …

    @property
    def default_test(self) -> Verdict:
        """The test through the default lens: the one after that of the family, or the only one."""
        return self.tests[min(1, len(self.tests) - 1)]


def lenses_of(preds: Predictions) -> list[Lens]:
    """The lenses of the audit: the default lens, every class, and the whole probability vector."""
    first = default_lens(preds)
    if preds.kind != "classes" or preds.k == 2:
        return [first]
    return [first, Classwise(), *([Canonical()] if preds.k <= MAX_CANONICAL_CLASSES else [])]


def required_resamples(resamples: int | None, claims: int, alpha: float) -> int:
    """Number of null draws: 999 by default, or what Holm's correction for so many hypotheses requires, up to 9,999.

    If not even 9,999 draws could make the smallest of so many p-values significant, it is 999.
    """
    if resamples is not None:
        return resamples
    attainable = claims / (1 + MAX_RESAMPLES) <= alpha
    return (
        max(DEFAULT_RESAMPLES, min(MAX_RESAMPLES, math.ceil(2.5 * claims / alpha) - 1))
        if attainable
        else DEFAULT_RESAMPLES
    )


def facts_of_rows(
    preds: Predictions,
    resamples: int | None,
    level: float,
    alpha: float,
    rng: np.random.Generator,
    progress: Progress,
    whom: GroupSpec = GroupSpec(),  # noqa: B008 - frozen
) -> Facts:
    """Compute all estimates and tests of an audit on rows in memory."""
    ece = ESTIMATORS.make("ece", {})
    lenses = lenses_of(preds)
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
    views = max(len(estimand.views) for estimand in estimands)
    groups = len(whom.groups) if _has_several_labels(preds) else 1
    drawn = required_resamples(resamples, max(views, groups), alpha)

    # The same draws as those of `by_group` with this seed, whatever else is tested.
    of_groups = copy.deepcopy(rng)
    group_tests = _test_groups(preds, whom, ece, lenses[0], drawn, alpha, of_groups) if whom.groups else None

    def tested(test: Omnibus) -> list[Verdict]:
        return test.verdicts(
            preds, lenses, rng, lambda share: progress(0.02 + 0.23 * share, "simulating the null distribution")
        )

    tests = tested(Omnibus(resamples=resamples))  # without a number it adds draws if p is close to a usual level
    if resamples is None and drawn > DEFAULT_RESAMPLES and _at_min_pvalue(tests):
        tests = tested(Omnibus(resamples=drawn))
    progress(0.25, "bootstrapping intervals")
    scores = [
        Estimand.from_predictions(ESTIMATORS.make(name, {}), _score_lens(preds), preds)
        for name in ("brier", "log_loss")
    ]
    null: list[Array | None] = []

    def floors_of(every: Sequence[Estimand]) -> Sequence[Array | None]:
        null[:] = noise_floor_draws(preds, every, rng, REDRAWS)
        return null

    answered = estimate_all(preds, [*scores, *estimands], IntervalSpec(level=level), rng, floors_of)
    tests = [_with_floors(verdict, estimands, null[len(scores) :]) for verdict in _family_first(tests, estimands)]
    progress(0.55, "testing subgroups")
    group_results = AuditGroups()
    if group_tests is not None:
        group_results = measure_groups(
            preds,
            whom,
            group_tests,
            level,
            alpha_of_groups(tests[0], alpha),
            rng,
            lambda share: progress(0.55 + 0.15 * share, "measuring subgroups"),
        )
        tests = [add_groups(tests[0], group_tests.joint, group_tests.min_pvalue), *tests[len(tests) > 1 :]]
    errors = reconcile_intervals(answered[2:], tests, preds.k, alpha)
    standard = standard_measures(preds, level, rng)
    in_the_large, z = _in_the_large(preds)
    notes = [*notes, *standard_notes(preds), *(note for note in group_results.notes if note not in tests[0].notes)]
    drawn = tests[-1].settings["resamples"]
    return Facts(answered[:2], errors, tests, in_the_large, z, drawn, notes, group_results, standard)


def _score_lens(preds: Predictions) -> Lens:
    return Canonical() if preds.kind == "classes" else default_lens(preds)


def _has_several_labels(preds: Predictions) -> bool:
    """Whether several labels are drawn independently, so that their errors have no joint null distribution."""
    return preds.kind == "multilabel" and preds.k > 1


def _family_first(tests: Sequence[Verdict], estimands: Sequence[Estimand]) -> list[Verdict]:
    """The tests with the family-wise test first; one lens of several views is a family by itself."""
    if len(estimands) > 1 or len(estimands[0].views) == 1:
        return list(tests)
    (only,) = tests
    family = replace(only, lens="family", pvalue=only.family_pvalue or only.pvalue, parts={})
    return [family, only]


def _at_min_pvalue(tests: Sequence[Verdict]) -> bool:
    """Whether a view has so small a p-value that more draws could make it significant after Holm's correction."""
    threshold = 2 / (1 + DEFAULT_RESAMPLES)
    return any(part["pvalue"] <= threshold for test in tests[-2:] for part in test.parts.values())


def _with_floors(verdict: Verdict, estimands: Sequence[Estimand], null: Sequence[Array | None]) -> Verdict:
    """The test with the ECE and the noise floor of each of its views."""
    for estimand, draws in zip(estimands, null, strict=False):
        if str(estimand.lens) != verdict.lens or len(estimand.views) == 1 or draws is None:
            continue
        more = {
            view.name: {"error": float(value), "noise_floor": float(drawn.mean())}
            for view, value, drawn in zip(estimand.views, estimand.values, draws, strict=True)
        }
        return replace(verdict, parts={name: {**part, **more.get(name, {})} for name, part in verdict.parts.items()})
    return verdict


def _test_groups(
    preds: Predictions,
    whom: GroupSpec,
    ece: Estimator,
    lens: Lens,
    resamples: int,
    alpha: float,
    rng: np.random.Generator,
) -> GroupPValues:
    """The p-values of the subgroups: joint over the null draws, or Holm-adjusted for several independent labels."""
    if not _has_several_labels(preds):
        return joint_group_pvalues(preds, whom.groups, ece, lens, "mean", resamples, alpha, rng)
    claims = GroupEstimands.from_groups(preds, whom.groups, ece, lens, "mean")
    draws = null_draws(preds, claims.estimands, resamples, rng)
    single = [
        lens_result_from_draws(estimand, drawn, joint=False).pvalue
        for estimand, drawn in zip(claims.estimands, draws, strict=True)
    ]
    return adjust_by_holm(single, 1 / (1 + resamples))


def alpha_of_groups(lenses: Verdict, alpha: float) -> float:
    """Return the subgroups' level: their share of alpha, or all of it once the tests of the lenses have rejected."""
    tests = alpha * (1 - FIX)
    return tests if lenses.pvalue <= tests * (1 - GROUPS) else tests * GROUPS


def add_groups(family: Verdict, joint: Sequence[float], min_pvalue: float) -> Verdict:
    """The family of lenses and subgroups, by weighted Holm correction with most of the weight on the lenses."""
    p = min([family.pvalue / (1 - GROUPS), *(joint_p / GROUPS for joint_p in joint if not np.isnan(joint_p))])
    family_min_pvalue = max(
        (family.min_pvalue or 0.0) / (1 - GROUPS), min_pvalue / GROUPS if p < family.pvalue / (1 - GROUPS) else 0.0
    )
    return _as_family(family, p, family_min_pvalue)


def alpha_of_fix(family: Verdict, alpha: float) -> float:
    """The level of the gain of a recalibration: its share of alpha, or all of it once the other tests have rejected."""
    return alpha if family.pvalue <= alpha * (1 - FIX) else alpha * FIX


def add_fix(facts: Facts, pvalue: float | None, alpha: float) -> Facts:
    """The facts with the gain of a recalibration added to the family, by weighted Holm correction with a small weight.

    The family-wise test keeps its level, and a recalibration is confirmed only if calibration is rejected. The p-value
    of the gain comes from an asymptotic distribution and may be tiny, so it is that of the family only if the other
    tests do not reject.
    """
    family, gain = facts.tests[0], 1.0 if pvalue is None else pvalue / FIX
    joint = family.pvalue / (1 - FIX)
    if alpha < joint and gain < joint:
        combined = _as_family(family, gain, None)
    else:
        combined = _as_family(family, joint, None if family.min_pvalue is None else family.min_pvalue / (1 - FIX))
    return replace(facts, tests=[combined, *facts.tests[len(facts.tests) > 1 :]])


def _as_family(verdict: Verdict, pvalue: float, min_pvalue: float | None) -> Verdict:
    """The family-wise test with this p-value; the tests of single lenses keep their own."""
    joint, joint_min_pvalue = min(pvalue, 1.0), None if min_pvalue is None else min(min_pvalue, 1.0)
    parts = verdict.parts if verdict.lens == "family" else {}
    return replace(verdict, lens="family", pvalue=joint, family_pvalue=joint, min_pvalue=joint_min_pvalue, parts=parts)


def _in_the_large(preds: Predictions) -> tuple[float | None, float | None]:
    """Calibration-in-the-large, and the same in standard errors under the null hypothesis.

    For two classes it is that of the second class, otherwise that of the predicted class.
    """
    if preds.kind == "multilabel":
        return None, None
    (view,) = default_lens(preds).views(preds)
    if preds.cluster is None:
        return calibration_in_the_large(view)
    residual = view.w * (view.y - view.p.astype(np.float64))
    mean = float(residual.sum() / view.total)
    se = float(np.sqrt((np.bincount(preds.cluster, residual) ** 2).sum())) / view.total
    return mean, _z_score(mean, se)


def calibration_in_the_large(view: View) -> tuple[float, float | None]:
    """Mean observed minus mean predicted, also in standard errors of a calibrated model with independent rows.

    With votes, the standard error is computed from the residuals.
    """
    mean = float((view.w * (view.y - view.p.astype(np.float64))).sum() / view.total)
    squares = view.sums("wwr") if has_vote_shares(view) else np.maximum(view.sums("wwv"), 0.0)
    return mean, _z_score(mean, float(np.sqrt(squares.sum())) / view.total)


def _z_score(mean: float, se: float) -> float | None:
    """A mean in standard errors; infinite if the standard error is 0 and the mean is not."""
    if se > 0:
        return mean / se
    return math.copysign(math.inf, mean) if abs(mean) > 1e-12 else None


MIN_DISTINCT = 0.9  # share of distinct predictions; with fewer, scores are coarse and equal rows need not be copies
MIN_COPIES = 0.005  # share of copies below which no note is made


def duplicate_notes(preds: Predictions) -> list[Note]:
    """Return a note if some rows duplicate another row's prediction and outcome, although most are distinct.

    There is no note if clusters are given.
    """
    if preds.cluster is not None or preds.n < 100 or preds.p.ndim == 1 or preds.y is None:
        return []
    rng = np.random.default_rng(0)
    sums = np.asarray(preds.p, dtype=np.float64) @ rng.standard_normal(preds.p.shape[1])
    outcome = 10 * rng.standard_normal(preds.k)
    order = np.argsort(sums + (outcome[preds.y] if preds.y.ndim == 1 else preds.y @ outcome), kind="stable")
    # Copies have equal sums up to rounding, so sorting makes them neighbors. The rows themselves are then compared.
    row, before = order[1:], order[:-1]
    same_outcome = (preds.y[row] == preds.y[before]).reshape(len(row), -1).all(axis=1)
    count = int(((preds.p[row] == preds.p[before]).all(axis=1) & same_outcome).sum())
    if count <= MIN_COPIES * preds.n or count > (1 - MIN_DISTINCT) * preds.n:
        return []
    text = (
        f"{count:,} rows have the same prediction and outcome as another row. If a case was counted twice, drop the"
        " copies or pass cluster=."
    )
    return [Note("TN144", text)]
