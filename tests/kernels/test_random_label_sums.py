"""Are labels drawn as whole-number arithmetic draws them, one by one, and counted where they belong?"""

import math

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels import random_labels

KEY = 2**62 + 12_345
WORD = 2**64


pytestmark = pytest.mark.usefixtures("integers_wrap_around")


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def row_key(key, row):
    return mix((key + (row + 1) * 0xD1B54A32D192ED03) % WORD)


def uniform(stream, draw):
    return (mix((stream + (draw // 2 + 1) * 0x9E3779B97F4A7C15) % WORD) >> (32 * (draw % 2))) % 2**32


def threshold(share, stream, bits=32):
    return math.floor(share * 2**bits + (mix(WORD - 1 - stream) >> 11) / 2**53)


def number(i, r, cluster, share):
    """The random number of row i in draw r."""
    if share > 0:
        cluster_key = row_key(KEY ^ (WORD - 1), int(cluster[i]))
        if uniform(mix(cluster_key), r) < share * 2**32:
            return uniform(cluster_key, r)
    return uniform(row_key(KEY, i), r)


def label(p, u, stream, bits=32):
    p = [float(x) for x in p]
    last = max(c for c, x in enumerate(p) if x > 0)
    below, total = 0.0, sum(p)
    for c, x in enumerate(p):
        below += x
        if u < (2**bits if c >= last else threshold(below / total, stream, bits)):
            return c
    raise AssertionError


def by_loops(P, start, stop, cluster=None, share=0.0):
    return np.array(
        [
            [label(P[i], number(i, r, cluster, share), row_key(KEY, i)) for i in range(len(P))]
            for r in range(start, stop)
        ]
    )


def table(n, k, dtype=np.float64):
    rng = np.random.default_rng([n, k])
    P = rng.dirichlet(np.full(k, 0.3), n)
    if n > 1:
        P[0], P[1] = 0, 0
        P[0, k // 2] = P[1, 0] = 1  # sure ones
    return P.astype(dtype)


def test_the_random_bits_are_those_of_whole_numbers():
    for z in (0, 1, 2**63, WORD - 1, KEY):
        assert int(random_labels.mix_bits(np.uint64(z))) == mix(z)
        assert int(random_labels.row_stream_key(z % 2**63, 7)) == row_key(z % 2**63, 7)  # keys have 63 bits
        assert int(random_labels.uniform_integer(np.uint64(z), 999)) == uniform(z, 999)
        assert int(random_labels.label_threshold(0.3, random_labels.row_dither(np.uint64(z)), 2.0**32)) == threshold(
            0.3, z
        )


@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 40, 300])
def test_the_class_picked_is_the_first_beyond_the_number(k):
    cumulative = np.sort(np.random.default_rng(k).integers(0, 2**32, k)).astype(np.float64)
    cumulative[-1] = 2**32  # where rounding decides, thresholds repeat and stand on a border of the guide
    cumulative[: k // 2] = np.floor(cumulative[: k // 2] / 2**28) * 2**28
    shift = 32 - random_labels.n_guide_bits(k)
    guide = np.empty(2 ** (32 - shift), dtype=np.int32)
    random_labels.fill_guide(cumulative, shift, guide)
    near = (cumulative[:, None] + [-1, 0, 1]).ravel()
    for u in [0, 2**32 - 1, *near[(near >= 0) & (near < 2**32)].astype(np.uint32)]:
        expected = next(c for c in range(k) if u < cumulative[c])
        assert random_labels.find_class(cumulative, guide, shift, np.uint32(u)) == expected


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 5, 20])
def test_labels_equal_a_plain_loop(k, dtype, layout):
    P = table(9, k, dtype)
    assert random_labels.draw_labels(layout(P), KEY, 3, 8).tolist() == by_loops(P, 3, 8).tolist()


@pytest.mark.parametrize("count", [1, 31, 32, 33])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_labels_at_the_boundaries_of_blocks(count, n):
    P = table(n, 3)
    assert random_labels.draw_labels(P, KEY, 0, count).tolist() == by_loops(P, 0, count).tolist()


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_rows_of_a_cluster_share_their_number_in_a_share_of_the_draws(share):
    P, cluster = table(8, 3), np.arange(8) // 3
    labels = random_labels.draw_labels(P, KEY, 0, 20, cluster=cluster, cluster_probability=share)
    assert labels.tolist() == by_loops(P, 0, 20, cluster, share).tolist()


def slots(n, k, size, seed=0):
    """Two tables of where each label counts, with labels that count nowhere and labels that count together."""
    rng = np.random.default_rng(seed)
    tables = rng.integers(-1, size, (2, n, k)).astype(np.int32)
    tables[1, :, 1:] = tables[1, :, :1]
    return tables


def counted(labels, w, tables, size):
    out = np.zeros((len(labels), size))
    for r, row in enumerate(labels):
        for i, c in enumerate(row):
            for bin_index in tables[:, i, c]:
                if bin_index >= 0:
                    out[r, bin_index] += w[i]
    return out


def sums_of_single_labels(P, w, tables, size, start, stop, **settings):
    labels = random_labels.DrawnLabels(P, KEY, stop, **settings).labels(start, stop)
    return random_labels.sum_weights_of_labels(labels, w, tables, size)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("k", [2, 3, 16, random_labels.MAX_COMPARED_CLASSES, random_labels.MAX_COMPARED_CLASSES + 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_equal_a_plain_loop(k, weighted, layout):
    P, tables = table(7, k), slots(7, k, 5)
    w = np.random.default_rng(1).random(7) if weighted else np.ones(7)
    moved = layout(tables.transpose(1, 2, 0)).transpose(2, 0, 1)
    if random_labels.needs_single_labels(k, 5, 0.0):
        sums = sums_of_single_labels(layout(P), w, moved, 5, 2, 6)
    else:
        sums = random_labels.sum_label_weights(layout(P), w, moved, 5, KEY, 2, 6)
    np.testing.assert_allclose(sums, counted(by_loops(P, 2, 6), w, tables, 5), rtol=1e-13, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_clusters_equal_a_plain_loop(dtype):
    P, tables, cluster, w = table(7, 3, dtype), slots(7, 3, 4), np.arange(7) // 2, np.arange(7) / 4
    sums = sums_of_single_labels(P, w, tables, 4, 0, 9, cluster=cluster, cluster_probability=0.5)
    np.testing.assert_allclose(sums, counted(by_loops(P, 0, 9, cluster, 0.5), w, tables, 4), rtol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [1, 8, 19])
def test_rows_in_another_order_keep_the_labels_of_their_numbers(count, weighted):
    P, tables, cluster = table(30, 4), slots(30, 4, 6), np.arange(30) // 4
    w = np.random.default_rng(2).random(30) if weighted else np.ones(30)
    rows = np.random.default_rng(3).permutation(30)
    for settings in ({}, {"cluster": cluster, "cluster_probability": 0.5}):
        expected = counted(by_loops(P, 3, 3 + count, *settings.values()), w, tables, 6)
        moved = settings | ({"cluster": cluster[rows]} if settings else {})
        sums = sums_of_single_labels(P[rows], w[rows], tables[:, rows], 6, 3, 3 + count, row_numbers=rows, **moved)
        np.testing.assert_allclose(sums, expected, rtol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_sums_at_the_boundaries_of_blocks(n, beyond):
    size = 3
    count = random_labels.MAX_DRAWS_PER_BLOCK + beyond
    P, tables = table(n, 3), slots(n, 3, size)
    sums = random_labels.sum_label_weights(P, np.ones(n), tables, size, KEY, 0, count)
    assert sums.tolist() == counted(by_loops(P, 0, count).reshape(count, n), np.ones(n), tables, size).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_independent_labels_are_drawn_each_for_itself(dtype):
    P, tables, w = np.random.default_rng(0).random((6, 3)).astype(dtype), slots(6, 3, 4), np.arange(6) / 2
    expected = np.zeros((5, 4))
    for r in range(5):
        for i in range(6):
            for c in range(3):
                stream = row_key(KEY, i * 3 + c)
                if uniform(stream, 4 + r) < threshold(float(P[i, c]), stream):
                    for bin_index in tables[:, i, c]:
                        if bin_index >= 0:
                            expected[r, bin_index] += w[i]
    sums = random_labels.sum_label_weights(P, w, tables, 4, KEY, 4, 9, independent=True)
    np.testing.assert_allclose(sums, expected, rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_tables", [1, 2, 3])
@pytest.mark.parametrize(("start", "stop"), [(0, 9), (3, 8)])
def test_many_rows_are_counted_with_numbers_of_16_bits(start, stop, n_tables, dtype, monkeypatch):
    monkeypatch.setattr(random_labels, "MIN_ROWS_OF_SHORT_INTEGERS", 1)
    monkeypatch.setattr(random_labels, "ROWS_PER_COUNT", 4)
    n, k, size = 9, 5, 6
    P = table(n, k, dtype)
    labels = np.empty((stop - start, n), dtype=int)
    for i in range(n):
        stream = row_key(KEY, i)
        for r in range(start, stop):
            bits = mix((stream + (r // 4 + 1) * 0x9E3779B97F4A7C15) % WORD)
            labels[r - start, i] = label(P[i], (bits >> (16 * (r % 4))) % 2**16, stream, 16)
    tables = np.concatenate([slots(n, k, size), slots(n, k, size, 1)])[:n_tables]
    sums = random_labels.sum_label_weights(P, np.ones(n), tables, size, KEY, start, stop)
    assert sums.tolist() == counted(labels, np.ones(n), tables, size).tolist()


def test_numbers_of_16_bits_have_the_predicted_probabilities(monkeypatch):
    # Rounding to 2⁻¹⁶ shifts a sum by about 1/256 of its standard deviation or less.
    monkeypatch.setattr(random_labels, "MIN_ROWS_OF_SHORT_INTEGERS", 1)
    n, draws = 4000, 400
    P = np.tile([1e-6, 1e-4, 0.03, 0.3, 0.669899], (n, 1))
    tables = np.broadcast_to(np.arange(5, dtype=np.int32), (1, n, 5))
    sums = random_labels.sum_label_weights(P, np.ones(n), tables, 5, KEY, 0, draws)
    expected, variance = n * P[0], n * P[0] * (1 - P[0])
    assert (np.abs(sums.mean(axis=0) - expected) < 4.5 * np.sqrt(variance / draws)).all()
    assert sums.var(axis=0)[2:] == pytest.approx(variance[2:], rel=4.5 * np.sqrt(2 / draws))
