"""Is the checksum of a saved file that of its canonical JSON, although it is hashed in pieces?"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from trueodds.tallies.tally_sums import checksum


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"b": [], "a": {}, "c": None},
        {"n": 0.5, "é": "⟨", "list": [[1.5, [2.5, {"z": [1.0], "a": {}}]], "x", True]},
        {"d": {"d": {"d": {"b": [1.0, 2.0], "a": ()}}}, "t": (1.25, (2.5,))},
    ],
)
def test_the_checksum_is_that_of_the_sorted_json(content: dict[str, Any]) -> None:
    assert checksum(content | {"sha256": "x"}) == sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
