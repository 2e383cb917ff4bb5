"""Fixtures of the tests of audits."""

import pytest

from trueodds.calibrators import CALIBRATORS

REDUCED = "identity", "temperature", "structured"


@pytest.fixture
def reduced_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit chooses its recalibration among three calibrators, which takes a quarter of the time.

    For tests of what does not depend on this choice; tests/calibrators/test_auto.py has the level of the choice.
    """
    for name in CALIBRATORS.names():
        monkeypatch.setattr(CALIBRATORS.load(name), "candidate", name in REDUCED)
