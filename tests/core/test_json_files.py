"""Is what a strict JSON text cannot say refused, instead of read or written as something else?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.data.refused import refused
from trueodds.core.json_files import RepeatedKey, parse_json, strict_json


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_number_that_is_not_finite_is_refused(number: str) -> None:
    with refused("TO402", number):
        parse_json(f'{{"x": [1.5, {number}]}}', "TO402")


def test_a_finite_number_keeps_every_bit() -> None:
    values = [1.7976931348623157e308, 5e-324, 0.1, -0.0, 3]
    assert repr(parse_json(json.dumps(values), "TO402")) == repr(values)


@pytest.mark.parametrize("value", [{1: "a", "1": "b"}, [{"x": {None: 0, "None": 1}}]])
def test_keys_that_become_one_are_refused(value: Any) -> None:
    with pytest.raises(RepeatedKey):
        strict_json(value)
    assert strict_json({1: "a", 2: float("inf")}) == {"1": "a", "2": None}
