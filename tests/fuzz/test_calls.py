"""Do calls with any settings and data give a right number, or an InputError that says what was wrong?"""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import NO_SKIPS
from tests.fuzz.calls import MASKED, VERBS, run

SEED = 0 if NO_SKIPS else int(np.random.SeedSequence().generate_state(1)[0])
# 20,000 calls in half a minute of one processor: most of them of the verbs that take least.
CALLS = {"measure": 4000, "predictions": 8000, "instance": 6000, "audit": 700, "tally": 400, "power": 100}
FEWER = 160


@pytest.mark.slow
@pytest.mark.filterwarnings(f"ignore:{MASKED}")
@pytest.mark.parametrize("verb", VERBS)
def test_any_call_is_right_or_refused(verb: str) -> None:
    """`python -m tests.fuzz.calls --verb VERB --seed SEED` makes the same calls again, and as many as are asked for."""
    counts, failures = run(verb, CALLS.get(verb, FEWER), SEED)
    assert failures == []
    assert counts["refused"] > 0.1 * sum(counts.values())
    assert verb == "audit" or counts["right"] > 0.01 * sum(counts.values())
    assert verb != "measure" or counts["calculated anew"] > 0.1 * sum(counts.values())
