"""Which question is a record about, and which records are about the same one?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.sources.records import Record, nan

Array = NDArray[Any]


def key_of(record: Record, field: str) -> str:
    """What a field of names says, as text: a group, or a question."""
    value = record.value(field)
    if nan(value):
        raise record.missing(field)
    if isinstance(value, (list, dict)):
        raise record.wrong(field, value, "Choose a field of texts or numbers.")
    return record.name(field, value)


def questions_of(rows: list[Record], asked: int, question: str | None) -> int | None:
    """How many questions there are, where that is fewer than the answers asked for; a row that abstains may name none."""
    if question is None:
        return None
    named = {each.text(question, each.value(question)) for each in rows if each.holds(question)}
    return len(named) if len(named) < asked else None


def ids_of(given: list[Record], question: str | None) -> Array | None:
    """The question of each row, as the records have it: whole numbers, else texts."""
    if question is None:
        return None
    keys = np.array([key_of(each, question) for each in given])
    plain = np.array([each.value(question) for each in given])
    return plain if plain.dtype.kind in "iu" else keys


def clusters_of(ids: Array | None) -> Array | None:
    """The question of each row, where one has several; numbers in their order, whether a file writes them as text."""
    if ids is None or len(np.unique(ids)) == len(ids):
        return None
    whole = all(
        str(each).isascii() and str(each).isdigit() and len(str(each)) < 19 and str(int(each)) == str(each)
        for each in ids.tolist()
    )
    return np.array([int(each) for each in ids.tolist()]) if whole else ids
