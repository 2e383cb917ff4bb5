"""TallyReader: read a saved tally from versioned strict JSON, with every field validated."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from trueodds.core import json_files
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.kernels.fine_grid import CELL_EDGES, N_CELLS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.tallies.batch_fingerprints import FINGERPRINT_LENGTH, MAX_FINGERPRINTS, BatchFingerprints
from trueodds.tallies.cells import UNWEIGHTED_SUMS, WEIGHTED_SUMS, Cells, SimplexCells
from trueodds.tallies.proper_score_sums import SCORES, ProperScoreSums
from trueodds.tallies.tally import Tally
from trueodds.tallies.tally_sums import (
    MAX_NULL_SIZE,
    SCHEMA,
    SpecialRowCounts,
    checksum,
    default_views,
    integer_fields,
    view_names,
)


def from_dict(value: Any) -> Tally:
    """The tally from `to_dict`. TO402 names an invalid field."""
    if not isinstance(value, dict) or "schema" not in value:
        raise_invalid_field("schema", "none", "Only files that `save` wrote are tallies.")
    if value["schema"] != SCHEMA:
        raise_invalid_field("schema", repr(value["schema"])[:80], f"A tally has the schema {SCHEMA}.")
    reader = TallyReader(value, "")
    reader.read_text("version")
    tally = reader.read_tally()
    # Last, because the checks above name the field that was changed. Older tallies have no checksum.
    if "sha256" in value and value["sha256"] != checksum(value):
        raise_invalid_field("checksum", "content that was changed since it was written")
    return tally


def loads(text: str) -> Tally:
    return from_dict(json_files.parse_json(text, "TO402"))


def load(path: str | Path) -> Tally:
    """Read a tally that `save` wrote. Raises TO407 if the file does not exist and TO402 if it is not a tally."""
    if not Path(path).is_file():
        raise InputError("TO407", "The tally cannot be read.", f"no file {path}", "Check the path.")
    return from_dict(json_files.read_json(path, "TO402"))


PREDICTION_KINDS = ("classes", "confidence", "multilabel")
SUM_TOLERANCE = 1e-6  # relative: rounding of long sums may violate an inequality between them by so much
_FINGERPRINT_PATTERN = re.compile(f"[0-9a-f]{{{FINGERPRINT_LENGTH}}}")
MAX_ROUNDING_EXCESS = 0.5  # largest excess of a mean over 1 by rounding, for float16 tables of many classes


class TallyReader:
    """Reads and checks the fields of one JSON object of a saved tally; `path_prefix` is its path, as `groups.site.`."""

    def __init__(self, value: Any, path_prefix: str) -> None:
        if not isinstance(value, dict):
            raise_invalid_field(path_prefix.rstrip(".") or "content", repr(value)[:80])
        self.json_object, self.path_prefix = value, path_prefix

    def read_tally(self, parent: TallyReader | None = None) -> Tally:
        """Read the whole tally, or the tally of a group in the tally that `parent` reads."""
        kind = self.read_text("kind")
        self.require(kind in PREDICTION_KINDS, "kind", kind)
        classes = self.read_classes(kind)
        bins, n = self.read_integer("bins", 1), self.read_integer("n", 1)
        grid = None if self.require_value("grid") is None else self.read_integer("grid", 1)
        names = self.read_view_names(kind, classes, is_group=parent is not None)
        weight = self.read_number("weight")
        counts = self.child_reader("counts").read_record(SpecialRowCounts)
        cells = self.child_reader("cells").read_cells(len(names), n, weight, counts)
        joint = self.read_joint_lenses(grid, n)
        scores = self.read_scores(weight)
        groups = self.read_groups(kind, classes, bins, n, is_group=parent is not None)
        null = self.read_null_covariance(len(classes) * bins)
        self.require(null is None or (kind == "classes" and parent is None), "null", "a covariance without classes")
        return Tally(
            kind=kind,
            classes=classes,
            dtype=self.read_text("dtype"),
            bins=bins,
            grid=grid,
            view_names=names,
            n=n,
            weight=weight,
            cells=cells,
            joint=joint,
            null=null,
            scores=scores,
            counts=counts,
            groups=groups,
            batches=self.read_batches(n) if parent is None and "batches" in self.json_object else BatchFingerprints(),
        )

    def read_batches(self, n: int) -> BatchFingerprints:
        """Read the fingerprints of the batches of the n rows, which older tallies do not have."""
        reader = self.child_reader("batches")
        rows_reader = reader.child_reader("rows")
        names = reader.read_keys("rows")
        is_valid = len(names) <= MAX_FINGERPRINTS and all(map(_FINGERPRINT_PATTERN.fullmatch, names))
        received = f"{len(names):,} fingerprints, or one that is not {FINGERPRINT_LENGTH} hexadecimal digits"
        reader.require(is_valid, "rows", received)
        rows = {name: rows_reader.read_integer(name, 1) for name in names}
        repeated_rows = reader.read_integer("repeated_rows", 0)
        reader.require(sum(rows.values()) + repeated_rows <= n, "rows", f"more than {n:,} rows")
        return BatchFingerprints(rows, repeated_rows)

    def read_joint_lenses(self, grid: int | None, n: int) -> dict[str, SimplexCells]:
        joint = {
            name: self.child_reader("joint").child_reader(name).read_simplex_cells(grid, n)
            for name in self.read_keys("joint")
        }
        for name in joint:
            self.require(_is_lens_name(name), "joint", repr(name))
        return joint

    def read_scores(self, weight: float) -> dict[str, ProperScoreSums]:
        """Read the sums of the proper scores, by name; each has the total weight of the rows."""
        scores = {
            name: self.child_reader("scores").child_reader(name).read_record(ProperScoreSums)
            for name in self.read_keys("scores")
        }
        self.require(set(scores) in (set(SCORES), set()), "scores", str(sorted(scores)))
        for name, sums in scores.items():
            total = sums.w + sums.infinite_w
            self.require(_are_close(total, weight), f"scores.{name}.w", f"{total:.10g} for a weight of {weight:.10g}")
        return scores

    def read_groups(
        self, kind: str, classes: tuple[Any, ...], bins: int, n: int, *, is_group: bool
    ) -> dict[str, dict[str, Tally]]:
        """Read the tallies of the groups, by column and value; those of a column hold all n rows."""
        groups: dict[str, dict[str, Tally]] = {}
        for column in self.read_keys("groups"):
            reader = self.child_reader("groups")
            values = reader.child_reader(column)
            groups[column] = {value: values.child_reader(value).read_tally(self) for value in reader.read_keys(column)}
            n_rows = sum(tally.n for tally in groups[column].values())
            self.require(n_rows == n and not is_group, f"groups.{column}", f"{n_rows:,} rows of {n:,}")
            for value, tally in groups[column].items():
                has_same_layout = (tally.kind, tally.classes, tally.bins) == (kind, classes, bins)
                self.require(has_same_layout, f"groups.{column}.{value}", "other classes or bins")
        return groups

    def read_classes(self, kind: str) -> tuple[Any, ...]:
        """Read the names of the classes, which must be distinct as text."""
        names = self.read_list("classes")
        is_valid = len(names) >= (1 if kind == "multilabel" else 2) and all(
            isinstance(x, (str, int, float)) for x in names
        )
        self.require(is_valid and len({str(x) for x in names}) == len(names), "classes", repr(names)[:80])
        return tuple(names)

    def read_view_names(self, kind: str, classes: tuple[Any, ...], *, is_group: bool) -> tuple[str, ...]:
        """Read the names of the views: the default ones, followed by those of additional lenses."""
        names = self.read_list("slots")
        default_names = list(view_names(*default_views(kind, len(classes), default_lens_only=is_group)))
        extra_names = names[len(default_names) :]
        is_valid = names[: len(default_names)] == default_names and len(set(map(str, names))) == len(names)
        self.require(
            is_valid and all(isinstance(x, str) and _is_lens_name(x) for x in extra_names), "slots", repr(names)[:80]
        )
        return tuple(names)

    def read_cells(self, n_views: int, n: int, weight: float, counts: SpecialRowCounts) -> Cells:
        """Read the sums per cell: cells are in order, every view has all rows, each mean is inside its cell."""
        index = self.read_integers("index")
        rows = self.read_integers("n")
        self.require(len(rows) == len(index), "n", f"{len(rows)} values for {len(index)} cells")
        increasing = bool((np.diff(index) > 0).all()) and index[0] >= 0 and index[-1] < n_views * N_CELLS
        self.require(increasing, "index", "cells out of order or range")
        self.require(bool((rows > 0).all()), "n", "an empty cell")
        rows_per_view = np.bincount(index // N_CELLS, rows, n_views)
        self.require(bool((rows_per_view == n).all()), "n", f"{int(np.min(rows_per_view)):,} rows of {n:,} in a view")
        sums = self.child_reader("sums")
        names = WEIGHTED_SUMS if "w" in sums.json_object else UNWEIGHTED_SUMS
        sums.require(set(sums.json_object) == set(names), "", str(sorted(sums.json_object)))
        columns = {name: sums.read_floats(name, len(index)) for name in names}
        for name, column in columns.items():
            # p(1 − p) falls below 0 where p lies above 1 by rounding
            low = -columns["ww"] * MAX_ROUNDING_EXCESS if name == "wwv" else 0.0
            sums.require(bool((column >= low).all()), name, f"{column.min()} below 0")
        w = columns.get("w", rows.astype(np.float64))
        for total in np.bincount(index // N_CELLS, w, n_views).tolist():
            sums.require(_are_close(total, weight), "w", f"{total:.10g} in a view for a weight of {weight:.10g}")
        sums.require(bool((columns["wy"] <= w * (1 + SUM_TOLERANCE)).all()), "wy", "more outcomes than rows")
        low, high = CELL_EDGES[:-1][index % N_CELLS], CELL_EDGES[1:][index % N_CELLS]
        high = np.where(index % N_CELLS == N_CELLS - 1, 1 + min(counts.excess, MAX_ROUNDING_EXCESS), high)
        outside = (columns["wp"] < w * low * (1 - SUM_TOLERANCE)) | (columns["wp"] > w * high * (1 + SUM_TOLERANCE))
        sums.require(not outside.any(), "wp", f"a mean outside its cell, {int(index[np.argmax(outside)])}")
        return Cells(index, rows, np.stack(list(columns.values()), axis=1))

    def read_simplex_cells(self, grid: int | None, n: int) -> SimplexCells:
        """Read the sums per cell of a grid on the simplex, with this number of bins per axis."""
        self.require(grid is not None, "", "no grid")
        assert grid is not None
        rows = self.read_integers("n")
        keys = [self.check_integers("keys", key) for key in self.read_list("keys")]
        width = len(keys[0]) if keys else 0
        is_valid = len(keys) == len(rows) and all(
            len(key) == width and max(key) < grid and min(key) >= 0 for key in keys
        )
        is_valid = is_valid and width > 1 and all(a < b for a, b in itertools.pairwise(keys))
        self.require(is_valid, "keys", "grid cells out of order or range")
        self.require(int(rows.sum()) == n and bool((rows > 0).all()), "n", f"{int(rows.sum()):,} rows of {n:,}")
        weight_sums = {name: self.read_floats(name, len(rows)) for name in ("w", "ww")}
        coordinate_sums = {name: self.read_floats(name, len(rows), width) for name in ("wp", "wy")}
        for name, column in {**weight_sums, **coordinate_sums}.items():
            self.require(bool((column >= 0).all()), name, f"{column.min()} below 0")
        return SimplexCells(grid, np.array(keys, dtype=np.int32), rows, **weight_sums, **coordinate_sums)

    def read_null_covariance(self, size: int) -> Array | None:
        """Read the upper triangle of the null covariance, (size, size); None if the tally has none."""
        if self.require_value("null") is None:
            return None
        self.require(size <= MAX_NULL_SIZE, "null", f"{size} report cells")
        reader = self.child_reader("null")
        index = reader.read_integers("index", may_be_empty=True)
        value = reader.read_floats("value", len(index))
        row, column = np.divmod(index, size)
        is_valid = bool(
            (np.diff(index) > 0).all() and (index >= 0).all() and (row < size).all() and (row <= column).all()
        )
        reader.require(is_valid, "index", "report cells out of order or range")
        null = np.zeros((size, size))
        null[row, column] = value
        return null

    def read_record(self, record_type: type[Any]) -> Any:
        """Read a dataclass of sums or counts, with integers for integer fields."""
        names, integers = [field.name for field in fields(record_type)], integer_fields(record_type)
        self.require(set(self.json_object) == set(names), "", str(sorted(self.json_object)))
        signed_names = ("ws", "wws")  # a log loss is below 0 where a probability lies above 1 by rounding
        return record_type(
            **{
                name: self.read_integer(name, 0)
                if name in integers
                else self.read_number(name, signed=name in signed_names)
                for name in names
            }
        )

    def require(self, is_valid: bool, key: str, received: str) -> None:
        if not is_valid:
            raise_invalid_field((self.path_prefix + key).rstrip("."), received)

    def require_value(self, key: str) -> Any:
        self.require(key in self.json_object, key, "nothing")
        return self.json_object[key]

    def child_reader(self, key: str) -> TallyReader:
        return TallyReader(self.require_value(key), f"{self.path_prefix}{key}.")

    def read_keys(self, key: str) -> list[str]:
        return list(self.child_reader(key).json_object)

    def read_text(self, key: str) -> str:
        value = self.require_value(key)
        self.require(isinstance(value, str), key, repr(value)[:80])
        return str(value)

    def read_integer(self, key: str, minimum: int) -> int:
        """Read an integer of at least `minimum` that fits into 64 bits."""
        value = self.require_value(key)
        self.require(type(value) is int and minimum <= value < 2**63, key, repr(value)[:80])
        return int(value)

    def read_number(self, key: str, *, signed: bool = False) -> float:
        """Read a finite number, which is not negative unless `signed`."""
        value = self.require_value(key)
        is_valid = _is_finite_number(value) and (signed or value >= 0)
        self.require(is_valid, key, repr(value)[:80])
        return float(value)

    def read_list(self, key: str) -> list[Any]:
        value = self.require_value(key)
        self.require(isinstance(value, list), key, repr(value)[:80])
        return list(value)

    def check_integers(self, key: str, value: Any) -> list[int]:
        self.require(isinstance(value, list) and all(type(x) is int for x in value), key, repr(value)[:80])
        return list(value)

    def read_integers(self, key: str, *, may_be_empty: bool = False) -> Array:
        value = self.check_integers(key, self.read_list(key))
        self.require(may_be_empty or len(value) > 0, key, "no cells")
        self.require(all(-(2**63) <= x < 2**63 for x in value), key, "a number beyond 64 bits")
        return np.array(value, dtype=np.int64)

    def read_floats(self, key: str, length: int, width: int | None = None) -> Array:
        """Read a list of finite numbers as float64, (length,); with `width` a list of lists, (length, width)."""
        value = self.read_list(key)
        rows = value if width is not None else [value]
        is_valid = len(value) == length and all(
            isinstance(row, list) and len(row) == (width or length) and all(map(_is_finite_number, row)) for row in rows
        )
        self.require(is_valid, key, f"{len(value)} values for {length}, or one that is no finite number")
        return np.array(value, dtype=np.float64)


def raise_invalid_field(
    field: str, received: str, remedy: str = "The file was modified or truncated. Tally the rows again."
) -> NoReturn:
    """Raise TO402 for an invalid field, given by its path in the file."""
    raise InputError("TO402", f"The tally's {field} is not valid.", received, remedy)


def _are_close(total: float, weight: float) -> bool:
    """Whether a total of weights is that of all rows, up to rounding."""
    return math.isclose(total, weight, rel_tol=SUM_TOLERANCE)


def _is_finite_number(value: Any) -> bool:
    """Whether a JSON value is a finite float, or an integer of 64 bits."""
    return (type(value) is float and math.isfinite(value)) or (type(value) is int and abs(value) < 2**63)


def _is_lens_name(name: str) -> bool:
    """Whether a lens has exactly this name."""
    try:
        return as_lens(name).name == name
    except InputError:
        return False
