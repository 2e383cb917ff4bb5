"""Mark some parameters of a test as slow, and try fewer examples of a law where slow tests are left out."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings

slow_tests_run = True  # set by tests/conftest.py


def slow_except(values: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """The values as parameters of a test, those that are not `quick` with the marker `slow`."""
    values = list(values)
    assert set(quick) <= set(values), "a parameter that no longer exists"
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


def beyond_a_few(items: Iterable[pytest.Item], few: int = 5) -> Iterator[pytest.Item]:
    """Yield all but `few` parameters of each test; those that are left are scattered, and always the same."""
    parameters: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None:
            parameters[item.nodeid.partition("[")[0]].append(item)
    for same_test in parameters.values():
        yield from sorted(same_test, key=lambda item: crc32(item.nodeid.encode()))[few:]


def law_examples() -> settings:
    """Settings of Hypothesis for a law of every member of a registry: the same 12 examples on every run.

    Where slow tests are left out, these are the first 4 of them for each member.
    """
    return settings(max_examples=12 if slow_tests_run else 4, deadline=None, derandomize=True)
