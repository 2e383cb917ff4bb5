"""The estimates and tests of an audit on a tally, as far as the sums in its cells determine them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.group_results import Group
from trueodds.core.progress import Progress
from trueodds.core.results import Estimate
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.consistency import Consistency
from trueodds.hypotests.group_status import classify_status, group_notes
from trueodds.hypotests.omnibus import Omnibus
from trueodds.kernels.holm import holm
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Classwise
from trueodds.lenses.lens_by_name import default_lens
from trueodds.reports.facts import (
    Facts,
    add_groups,
    alpha_of_groups,
    calibration_in_the_large,
    required_resamples,
)
from trueodds.reports.interval_consistency import reconcile_intervals
from trueodds.reports.subgroups import HOLM, AuditGroups, adjust_by_holm
from trueodds.resampling import measure
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally


def facts_of_tally(
    tally: Tally,
    resamples: int | None,
    level: float,
    alpha: float,
    rng: np.random.Generator,
    progress: Progress,
    min_effect: float = 0.05,
) -> Facts:
    """Compute all estimates and tests of an audit that the cells of a tally determine."""
    first = default_lens(tally)
    lenses: list[Lens] = [first]
    notes: list[Note] = []
    if tally.kind == "classes" and tally.k > 2:
        lenses.append(Classwise())
        if "canonical" in tally.lenses:
            if tally.weight == tally.n:
                lenses.append(Canonical())
            else:
                notes.append(
                    Note(
                        "TN210",
                        "A weighted tally has no null distribution for the whole probability vector, which is not"
                        " tested.",
                    )
                )
    drawn = required_resamples(resamples, max(tally.k, sum(len(values) for values in tally.groups.values())), alpha)
    score_lens = Canonical() if tally.kind == "classes" else first
    scores = [_estimate(tally, name, score_lens, drawn, level, rng) for name in ("brier", "log_loss")]
    errors, tests = [], []
    for i, lens in enumerate(lenses):
        progress(0.1 + 0.6 * i / len(lenses), f"testing {lens}")
        errors.append(_estimate(tally, "ece", lens, drawn, level, rng))
        tests.append(Omnibus(resamples=drawn).from_tally(tally, [lens], rng))
    if len(tests) > 1:
        strongest = tests[int(np.argmin([test.pvalue for test in tests]))]
        joint = min(holm([test.family_pvalue or test.pvalue for test in tests]))
        min_pvalue = min(1.0, len(tests) * min(test.min_pvalue or 0.0 for test in tests))
        tests.insert(
            0, replace(strongest, lens="family", pvalue=joint, family_pvalue=joint, min_pvalue=min_pvalue, parts={})
        )
    level_of_groups = alpha_of_groups(tests[0], alpha)
    groups = _groups(tally, first, Consistency(resamples=drawn), level, min_effect, level_of_groups, rng)
    if groups.groups:
        tests = [
            add_groups(tests[0], [group.joint for group in groups.groups], groups.min_pvalue),
            *tests[len(tests) > 1 :],
        ]
    errors = reconcile_intervals(errors, tests, tally.k, alpha)
    in_the_large, z = _in_the_large(tally, first)
    return Facts(scores, errors, tests, in_the_large, z, drawn, [*notes, *groups.notes], groups)


def _estimate(tally: Tally, name: str, lens: Lens, redraws: int, level: float, rng: np.random.Generator) -> Estimate:
    return measure.estimate_from_tally(
        tally, ESTIMATORS.make(name, {}), lens, "mean", IntervalSpec(level=level), redraws, rng
    )


def _groups(
    tally: Tally, lens: Lens, test: Consistency, level: float, min_effect: float, alpha: float, rng: np.random.Generator
) -> AuditGroups:
    """Test each subgroup separately with Holm-adjusted p-values, because the cells of subgroups have no joint draws."""
    parts = [(column, value, part) for column, values in tally.groups.items() for value, part in values.items()]
    if not parts:
        return AuditGroups()
    estimates = [_estimate(part, "ece", lens, test.resamples, level, rng) for _, _, part in parts]
    group_tests = adjust_by_holm(
        [test.from_tally(part, [lens], rng).pvalue for *_, part in parts], 1 / (1 + test.resamples)
    )
    groups = []
    for (column, value, part), estimate, p, joint in zip(
        parts, estimates, group_tests.pvalues, group_tests.joint, strict=True
    ):
        ends = estimate.interval
        low, high = (None, None) if ends is None else (ends.low, ends.high)
        name, (mean_prob, event_rate) = str(value), _means(part, lens)
        how = classify_status(joint, low, high, min_effect, alpha)
        groups.append(Group(column, name, f"{column}={name}", estimate, p, joint, None, how, mean_prob, event_rate))
    note = Note(
        "TN166",
        "A tally keeps each group separately, so the joint p-values are Holm-adjusted. Detectable errors, differences "
        "between groups, crossings and the multicalibration error require mode='exact' (--mode exact).",
    )
    right = tuple(part.accuracy if np.isfinite(part.accuracy) else None for *_, part in parts)
    notes = (note, *group_notes(groups, alpha, joint=False))
    return AuditGroups(tuple(groups), right, group_tests.min_pvalue, HOLM, min_effect, level, alpha, notes=notes)


def _in_the_large(tally: Tally, lens: Lens) -> tuple[float | None, float | None]:
    if tally.kind == "multilabel":
        return None, None
    (view,) = tally.views(lens)
    return calibration_in_the_large(view)


def _means(tally: Tally, lens: Lens) -> tuple[float | None, float | None]:
    """The mean predicted probability and the event rate; None with several views or without weight."""
    views = tally.views(lens)
    if len(views) > 1 or views[0].total <= 0:
        return None, None
    (view,) = views
    mean_prob, event_rate = (float((view.w * x).sum() / view.total) for x in (view.p, view.y))
    return mean_prob, event_rate
