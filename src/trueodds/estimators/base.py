"""What every estimator is: a frozen set of settings, called on a View."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Estimate
from trueodds.problem.view import View

Array = NDArray[Any]


class Linear(Protocol):
    """A statistic of one view that needs only the sums of its bins, so that draws cost bins, not rows."""

    index: Array  # (n,) the bin of each row
    size: int

    def value(self) -> float:
        """The statistic of the view itself."""
        ...

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The value from Σw (…, size), Σwp and Σwy (…, size) or (…, size, m), the leading axes broadcast."""
        ...

    def spread(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """The norm of each draw's residuals minus the observed ones; None where the error is no norm."""
        ...


@dataclass(frozen=True)
class Estimator:
    """An estimator: settings in fields, a value for a View."""

    name: ClassVar[str]
    needs_rows: ClassVar[bool] = False  # whether cells of many rows do not suffice
    lens: ClassVar[str | None] = None  # the default lens where it is not the façade's
    exempt: ClassVar[dict[str, str]] = {}  # laws of tests/laws that cannot hold for it, each with the reason

    def value(self, view: View) -> float:
        """The statistic itself."""
        raise NotImplementedError

    def linear(self, view: View) -> Linear | None:
        """The same statistic frozen to this view's bins, for estimators that have bins chosen without labels."""
        return None

    def said(self, view: View) -> dict[str, Any]:
        """The settings as they were used on this view, for the result."""
        return {}

    def notes(self, view: View) -> list[Note]:
        """Facts about this view that bear on the value."""
        return []

    def __call__(self, view: View) -> Estimate:
        return Estimate(
            self.name, view.name, self.value(view), view.n_rows, settings=self.said(view), notes=tuple(self.notes(view))
        )


@dataclass(frozen=True)
class ProperScore(Estimator):
    """A mean of one score per row, whose expectation under the predictions themselves is known."""

    def rows(self, view: View) -> Array:
        """The score of each row."""
        raise NotImplementedError

    def expected(self, view: View) -> float:
        """The mean score if every probability were right: what even a calibrated model pays."""
        raise NotImplementedError


AGGREGATES = ("mean", "max", "sum", "prevalence")


def shares(views: Sequence[View], aggregate: str) -> Array:
    """The weight of each view in a sum over views; for `max` all are 1."""
    _known(aggregate)
    if aggregate == "mean":
        return np.full(len(views), 1 / len(views))
    if aggregate == "prevalence":
        seen = np.array([float((view.w * view.y).sum()) for view in views])
        return seen / seen.sum() if seen.sum() > 0 else np.full(len(views), np.nan)  # nothing came: no weights exist
    return np.ones(len(views))


def _known(aggregate: str) -> None:
    if aggregate not in AGGREGATES:
        raise InputError(
            "TO203", "aggregate is one of mean, max, sum, prevalence.", repr(aggregate), "Leave it out for the mean."
        )


def combine(values: Array, shares: Array, aggregate: str) -> Array:
    """Values of several views (views, …) as one number along the first axis."""
    if aggregate == "max":
        return np.asarray(values.max(axis=0))
    return np.tensordot(shares, values, axes=1)


def measured(estimator: Estimator, views: Sequence[View], aggregate: str = "mean") -> tuple[float, Mapping[str, float]]:
    """The value over all views of a lens, and its parts by view where there are several."""
    _known(aggregate)
    values = np.array([estimator.value(view) for view in views])
    if len(views) == 1:
        return float(values[0]), {}
    parts = {view.name: float(value) for view, value in zip(views, values, strict=True)}
    return float(combine(values, shares(views, aggregate), aggregate)), parts
