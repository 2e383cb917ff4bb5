"""Fixtures of the tests of audits."""

from collections.abc import Iterator

import pytest

from tests.few_candidates import few_candidates


@pytest.fixture
def reduced_candidates() -> Iterator[None]:
    """An audit chooses its recalibration among three calibrators."""
    with few_candidates():
        yield
