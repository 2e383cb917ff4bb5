"""Which question is a record about, and which records are about the same one?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.io.records import Record, nan


def key_of(record: Record, field: str) -> str:
    """What a field of names says, as text: a group, or a question."""
    value = record.value(field)
    if nan(value):
        raise record.missing(field)
    if isinstance(value, (list, dict)):
        raise record.wrong(field, value, "Choose a field of texts or numbers.")
    return record.name(field, value)


def questions_of(rows: list[Record], n_queries: int, question: str | None) -> int | None:
    """How many questions there are, where that is fewer than the answers asked for; a row that abstains may name none."""
    if question is None:
        return None
    named = {row.text(question, row.value(question)) for row in rows if row.holds(question)}
    return len(named) if len(named) < n_queries else None


def ids_of(rows: list[Record], question: str | None) -> Array | None:
    """The question of each row, as the records have it: whole numbers, else texts."""
    if question is None:
        return None
    keys = np.array([key_of(row, question) for row in rows])
    plain = np.array([row.value(question) for row in rows])
    return plain if plain.dtype.kind in "iu" else keys


def clusters_of(ids: Array | None) -> Array | None:
    """The question of each row, where one has several; numbers in their order, whether a file writes them as text."""
    if ids is None or len(np.unique(ids)) == len(ids):
        return None
    all_integers = all(
        str(value).isascii() and str(value).isdigit() and len(str(value)) < 19 and str(int(value)) == str(value)
        for value in ids.tolist()
    )
    return np.array([int(value) for value in ids.tolist()]) if all_integers else ids
