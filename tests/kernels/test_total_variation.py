"""The total variation distance of drawn labels, cell by cell: equal to that of the sums of every draw."""

import numpy as np
import pytest

from trueodds.kernels.bootstrap_sums import sort_rows_by_cell
from trueodds.kernels.random_label_sums import DrawnLabels, drawn_total_variation, sum_weights_of_labels
from trueodds.kernels.random_labels import MAX_COMPARED_CLASSES, draw_labels

KEY = 77


pytestmark = pytest.mark.usefixtures("integers_wrap_around")


def _distances(P, codes, w, wp, cell, labels):
    """Distance of each draw, from the sums of its outcomes."""
    m, cells = wp.shape[1], len(wp)
    out = []
    for drawn in labels:
        outcome = codes[np.arange(len(P)) % len(codes), drawn]
        wy = np.stack([np.bincount(cell, w * (outcome == j), cells) for j in range(m)], axis=1)
        out.append(np.abs(wp - wy).sum() / 2 / w.sum())
    return np.array(out)


@pytest.mark.parametrize("k", [2, 5, MAX_COMPARED_CLASSES, MAX_COMPARED_CLASSES + 1, 90])
@pytest.mark.parametrize(("n", "cells"), [(1, 1), (40, 7), (60, 20), (60, 100)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("codes_by_row", [False, True])
def test_distances_are_those_of_the_sums_of_each_draw(k, n, cells, weighted, codes_by_row):
    rng = np.random.default_rng([k, n, cells])
    P = rng.dirichlet(np.full(k, 0.3), n)
    P[0] = np.eye(k)[k // 2]  # a certain label
    w = rng.integers(0, 3, n) * rng.random(n) if weighted else np.ones(n)
    w[0] = 1.0
    m = k if not codes_by_row else 2
    codes = rng.integers(0, m, (n, k)) if codes_by_row else np.arange(k)[None]
    cell = rng.integers(0, cells, n)
    predicted = np.stack([np.where(codes == j, P, 0.0).sum(axis=1) for j in range(m)], axis=1)
    wp = np.stack([np.bincount(cell, w * p, cells) for p in predicted.T], axis=1)
    rows, first = sort_rows_by_cell(cell, w, cells)
    distances = drawn_total_variation(P, codes, w, wp, rows, first, KEY, 9)
    assert np.allclose(distances, _distances(P, codes, w, wp, cell, draw_labels(P, KEY, 0, 9)), rtol=1e-12, atol=0)


def test_labels_do_not_depend_on_how_many_draws_are_made_at_once(monkeypatch):
    P = np.random.default_rng(0).dirichlet(np.ones(40), 30)
    expected = draw_labels(P, KEY, 0, 50).T
    monkeypatch.setattr("trueodds.kernels.random_label_sums.MAX_LABELS", 30 * 17)  # 17 draws at once
    drawn = DrawnLabels(P, KEY, 50)
    blocks = [drawn.labels(start, min(start + 7, 50)) for start in range(0, 50, 7)]
    assert np.concatenate(blocks, axis=1).tolist() == expected.tolist()
    tables = np.broadcast_to(np.arange(40, dtype=np.int32), (1, 30, 40))
    counts = sum_weights_of_labels(expected.astype(np.uint8), np.ones(30), tables, 40)
    assert counts.tolist() == [np.bincount(labels, minlength=40).tolist() for labels in expected.T]
