"""Can the probabilities of a classifier be believed? How far off, where, is it chance, and what fixes it."""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:  # what type checkers and editors see; at run time each name is loaded on first use
    from typing import Any

    from trueodds.ask import draw, fit, load, measure, power, tally, test
    from trueodds.audit.plan import audit
    from trueodds.core.errors import InputError
    from trueodds.problem.predictions import Predictions
    from trueodds.scorer import scorer
    from trueodds.sources.reading import read
    from trueodds.versus import compare

__version__ = "0.1.0"

__all__ = [
    "InputError",
    "Predictions",
    "audit",
    "compare",
    "draw",
    "fit",
    "load",
    "measure",
    "power",
    "read",
    "scorer",
    "tally",
    "test",
]

_WHERE = {
    "InputError": "trueodds.core.errors",
    "Predictions": "trueodds.problem.predictions",
    "audit": "trueodds.audit.plan",
    "compare": "trueodds.versus",
    "read": "trueodds.sources.reading",
    "scorer": "trueodds.scorer",
    **dict.fromkeys(("draw", "fit", "load", "measure", "power", "tally", "test"), "trueodds.ask"),
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'trueodds' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _Package(ModuleType):
    """`trueodds.audit` and `trueodds.tally` are functions, though folders of those names are imported beside them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _WHERE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
