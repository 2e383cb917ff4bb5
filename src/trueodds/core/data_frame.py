"""Make a data frame of columns, with whatever library is installed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any


def to_data_frame(columns: Mapping[str, Any]) -> Any:
    """Return a pandas data frame of the columns, else a Polars one, else the columns, depending on what is installed.

    >>> list(to_data_frame({"p": [0.2, 0.8], "n": [3, 5]}))
    ['p', 'n']
    """
    for library in ("pandas", "polars"):
        try:
            return importlib.import_module(library).DataFrame(columns)
        except ImportError:
            continue
    return columns
