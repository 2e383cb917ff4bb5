"""Is every fitted map its fields: saved, read again as the same map, and refused with any entry out of place?"""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np
import pytest

from tests.calibrators.rows import draw_predictions, made
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.saved_parameters import (
    MISSING_IN_OLD_FILES,
    NOT_SAVED,
    OMIT_DEFAULT,
    Key,
    Numbers,
    PassCount,
    Saved,
    ZeroOrOne,
)
from trueodds.calibrators.uniform_mixture import read_map
from trueodds.core.errors import InputError
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

# No field of any map may hold these.
NEVER_VALID = (None, "text", math.nan, math.inf, 1e305, -1e305, -(10**400), {"unknown": 1}, [[[[0.5]]]], [None])
NULLABLE = {"ratio"}
OPTIONAL = {"scale", "min_prob", "certainty", "units", "even", "mixing"}  # entries that are left out at a default

every = pytest.mark.parametrize("name", [name for name in CALIBRATORS.names() if name != "auto"])
classes = pytest.mark.parametrize("k", [2, 3])


def fitted_map(name, k, *, logits=False):
    P, y = draw_predictions(60, k, 1.5, 0)
    preds = Predictions.from_logits(y, np.log(P)) if logits else Predictions(y, P)
    return fit(made(name), preds).calibration_map


def saved(calibration_map):
    return json.loads(json.dumps(calibration_map.to_dict(), allow_nan=False))


def entries(value, path=()):
    """The path and the value of every entry; of lists, of the first and the last."""
    keys = value if isinstance(value, dict) else sorted({0, len(value) - 1} - {-1}) if isinstance(value, list) else ()
    for key in keys:
        yield (*path, key), value[key]
        yield from entries(value[key], (*path, key))


def with_change(parameters, path, change):
    """A copy of the parameters, in which a function has changed the container of the entry at the path."""
    changed = copy.deepcopy(parameters)
    container = changed
    for key in path[:-1]:
        container = container[key]
    change(container, path[-1])
    return changed


def replace_entry(container, key, value):
    container[key] = value


def is_refused(calibration_map, parameters, k):
    try:
        read_map(type(calibration_map), parameters, k)
    except InputError as refused:
        return refused.code == "TO505"
    return False


@every
@classes
@pytest.mark.parametrize("logits", [False, True])
def test_a_map_survives_its_file_bit_by_bit(name, k, logits):
    if k > 2 and CALIBRATORS.load(name).two_classes:
        return
    calibration_map = fitted_map(name, k, logits=logits)
    restored = type(calibration_map).from_dict(saved(calibration_map), k)
    assert json.dumps(restored.to_dict()) == json.dumps(calibration_map.to_dict())
    rows = draw_predictions(40, k, 3.0, 1)[0]
    assert np.array_equal(restored.apply(rows), calibration_map.apply(rows))


@every
@classes
def test_no_entry_may_have_another_type_or_be_out_of_range(name, k):
    if k > 2 and CALIBRATORS.load(name).two_classes:
        return
    calibration_map = fitted_map(name, k)
    parameters = saved(calibration_map)
    for path, _ in entries(parameters):
        for value in NEVER_VALID:
            if value is None and path[-1] in NULLABLE:
                continue
            changed = with_change(parameters, path, partial(replace_entry, value=value))
            assert is_refused(calibration_map, changed, k), (path, value)


@every
@classes
def test_no_entry_may_be_missing_or_unknown(name, k):
    if k > 2 and CALIBRATORS.load(name).two_classes:
        return
    calibration_map = fitted_map(name, k)
    parameters = saved(calibration_map)
    objects = [(), *(path for path, value in entries(parameters) if isinstance(value, dict))]
    for path in objects:
        unknown = with_change(parameters, (*path, "unknown"), partial(replace_entry, value=1.0))
        assert is_refused(calibration_map, unknown, k), path
    for path, _ in entries(parameters):
        if isinstance(path[-1], str) and path[-1] not in OPTIONAL:
            missing = with_change(parameters, path, lambda container, key: container.pop(key))
            assert is_refused(calibration_map, missing, k), path


@dataclass(frozen=True, eq=False)
class Point(Saved):
    x: Annotated[float, Range(0, 1, closed="left")]


@dataclass(frozen=True, eq=False)
class Everything(Saved):
    share: Annotated[float, Range(0, 1)]
    count: Annotated[PassCount, Key("passes")]
    word: Literal["a", "b"]
    other_word: Annotated[str, OneOf(("c", "d", "e"))]
    bias: Annotated[Array, Numbers(-9, 9, ("k",), or_shape=("k", "k"))]
    knots: Annotated[Array, Numbers(0, 9, ("m+1",), "strictly")]
    levels: Annotated[Array, Numbers(0, 1, ("m",), "weakly")]
    points: tuple[Point, ...]
    maybe: float | None
    done: ZeroOrOne = True
    flags: Annotated[Array | None, Numbers(0, 1, ("k-1",), kind=bool), OMIT_DEFAULT] = None
    old: Annotated[Array, Numbers(0, 9, (2,), kind=int), MISSING_IN_OLD_FILES] = (0, 0)
    cause: Annotated[object, NOT_SAVED] = None


EVERYTHING = {
    "share": 0.1,
    "passes": 3,
    "word": "b",
    "other_word": "d",
    "bias": [0.5, -0.5],
    "knots": [0.0, 1.0, 2.5],
    "levels": [0.25, 0.25],
    "points": [{"x": 0.0}],
    "maybe": None,
    "done": 0,
    "flags": [True],
    "old": [1, 2],
}


def test_entries_are_the_fields_in_their_order():
    read = Everything.from_dict(EVERYTHING, 2)
    assert json.dumps(read.to_dict()) == json.dumps(EVERYTHING)
    assert (read.count, read.done, read.points[0].x, read.cause) == (3, False, 0.0, None)
    assert (read.flags.dtype, read.old.dtype, read.knots.dtype) == (bool, np.int64, np.float64)


def test_a_default_is_left_out_and_read_where_an_entry_is_missing():
    read = Everything.from_dict({key: value for key, value in EVERYTHING.items() if key not in ("flags", "old")}, 2)
    assert read.flags is None
    assert "flags" not in read.to_dict()
    assert read.to_dict()["old"] == [0, 0]


def test_a_size_is_that_of_the_first_field_that_has_it():
    for changed in ({"levels": [0.5]}, {"levels": [0.1, 0.2, 0.3]}, {"knots": [0.0]}, {"bias": [1.0]}, {"flags": []}):
        with pytest.raises(InputError, match="TO505"):
            Everything.from_dict(EVERYTHING | changed, 2)
    assert Everything.from_dict(EVERYTHING | {"bias": [[1.0, 0.0], [0.0, 1.0]]}, 2).bias.shape == (2, 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"share": 1.5}, "share must be a number from 0 to 1. Got 1.5."),
        ({"share": True}, "share must be a number from 0 to 1. Got True."),
        ({"passes": 1.0}, "passes must be a whole number of at least 0. Got 1.0."),
        ({"word": "c"}, "word must be a or b. Got 'c'."),
        ({"other_word": "a"}, "other_word must be one of c, d, e. Got 'a'."),
        ({"bias": [[1.0, 2.0]]}, "bias must be 2 × 2 numbers from -9 to 9. Got [[1.0, 2.0]]."),
        ({"bias": [0.0, math.nan]}, "bias must be 2 numbers from -9 to 9. Got nan."),
        ({"bias": [0.0, 10**400]}, "bias must be 2 numbers from -9 to 9. Got 1000"),
        ({"bias": [0.0, True]}, "bias must be 2 numbers from -9 to 9. Got [0.0, True]."),
        ({"knots": [1.0, 1.0, 2.0]}, "knots must be some strictly increasing numbers from 0 to 9. Got [1.0,"),
        ({"levels": [0.5, 0.4]}, "levels must be 2 weakly increasing numbers from 0 to 1. Got [0.5, 0.4]."),
        ({"points": {}}, "points must be a list of objects. Got {}."),
        ({"points": [0.5]}, "points[0] must be an object. Got 0.5."),
        ({"points": [{"x": 1}]}, "x must be a number in [0, 1). Got 1."),
        ({"points": [{"y": 1}]}, "must have x in points[0]. Got no x, an unknown y."),
        ({"maybe": math.inf}, "maybe must be a number"),
        ({"done": True}, "done must be 1 or 0. Got True."),
        ({"flags": [1]}, "flags must be 1 values true or false. Got [1]."),
        ({"flags": None}, "flags must be 1 values true or false. Got None."),
        ({"old": [1, 0.5]}, "old must be 2 whole numbers from 0 to 9. Got [1, 0.5]."),
        ({"cause": 1}, "Got an unknown cause."),
    ],
)  # fmt: skip
def test_an_error_states_what_the_annotation_allows(changed, message):
    with pytest.raises(InputError) as refused:
        Everything.from_dict(EVERYTHING | changed, 2)
    assert refused.value.code == "TO505"
    assert message in str(refused.value)
