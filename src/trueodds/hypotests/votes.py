"""Hypothesis tests of rows with several votes (soft labels).

With redrawn labels the residual signs of whole rows are flipped, and votes are drawn. An asymptotic p-value assumes one
label per row: it is twice the mean p-value over many draws of one vote per row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.data.predictions import Predictions
from trueodds.hypotests.view_statistic import ViewResult
from trueodds.lenses.view import View

LABEL_DRAWS = 50  # draws of one vote per row over which asymptotic p-values are averaged
TWICE_THE_MEAN_TEXT = f"; p is twice the mean p-value over {LABEL_DRAWS} draws of one vote per row (conservative)"

_ONE_VOTE_TEXT = "Every row has one vote. If these are one-hot labels, pass class indices: y_true.argmax(axis=1)."
_SEVERAL_VOTES_TEXT = (
    "Rows have several votes, so not one label per row is drawn: the signs of all residuals of a row are flipped"
    " together, and if the number of votes is known, single votes are drawn."
)


def has_vote_shares(view: View) -> bool:
    """Whether the outcomes are shares of votes, so that some of them are neither 0 nor 1."""
    y = view.outcomes
    return view.is_rows and y.dtype != bool and bool(((y > 0) & (y < 1)).any())


def prepare_votes(preds: Predictions, redraw: str = "labels") -> tuple[Predictions, list[Note]]:
    """Return the rows to test, and a note if they have votes; if every row has one vote, the votes become its labels.

    `redraw` is the setting of the test: what is redrawn. Raises InputError if it does not suit clusters or votes.
    """
    if preds.cluster is not None and redraw == "both":
        raise InputError(
            "TO205",
            "redraw='both' draws independent rows, and these rows are clustered.",
            "redraw='both'",
            "Omit redraw to flip the signs of whole clusters.",
        )
    if preds.votes is None or preds.cluster is not None:
        return preds, []
    if preds.counts is not None and (preds.counts == 1).all():
        return preds.with_labels(preds.votes.argmax(axis=1)), [Note("TN202", _ONE_VOTE_TEXT)]
    if redraw != "labels":
        raise InputError(
            "TO205",
            f"redraw={redraw!r} draws one label per row, and these rows have several votes.",
            f"redraw={redraw!r} with votes",
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
