"""What the audit asks and finds, on rows: every lens on one set of draws, every error with its sureness."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.audit import repeats
from trueodds.audit.for_whom import Groups, Whom, among_rows, apart
from trueodds.core.errors import Note
from trueodds.core.results import Estimate, Verdict
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.among_groups import Claims, Judged, judged_on
from trueodds.hypotests.judging import claim_on, one_label, settings_said, verdict_on
from trueodds.inference.asked import Asked
from trueodds.inference.estimate import Sureness, estimates
from trueodds.inference.redraw import null_draws, null_of, within_clusters
from trueodds.inference.redraw_cells import by_bins
from trueodds.problem.lens import Canonical, Classwise, Lens, default_lens
from trueodds.problem.predictions import Predictions
from trueodds.problem.view import View

Array = NDArray[Any]
Progress = Callable[[float, str], None]

CANONICAL_UP_TO = 100  # classes; beyond, no tree over the simplex holds enough rows to say anything


@dataclass(frozen=True)
class Facts:
    """Everything that was measured and tested, before it is put into words."""

    scores: list[Estimate]
    errors: list[Estimate]  # ECE by lens, the default lens first
    tests: list[Verdict]  # the family first, then by lens in the order of the errors
    gap: float | None  # mean prediction − outcome rate: of the second of two classes, else of the predicted one
    gap_z: float | None  # in standard errors under the null
    resamples: int  # redraws behind the p-values
    notes: list[Note]
    groups: Groups = field(default_factory=Groups)

    @property
    def headline(self) -> Verdict:
        """The test of the default lens: the one right after the family's, or the only one."""
        return self.tests[min(1, len(self.tests) - 1)]


def lenses_of(preds: Predictions) -> list[Lens]:
    """The audit's lenses: the default one, every class, and the whole vector."""
    first = default_lens(preds)
    if preds.kind != "classes" or preds.k == 2:
        return [first]
    return [first, Classwise(), *([Canonical()] if preds.k <= CANONICAL_UP_TO else [])]


def enough(resamples: int | None, claims: int, alpha: float) -> int:
    """How many redraws: 999 if not said, or as many as Holm's correction of so many claims needs, up to 9,999."""
    if resamples is None:
        return max(999, min(9_999, math.ceil(5 * claims / alpha) - 1))
    return resamples


def of_rows(
    preds: Predictions,
    resamples: int | None,
    level: float,
    alpha: float,
    rng: np.random.Generator,
    progress: Progress,
    whom: Whom = Whom(),  # noqa: B008 - frozen
) -> Facts:
    """Measure and test everything on rows in memory."""
    ece = ESTIMATORS.make("ece", {})
    lenses = lenses_of(preds)
    notes = repeats.copies(preds)
    if preds.kind == "classes" and preds.k > CANONICAL_UP_TO:
        notes.append(Note("TN205", f"With {preds.k} classes the whole vector is not tested; name a lens to do so."))
    asked = [Asked.of(ece, lens, preds) for lens in lenses]
    claims = Claims.of(preds, whom.groups, ece, lenses[0], "mean")
    # Groups of several labels are corrected by Holm, which needs more draws; else they are judged on the draws they share.
    held = len(claims.asked) if _apart(preds) else 1
    drawn = enough(resamples, max(held, *(len(each.views) for each in asked)), alpha)

    def say(share: float) -> None:
        progress(min(0.3, 0.02 + 0.28 * share), "redrawing labels")

    say(0.0)
    draws = null_draws(preds, [*asked, *claims.every], drawn, rng, progress=say)
    progress(0.30, "resampling rows")
    scores = [Asked.of(ESTIMATORS.make(name, {}), _whole(preds), preds) for name in ("brier", "log_loss")]
    null: list[Array | None] = [None, None, *draws[: len(asked)]]
    answered = estimates(preds, [*scores, *asked], Sureness(level=level), rng, lambda _every: null)
    progress(0.55, "judging")
    tests, judged = _tests(preds, asked, claims, whom, draws, alpha, rng)
    groups = Groups()
    if judged is not None:
        groups = among_rows(
            preds, whom, judged, level, alpha, rng, lambda share: progress(0.55 + 0.15 * share, "measuring groups")
        )
    gap, z = _gap(preds)
    return Facts(
        answered[:2],
        answered[2:],
        tests,
        gap,
        z,
        drawn,
        [*notes, *(each for each in groups.notes if each not in tests[0].notes)],
        groups,
    )


def _whole(preds: Predictions) -> Lens:
    return Canonical() if preds.kind == "classes" else default_lens(preds)


def _apart(preds: Predictions) -> bool:
    """Whether several labels are drawn apart, so that errors over them have no joint null law."""
    return preds.kind == "multilabel" and preds.k > 1


def _tests(
    preds: Predictions,
    asked: Sequence[Asked],
    claims: Claims,
    whom: Whom,
    draws: Sequence[Array],
    alpha: float,
    rng: np.random.Generator,
) -> tuple[list[Verdict], Judged | None]:
    """The family over all lenses, classes and groups, then each lens, and what the same draws say of the groups.

    With votes all are judged on one drawn vote per row; with clusters on two nulls, of which the larger p counts.
    """
    resamples, lenses = draws[0].shape[1], len(asked)
    hard, notes = one_label(preds, rng)
    if hard is not preds:
        asked = [Asked.of(each.estimator, each.lens, hard) for each in asked]
        claims = Claims.of(hard, whom.groups, asked[0].estimator, asked[0].lens, "mean")
        draws = null_draws(hard, [*asked, *claims.every], resamples, rng)
    family, every = [*asked, *claims.asked], [*asked, *claims.every]
    again: Sequence[Array] | None = None
    if hard.cluster is not None and hard.kind != "multilabel":
        again = null_draws(hard, every, resamples, rng, share=within_clusters(hard, family))
    settings = {"statistic": "ece", "redraw": "labels", "resamples": resamples}
    if by_bins(hard, every):
        settings["drawn"] = "bins"

    def verdict(some: slice) -> Verdict:
        said = settings | settings_said(asked[0].estimator, family[some])
        return verdict_on(
            hard, family[some], draws[some], rng, null_of(hard), said, notes, None if again is None else again[some]
        )

    found = [verdict(slice(i, i + 1)) for i in range(lenses)]
    if len(family) > 1:
        whole = verdict(slice(len(family)))
        if claims.asked:  # lenses are corrected among themselves, as the subgroups are
            alone = verdict(slice(lenses))
            whole = replace(whole, notes=alone.notes, parts=alone.parts if lenses > 1 else {})
        found.insert(0, whole)
    elif len(asked[0].views) > 1:
        found.insert(0, replace(found[0], lens="family", pvalue=found[0].family_pvalue or found[0].pvalue, parts={}))
    if not claims.asked:
        return found, None
    laws = [draws] if again is None else [draws, again]
    if not _apart(hard):
        return found, judged_on(hard, claims, [law[lenses:] for law in laws], alpha)
    single = [
        claim_on(each, drawn, joint=False).pvalue for each, drawn in zip(claims.asked, draws[lenses:], strict=False)
    ]
    return found, apart(single, 1 / (1 + resamples))


def _gap(preds: Predictions) -> tuple[float | None, float | None]:
    """Mean prediction minus outcome rate, and how many null standard errors that is.

    Of the second class where there are two, else of the predicted class.
    """
    if preds.kind == "multilabel":
        return None, None
    (view,) = default_lens(preds).views(preds)
    p = view.p.astype(np.float64)
    gap = float((view.w * (p - view.y)).sum() / view.total)
    if preds.cluster is None:
        return gap, in_errors(view, gap)
    se = float(np.sqrt((np.bincount(preds.cluster, view.w * (view.y - p)) ** 2).sum())) / view.total
    return gap, _over(gap, se)


def in_errors(view: View, gap: float) -> float | None:
    """The gap in standard errors of a calibrated model with independent rows."""
    se = float(np.sqrt(np.maximum(view.sums("wwv"), 0).sum())) / view.total
    return _over(gap, se)


def _over(gap: float, se: float) -> float | None:
    """A gap in standard errors; where nothing was left to chance any gap is infinitely many."""
    if se > 0:
        return gap / se
    return math.copysign(math.inf, gap) if abs(gap) > 1e-12 else None
