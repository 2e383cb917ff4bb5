"""Base class of tallies: the sums and special rows that a tally counts, the views it stores, and their JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

import trueodds
from trueodds.core import json_files
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.probabilities import notes_on_rounding
from trueodds.lenses import classes as lenses
from trueodds.lenses.base import Lens
from trueodds.tallies.batch_fingerprints import BatchFingerprints
from trueodds.tallies.cells import SIMPLEX_SUMS, UNWEIGHTED_SUMS, WEIGHTED_SUMS, Cells, SimplexCells
from trueodds.tallies.proper_score_sums import ProperScoreSums

# Fields of `SpecialRowCounts` that are merged by their maximum. The other fields are added.
MAXIMUM_FIELDS = ("excess", "worst_sum")
_SPLIT_LEVELS = 3  # outer levels of a content whose parts are hashed one by one


@dataclass(frozen=True, slots=True)
class SpecialRowCounts:
    """Counts of special rows, such as rows with tied probabilities. The counts of two tallies are merged with `+`.

    Integers are counts; the other fields, `MAXIMUM_FIELDS`, are largest values.

    >>> both = SpecialRowCounts(zeros=2, excess=1e-7) + SpecialRowCounts(zeros=1, excess=3e-7)
    >>> both.zeros, both.excess
    (3, 3e-07)
    """

    zeros: int = 0  # probabilities that are exactly 0, over all classes
    ones: int = 0  # probabilities that are exactly 1
    above: int = 0  # probabilities above 1 by rounding
    inexact_sums: int = 0  # rows whose sum differs from 1 by more than the rounding of their dtype
    ties: int = 0  # rows with several largest probabilities
    true_zeros: int = 0  # rows with an observed outcome of predicted probability 0
    voted: int = 0  # rows whose outcome is votes
    excess: float = 0.0  # largest excess of a probability over 1
    worst_sum: float = 0.0  # largest difference of the sum of a row from 1

    def __add__(self, other: SpecialRowCounts) -> SpecialRowCounts:
        merged = {}
        for name in (item.name for item in fields(self)):
            a, b = getattr(self, name), getattr(other, name)
            merged[name] = max(a, b) if name in MAXIMUM_FIELDS else a + b
        return SpecialRowCounts(**merged)

    def notes(self) -> tuple[Note, ...]:
        """Notes on probabilities above 1 and on sums other than 1, which are kept as given."""
        return tuple(notes_on_rounding(self.above, self.excess, self.inexact_sums, self.worst_sum))


def integer_fields(record_type: type[Any]) -> frozenset[str]:
    """Return the names of the fields of `SpecialRowCounts` or `ProperScoreSums` that are integers in saved tallies."""
    return frozenset(item.name for item in fields(record_type) if item.type == "int")


COUNT_FIELDS = tuple(field.name for field in fields(SpecialRowCounts))  # names of all fields


LARGEST_PROBABILITY_LENSES = ("confidence", "top-1", "rank:1")  # lenses that are read from the view `confidence`


class DefaultViews(NamedTuple):
    """The binary views of a tally before those of additional lenses, in the order of its cells."""

    ranks: int  # number of largest probabilities of each row, each of which is a view
    classes: range  # numbers of the classes, each of which is a view against the rest


def default_views(kind: str, k: int, *, default_lens_only: bool) -> DefaultViews:
    """Return which views are stored by default.

    The tally of a group, and one of `tally_default_lens`, stores only the views of the default lens.
    """
    if kind == "confidence":
        return DefaultViews(1, range(0))
    if kind == "multilabel":
        return DefaultViews(0, range(k))
    if default_lens_only:
        return DefaultViews(0, range(1, 2)) if k == 2 else DefaultViews(1, range(0))
    return DefaultViews(1 if k == 2 else 3, range(k))


def view_names(ranks: int, classes: range) -> tuple[str, ...]:
    """Return the names of the views of the `ranks` largest probabilities and of the classes, which have numbers."""
    return (*("confidence", "rank:2", "rank:3")[:ranks], *(f"class:{c}" for c in classes))


def stored_views_of_lens(lens: Lens, kind: str, classes: tuple[Any, ...]) -> list[tuple[str, str]]:
    """Return the views from which a lens is read: pairs of the stored name and the name of the view in the lens.

    The stored name has the number of a class, the other one its name. The list is empty if there are more than two
    classes and the lens is `positive` or `canonical`. Whether the views are stored is not checked.
    """
    has_class_probabilities = kind != "confidence"
    if lens.name in LARGEST_PROBABILITY_LENSES:
        return [("confidence", lens.name)]
    if isinstance(lens, (lenses.Positive, lenses.Canonical)):
        return [("class:1", lens.name)] if kind == "classes" and len(classes) == 2 else []
    if isinstance(lens, lenses.Class) and has_class_probabilities:
        c = lenses.class_number(lens.class_name, classes)
        return [(f"class:{c}", f"class:{classes[c]}")]
    if isinstance(lens, lenses.Classwise) and has_class_probabilities:
        return [(f"class:{c}", f"class:{name}") for c, name in enumerate(classes)]
    return [(lens.name, lens.name)]


def lens_names(stored_names: tuple[str, ...], kind: str, classes: tuple[Any, ...]) -> list[str]:
    """Return the names of the lenses that can be read from these stored views."""
    class_view_names = [name for name in stored_names if name.startswith("class:")]
    names = [name for name in stored_names if not name.startswith("class:")]
    if kind == "classes" and len(classes) == 2 and "class:1" in class_view_names:
        names += ["positive", "canonical"]
    if len(class_view_names) == len(classes):
        names.append("classwise")
    return names + [f"class:{classes[int(name.removeprefix('class:'))]}" for name in class_view_names]


SCHEMA = "trueodds.tally/1"  # Saved
MAX_NULL_SIZE = 2_000  # K·bins up to which the null covariance between the classes is stored


@dataclass(frozen=True, slots=True, eq=False)
class TallySums:
    """The fields of a `Tally`, and methods that write them to JSON."""

    kind: str  # of the predictions: "classes", "confidence" or "multilabel"
    classes: tuple[Any, ...]  # names of the classes
    dtype: str  # type of the probabilities; several are joined by +
    bins: int  # number of uniform bins of the null covariance
    view_names: tuple[str, ...]  # the binary views in the order of `cells`; classes by number
    n: int  # number of rows
    weight: float  # total weight
    cells: Cells  # sums per cell of the binary views
    counts: SpecialRowCounts
    null: Array | None = None  # (K·bins, K·bins) upper triangle, see `Tally.null_covariance`
    scores: Mapping[str, ProperScoreSums] = field(default_factory=dict)  # by the name of the score
    grid: int | None = None  # number of bins per axis of the joint lenses
    joint: Mapping[str, SimplexCells] = field(default_factory=dict)  # sums per cell of these lenses, by name
    groups: Mapping[str, Mapping[str, Self]] = field(default_factory=dict)  # column -> value -> its default lens
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
    result = sha256()
    for text in _sorted_json({key: value for key, value in content.items() if key != "sha256"}, _SPLIT_LEVELS):
        result.update(text.encode())
    return result.hexdigest()


def _sorted_json(value: Any, levels: int) -> Iterator[str]:
    """Yield the JSON of a value with sorted keys, in pieces for its outer levels, so that few are in memory."""
    if not levels or not isinstance(value, (Mapping, list, tuple)) or not value:
        yield json.dumps(_with_floats(value), sort_keys=True)
        return
    is_mapping = isinstance(value, Mapping)
    before = "{" if is_mapping else "["
    for item in sorted(value) if is_mapping else value:
        yield before
        if is_mapping:
            yield f"{json.dumps(item)}: "
        yield from _sorted_json(value[item] if is_mapping else item, levels - 1)
        before = ", "
    yield "}" if is_mapping else "]"


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
        "slots": list(tally.view_names),  # the name of the key in the schema
        "n": tally.n,
        "weight": tally.weight,
        "cells": {
            "index": tally.cells.index.tolist(),
            "n": tally.cells.n.tolist(),
            "sums": {name: column.tolist() for name, column in zip(names, tally.cells.sums.T, strict=True)},
        },
        "joint": {
            name: {key: getattr(cells, key).tolist() for key in ("keys", *SIMPLEX_SUMS)}
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
