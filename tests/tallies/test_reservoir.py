"""Is the sample of a stream a fair one, and the same however the stream was cut?"""

from __future__ import annotations

import pickle
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from trueodds import InputError, Predictions, read
from trueodds.data.predictions import concatenate
from trueodds.tallies.reservoir import Reservoir, SampledTally, hash_row_ids
from trueodds.tallies.tally import Tally


def rows(n: int = 5_000) -> Predictions:
    draw = np.random.default_rng(0)
    P = draw.dirichlet(np.ones(4), n)
    return Predictions(draw.integers(0, 4, n), P, group={"site": draw.choice(["a", "b"], n)})


def sampled(preds: Predictions, size: int, order: int = 1, **how: int) -> Reservoir:
    parts = [
        Reservoir.from_predictions(preds[start : start + size], np.arange(start, min(start + size, preds.n)), **how)
        for start in range(0, preds.n, size)
    ]
    return reduce(add, parts[::order])


@pytest.mark.parametrize("size", [1, 7, 333, 4_999, 5_000])
@pytest.mark.parametrize("order", [1, -1])
def test_the_sample_does_not_depend_on_how_the_rows_were_cut_nor_on_the_order_of_the_sum(size: int, order: int) -> None:
    preds = rows(5_000 if size > 1 else 700)
    full = Reservoir.from_predictions(preds, np.arange(preds.n), seed=3, max_probs=400)
    reservoir = sampled(preds, size, order, seed=3, max_probs=400)
    assert reservoir.population_size == preds.n
    assert reservoir.keys.tolist() == full.keys.tolist()
    np.testing.assert_array_equal(reservoir.rows.p, full.rows.p)
    np.testing.assert_array_equal(reservoir.rows.y, full.rows.y)
    np.testing.assert_array_equal(reservoir.rows.group["site"], full.rows.group["site"])


def test_keys_are_those_of_splitmix64() -> None:
    # Reference: the first numbers of SplitMix64 from the state 1234567, as Rosetta Code lists them
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [int(hash_row_ids(np.array([1234567]), seed)[0]) for seed in range(4)] == expected


@pytest.mark.parametrize(("max_probs", "n_rows"), [(3, 1), (4, 1), (7, 1), (8, 2), (400, 100)])
def test_a_sample_holds_as_many_rows_as_its_probabilities_allow(max_probs: int, n_rows: int) -> None:
    preds = rows(100)
    sample = Reservoir.from_predictions(preds, np.arange(100), max_probs=max_probs)
    assert (sample.rows.n, sample.population_size) == (n_rows, 100)
    texts = [] if sample.note is None else [sample.note.text.partition(" rows")[0]]
    assert texts == ([f"Fits use a random sample of {n_rows:,} of 100"] if n_rows < 100 else [])


def test_sums_that_are_grouped_otherwise_hold_the_same_sample() -> None:
    preds, ids = rows(1_000), np.arange(1_000)
    a, b, c = (Reservoir.from_predictions(preds[part], ids[part], max_probs=200) for part in np.array_split(ids, 3))
    one, two = (a + b) + c, a + (pickle.loads(pickle.dumps(b)) + c)
    assert one.keys.tolist() == two.keys.tolist()


def test_every_row_is_drawn_with_the_same_probability() -> None:
    # 100 of 500 rows in 400 samples: 80 expected; standard deviation 8; the largest of 500 stays within 4.5.
    preds, ids = rows(500), np.arange(500)
    counts = np.zeros(500)
    for seed in range(400):
        keys = hash_row_ids(ids, seed)
        chosen = Reservoir.from_predictions(preds, ids, seed=seed, max_probs=400).keys
        counts[np.isin(keys, chosen)] += 1
    assert counts.sum() == 400 * 100
    assert np.abs(counts - 80).max() < 4.5 * 8
    # Neighbors are no likelier to be drawn together: a correlation of 499 pairs has a standard deviation of .045.
    assert abs(np.corrcoef(counts[:-1], counts[1:])[0, 1]) < 4 * 0.045


def test_a_sample_that_has_room_for_all_rows_is_all_rows() -> None:
    preds = rows(100)
    reservoir = sampled(preds, 30)
    assert (reservoir.rows.n, reservoir.note) == (100, None)
    short = sampled(preds, 30, max_probs=40).note
    assert short is not None
    assert short.text.startswith("Fits use a random sample of 10 of 100 rows (10%)")


def test_a_column_of_ids_makes_the_sample_the_same_however_rows_lie() -> None:
    n = 600
    draw = np.random.default_rng(1)
    table = {"p_0": (p := draw.random(n)), "p_1": 1 - p, "label": draw.integers(0, 2, n), "id": np.arange(n) + 10**6}
    turned = {name: column[::-1] for name, column in table.items()}
    texts = turned | {"id": np.array([f"row {i}" for i in turned["id"]])}

    def ps(data: object, size: int) -> list[float]:
        reservoir = read(data, row_id="id", batch_rows=size).reduce(
            lambda p, ids: Reservoir.from_predictions(p, ids, max_probs=100), keyed=True
        )
        return reservoir.rows.p[:, 0].tolist()

    assert ps(table, 50) == ps(turned, 37)
    assert ps(texts, 50) == ps(texts, 601)
    assert ps(texts, 50) != ps(table, 50)


def test_a_file_that_is_given_twice_has_rows_of_its_own_each_time(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": [0, 1] * 50, "p_0": np.linspace(0, 1, 100), "p_1": np.linspace(1, 0, 100)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    twice = read([tmp_path / "a.csv", tmp_path / "a.csv"])
    keys = twice.reduce(lambda p, ids: Reservoir.from_predictions(p, ids), keyed=True).keys
    assert len(set(keys.tolist())) == 200


def test_the_tally_beside_the_sample_is_that_of_all_rows() -> None:
    preds = rows(900)
    ids = np.arange(900)
    both = SampledTally.from_predictions(preds[:300], ids[:300], max_probs=40) + SampledTally.from_predictions(
        preds[300:], ids[300:], max_probs=40
    )
    assert both.tally.n == Tally.from_predictions(preds).n == 900
    assert both.sample.rows.n == 10


def test_rows_of_another_make_are_not_joined() -> None:
    with pytest.raises(InputError, match="TO401"):
        concatenate([rows(10), Predictions([0, 1], [0.2, 0.7])])
    with pytest.raises(InputError, match="TO401"):
        concatenate(
            [Predictions([0, 1], [0.2, 0.7], cluster=[0, 1])] * 1 + [Predictions([0, 1], [0.2, 0.7], cluster=[0, 1])]
        )
