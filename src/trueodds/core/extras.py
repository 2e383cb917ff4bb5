"""How is an optional library installed? The fix of every error about a missing one."""

from __future__ import annotations


def install(extra: str) -> str:
    """What to run for an extra, as it works for a package that is in no index yet.

    >>> install("report")
    "Run in a clone of trueodds: pip install '.[report]'"
    """
    return f"Run in a clone of trueodds: pip install '.[{extra}]'"


def install_studies() -> str:
    """What to run for the studies, which are a package of their own in the same clone.

    >>> install_studies()
    'Run in a clone of trueodds: pip install ./studies'
    """
    return "Run in a clone of trueodds: pip install ./studies"
