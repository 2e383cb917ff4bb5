"""What the audit asks and finds, on rows: every lens on one set of draws, every error with its sureness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import Note
from trueodds.core.results import Estimate, Verdict
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.consistency import Consistency, judged, notes_on
from trueodds.hypotests.several import holm
from trueodds.inference.asked import Asked
from trueodds.inference.estimate import Sureness, estimates
from trueodds.inference.redraw import null_draws, null_of
from trueodds.problem.lens import Canonical, Classwise, Confidence, Lens, accuracy, default_lens
from trueodds.problem.predictions import Predictions
from trueodds.problem.within import Within

Array = NDArray[Any]
Progress = Callable[[float, str], None]

CANONICAL_UP_TO = 100  # classes; beyond, no tree over the simplex holds enough rows to say anything
GROUPS_UP_TO = 50  # values of a group column that are audited apart, the largest ones


@dataclass(frozen=True)
class Facts:
    """Everything that was measured and tested, before it is put into words."""

    scores: list[Estimate]
    errors: list[Estimate]  # ECE by lens, the default lens first
    tests: list[Verdict]  # the family first, then by lens in the order of the errors
    groups: list[dict[str, Any]]
    gap: float | None  # mean confidence − accuracy
    gap_z: float | None  # in standard errors under the null
    notes: list[Note]

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


def of_rows(preds: Predictions, resamples: int, rng: np.random.Generator, progress: Progress) -> Facts:
    """Measure and test everything on rows in memory."""
    ece = ESTIMATORS.make("ece", {})
    lenses = lenses_of(preds)
    subgroups, notes = _subgroups(preds, lenses[0])
    if preds.kind == "classes" and preds.k > CANONICAL_UP_TO:
        notes.append(Note("TN205", f"With {preds.k} classes the whole vector is not tested; name a lens to do so."))
    asked = [Asked.of(ece, lens, preds) for lens in lenses]
    within = [Asked.of(ece, lens, preds) for lens in subgroups]
    progress(0.02, "redrawing labels")
    draws = null_draws(
        preds,
        [*asked, *within],
        resamples,
        rng,
        progress=lambda s: progress(min(0.3, 0.02 + 0.28 * s), "redrawing labels"),
    )
    progress(0.30, "resampling rows")
    scores = [Asked.of(ESTIMATORS.make(name, {}), _whole(preds), preds) for name in ("brier", "log_loss")]
    null: list[Array | None] = [None, None, *draws[: len(asked)]]
    answered = estimates(preds, [*scores, *asked], Sureness(), rng, lambda: null)
    progress(0.55, "judging")
    tests = _tests(preds, [*asked, *within], draws, len(asked), resamples, rng)
    groups = _groups(preds, subgroups, within, draws[len(asked) :], rng, progress)
    gap, z = _gap(preds)
    return Facts(answered[:2], answered[2:], tests, groups, gap, z, notes)


def _whole(preds: Predictions) -> Lens:
    return Canonical() if preds.kind == "classes" else default_lens(preds)


def _tests(
    preds: Predictions,
    asked: Sequence[Asked],
    draws: Sequence[Array],
    lenses: int,
    resamples: int,
    rng: np.random.Generator,
) -> list[Verdict]:
    """The family over all lenses, classes and groups, then each lens; with votes on one drawn vote per row."""
    test = Consistency(resamples=resamples)
    hard, drawn_votes = test.one_label(preds, rng)
    if hard is not preds:
        asked = [Asked.of(each.estimator, each.lens, hard) for each in asked]
        draws = null_draws(hard, asked, resamples, rng)
    joint = preds.kind != "multilabel"
    null, notes = null_of(hard), [*drawn_votes, *notes_on(preds)]
    settings = {"statistic": "ece", "redraw": "labels", "resamples": resamples}
    several = [(list(asked), list(draws))] if len(asked) > 1 or len(asked[0].views) > 1 else []
    each = [([one], [values]) for one, values in zip(asked[:lenses], draws[:lenses], strict=True)]
    found = [
        judged(some, values, null, settings, notes, joint_views=joint, joint_lenses=joint)
        for some, values in [*several, *each]
    ]
    if several and found[0].lens != "family":
        found[0] = replace(found[0], lens="family", pvalue=found[0].family_pvalue or found[0].pvalue, parts={})
    return found


def _subgroups(preds: Predictions, lens: Lens) -> tuple[list[Within], list[Note]]:
    """The default lens within each value of each group column."""
    found, notes = [], []
    for column, labels in preds.group.items():
        values, counts = np.unique(labels, return_counts=True)
        kept = np.sort(np.argsort(-counts, kind="stable")[:GROUPS_UP_TO])
        if len(kept) < len(values):
            notes.append(
                Note(
                    "TN206",
                    f"Column {column} has {len(values):,} values; the {GROUPS_UP_TO} largest groups are audited.",
                )
            )
        weighty = [values[i] for i in kept if preds.w[labels == values[i]].any()]
        found += [Within(lens, column, value) for value in weighty]
    return found, notes


def _groups(
    preds: Predictions,
    lenses: Sequence[Within],
    asked: Sequence[Asked],
    draws: Sequence[Array],
    rng: np.random.Generator,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Each subgroup's own error, with Holm's p over all of them."""
    ece = ESTIMATORS.make("ece", {})
    found: list[dict[str, Any]] = []
    for i, (lens, each, null) in enumerate(zip(lenses, asked, draws, strict=True)):
        rows = preds[lens.rows(preds)]
        alone = Asked.of(ece, lens.lens, rows)
        (estimate,) = estimates(rows, [alone], Sureness(), rng, lambda null=null: [null])  # type: ignore[misc]
        (verdict,) = [judged([each], [null], "", {}, [], joint_views=preds.kind != "multilabel", joint_lenses=False)]
        found.append(
            {
                "column": lens.column,
                "value": str(lens.value),
                "n": rows.n,
                "accuracy": accuracy(rows) if preds.kind != "multilabel" else None,
                "ece": estimate.value,
                "interval": estimate.interval.to_dict() if estimate.interval else None,
                "noise_floor": estimate.noise_floor,
                "pvalue": verdict.pvalue,
            }
        )
        progress(0.55 + 0.15 * (i + 1) / len(lenses), "auditing groups")
    for group, adjusted in zip(found, holm([float(group["pvalue"]) for group in found]) if found else [], strict=True):
        group["holm"] = adjusted
    return found


def _gap(preds: Predictions) -> tuple[float | None, float | None]:
    """Mean confidence minus accuracy, and how many null standard errors that is."""
    if preds.kind == "multilabel":
        return None, None
    (view,) = Confidence().views(preds)
    p = view.p.astype(np.float64)
    gap = float(view.w @ (p - view.y) / view.total)
    if preds.cluster is None:
        se = float(np.sqrt(np.maximum(view.sums("wwv"), 0).sum())) / view.total
    else:
        se = float(np.sqrt((np.bincount(preds.cluster, view.w * (view.y - p)) ** 2).sum())) / view.total
    return gap, gap / se if se > 0 else None
