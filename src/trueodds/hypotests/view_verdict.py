"""Build the `Verdict` of a test with one statistic per view: for one lens, or for a family of several lenses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import Verdict
from trueodds.core.typing import Array
from trueodds.hypotests.multiple_testing import PValues
from trueodds.hypotests.view_statistic import ViewResult
from trueodds.kernels.holm import holm
from trueodds.resampling.estimand import Estimand


@dataclass(frozen=True)
class VerdictContext:
    """What the verdicts on a lens and on a family have in common."""

    test: str  # name of the test
    null: str  # the null hypothesis in words
    min_pvalue: float | None  # smallest p-value that the draws can give, after correction for several hypotheses
    settings: Mapping[str, Any]  # settings of the test as resolved
    notes: tuple[Note, ...]  # notes without duplicates


def largest_pvalues(pvalues_by_null: Sequence[PValues], min_pvalue: float) -> PValues:
    """Return the largest of the p-values under several null distributions, none of them below `min_pvalue`."""
    n_lenses = len(pvalues_by_null[0].lens_pvalues)
    view_pvalues = [
        np.max([np.maximum(pvalues.view_pvalues[i], min_pvalue) for pvalues in pvalues_by_null], axis=0)
        for i in range(n_lenses)
    ]
    lens_pvalues = [
        float(np.max([min_pvalue, *(pvalues.lens_pvalues[i] for pvalues in pvalues_by_null)])) for i in range(n_lenses)
    ]
    return PValues(
        view_pvalues=view_pvalues,
        lens_pvalues=lens_pvalues,
        family_pvalue=float(np.max([min_pvalue, *(pvalues.family_pvalue for pvalues in pvalues_by_null)])),
        min_pvalue=max(min_pvalue, *(pvalues.min_pvalue for pvalues in pvalues_by_null)),
        n_claims=pvalues_by_null[0].n_claims,
    )


def lens_verdict(
    estimand: Estimand, results: Sequence[ViewResult], pvalues: PValues, context: VerdictContext
) -> Verdict:
    """Return the verdict on one lens, with the statistic and the effect of the view of smallest p-value."""
    (view_pvalues,) = pvalues.view_pvalues
    strongest = results[_index_of_smallest(view_pvalues)]
    has_one_view = len(results) == 1
    settings, parts = dict(context.settings), strongest.parts
    if not has_one_view:
        parts = _result_parts([view.name for view in estimand.views], results, view_pvalues)
    elif strongest.summary:
        settings["summary"] = strongest.summary
    return Verdict(
        test=context.test,
        lens=str(estimand.lens),
        statistic=strongest.statistic,
        pvalue=pvalues.lens_pvalues[0],
        n=estimand.n_rows,
        null=context.null,
        min_pvalue=context.min_pvalue,
        family_pvalue=None if has_one_view else pvalues.lens_pvalues[0],
        effect=strongest.effect,
        parts=parts,
        settings=settings,
        notes=context.notes,
    )


def family_verdict(
    estimands: Sequence[Estimand], results: Sequence[Sequence[ViewResult]], pvalues: PValues, context: VerdictContext
) -> Verdict:
    """Return the verdict on several lenses, with the statistic and the effect of the lens of smallest p-value."""
    strongest_views = [
        lens_results[_index_of_smallest(view_pvalues)]
        for lens_results, view_pvalues in zip(results, pvalues.view_pvalues, strict=True)
    ]
    statistics = np.array([result.statistic for result in strongest_views])
    strongest = strongest_views[_index_of_smallest(np.array(pvalues.lens_pvalues), statistics)]
    return Verdict(
        test=context.test,
        lens="family",
        statistic=strongest.statistic,
        pvalue=pvalues.family_pvalue,
        n=estimands[0].n_rows,
        null=context.null,
        min_pvalue=context.min_pvalue,
        family_pvalue=pvalues.family_pvalue,
        effect=strongest.effect,
        parts=_result_parts(
            [str(estimand.lens) for estimand in estimands], strongest_views, np.array(pvalues.lens_pvalues)
        ),
        settings=context.settings,
        notes=context.notes,
    )


def _index_of_smallest(pvalues: Array, statistics: Array | None = None) -> int:
    """Return the index of the smallest p-value, of equal ones that of the first or that of the largest statistic.

    NaN counts as larger than any other p-value.
    """
    if statistics is None:
        statistics = np.zeros(len(pvalues))
    return int(np.lexsort((-statistics, np.nan_to_num(pvalues, nan=2.0)))[0])


def _result_parts(names: Sequence[str], results: Sequence[ViewResult], pvalues: Array) -> dict[str, dict[str, float]]:
    """Return the statistic, p-value, Holm's p-value and effect of each view, or of each lens of a family, by name."""
    adjusted_pvalues = holm([float(p) for p in pvalues])
    return {
        name: {"statistic": result.statistic, "pvalue": float(p), "holm": adjusted_pvalue, "effect": result.effect}
        for name, result, p, adjusted_pvalue in zip(names, results, pvalues, adjusted_pvalues, strict=True)
    }


def shared_settings(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings that are equal for all views, from the settings of each view."""
    return {
        key: value
        for key, value in settings[0].items()
        if all(view_settings.get(key) == value for view_settings in settings)
    }
