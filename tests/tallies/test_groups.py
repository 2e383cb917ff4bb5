"""Are the tallies of many groups, counted and added column by column, those that each group has by itself?"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

from tests.tallies.batches import softmaxed
from trueodds.data.predictions import Predictions
from trueodds.tallies import group_tallies as group_sums
from trueodds.tallies import group_tallies as groups
from trueodds.tallies import tally_reader, tally_sums
from trueodds.tallies.tally import Tally

ROWS = 700
RNG = np.random.default_rng(5)
SITE = RNG.choice(["a", "b", "c", *map(str, range(150))], ROWS, p=[0.5, 0.1, 0.1, *[0.002] * 150])
WEIGHT = RNG.integers(1, 9, ROWS) / 7


def two_classes(**more: Any) -> Predictions:
    p = RNG.random(ROWS)
    p[::9] = 0.0  # with label 1 the log loss is infinite
    return Predictions(RNG.integers(0, 2, ROWS), p, group=SITE, **more)


def voted(k: int, **more: Any) -> Predictions:
    return Predictions(RNG.integers(0, 4, (ROWS, k)) + np.eye(k, dtype=int)[0], softmaxed(ROWS, k, 3).p, **more)


def logits(k: int | None) -> Predictions:
    z = 9 * RNG.normal(size=ROWS if k is None else (ROWS, k))
    if k is not None:
        z[::7, 0] = -np.inf
    return Predictions.from_logits(RNG.integers(0, k or 2, ROWS), z, group=SITE)


KINDS: dict[str, Callable[[], Predictions]] = {
    "two classes in one column": two_classes,
    "two classes in two columns": lambda: softmaxed(ROWS, 2, 1, group=SITE),
    "weights": lambda: two_classes(weight=WEIGHT),
    "four classes": lambda: softmaxed(ROWS, 4, 1, group=SITE),
    "float32": lambda: softmaxed(ROWS, 4, 1, dtype=np.float32, group=SITE),
    "float16, whose rows are off from sum 1": lambda: softmaxed(ROWS, 4, 1, dtype=np.float16, group=SITE),
    "long rows": lambda: softmaxed(ROWS, 70, 1, group=SITE),
    "votes": lambda: voted(3, group=SITE),
    "votes for two classes, weighted": lambda: voted(2, group=SITE, weight=WEIGHT),
    "confidence": lambda: Predictions.from_confidence(RNG.random(ROWS), RNG.integers(0, 2, ROWS), group=SITE),
    "independent labels": lambda: Predictions.from_multilabel(
        RNG.integers(0, 2, (ROWS, 3)), RNG.random((ROWS, 3)), group=SITE, weight=WEIGHT
    ),
    "logits": lambda: logits(4),
    "logits in one column": lambda: logits(None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_groups_counted_together_are_to_the_bit_each_by_itself(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    preds = KINDS[kind]()
    monkeypatch.setattr(group_sums, "MIN_ROWS_OF_LARGE_GROUP", 100)  # "a" is larger
    monkeypatch.setattr(group_sums, "VALUES_PER_BLOCK", 50)
    joint = tally_sums.dumps(Tally.from_predictions(preds))
    monkeypatch.setattr(group_sums, "MIN_ROWS_OF_LARGE_GROUP", 0)
    assert joint == tally_sums.dumps(Tally.from_predictions(preds))


@pytest.mark.slow
# Every number of cells that wait to be added with every third kind.
@pytest.mark.parametrize(("kind", "pending"), list(zip(KINDS, itertools.cycle([0, 300, 10**9]), strict=False)))
def test_groups_added_column_by_column_are_to_the_bit_added_one_by_one(
    kind: str, pending: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    preds = KINDS[kind]()
    batches = [Tally.from_predictions(preds[start : start + 90]) for start in range(0, ROWS, 90)]
    saved = [tally_sums.dumps(batch) for batch in batches]
    monkeypatch.setattr(groups, "_MIN_PENDING_CELLS", pending)
    total = reduce(Tally.__add__, batches).groups["group"]
    assert list(total) == sorted(set(SITE.tolist()))
    for name, tally in total.items():
        parts = [batch.groups["group"][name] for batch in batches if name in batch.groups["group"]]
        assert tally_sums.dumps(tally) == tally_sums.dumps(reduce(Tally.__add__, parts))
    assert [tally_sums.dumps(batch) for batch in batches] == saved  # + leaves its operands alone


def test_groups_of_different_dtypes_are_added() -> None:
    single, double = (
        Tally.from_predictions(softmaxed(6, 3, 1, dtype=dtype, group=list(names)))
        for dtype, names in ((np.float32, "aabbcc"), (np.float64, "bbccdd"))
    )
    parts = (single + double + single).groups["group"]
    assert {name: (part.n, part.dtype) for name, part in parts.items()} == {
        "a": (4, "float32"),
        "b": (6, "float32+float64"),
        "c": (6, "float32+float64"),
        "d": (2, "float64"),
    }


@pytest.mark.slow
def test_a_tally_of_groups_is_the_same_after_saving_and_pickling() -> None:
    tally = Tally.from_predictions(two_classes())
    loaded, copied = tally_reader.loads(tally_sums.dumps(tally)), pickle.loads(pickle.dumps(tally))
    assert tally_sums.dumps(loaded) == tally_sums.dumps(copied) == tally_sums.dumps(tally)
    assert tally_sums.dumps(loaded + tally) == tally_sums.dumps(tally + loaded) == tally_sums.dumps(tally + tally)


def test_a_group_that_is_not_there_is_a_missing_key() -> None:
    groups = Tally.from_predictions(two_classes()).groups["group"]
    assert ("a" in groups, "zz" in groups, len(groups)) == (True, False, len(set(SITE.tolist())))
    with pytest.raises(KeyError, match="zz"):
        groups["zz"]
