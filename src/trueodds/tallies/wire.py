"""How is a tally kept in a file? Versioned strict JSON, checked field by field on load."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

import trueodds
from trueodds.core import saved
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.tallies.cells import FULL, PLAIN
from trueodds.tallies.content import Field, refuse
from trueodds.tallies.counts import Counts
from trueodds.tallies.scores import ScoreSums
from trueodds.tallies.tally import Tally

SCHEMA = "trueodds.tally/1"


def to_dict(tally: Tally) -> dict[str, Any]:
    """The tally as plain values that JSON holds without loss."""
    return {"schema": SCHEMA, "version": trueodds.__version__, **_to_dict(tally)}


def from_dict(value: Any) -> Tally:
    """The tally behind `to_dict`; TO402 names the field that is wrong."""
    if not isinstance(value, dict) or "schema" not in value:
        refuse("schema", "none", "Only files that `save` wrote are tallies.")
    if value["schema"] != SCHEMA:
        refuse("schema", repr(value["schema"])[:80], f"A tally has the schema {SCHEMA}.")
    field = Field(value, "")
    field.text("version")
    return field.tally()


def dumps(tally: Tally) -> str:
    """The tally as one JSON text; floats keep every bit.

    >>> from trueodds.data.predictions import Predictions
    >>> loads(dumps(Tally.of(Predictions([1, 0], [0.9, 0.2])))).n
    2
    """
    return json_of(to_dict(tally))


def json_of(value: Any) -> str:
    """Strict JSON without blanks."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        fix = "Divide the weights by their mean."
        raise InputError("TO407", "The tally holds a sum that no file can.", "an infinite one", fix) from None


def loads(text: str) -> Tally:
    """The tally of a JSON text; TO402 where it is none."""
    return from_dict(saved.parsed(text, "TO402"))


def save(tally: Tally, path: str | Path) -> None:
    """Write the tally to a file, whole or not at all; TO407 where the folder cannot be written."""
    saved.write(path, dumps(tally) + "\n", "TO407")


def load(path: str | Path) -> Tally:
    """Read a tally that `save` wrote; TO407 where there is no such file, TO402 where it is no tally."""
    if not Path(path).is_file():
        raise InputError("TO407", "The tally cannot be read.", f"no file {path}", "Check the path.")
    return from_dict(saved.read(path, "TO402"))


def _to_dict(tally: Tally) -> dict[str, Any]:
    names = PLAIN if tally.cells.plain else FULL
    return {
        "kind": tally.kind,
        "classes": list(tally.classes),
        "dtype": tally.dtype,
        "bins": tally.bins,
        "grid": tally.grid,
        "slots": list(tally.slots),
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
        "scores": {name: _numbers(sums) for name, sums in tally.scores.items()},
        "counts": _numbers(tally.counts),
        "groups": {
            column: {value: _to_dict(part) for value, part in values.items()} for column, values in tally.groups.items()
        },
    }


def _numbers(sums: ScoreSums | Counts) -> dict[str, float]:
    """The fields by name; `asdict` would copy each number by itself, which costs ten times as much."""
    return {field.name: getattr(sums, field.name) for field in fields(sums)}


def _null_to_dict(null: Array | None) -> dict[str, list[Any]] | None:
    if null is None:
        return None
    index = np.flatnonzero(null)
    return {"index": index.tolist(), "value": null.ravel()[index].tolist()}
