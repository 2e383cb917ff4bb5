"""The notes of an audit: those on the data, the estimates, the tests and the diagrams, in order or grouped by code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trueodds.reports.text.text_table import AuditDict


def group_notes_by_code(audit: AuditDict, *, include_diagrams: bool = True) -> list[tuple[str, str]]:
    """Return the code of each kind of note with the different texts that it has in the audit, joined by spaces.

    The notes of diagrams are of use only where the diagrams are shown.
    """
    texts_by_code: dict[str, dict[str, None]] = {}  # the inner dictionaries serve as ordered sets
    for note in iterate_notes(audit if include_diagrams else {**audit, "diagrams": ()}):
        texts_by_code.setdefault(note["code"], {})[note["text"]] = None
    return [(code, " ".join(texts)) for code, texts in texts_by_code.items()]


def iterate_notes(audit: AuditDict) -> Iterator[Mapping[str, Any]]:
    """Iterate over the notes of the audit and then of its parts, as JSON objects; a note may occur several times."""
    yield from audit.get("notes") or ()
    yield from (audit.get("recalibration") or {}).get("notes") or ()
    for result in (audit.get("decisions") or {}).values():
        yield from result.get("notes") or ()
    for section in ("measures", "tests", "diagrams"):
        for result in audit[section]:
            yield from result.get("notes") or ()
