"""How is an optional library installed? The fix of every error about a missing one."""

from __future__ import annotations


def install(extra: str) -> str:
    """What to run for an extra, as it works for a package that is in no index yet.

    >>> install("report")
    "Run in a clone of trueodds: pip install '.[report]'"
    """
    return f"Run in a clone of trueodds: pip install '.[{extra}]'"
