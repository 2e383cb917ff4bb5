"""Fixtures of the tests of studies."""

from __future__ import annotations

import importlib.util

import pytest


@pytest.fixture
def only_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let studies keep their tables only, as where matplotlib is not installed: most of their time is spent drawing."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else find_spec(name, *rest)
    )
