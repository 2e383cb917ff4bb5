"""Calibration of probabilistic classifiers: measure it, test it, draw it, and recalibrate."""

from typing import Any as _Any

import lazy_loader as _lazy

__version__ = "0.1.0"

# The public names and their modules are listed in __init__.pyi, which editors and type checkers read.
# Each name is loaded on first use.
_load, _list, _names = _lazy.attach_stub(__name__, __file__)
# The package of the tests is called `hypotests`, because a package `tests` would be taken for the tests of the library.
__all__ = sorted({*_names, "tests"} - {"hypotests"})


def __getattr__(name: str) -> _Any:
    return _load("hypotests" if name == "tests" else name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
