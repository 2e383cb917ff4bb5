"""Which rows are pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from trueodds.binning.by_score import ByScore, by_place
from trueodds.binning.cells import Occupied, of_the_prediction, on_the_grid
from trueodds.binning.selections import Selections
from trueodds.binning.tree import Tree, grow
from trueodds.core.errors import InputError, describe
from trueodds.core.settings import BinCount, Count, OneOf, Settings, check
from trueodds.core.typing import Array
from trueodds.kernels.bin_index import Bins as Bins
from trueodds.kernels.bin_index import Closed as Closed
from trueodds.kernels.bin_index import Frozen as Frozen
from trueodds.kernels.sweep import sweep
from trueodds.lenses.view import View

BIN_RULES = ("auto", "sqrt")  # of the number of bins, from the number of rows
BinRule = Annotated[str, OneOf(BIN_RULES)]
BinsOrEdges = BinCount | BinRule | Sequence[float]


class Partition(Settings):
    """A rule that chooses which rows are pooled; `freeze` looks at a view and fixes the cells."""

    blind = False  # whether the edges are the same whatever the scores are
    uses_outcomes = False  # redraws refit a partition that was chosen with the labels

    def freeze(self, view: View) -> Frozen:
        """The cells for this view."""
        raise NotImplementedError

    def sums(self, of: Selections) -> Array | None:
        """n, Σp and Σy (3, selections, bins) of bins cut for each of selections that are alike; None: cut one by one."""
        return None


def _binary_only(view: View, kind: str) -> None:
    if view.joint:
        raise InputError(
            "TO205",
            f"{kind} bins pool rows by one score, and the lens {view.name} has a vector per row.",
            f"partition {kind}",
            "Use partition='median-variance' or 'simplex-grid', or a lens such as 'classwise'.",
        )


@dataclass(frozen=True)
class Uniform(Partition):
    """Bins of equal width on [0, 1], or on [1/K, 1] with `range="1/K"`.

    `bins="sqrt"` is ⌊√n⌋ of them, `"auto"` ⌈n^(2/5)⌉: few enough for their noise to fall as rows come in.
    """

    bins: BinCount | BinRule = 15
    closed: Closed = "right"
    range: Literal["1/K"] | None = None
    blind = True

    def freeze(self, view: View) -> Frozen:
        """The edges; on a joint view, the grid on all axes."""
        k = count_of_bins(self.bins, view)
        if view.joint:
            if self.range:
                raise InputError(
                    "TO205", "range='1/K' is for one score per row.", f"the lens {view.name}", "Leave range out."
                )
            return SimplexGrid(k, self.closed).freeze(view)
        # i/k, not linspace: 3/10 is the float that "0.3" parses to, so a decimal score falls on its own edge.
        edges = np.arange(k + 1) / k
        low = lowest(view, self.range)
        return Bins(low + edges * (1 - low) if low else edges, self.closed)

    def sums(self, of: Selections) -> Array:
        """The sums of the bins, which are the same for all."""
        return _in_the_same(self.freeze(of.first), of)

    def __str__(self) -> str:
        text = f"uniform {self.bins}" + (" on [1/K, 1]" if self.range else "")
        return text + (", left-closed" if self.closed == "left" else "")


@dataclass(frozen=True)
class FixedEdges(Partition):
    """Bins between edges that the user gives, from 0 to 1."""

    edges: tuple[float, ...]
    closed: Closed = "right"
    blind = True

    def __post_init__(self) -> None:
        super().__post_init__()
        e = np.asarray(self.edges, dtype=np.float64)
        if len(e) < 2 or not (np.diff(e) > 0).all() or e[0] != 0 or e[-1] != 1:
            raise InputError(
                "TO203", "Edges must rise from 0 to 1.", describe(self.edges), "For instance bins=[0, 0.5, 0.9, 1]."
            )

    def freeze(self, view: View) -> Frozen:
        """The given edges."""
        _binary_only(view, "given")
        return Bins(np.asarray(self.edges, dtype=np.float64), self.closed)

    def sums(self, of: Selections) -> Array:
        """The sums of the bins, which are the same for all."""
        return _in_the_same(self.freeze(of.first), of)

    def __str__(self) -> str:
        return "edges " + " ".join(f"{e:.12g}" for e in self.edges) + (", left-closed" if self.closed == "left" else "")


@dataclass(frozen=True)
class EqualMass(Partition):
    """Bins that hold equally many rows; tied scores are never split, so there may be fewer bins than asked.

    Groups differ in size by at most one row, larger groups first; the edge between two groups is the midpoint
    of the neighbouring scores. A weight of two counts as two rows.
    """

    bins: BinCount | BinRule = 15
    closed: Closed = "right"
    cut: Literal["first", "floor"] = (
        "first"  # "floor" ends group i after ⌊n i / bins⌋ rows, the rule of histogram binning
    )

    def freeze(self, view: View) -> Frozen:
        """The edges for these scores."""
        _binary_only(view, "equal-mass")
        k = count_of_bins(self.bins, view)
        return Bins(_mass_edges(by_place(view), _cuts(view, k, self.cut)), self.closed)

    def sums(self, of: Selections) -> Array:
        """The sums of the bins, cut anew for each selection."""
        cuts = _cuts(of.first, count_of_bins(self.bins, of.first), self.cut)
        inner = _midway(of, cuts)
        return of.sums(np.where(inner < 1, inner, np.inf), self.closed)

    def __str__(self) -> str:
        return f"equal-mass {self.bins}" + (", left-closed" if self.closed == "left" else "")


@dataclass(frozen=True)
class Sweep(Partition):
    """As many equal-mass (or uniform) bins as keep the outcome rate monotone in the score.

    The largest count such that with it and every smaller count the outcome rates of the occupied bins do not
    fall. The labels choose the bins, so a redraw chooses again. Source: Roelofs et al. (2022).
    """

    base: Literal["equal-mass", "uniform"] = "equal-mass"
    uses_outcomes = True

    def freeze(self, view: View) -> Frozen:
        """The edges for these scores and outcomes."""
        _binary_only(view, "sweep")
        by_score = by_place(view)
        s, mass, events = by_score.sums()
        if not len(s):
            return Bins(np.array([0.0, 1.0]))
        max_bins, by_mass = round(view.counted) - 1, self.base == "equal-mass"
        _, bins = sweep(mass[None], mass[None] * s, events[None], s, max_bins=max_bins, by_mass=by_mass, order=1.0)
        k = int(bins[0])
        return Bins(_mass_edges(by_score, _cuts(view, k, "ceil")) if by_mass else np.arange(k + 1) / k)

    def __str__(self) -> str:
        return f"sweep over {self.base}"


@dataclass(frozen=True)
class SimplexGrid(Partition):
    """A grid on all axes of the simplex: rows whose every probability falls into the same uniform bin."""

    bins: BinCount = 15
    closed: Closed = "right"

    def freeze(self, view: View) -> Frozen:
        """The grid; a binary view is the line."""
        line = Bins(np.arange(self.bins + 1) / self.bins, self.closed)
        return Occupied(on_the_grid(line), view.at) if view.joint else line

    def __str__(self) -> str:
        return f"simplex-grid {self.bins}" + (", left-closed" if self.closed == "left" else "")


@dataclass(frozen=True)
class Distinct(Partition):
    """One cell for each prediction that was made: rows with the same score, or the same vector, are pooled."""

    def freeze(self, view: View) -> Frozen:
        """The predictions of this view."""
        return Occupied(of_the_prediction, view.at)

    def __str__(self) -> str:
        return "distinct"


@dataclass(frozen=True)
class MedianVariance(Partition):
    """A tree on the simplex: split the axis of largest variance at its median, both children ≥ `min_size`.

    Best first, so that `max_bins` keeps the cells where the variance is largest; rows that tie with the median
    go to the upper child. Source: Vaicenavicius et al. (2019), in the form of Widmann et al. (2019).
    """

    min_size: Count = 10
    max_bins: Count | None = None

    def freeze(self, view: View) -> Frozen:
        """The tree for these predictions; a binary view is split along its one score."""
        weights = view.w * (view.counted / view.total)
        tree: Tree = grow(view.at if view.joint else view.at[:, None], weights, self.min_size, self.max_bins)
        return tree

    def __str__(self) -> str:
        return f"median-variance min {self.min_size}" + (f" max {self.max_bins}" if self.max_bins else "")


RULED: dict[str, tuple[type[Partition], tuple[str, ...]]] = {  # by name, with the settings of each
    "uniform": (Uniform, ("bins", "closed", "range")),
    "equal-mass": (EqualMass, ("bins", "closed")),
    "sweep": (Sweep, ()),
    "median-variance": (MedianVariance, ("min_size",)),
    "simplex-grid": (SimplexGrid, ("bins", "closed")),
    "distinct": (Distinct, ()),
}
NAMES = ("uniform", "equal-mass", "mass:100", "sweep", "edges", "median-variance", "simplex-grid", "distinct")


def as_partition(
    partition: str | Partition | None = None,
    *,
    bins: int | str | Sequence[float] | None = None,
    min_size: int | None = None,
    closed: Closed | None = None,
    range: str | None = None,
) -> Partition | None:
    """The partition behind a name and its settings; None leaves the choice to the view (see `default_for`).

    >>> str(as_partition("equal-mass", bins=10)), str(as_partition(bins=[0, 0.5, 1]))
    ('equal-mass 10', 'edges 0 0.5 1')
    """
    settings = {
        "bins": check("bins", bins, BinsOrEdges | None, 15),
        "min_size": check("min_size", min_size, Count | None, 10),
        "closed": check("closed", closed, Closed | None, "right"),
        "range": check("range", range, Literal["1/K"] | None, None),
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    if isinstance(partition, Partition):
        _no_others(settings, f"a partition that is given as {type(partition).__name__}", ())
        return partition
    if isinstance(partition, str) and partition.startswith("mass:"):
        from trueodds.binning.mass import named  # it is a partition, and made of what stands here

        _no_others(settings, f"partition {partition}", ("closed",))
        return named(partition, settings.get("closed", "right"))
    partition = check("partition", partition, Annotated[str, OneOf(NAMES)] | Partition | None)
    if partition == "edges" or (isinstance(settings.get("bins"), tuple) and partition in (None, "uniform")):
        _no_others(settings, "given edges", ("bins", "closed"))
        return FixedEdges(settings.get("bins", ()), settings.get("closed", "right"))
    if partition is None and not settings:
        return None
    name = str(partition or ("median-variance" if "min_size" in settings else "uniform"))
    partition_type, takes = RULED[name]
    _no_others(settings, f"partition {name}", takes)
    return partition_type(**settings)


def default_for(view: View) -> Partition:
    """15 uniform bins for one score; the median-variance tree for vectors."""
    return _TREE if view.joint else _UNIFORM


_TREE, _UNIFORM = MedianVariance(), Uniform()


def _no_others(settings: dict[str, Any], what: str, takes: tuple[str, ...]) -> None:
    for name in settings:
        if name not in takes:
            raise InputError(
                "TO202",
                f"{what[0].upper() + what[1:]} takes no {name}.",
                f"{name}={describe(settings[name])}",
                f"It takes: {', '.join(takes) or 'nothing'}.",
            )


def lowest(view: View, range: str | None) -> float:
    """Where bins or curves begin: 0, or 1/K for the largest of K probabilities."""
    if range is None:
        return 0.0
    if view.classes < 2:
        raise InputError(
            "TO205",
            "range='1/K' needs the number of classes, which a bare confidence does not tell.",
            f"range={range!r}",
            "Leave range out, or give the edges of bins: bins=[0, 0.1, …, 1].",
        )
    return 1 / view.classes


def count_of_bins(bins: int | str, view: View) -> int:
    """How many bins a number or a rule of BIN_RULES stands for."""
    if bins not in BIN_RULES:
        return int(bins)
    # As many equal rows as the weights are worth: survey weights in the hundreds are no rows in the hundreds.
    n = view.effective_n
    return max(1, math.isqrt(round(n)) if bins == "sqrt" else math.ceil(n**0.4 - 1e-9))


def _cuts(view: View, k: int, rounding: str) -> Array:
    """After which weight each of k groups but the last ends: whole rows, where weights are multiples of one row's."""
    j, unit = np.arange(1, k), view.unit
    if unit is None:
        return j * view.total / k
    n = round(view.total / unit)
    if rounding == "first":  # sizes differ by at most one, larger groups first
        return (j * (n // k) + np.minimum(j, n % k)) * unit
    base, rest = j * (n // k), j * (n % k)  # j n may be beyond 64 bits
    return (
        base + (rest // k if rounding == "floor" else -(-rest // k))
    ) * unit  # "ceil": row r is in group floor(r k / n)


def _mass_edges(by_score: ByScore, cuts: Array) -> Array:
    """Edges midway between the row that completes each cut and the next row."""
    inner = np.unique(_midway(by_score, cuts))
    inner = inner[inner < 1]  # an edge at 0 stays: many exact zeros are a bin of their own
    return np.concatenate(([0.0], inner, [1.0]))


def _midway(by_score: ByScore | Selections, cuts: Array) -> Array:
    last, following = by_score.between(cuts)
    return np.asarray((last + following) / 2)


def _in_the_same(bins: Frozen, of: Selections) -> Array:
    assert isinstance(bins, Bins)
    return of.sums(bins.edges[None, 1:-1], bins.closed)
