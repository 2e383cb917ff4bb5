"""What do p-values say of the models on fewer rows, where they are not all as small as can be?"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.api.verbs import test
from trueodds.core.typing import Array
from trueodds_studies.lineup.measures import FIRST, MEASURES, Models

AT = 0.05  # the level of the tests
SIZES = (100, 250, 500, 1000, 2500)


def draw_pvalues(n: int, nets: Models, draws: int, redraws: int, seed: int) -> dict[str, Any]:
    """The error and the p-value of every model in random sets of n rows, the same rows for all models."""
    one = MEASURES[FIRST]
    total = next(iter(nets.values())).n
    errors, pvalues = [], []
    for number in range(1 if n >= total else draws):
        rows = np.sort(np.random.default_rng([seed, 3, n, number]).choice(total, min(n, total), replace=False))
        verdicts = [
            test(
                p[rows], "consistency", lens=one.lens, statistic=one.name, resamples=redraws, rng=number, **one.settings
            )
            for p in nets.values()
        ]
        errors.append([verdict.statistic for verdict in verdicts])
        pvalues.append([verdict.pvalue for verdict in verdicts])
    return {"n": min(n, total), "nets": list(nets), "redraws": redraws, "errors": errors, "pvalues": pvalues}


def reversed_pairs(errors: Array, pvalues: Array, level: float = AT) -> Array:
    """Which ordered pairs (i, j) are as the paper warns: i has the larger error and is not rejected, and j is rejected.

    >>> reversed_pairs(np.array([[0.2, 0.1]]), np.array([[0.3, 0.01]])).tolist()
    [[[False, True], [False, False]]]
    """
    larger = errors[..., :, None] > errors[..., None, :]
    rejected = pvalues <= level
    return np.asarray(larger & ~rejected[..., :, None] & rejected[..., None, :])
