"""Which calibrator is the simplest of the good ones? Judged on rows that its fit has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from trueodds.calibrators.base import CalibratorSpec, input_for
from trueodds.calibrators.choosing.crossed import Inner, Rows, simplest
from trueodds.calibrators.choosing.folds import fold_of, units
from trueodds.calibrators.choosing.gain import accuracy, flips, losses
from trueodds.calibrators.identity import IdentitySpec
from trueodds.calibrators.likelihood.logs import Probabilities, probabilities
from trueodds.core.errors import InputError
from trueodds.core.results import strict
from trueodds.core.rng import as_generator
from trueodds.core.settings import Folds, check
from trueodds.core.typing import Array


@dataclass(frozen=True, slots=True)
class Candidate:
    """One line of the table of candidates; every number comes from rows that the fit had not seen."""

    method: str
    parameters: str | None  # of the fit on all rows, in a few words; None where it was dropped early
    log_loss: float  # mean, in nats, after mixing in the uniform
    brier: float | None
    difference: float  # mean log loss minus that of the best candidate
    se: float  # of that difference, paired by row or cluster
    chosen: bool
    label_flips: int | None
    accuracy_change: float | None

    def to_dict(self) -> dict[str, Any]:
        """The line as JSON holds it."""
        return {name: strict(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Choice:
    """The table of candidates and what follows from it."""

    candidates: tuple[Candidate, ...]  # from the simplest to the most complex
    spec: CalibratorSpec  # the chosen one
    folds: int
    mixing: float  # the largest share of the uniform in any fold

    def of(self, spec: CalibratorSpec) -> Choice:
        """The same with another candidate as the chosen one."""
        table = (replace(candidate, chosen=candidate.method == spec.name) for candidate in self.candidates)
        return replace(self, candidates=tuple(table), spec=spec)


def choose(
    P: Probabilities,
    Y: Array,
    w: Array,
    candidates: Sequence[CalibratorSpec],
    *,
    folds: int = 5,
    cluster: Array | None = None,
    rng: int | np.random.Generator | None = 0,
) -> Choice:
    """The simplest candidate whose cross-fitted log loss is within one standard error of the best one's, and half its gain.

    Each candidate is fitted without one fold and scored on it, after mixing in 1/(n_fit + 1) of the uniform, so that
    an exact zero costs much but not infinitely much. Folds are stratified by the most probable class; clusters stay whole.
    The identity is always a candidate, and chosen only where none is better: whether a gain is more than luck is for
    the confirmation to say. P, Y are (n, K), w (n,) > 0; P may be log-probabilities.
    Cost: `folds` + 1 fits of each candidate. Raises InputError TO203, TO507.

    >>> from trueodds.calibrators.temperature import TemperatureSpec
    >>> P, Y = np.array([[0.1, 0.9]] * 80), np.eye(2)[[1, 1, 1, 0] * 20]
    >>> choose(P, Y, np.ones(80), [TemperatureSpec()]).spec
    TemperatureSpec(min_prob=1e-12)
    """
    rows = folded(P, Y, w, folds, cluster, as_generator(rng))
    specs = ordered(candidates)
    return chosen(rows, specs, [rows.crossed(spec) for spec in specs])


def folded(P: Probabilities, Y: Array, w: Array, folds: int, cluster: Array | None, rng: np.random.Generator) -> Rows:
    """The rows with as many folds as asked for, or as there are units.

    They are stratified by the most probable class, not by the label: folds with equal shares of each label agree on how
    far these shares are from those predicted, so that what a map learned of chance in four is found in the fifth.
    """
    folds = check("folds", folds, Folds, 5)
    available = units(len(P), cluster)
    if available < 2:
        raise InputError(
            "TO507",
            "Choosing a calibrator needs at least two rows (or clusters).",
            str(available),
            "Fit one by name, or get more rows.",
        )
    fold = fold_of(probabilities(P), min(int(folds), available), cluster, rng)
    return Rows(P, Y, w, fold, cluster)


def chosen(
    rows: Rows, specs: Sequence[CalibratorSpec], crossed: Sequence[Array | None], inner: Inner | None = None
) -> Choice:
    """The choice by the logarithms of cross-fitted probabilities; a candidate without any was dropped before."""
    cross_fitted = {i: logs for i, logs in enumerate(crossed) if logs is not None}
    scored = {i: losses(np.exp(logs), rows.Y) for i, logs in cross_fitted.items()}
    lowest, distances = rows.compared(np.stack([log_loss for log_loss, _ in scored.values()]))
    distance_of, order = dict(zip(cross_fitted, distances, strict=True)), list(cross_fitted)
    which = order[simplest([specs[i] for i in order], distances)]
    stated = probabilities(rows.P)
    table = []
    for i, spec in enumerate(specs):
        if i not in cross_fitted:
            assert inner is not None
            table.append(_dropped(rows, spec, inner, i, order[lowest]))
            continue
        log_loss, brier = scored[i]
        table.append(
            Candidate(
                method=spec.name,
                parameters=spec.fit(input_for(spec, rows.P), rows.Y, rows.w).describe(),
                log_loss=float(rows.w @ log_loss / rows.w.sum()),
                brier=float(rows.w @ brier / rows.w.sum()),
                difference=distance_of[i][0],
                se=distance_of[i][1],
                chosen=i == which,
                label_flips=flips(stated, cross_fitted[i]),
                accuracy_change=accuracy(cross_fitted[i], rows.Y, rows.w) - accuracy(stated, rows.Y, rows.w),
            )
        )
    return Choice(tuple(table), specs[which], rows.folds, float(rows.shares().max()))


def _dropped(rows: Rows, spec: CalibratorSpec, inner: Inner, i: int, lowest: int) -> Candidate:
    """The line of a candidate of which only the fits without two folds are known."""
    _, (_, distance) = rows.compared(inner.losses[[lowest, i]])
    return Candidate(
        method=spec.name,
        parameters=None,
        log_loss=float(rows.w @ inner.losses[i] / rows.w.sum()),
        brier=None,
        difference=distance[0],
        se=distance[1],
        chosen=False,
        label_flips=None,
        accuracy_change=None,
    )


def ordered(candidates: Sequence[CalibratorSpec]) -> list[CalibratorSpec]:
    """The simplest first, the identity always among them."""
    specs = list(candidates)
    if not any(spec.name == "identity" for spec in specs):
        specs.append(IdentitySpec())
    return sorted(specs, key=lambda spec: spec.complexity)
