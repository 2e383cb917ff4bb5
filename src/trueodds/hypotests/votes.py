"""How rows with several votes are tested: whole rows at once, never by a single vote drawn from each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.data.predictions import Predictions

DRAWN = 50  # votes per row over which the p-value of an asymptotic law is averaged
TWICE_THE_MEAN = f"; p is twice its mean over {DRAWN} draws of one vote per row (conservative)"

_ONE_VOTE = "Every row has one vote. If these are labels as one-hot rows, pass their classes: y_true.argmax(axis=1)."
_SEVERAL = "Each row has several votes: its residuals are those of all its votes, and their signs are flipped together."


def prepared(preds: Predictions, redraw: str = "labels") -> tuple[Predictions, list[Note]]:
    """The rows as they are tested, with a note where they have votes; a row's only vote is its label."""
    if preds.cluster is not None and redraw == "both":
        raise InputError(
            "TO205",
            "redraw='both' draws single rows and labels, and these rows come in clusters.",
            "redraw='both'",
            "Leave redraw out: the signs of whole clusters are flipped.",
        )
    if preds.votes is None or preds.cluster is not None:
        return preds, []
    if preds.counts is not None and (preds.counts == 1).all():
        return preds.with_labels(preds.votes.argmax(axis=1)), [Note("TN202", _ONE_VOTE)]
    if redraw != "labels":
        raise InputError(
            "TO205",
            f"redraw={redraw!r} draws labels, and these rows have several votes each.",
            f"redraw={redraw!r} with votes",
            "Leave redraw out: the signs of whole rows are flipped.",
        )
    return preds, [Note("TN202", _SEVERAL)]


def labeled(preds: Predictions, rng: np.random.Generator) -> Iterator[Predictions]:
    """The rows with one of their votes drawn as the label, again and again."""
    assert preds.votes is not None
    cumulated = np.cumsum(preds.votes, axis=1)
    for _ in range(DRAWN):
        u = rng.random(preds.n)
        yield preds.with_labels(np.minimum((cumulated < u[:, None]).sum(axis=1), preds.k - 1))


def twice_the_mean(pvalues: Sequence[float]) -> float:
    """A p-value that is valid however the p-values depend on each other. Source: Rüschendorf (1982).

    >>> twice_the_mean([0.01, 0.03]), twice_the_mean([0.7, 0.9])
    (0.04, 1.0)
    """
    return min(1.0, 2 * float(np.mean(pvalues)))
