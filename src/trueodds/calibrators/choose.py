"""Which calibrator is the simplest of the good ones? Judged on rows that its fit has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.calibrators.base import Rule, applied, taken
from trueodds.calibrators.choosing.folds import fold_of, units
from trueodds.calibrators.choosing.gain import accuracy, flips, losses, mean_and_error, mixed, mixing
from trueodds.calibrators.identity import IdentityRule
from trueodds.calibrators.likelihood.logs import Probabilities, probabilities
from trueodds.core.errors import InputError
from trueodds.core.results import strict
from trueodds.core.rng import as_generator
from trueodds.core.settings import Folds, check

Array = NDArray[Any]

# Nats per row that candidates which are the same map, as `ensemble_temperature` often is `temperature`, may differ by.
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Candidate:
    """One line of the table of candidates; every number comes from rows that the fit had not seen."""

    method: str
    parameters: str  # of the fit on all rows, in a few words
    log_loss: float  # mean, in nats, after mixing in the uniform
    brier: float
    difference: float  # mean log loss minus that of the best candidate
    se: float  # of that difference, paired by row or cluster
    chosen: bool
    label_flips: int
    accuracy_change: float

    def to_dict(self) -> dict[str, Any]:
        """The line as JSON holds it."""
        return {name: strict(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Choice:
    """The table of candidates and what follows from it."""

    candidates: tuple[Candidate, ...]  # from the simplest to the most complex
    rule: Rule  # the chosen one
    rival: Rule | None  # the best that is not the identity
    folds: int
    mixing: float  # the largest share of the uniform in any fold


def choose(
    P: Probabilities,
    Y: Array,
    w: Array,
    candidates: Sequence[Rule],
    *,
    folds: int = 5,
    cluster: Array | None = None,
    rng: int | np.random.Generator | None = 0,
) -> Choice:
    """The simplest candidate whose cross-fitted log loss is within one standard error of the best one's.

    Each candidate is fitted without one fold and scored on it, after mixing in 1/(n_fit + 1) of the uniform, so that
    an exact zero costs much but not infinitely much. Folds are stratified by (majority) label; clusters stay whole.
    The identity is always a candidate and the simplest. P, Y are (n, K), w (n,) > 0; P may be log-probabilities.
    Cost: `folds` + 1 fits of each candidate. Raises InputError TO203, TO507.

    >>> from trueodds.calibrators.temperature import TemperatureRule
    >>> P, Y = np.array([[0.1, 0.9]] * 80), np.eye(2)[[1, 1, 1, 0] * 20]
    >>> choose(P, Y, np.ones(80), [TemperatureRule()]).rule
    TemperatureRule(floor=1e-12)
    """
    rules = _ordered(candidates)
    folds = check("folds", folds, Folds, 5)
    available = units(len(P), cluster)
    if available < 2:
        raise InputError(
            "TO507",
            "Choosing a calibrator needs at least two rows (or clusters).",
            str(available),
            "Fit one by name, or get more rows.",
        )
    folds = min(int(folds), available)
    fold = fold_of(Y, folds, cluster, as_generator(rng))
    shares = [mixing(int((fold != f).sum())) for f in range(folds)]
    predicted = [_cross_fitted(rule, P, Y, w, fold, folds) for rule in rules]
    scored = [losses(_mixed_by_fold(Q, fold, shares), Y) for Q in predicted]
    best = _first_least([float(w @ log_loss / w.sum()) for log_loss, _ in scored])
    paired = [mean_and_error(log_loss - scored[best][0], w, cluster) for log_loss, _ in scored]
    # One unit leaves no standard error at all (infinite): then the identity stays.
    chosen = next(i for i, (difference, se) in enumerate(paired) if difference <= se + _EQUAL)
    stated = probabilities(P)
    table = tuple(
        Candidate(
            method=rule.name,
            parameters=rule.fit(taken(rule, P), Y, w).said(),
            log_loss=float(w @ log_loss / w.sum()),
            brier=float(w @ brier / w.sum()),
            difference=difference,
            se=se,
            chosen=i == chosen,
            label_flips=flips(stated, Q),
            accuracy_change=accuracy(Q, Y, w) - accuracy(stated, Y, w),
        )
        for i, (rule, Q, (log_loss, brier), (difference, se)) in enumerate(
            zip(rules, predicted, scored, paired, strict=True)
        )
    )
    others = [i for i, rule in enumerate(rules) if rule.name != "identity"]
    rival = rules[others[_first_least([table[i].log_loss for i in others])]] if others else None
    return Choice(table, rules[chosen], rival, folds, max(shares))


def _first_least(values: Sequence[float]) -> int:
    """The index of the least, or the first of those that equal it but for rounding."""
    return int(np.argmax(np.asarray(values) <= min(values) + _EQUAL))


def _ordered(candidates: Sequence[Rule]) -> list[Rule]:
    """The simplest first, the identity always among them."""
    given = list(candidates)
    if not any(rule.name == "identity" for rule in given):
        given.append(IdentityRule())
    return sorted(given, key=lambda rule: rule.complexity)


def _cross_fitted(rule: Rule, P: Probabilities, Y: Array, w: Array, fold: Array, folds: int) -> Array:
    Q = np.empty(P.shape)
    for f in range(folds):
        out = fold == f
        Q[out] = applied(rule, P[~out], Y[~out], w[~out], P[out])
    return Q


def _mixed_by_fold(Q: Array, fold: Array, shares: list[float]) -> Array:
    blend = np.empty(Q.shape)
    for f, share in enumerate(shares):
        blend[fold == f] = mixed(Q[fold == f], share)
    return blend
