"""Are vectors split at the weighted median of the axis of largest variance?"""

import numpy as np
import pytest

from trueodds.kernels.variance_splits import LEAF, NO_SPLIT, median_splits

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
