"""How the tests run: nothing slips by unseen where TRUEODDS_NO_SKIPS=1, and no example has a deadline."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from tests import slow_parameters

# Compilation makes the first example slow, so a deadline would fail at random. Where nothing may be skipped
# the examples are the same on every run.
NO_SKIPS = os.environ.get("TRUEODDS_NO_SKIPS", "") not in ("", "0")
hypothesis.settings.register_profile("house", deadline=None, derandomize=NO_SKIPS)
hypothesis.settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    """Before test files are imported, note whether slow tests run."""
    slow_parameters.slow_tests_run = not config.getoption("markexpr").startswith("not slow")


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is marked
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all but a few parameters of each test."""
    for item in slow_parameters.beyond_a_few(items):
        item.add_marker("further")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Turn off garbage collection while the files are read, and exempt what they loaded from later collections."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="module")
def no_garbage_collection() -> Iterator[None]:
    """Turn off garbage collection for tests that parse source files: it would traverse the growing syntax trees."""
    was_enabled = gc.isenabled()
    gc.disable()
    yield
    if was_enabled:
        gc.enable()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport() -> Iterator[Any]:
    """A test that skipped itself has failed."""
    return _refused((yield))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_make_collect_report() -> Iterator[Any]:
    """So has a file that skipped itself, as `importorskip` at its top does."""
    return _refused((yield))


def _refused(report: Any) -> Any:
    if NO_SKIPS and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"TRUEODDS_NO_SKIPS=1, and this was skipped: {reason}"
    return report
