"""How do estimates of one model scatter, for one number of rows and every partition? All on the same data sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.binning.selections import Selections
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens import as_lens
from trueodds_studies.mixture.truth import KINDS, Model, error, known, partition

AT_ONCE = 2_000_000  # rows that are drawn together


@dataclass(frozen=True)
class Plan:
    """How much is simulated; `rows` and `tree_rows` are the most that one cell takes, over all its data sets."""

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
        """The numbers of bins that are tried on n rows: the fixed ones, and those of each rule."""
        return sorted({*self.bins, *(ruled(n, power) for power in self.powers)})

    def sets_of(self, n: int, kind: str) -> int:
        """How many data sets of n rows."""
        sets, max_rows = (self.tree_sets, self.tree_rows) if kind == "tree" else (self.sets, self.rows)
        return min(sets, max(2, max_rows // n))


def ruled(n: int, power: float) -> int:
    """⌈n^a⌉ bins.

    >>> ruled(100_000, 2 / 5), ruled(1000, 1 / 3)
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
        """Its name among the kept cells."""
        return f"{self.model} {self.n}"


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of one cell: what is to be said of the estimates of each partition."""
    model = known(cell.model)
    estimates: dict[tuple[str, int], list[Array]] = {(kind, k): [] for kind in KINDS for k in plan.bins_of(cell.n)}
    unbiased_means: list[Array] = []
    for of in drawn(model, cell.n, plan):
        unbiased_means.append(unbiased(model, of))
        n_drawn = sum(map(len, unbiased_means))
        for (kind, k), values in estimates.items():
            left = plan.sets_of(cell.n, kind) - (n_drawn - len(of))
            if left > 0:
                some = of if left >= len(of) else Selections(of.view, of.rows[:left])
                values.append(BinnedError(partition(kind, k)).evaluate_selections(some))
    known_mean = np.concatenate(unbiased_means)
    rows = [
        summary_row(cell, kind, k, np.concatenate(values), known_mean, plan) for (kind, k), values in estimates.items()
    ]
    return {"model": cell.model, "n": cell.n, "estimates": rows}


def drawn(model: Model, n: int, plan: Plan) -> Iterator[Selections]:
    """The data sets of n rows, some at a time; each model sees the same x and the same outcomes."""
    total = max(plan.sets_of(n, kind) for kind in KINDS)
    batch = max(1, AT_ONCE // n)
    for start in range(0, total, batch):
        sets = min(batch, total - start)
        rng = np.random.default_rng([plan.seed, n, start])
        (view,) = as_lens("positive").views(model.design.rows(rng, n * sets))
        yield Selections(view, np.arange(n * sets).reshape(sets, n))


def unbiased(model: Model, of: Selections) -> Array:
    """The mean of sign(p − r(p)) (p − y) of each data set, which only those who know r can take: its expectation is η.

    An estimate less this mean is the bias of the estimate, with most of the chance taken off: outside the bins that
    lie near the crossing both are the same number.
    """
    view = of.view
    return np.asarray((model.side(view.p) * (view.p - view.y)).reshape(len(of), -1).mean(axis=1))


def summary_row(cell: Cell, kind: str, bins: int, values: Array, known_mean: Array, plan: Plan) -> dict[str, Any]:
    """Mean, spread, bias with its standard error, and how many estimates are too large."""
    truth = error(known(cell.model))
    errors = values - known_mean[: len(values)]
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95)).tolist()
    row: dict[str, Any] = {
        "kind": kind, "bins": bins, "sets": len(values),
        "mean": float(values.mean()), "sd": float(values.std(ddof=1)),
        "bias": float(errors.mean()), "bias se": float(errors.std(ddof=1) / math.sqrt(len(errors))),
        "q05": low, "median": middle, "q95": high, "above": float((values > truth).mean()),
    }  # fmt: skip
    if cell.n in plan.drawn_sizes and bins in plan.drawn_bins and kind != "equal-mass":
        row["values"] = values.round(5).tolist()
    return row
