"""Are pairs with the same label counted, draw by draw, as a plain loop counts them?"""

import itertools

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels.pairwise import (
    DRAWS_PER_TILE,
    HALF_SCALE,
    PAIRS_PER_RUN,
    add_label_matches,
    label_differences,
    match_differences,
)


def by_loops(k, labels, blocks=None):
    """Σ k over the pairs of rows of one block with the same label, for each draw; k (n, n)."""
    n, draws = labels.shape
    blocks = np.zeros(n, dtype=int) if blocks is None else blocks
    sums = np.zeros(draws)
    for r in range(draws):
        for j, i in itertools.combinations(range(n), 2):
            if j >= blocks[i] and labels[i, r] == labels[j, r]:
                sums[r] += k[i, j]
    return sums


def strips(k, labels, cuts, blocks=None):
    n = len(k)
    blocks = np.zeros(n, dtype=np.int64) if blocks is None else blocks
    out = np.zeros((2, labels.shape[1]), dtype=np.int64)
    for top, bottom in itertools.pairwise([0, *cuts, n]):
        start = int(blocks[top]) if top < n else 0
        add_label_matches(k[top:bottom, start:bottom], top, start, blocks, labels, out)
    return out


def similar(n):
    P = np.random.default_rng(n).random((n, 2))
    return np.exp(-np.abs(P[:, None] - P[None]).sum(axis=2))


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize(("n", "draws"), [(1, 2), (2, 1), (5, 3), (11, 4)])
def test_sums_equal_a_plain_loop(n, draws, dtype, layout):
    k = similar(n)
    labels = np.random.default_rng(n).integers(0, 3, (n, draws)).astype(dtype)
    upper, lower = strips(layout(k), layout(labels), [n // 2])
    # each similarity is rounded at 2⁻⁴²
    sums = (upper * 2.0**21 + lower) / 2.0**42
    np.testing.assert_allclose(sums, by_loops(k, labels), rtol=0, atol=n * n / 2 * 2.0**-43)


def test_blocks_do_not_see_each_other():
    k, blocks = similar(9), np.array([0, 0, 0, 3, 3, 3, 3, 7, 7])
    labels = np.random.default_rng(0).integers(0, 2, (9, 5)).astype(np.uint8)
    differences = match_differences(strips(k, labels, [7], blocks))
    truth = by_loops(k, labels, blocks)
    np.testing.assert_allclose(differences, truth[1:] - truth[0], rtol=0, atol=40 * 2.0**-42)


@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_runs_and_blocks_of_draws_at_their_boundaries(beyond, monkeypatch):
    n, draws = 12, 9
    k = similar(n)
    labels = np.random.default_rng(1).integers(0, 2, (n, draws)).astype(np.uint8)
    unsplit = strips(k, labels, [])
    # Whole numbers are the same in any order of strips and for any part of the draws.
    assert strips(k, labels, [4 + beyond, 8]).tolist() == unsplit.tolist()
    assert strips(k, labels[:, : 5 + beyond], [6]).tolist() == unsplit[:, : 5 + beyond].tolist()


def test_no_run_overflows_when_all_rows_are_alike():
    n = PAIRS_PER_RUN + 9
    labels = np.zeros((n, 2), dtype=np.uint8)
    upper, lower = strips(np.ones((n, n)), labels, [n - 3])
    # n (n − 1) / 2 pairs of similarity 1, whose lower half is 0
    assert upper.tolist() == [n * (n - 1) // 2 * HALF_SCALE] * 2
    assert lower.tolist() == [0, 0]


def test_more_draws_than_stay_near():
    draws = DRAWS_PER_TILE + 5
    labels = np.random.default_rng(2).integers(0, 2, (3, draws)).astype(np.uint8)
    k = similar(3)
    differences = match_differences(strips(k, labels, []))
    truth = by_loops(k, labels)
    np.testing.assert_allclose(differences, truth[1:] - truth[0], rtol=0, atol=6 * 2.0**-42)


def test_equal_labels_differ_by_exactly_nothing():
    k = similar(20)
    labels = np.repeat(np.random.default_rng(3).integers(0, 4, (20, 1)), 6, axis=1).astype(np.uint8)
    assert match_differences(strips(k, labels, [7])).tolist() == [0.0] * 5
    assert label_differences(np.random.default_rng(4).random((20, 4)), labels).tolist() == [0.0] * 5


@pytest.mark.parametrize("draws", [1, 2, 257, 258])
def test_a_table_is_read_as_a_plain_loop_reads_it(draws):
    rng = np.random.default_rng(draws)
    table, labels = rng.normal(size=(4, 3)), rng.integers(0, 3, (4, draws)).astype(np.uint8)
    totals = [sum(table[i, labels[i, r]] for i in range(4)) for r in range(draws)]
    np.testing.assert_allclose(
        label_differences(table, labels), np.array(totals[1:]) - totals[0], rtol=1e-12, atol=1e-13
    )
