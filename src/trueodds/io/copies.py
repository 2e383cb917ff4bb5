"""Find files with the same content among those that are read together."""

from __future__ import annotations

import filecmp
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence

from trueodds.core.errors import Note

MAX_LISTED_COPIES = 5  # number of copies that a note names


def note_copies(paths: Sequence[str]) -> list[Note]:
    """Return a note if files have the same content. Names that are not files, such as "pandas frame", are ignored."""
    copies = list(_find_copies(paths) if len(paths) > 1 else ())
    if not copies:
        return []
    listed = ", ".join(f"{copy} is a copy of {first}" for copy, first in copies[:MAX_LISTED_COPIES])
    more = f", and {len(copies) - MAX_LISTED_COPIES:,} more" if len(copies) > MAX_LISTED_COPIES else ""
    return [Note("TN172", f"Files have the same content, so their rows count twice: {listed}{more}.")]


def _find_copies(paths: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield each file whose content is that of an earlier one, with the earlier one.

    Only files of one size are compared, up to the first difference.
    """
    paths_by_size: dict[int, list[str]] = defaultdict(list)
    for path in paths:
        try:
            same_size = paths_by_size[os.path.getsize(path)]
            first = next((earlier for earlier in same_size if filecmp.cmp(earlier, path, shallow=False)), None)
        except OSError:  # a data frame in memory
            continue
        if first is None:
            same_size.append(path)
        else:
            yield path, first
