"""Mark some parameters of a test as slow, so that `make test` runs the test with the others."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def slow_except(values: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """The values as parameters of a test, those that are not `quick` with the marker `slow`."""
    values = list(values)
    assert set(quick) <= set(values), "a parameter that no longer exists"
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]
