"""p-values of a statistic among its null draws or all their values, and Holm's step-down adjustment of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.core.typing import Array

TIE_TOLERANCE = 1e-10  # a draw within this relative distance of the observed statistic ties with it


def pvalue(observed: float, draws: Array) -> float:
    """Monte Carlo p-value (1 + draws at least as large) / (1 + draws): never 0, exact if the draws follow the null.

    An undefined statistic has no p-value (NaN).

    >>> pvalue(3.0, np.array([1.0, 2.0, 4.0]))
    0.5
    """
    if np.isnan(observed):
        return float("nan")
    threshold = observed if np.isinf(observed) else observed - TIE_TOLERANCE * abs(observed)
    return float((1 + (draws >= threshold).sum()) / (1 + len(draws)))


def exact_pvalues(observed: Array, values: Array, probabilities: Array) -> tuple[list[float], float]:
    """p-value of each hypothesis, and the family-wise p-value of the smallest of them, from an enumerated null.

    The family-wise p-value is that of the min-p test: the null probability of a smallest p-value of at most the
    observed one. Shapes: `observed` (hypotheses,) holds the statistics, `values` (hypotheses, outcomes) their values
    for each outcome of the null distribution, and `probabilities` (outcomes,) the probability of each outcome.

    >>> exact_pvalues(np.array([2.0]), np.array([[0.0, 1.0, 2.0]]), np.array([0.5, 0.3, 0.2]))
    ([0.2], 0.2)
    """
    is_defined = ~np.isnan(observed)
    if not is_defined.any():
        return [float("nan")] * len(observed), float("nan")
    tails = []
    for statistics in np.concatenate([observed[:, None], values], axis=1)[is_defined]:
        null_values, order = statistics[1:], np.argsort(statistics[1:])
        above = np.append(np.cumsum(probabilities[order][::-1])[::-1], 0.0)
        tails.append(
            above[np.searchsorted(null_values[order], statistics - TIE_TOLERANCE * np.abs(statistics), "left")]
        )
    smallest = np.min(tails, axis=0)
    joint = float(probabilities[smallest[1:] <= smallest[0] * (1 + TIE_TOLERANCE)].sum())
    pvalues = np.full(len(observed), np.nan)
    pvalues[is_defined] = [tail[0] for tail in tails]
    return [float(min(p, 1.0)) for p in pvalues], min(joint, 1.0)


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p-values, valid under any dependence of the tests; NaN stays NaN.

    Source: Holm (1979).

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(pvalues, kind="stable")  # NaN is sorted last
    increasing = np.maximum.accumulate([(len(pvalues) - i) * pvalues[j] for i, j in enumerate(order)])
    adjusted = np.empty(len(pvalues))
    adjusted[order] = np.where(np.isnan(increasing), np.nan, np.minimum(increasing, 1.0))
    return [float(p) for p in adjusted]
