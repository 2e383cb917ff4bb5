"""Base classes of estimators, and the aggregation of values over several views."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np

from trueodds.binning.selections import Selections
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.results import Estimate
from trueodds.core.settings import OneOf, Settings
from trueodds.core.typing import Array
from trueodds.lenses.view import View


class Linear(Protocol):
    """A statistic of one view that needs only the sums of its cells, so that draws cost cells, not rows.

    The cells are fixed without the labels: bins, groups of equal or neighbouring scores, or single rows. Where drawn
    labels are read faster as they are, it may have `of_labels`: a function of their numbers (n, draws), or None.
    """

    @property
    def size(self) -> int:
        """How many cells."""
        ...

    @property
    def index(self) -> Array:
        """The cell of each row, (n,)."""
        ...

    def value(self) -> float:
        """The statistic of the view itself."""
        ...

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The value from Σw (…, size), Σwp and Σwy (…, size) or (…, size, m), the leading axes broadcast."""
        ...

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """The norm of each draw's residuals minus the observed ones; None where the error is no norm."""
        ...


@dataclass(frozen=True)
class Estimator(Settings):
    """An estimator: settings in fields, a value for a View."""

    name: ClassVar[str]
    needs_rows: ClassVar[bool] = False  # whether cells of many rows do not suffice
    lens: ClassVar[str | None] = None  # the default lens where it is not the façade's
    interval: ClassVar[str | None] = None  # what interval="auto" stands for; see inference/intervals.py
    power: ClassVar[float] = 1.0  # 2 for an error that is the square of a norm: its interval is made on the root
    smooth: ClassVar[bool] = True  # far from 0 it behaves like a mean, so that its interval may be as short
    redraws: ClassVar[str] = "labels"  # "votes": the noise floor redraws each row's votes from its probabilities
    clusters: ClassVar[bool] = True  # whether the rows may come in clusters
    averages: ClassVar[bool] = True  # whether the values of several views make one number
    best_value: ClassVar[float] = 0.0  # the value of a perfect model, for scorers
    lower_bound: ClassVar[float] = -math.inf  # no value lies below it, whatever the settings
    upper_bound: ClassVar[float] = math.inf  # no true error lies above it, whatever the settings
    exempt: ClassVar[dict[str, str]] = {}  # laws of tests/laws that cannot hold for it, each with the reason

    @property
    def max_value(self) -> float:
        """The largest value there is, beyond which no interval reaches."""
        return self.upper_bound

    def value(self, view: View) -> float:
        """The statistic itself."""
        raise NotImplementedError

    def values(self, views: Sequence[View]) -> Array:
        """The statistic of several views, where all at once may cost less than each by itself."""
        return np.array([self.value(view) for view in views])

    def evaluate_selections(self, of: Selections) -> Array:
        """The statistic of every selection of rows, where all at once may cost less than each by itself.

        It gives what `value` gives, one by one; who inherits a short cut and changes `value` changes this too.
        """
        return np.array([self.value(view) for view in of.views()])

    def linear(self, view: View) -> Linear | None:
        """The same statistic on cells fixed without the labels; None where draws need the rows."""
        return None

    def stand_in(self) -> Estimator:
        """The estimator of the same truth whose interval is shown: itself, unless a plug-in's covers better."""
        return self

    def plug_in(self, view: View) -> float:
        """For a debiased statistic, the value of its plug-in, around which its resamples scatter."""
        return self.value(view)

    def noise_share(self, view: View, noise_floor: float) -> float:
        """What part of its noise floor chance adds to the value, where the outcomes vary less than the model says."""
        return 1.0

    def as_loss(self, values: Any) -> Any:
        """How bad values are, greater being worse: the distance from the best where that is not the least."""
        return np.abs(values - self.best_value) if self.best_value else values

    def expected(self, view: View) -> float | None:
        """The mean statistic if every probability were right, where it is known without draws."""
        return None

    def resampled(self, views: Sequence[View], resamples: int, rng: np.random.Generator) -> tuple[Array, str] | None:
        """Resamples of each view (views, draws) by units of the estimator's own, and their name; None: by rows."""
        return None

    def parts(self, view: View) -> dict[str, float]:
        """Named numbers that belong to the value, such as the terms of a decomposition."""
        return {}

    def settings_used(self, view: View) -> dict[str, Any]:
        """The settings as they were used on this view, for the result."""
        return {}

    def notes(self, view: View) -> list[Note]:
        """Facts about this view that bear on the value."""
        return []

    def joint_notes(self, views: Sequence[View]) -> list[Note]:
        """Facts about several views told once; what each has to say alone would fill a page for a thousand classes."""
        return []

    def __call__(self, view: View) -> Estimate:
        return Estimate(
            self.name, view.name, self.value(view), view.n_rows, parts=self.parts(view),
            settings=self.settings_used(view), notes=tuple(self.notes(view)),
        )  # fmt: skip


@dataclass(frozen=True)
class Mean(Estimator):
    """A weighted mean of one number per row."""

    interval: ClassVar[str | None] = "bca"
    needs_rows: ClassVar[bool] = True

    def rows(self, view: View) -> Array:
        """The number of each row."""
        raise NotImplementedError

    def value(self, view: View) -> float:
        """The weighted mean."""
        mask = view.w > 0
        return float(view.w[mask] @ self.rows(view)[mask] / view.total) if mask.any() else math.nan


@dataclass(frozen=True)
class ProperScore(Mean):
    """A mean of one score per row, whose expectation under the predictions themselves is known."""

    needs_rows: ClassVar[bool] = False

    def expected(self, view: View) -> float:
        """The mean score if every probability were right: what even a calibrated model pays."""
        raise NotImplementedError


def one_score(view: View, name: str) -> None:
    """Refuse a joint view where the estimator reads one score per row."""
    if view.joint:
        raise InputError(
            "TO205",
            f"{name} reads one score per row, and the lens {view.name} has a vector per row.",
            f"{name} through {view.name}",
            "Use a lens such as confidence, classwise or class:NAME.",
        )


def single_rows(view: View, name: str) -> None:
    """Refuse cells of many rows where the estimator needs each row."""
    if not view.is_rows:
        raise InputError(
            "TO205",
            f"{name} needs single rows; cells hold only their sums.",
            f"{len(view.w):,} cells of {view.n_rows:,} rows",
            "Measure it from rows.",
        )


AGGREGATES = ("mean", "max", "sum", "prevalence", "weight")
Aggregate = Annotated[str, OneOf(AGGREGATES)]


def shares(views: Sequence[View], aggregate: str) -> Array:
    """The weight of each view in a sum over views; for `max` all are 1."""
    _known(aggregate)
    if aggregate == "mean":
        return np.full(len(views), 1 / len(views))
    if aggregate == "prevalence":
        event_weights = np.array([float((view.w * view.y).sum()) for view in views])
        return (
            event_weights / event_weights.sum() if event_weights.sum() > 0 else np.full(len(views), np.nan)
        )  # nothing came: no weights exist
    if aggregate == "weight":
        totals = np.array([view.total for view in views])
        return totals / totals.sum()
    return np.ones(len(views))


def _known(aggregate: str) -> None:
    if aggregate not in AGGREGATES:
        raise InputError(
            "TO203",
            "aggregate is one of mean, max, sum, prevalence, weight.",
            describe(aggregate),
            "Leave it out for the mean.",
        )


def combine(values: Array, shares: Array, aggregate: str) -> Array:
    """Values of several views (views, …) as one number along the first axis."""
    if aggregate == "max":
        return np.asarray(values.max(axis=0))
    if not shares.all():  # a view that counts for nothing may have no number
        shares, values = shares[shares != 0], values[shares != 0]
    return np.tensordot(shares, values, axes=1)


def measured(estimator: Estimator, views: Sequence[View], aggregate: str = "mean") -> tuple[float, Mapping[str, float]]:
    """The value over all views of a lens, and its parts by view where there are several."""
    _known(aggregate)
    values = estimator.values(views)
    if len(views) == 1:
        return float(values[0]), {}
    parts = {view.name: float(value) for view, value in zip(views, values, strict=True)}
    return float(combine(values, shares(views, aggregate), aggregate)), parts
