"""The verdict of the consistency test from null draws or from all labelings: p-values of views, lenses and families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import Verdict
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.hypotests.base import independence_notes
from trueodds.hypotests.multiple_testing import family_pvalue
from trueodds.kernels.holm import holm
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import cluster_correlation, enumerate_labelings, null_draws
from trueodds.resampling.pvalues import exact_pvalues, pvalue

ALL_LABELINGS = "every labeling has its predicted probability, with independent rows"


def statistic_settings(statistic: Estimator, estimands: Sequence[Estimand]) -> dict[str, Any]:
    """Settings of the statistic; settings of the bins only if there is one view."""
    settings = statistic.settings_used(estimands[0].views[0])
    if len(estimands) == 1 and len(estimands[0].views) == 1:
        return settings
    equal_kinds = all(estimand.views[0].joint == estimands[0].views[0].joint for estimand in estimands)
    return {
        key: value
        for key, value in settings.items()
        if not key.endswith(("_bins", "_bin")) and (equal_kinds or key != "partition")
    }


def verdict_from_rows(
    preds: Predictions,
    estimands: Sequence[Estimand],
    draws: Sequence[Array],
    rng: np.random.Generator,
    null: str,
    settings: dict[str, Any],
    notes: Sequence[Note] = (),
    cluster_draws: Sequence[Array] | None = None,
) -> Verdict:
    """Verdict on rows from their null draws; with clusters the larger p-value of two null distributions.

    `cluster_draws` are the draws of the second null distribution, made here if missing. Sign flips have no variance in
    a bin without events, even if some were expected; labels redrawn with the estimated within-cluster correlation are
    stricter there.
    """
    is_joint, notes = preds.kind != "multilabel", [*notes, *independence_notes(preds)]
    null_min_pvalue = 0.0 if preds.cluster is None else 2.0 ** -float(preds.cluster.max())  # of G clusters: 2^(1 − G)
    verdict = verdict_from_draws(
        estimands,
        draws,
        null,
        settings,
        notes,
        joint_views=is_joint,
        joint_lenses=is_joint,
        null_min_pvalue=null_min_pvalue,
    )
    if preds.cluster is None or not is_joint:
        return verdict
    if cluster_draws is None:
        cluster_draws = null_draws(
            preds, estimands, draws[0].shape[1], rng, cluster_share=cluster_correlation(preds, estimands)
        )
    cluster_verdict = verdict_from_draws(
        estimands,
        cluster_draws,
        null,
        settings,
        notes,
        joint_views=True,
        joint_lenses=True,
        null_min_pvalue=null_min_pvalue,
    )
    return _take_larger_pvalues(verdict, cluster_verdict)


def _take_larger_pvalues(first: Verdict, second: Verdict) -> Verdict:
    """The larger p-value of two verdicts on the same hypotheses."""
    parts = {
        name: {**part, **{key: max(part[key], second.parts[name][key]) for key in ("pvalue", "holm")}}
        for name, part in first.parts.items()
    }
    family_pvalues = [p for p in (first.family_pvalue, second.family_pvalue) if p is not None]
    return replace(
        first,
        pvalue=max(first.pvalue, second.pvalue),
        family_pvalue=max(family_pvalues) if family_pvalues else None,
        parts=parts,
    )


def verdict_from_draws(
    estimands: Sequence[Estimand],
    draws: Sequence[Array],
    null: str,
    settings: dict[str, Any],
    notes: Sequence[Note],
    *,
    joint_views: bool,
    joint_lenses: bool,
    null_min_pvalue: float = 0.0,
) -> Verdict:
    """Verdict from the observed statistics and their null draws (views, B), shared by the test and the audit.

    `joint_views` and `joint_lenses` say whether the draws of the views of a lens, and of the lenses, are joint. If they
    are not, the family-wise p is Holm's. `null_min_pvalue` is the smallest p-value that the null distribution allows if
    it exceeds 1/(1 + B).
    """
    lens_results = [
        lens_result_from_draws(estimand, lens_draws, joint=joint_views)
        for estimand, lens_draws in zip(estimands, draws, strict=True)
    ]
    min_pvalue = max(1 / (1 + draws[0].shape[1]), null_min_pvalue)
    notes = [
        *notes,
        *(
            note
            for estimand in estimands
            if len(estimand.views) == 1
            for note in estimand.estimator.notes(estimand.views[0])
            if note.code == "TN107"
        ),
    ]
    n_claims = max(len(estimands), *(len(estimand.views) for estimand in estimands))
    if n_claims * min_pvalue > 0.05:
        text = (
            f"With Holm's correction of {n_claims:,} hypotheses and {draws[0].shape[1]:,} draws the smallest adjusted"
            f" p-value is {min(1.0, n_claims * min_pvalue):.2g}, so no single hypothesis can be rejected. Increase"
            " resamples."
        )
        notes = [*notes, Note("TN209", text)]
    if len(estimands) == 1:
        min_lens_pvalue = min_pvalue if joint_views else min(1.0, min_pvalue * len(estimands[0].views))
        return build_verdict(estimands, lens_results, lens_results[0].pvalue, min_lens_pvalue, null, settings, notes)
    pvalue_of_family = min(holm([result.pvalue for result in lens_results]))
    if joint_lenses:
        # Every view of every lens is a hypothesis of the family, so one miscalibrated class is not averaged out.
        observed = np.concatenate([result.losses for result in lens_results])
        pvalue_of_family = family_pvalue(observed, np.concatenate([result.loss_draws for result in lens_results]))
    else:
        min_pvalue = min(1.0, min_pvalue * sum(len(estimand.views) for estimand in estimands))
    return build_verdict(estimands, lens_results, pvalue_of_family, min_pvalue, null, settings, notes)


def build_verdict(
    estimands: Sequence[Estimand],
    lens_results: Sequence[LensResult],
    pvalue: float,
    min_pvalue: float | None,
    null: str,
    settings: dict[str, Any],
    notes: Sequence[Note],
) -> Verdict:
    """Verdict on one lens, or on a family; statistic and effect are those of the lens with the smallest p-value."""
    unique_notes = tuple(dict.fromkeys(notes))
    if len(estimands) == 1:
        (result,) = lens_results
        return Verdict(
            test="consistency",
            lens=str(estimands[0].lens),
            statistic=result.statistic,
            pvalue=pvalue,
            n=estimands[0].n_rows,
            null=null,
            min_pvalue=min_pvalue,
            family_pvalue=result.family_pvalue,
            effect=result.statistic - result.null_mean,
            parts=result.parts,
            settings=settings,
            notes=unique_notes,
        )
    adjusted = holm([result.pvalue for result in lens_results])
    parts = {
        str(estimand.lens): {
            "statistic": result.statistic,
            "pvalue": result.pvalue,
            "holm": p,
            "noise_floor": result.null_mean,
        }
        for estimand, result, p in zip(estimands, lens_results, adjusted, strict=True)
    }
    strongest = lens_results[int(np.argmin([np.nan_to_num(result.pvalue, nan=1.0) for result in lens_results]))]
    return Verdict(
        test="consistency",
        lens="family",
        statistic=strongest.statistic,
        pvalue=pvalue,
        n=estimands[0].n_rows,
        null=null,
        min_pvalue=min_pvalue,
        family_pvalue=pvalue,
        effect=strongest.statistic - strongest.null_mean,
        parts=parts,
        settings=settings,
        notes=unique_notes,
    )


def exact_verdict(preds: Predictions, estimands: Sequence[Estimand], settings: dict[str, Any]) -> Verdict:
    """Verdict from all labelings: the p-value is exact and has no lower limit."""
    values, probabilities = enumerate_labelings(preds, estimands)
    lens_results = [
        _exact_lens_result(estimand, estimand_values, probabilities)
        for estimand, estimand_values in zip(estimands, values, strict=True)
    ]
    observed = np.concatenate([result.losses for result in lens_results])
    all_values = np.concatenate([result.loss_draws for result in lens_results])
    _, joint_pvalue = exact_pvalues(observed, all_values, probabilities)
    overall_pvalue = lens_results[0].pvalue if len(lens_results) == 1 else joint_pvalue
    return build_verdict(
        estimands, lens_results, overall_pvalue, None, ALL_LABELINGS, settings, independence_notes(preds)
    )


def _exact_lens_result(estimand: Estimand, values: Array, probabilities: Array) -> LensResult:
    """Exact test result of one lens from the statistics of all labelings (views, L) and their probabilities (L,)."""
    observed_values, as_loss = estimand.values, estimand.estimator.as_loss
    null_mean = float(estimand.combine_views(values) @ probabilities)
    (overall_pvalue,), _ = exact_pvalues(
        np.array([estimand.combine_views(as_loss(observed_values))]),
        estimand.combine_views(as_loss(values))[None],
        probabilities,
    )
    view_pvalues, joint_pvalue = exact_pvalues(as_loss(observed_values), as_loss(values), probabilities)
    parts = {
        view.name: {
            "statistic": float(value),
            "pvalue": p,
            "holm": adjusted_pvalue,
            "noise_floor": float(view_values @ probabilities),
        }
        for view, value, p, adjusted_pvalue, view_values in zip(
            estimand.views, observed_values, view_pvalues, holm(view_pvalues), values, strict=True
        )
    }
    family_p, parts = (joint_pvalue, parts) if len(estimand.views) > 1 else (None, {})
    return LensResult(
        statistic=float(estimand.combine_views(observed_values)),
        pvalue=overall_pvalue,
        null_mean=null_mean,
        losses=as_loss(observed_values),
        loss_draws=as_loss(values),
        family_pvalue=family_p,
        parts=parts,
    )


@dataclass(frozen=True)
class LensResult:
    """Test result of one lens."""

    statistic: float  # aggregated over the views
    pvalue: float  # p-value of the statistic
    null_mean: float  # mean of the statistic under the null
    losses: Array  # (views,) losses of the views
    loss_draws: Array  # (views, B) their null draws
    family_pvalue: float | None  # p-value of the family of views; None for a single view
    parts: dict[str, dict[str, float]]  # results by view; empty for a single view


def lens_result_from_draws(estimand: Estimand, draws: Array, *, joint: bool) -> LensResult:
    """Test result of one lens from its draws (views, B), with its views as parts if there are several.

    `joint` says whether the draws of the views are joint.
    """
    observed_values = estimand.values
    losses, loss_draws = estimand.estimator.as_loss(observed_values), estimand.estimator.as_loss(draws)
    combined_pvalue = pvalue(float(estimand.combine_views(losses)), estimand.combine_views(loss_draws))
    result = LensResult(
        statistic=float(estimand.combine_views(observed_values)),
        pvalue=combined_pvalue,
        null_mean=float(estimand.combine_views(draws).mean()),
        losses=losses,
        loss_draws=loss_draws,
        family_pvalue=None,
        parts={},
    )
    if len(estimand.views) == 1:
        return result
    view_pvalues = [pvalue(float(loss), view_draws) for loss, view_draws in zip(losses, loss_draws, strict=True)]
    adjusted = holm(view_pvalues)
    parts = {
        view.name: {
            "statistic": float(value),
            "pvalue": p,
            "holm": adjusted_pvalue,
            "noise_floor": float(view_draws.mean()),
        }
        for view, value, p, adjusted_pvalue, view_draws in zip(
            estimand.views, losses, view_pvalues, adjusted, loss_draws, strict=True
        )
    }
    family_p = family_pvalue(losses, loss_draws) if joint else min(adjusted)
    # Labels of one row may be dependent, but their draws are not, so a sum over labels has no null distribution.
    return replace(result, pvalue=combined_pvalue if joint else family_p, family_pvalue=family_p, parts=parts)
