"""Do rows stand twice? Copies among predictions that otherwise hardly repeat."""

from __future__ import annotations

import numpy as np

from trueodds.core.errors import Note
from trueodds.data.predictions import Predictions

RARE = 0.9  # of the rows must be different predictions, else scores are coarse, and equal ones no copies
SOME = 0.005  # of the rows are copies: fewer are no matter


def copies(preds: Predictions) -> list[Note]:
    """A note where a few predictions come again to the last digit, with the same outcome, though most are their own.

    Clusters say that rows belong together; then nothing is noted.
    """
    if preds.cluster is not None or preds.n < 100 or preds.p.ndim == 1 or preds.y is None:
        return []
    rng = np.random.default_rng(0)
    sums = np.asarray(preds.p, dtype=np.float64) @ rng.standard_normal(preds.p.shape[1])
    outcome = 10 * rng.standard_normal(preds.k)
    order = np.argsort(sums + (outcome[preds.y] if preds.y.ndim == 1 else preds.y @ outcome), kind="stable")
    # The sums of copies are equal up to rounding, which brings copies next to each other. The rows themselves decide.
    row, before = order[1:], order[:-1]
    same_outcome = (preds.y[row] == preds.y[before]).reshape(len(row), -1).all(axis=1)
    count = int(((preds.p[row] == preds.p[before]).all(axis=1) & same_outcome).sum())
    if count <= SOME * preds.n or count > (1 - RARE) * preds.n:
        return []
    text = f"{count:,} rows are copies of others, prediction and outcome alike: if they are one case counted twice, drop them or say cluster=."
    return [Note("TN144", text)]
