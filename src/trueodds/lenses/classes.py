"""Lenses on given classes: canonical, positive class, one class, class-wise, and groups of classes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import Integer, parse_digits
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.data.class_names import looks_like_a_number
from trueodds.data.log_probabilities import InducedProbabilities
from trueodds.data.predictions import Predictions
from trueodds.lenses.base import Lens, OutcomeCodes, class_probability, event_codes
from trueodds.lenses.row_sources import ClassColumn, ClassColumns, ExactProbabilities, RowSource, ViewColumn

ClassName = str | bool | Integer | float


@dataclass(frozen=True, eq=False)
class Canonical(Lens):
    """Canonical lens: the whole probability vector against the observed class. With two classes it is binary."""

    name = "canonical"

    def probabilities(self, preds: Predictions) -> list[Array]:
        return [class_probability(preds, 1)] if preds.k == 2 else [preds.P]

    def unweighted_rows(self, preds: Predictions, y: Array) -> Sequence[RowSource] | None:
        return [ViewColumn(class_probability(preds, 1), y, 1)] if preds.k == 2 else None

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        return [OutcomeCodes(np.arange(preds.k)[None, :])]


@dataclass(frozen=True, eq=False)
class Positive(Lens):
    """The probability of the second of two classes."""

    name = "positive"

    def probabilities(self, preds: Predictions) -> list[Array]:
        return [class_probability(preds, 1)]

    def unweighted_rows(self, preds: Predictions, y: Array) -> Sequence[RowSource]:
        return [ViewColumn(class_probability(preds, 1), y, 1)]

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        return [event_codes(1, 2)]

    def check(self, preds: Predictions) -> None:
        if preds.kind != "classes":
            super().check(preds)
        if preds.k != 2:
            raise InputError(
                "TO204",
                "The lens positive is for two classes.",
                f"{preds.k} classes",
                "Use ⟨lens='class:NAME'⟩ for one class of several.",
            )


@dataclass(frozen=True, eq=False)
class Class(Lens):
    """Class lens: probability of one class, by number or name, against whether it was observed."""

    class_name: ClassName  # or the number of the class

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"class:{self.class_name}"

    def probabilities(self, preds: Predictions) -> list[Array]:
        return [class_probability(preds, c) for c in self.class_columns(preds)]

    def unweighted_rows(self, preds: Predictions, y: Array) -> Sequence[RowSource]:
        return [_one_vs_rest_rows(preds, y, c) for c in self.class_columns(preds)]

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        return [event_codes(c, preds.k) for c in self.class_columns(preds)]

    def class_columns(self, preds: Predictions) -> list[int]:
        return [class_number(self.class_name, preds.classes)]

    def view_names(self, preds: Predictions) -> list[str]:
        return [f"class:{preds.classes[c]}" for c in self.class_columns(preds)]

    def check(self, preds: Predictions) -> None:
        if preds.kind == "confidence":
            super().check(preds)
        self.class_columns(preds)


@dataclass(frozen=True, eq=False)
class Classwise(Lens):
    """Class-wise lens: each class against the rest, one binary view per class."""

    name = "classwise"

    def probabilities(self, preds: Predictions) -> list[Array]:
        return [class_probability(preds, c) for c in range(preds.k)]

    def unweighted_rows(self, preds: Predictions, y: Array) -> Sequence[RowSource]:
        """Return the row source of each class, whose bin sums are computed in one pass for all classes."""
        if preds.kind == "multilabel" or preds.p.ndim == 1:
            return [_one_vs_rest_rows(preds, y, c) for c in range(preds.k)]
        classes = ClassColumns(preds.p, y)
        return [ClassColumn(classes, c) for c in range(preds.k)]

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        return [event_codes(c, preds.k) for c in range(preds.k)]

    def complement_source(self, preds: Predictions, i: int) -> ExactProbabilities | None:
        """Return a source that computes complements as sums over the other classes."""
        if preds.kind != "classes":
            return super().complement_source(preds, i)
        return InducedProbabilities(preds, lambda: event_codes(i, preds.k).code)

    def class_columns(self, preds: Predictions) -> list[int]:
        return list(range(preds.k))

    def view_names(self, preds: Predictions) -> list[str]:
        return [f"class:{name}" for name in preds.classes]

    def check(self, preds: Predictions) -> None:
        if preds.kind == "confidence":
            super().check(preds)


@dataclass(frozen=True, eq=False)
class Groups(Lens):
    """Blocks of classes as outcomes, `groups:[[0,1],[2]]`. With two blocks the lens is binary (the second block)."""

    blocks: tuple[tuple[ClassName, ...], ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        return "groups:" + json.dumps([list(block) for block in self.blocks], separators=(",", ":"))

    def probabilities(self, preds: Predictions) -> list[Array]:
        """Return the probability of each block (n, blocks), or of the second of two blocks (n,)."""
        sums = [preds.P[:, block].sum(axis=1, dtype=np.float64) for block in self._class_numbers_of_blocks(preds)]
        return [sums[1]] if len(sums) == 2 else [np.stack(sums, axis=1)]

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        code = np.empty((1, preds.k), dtype=np.int64)
        for number, block in enumerate(self._class_numbers_of_blocks(preds)):
            code[0, block] = number
        return [OutcomeCodes(code)]

    def _class_numbers_of_blocks(self, preds: Predictions) -> list[list[int]]:
        return [[class_number(name, preds.classes) for name in block] for block in self.blocks]

    def check(self, preds: Predictions) -> None:
        super().check(preds)
        numbers = [c for block in self._class_numbers_of_blocks(preds) for c in block]
        if len(self.blocks) < 2 or not all(self.blocks) or sorted(numbers) != list(range(preds.k)):
            raise InputError(
                "TO204",
                "Groups must be at least two blocks that contain every class exactly once.",
                self.name,
                f"The classes are {list(preds.classes)}.",
            )


def _one_vs_rest_rows(preds: Predictions, y: Array, c: int) -> RowSource:
    """Rows of one class against the rest. Independent labels have a column each."""
    if preds.kind == "multilabel":
        return ViewColumn(preds.p[:, c], y[:, c], 1)
    return ViewColumn(class_probability(preds, c), y, c)


def class_number(class_name: Any, classes: tuple[Any, ...]) -> int:
    """Return the number of a class, given by its name, or by its number if no class name looks like a number."""
    for i, name in enumerate(classes):
        if str(class_name) == str(name):
            return i
    no_class_is_a_number = not any(looks_like_a_number(name) for name in classes)
    number = parse_digits(str(class_name))
    if no_class_is_a_number and number is not None and number < len(classes):
        return number
    raise InputError(
        "TO204",
        "Unknown class.",
        describe(class_name),
        suggest_names(str(class_name)[:80], [str(name) for name in classes]),
    )
