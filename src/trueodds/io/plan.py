"""Which columns are read, what is each of them, and what do they call the classes?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trueodds.core.errors import Note
from trueodds.data.class_columns import are_numbers


@dataclass(frozen=True, slots=True)
class Plan:
    """The columns that are read and what each of them is."""

    kind: str  # "classes", "confidence", "votes" or "multilabel"
    probs: tuple[str, ...]  # of probabilities, logits or the confidence
    suffixes: tuple[str, ...] | None  # what the columns call the classes; None where they do not say
    truth: tuple[str, ...]  # the label, the votes, the 0/1 columns, or whether it was correct; none to apply
    weight: str | None = None
    group: tuple[str, ...] = ()
    cluster: str | None = None
    row_id: str | None = None
    logits: bool = False  # whether `probs` are columns of logits
    notes: tuple[Note, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is read, each once."""
        others = [name for name in (self.weight, *self.group, self.cluster, self.row_id) if name is not None]
        return tuple(dict.fromkeys([*self.probs, *self.truth, *others]))

    @property
    def numeric(self) -> frozenset[str]:
        """The columns that a format without types reads as numbers; labels, groups and clusters may be text."""
        truth = self.truth if self.kind in ("votes", "multilabel") else ()
        return frozenset([*self.probs, *truth, *([self.weight] if self.weight else [])])

    def describe(self) -> dict[str, Any]:
        """The columns by what they are used for, for a report."""
        truth = {"votes": "votes", "multilabel": "multilabel", "confidence": "correct"}.get(self.kind, "label")
        probs = "logits" if self.logits else "confidence" if self.kind == "confidence" else "probs"
        columns: dict[str, Any] = {probs: list(self.probs)}
        if self.truth:
            columns[truth] = list(self.truth) if self.kind in ("votes", "multilabel") else self.truth[0]
        columns |= {"weight": self.weight} if self.weight else {}
        columns |= {"group": list(self.group)} if self.group else {}
        columns |= {"cluster": self.cluster} if self.cluster else {}
        return columns | ({"row_id": self.row_id} if self.row_id else {})


def numbered(k: int) -> tuple[str, ...]:
    """The suffixes that say no more than the column's number."""
    return tuple(str(i) for i in range(k))


def are_nonstandard_numbers(suffixes: tuple[str, ...]) -> bool:
    """Whether the suffixes are numbers, but not 0, 1, … in this order."""
    return are_numbers(suffixes) and suffixes != numbered(len(suffixes))
