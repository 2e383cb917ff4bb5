"""Base class of tallies: the sums that a tally holds, and writing them as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np

import trueodds
from trueodds.core import json_files
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.tallies.batch_fingerprints import BatchFingerprints
from trueodds.tallies.cells import UNWEIGHTED_SUMS, WEIGHTED_SUMS, Cells
from trueodds.tallies.proper_score_sums import ProperScoreSums
from trueodds.tallies.simplex_cells import SimplexCells
from trueodds.tallies.special_row_counts import SpecialRowCounts

SCHEMA = "trueodds.tally/1"
MAX_NULL_SIZE = 2_000  # K·bins up to which the null covariance between the classes is stored


@dataclass(frozen=True, slots=True, eq=False)
class TallySums:
    """The fields of a `Tally`, and methods that write them to JSON."""

    kind: str  # of the predictions: "classes", "confidence" or "multilabel"
    classes: tuple[Any, ...]  # names of the classes
    dtype: str  # type of the probabilities; several are joined by +
    bins: int  # number of uniform bins of the null covariance
    grid: int | None  # number of bins per axis of the joint lenses
    view_names: tuple[str, ...]  # the binary views in the order of `cells`; classes by number
    n: int  # number of rows
    weight: float  # total weight
    cells: Cells  # sums per cell of the binary views
    joint: Mapping[str, SimplexCells]  # sums per cell of the joint lenses, by the name of the lens
    null: Array | None  # (K·bins, K·bins) upper triangle, see `Tally.null_covariance`
    scores: Mapping[str, ProperScoreSums]  # by the name of the score
    counts: SpecialRowCounts
    groups: Mapping[str, Mapping[str, Self]]  # column -> value -> tally of the default lens
    batches: BatchFingerprints = field(default_factory=BatchFingerprints)  # of all rows; groups have none

    def __add__(self, other: Any) -> Self:
        raise NotImplementedError

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def to_dict(self) -> dict[str, Any]:
        """Return the tally as plain values for JSON.

        Returns
        -------
        dict
            The content of the file that `save` writes.
        """
        return to_dict(self)

    def save(self, path: str | Path) -> None:
        """Write the tally to a file, atomically.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        save(self, path)


def to_dict(tally: TallySums) -> dict[str, Any]:
    """Return the tally as plain values that JSON represents without loss."""
    batches = {"rows": dict(sorted(tally.batches.rows.items())), "repeated_rows": tally.batches.repeated_rows}
    content = {"schema": SCHEMA, "version": trueodds.__version__, **_sums_to_dict(tally), "batches": batches}
    return {**content, "sha256": checksum(content)}


def checksum(content: Mapping[str, Any]) -> str:
    """Return a hash of all that a saved tally holds, except its own checksum.

    It does not depend on whitespace, the order of the keys, and how a number is written, such as 2 or 2.0, so that
    other programs may rewrite the file.

    >>> checksum({"n": 2, "weight": 2.0}) == checksum({"weight": 2, "n": 2.0, "sha256": "..."})
    True
    """
    unsigned = _with_floats({key: value for key, value in content.items() if key != "sha256"})
    return sha256(json.dumps(unsigned, sort_keys=True).encode()).hexdigest()


def _with_floats(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_floats(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_floats(item) for item in value]
    return float(value) if type(value) is int else value


def digest(tally: TallySums) -> str:
    return sha256(to_strict_json(_sums_to_dict(tally)).encode()).hexdigest()


def dumps(tally: TallySums) -> str:
    """Return the tally as a JSON text, in which floats keep every bit.

    >>> from trueodds.data.predictions import Predictions
    >>> from trueodds.tallies.tally import Tally
    >>> dumps(Tally.from_predictions(Predictions([1, 0], [0.9, 0.2])))[:27]
    '{"schema":"trueodds.tally/1'
    """
    return to_strict_json(to_dict(tally))


def to_strict_json(value: Any) -> str:
    """Return the value as JSON without whitespace; raise TO407 for infinite numbers, which JSON does not have."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        remedy = "Divide the weights by their mean."
        raise InputError("TO407", "The tally holds a sum that cannot be saved.", "an infinite one", remedy) from None


def save(tally: TallySums, path: str | Path) -> None:
    json_files.write_text(path, dumps(tally) + "\n", "TO407")


def _sums_to_dict(tally: TallySums) -> dict[str, Any]:
    """The fields of the tally as plain values, with those of its groups."""
    names = UNWEIGHTED_SUMS if tally.cells.is_unweighted else WEIGHTED_SUMS
    return {
        "kind": tally.kind,
        "classes": list(tally.classes),
        "dtype": tally.dtype,
        "bins": tally.bins,
        "grid": tally.grid,
        "slots": list(tally.view_names),
        "n": tally.n,
        "weight": tally.weight,
        "cells": {
            "index": tally.cells.index.tolist(),
            "n": tally.cells.n.tolist(),
            "sums": {name: column.tolist() for name, column in zip(names, tally.cells.sums.T, strict=True)},
        },
        "joint": {
            name: {key: getattr(cells, key).tolist() for key in ("keys", "n", "w", "ww", "wp", "wy")}
            for name, cells in tally.joint.items()
        },
        "null": _null_to_dict(tally.null),
        "scores": {name: _fields_by_name(sums) for name, sums in tally.scores.items()},
        "counts": _fields_by_name(tally.counts),
        "groups": {
            column: {value: _sums_to_dict(part) for value, part in values.items()}
            for column, values in tally.groups.items()
        },
    }


def _fields_by_name(sums: ProperScoreSums | SpecialRowCounts) -> dict[str, float]:
    """The fields by name. `asdict` would copy each number individually, which is ten times slower."""
    return {field.name: getattr(sums, field.name) for field in fields(sums)}


def _null_to_dict(null: Array | None) -> dict[str, list[Any]] | None:
    """The nonzero entries of the null covariance, by their index in the flattened matrix."""
    if null is None:
        return None
    index = np.flatnonzero(null)
    return {"index": index.tolist(), "value": null.ravel()[index].tolist()}
