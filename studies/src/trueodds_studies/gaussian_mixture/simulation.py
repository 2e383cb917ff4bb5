"""Logistic models of a Gaussian mixture: their true calibration error by quadrature, and simulated estimates of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.median_variance import MedianVariance, Tree
from trueodds.binning.partition import Partition
from trueodds.binning.simplex_grid import Distinct
from trueodds.binning.sorted_scores import RowSelections
from trueodds.binning.uniform import FixedEdges, Uniform
from trueodds.core.errors import InputError
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds_studies.common.simulated_worlds import GaussianMixtureWorld

MAX_X = 10.0  # end of the quadrature over x; larger |x| have density below 1e-18
SEGMENT_LENGTH = 0.25  # of the quadrature
NODES = 12  # Gauss-Legendre nodes per segment; more do not change results in double precision
N_QUANTILES = 20_000  # quantiles of x that represent its distribution where a tree is fitted
MAX_BATCH_ROWS = 2_000_000  # rows that are simulated at once
PARTITION_KINDS = ("uniform", "equal-mass", "tree")


@dataclass(frozen=True)
class LogisticModel:
    """The model predicts σ(intercept + slope x) for the class Y = −1, which has probability σ(−2x)."""

    name: str
    intercept: float
    slope: float

    @property
    def world(self) -> GaussianMixtureWorld:
        """The distribution of the rows."""
        return GaussianMixtureWorld(self.name, self.intercept, self.slope)

    @property
    def calibrated(self) -> bool:
        """Whether the coefficients are the true ones, or a constant equal to the class frequency."""
        return (self.intercept, self.slope) in ((0.0, -2.0), (0.0, 0.0))

    @property
    def crossing(self) -> float | None:
        """The latent x at which prediction and true probability are equal: intercept + slope x = −2x."""
        return None if self.calibrated or self.slope == -2 else -self.intercept / (self.slope + 2)

    def calibration_function(self, p: Array) -> Array:
        """The true probability r(p) of the class given predictions p, (n,) both."""
        if self.slope == 0:
            return np.full_like(p, 0.5)
        return np.asarray(expit(-2 * (logit(p) - self.intercept) / self.slope))

    def deviation_sign(self, p: Array) -> Array:
        """The sign of p − r(p) for predictions p (n,); 0 for a calibrated model."""
        if self.calibrated:
            return np.zeros_like(p)
        if self.slope == 0:
            return np.sign(p - 0.5)
        x = (logit(p) - self.intercept) / self.slope
        return np.sign(self.intercept + (self.slope + 2) * x)


MODELS = {
    model.name: model
    for model in (
        LogisticModel("perfect", 0.0, -2.0),
        LogisticModel("constant", 0.0, 0.0),
        LogisticModel("uncalibrated", 1.0, 1.0),
    )
}


def find_model(name: str) -> LogisticModel:
    """The model with that name; an unknown one is an InputError."""
    if name not in MODELS:
        raise InputError("TO201", "There is no model of that name.", repr(name), suggest_names(name, MODELS))
    return MODELS[name]


def make_partition(kind: str, bins: int) -> Partition:
    """The partition of an estimate; a tree has at most `bins` leaves of at least ten rows."""
    if kind == "tree":
        return MedianVariance(min_size=10, bins=bins)
    return Uniform(bins) if kind == "uniform" else EqualMass(bins)


@lru_cache(maxsize=1024)
def true_error(model: LogisticModel, distance: str = "tv") -> float:
    """True calibration error η by quadrature, with one bin per prediction.

    >>> round(true_error(MODELS["uncalibrated"]), 5), true_error(MODELS["constant"]) < 1e-12
    (0.56375, True)
    """
    return BinnedError(Distinct(), distance=distance).value(population_view(model, ()))


@lru_cache(maxsize=4096)
def binned_limit(model: LogisticModel, kind: str, bins: int, distance: str = "tv") -> float:
    """Limit of the estimate for infinitely many rows with fixed bins, by quadrature.

    >>> binned_limit(MODELS["uncalibrated"], "uniform", 5) < true_error(MODELS["uncalibrated"])
    True
    """
    return binned_limit_at_edges(model, population_edges(model, kind, bins), distance)


def binned_limit_at_edges(model: LogisticModel, edges: tuple[float, ...], distance: str = "tv") -> float:
    """Limit of the estimate for infinitely many rows with bins between these inner edges and 0 and 1."""
    return BinnedError(FixedEdges((0.0, *edges, 1.0)), distance=distance).value(population_view(model, edges))


@lru_cache(maxsize=4096)
def population_edges(model: LogisticModel, kind: str, bins: int) -> tuple[float, ...]:
    """Inner edges of the bins that a partition has for infinitely many rows."""
    if kind == "uniform":
        return tuple((np.arange(1, bins) / bins).tolist())
    if model.slope == 0:
        return ()  # all predictions are equal, and ties are never split
    if kind == "equal-mass":
        edges = expit(model.intercept + model.slope * mixture_quantiles(np.arange(1, bins) / bins))
        return tuple(np.sort(edges).tolist())
    p = expit(model.intercept + model.slope * _x_quantiles())
    tree = MedianVariance(min_size=10, bins=bins).fit(View(p=p, y=model.calibration_function(p)))
    assert isinstance(tree, Tree)
    return tuple(sorted(cut for cut, axis in zip(tree.cut, tree.axis, strict=True) if axis >= 0))


@lru_cache(maxsize=1)
def _x_quantiles() -> Array:
    """Equally spaced quantiles of x, (N_QUANTILES,)."""
    return mixture_quantiles((np.arange(N_QUANTILES) + 0.5) / N_QUANTILES)


def mixture_quantiles(probs: Array) -> Array:
    """Quantiles of x at these probabilities, by bisection.

    >>> bool(abs(mixture_quantiles(np.array([0.5]))[0]) < 1e-12)
    True
    """
    low, high = np.full(len(probs), -MAX_X), np.full(len(probs), MAX_X)
    for _ in range(60):
        middle = (low + high) / 2
        below = (ndtr(middle + 1) + ndtr(middle - 1)) / 2 < probs
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def population_view(model: LogisticModel, edges: tuple[float, ...]) -> View:
    """A view that represents infinitely many rows: predictions, true probabilities and weights at quadrature nodes.

    Gauss-Legendre nodes are placed between all points where the integrand has a kink: bin edges and the crossing.
    """
    cuts = np.arange(-MAX_X, MAX_X + SEGMENT_LENGTH / 2, SEGMENT_LENGTH)
    if model.slope != 0 and edges:
        x_of_edges = (logit(np.array(edges)) - model.intercept) / model.slope
        cuts = np.append(cuts, x_of_edges[np.abs(x_of_edges) < MAX_X])
    if model.crossing is not None:
        cuts = np.append(cuts, model.crossing)
    cuts = np.unique(cuts)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(cuts)[:, None] / 2
    x = ((cuts[:-1, None] + half) + half * nodes).ravel()
    w = (half * weights).ravel() * (np.exp(-((x - 1) ** 2) / 2) + np.exp(-((x + 1) ** 2) / 2))
    return View(p=expit(model.intercept + model.slope * x), y=expit(-2 * x), w=w / w.sum())


@dataclass(frozen=True)
class Plan:
    """Size of the simulation; `max_rows` and `max_tree_rows` limit the total rows of a cell.

    `powers` are the a of rules with ⌈n^a⌉ bins, and `drawn_sizes` and `drawn_bins` the n and numbers of bins in the
    figures.
    """

    sizes: tuple[int, ...] = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
    bins: tuple[int, ...] = (2, 5, 10, 15, 20, 40, 100)
    powers: tuple[float, ...] = (1 / 5, 1 / 3, 2 / 5, 1 / 2, 2 / 3)
    drawn_sizes: tuple[int, ...] = (100, 1000, 10_000)
    drawn_bins: tuple[int, ...] = (5, 10, 20, 100)
    sets: int = 1000
    tree_sets: int = 400
    max_rows: int = 30_000_000
    max_tree_rows: int = 2_000_000
    seed: int = 0

    def bin_counts(self, n: int) -> list[int]:
        """The numbers of bins for n rows: fixed ones, and those of each rule."""
        return sorted({*self.bins, *(rule_bin_count(n, power) for power in self.powers)})

    def count_sets(self, n: int, kind: str) -> int:
        """Number of data sets of n rows for a kind of partition."""
        sets, max_rows = (self.tree_sets, self.max_tree_rows) if kind == "tree" else (self.sets, self.max_rows)
        return min(sets, max(2, max_rows // n))


def rule_bin_count(n: int, power: float) -> int:
    """⌈n^a⌉ bins.

    >>> rule_bin_count(100_000, 2 / 5), rule_bin_count(1000, 1 / 3)
    (100, 10)
    """
    return math.ceil(n**power - 1e-9)


@dataclass(frozen=True)
class Cell:
    """One model and one number of rows."""

    model: str
    n: int

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.model} {self.n}"


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The results of one cell: statistics of the estimates for each partition."""
    model = find_model(cell.model)
    estimates: dict[tuple[str, int], list[Array]] = {
        (kind, k): [] for kind in PARTITION_KINDS for k in plan.bin_counts(cell.n)
    }
    oracle_batches: list[Array] = []
    n_done = 0
    for batch in draw_batches(model, cell.n, plan):
        oracle_batches.append(oracle_means(model, batch))
        for (kind, k), values in estimates.items():
            n_left = plan.count_sets(cell.n, kind) - n_done
            if n_left > 0:
                used = batch if n_left >= len(batch) else RowSelections(batch.view, batch.rows[:n_left])
                values.append(BinnedError(make_partition(kind, k)).evaluate_selections(used))
        n_done += len(batch)
    means = np.concatenate(oracle_batches)
    rows = [summary_row(cell, kind, k, np.concatenate(values), means, plan) for (kind, k), values in estimates.items()]
    return {"model": cell.model, "n": cell.n, "estimates": rows}


def draw_batches(model: LogisticModel, n: int, plan: Plan) -> Iterator[RowSelections]:
    """Data sets of n rows in batches, as selections of rows of one view; x and outcomes are the same for each model."""
    total = max(plan.count_sets(n, kind) for kind in PARTITION_KINDS)
    batch_size = max(1, MAX_BATCH_ROWS // n)
    for start in range(0, total, batch_size):
        sets = min(batch_size, total - start)
        rng = np.random.default_rng([plan.seed, n, start])
        (view,) = as_lens("positive").views(model.world.rows(rng, n * sets))
        yield RowSelections(view, np.arange(n * sets).reshape(sets, n))


def oracle_means(model: LogisticModel, data_sets: RowSelections) -> Array:
    """The mean of sign(p − r(p)) (p − y) in each data set, (data sets,), which requires the true r.

    Its expectation is the true calibration error. An estimate minus this mean has the same bias as the estimate but
    much less noise (a control variate): both are equal outside of the bins near the crossing of p and r(p).
    """
    view = data_sets.view
    return np.asarray((model.deviation_sign(view.p) * (view.p - view.y)).reshape(len(data_sets), -1).mean(axis=1))


def summary_row(cell: Cell, kind: str, bins: int, values: Array, means: Array, plan: Plan) -> dict[str, Any]:
    """Statistics of the estimates (data sets,) with one partition.

    `means` are the `oracle_means` of the data sets, from which the bias and its standard error are
    computed.
    """
    truth = true_error(find_model(cell.model))
    errors = values - means[: len(values)]
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95)).tolist()
    row: dict[str, Any] = {
        "kind": kind,
        "bins": bins,
        "sets": len(values),
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)),
        "bias": float(errors.mean()),
        "bias se": float(errors.std(ddof=1) / math.sqrt(len(errors))),
        "q05": low,
        "median": middle,
        "q95": high,
        "above": float((values > truth).mean()),
    }
    if cell.n in plan.drawn_sizes and bins in plan.drawn_bins and kind != "equal-mass":
        row["values"] = values.round(5).tolist()
    return row
