"""Audits in tests of the public functions choose their recalibration among three calibrators."""

from collections.abc import Iterator

import pytest

from tests.few_candidates import few_candidates


@pytest.fixture(autouse=True, scope="package")
def reduced_candidates() -> Iterator[None]:
    with few_candidates():
        yield
