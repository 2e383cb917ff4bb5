"""True calibration error of logistic models of a Gaussian mixture by quadrature, and simulated estimates of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr

from trueodds.binning.distinct import Distinct
from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.fixed_edges import FixedEdges
from trueodds.binning.median_variance import MedianVariance, Tree
from trueodds.binning.partition import Partition
from trueodds.binning.row_selections import RowSelections
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds_studies.common.simulated_worlds import GaussianMixtureWorld

MAX_X = 10.0  # of x; what lies beyond weighs 1e-19
STEP = 0.25  # between the stretches of the quadrature
NODES = 12  # of Gauss and Legendre in each stretch: more change no digit of double precision
QUANTILES = 20_000  # that stand for the law of the predictions where a tree is grown on it
PARTITION_KINDS = ("uniform", "equal-mass", "tree")


@dataclass(frozen=True)
class LogisticModel:
    """The model predicts σ(first + second x) for the class Y = −1, which has probability σ(−2x)."""

    name: str
    first: float
    second: float

    @property
    def design(self) -> GaussianMixtureWorld:
        """The distribution of the rows."""
        return GaussianMixtureWorld(self.name, self.first, self.second)

    @property
    def calibrated(self) -> bool:
        """Whether the coefficients are the true ones, or a constant equal to the class frequency."""
        return (self.first, self.second) in ((0.0, -2.0), (0.0, 0.0))

    @property
    def crossing(self) -> float | None:
        """The latent x at which prediction and true probability are equal: first + second x = −2x."""
        return None if self.calibrated or self.second == -2 else -self.first / (self.second + 2)

    def comes(self, p: Array) -> Array:
        """Probability of the class given the prediction p: r(p)."""
        if self.second == 0:
            return np.full_like(p, 0.5)
        return np.asarray(expit(-2 * (logit(p) - self.first) / self.second))

    def side(self, p: Array) -> Array:
        """The sign of p − r(p), 0 everywhere for a calibrated model."""
        if self.calibrated:
            return np.zeros_like(p)
        if self.second == 0:
            return np.sign(p - 0.5)
        x = (logit(p) - self.first) / self.second
        return np.sign(self.first + (self.second + 2) * x)


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
    """The bins of an estimate; a tree has at most this number of leaves of at least ten rows."""
    if kind == "tree":
        return MedianVariance(max_bins=bins)
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
    """The same for bins with given inner edges."""
    return BinnedError(FixedEdges((0.0, *edges, 1.0)), distance=distance).value(population_view(model, edges))


@lru_cache(maxsize=4096)
def population_edges(model: LogisticModel, kind: str, bins: int) -> tuple[float, ...]:
    """Inner edges of a partition for the distribution of the predictions."""
    if kind == "uniform":
        return tuple((np.arange(1, bins) / bins).tolist())
    if model.second == 0:
        return ()  # all predictions are tied, and ties are not parted
    if kind == "equal-mass":
        edges = expit(model.first + model.second * mixture_quantiles(np.arange(1, bins) / bins))
        return tuple(np.sort(edges).tolist())
    p = expit(model.first + model.second * _sample())
    tree = MedianVariance(max_bins=bins).fit(View(p=p, y=model.comes(p)))
    assert isinstance(tree, Tree)
    return tuple(sorted(cut for cut, axis in zip(tree.cut, tree.axis, strict=True) if axis >= 0))


@lru_cache(maxsize=1)
def _sample() -> Array:
    """The distribution of x as equally many rows from each component."""
    return mixture_quantiles((np.arange(QUANTILES) + 0.5) / QUANTILES)


def mixture_quantiles(share: Array) -> Array:
    """Quantile of the mixture, by bisection.

    >>> bool(abs(mixture_quantiles(np.array([0.5]))[0]) < 1e-12)
    True
    """
    low, high = np.full(len(share), -MAX_X), np.full(len(share), MAX_X)
    for _ in range(60):
        middle = (low + high) / 2
        below = (ndtr(middle + 1) + ndtr(middle - 1)) / 2 < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def population_view(model: LogisticModel, edges: tuple[float, ...]) -> View:
    """Predictions, event rates, and weights at Gauss-Legendre nodes between all kinks of the integrand."""
    cuts = np.arange(-MAX_X, MAX_X + STEP / 2, STEP)
    if model.second != 0 and edges:
        at = (logit(np.array(edges)) - model.first) / model.second
        cuts = np.append(cuts, at[np.abs(at) < MAX_X])
    if model.crossing is not None:
        cuts = np.append(cuts, model.crossing)
    cuts = np.unique(cuts)
    place, share = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(cuts)[:, None] / 2
    x = ((cuts[:-1, None] + half) + half * place).ravel()
    w = (half * share).ravel() * (np.exp(-((x - 1) ** 2) / 2) + np.exp(-((x + 1) ** 2) / 2))
    return View(p=expit(model.first + model.second * x), y=expit(-2 * x), w=w / w.sum())


MAX_BATCH_ROWS = 2_000_000  # rows that are drawn together


@dataclass(frozen=True)
class Plan:
    """Size of the simulation; `rows` and `tree_rows` are the maximum total rows of a cell."""

    sizes: tuple[int, ...] = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
    bins: tuple[int, ...] = (2, 5, 10, 15, 20, 40, 100)
    powers: tuple[float, ...] = (1 / 5, 1 / 3, 2 / 5, 1 / 2, 2 / 3)
    drawn_sizes: tuple[int, ...] = (100, 1000, 10_000)
    drawn_bins: tuple[int, ...] = (5, 10, 20, 100)
    sets: int = 1000
    tree_sets: int = 400
    rows: int = 30_000_000
    tree_rows: int = 2_000_000
    seed: int = 0

    def bins_of(self, n: int) -> list[int]:
        """The numbers of bins for n rows: fixed ones, and those of each rule."""
        return sorted({*self.bins, *(rule_bin_count(n, power) for power in self.powers)})

    def sets_of(self, n: int, kind: str) -> int:
        """Number of data sets of n rows."""
        sets, max_rows = (self.tree_sets, self.tree_rows) if kind == "tree" else (self.sets, self.rows)
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
        (kind, k): [] for kind in PARTITION_KINDS for k in plan.bins_of(cell.n)
    }
    unbiased_means: list[Array] = []
    for of in draw_batches(model, cell.n, plan):
        unbiased_means.append(oracle_estimates(model, of))
        n_drawn = sum(map(len, unbiased_means))
        for (kind, k), values in estimates.items():
            left = plan.sets_of(cell.n, kind) - (n_drawn - len(of))
            if left > 0:
                some = of if left >= len(of) else RowSelections(of.view, of.rows[:left])
                values.append(BinnedError(make_partition(kind, k)).evaluate_selections(some))
    known_mean = np.concatenate(unbiased_means)
    rows = [
        summary_row(cell, kind, k, np.concatenate(values), known_mean, plan) for (kind, k), values in estimates.items()
    ]
    return {"model": cell.model, "n": cell.n, "estimates": rows}


def draw_batches(model: LogisticModel, n: int, plan: Plan) -> Iterator[RowSelections]:
    """The data sets of n rows, in batches, with the same x and outcomes for each model."""
    total = max(plan.sets_of(n, kind) for kind in PARTITION_KINDS)
    batch = max(1, MAX_BATCH_ROWS // n)
    for start in range(0, total, batch):
        sets = min(batch, total - start)
        rng = np.random.default_rng([plan.seed, n, start])
        (view,) = as_lens("positive").views(model.design.rows(rng, n * sets))
        yield RowSelections(view, np.arange(n * sets).reshape(sets, n))


def oracle_estimates(model: LogisticModel, of: RowSelections) -> Array:
    """The mean of sign(p − r(p)) (p − y) of each data set, which requires the true r: its expectation is η.

    An estimate minus this mean has the bias of the estimate with most of the noise removed: outside of the bins near
    the crossing, both are equal.
    """
    view = of.view
    return np.asarray((model.side(view.p) * (view.p - view.y)).reshape(len(of), -1).mean(axis=1))


def summary_row(cell: Cell, kind: str, bins: int, values: Array, known_mean: Array, plan: Plan) -> dict[str, Any]:
    """Mean, spread, bias with its standard error, and how many estimates are above the true error."""
    truth = true_error(find_model(cell.model))
    errors = values - known_mean[: len(values)]
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
