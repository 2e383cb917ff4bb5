"""Null draws of the statistics of a test, more of them if the p-value is near the usual levels, and draws of votes.

More draws make the decision at such a level almost independent of the seed. With several votes per row (soft labels)
the residual signs of whole rows are flipped, and votes are drawn. An asymptotic p-value assumes one label per row: it
is twice the mean p-value over many draws of one vote per row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.hypotests.base import FractionProgress
from trueodds.hypotests.view_statistic import ViewResult
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import cluster_correlation, draws_correlated_labels, null_draws

MAX_RESAMPLES, MAX_LABELS = 4_999, 10**8  # maximum number of draws, and of drawn labels, for borderline p-values
MIN_BORDERLINE_PVALUE, MAX_BORDERLINE_PVALUE = 0.005, 0.15  # range around the usual levels, where more draws are made


def draw_null_statistics(
    preds: Predictions,
    estimands: Sequence[Estimand],
    redraw: str,
    resamples: int,
    rng: np.random.Generator,
    progress: FractionProgress | None,
    family_pvalue: Callable[[Sequence[Array]], float] | None = None,
    correlated: Sequence[Estimand] | None = None,
) -> list[list[Array]]:
    """Return the draws (views, draws, …) of each estimand, for each null distribution.

    With clusters, or several votes per row, there are two null distributions: sign flips, and labels redrawn with the
    correlation within clusters, or of the votes of a row, that is estimated from the estimands `correlated`, by default
    all. Otherwise there is one null distribution, that of `redraw`.
    `family_pvalue` computes the p-value of a test from the draws of all estimands. If its largest value over the null
    distributions is borderline, more than `resamples` draws are made; without `family_pvalue` their number is fixed.
    It is also fixed for drawn rows, because every draw then finds all cells again.
    """
    samplers = [functools.partial(null_draws, redraw=redraw)]
    if redraw == "labels" and draws_correlated_labels(preds):
        # In a bin without any observed event all residuals −p are small, so sign flips underestimate the variance.
        # Redrawn labels include the events that could have been observed there.
        samplers.append(
            functools.partial(null_draws, cluster_share=cluster_correlation(preds, correlated or estimands))
        )
    draws_by_null = [sampler(preds, estimands, resamples, rng, progress=progress) for sampler in samplers]
    n_more_draws = min(MAX_RESAMPLES, MAX_LABELS // max(1, preds.n)) - resamples
    if family_pvalue is None or n_more_draws <= 0 or redraw == "both":
        return draws_by_null
    p = max(family_pvalue(draws) for draws in draws_by_null)
    if not MIN_BORDERLINE_PVALUE <= p <= MAX_BORDERLINE_PVALUE:
        return draws_by_null
    extended_draws = []
    for draws, sampler in zip(draws_by_null, samplers, strict=True):
        more_draws = sampler(preds, estimands, n_more_draws, rng, progress=progress)
        extended_draws.append(
            [np.concatenate([first, second], axis=1) for first, second in zip(draws, more_draws, strict=True)]
        )
    return extended_draws


def min_cluster_pvalue(preds: Predictions) -> float:
    """Return the smallest p-value of sign flips of whole clusters: 2^(1 − G) for G clusters, 0 without clusters."""
    return 0.0 if preds.cluster is None else 2.0 ** -float(preds.cluster.max())  # clusters are numbered from 0


LABEL_DRAWS = 50  # draws of one vote per row over which asymptotic p-values are averaged
TWICE_THE_MEAN_TEXT = f"; p is twice the mean p-value over {LABEL_DRAWS} draws of one vote per row (conservative)"

_ONE_VOTE_TEXT = "Every row has one vote. If these are one-hot labels, pass class indices: y_true.argmax(axis=1)."
_SEVERAL_VOTES_TEXT = (
    "Rows have several votes, so not one label per row is drawn: the signs of all residuals of a row are flipped"
    " together, and if the number of votes is known, single votes are drawn."
)


def prepare_votes(preds: Predictions, redraw: str = "labels") -> tuple[Predictions, list[Note]]:
    """Return the rows to test, and a note if they have votes; if every row has one vote, the votes become its labels.

    `redraw` is the setting of the test: what is redrawn. Raises InputError if it does not suit clusters or votes.
    """
    if preds.cluster is not None and redraw == "both":
        raise InputError(
            "TO205",
            "⟨redraw='both'⟩ draws independent rows, and these rows are clustered.",
            "⟨redraw='both'⟩",
            "Omit redraw to flip the signs of whole clusters.",
        )
    if preds.votes is None or preds.cluster is not None:
        return preds, []
    if preds.counts is not None and (preds.counts == 1).all():
        return preds.with_labels(preds.votes.argmax(axis=1)), [Note("TN202", _ONE_VOTE_TEXT)]
    if redraw != "labels":
        raise InputError(
            "TO205",
            f"⟨redraw={redraw!r}⟩ draws one label per row, and these rows have several votes.",
            f"⟨redraw={redraw!r}⟩ with votes",
            "Omit redraw to flip the signs of whole rows.",
        )
    return preds, [Note("TN202", _SEVERAL_VOTES_TEXT)]


def draw_vote_labels(preds: Predictions, rng: np.random.Generator) -> Iterator[Predictions]:
    """Yield LABEL_DRAWS copies of the predictions, each with one vote of each row drawn as its label."""
    assert preds.votes is not None
    cumulative_shares = np.cumsum(preds.votes, axis=1)
    for _ in range(LABEL_DRAWS):
        uniforms = rng.random(preds.n)
        yield preds.with_labels(np.minimum((cumulative_shares < uniforms[:, None]).sum(axis=1), preds.k - 1))


def twice_the_mean(pvalues: Sequence[float]) -> float:
    """Twice the mean p-value, which is valid under any dependence. Source: Rüschendorf (1982).

    >>> twice_the_mean([0.01, 0.03]), twice_the_mean([0.7, 0.9])
    (0.04, 1.0)
    """
    return min(1.0, 2 * float(np.mean(pvalues)))


def average_votes(results: Sequence[ViewResult]) -> ViewResult:
    """Average the results over draws of one vote per row, with a combined p-value and without a summary.

    Numbers that some draws lack, such as the coefficients of a degree that was not selected, are left out.
    """

    def combine(name: str, values: Sequence[float]) -> float:
        """Twice the mean of p-values, and the mean of other numbers."""
        return twice_the_mean(values) if name in ("pvalue", "holm") else float(np.mean(values))

    first_result = results[0]
    parts = {
        part: {
            name: combine(name, [result.parts[part][name] for result in results])
            for name in numbers
            if all(name in result.parts[part] for result in results)
        }
        for part, numbers in first_result.parts.items()
        if all(part in result.parts for result in results)
    }
    return replace(
        first_result,
        statistic=combine("statistic", [result.statistic for result in results]),
        pvalue=combine("pvalue", [result.pvalue for result in results]),
        effect=combine("effect", [result.effect for result in results]),
        parts=parts,
        summary="",
    )
