"""Are labels row by row those of a plain loop over rows and draws?"""

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from tests.kernels.samples import rows
from tests.kernels.test_random_label_sums import KEY, by_loops
from trueodds.kernels import random_labels
from trueodds.kernels.random_labels import ROWS_PER_BLOCK, DrawnLabels, draw_labels_by_row, sum_weights_of_labels

pytestmark = pytest.mark.usefixtures("integers_wrap_around")


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "k", [2, 5, 16, 17, random_labels.MAX_COMPARED_CLASSES, random_labels.MAX_COMPARED_CLASSES + 1]
)
@pytest.mark.parametrize("start", [0, 3])
def test_they_are_the_labels_of_draws(k, dtype, layout, start):
    P, _ = rows(9, k, dtype)
    labels = draw_labels_by_row(layout(P), KEY, start, start + 5)
    assert labels.dtype == np.uint8
    assert labels.tolist() == by_loops(P, start, start + 5).T.tolist()


@pytest.mark.parametrize("n", [1, ROWS_PER_BLOCK - 1, ROWS_PER_BLOCK, ROWS_PER_BLOCK + 1])
def test_at_the_boundaries_of_blocks_of_rows(n):
    P, _ = rows(n, 3)
    assert draw_labels_by_row(P, KEY, 0, 2).tolist() == by_loops(P, 0, 2).T.tolist()


def test_more_classes_than_a_byte_counts_and_rows_of_clusters():
    P = np.random.default_rng(0).dirichlet(np.ones(300), 6)
    assert draw_labels_by_row(P, KEY, 0, 3).dtype == np.uint16
    cluster = np.arange(6) // 3
    labels = draw_labels_by_row(P, KEY, 0, 9, cluster=cluster, cluster_probability=0.5)
    assert labels.tolist() == by_loops(P, 0, 9, cluster, 0.5).T.tolist()


def test_labels_do_not_depend_on_how_many_draws_are_made_at_once(monkeypatch):
    P = np.random.default_rng(0).dirichlet(np.ones(40), 30)
    expected = random_labels.draw_labels(P, KEY, 0, 50).T
    monkeypatch.setattr("trueodds.kernels.random_labels.MAX_LABELS", 30 * 17)  # 17 draws at once
    drawn = DrawnLabels(P, KEY, 50)
    blocks = [drawn.labels(start, min(start + 7, 50)) for start in range(0, 50, 7)]
    assert np.concatenate(blocks, axis=1).tolist() == expected.tolist()
    tables = np.broadcast_to(np.arange(40, dtype=np.int32), (1, 30, 40))
    counts = sum_weights_of_labels(expected.astype(np.uint8), np.ones(30), tables, 40)
    assert counts.tolist() == [np.bincount(labels, minlength=40).tolist() for labels in expected.T]
