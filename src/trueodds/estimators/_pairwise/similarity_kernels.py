"""Similarity kernels between predictions with their bandwidth, and an order of rows that ignores their position."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.settings import OneOf, Positive, call_user_function
from trueodds.core.typing import Array
from trueodds.kernels.bootstrap import WEYL_INCREMENT
from trueodds.kernels.pairwise import pairwise_distances
from trueodds.kernels.random_labels import random_bits
from trueodds.lenses.view import View

# First of the evenly spaced positions, in units of their distance. With integer weights, a rational number could put a
# position exactly between two rows, where rounding would decide which one is chosen.
FIRST_OFFSET = (3 - 5**0.5) / 2


def hashed_order(P: Array, *tie_breakers: Array) -> Array:
    """Return the row numbers (n,) in a pseudo-random order that depends only on the values of the rows P (n, m).

    Rows are sorted by a hash that ignores the order of the columns, so that a different order of the classes changes
    the result only among rows with the same numbers. These are sorted by a hash in which the order counts, then by
    hashes of the `tie_breakers` (n, …), in their order. The first two hashes are of single precision, because the last
    digits of a softmax differ between processors; a hash of the full values decides remaining ties.
    """
    rounded = P.astype(np.float32)
    keys = [
        _hash_rows(rounded, use_order=False),
        _hash_rows(rounded, use_order=True),
        *(_hash_rows(x.reshape(len(x), -1), use_order=True) for x in tie_breakers),
        _hash_rows(P, use_order=True),
    ]
    return np.lexsort(keys[::-1])  # which sorts by its last key first


def evenly_spaced_positions(n: int, count: int) -> Array:
    """Return `count` positions that are evenly spaced from 0 to n − 1, (count,)."""
    return ((np.arange(count) + FIRST_OFFSET) * (n / count)).astype(np.int64)


def positions_by_weight(w: Array, count: int) -> Array:
    """Return the indices (count,) of the rows at evenly spaced values of the cumulative weight of `w` (n,)."""
    cumulative = np.cumsum(w)
    return np.searchsorted(cumulative, (np.arange(count) + FIRST_OFFSET) * (cumulative[-1] / count), side="right")


def draw_multiplicities(n: int, resamples: int, block_size: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield how often each of n rows occurs in each bootstrap resample, in blocks (≤ block_size, n)."""
    for start in range(0, resamples, block_size):
        drawn_rows = rng.integers(0, n, (min(block_size, resamples - start), n))
        yield np.stack([np.bincount(rows_of_draw, minlength=n) for rows_of_draw in drawn_rows])


def _hash_rows(x: Array, *, use_order: bool) -> Array:
    """Hash of each row of x (n, m) from the bits of its values, (n,); with `use_order` their order counts."""
    hashes = np.zeros(len(x), dtype=np.uint64)
    for c, column in enumerate(x.T):
        bits = (column.astype(np.float64) + 0.0).view(np.uint64)  # + 0.0: minus zero is zero
        hashes += _mix_bits(_mix_bits(bits) + np.uint64(c + 1)) if use_order else _mix_bits(bits)
    return hashes


def _mix_bits(z: Array) -> Array:
    """Map similar inputs to unrelated outputs, by one step of splitmix64."""
    hashes: Array = random_bits(z + WEYL_INCREMENT)
    return hashes


Similarity = Callable[[Array, Array], Array]  # (a, m) and (b, m) to (a, b), symmetric and positive definite

KERNELS = ("exponential", "gaussian", "tv-exponential")
KernelName = Annotated[str, OneOf(KERNELS)]
Bandwidth = Positive | Literal["median"]
MAX_MEDIAN_ROWS = 1_000  # predictions whose distances give the median


@dataclass(frozen=True)
class SimilarityKernel:
    r"""A kernel on predictions, 1 for equal predictions and decreasing in their distance over the bandwidth ν.

    `exponential` is :math:`e^{-\lVert p-q\rVert_2/\nu}`, `gaussian` :math:`e^{-\lVert p-q\rVert_2^2/2\nu^2}`,
    `tv-exponential` :math:`e^{-\mathrm{TV}(p,q)/\nu}` (a Laplace kernel, because TV is half of L1). All three are
    positive definite, while a Gaussian of TV would not be. A score p of a binary view is the vector (p, 1 − p), so the
    distance of two scores is √2 |p − q| for the first two kernels and |p − q| for the third.

    >>> SimilarityKernel("tv-exponential", 0.5).gram_matrix(np.array([[0.2]]), np.array([[0.7]])).round(4).tolist()
    [[0.3679]]
    """

    shape: str | Similarity  # one of `KERNELS`, or a function of two matrices of predictions
    bandwidth: float  # ν, in units of the distance

    def gram_matrix(self, P: Array, Q: Array) -> Array:
        """Kernel value of each row of P (a, m) with each of Q (b, m), as (a, b). Binary scores have one column."""
        if not isinstance(self.shape, str):
            return _custom_kernel(self.shape, complete_vectors(P), complete_vectors(Q))
        # The exponent is computed in place of the distances: −(d/ν)²/2 or −d/ν.
        k = _distances(P, Q, self.shape)
        with np.errstate(over="ignore"):  # exp(−∞) = 0 for a small bandwidth
            if self.shape == "gaussian":
                k /= self.bandwidth
                np.square(k, out=k)
                k *= -0.5
            else:
                k /= -self.bandwidth
        return np.exp(k, out=k)

    def diagonal(self, P: Array) -> Array:
        """Kernel value of each row with itself, (n,)."""
        if isinstance(self.shape, str):
            return np.ones(len(P))
        return np.array([self.gram_matrix(row[None], row[None])[0, 0] for row in P])

    def decay(self, p: Array) -> Array | None:
        """Return the kernel value of each sorted score p (n,) with the previous one, (n,); 0 for the first.

        For exponential kernels of one score, products of these factors are the kernel values of all pairs. None for
        other kernels.
        """
        if self.shape not in ("exponential", "tv-exponential"):
            return None
        distance = np.diff(p) * (np.sqrt(2) if self.shape == "exponential" else 1.0)
        with np.errstate(over="ignore"):
            return np.concatenate(([0.0], np.exp(-distance / self.bandwidth)))


def kernel_for_view(kernel: str | Similarity, bandwidth: str | float, view: View) -> SimilarityKernel:
    """The kernel with its bandwidth for this view. User functions have no bandwidth."""
    if not isinstance(kernel, str):
        return SimilarityKernel(kernel, 1.0)
    return SimilarityKernel(
        kernel, float(bandwidth) if not isinstance(bandwidth, str) else median_distance(view, kernel)
    )


def prediction_matrix(view: View) -> Array:
    """The predictions of the view as float64 (n, m); a binary view has one column."""
    return np.asarray(view.p if view.joint else view.p[:, None], dtype=np.float64)


def median_distance(view: View, shape: str = "exponential") -> float:
    """Median distance of two predictions of a view drawn with replacement, which does not depend on labels."""
    return median_distance_of_rows(prediction_matrix(view), view.w, shape)


def median_distance_of_rows(P: Array, w: Array, shape: str = "exponential") -> float:
    """Median distance of two of the predictions P (n, m) drawn with replacement, with probabilities as the weights w.

    Above 1,000 rows it uses 1,000 rows evenly spaced in the weight, independent of the row order. If most pairs are
    equal, it is the median of the nonzero distances, or 1 if there are none.
    """
    P, w = P[w > 0], w[w > 0]
    if len(P) > MAX_MEDIAN_ROWS:
        order = hashed_order(P)
        P = P[order[positions_by_weight(w[order], MAX_MEDIAN_ROWS)]]
        w = np.ones(MAX_MEDIAN_ROWS)
    distances = _distances(P, P, shape).ravel()
    pair_weights = None if (w == w[0]).all() else np.outer(w, w).ravel()
    median = _median(distances, pair_weights)
    if median > 0:
        return median
    positive = distances > 0
    return (
        _median(distances[positive], None if pair_weights is None else pair_weights[positive])
        if positive.any()
        else 1.0
    )


def _median(distances: Array, pair_weights: Array | None) -> float:
    """Weighted median of distances (pairs,). A pair of weight 2 counts as two pairs."""
    if pair_weights is None:
        return float(np.median(distances))
    order = np.argsort(distances)
    cumulative = np.cumsum(pair_weights[order])
    half, tolerance = cumulative[-1] / 2, 1e-9 * cumulative[-1]  # scaled weights round, and must not move a tie
    return float(distances[order[np.searchsorted(cumulative, [half - tolerance, half + tolerance])]].mean())


def _distances(P: Array, Q: Array, shape: str) -> Array:
    """Distances (a, b) between the rows of P (a, m) and Q (b, m): total variation or Euclidean, by kernel."""
    if P.shape[1] == 1:  # (p, 1 − p) and (q, 1 − q)
        return np.abs(P - Q.T) * (1.0 if shape == "tv-exponential" else np.sqrt(2))
    d = pairwise_distances(P, Q, absolute=shape == "tv-exponential")
    if shape == "tv-exponential":
        d *= 0.5
        return d
    return np.sqrt(d, out=d)


def complete_vectors(P: Array) -> Array:
    """Probabilities of all outcomes, (n, m): a single score p becomes (p, 1 − p)."""
    return np.concatenate([P, 1 - P], axis=1) if P.shape[1] == 1 else P


def _custom_kernel(kernel: Similarity, P: Array, Q: Array) -> Array:
    """Validated values (a, b) of a user-defined kernel for the rows of P (a, m) and Q (b, m)."""
    k = np.array(call_user_function("kernel", kernel, P, Q), dtype=np.float64)
    if k.shape != (len(P), len(Q)) or not np.isfinite(k).all():
        raise InputError(
            "TO203",
            "A kernel must return a finite number for each row of P and each row of Q.",
            f"shape {k.shape} for {len(P)} and {len(Q)} rows",
            "For instance lambda P, Q: P @ Q.T.",
        )
    return k
