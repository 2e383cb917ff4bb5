"""Are vectors split at the weighted median of the axis of largest variance?"""

import numpy as np
import pytest

from trueodds.kernels.partitions import LEAF, NO_SPLIT, median_splits, nested_squares

KINDS = {
    "continuous": lambda rng: rng.random((300, 3)),
    "tied": lambda rng: rng.integers(0, 4, (300, 3)) / 4,
    "nearly constant": lambda rng: np.where(rng.random((300, 3)) < 0.9, 0.5, rng.random((300, 3))),
    "one axis": lambda rng: np.sort(rng.random((300, 1)), axis=0),
}


def splits_by_definition(x, min_size, number=0):
    """The splits of the repeated rows x, each as (axis, cut) by the path that leads to its node."""
    variance = x.var(axis=0)
    axis = int(np.flatnonzero(variance >= variance.max() * (1 - 1e-9))[0])
    cut = float(np.median(x[:, axis]))
    low, high = x[x[:, axis] < cut], x[x[:, axis] >= cut]
    splits_by_path = {number: (axis, round(cut, 12), min(len(low), len(high)) >= min_size)}
    if splits_by_path[number][2]:
        for child, rows in ((2 * number + 1, low), (2 * number + 2, high)):
            if len(rows) >= 2 * min_size:
                splits_by_path |= splits_by_definition(rows, min_size, child)
    return splits_by_path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", ["ones", "counts", "counts and zeros"])
def test_the_splits_of_weighted_rows_are_those_of_repeated_rows(kind, weights):
    rng = np.random.default_rng(2)
    x = KINDS[kind](rng)
    w = {"ones": np.ones(300), "counts": rng.integers(1, 5, 300), "counts and zeros": rng.integers(0, 3, 300)}[weights]
    splits = median_splits(x, w, 7)
    splits_by_path, pending = {}, [(0, 0)]
    while pending:
        number, path = pending.pop()
        children = splits.children[number].tolist()
        is_split = children[0] != NO_SPLIT
        splits_by_path[path] = (int(splits.axis[number]), round(float(splits.cut[number]), 12), is_split)
        pending += [
            (child, 2 * path + 1 + side) for side, child in enumerate(children) if child not in (LEAF, NO_SPLIT)
        ]
    assert splits_by_path == splits_by_definition(np.repeat(x, w.astype(int), axis=0), 7)
    assert len(splits_by_path) == len(splits.cut)


def test_weights_of_any_magnitude_leave_the_rows_in_their_nodes():
    # Weights that span 600 orders of magnitude: the sums of the tree neither overflow nor leave its arrays.
    rng = np.random.default_rng(3)
    x, w = rng.random((2000, 2)), 10.0 ** rng.uniform(-300, 290, 2000)
    splits = median_splits(x, w, 1)
    assert np.isfinite(splits.cut).all()
    assert splits.children.max() == len(splits.cut) - 1


def plain(x, starts, weights):
    out = np.zeros((len(x), len(starts)))
    for r, draw in enumerate(x):
        for s, first in enumerate(starts):
            for begin, end in zip(first, [*first[1:], len(draw)], strict=True):
                out[r, s] += (draw[begin:end].sum(axis=0) ** 2 * weights[s, end - 1]).sum()
    return out


def marks(starts, cells):
    is_last = np.zeros((len(starts), cells), dtype=bool)
    for s, first in enumerate(starts):
        is_last[s, [*(np.array(first[1:], dtype=int) - 1), cells - 1]] = True
    return is_last


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("starts", [[[0, 2, 3, 5]], [[0, 1, 2, 3, 4, 5, 6], [0, 3, 5], [0]], [[0]]])
def test_squares_equal_a_plain_loop(starts, m):
    rng = np.random.default_rng(m)
    x, weights = rng.normal(size=(4, 7, m)), rng.random((len(starts), 7, m))
    assert np.allclose(nested_squares(x, marks(starts, 7), weights), plain(x, starts, weights), rtol=1e-12)


def test_cells_without_any_scale_have_no_squares():
    # A kernel that wrote to the first scale regardless once corrupted memory.
    assert nested_squares(np.ones((5, 2, 1)), np.zeros((0, 2), dtype=bool), np.ones((0, 2, 1))).shape == (5, 0)
