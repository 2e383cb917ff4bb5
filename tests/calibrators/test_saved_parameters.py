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

from tests.calibrators.rows import REQUIRED_SETTINGS, draw_predictions, made
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
FREE_TEXTS = {"name"}  # any text is valid
OPTIONAL = {
    "edges",
    "scale",
    "min_prob",
    "certainty",
    "units",
    "even",
    "mixing",
}  # entries that are left out at a default

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
    keys = (
        value if isinstance(value, dict) else sorted({0, len(value) - 1}) if isinstance(value, list) and value else ()
    )
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
            if (value is None and path[-1] in NULLABLE) or (value == "text" and path[-1] in FREE_TEXTS):
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


def with_length(value, key):
    """The value as often as the saved list of that name is long."""
    return lambda container: [value] * len(container[key])


def wrapped(key):
    """The saved value of that name in a list."""
    return lambda container: [container[key]]


def beyond(key):
    """The saved scores of that name with a last one of 2.5; up to 2 is read, because float16 may exceed 1."""
    return lambda container: [*container[key][:-1], 2.5]


CURVE = ("curves", 0)
# Entries that do not fit their place or each other, in one object of the parameters, by method, classes and settings.
MISFITS = [
    ("temperature", 3, {}, (), [{"beta": 0}, {"beta": -1.0}, {"beta": 1e9}, {"n_passes": -3}]),
    ("ensemble_temperature", 3, {}, (), [
        {"beta": 0.0}, {"shares": [0.5, 0.5]}, {"shares": [0.5, 0.6, 0.2]}, {"shares": [1.5, -0.5, 0.0]},
        {"n_passes": -1},
    ]),
    ("llo", 2, {}, (), [{"gamma": 1e200}, {"n_passes": -1}]),
    ("mcllo", 3, {}, (), [{"tau": [0.1]}, {"gamma": [1.0, None]}, {"baseline": 3}, {"baseline": 1.5}, {"min_prob": 0}]),
    ("platt", 2, {}, CURVE, [{"on": "probit"}, {"on": []}, {"n_passes": 0.5}]),
    ("beta", 2, {}, CURVE, [{"a": -0.1}]),
    ("prior_shift", 2, {}, (), [{"ratios": [0, 0]}, {"ratios": [1.0]}, {"ratios": [-1, 1]}]),
    *(
        ("evidential", k, {}, path, changes)
        for k, keys in ((2, ("theta", "support", "turn", "slope")), (3, ("theta", "low", "high")))
        for path, changes in (
            ((), [{"on": "x"}, {"output": []}, {"n_passes": -1}, {"contour": {}}]),
            (("contour",), [{key: wrapped(key)} for key in keys]),
        )
    ),
    ("evidential", 3, {}, ("contour",), [{"low": lambda contour: [contour["theta"] + 1, *contour["low"][1:]]}]),
    ("irm", 3, {}, (), [{"tilt": 0.0}, {"curve": 3}]),
    ("irm", 3, {}, ("curve",), [{"y": [2.0]}]),
    ("irova_ts", 3, {}, (), [{"temperature": 2.0}, {"isotonic": []}]),
    ("irova_ts", 3, {}, ("temperature",), [{"beta": -1.0}]),
    ("top_vs_all", 3, {}, (), [
        {"calibrator": "auto"}, {"calibrator": "top_vs_all"}, {"calibrator": "none"}, {"calibrator": 3},
        {"parameters": 3},
    ]),
    ("isotonic", 2, {}, CURVE, [
        {"x": [0.5, 0.2]}, {"x": [0.5, 0.5], "y": [0.1, 0.2]}, {"x": [0.1, 0.2], "y": [0.2, 0.1]},
        {"x": [0.1, 0.2], "y": [0.2]}, {"x": [], "y": []}, {"x": [0.1], "y": [1.5]}, {"between": "cubic"},
        {"x": beyond("x")},
    ]),
    ("isotonic", 3, {}, (), [{"curves": []}, {"curves": [1, 2, 3]}, {"curves": [{}]}]),
    ("enir", 2, {}, CURVE, [{"x": [0.2, 0.1], "y": [0, 1]}, {"x": [0.1], "y": [1.5]}, {"x": beyond("x")}]),
    ("histogram", 2, {}, CURVE, [
        {"edges": [0.0, 0.5]}, {"edges": [0.1, 1.0]}, {"edges": [0.0, 1.0], "values": [0.1, 0.2]},
        {"values": [None] * 15}, {"empty": "none"}, {"edges": beyond("edges")},
    ]),
    ("scaling_binning", 2, {}, CURVE, [{part: content} for part in ("sigmoid", "steps") for content in (3, [], {})]),
    ("venn_abers", 2, {}, (), [{"multiclass": "pairs"}, {"multiclass": []}, {"curves": []}, {"curves": [1]}]),
    ("venn_abers", 2, {}, CURVE, [
        {"high_y": with_length(0.0, "high_y")}, {"low_y": with_length(1.0, "low_y")},
        {"low_x": lambda curve: curve["low_x"][::-1]}, {"high_x": []},
    ]),
    ("spline", 2, {}, CURVE, [
        {"x": [0.0]}, {"f": with_length(1e30, "x")}, {"settled": 1}, {"freedom": -1.0}, {"n_passes": 0.5},
    ]),
    ("spline", 2, {"kind": "gupta"}, (), [
        {"scores": [0.5, 0.5]}, {"confidences": with_length(2.0, "scores")}, {"clipped": -1},
    ]),
    ("kernel", 2, {"scale": "logit"}, CURVE, [
        {"scale": "log"}, {"low": lambda curve: curve["high"]}, {"values": [0.5]}, {"slopes": [0.0]}, {"bandwidth": 0},
    ]),
    ("simplex_histogram", 3, {"bins": 2}, (), [{"partition": "voronoi"}, {"values": []}, {"values": 3}]),
    ("simplex_histogram", 3, {"bins": 2}, ("cells",), [  # a tree of three nodes
        {"node": 3}, {"axis": [3] * 3}, {"axis": [-1] * 3}, {"cut": [math.nan] * 3}, {"node": [0, 0, 0]},
        {"node": [1, 0, 2]}, {"node": [0, 99, 2]}, {"node": [], "axis": [], "cut": []},
    ]),
    ("simplex_histogram", 3, {"partition": "simplex-grid", "bins": 2}, (), [
        {"values": [[0.5, 0.5, 0.5]]},
        *({"cells": {"bins": 2, "cells": [[0, 0, 1]]}, "values": [row]} for row in ([0.5] * 3, [0.5] * 2, [2, -1, 0])),
    ]),
    ("simplex_histogram", 3, {"partition": "simplex-grid", "bins": 2}, ("cells",), [
        {"bins": 0}, {"bins": 10**9}, {"bins": 1}, {"cells": []}, {"cells": "all"}, {"cells": [[0, 0]]},
        {"cells": [[1, 0, 0], [0, 0, 1]]}, {"cells": [[0, 0, 1.5]]},
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "k", "settings", "path", "changes"), MISFITS)
def test_no_entry_may_misfit_its_place_or_the_others(name, k, settings, path, changes):
    P, y = draw_predictions(60, k, 1.5, 0)
    calibration_map = fit(
        CALIBRATORS.load(name)(**REQUIRED_SETTINGS.get(name, {}), **settings), Predictions(y, P)
    ).calibration_map
    assert not is_refused(calibration_map, saved(calibration_map), k)
    for change in changes:
        parameters = saved(calibration_map)
        container = parameters
        for key in path:
            container = container[key]
        container |= {key: value(container) if callable(value) else value for key, value in change.items()}
        assert is_refused(calibration_map, parameters, k), change


@pytest.mark.parametrize(("name", "k"), [("evidential", 2), ("llo", 2), ("irova_ts", 3)])
def test_a_map_is_not_read_for_another_number_of_classes(name, k):
    assert is_refused(fitted_map(name, k), saved(fitted_map(name, k)), k + 1)


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
