"""Were these predictions fitted to these very outcomes? Then their odds have no shift and no slope left to find."""

from __future__ import annotations

import numpy as np

from trueodds.calibrators.likelihood.null_distributions import below
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.hypotests.likelihood.odds import Odds
from trueodds.lenses.view import View

EXACT = 1e-7  # of the summed sizes of what rows add to a score: so near to 0 a converged fit, or its float32, brings it
SIMPLE = 1000  # the largest denominator of a simple fraction
UNLIKELY = 1e-6  # how often chance leaves so little to find, below which that is said
_LOOKED_AT = 2000  # probabilities that are tried as fractions


def refuse_own_outcomes(odds: Odds, view: View, name: str) -> None:
    """Refuse predictions whose score is 0 by construction.

    Maps of one baseline form a group, so after the best one the best is the identity: every score is 0, to rounding.
    So it is after a logistic regression on the same rows. Where predictions vary smoothly, n rows that did not make
    them have such scores with a probability of about 10⁻¹⁴ n. Predictions of few values can by chance: those that are
    simple fractions, whose residuals cancel as whole numbers do, and those that say exactly how often each of them
    came; both are left alone. So is whatever keeps a score that rounding cannot explain; see `too_good`.
    """
    if not _vanishing(odds) or not _no_accident(odds, view):
        return
    raise InputError(
        "TO206",
        f"These predictions were fitted to these very outcomes: the statistic of {name} is 0 by construction, and p = 1 would say nothing.",
        f"scores of 0 to rounding in all {odds.rank} directions, {view.n_rows:,} rows",
        "Test held-out rows, or test the predictions before the fit: to.test(preds, 'cross_fitted').",
    )


def too_good(odds: Odds, statistic: float, df: int, units: float | None) -> tuple[Note, ...]:
    """A note where chance would hardly ever leave so little to find: maps that were rounded, regularized, or in bins.

    Predictions of no more values than there are parameters are left alone: there it can happen.
    """
    if len(np.unique(odds.x[odds.w > 0], axis=0)) <= len(odds.identity):
        return ()
    p = below(statistic, df, units)
    if not p < UNLIKELY:  # undefined, too
        return ()
    text = f"The statistic {statistic:.2g} is so small that chance alone goes below it with p = {p:.2g}: this fits these outcomes better than chance allows. Were the predictions fitted on them? Then test them on other rows."
    return (Note("TN238", text),)


def _vanishing(odds: Odds) -> bool:
    """Whether every score is 0 to rounding, of rows that pull both ways, and all directions are told."""
    if not 0 < odds.rank == len(odds.identity):
        return False
    r, x = np.abs(odds.w[:, None] * (odds.Y - odds.P))[:, odds.others], np.abs(odds.x)[:, odds.others]
    pulls = np.stack([(r * x).sum(axis=0), r.sum(axis=0)], axis=1).reshape(-1)
    return bool((np.abs(odds.null.gradient) <= EXACT * pulls).all())


def _no_accident(odds: Odds, view: View) -> bool:
    """Whether predictions of so many and such values cannot have come to that by chance."""
    mask = view.w > 0
    predicted, observed, w = (
        view.p[mask].reshape(int(mask.sum()), -1),
        view.y[mask].reshape(int(mask.sum()), -1),
        view.w[mask],
    )
    rows, index = np.unique(predicted, axis=0, return_inverse=True)
    index, rounding = index.reshape(-1), 4 * float(np.finfo(predicted.dtype).eps)
    if len(rows) <= len(odds.identity) or _simple(rows, rounding):
        return False
    mass = np.bincount(index, w)
    rates = np.stack([np.bincount(index, w * column) for column in observed.T], axis=1) / mass[:, None]
    return not np.allclose(rates, rows, rtol=0, atol=max(1e-9, rounding))


def _simple(rows: Array, rounding: float) -> bool:
    """Whether all probabilities, or some of very many, are fractions with a small denominator."""
    some = np.linspace(0, len(rows) - 1, min(len(rows), max(1, _LOOKED_AT // rows.shape[1]))).astype(np.int64)
    x, denominators = rows[some].astype(np.float64).reshape(-1, 1), np.arange(1, SIMPLE + 1)
    return bool((np.abs(x * denominators - np.rint(x * denominators)) <= rounding * denominators).any(axis=1).all())
