"""Base classes of estimators, statistics of cells, and the aggregation of an estimate over the views of a lens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.sorted_scores import RowSelections
from trueodds.core.arithmetic import divide_or_zero, weighted_sum
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.results import Coefficient, Estimate
from trueodds.core.settings import OneOf, Settings
from trueodds.core.signatures import checks_method_call
from trueodds.core.typing import Array
from trueodds.lenses.view import View, count_views


class CellStatistic:
    """A statistic of one view that depends only on sums per cell, so that draws cost O(cells) instead of O(rows).

    The cells do not depend on the labels: bins, groups of neighboring scores, or single rows. Draws are null draws of
    the labels, or resamples of the rows.
    """

    # Whether it is the mean total variation distance of joint cells, for which resampling has a faster algorithm.
    is_mean_total_variation: bool = False
    is_refitted: bool = False  # whether every row is a cell, and each draw a fit of all of them

    @cached_property
    def size(self) -> int:
        """Number of cells, `size` in the shapes below."""
        raise NotImplementedError

    @cached_property
    def index(self) -> Array:
        """The cell of each row, (n,)."""
        raise NotImplementedError

    def value(self) -> float:
        """The statistic of the observed outcomes of the view."""
        raise NotImplementedError

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The value from Σw (…, size), and Σwp and Σwy (…, size) or (…, size, m), with broadcast leading axes."""
        raise NotImplementedError

    @property
    def statistic_from_labels(self) -> Callable[[Array], Array] | None:
        """A faster function of drawn label numbers (n, draws), if there is one."""
        return None

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """Norm (draws,) of the residuals of each draw minus the observed residuals; None if the error is not a norm.

        `draws` are Σw, Σwp and Σwy of the draws. The other arguments are those of the view.
        """
        return None


BinStatistic = Callable[[Array, Array, Array, Array], Array]  # from four sums by bin, each (…, bins), to (…)


class BinCells(CellStatistic):
    """Cell statistic whose cells are bins, for a function of Σw, Σwp, Σwy and Σw² by bin.

    `bin_statistic` is evaluated for many draws of the outcomes from sums by bin.
    """

    def __init__(self, view: View, partition: Partition, bin_statistic: BinStatistic) -> None:
        self.bin_statistic = bin_statistic
        self.view, self.fitted_bins = view, view.cached(partition, lambda: partition.fit(view))
        self.size = self.fitted_bins.size
        binned = view.binned(self.fitted_bins)
        sums = np.zeros((4, self.size))
        sums[:, binned.bin_index] = binned.w, binned.w * binned.p, binned.w * binned.y, binned.sums("ww")
        w, _, _, ww = self.sums = tuple(sums)
        self.row_weight = divide_or_zero(ww, w)  # in a draw a bin's Σw² is this multiple of its Σw

    @cached_property
    def index(self) -> Array:
        return self.view.assign(self.fitted_bins)

    def value(self) -> float:
        return float(self.bin_statistic(*self.sums))

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        return self.bin_statistic(w, wp, wy, w * self.row_weight)


@dataclass(frozen=True)
class Estimator(Settings):
    """Base class of estimators: its fields are the settings, and `value` computes the estimate for a View."""

    name: ClassVar[str]
    needs_rows: ClassVar[bool] = False  # whether cells of many rows do not suffice
    lens: ClassVar[str | None] = None  # default lens, if not the general default
    lens_of_several_classes: ClassVar[str | None] = None  # the same for more than two classes only
    interval: ClassVar[str | None] = None  # what interval="auto" stands for; see resampling/intervals/method.py
    norm_power: ClassVar[float] = 1.0  # 2 for an error that is the square of a norm: its interval is made on the root
    # Whether the bootstrap distribution is near normal away from 0, which allows the shorter interval (see
    # resampling/intervals/residual_norm.py).
    is_smooth: ClassVar[bool] = True
    null_draws_of: ClassVar[str] = "labels"  # "votes": the noise floor redraws each row's votes from its probabilities
    supports_clusters: ClassVar[bool] = True  # whether the rows may come in clusters
    is_averageable: ClassVar[bool] = True  # whether the values of several views make one number
    vanishes_if_calibrated: ClassVar[bool] = True  # whether the true value of every calibrated model is 0
    is_score: ClassVar[bool] = False  # whether texts call it a score, whose value is not 0 for a calibrated model
    is_unbiased: ClassVar[bool] = False  # whether noise adds nothing to the value, so that its floor is no bias
    quantity: ClassVar[str] = ""  # what captions call it if it has no bins and the name does not say what it measures
    # Words for values below and above the best one, of numbers that do not describe the level of the predictions.
    directions: ClassVar[tuple[str, str] | None] = None
    group_scale: ClassVar[str | None] = None  # "identity" or "log": on which the values of groups are averaged
    setting_in_name: ClassVar[str] = ""  # the setting that may follow the name, as in "risk@0.8"
    # Whether `expected_if_calibrated` also holds for clusters and for cells, so that no labels are drawn for it.
    has_fixed_expectation: ClassVar[bool] = False
    best_value: ClassVar[float] = 0.0  # the value of a perfect model, for scorers
    lower_bound: ClassVar[float] = -math.inf  # no value lies below it, whatever the settings
    upper_bound: ClassVar[float] = math.inf  # no true error lies above it, whatever the settings
    is_bounded_by_mean_gap: ClassVar[bool] = False  # whether no error is below |mean outcome − mean prediction|
    exemptions: ClassVar[dict[str, str]] = {}  # properties tested in tests/laws that it lacks, each with the reason

    @property
    def max_value(self) -> float:
        """Largest possible value, which limits intervals."""
        return self.upper_bound

    @property
    def is_in_probability_units(self) -> bool:
        """Whether the value is an error in probability units, which is 0 for a calibrated model."""
        return self.norm_power == 1 and self.best_value == 0 and self.vanishes_if_calibrated

    def prepare(self, rows: Any) -> tuple[Estimator, Any]:
        """Return the estimator and the rows that are evaluated: these, unless it measures recalibrated predictions."""
        return self, rows

    def value(self, view: View) -> float:
        """Compute the estimate for one view."""
        raise NotImplementedError

    def values(self, views: Sequence[View]) -> Array:
        """The estimates for several views, vectorized if possible."""
        return np.array([self.value(view) for view in views])

    def evaluate_selections(self, selections: RowSelections) -> Array:
        """The estimates for all selections of rows, vectorized if possible.

        The result equals `value` of each selection. A class that inherits a vectorized version, such as that of binned
        errors, and overrides `value` must override this method too.
        """
        return np.array([self.value(view) for view in selections.views()])

    def cell_statistic(self, view: View) -> CellStatistic | None:
        """The estimate as a function of sums over cells that do not depend on the labels; None if rows are needed."""
        return None

    def supports_interval(self, view: View) -> bool:
        """Whether the default interval has its nominal coverage for this view; if not, `interval="auto"` gives none."""
        return True

    def exact_limits(self, view: View, n: float, level: float) -> tuple[float, float] | None:
        """Limits of the default interval from n rows or clusters, where resampling cannot vary; None elsewhere."""
        return None

    def interval_estimator(self) -> Estimator:
        """Return the estimator whose interval is reported: itself, unless a plug-in estimate has better coverage."""
        return self

    def plug_in_value(self, view: View) -> float:
        """For a debiased statistic, the plug-in value on which bootstrap replicates are centered."""
        return self.value(view)

    def mean_gap_share(self, view: View) -> float:
        """Largest known c such that the error is at least c · |mean outcome − mean prediction|; 0 if there is none."""
        return float(self.is_bounded_by_mean_gap)

    def noise_fraction(self, view: View, noise_floor: float) -> float:
        """Fraction of the noise floor that is included in the value if the outcomes vary less than predicted."""
        return 1.0

    def as_loss(self, values: Any) -> Any:
        """Loss form of `values` (larger is worse): distance from `best_value` if the optimum is not the minimum."""
        return np.abs(values - self.best_value) if self.best_value else values

    @property
    def best_value_setting(self) -> dict[str, float]:
        """The setting `best_value` of results if values below it are errors too, else nothing."""
        two_sided = self.as_loss(self.best_value - 1.0) > self.as_loss(self.best_value)
        return {"best_value": self.best_value} if two_sided else {}

    @property
    def has_target(self) -> bool:
        """Whether deviations from `best_value` in both directions are errors."""
        return bool(self.best_value_setting) and self.best_value < self.upper_bound

    def expected_if_calibrated(self, view: View) -> float | None:
        """Expected value of a calibrated model, if known without draws."""
        return None

    def null_standard_error(self, view: View) -> float | None:
        """Standard deviation of the value of a calibrated model with independent rows, if known without draws."""
        return None

    def resample_units(
        self, views: Sequence[View], resamples: int, rng: np.random.Generator
    ) -> tuple[Array, str] | None:
        """Resampled values of each view (views, draws), and the name of the units that were drawn; None for rows."""
        return None

    def group_effect(self, view: View, cluster: Array | None, overall: float) -> Coefficient:
        """Return the value of a group on the scale `group_scale` with its standard error; NaN with too few events.

        `overall` is the value of all groups together. A standard error or an omission that depended on the outcomes of
        the group alone would give groups with many events more weight.
        """
        raise NotImplementedError

    def parts(self, view: View) -> dict[str, float]:
        """Named components of the value, such as the terms of a decomposition."""
        return {}

    def settings_used(self, view: View) -> dict[str, Any]:
        """The settings used for this view, for the result."""
        return {}

    def notes(self, view: View) -> list[Note]:
        """Notes on properties of this view that affect the value."""
        return []

    def joint_notes(self, views: Sequence[View]) -> list[Note]:
        """Notes that summarize several views: one per code, with the text of the first view that has it."""
        first_notes: dict[str, tuple[str, Note]] = {}
        counts: Counter[str] = Counter()
        for view in views:
            for note in self.notes(view):
                first_notes.setdefault(note.code, (view.name, note))
                counts[note.code] += 1
        return [
            Note(code, f"In {counts[code]} of {count_views(views)}, first in {name}: " + note.text)
            for code, (name, note) in first_notes.items()
        ]

    @checks_method_call
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

    def row_scores(self, view: View) -> Array:
        """Value of each row, (n,)."""
        raise NotImplementedError

    def value(self, view: View) -> float:
        """The weighted mean of `row_scores` over rows of positive weight; NaN without such rows."""
        mask = view.w > 0
        return float(weighted_sum(view.w[mask], self.row_scores(view)[mask]) / view.total) if mask.any() else math.nan


@dataclass(frozen=True)
class WaldEstimator(Estimator):
    """An estimator of one view with a standard error in closed form, from which its interval is computed."""

    interval: ClassVar[str | None] = "wald"
    group_scale: ClassVar[str | None] = "identity"

    def group_effect(self, view: View, cluster: Array | None, overall: float) -> Coefficient:
        return self.coefficient(view, cluster)

    def coefficient(self, view: View, cluster: Array | None = None) -> Coefficient:
        """Return the estimate with its standard error; `cluster` (n,) labels rows that are not independent."""
        raise NotImplementedError

    def influence(self, view: View) -> Array:
        """Return the influence (n,) of each row on the estimate, for the covariance of two estimates."""
        raise NotImplementedError


@dataclass(frozen=True)
class ProperScore(Mean):
    """Base class of proper scores: a mean of one score per row with a known expectation under the predictions."""

    needs_rows: ClassVar[bool] = False
    vanishes_if_calibrated: ClassVar[bool] = False
    is_score: ClassVar[bool] = True
    has_expectation_of_cells: ClassVar[bool] = False  # whether `expected_if_calibrated` holds for cells of many rows

    def expected_if_calibrated(self, view: View) -> float:
        """Expected score of a calibrated model with these predictions."""
        raise NotImplementedError


def require_one_score(view: View, name: str) -> None:
    """Raise InputError for a joint view if the estimator needs one score per row.

    Raises
    ------
    InputError
        TO205 if the view has a vector per row.
    """
    if view.joint:
        raise InputError(
            "TO205",
            f"{name} needs one score per row, but the lens {view.name} has a vector per row.",
            f"{name} through {view.name}",
            "Use a lens such as confidence, classwise or class:NAME.",
        )


def require_single_rows(view: View, name: str) -> None:
    """Raise InputError for cells of many rows if the estimator needs single rows.

    Raises
    ------
    InputError
        TO205 if the view holds cells of many rows.
    """
    if not view.is_rows:
        raise InputError(
            "TO205",
            f"{name} needs single rows. Cells hold only sums.",
            f"{len(view.w):,} cells of {view.n_rows:,} rows",
            "Compute it from rows.",
        )


MIN_GROUP_EXPECTED = 2.0  # expected events of a group that is compared with others; with fewer, its logarithm is biased
AGGREGATES = ("mean", "max", "sum", "prevalence", "weight")
Aggregate = Annotated[str, OneOf(AGGREGATES)]


def aggregation_weights(views: Sequence[View], aggregate: str) -> Array:
    """Weight of each view (m,) in a sum over m views.

    It is 1/m for `mean`, 1 for `sum`, the share of the weighted events for `prevalence`, and the share of the total
    weight for `weight`. For `max`, which is no sum, it is 1.
    """
    if aggregate not in AGGREGATES:
        raise InputError(
            "TO203",
            "aggregate must be one of mean, max, sum, prevalence, weight.",
            describe(aggregate),
            "Omit it for the mean.",
        )
    if aggregate == "mean":
        return np.full(len(views), 1 / len(views))
    if aggregate == "prevalence":
        event_weights = np.array([float((view.w * view.y).sum()) for view in views])
        if not event_weights.sum() > 0:  # without events there are no weights
            return np.full(len(views), np.nan)
        return event_weights / event_weights.sum()
    if aggregate == "weight":
        totals = np.array([view.total for view in views])
        return totals / totals.sum()
    return np.ones(len(views))


def aggregate_values(values: Array, view_weights: Array, aggregate: str) -> Array:
    """Aggregate values of several views (views, …) along the first axis."""
    if aggregate == "max":
        return np.asarray(values.max(axis=0))
    if not view_weights.all():  # a view of weight 0 may have an undefined value
        view_weights, values = view_weights[view_weights != 0], values[view_weights != 0]
    return np.tensordot(view_weights, values, axes=1)
