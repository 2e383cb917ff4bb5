"""Which statistics judge shifts and slopes, all of them or some, and how surprising is each?"""

from __future__ import annotations

import numpy as np

from trueodds.calibrators.likelihood.null_distributions import beyond, within
from trueodds.calibrators.likelihood.whitening import quadratic
from trueodds.core.typing import Array
from trueodds.hypotests.likelihood.odds import Odds
from trueodds.kernels.holm import holm

FORMS = ("likelihood-ratio", "wald", "score")
NAN = float("nan")


def gain(odds: Odds) -> float:
    """Twice the gain in log-likelihood, as it is."""
    return max(2 * (odds.null.value - odds.mle.at.value), 0.0)


def statistics(odds: Odds, form: str | None = None) -> dict[str, float]:
    """The three statistics, or the one of a form, which may cost less.

    Where rows differ in weight the likelihood ratio is multiplied by the score statistic in the variance of the
    scores over the one in their information; that makes it χ² again. Source: Pace, Salvan & Sartori (2011). Where the
    variance is that of units, by the same quotient of Wald's statistics: it is seen at the best fit, where it tells
    chance apart from a wrong model.
    """
    by_form: dict[str, float] = {}
    slope = odds.null.gradient
    by_meat = float(((slope @ odds.white) ** 2).sum()) if odds.enough else NAN
    if form in (None, "score"):
        by_form["score"] = by_meat
    if form in (None, "likelihood-ratio"):
        by_bread = by_meat if odds.even and odds.units is None else quadratic(slope, odds.null.hessian)
        if odds.units is not None and odds.covariance is not None:
            deviation = odds.mle.theta - odds.identity
            by_meat, by_bread = (
                quadratic(deviation, odds.covariance),
                float(deviation @ odds.mle.at.hessian @ deviation),
            )
        by_form["likelihood-ratio"] = gain(odds) * (by_meat / by_bread if by_bread > 0 else 1.0)
    if form in (None, "wald"):
        by_form["wald"] = NAN if odds.covariance is None else quadratic(odds.mle.theta - odds.identity, odds.covariance)
    return {name: by_form[name] for name in FORMS if name in by_form}


def units_of(odds: Odds, form: str) -> float | None:
    """As many units as the law of a form counts on; None where the model says the variance.

    The score's variance is taken at the null, where nothing bends to a unit that tells much: its law counts all G.
    """
    if odds.units is None:
        return None
    return float(odds.units.count) if form == "score" or odds.scatter is None else odds.scatter.units


def tail(odds: Odds, df: int, statistic: float, form: str = "wald") -> float:
    """How often chance is as large: χ², or Hotelling's T² where the variance is that of units."""
    return beyond(statistic, df, units_of(odds, form))


def subtests(odds: Odds) -> dict[str, dict[str, float]]:
    """Wald's tests of some of the parameters."""
    m = len(odds.others)
    deviation, gammas, taus = odds.mle.theta - odds.identity, np.eye(2 * m)[::2], np.eye(2 * m)[1::2]
    contrasts = {"shift": taus, "scale": gammas} | ({"equal-scales": np.diff(gammas, axis=0)} if m > 1 else {})
    return {name: _wald(odds, which, deviation) for name, which in contrasts.items()}


def classes(odds: Odds, *, joint: bool) -> dict[str, dict[str, float]]:
    """Shift and slope of each class; of a binary view, of its event."""
    m, by_class = len(odds.others), []
    deviation = odds.mle.theta - odds.identity
    wide = within(units_of(odds, "wald"))
    for i in range(m):
        parameters: dict[str, float] = {}
        for name, at in (("tau", 2 * i + 1), ("gamma", 2 * i)):
            value, se = NAN, NAN
            if odds.covariance is not None:
                value, se = float(odds.mle.theta[at]), float(np.sqrt(odds.covariance[at, at]))
            parameters |= {
                name: value,
                f"{name}_se": se,
                f"{name}_low": value - wide * se,
                f"{name}_high": value + wide * se,
            }
        for end in ("", "_low", "_high"):
            parameters[f"delta{end}"] = float(np.exp(np.minimum(parameters[f"tau{end}"], 700.0)))
        by_class.append(parameters | _wald(odds, np.eye(2 * m)[2 * i : 2 * i + 2], deviation))
    for one, p in zip(by_class, holm([one["pvalue"] for one in by_class]), strict=True):
        one["holm"] = p
    names = [f"class:{j}" for j in odds.others] if joint else ["event"]
    return dict(zip(names, by_class, strict=True))


def _wald(odds: Odds, which: Array, deviation: Array) -> dict[str, float]:
    df = len(which)
    if odds.covariance is None:
        return {"statistic": NAN, "df": float(df), "pvalue": NAN}
    statistic = quadratic(which @ deviation, which @ odds.covariance @ which.T)
    return {"statistic": statistic, "df": float(df), "pvalue": tail(odds, df, statistic)}
