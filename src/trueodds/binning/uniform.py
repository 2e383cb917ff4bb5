"""Bins whose edges do not depend on the scores: `Uniform`, of equal width, and `FixedEdges`, between given edges.

Decimal scores lie on such edges, and rounding moves them into another bin: `edge_rounding_notes` counts these scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from trueodds.binning.partition import BinRule, Partition, lowest_score, require_binary, resolve_n_bins
from trueodds.binning.simplex_grid import SimplexGrid
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import BinCount
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins, Closed, FittedPartition, find_bins
from trueodds.lenses.row_sources import sample_rows
from trueodds.lenses.view import View

# Scores moved by rounding are noted from this share of all scores on, because fewer cannot change a result noticeably,
# and if they are so many times as many as by chance.
MIN_SHARE, MAX_CHANCE_FACTOR = 1e-3, 3


@dataclass(frozen=True)
class Uniform(Partition):
    """Bins of equal width on [0, 1], or on [1/K, 1] with `range="1/K"`.

    `bins="sqrt"` uses ⌊√n⌋ bins, and `"auto"` uses ⌈n^(2/5)⌉, so that their noise decreases as n grows.
    """

    bins: BinCount | BinRule = 15  # number of bins, or the rule for it
    closed: Closed = "right"  # the side on which a bin includes its edge
    range: Literal["1/K"] | None = None  # of the bins; None is [0, 1]
    ignores_scores = True

    def fit(self, view: View) -> FittedPartition:
        k = resolve_n_bins(self.bins, view) if isinstance(self.bins, str) else self.bins
        if view.joint:
            if self.range:
                raise InputError(
                    "TO205", "⟨range='1/K'⟩ is for one score per row.", f"the lens {view.name}", "Leave range out."
                )
            return SimplexGrid(k, self.closed).fit(view)
        return _uniform_bins(k, 0.0 if self.range is None else lowest_score(view, self.range), self.closed)

    def __str__(self) -> str:
        text = f"uniform {self.bins}" + (" on [1/K, 1]" if self.range else "")
        return text + (", left-closed" if self.closed == "left" else "")


@lru_cache(maxsize=64)
def _uniform_bins(k: int, low: float, closed: Closed) -> Bins:
    """Return k bins of equal width from `low` to 1."""
    # i/k, not linspace: 3/10 is the float that "0.3" parses to, so a decimal score falls on its own edge.
    edges = np.arange(k + 1) / k
    return Bins(low + edges * (1 - low) if low else edges, closed)


@dataclass(frozen=True)
class FixedEdges(Partition):
    """Bins between given edges from 0 to 1, as `bins=[0, 0.5, 0.9, 1]` or `partition=FixedEdges(...)` asks for."""

    edges: tuple[float, ...]
    closed: Closed = "right"  # the side on which a bin includes its edge
    ignores_scores = True

    def __post_init__(self) -> None:
        super().__post_init__()
        edges = np.asarray(self.edges, dtype=np.float64)
        if len(edges) < 2 or not (np.diff(edges) > 0).all() or edges[0] != 0 or edges[-1] != 1:
            raise InputError(
                "TO203",
                "Edges must increase from 0 to 1.",
                describe(self.edges),
                "For instance ⟨bins=[0, 0.5, 0.9, 1]⟩.",
            )

    def fit(self, view: View) -> FittedPartition:
        require_binary(view, "given")
        return Bins(np.asarray(self.edges, dtype=np.float64), self.closed)

    def __str__(self) -> str:
        edges = " ".join(f"{edge:.12g}" for edge in self.edges)
        return f"edges {edges}" + (", left-closed" if self.closed == "left" else "")


def sample_scores(view: View) -> Array:
    """Return the values of evenly spaced cells (m,) or (m, K), without computing a column of all rows for them."""
    return view.partition_values[sample_rows(len(view))] if view.rows is None else view.rows.sample()


def edge_rounding_notes(sample: Array, all_scores: Callable[[], Array], bins: object) -> list[Note]:
    """Return a note if many scores differ from a bin edge only by rounding, and lie in another bin than the edge.

    `all_scores` is called only if this is so for some of the `sample`, which gives their precision. `bins` is
    a fitted partition that ignores the scores: edges that depend on them are scores themselves.
    """
    if not isinstance(bins, Bins):
        return []
    types: tuple[type[np.floating], ...] = (np.float16, np.float32)
    # The type with the fewest digits that holds all scores of the sample exactly.
    dtype = next((dtype for dtype in types if (sample.astype(dtype) == sample).all()), np.float64)
    tolerance = float(np.finfo(dtype).eps)
    if not _count_moved(sample, bins, tolerance):
        return []
    scores = all_scores().ravel()
    count = _count_moved(scores, bins, tolerance)
    if count < len(scores) * max(MIN_SHARE, MAX_CHANCE_FACTOR * (bins.size - 1) * tolerance):
        return []
    cause = "in a computation such as 1 − p" if dtype == np.float64 else f"to {np.dtype(dtype).name}"
    side = "above" if bins.closed == "right" else "below"
    text = (
        f"{count:,} of {len(scores):,} values lie within rounding of a bin edge: by rounding {cause} they fall into the"
        f" bin {side} it, and the same decimals as float64 into the other bin. To count them as these decimals, round"
        " them as float64, such as np.round(p.astype(float), 6); or pass ⟨partition='equal-mass'⟩."
    )
    return [Note("TN315", text)]


def _count_moved(scores: Array, bins: Bins, tolerance: float) -> int:
    """Return the number of scores within the tolerance of an inner edge that lie in another bin than the edge."""
    inner = bins.edges[1:-1]
    moved = [inner, inner + tolerance] if bins.closed == "right" else [inner - tolerance, inner]
    edges = np.concatenate([bins.edges[:1], np.stack(moved, axis=1).ravel(), bins.edges[-1:]])
    if (np.diff(edges) <= 0).any():  # bins as narrow as rounding
        return 0
    counts = np.bincount(find_bins(scores, edges, bins.closed), minlength=len(edges) - 1)
    return int(counts[1::2].sum())
