"""One-vs-rest calibration: fit a curve for each class from its sorted scores, and normalize the rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from trueodds.calibrators import saved_parameters
from trueodds.calibrators._glm.fit_data import FitData, apply_in_blocks
from trueodds.calibrators._glm.log_probabilities import Probabilities, log_pair, probabilities
from trueodds.calibrators._glm.row_sums import RowSums
from trueodds.calibrators.base import CalibrationMap
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.weights import are_counts
from trueodds.kernels import in_blocks, sort
from trueodds.kernels.sort import map_sorted_keys
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
        return apply_in_blocks(partial(apply_one_vs_rest, self.curves), P)

    def to_dict(self) -> dict[str, Any]:
        """The parameters of every curve."""
        return {"curves": [curve.to_dict() for curve in self.curves]}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> OneVsRest:
        """As many curves as K classes need."""
        saved_parameters.check_keys(parameters, ("curves",), "parameters")
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
    """The same from passes over rows `FitData`, which the classes share: `fit` gets passes over `OneVsRestRows`."""
    which = [1] if data.facts.k == 2 else range(data.facts.k)
    return tuple(data.side_by_side([partial(_of_class, fit=fit, c=c) for c in which]))


def _of_class(data: RowSums, fit: Callable[[RowSums], Any], c: int) -> Any:
    return fit(data.prepared(partial(_score, c=c)))


class OneVsRestRows(NamedTuple):
    """One class against the rest."""

    logs: Array  # (n, 2) the floored logarithms of the other classes together and of its own
    x: Array  # (n,) its probabilities
    y: Array  # (n,) its shares
    w: Array


def _score(data: FitData, c: int) -> OneVsRestRows:
    return OneVsRestRows(log_pair(data.P, c, data.min_prob), probabilities(data.P)[:, c], data.Y[:, c], data.w)


def effective_rows(w: Array) -> tuple[float, Array]:
    """For how many rows weights w > 0 stand, and the weights with that sum; what is no count is scaled.

    >>> import numpy as np
    >>> effective_rows(np.array([0.5, 0.25])), as_rows(np.array([2.0, 1.0]))
    ((2.0, array([1.33333333, 0.66666667])), (3.0, array([2., 1.])))
    """
    total = float(w.sum())
    if are_counts(w):
        return total, w
    return float(len(w)), w * (len(w) / total)


def zero_probability_notes(Q: Array) -> list[Note]:
    """Recalibrated probabilities of exactly 0: if that class comes, the log loss is infinite."""
    return _zeros(int((Q == 0).any(axis=1).sum()), f"of the {len(Q):,} rows it was fitted on")


def zero_probability_notes_of_cells(curves: Sequence[Curve], views: Sequence[View]) -> list[Note]:
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


T = TypeVar("T")


def map_classes(
    P: Array, Y: Array, w: Array, of_keys: Callable[[Array], T], of_rows: Callable[[Array, Array, Array], T]
) -> tuple[T, ...]:
    """What is made of the second of two classes, or of every class, from the rows that have weight.

    `of_keys(keys)` of sorted keys (see `core.kernels.sort`) where every row weighs 1 and came or did not;
    else `of_rows(x, y, w)`. Y is (n, K) shares, or class numbers (n,).
    """
    if not w.all():
        live = w > 0
        P, Y, w = P[live], Y[live], w[live]
    classes = range(1, 2) if P.shape[1] == 2 else range(P.shape[1])
    results = map_sorted_keys(P, Y, of_keys, classes) if (w == 1).all() else None
    if results is None:

        def work(start: int, stop: int) -> list[T]:
            some = classes[start:stop]
            return [of_rows(P[:, c], (Y == c).astype(np.float64) if Y.ndim == 1 else Y[:, c], w) for c in some]

        results = [one for some in in_blocks(work, len(classes), 1) for one in some]
    return tuple(results)


def fit_curves_from_counts(P: Array, Y: Array, w: Array, made: Callable[[Array, Array, Array], T]) -> tuple[T, ...]:
    """What `made(s, mass, came)` makes of them, from the rising distinct scores s, and Σw and Σwy at each."""

    def of_rows(x: Array, y: Array, w: Array) -> T:
        return made(*sort.sum_by_score(x, y, w, sort.argsort_scores(x)))

    return map_classes(P, Y, w, lambda keys: made(*sort.count_by_score(keys)), of_rows)


def apply_one_vs_rest(curves: Sequence[Callable[[Array], Array]], P: Probabilities) -> Array:
    """Each class's own curve (of the second of two), made to sum to 1; a row whose every curve is 0 becomes uniform.

    A curve that takes logarithms gets those of both sides, so that neither loses digits.
    """
    if len(curves) == 1:
        return _apply_to_pair(curves[0], P, 1)
    raw = np.stack(
        [_apply_to_class(curve, P, c) for c, curve in enumerate(curves)]
    )  # by class, so that sums run along the rows
    total = raw.sum(axis=0)
    if not total.all():
        raw[:, total == 0], total[total == 0] = 1.0, len(raw)
    raw /= total
    return raw.T


def _apply_to_pair(curve: Any, P: Probabilities, c: int) -> Array:
    """What a curve makes of the other classes together and of class c, (n, 2)."""
    if getattr(curve, "takes_logs", False):
        return np.asarray(curve.of_logs(log_pair(P, c)))
    q = curve(probabilities(P)[:, c])
    return np.stack([1 - q, q], axis=1)


def _apply_to_class(curve: Any, P: Probabilities, c: int) -> Array:
    """What a curve makes of class c, (n,)."""
    return (
        _apply_to_pair(curve, P, c)[:, 1]
        if getattr(curve, "takes_logs", False)
        else np.asarray(curve(probabilities(P)[:, c]))
    )


def sums_by_log_odds(x: Array, y: Array, w: Array) -> tuple[Array, Array, Array]:
    """The rising distinct log odds x of rows that have weight, and Σw and Σwy at each, as `ByScore.sums` has them."""
    order = np.argsort(x, kind="stable")
    order = order[w[order] > 0]
    x, w, wy = x[order], w[order], w[order] * y[order]
    first = np.flatnonzero(np.diff(x, prepend=-np.inf) > 0) if len(x) else np.zeros(0, dtype=np.intp)
    return x[first], np.add.reduceat(w, first), np.add.reduceat(wy, first)
