"""Write the state of a monitor atomically, and refuse to overwrite what another process saved meanwhile."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from trueodds.core import json_files
from trueodds.core.errors import InputError
from trueodds.tallies.tally_sums import checksum, to_strict_json


def write_state(path: str, content: Mapping[str, Any], known: str | None) -> None:
    """Write a state; `known` is the checksum of the state in the file from which it was made, None for a new file."""
    with _lock(path):
        if os.path.exists(path) and _saved_checksum(path) != known:
            raise InputError(
                "TO913",
                "The file was saved by another process, or is not the state from which this one was made.",
                path,
                "Load it and update it again, or save to another file.",
            )
        json_files.write_text(path, to_strict_json(content), "TO905")


def _saved_checksum(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return None
    return checksum(content) if isinstance(content, dict) else None


@contextmanager
def _lock(path: str) -> Iterator[None]:
    """Lock the folder of a file, where the system can, so that of two writers the second finds the state of the first.

    The folder also exists before the file does.
    """
    descriptor = None
    with suppress(ImportError, OSError):
        import fcntl

        descriptor = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
