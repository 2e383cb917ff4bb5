"""What do draws say? The observed statistics among those of redrawn labels: p-values, families, floors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import Note
from trueodds.core.holm import holm
from trueodds.core.results import Verdict
from trueodds.estimators.base import Estimator
from trueodds.hypotests.several import exact, family
from trueodds.inference.among import pvalue
from trueodds.inference.asked import Asked
from trueodds.inference.enumerate import enumerated
from trueodds.inference.redraw import null_draws, within_clusters
from trueodds.problem.predictions import Predictions

Array = NDArray[Any]

REDRAWS = ("labels", "both", "all")
ALL = "every labelling comes with the probability that the predictions give it, independently from row to row"


def settings_said(statistic: Estimator, asked: Sequence[Asked]) -> dict[str, Any]:
    """The statistic's settings; what depends on one view's bins only where there is one view."""
    said = statistic.said(asked[0].views[0])
    if len(asked) == 1 and len(asked[0].views) == 1:
        return said
    same = all(each.views[0].joint == asked[0].views[0].joint for each in asked)
    return {
        key: value
        for key, value in said.items()
        if not key.endswith(("_bins", "_bin")) and (same or key != "partition")
    }


def notes_on(preds: Predictions) -> list[Note]:
    """What the null takes for granted about these rows."""
    if preds.cluster is not None:
        return [
            Note(
                "TN204",
                "With clusters the test is approximate; with few clusters and rare or nearly sure outcomes it can reject more often than it says.",
            )
        ]
    return [
        Note(
            "TN203",
            "Independence of the rows given the predictions is part of the null; rows of one source belong in cluster=.",
        )
    ]


def verdict_on(
    preds: Predictions,
    asked: Sequence[Asked],
    draws: Sequence[Array],
    rng: np.random.Generator,
    null: str,
    settings: dict[str, Any],
    notes: Sequence[Note] = (),
    again: Sequence[Array] | None = None,
) -> Verdict:
    """The verdict on rows from their null draws; with clusters the larger p of two nulls counts.

    `again` are the draws of the second null, made here where they are not given. Flipped signs cannot tell a bin where nothing came, although something should have, from a sure one: there the
    labels redrawn with the correlation seen within clusters are the stricter judge.
    """
    joint, notes = preds.kind != "multilabel", [*notes, *notes_on(preds)]
    floor = 0.0 if preds.cluster is None else 2.0 ** -float(preds.cluster.max())  # of G clusters: 2^(1 − G)
    found = judged(asked, draws, null, settings, notes, joint_views=joint, joint_lenses=joint, least=floor)
    if preds.cluster is None or not joint:
        return found
    if again is None:
        again = null_draws(preds, asked, draws[0].shape[1], rng, share=within_clusters(preds, asked))
    other = judged(asked, again, null, settings, notes, joint_views=True, joint_lenses=True, least=floor)
    return _larger(found, other)


def _larger(a: Verdict, b: Verdict) -> Verdict:
    """Of two verdicts on the same claims the larger p-values, claim by claim."""
    parts = {
        name: {**part, **{key: max(part[key], b.parts[name][key]) for key in ("pvalue", "holm")}}
        for name, part in a.parts.items()
    }
    both = [p for p in (a.family_pvalue, b.family_pvalue) if p is not None]
    return replace(a, pvalue=max(a.pvalue, b.pvalue), family_pvalue=max(both) if both else None, parts=parts)


def judged(
    asked: Sequence[Asked],
    draws: Sequence[Array],
    null: str,
    settings: dict[str, Any],
    notes: Sequence[Note],
    *,
    joint_views: bool,
    joint_lenses: bool,
    least: float = 0.0,
) -> Verdict:
    """The verdict from the observed statistics and their draws (views, B): shared by the test and the audit.

    `joint_views` and `joint_lenses` say whether the draws of a lens's views, and of the lenses, hang together
    as the data do; where they do not, the family-wise p is Holm's. `least` is the smallest p that the null can
    give where that is more than 1/(1 + B).
    """
    claims = [claim_on(each, drawn, joint=joint_views) for each, drawn in zip(asked, draws, strict=True)]
    floor = max(1 / (1 + draws[0].shape[1]), least)
    notes = [
        *notes,
        *(
            note
            for each in asked
            if len(each.views) == 1
            for note in each.estimator.notes(each.views[0])
            if note.code == "TN107"
        ),
    ]
    most = max(len(asked), *(len(each.views) for each in asked))
    if most * floor > 0.05:
        text = f"Holm's correction of {most:,} claims with {draws[0].shape[1]:,} draws cannot give less than {min(1.0, most * floor):.2g}: single ones cannot be named. Give more resamples."
        notes = [*notes, Note("TN209", text)]
    if len(asked) == 1:
        lowest = floor if joint_views else min(1.0, floor * len(asked[0].views))
        return told(asked, claims, claims[0].pvalue, lowest, null, settings, notes)
    joint = min(holm([claim.pvalue for claim in claims]))
    if joint_lenses:
        # Every view of every lens is a claim of the family: one class far off is not averaged away.
        observed = np.concatenate([claim.values for claim in claims])
        joint = family(observed, np.concatenate([claim.draws for claim in claims]))
    else:
        floor = min(1.0, floor * sum(len(each.views) for each in asked))
    return told(asked, claims, joint, floor, null, settings, notes)


def told(
    asked: Sequence[Asked],
    claims: Sequence[Claim],
    pvalue: float,
    floor: float | None,
    null: str,
    settings: dict[str, Any],
    notes: Sequence[Note],
) -> Verdict:
    """The verdict on one lens, or on a family of several, of which the strongest gives statistic and effect."""
    n, kept = asked[0].n_rows, tuple(dict.fromkeys(notes))
    if len(asked) == 1:
        (claim,) = claims
        return Verdict(
            "consistency", str(asked[0].lens), claim.statistic, pvalue, n, null, floor, claim.family,
            claim.statistic - claim.mean, claim.parts, settings, kept,
        )  # fmt: skip
    adjusted = holm([claim.pvalue for claim in claims])
    parts = {
        str(each.lens): {"statistic": claim.statistic, "pvalue": claim.pvalue, "holm": p, "noise_floor": claim.mean}
        for each, claim, p in zip(asked, claims, adjusted, strict=True)
    }
    strongest = claims[int(np.argmin([np.nan_to_num(claim.pvalue, nan=1.0) for claim in claims]))]
    return Verdict(
        "consistency", "family", strongest.statistic, pvalue, n, null, floor, pvalue,
        strongest.statistic - strongest.mean, parts, settings, kept,
    )  # fmt: skip


def of_all(preds: Predictions, asked: Sequence[Asked], settings: dict[str, Any]) -> Verdict:
    """The verdict of all labellings: p is exact, and has no floor."""
    values, chances = enumerated(preds, asked)
    claims = [_exact_claim(each, found, chances) for each, found in zip(asked, values, strict=True)]
    seen, drawn = (np.concatenate([getattr(one, name) for one in claims]) for name in ("values", "draws"))
    _, joint = exact(seen, drawn, chances)
    whole = claims[0].pvalue if len(claims) == 1 else joint
    return told(asked, claims, whole, None, ALL, settings, notes_on(preds))


def _exact_claim(asked: Asked, values: Array, chances: Array) -> Claim:
    raw, off = asked.values, asked.estimator.off
    mean = float(asked.combined(values) @ chances)
    (whole,), _ = exact(np.array([asked.combined(off(raw))]), asked.combined(off(values))[None], chances)
    singles, joint = exact(off(raw), off(values), chances)
    parts = {
        view.name: {"statistic": float(value), "pvalue": p, "holm": h, "noise_floor": float(drawn @ chances)}
        for view, value, p, h, drawn in zip(asked.views, raw, singles, holm(singles), values, strict=True)
    }
    family_p, parts = (joint, parts) if len(asked.views) > 1 else (None, {})
    return Claim(float(asked.combined(raw)), whole, mean, off(raw), off(values), family_p, parts)


@dataclass(frozen=True)
class Claim:
    """One lens judged on its draws."""

    statistic: float
    pvalue: float
    mean: float
    values: Array  # (views,)
    draws: Array  # (views, B)
    family: float | None
    parts: dict[str, dict[str, float]]


def claim_on(asked: Asked, draws: Array, *, joint: bool) -> Claim:
    """One lens judged; where its views are several, each of them too."""
    raw = asked.values
    statistic, mean = float(asked.combined(raw)), float(asked.combined(draws).mean())
    values, draws = asked.estimator.off(raw), asked.estimator.off(draws)
    combined, judged_by = asked.combined(draws), float(asked.combined(values))
    if len(asked.views) == 1:
        return Claim(statistic, pvalue(judged_by, combined), mean, values, draws, None, {})
    singles = [pvalue(float(value), drawn) for value, drawn in zip(values, draws, strict=True)]
    adjusted = holm(singles)
    parts = {
        view.name: {"statistic": float(value), "pvalue": p, "holm": h, "noise_floor": float(drawn.mean())}
        for view, value, p, h, drawn in zip(asked.views, values, singles, adjusted, draws, strict=True)
    }
    everything = family(values, draws) if joint else min(adjusted)
    # Labels of one row depend on each other in a way that their draws do not: the sum over labels has no null law.
    whole = pvalue(judged_by, combined) if joint else everything
    return Claim(statistic, whole, mean, values, draws, everything, parts)
