"""Rows that are added twice are recognized, and rows that only look alike are not."""

from __future__ import annotations

from functools import reduce
from hashlib import blake2b

import numpy as np
import pytest

from tests.tallies.batches import softmaxed
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.tallies import batch_fingerprints, tally_reader, tally_sums
from trueodds.tallies.batch_fingerprints import BatchFingerprints
from trueodds.tallies.tally import Tally


def decimals(n: int, seed: int, rate: float = 0.5) -> Predictions:
    """Rows with one of nine predictions and an outcome: many are equal."""
    rng = np.random.default_rng(seed)
    return Predictions((rng.random(n) < rate).astype(int), rng.integers(1, 10, n) / 10)


def tally(preds: Predictions) -> Tally:
    return Tally.from_predictions(preds)


@pytest.mark.parametrize(
    "preds",
    [
        softmaxed(300, 3, 1),
        softmaxed(20, 2, 1),
        decimals(300, 1),
        softmaxed(200, 3, 1, np.float32, weight=np.linspace(1, 2, 200)),
        Predictions.from_confidence(np.linspace(0.1, 0.9, 200), np.arange(200) % 3 > 0),
        Predictions.from_multilabel(np.arange(400).reshape(200, 2) % 3 > 1, np.random.default_rng(0).random((200, 2))),
        Predictions(np.random.default_rng(1).integers(0, 4, (200, 3)) + 1, softmaxed(200, 3, 1).p),
    ],
    ids=["classes", "few rows", "decimals", "weights", "confidence", "multilabel", "votes"],
)
def test_rows_that_are_added_twice_are_counted_in_a_note(preds):
    other = preds[::-1]
    once = tally(preds) + tally(other)
    assert (once.batches.repeated_rows, [note.code for note in once.notes()].count("TN172")) == (0, 0)
    twice = once + tally(preds)
    (note,) = (note for note in twice.notes() if note.code == "TN172")
    assert twice.batches.repeated_rows == preds.n
    assert note.text.startswith(f"{preds.n:,} of {3 * preds.n:,} rows repeat a batch")


def test_different_rows_of_one_distribution_have_different_fingerprints():
    # One-digit predictions and no outcome of one class in most batches: the sums often agree, the rows never do.
    names = [name for seed in range(300) for name in BatchFingerprints.from_predictions(decimals(60, seed, 0.01)).rows]
    assert len(names) == len(set(names)) == 300


@pytest.mark.parametrize("preds", [Predictions([1], [0.9]), Predictions(np.zeros(500, int), np.full(500, 0.01))])
def test_rows_that_are_all_alike_have_no_fingerprint(preds):
    assert BatchFingerprints.from_predictions(preds).rows == {}
    assert (tally(preds) + tally(preds)).batches.repeated_rows == 0


@pytest.mark.parametrize(
    ("n", "k", "step"),
    [
        (300, 3, 1),
        (2047, 3, 1),  # at most every second row of 1,024 pairs
        (2048, 3, 2),
        (3071, 3, 2),
        (2000, 100, 3),  # 655 rows of 100 probabilities are sampled
        (200, 1500, 3),  # and 64 of any number
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fingerprint_is_the_hash_of_its_definition(n, k, step, weighted):
    # Saved tallies hold fingerprints, so that a change would count rows as different that are the same.
    preds = softmaxed(n, k, 1, weight=np.linspace(1, 2, n) if weighted else None)
    sample = np.column_stack([preds.y, preds.p])[::step]
    content = str(n).encode() + preds.y.astype(np.uint8 if k < 256 else np.uint16).tobytes() + sample.tobytes()
    digest = blake2b(content + (preds.weight.tobytes() if weighted else b""), digest_size=8).hexdigest()
    assert BatchFingerprints.from_predictions(preds).rows == {digest: n}


def test_a_change_in_any_outcome_weight_or_the_order_changes_the_fingerprint():
    preds = softmaxed(5000, 3, 1)
    y = preds.y.copy()
    y[4321] = (y[4321] + 1) % 3
    weight = np.ones(5000)
    weight[4321] = 2
    variants = [preds, Predictions(y, preds.p), preds[::-1], preds[:4999], Predictions(preds.y, preds.p, weight=weight)]
    assert len({next(iter(BatchFingerprints.from_predictions(variant).rows)) for variant in variants}) == 5


def test_fingerprints_do_not_depend_on_how_batches_are_added():
    batches = [BatchFingerprints.from_predictions(softmaxed(30, 3, seed)) for seed in range(9)]
    left = reduce(BatchFingerprints.__add__, batches)
    right = reduce(lambda total, batch: batch + total, reversed(batches))
    assert left == right == sum(batches[4:], reduce(BatchFingerprints.__add__, batches[:4]))


def test_many_batches_keep_a_sample_by_which_a_common_part_is_recognized(monkeypatch):
    monkeypatch.setattr(batch_fingerprints, "MAX_FINGERPRINTS", 40)
    batches = [BatchFingerprints({f"{x:016x}": 1}) for x in np.random.default_rng(3).integers(0, 2**62, 400)]
    total = reduce(BatchFingerprints.__add__, batches)
    assert len(total.rows) == 40
    # 60 of the 400 batches: each is in the sample with probability 1/10, so none is with probability 0.9⁶⁰ = 0.002.
    assert total.count_common_rows(reduce(BatchFingerprints.__add__, batches[100:160])) > 0
    assert total.count_common_rows(total) == 40


def test_fingerprints_are_saved_and_older_tallies_are_read_without_them():
    a = tally(softmaxed(300, 3, 1))
    total = a + tally(softmaxed(300, 3, 2)) + a
    saved = tally_sums.to_dict(total)
    assert tally_reader.from_dict(saved).batches == total.batches
    del saved["batches"], saved["sha256"]  # a tally of a version without fingerprints and checksums
    older = tally_reader.from_dict(saved)
    assert (older.batches, older.n) == (BatchFingerprints(), 900)


@pytest.mark.parametrize(
    "batches",
    [
        [],
        {"rows": {}},
        {"rows": {"xyz": 3}, "repeated_rows": 0},
        {"rows": {"0123456789abcdef": 0}, "repeated_rows": 0},
        {"rows": {"0123456789abcdef": 301}, "repeated_rows": 0},
        {"rows": {}, "repeated_rows": 301},
        {"rows": {f"{i:016x}": 1 for i in range(4097)}, "repeated_rows": 0},
    ],
)
def test_damaged_fingerprints_are_refused(batches):
    saved = tally_sums.to_dict(tally(softmaxed(300, 3, 1)))
    with pytest.raises(InputError) as error:
        tally_reader.from_dict({**saved, "batches": batches})
    assert error.value.code == "TO402"
    assert "batches" in error.value.problem
