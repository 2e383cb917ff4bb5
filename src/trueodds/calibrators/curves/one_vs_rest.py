"""How does a map for one probability become a map for a whole row?"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

from trueodds.calibrators import wire
from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.curves.by_score import in_row_blocks, one_against_the_rest
from trueodds.calibrators.likelihood.fit_data import FitData
from trueodds.calibrators.likelihood.logs import Probabilities, log_pair, probabilities
from trueodds.calibrators.likelihood.row_sums import RowSums
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.weights import are_counts
from trueodds.lenses.view import View


class Curve(Protocol):
    """From one class's stated probability to its recalibrated one, value by value."""

    def __call__(self, x: Array) -> Array: ...

    def to_dict(self) -> dict[str, Any]:
        """The parameters."""
        ...


@dataclass(frozen=True, eq=False)
class OneVsRest(CalibrationMap):
    """Two classes: the curve q of the second, and 1 − q. More: a curve per class, then each row over its sum.

    A row whose every curve is 0 becomes uniform.
    """

    curves: tuple[Any, ...]  # of Curve; one for two classes, else one per class
    curve: ClassVar[Callable[[Mapping[str, Any]], Curve]]

    def apply(self, P: Probabilities) -> Array:
        """The curves' values, made to sum to 1."""
        return in_row_blocks(partial(one_against_the_rest, self.curves), P)

    def to_dict(self) -> dict[str, Any]:
        """The parameters of every curve."""
        return {"curves": [curve.to_dict() for curve in self.curves]}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> OneVsRest:
        """As many curves as K classes need."""
        wire.keys(parameters, ("curves",), "parameters")
        curves, n_curves = parameters["curves"], 1 if k == 2 else k
        if not isinstance(curves, list) or len(curves) != n_curves or not all(isinstance(c, dict) for c in curves):
            size = len(curves) if isinstance(curves, list) else type(curves).__name__
            raise InputError(
                "TO505",
                f"A saved calibrator by class must have {n_curves} {'curve' if n_curves == 1 else 'curves'} for {k} classes.",
                str(size),
                "Fit it again and save it with .save(path).",
            )
        return cls(tuple(cls.curve(saved) for saved in curves))

    @abstractmethod
    def describe(self) -> str:
        """The curves in a few words."""


def fit_curves(fit: Callable[[Array, Array, Array], Any], P: Array, Y: Array, w: Array) -> tuple[Any, ...]:
    """The curves of `fit(x, y, w)` for the classes that need one, on the rows that have weight."""
    if (w == 0).any():
        P, Y, w = P[w > 0], Y[w > 0], w[w > 0]
    which = [1] if P.shape[1] == 2 else range(P.shape[1])
    return tuple(fit(P[:, c], Y[:, c], w) for c in which)


def fit_curves_of_logs(
    fit: Callable[[Array, Array, Array], Any], P: Probabilities, Y: Array, w: Array, min_prob: float
) -> tuple[Any, ...]:
    """The same for curves of logarithms: `fit(logs, y, w)` gets those of the other classes and of its own, (n, 2)."""
    if (w == 0).any():
        P, Y, w = P[w > 0], Y[w > 0], w[w > 0]
    which = [1] if P.shape[1] == 2 else range(P.shape[1])
    return tuple(fit(log_pair(P, c, min_prob), Y[:, c], w) for c in which)


def fit_curves_from_sums(fit: Callable[[RowSums], Any], data: RowSums) -> tuple[Any, ...]:
    """The same from passes over rows `FitData`, which the classes share: `fit` gets passes over `Score`."""
    which = [1] if data.facts.k == 2 else range(data.facts.k)
    return tuple(data.side_by_side([partial(_of_class, fit=fit, c=c) for c in which]))


def _of_class(data: RowSums, fit: Callable[[RowSums], Any], c: int) -> Any:
    return fit(data.prepared(partial(_score, c=c)))


class Score(NamedTuple):
    """One class against the rest."""

    logs: Array  # (n, 2) the floored logarithms of the other classes together and of its own
    x: Array  # (n,) its probabilities
    y: Array  # (n,) its shares
    w: Array


def _score(data: FitData, c: int) -> Score:
    return Score(log_pair(data.P, c, data.min_prob), probabilities(data.P)[:, c], data.Y[:, c], data.w)


def as_rows(w: Array) -> tuple[float, Array]:
    """For how many rows weights w > 0 stand, and the weights with that sum; what is no count is scaled.

    >>> import numpy as np
    >>> as_rows(np.array([0.5, 0.25])), as_rows(np.array([2.0, 1.0]))
    ((2.0, array([1.33333333, 0.66666667])), (3.0, array([2., 1.])))
    """
    total = float(w.sum())
    if are_counts(w):
        return total, w
    return float(len(w)), w * (len(w) / total)


def exact_zeros(Q: Array) -> list[Note]:
    """Recalibrated probabilities of exactly 0: if that class comes, the log loss is infinite."""
    return _zeros(int((Q == 0).any(axis=1).sum()), f"of the {len(Q):,} rows it was fitted on")


def zeros_in_cells(curves: Sequence[Curve], views: Sequence[View]) -> list[Note]:
    """The same for curves that were fitted to cells, where other classes' scores are not known."""
    predicted = [curve(view.p) for curve, view in zip(curves, views, strict=True)]
    lost = [(q == 0) | (q == 1) if len(views) == 1 else q == 0 for q in predicted]
    rows = max(int(view.n[none].sum()) for view, none in zip(views, lost, strict=True))
    more = "" if len(views) == 1 else " or more"
    return _zeros(rows, f"{more} of the {int(views[0].n.sum()):,} rows it was fitted on".strip())


def _zeros(rows: int, of: str) -> list[Note]:
    if rows == 0:
        return []
    text = (
        f"The map gives probability 0 to some class in {rows:,} {of}; should that class come, the log loss is infinite."
    )
    return [Note("TN505", text)]
