"""Which cell of the simplex is a row in? A tree or a grid that was fixed once, kept as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from trueodds.binning.cells import on_the_grid
from trueodds.binning.tree import Tree
from trueodds.calibrators import wire
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.kernels.bin_index import Bins

FINEST = 100_000  # bins per axis; a file must not ask for more memory than that


class Cells(Protocol):
    """Cells with numbers from 0."""

    @property
    def size(self) -> int:
        """How many cells."""
        ...

    def index(self, x: Array) -> Array:
        """The cell of each row of x (n, axes), (n,) int64; −1 where it is in none."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """What fixes them."""
        ...


@dataclass(frozen=True, eq=False)
class Leaves:
    """The leaves of a tree, which hold every row."""

    tree: Tree

    @property
    def size(self) -> int:
        """How many leaves."""
        return self.tree.size

    def index(self, x: Array) -> Array:
        """The leaf of each row."""
        return self.tree.index(x)

    def to_dict(self) -> dict[str, Any]:
        """The splits in the order in which they were made: which node, on which axis, where."""
        low = np.array(self.tree.low)
        nodes = np.flatnonzero(np.array(self.tree.axis) >= 0)
        nodes = nodes[np.argsort(low[nodes])]  # children are numbered as they are made
        return {
            "node": nodes.tolist(),
            "axis": [self.tree.axis[node] for node in nodes],
            "cut": [self.tree.cut[node] for node in nodes],
        }

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], axes: int) -> Leaves:
        """The same splits made again, each of a node that was a leaf."""
        wire.keys(parameters, ("node", "axis", "cut"), "cells")
        cuts = _numbers(parameters, "cut")
        nodes, sides = (_integers(parameters, key, len(cuts)) for key in ("node", "axis"))
        tree = Tree()
        for node, axis, cut in zip(nodes, sides, cuts, strict=True):
            if node >= len(tree.axis) or tree.axis[node] >= 0:
                raise wrong("node must name a leaf that is there when it is split", node)
            if axis >= axes:
                raise wrong(f"axis must be below {axes}", axis)
            tree.split(node, axis, cut)
        return cls(tree)


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of a grid on all axes that held a row when they were fixed."""

    bins: int  # per axis
    cells: Array  # (cells, axes) int64, the bin on each axis, rows rising and distinct

    @classmethod
    def of(cls, x: Array, bins: int) -> Grid:
        """The cells that hold a row of x (n, axes)."""
        keys = np.unique(_keys(x, bins))
        return cls(bins, np.frombuffer(keys.tobytes(), dtype=">u4").reshape(len(keys), -1).astype(np.int64))

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.cells)

    def index(self, x: Array) -> Array:
        """The cell of each row; −1 for one that held none."""
        known, keys = _bytes(self.cells), _keys(x, self.bins)
        where = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[where] == keys, where, -1)

    def to_dict(self) -> dict[str, Any]:
        """The bins per axis, and those of each cell."""
        return {"bins": self.bins, "cells": self.cells.tolist()}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], axes: int) -> Grid:
        """Cells that are within the grid, rise and differ."""
        wire.keys(parameters, ("bins", "cells"), "cells")
        bins, rows = wire.count(parameters, "bins"), parameters["cells"]
        if not 1 <= bins <= FINEST:
            raise wrong(f"bins must be a whole number from 1 to {FINEST}", bins)
        if not isinstance(rows, list) or not rows:
            raise wrong("cells must be some rows of numbers", rows)
        cells = np.array([_integers({"cells": row}, "cells", axes) for row in rows], dtype=np.int64)
        keys = _bytes(cells)
        if (cells >= bins).any() or (keys[:-1] >= keys[1:]).any():
            raise wrong(f"cells must rise and lie below {bins} on each axis", cells[0].tolist())
        return cls(bins, cells)


def _keys(x: Array, bins: int) -> Array:
    # i/k, not linspace: 3/10 is the float that "0.3" parses to, so a decimal score falls on its own edge.
    return on_the_grid(Bins(np.arange(bins + 1) / bins))(x)


def _bytes(cells: Array) -> Array:
    """One sortable key per cell, as `on_the_grid` makes them of rows."""
    return np.ascontiguousarray(cells.astype(">u4")).view(f"S{4 * cells.shape[1]}")[:, 0]


def _numbers(mapping: Mapping[str, Any], key: str) -> list[float]:
    numbers: list[float] = [] if mapping[key] == [] else wire.vector(mapping, key, 0, 2).tolist()
    return numbers


def _integers(mapping: Mapping[str, Any], key: str, size: int) -> list[int]:
    values = mapping[key]
    if not isinstance(values, list) or len(values) != size:
        raise wrong(f"{key} must be {size} whole numbers", values)
    return [wire.count({key: value}, key) for value in values]


def wrong(requirement: str, got: Any) -> InputError:
    """What a saved calibrator must be, and is not."""
    return InputError(
        "TO505", f"In a saved calibrator {requirement}.", repr(got)[:60], "Fit it again and save it with .save(path)."
    )
