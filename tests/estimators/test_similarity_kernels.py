"""Do kernels see how alike predictions are, and do samples depend on nothing but the values?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests import reference
from tests.data.refused import refused
from trueodds.core.typing import Array
from trueodds.estimators._pairwise.similarity_kernels import (
    KERNELS,
    SimilarityKernel,
    evenly_spaced_positions,
    hashed_order,
    median_distance,
    positions_by_weight,
)
from trueodds.estimators.skce import SquaredKernelError
from trueodds.kernels.pairwise import pairwise_distances, sum_exponential_kernel
from trueodds.lenses.view import View

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 1, 1], 40)


def view(p: Array, w: Array | None = None) -> View:
    return View(p, np.zeros(np.shape(p)), w)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        # p = (.2, .3, .5), q = (.5, .3, .2): ‖p − q‖₂ = √.18, TV = (.3 + .3)/2 = .3; bandwidth .5
        ("exponential", math.exp(-math.sqrt(0.18) / 0.5)),
        ("gaussian", math.exp(-0.18 / (2 * 0.25))),
        ("tv-exponential", math.exp(-0.3 / 0.5)),
    ],
)
def test_by_hand(shape: str, expected: float) -> None:
    k = SimilarityKernel(shape, 0.5).gram_matrix(np.array([[0.2, 0.3, 0.5]]), np.array([[0.5, 0.3, 0.2]]))
    assert float(k[0, 0]) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("shape", KERNELS)
def test_a_score_is_the_vector_of_both_classes(shape: str) -> None:
    p, q = RNG.random((7, 1)), RNG.random((5, 1))
    pairs = [np.concatenate([x, 1 - x], axis=1) for x in (p, q)]
    assert np.allclose(
        SimilarityKernel(shape, 0.3).gram_matrix(p, q), SimilarityKernel(shape, 0.3).gram_matrix(*pairs), rtol=1e-13
    )


@pytest.mark.parametrize("shape", KERNELS)
def test_a_kernel_is_symmetric_positive_definite_and_exactly_one_at_equal_rows(shape: str) -> None:
    k = SimilarityKernel(shape, 0.4).gram_matrix(P, P)
    assert (np.diag(k) == 1).all()
    assert np.array_equal(k, k.T)
    # The smallest eigenvalue of a positive definite matrix of trace n is found with an error of about n eps.
    assert np.linalg.eigvalsh(k).min() > -40 * len(P) * np.finfo(float).eps
    assert (SimilarityKernel(shape, 0.4).diagonal(P) == 1).all()


def test_nearly_equal_rows_keep_their_distance() -> None:
    # A difference of squares, |p|² + |q|² − 2pq, would lose a distance of 1e-9 altogether.
    p = np.array([[0.25, 0.25, 0.5]])
    q = p + np.array([[1e-9, -1e-9, 0.0]])
    assert float(pairwise_distances(p, q, absolute=False)[0, 0]) == pytest.approx(2e-18, rel=1e-6)
    assert float(pairwise_distances(p, q, absolute=True)[0, 0]) == pytest.approx(2e-9, rel=1e-6)


@pytest.mark.parametrize("shape", ["exponential", "tv-exponential"])
def test_a_pass_along_the_line_is_the_sum_over_all_pairs(shape: str) -> None:
    p = np.sort(np.concatenate([RNG.random(30), [0.5, 0.5, 0.5]]))
    e = RNG.normal(size=(20, len(p)))
    kernel = SimilarityKernel(shape, 0.2)
    k = kernel.gram_matrix(p[:, None], p[:, None])
    np.fill_diagonal(k, 0.0)
    decay = kernel.decay(p)
    assert decay is not None
    assert np.allclose(sum_exponential_kernel(e, decay), np.einsum("bi,ij,bj->b", e, k, e), rtol=1e-12, atol=1e-12)
    assert SimilarityKernel("gaussian", 0.2).decay(p) is None


def test_the_median_by_hand() -> None:
    # TV of 0, .3, 1 with each other and themselves: 0 0 0 .3 .3 .7 .7 1 1, the middle one is .3
    assert median_distance(view(np.array([0.0, 0.3, 1.0])), "tv-exponential") == pytest.approx(0.3, rel=1e-14)
    # Two rows: 0 0 d d, between them d/2; in L2 the vectors (p, 1 − p) are √2 apart for p apart by 1
    assert median_distance(view(np.array([0.0, 1.0]))) == pytest.approx(math.sqrt(2) / 2, rel=1e-14)


@pytest.mark.reference
@pytest.mark.parametrize("name", ["g3_200", "g3cal_200"])
def test_the_median_is_that_of_the_source(name: str) -> None:
    # Reference: golden anchors; the median over the whole matrix of distances, its diagonal included.
    truth = reference.golden("anchors/golden.json")["kernel_and_ece"][name]["median_heuristic"]
    Q = reference.columns(reference.frame(f"anchors/synthetic/{name}.csv"))
    assert median_distance(view(Q), "tv-exponential") == pytest.approx(truth["TV_all_pairs_incl_diag"], rel=1e-12)


def test_the_median_of_weighted_rows_is_that_of_repeated_rows() -> None:
    w = RNG.integers(0, 4, len(P)).astype(float)
    repeated = np.repeat(P, w.astype(int), axis=0)
    assert median_distance(view(P, w)) == pytest.approx(median_distance(view(repeated)), rel=1e-14)
    assert median_distance(view(P, 0.3 * w)) == median_distance(view(P, w))


def test_the_bandwidth_is_above_zero_where_most_predictions_are_equal() -> None:
    assert median_distance(view(np.full(9, 0.3))) == 1.0
    assert median_distance(view(np.array([0.7]))) == 1.0
    # 64 + 1 + 1 of 100 pairs are equal; of the others 16 are .1 apart, 16 are .6 and two .5: the middle is .5
    tied = np.array([0.2] * 8 + [0.3, 0.8])
    assert median_distance(view(tied), "tv-exponential") == pytest.approx(0.5, rel=1e-14)


def test_the_bandwidth_of_many_rows_depends_on_neither_their_order_nor_that_of_the_classes() -> None:
    Q = RNG.dirichlet([0.3, 0.5, 1, 2], 2000).round(2)  # rounded: ties, and rows that are others with classes swapped
    bandwidth = median_distance(view(Q))
    order = RNG.permutation(len(Q))
    assert median_distance(view(Q[order])) == bandwidth
    w = RNG.integers(1, 4, len(Q)).astype(float)
    assert median_distance(view(Q[order], w[order])) == median_distance(view(Q, w))
    assert median_distance(view(Q, np.ones(len(Q)) * 7)) == bandwidth
    # 1,000 of 2,000: the share of pairs below has a standard deviation of at most 2 · ½ / √1000 = .032, three are .1
    low, high = np.quantile(np.sqrt(pairwise_distances(Q, Q, absolute=False)), [0.4, 0.6])
    assert low <= bandwidth <= high
    assert low <= median_distance(view(Q[:, [2, 0, 3, 1]])) <= high


def test_the_hashed_order_follows_the_values() -> None:
    Q = np.round(P, 1)
    order = RNG.permutation(len(Q))
    assert np.array_equal(Q[hashed_order(Q)], Q[order][hashed_order(Q[order])])
    assert not np.array_equal(np.sort(hashed_order(P)), hashed_order(P))
    zeros = np.array([[0.0, 1.0], [-0.0, 1.0]])
    assert np.array_equal(hashed_order(zeros), [0, 1])  # minus zero is zero
    tie = np.array([3.0, 1.0])
    same = np.array([[0.5, 0.5], [0.5, 0.5]])
    assert tie[hashed_order(same, tie)].tolist() == tie[::-1][hashed_order(same, tie[::-1])].tolist()


def test_the_hashed_order_does_not_change_with_the_last_digits() -> None:
    # As those of a softmax do from one processor to the next. Of 20,000 values one in 10^8 or so lies near enough to
    # where single precision rounds the other way.
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(10), 2000)
    Q = P * (1 + rng.integers(-1, 2, P.shape) * 2.0**-52)
    assert (P != Q).any(axis=1).mean() > 0.9
    assert np.array_equal(hashed_order(P), hashed_order(Q))


def test_rows_that_single_precision_cannot_tell_apart_still_have_an_order_of_their_own() -> None:
    P = np.repeat([[0.2, 0.8]], 20, axis=0) + np.outer(np.arange(20), [1, -1]) * 2.0**-50
    shuffled = np.random.default_rng(1).permutation(20)
    assert np.array_equal(P[hashed_order(P)], P[shuffled][hashed_order(P[shuffled])])


def test_even_places_lie_evenly() -> None:
    assert evenly_spaced_positions(10, 5).tolist() == [0, 2, 4, 6, 8]
    # Half of the weight in one row: it takes half of the places.
    w = np.array([1.0] * 10 + [10.0])
    assert (positions_by_weight(w, 100) == 10).sum() == 50


def test_a_function_may_be_the_kernel() -> None:
    kernel = SimilarityKernel(lambda A, B: A @ B.T, 1.0)
    assert np.allclose(kernel.gram_matrix(P[:3], P[:5]), P[:3] @ P[:5].T)
    assert np.allclose(kernel.diagonal(P), (P**2).sum(axis=1))
    # A score is handed over as (p, 1 − p): .2 · .7 + .8 · .3 = .38
    assert float(kernel.gram_matrix(np.array([[0.2]]), np.array([[0.7]]))[0, 0]) == pytest.approx(0.38, rel=1e-14)
    with refused("TO203", "shape (3,)", fix="P @ Q.T"):
        SimilarityKernel(lambda A, B: A[:, 0], 1.0).gram_matrix(P[:3], P[:5])


def test_meaningless_kernels_and_bandwidths_are_refused() -> None:
    with refused("TO203", "'gauss'", fix="gaussian"):
        SquaredKernelError(kernel="gauss")
    for bandwidth in (0, -1.0, "mean", None, True, math.nan, math.inf):
        with refused("TO203", repr(bandwidth), fix="median"):
            SquaredKernelError(bandwidth=bandwidth)


@pytest.mark.parametrize("shape", ["exponential", "gaussian", "tv-exponential"])
def test_a_bandwidth_near_zero_separates_all_predictions(shape: str) -> None:
    # A distance divided by the bandwidth overflows, and exp(−∞) is 0.
    scores = np.array([[0.2], [0.7]])
    kernel = SimilarityKernel(shape, 1e-310)
    assert kernel.gram_matrix(scores, scores).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert kernel.decay(scores[:, 0]) is None if shape == "gaussian" else kernel.decay(scores[:, 0]).tolist() == [0, 0]
