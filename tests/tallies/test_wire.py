"""A tally's file: nothing is lost, nothing that is wrong is believed."""

from __future__ import annotations

import copy
import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings

from tests.tallies.batches import decimal, numbers, softmaxed
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.tallies import tally_reader, tally_sums
from trueodds.tallies.tally import Tally


def assert_identical(a: Tally, b: Tally) -> None:
    assert (a.kind, a.classes, a.dtype, a.bins, a.grid, a.view_names) == (
        b.kind,
        b.classes,
        b.dtype,
        b.bins,
        b.grid,
        b.view_names,
    )
    assert a.cells.is_unweighted == b.cells.is_unweighted
    left, right = numbers(a), numbers(b)
    assert left.keys() == right.keys()
    for key in left:
        assert left[key].dtype == right[key].dtype, key
        np.testing.assert_array_equal(left[key], right[key], err_msg=key)


@settings(max_examples=30)
@given(decimal())
def test_every_bit_comes_back(preds):
    tally = Tally.from_predictions(preds, lenses=["groups:[[0,1],[2]]"], grid=7)
    assert_identical(tally_reader.loads(tally_sums.dumps(tally)), tally)


def test_every_kind_comes_back():
    kinds = [
        softmaxed(300, 3, 1, np.float32, classes=["a", "b", "c"]),
        softmaxed(50, 2, 1, weight=np.linspace(0, 2, 50)),
        Predictions([0, 1], [0.5, 0.25], group={"site": [1, 2]}),
        Predictions.from_confidence([0.9, 1.0], [True, False]),
        Predictions.from_multilabel([[0, 1]], [[0.2, 0.9]], classes=["x", "y"]),
        Predictions([1, 2], np.array([[0, 0, 1 + 2e-16 * 2], [0.1, 0.2, 0.7]])),
        softmaxed(100, 3, 2, np.float16, sum_tolerance=2e-2),
    ]
    for preds in kinds:
        tally = Tally.from_predictions(preds)
        assert_identical(tally_reader.loads(tally_sums.dumps(tally)), tally)
        assert_identical(tally_reader.loads(tally_sums.dumps(tally + tally)), tally + tally)


@pytest.mark.slow
def test_a_mixed_sum_comes_back():
    preds = softmaxed(2000, 3, 1)
    mixed = Tally.from_predictions(preds) + Tally.from_predictions(Predictions(preds.y, preds.p, weight=np.ones(2000)))
    assert_identical(tally_reader.loads(tally_sums.dumps(mixed)), mixed)


def test_a_file_is_written_whole_and_read_back(tmp_path):
    tally = Tally.from_predictions(softmaxed(100, 3, 1))
    path = tmp_path / "a.tally.json"
    tally.save(path)
    assert_identical(tally_reader.load(path), tally)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tally.json"]
    content = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(name))
    assert content["schema"] == "trueodds.tally/1"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    Tally.from_predictions(softmaxed(10, 3, 1)).save(path)
    old = path.read_text(encoding="utf-8")

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InputError, match="TO407"):
        Tally.from_predictions(softmaxed(20, 3, 1)).save(path)
    assert path.read_text(encoding="utf-8") == old
    assert len(list(tmp_path.iterdir())) == 1


def test_missing_files_and_folders_are_reported(tmp_path):
    with pytest.raises(InputError, match="TO407"):
        tally_reader.load(tmp_path / "none.json")
    with pytest.raises(InputError, match="TO407"):
        Tally.from_predictions(softmaxed(10, 3, 1)).save(tmp_path / "none" / "a.json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "{}",
        "not json",
        '{"schema": "trueodds.calibrator/1"}',
        '{"schema": "trueodds.tally/2"}',
        "[" * 9999,
    ],
)
def test_other_files_are_no_tallies(text, tmp_path):
    with pytest.raises(InputError, match="TO402"):
        tally_reader.loads(text)
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="TO402"):
        tally_reader.load(tmp_path / "a.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00PAR1")
    with pytest.raises(InputError, match="TO402"):
        tally_reader.load(tmp_path / "b.json")


def test_a_number_that_is_none_is_refused():
    text = tally_sums.dumps(Tally.from_predictions(softmaxed(5, 3, 1)))
    for bad in ("NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400):
        with pytest.raises(InputError, match="TO402"):
            tally_reader.loads(text.replace('"weight":5.0', f'"weight":{bad}'))


DAMAGES = {
    "version": lambda d: d.update(version=1),
    "kind": lambda d: d.update(kind="regression"),
    "classes": lambda d: d.update(classes=[0, 1, 1]),
    "bins": lambda d: d.update(bins=0),
    "n": lambda d: d.update(n=True),
    "weight": lambda d: d.update(weight=-1.0),
    "slots": lambda d: d.update(slots=d["slots"][1:]),
    "slots ": lambda d: d["slots"].append("nonsense"),
    "slots   ": lambda d: d.update(classes=[0, 1]),
    "slots  ": lambda d: d["slots"].append(d["slots"][0]),
    "cells": lambda d: d.update(cells=[]),
    "cells.index": lambda d: d["cells"]["index"].reverse(),
    "cells.index ": lambda d: d["cells"]["index"].__setitem__(-1, 10**9),
    "cells.index  ": lambda d: d["cells"]["index"].__setitem__(0, -1),
    "cells.index   ": lambda d: d["cells"]["index"].__setitem__(0, 10**30),
    "cells.index    ": lambda d: d["cells"]["index"].__setitem__(0, 0.0),
    "cells.n": lambda d: d["cells"]["n"].pop(),
    "cells.n ": lambda d: d["cells"]["n"].__setitem__(0, 0),
    "cells.n  ": lambda d: d["cells"]["n"].__setitem__(0, 77),
    "cells.sums": lambda d: d["cells"]["sums"].pop("wpp"),
    "cells.sums.wp": lambda d: d["cells"]["sums"]["wp"].__setitem__(0, 99.0),
    "cells.sums.wp ": lambda d: d["cells"]["sums"]["wp"].__setitem__(0, "1"),
    "cells.sums.wy": lambda d: d["cells"]["sums"]["wy"].__setitem__(0, 1e9),
    "cells.sums.wpy": lambda d: d["cells"]["sums"]["wpy"].__setitem__(0, -1.0),
    "joint.canonical.keys": lambda d: d["joint"]["canonical"]["keys"].reverse(),
    "joint.canonical.keys ": lambda d: d["joint"]["canonical"]["keys"][0].__setitem__(0, 50),
    "joint.canonical.wp": lambda d: d["joint"]["canonical"]["wp"].pop(),
    "joint.canonical.wy": lambda d: d["joint"]["canonical"]["wy"][0].pop(),
    "joint": lambda d: d["joint"].update(nonsense=d["joint"]["canonical"]),
    "joint.canonical": lambda d: d.update(grid=None),
    "null.index": lambda d: d["null"]["index"].__setitem__(-1, 45**2),
    "null.value": lambda d: d["null"]["value"].pop(),
    "null": lambda d: d.update(null=3),
    "scores": lambda d: d["scores"].pop("brier"),
    "scores.brier.w": lambda d: d["scores"]["brier"].update(w=80.0),  # of 40 rows
    "scores.log_loss.w": lambda d: d["scores"]["log_loss"].update(infinite_w=2.0),
    "cells.sums.w": lambda d: d.update(weight=80.0),
    "scores.brier": lambda d: d["scores"]["brier"].pop("w"),
    "scores.brier.infinite": lambda d: d["scores"]["brier"].update(infinite=1.5),
    "scores.brier.wwss": lambda d: d["scores"]["brier"].update(wwss=None),
    "counts.zeros": lambda d: d["counts"].update(zeros=-1),
    "counts.excess": lambda d: d["counts"].update(excess="a"),
    "groups": lambda d: d.pop("groups"),
    "groups.group": lambda d: d["groups"]["group"].pop("a"),
    "groups.group.a.n": lambda d: d["groups"]["group"]["a"].pop("n"),
    "groups.group.a.cells.n": lambda d: d["groups"]["group"]["a"]["cells"]["n"].append(1),
}


@pytest.fixture(scope="module")
def content():
    preds = softmaxed(40, 3, 1, group=["a", "b"] * 20)
    return Tally.from_predictions(preds, grid=4).to_dict()


@pytest.mark.parametrize("field", list(DAMAGES))
def test_a_damaged_field_is_named(field, content):
    tally_reader.from_dict(content)
    damaged = copy.deepcopy(content)
    DAMAGES[field](damaged)
    with pytest.raises(InputError) as refused:
        tally_reader.from_dict(damaged)
    assert refused.value.code == "TO402"
    assert f"tally's {field.strip()} is not valid" in str(refused.value)


def test_the_checksum_is_that_of_sorted_keys_and_numbers_as_floats():
    content = {"w": [1, 2.5, True, None, "3"], "n": {"b": 2, "a": -1}, "sha256": "0"}
    text = b'{"n": {"a": -1.0, "b": 2.0}, "w": [1.0, 2.5, true, null, "3"]}'
    assert tally_sums.checksum(content) == hashlib.sha256(text).hexdigest()


def test_a_change_that_contradicts_no_other_sum_is_recognized_by_the_checksum(content):
    edited = copy.deepcopy(content)
    edited["scores"]["brier"]["ws"] *= 0.5
    with pytest.raises(InputError, match=r"TO402.*content that was changed since it was written"):
        tally_reader.from_dict(edited)
    del edited["sha256"]  # an older tally, which has no checksum
    assert tally_reader.from_dict(edited).score("brier")["ws"] == edited["scores"]["brier"]["ws"]


def test_another_program_may_rewrite_the_file(content):
    def rewritten(value):
        """The value as JavaScript writes it, which has one type of number, with the keys in another order."""
        if isinstance(value, dict):
            return {key: rewritten(value[key]) for key in reversed(value)}
        if isinstance(value, list):
            return [rewritten(item) for item in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    assert_identical(tally_reader.loads(json.dumps(rewritten(content), indent=2)), tally_reader.from_dict(content))
