"""Fixtures of the tests that compute random integers as compiled code does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture
def integers_wrap_around(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As compiled code does; NumPy warns, in the thread in which this is not set."""
    monkeypatch.setenv("TRUEODDS_THREADS", "1")
    with np.errstate(over="ignore"):
        yield
