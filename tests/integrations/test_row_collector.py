"""Does the collector keep every row of an epoch unchanged, sample fairly beyond its limit, and refuse bad batches?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.data.refused import refused
from trueodds import Predictions, measure
from trueodds.integrations.epoch_summary import RowCollector, copy_to_array, flatten_positions


def logits_and_labels(n: int = 300, k: int = 4, dtype: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, k)).astype(dtype)
    return z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def collect(scores: Any, labels: Any, batch: int = 37, **settings: Any) -> RowCollector:
    collector = RowCollector(settings.pop("logits", True), **settings)
    for i in range(0, len(scores), batch):
        collector.add(scores[i : i + batch], labels[i : i + batch])
    return collector


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_batches_give_the_predictions_of_all_rows(dtype: Any) -> None:
    z, y = logits_and_labels(dtype=dtype)
    preds, expected = collect(z, y).predictions(), Predictions.from_logits(y, z)
    assert preds.logits.dtype == expected.logits.dtype
    np.testing.assert_array_equal(preds.logits, z.astype(preds.logits.dtype))
    np.testing.assert_array_equal(preds.p, expected.p)
    np.testing.assert_array_equal(preds.y, y)
    assert preds.notes == expected.notes


def test_probabilities_of_half_precision_have_the_tolerance_of_predictions() -> None:
    P = np.array([[0.3, 0.7]] * 20, dtype=np.float16)
    assert P[0].sum(dtype=np.float64) != 1
    assert collect(P, np.ones(20), logits=False).predictions().dtype == "float16"


def test_bfloat16_arrays_keep_their_values() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")  # which Keras brings
    values = np.array([[0.1, -3.25], [1e30, 7.0]], dtype=ml_dtypes.bfloat16)
    copied = copy_to_array(values, "scores")
    assert copied.dtype == np.float32
    assert copied.tolist() == [[float(x) for x in row] for row in values]


def test_rows_are_copied_because_buffers_of_batches_are_reused() -> None:
    z, y = np.zeros((3, 2)), np.array([0, 1, 0])
    collector = RowCollector(True)
    collector.add(z, y)
    z[:], y[:] = 5.0, 1
    collector.add(z, y)
    preds = collector.predictions()
    assert preds.logits[:, 0].tolist() == [0, 0, 0, 5, 5, 5]
    assert preds.y.tolist() == [0, 1, 0, 1, 1, 1]


def test_a_single_column_is_the_second_class() -> None:
    collector = RowCollector(False)
    collector.add(np.array([[0.2], [0.7]]), np.array([[0.0], [1.0]]))
    collector.add(np.empty((0, 1)), np.empty((0, 1)))
    preds = collector.predictions()
    assert preds.p.tolist() == [0.2, 0.7]
    assert preds.y.tolist() == [0, 1]


def test_one_hot_labels_are_class_numbers_and_shares_are_votes() -> None:
    z, y = logits_and_labels()
    one_hot, labels = collect(z, np.eye(4)[y]).predictions(), collect(z, y).predictions()
    assert one_hot.votes is None
    assert measure(one_hot) == measure(labels)
    smoothed = 0.9 * np.eye(4)[y] + 0.025
    np.testing.assert_allclose(collect(z, smoothed).predictions().votes, smoothed, rtol=1e-12)


def test_labels_with_several_ones_are_refused() -> None:
    z, y = logits_and_labels()
    Y = np.eye(4)[y]
    Y[5] = [1, 1, 0, 1]
    with refused("TO352", "3 ones in row 5", fix="from_multilabel"):
        collect(z, Y).predictions()


# A sample of the rows


def test_beyond_the_limit_a_sample_is_kept_and_a_note_reports_it() -> None:
    z, y = logits_and_labels(5000)
    z[:, 0] = np.arange(5000)  # identifies the row
    collector = collect(z, y, max_probs=4000)
    preds = collector.predictions()
    assert preds.n == 1000
    assert collector.n_added == 5000
    rows = preds.logits[:, 0].astype(int)
    assert len(set(rows)) == 1000
    np.testing.assert_array_equal(preds.y, y[rows])
    (note,) = [note for note in preds.notes if note.code == "TN350"]
    assert "1,000 of 5,000 rows (20 %)" in note.text


def test_the_sample_depends_on_the_seed_and_not_on_the_batches() -> None:
    z, y = logits_and_labels(5000)
    one = collect(z, y, max_probs=400).predictions().logits
    np.testing.assert_array_equal(collect(z, y, 999, max_probs=400).predictions().logits, one)
    for seed in (1, 2**64 + 1, 2**128 - 1):
        assert not np.array_equal(collect(z, y, max_probs=400, seed=seed).predictions().logits, one)


def test_every_row_is_sampled_equally_often() -> None:
    n, sample_size, repeats = 120, 30, 400
    counts = np.zeros(n)
    for seed in range(repeats):
        collector = collect(np.arange(n, dtype=float), np.zeros(n), 11, max_probs=sample_size, seed=seed)
        counts[collector.rows().scores.astype(int)] += 1
    assert counts.sum() == sample_size * repeats
    # Each count is binomial(400, 1/4): the largest of 120 deviates by more than 5 standard deviations with p < 1e-4.
    assert np.abs(counts - repeats * sample_size / n).max() < 5 * np.sqrt(repeats * 0.25 * 0.75)


def test_memory_stays_bounded() -> None:
    collector = RowCollector(True, max_probs=100)
    for _ in range(200):
        collector.add(np.zeros((7, 2)), np.zeros(7, dtype=int))
        assert sum(len(part.labels) for part in collector._batches) <= 2 * 50 + 7
    assert collector.predictions().n == 50


# Positions


def test_positions_become_rows_and_their_sequence_a_cluster() -> None:
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=(6, 5, 3)), rng.integers(0, 3, (6, 5))
    y[:, 3:] = -100
    collector = RowCollector(True, ignore_index=-100)
    for part in (slice(0, 2), slice(2, 6)):
        collector.add(*flatten_positions(z[part], y[part]))
    preds = collector.predictions()
    expected = Predictions.from_dense(y, z, axis=-1, logits=True, ignore=-100)
    np.testing.assert_array_equal(preds.p, expected.p)
    np.testing.assert_array_equal(preds.cluster, expected.cluster)
    assert [note.text for note in preds.notes] == [note.text for note in expected.notes]


def test_clusters_are_sampled_as_a_whole() -> None:
    z, y = np.zeros((40, 5, 2)), np.zeros((40, 5), dtype=int)
    collector = RowCollector(True, max_probs=60)
    for i in range(0, 40, 8):
        collector.add(*flatten_positions(z[i : i + 8], y[i : i + 8]))
    preds = collector.predictions()
    assert preds.n == 30
    assert np.bincount(preds.cluster).tolist() == [5] * 6


def test_one_hot_positions_keep_their_classes() -> None:
    y = np.random.default_rng(2).integers(0, 3, (4, 2, 2))
    _, labels, clusters = flatten_positions(np.zeros((4, 2, 2, 3)), np.eye(3)[y])
    np.testing.assert_array_equal(labels.argmax(axis=1), y.ravel())
    assert clusters is not None
    assert clusters.tolist() == [i for i in range(4) for _ in range(4)]


# Bad batches


@pytest.mark.parametrize(
    ("scores", "labels", "got"),
    [
        (np.zeros((4, 3)), np.zeros(5), "(4, 3) and labels (5,)"),
        (np.zeros((4, 3)), np.zeros((4, 2)), "(4, 3) and labels (4, 2)"),
        (np.zeros(4), np.zeros((4, 3)), "(4,) and labels (4, 3)"),
        (np.zeros((4, 3, 2)), np.zeros((4, 2)), "(4, 3, 2) and labels (4, 2)"),
    ],
)
def test_shapes_that_do_not_match_are_refused(scores: Any, labels: Any, got: str) -> None:
    with refused("TO352", got):
        RowCollector(True).add(scores, labels)


@pytest.mark.parametrize(
    ("scores", "labels"),
    [(np.zeros((2, 4)), np.zeros(2)), (np.zeros(2), np.zeros(2)), (np.zeros((2, 3)), np.eye(3)[:2])],
)
def test_a_batch_with_other_columns_is_refused(scores: Any, labels: Any) -> None:
    collector = RowCollector(True)
    collector.add(np.zeros((2, 3)), np.zeros(2))
    with refused("TO352", "after (2, 3) and (2,)", fix="every batch"):
        collector.add(scores, labels)


def test_positions_with_the_classes_on_another_axis_are_refused() -> None:
    with refused("TO352", "(2, 3, 5)"):
        flatten_positions(np.zeros((2, 3, 5)), np.zeros((2, 5)))


def test_an_epoch_without_rows_is_refused() -> None:
    with refused("TO354", "0 rows"):
        RowCollector(True).predictions()
    collector = RowCollector(True, ignore_index=-1)
    collector.add(np.zeros((4, 2)), np.full(4, -1))
    with refused("TO354", "4 rows with the ignored label"):
        collector.predictions()


def test_a_cluster_that_does_not_fit_is_refused() -> None:
    collector = RowCollector(True, max_probs=10)
    with refused("TO354", "5 rows"):
        collector.add(*flatten_positions(np.zeros((1, 50, 2)), np.zeros((1, 50), dtype=int)))


def test_errors_of_values_name_arguments_that_callbacks_have() -> None:
    z, y = logits_and_labels()
    with refused("TO102", fix="logits=True"):
        collect(z, y, logits=False).predictions()
    z_bad = z.copy()
    z_bad[123, 2] = np.nan
    with refused("TO103", "nan in row 123"):
        collect(z_bad, y).predictions()
    with refused("TO105", "4 in row", fix="subtract 1"):
        collect(z, y + 1).predictions()
    with refused("TO106", "3.5 in row 0"):
        collect(z, y + 0.5).predictions()
    P = np.full((20, 3), 0.33)
    with refused("TO104", fix="sum_tolerance=0.02"):
        collect(P, np.zeros(20), logits=False).predictions()
    assert collect(P, np.zeros(20), logits=False, sum_tolerance=0.02).predictions().n == 20


def test_no_remedy_names_an_argument_that_callbacks_lack() -> None:
    z, y = logits_and_labels()
    with pytest.raises(ValueError, match="TO105") as caught:
        collect(z, y + 1).predictions()
    assert "classes=" not in str(caught.value)


def test_settings_are_checked() -> None:
    for settings in ({"max_probs": 0}, {"sum_tolerance": -1}, {"ignore_index": "pad"}, {"seed": -1}):
        with refused("TO203"):
            RowCollector(True, **settings)
    with refused("TO203"):
        RowCollector("yes")  # type: ignore[arg-type]
