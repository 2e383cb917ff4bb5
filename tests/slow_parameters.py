"""Mark some parameters of a test as slow, and try fewer examples of a law where slow tests are left out."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings

slow_tests_run = True  # set by tests/conftest.py


def slow_except(values: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """The values as parameters of a test, those that are not `quick` with the marker `slow`."""
    values = list(values)
    assert set(quick) <= set(values), "a parameter that no longer exists"
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


def slow_but_every(step: int, values: Iterable[Any], *, names: int = 1) -> list[Any]:
    """The values as parameters of a test that takes so many names, all but every `step`-th with the marker `slow`."""
    marks = [pytest.mark.slow]
    return [
        value if i % step == 0 else pytest.param(*(value if names > 1 else [value]), marks=marks)
        for i, value in enumerate(values)
    ]


def law_examples() -> settings:
    """Settings of Hypothesis for a law of every member of a registry: the same 12 examples on every run.

    Where slow tests are left out, these are the first 4 of them for each member.
    """
    return settings(max_examples=12 if slow_tests_run else 4, deadline=None, derandomize=True)
