"""Can the probabilities of a classifier be believed? How far off, where, is it chance, and what fixes it."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "InputError": "trueodds.core.errors",
    "Predictions": "trueodds.problem.predictions",
    "read": "trueodds.sources",
    "measure": "trueodds.ask",
    "test": "trueodds.ask",
    "fit": "trueodds.ask",
    "draw": "trueodds.ask",
    "load": "trueodds.ask",
    "tally": "trueodds.ask",
    "audit": "trueodds.audit",
}

__all__ = ["InputError", "Predictions", "audit", "draw", "fit", "load", "measure", "read", "tally", "test"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'trueodds' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
