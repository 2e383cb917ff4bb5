"""Let audits choose their recalibration among three calibrators, which halves the time of an audit of a few rows.

For tests of what does not depend on this choice: tests/reports has audits that choose among all calibrators, and
tests/calibrators/test_auto.py the level of the choice.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trueodds.calibrators import CALIBRATORS

FEW = "identity", "temperature", "structured"


@contextmanager
def few_candidates() -> Iterator[None]:
    """Within it, `auto` compares only these calibrators by default."""
    with pytest.MonkeyPatch.context() as patch:
        for name in CALIBRATORS.names():
            patch.setattr(CALIBRATORS.load(name), "candidate", name in FEW)
        yield
