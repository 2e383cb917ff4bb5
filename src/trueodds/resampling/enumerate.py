"""Every labelling that the predictions allow, each with its probability: the null law itself, for a few rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.resampling.estimand import Estimand

MAX_LABELINGS = 2**20  # labellings
BLOCK = 2**12  # of them at once


def enumerated(preds: Predictions, estimands: Sequence[Estimand]) -> tuple[list[Array], Array]:
    """The statistic of each view under every labelling, (views, labellings) for each question, and their chances."""
    if preds.kind == "multilabel" or preds.cluster is not None:
        raise InputError(
            "TO205",
            "Labellings are enumerated for independent rows with one label each.",
            "independent labels" if preds.cluster is None else "clusters",
            "Leave redraw out.",
        )
    P = np.asarray(preds.P, dtype=np.float64)
    P = P / P.sum(axis=1, keepdims=True)
    allowed = [np.flatnonzero(row > 0) for row in P]
    total = float(np.prod([float(len(classes)) for classes in allowed]))
    if total > MAX_LABELINGS:
        raise InputError(
            "TO205",
            f"Rows can be labelled in more than {MAX_LABELINGS:,} ways.",
            f"{preds.n:,} rows, {total:.3g} labellings",
            "Leave redraw out: labels are drawn at random.",
        )
    sizes = [len(classes) for classes in allowed]
    chances, values = [], [[[] for _ in estimand.views] for estimand in estimands]  # type: ignore[var-annotated]
    for start in range(0, int(total), BLOCK):
        digits = np.unravel_index(np.arange(start, min(start + BLOCK, int(total))), sizes)
        labels = np.stack([classes[digit] for classes, digit in zip(allowed, digits, strict=True)], axis=1)
        chances.append(P[np.arange(preds.n), labels].prod(axis=1))
        for estimand, per_view in zip(estimands, values, strict=True):
            for v, block in enumerate(_of(estimand, v, preds, labels) for v in range(len(estimand.views))):
                per_view[v].append(block)
    return [np.stack([np.concatenate(blocks) for blocks in per_view]) for per_view in values], np.concatenate(chances)


def _of(estimand: Estimand, v: int, preds: Predictions, labels: Array) -> Array:
    """The statistic of one view for each labelling (labellings, n): from the sums of its cells where those suffice."""
    view, outcome = estimand.views[v], estimand.lens.outcomes(preds)[v]
    m = view.p.shape[1] if view.joint else 1
    outcomes = np.stack([outcome.of_labels(labeling, m) for labeling in labels]).astype(np.float64)
    if estimand.linear is None:
        return np.array([estimand.estimator.value(view.with_y(y)) for y in outcomes])
    one = estimand.linear[v]
    cells = np.zeros((one.size, preds.n))
    cells[one.index, np.arange(preds.n)] = view.w
    return one.statistic(
        cells.sum(axis=1)[None], (cells @ view.p)[None], cells @ outcomes if m > 1 else outcomes @ cells.T
    )
