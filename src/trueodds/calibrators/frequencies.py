"""How frequent is each class among rows whose labels are not known? Three estimates under label shift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from trueodds.calibrators.likelihood.nonnegative import NonnegativeMinimum, minimize_nonnegative
from trueodds.core.results import figure
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array

_MAX_EVALUATIONS = 200
_ROWS = 4096  # whose ratios are held at a time
_SINGULAR = 100.0  # the condition number above which a confusion matrix tells little


@dataclass(frozen=True, slots=True, eq=False)
class Frequencies:
    """Estimated shares of the classes, and what is doubtful about them."""

    shares: Array  # (K,) summing to 1
    n_passes: int = 0
    converged: bool = True
    doubts: tuple[str, ...] = ()


def likeliest(P: Array, Y: Array, w: Array, T: Array) -> Frequencies:  # noqa: ARG001 - one shape for all estimates
    r"""Those under which the target's predictions T (m, K) are most likely.

    .. math:: \max_\pi \frac1m \sum_i \log \sum_k \frac{p_{ik}}{\pi^s_k} \pi_k

    Expectation and maximization multiplies :math:`\pi_k` by :math:`d_k = \frac1m \sum_i \frac{p_{ik} / \pi^s_k}{\sum_l
    (p_{il} / \pi^s_l) \pi_l}` until these are 1, in hundreds of passes where the classes are hard to tell apart. The
    likelihood is concave, so Newton's method finds the same shares, in about ten passes and to the last digits; a class
    that left has the share 0. Source: Saerens, Latinne & Decaestecker (2002).
    """
    source = (w @ Y) / w.sum()
    observed = source > 0
    R = T[:, observed] / source[observed]
    possible = R.sum(axis=1) > 0
    lost = int(np.count_nonzero(~possible))
    doubts = [f"{lost:,} target rows say only classes that never came in the source, and were left out"] if lost else []
    if lost == len(T):
        return Frequencies(source, 0, False, tuple(doubts))
    optimum = _likeliest_shares(R[possible], source[observed])
    n_passes = optimum.evaluations
    if not optimum.converged:
        doubts.append(f"The likelihood still rises after {n_passes:,} passes: the classes are hard to tell apart")
    shares = np.zeros(len(source))
    shares[observed] = optimum.x / optimum.x.sum()
    return Frequencies(shares, n_passes, optimum.converged, tuple(doubts))


def _likeliest_shares(R: Array, start: Array) -> NonnegativeMinimum:
    """The shares π of largest mean log(Rπ), as the least −mean log(Rπ) + Σπ, whose minimum has the sum 1."""

    def value(share: Array) -> float:
        mixed = R @ share
        return float(share.sum() - np.log(mixed).mean()) if mixed.min() > 0 else np.inf

    def derivatives(share: Array) -> tuple[Array, Array]:
        mixed, k = R @ share, len(share)
        gradient, hessian = np.ones(k), np.zeros((k, k))
        for first in range(0, len(R), _ROWS):
            ratio = R[first : first + _ROWS] / mixed[first : first + _ROWS, None]
            gradient -= ratio.sum(axis=0) / len(R)
            hessian += ratio.T @ ratio / len(R)
        return gradient, hessian

    return minimize_nonnegative(value, derivatives, start, max_evaluations=_MAX_EVALUATIONS)


def unmixed(P: Array, Y: Array, w: Array, T: Array) -> Frequencies:
    r"""Those that mix the confusion matrix's columns into the target's shares of predicted classes.

    .. math:: \min_{\omega \ge 0} \lVert C\omega - \mu \rVert, \quad C_{ij} = P_s(\hat y = i, y = j), \quad
        \mu_i = P_t(\hat y = i), \quad \pi_k = \pi^s_k \omega_k

    Source: Lipton, Wang & Smola (2018), without their negative weights.
    """
    k = P.shape[1]
    return _solved(np.eye(k)[P.argmax(axis=1)], Y, w, np.eye(k)[T.argmax(axis=1)])


def unmixed_softly(P: Array, Y: Array, w: Array, T: Array) -> Frequencies:
    """The same with probabilities in place of predicted classes, which wastes less of them."""
    return _solved(P, Y, w, T)


def _solved(predicted: Array, Y: Array, w: Array, there: Array) -> Frequencies:
    C = (predicted * w[:, None]).T @ Y / w.sum()
    source = C.sum(axis=0)
    observed = source > 0
    shares = np.zeros(len(source))
    shares[observed] = _least_squares(C[:, observed], there.mean(axis=0)) * source[observed]
    condition = float(np.linalg.cond(C[:, observed] / source[observed]))
    doubts = (
        ()
        if condition < _SINGULAR
        else (f"The confusion matrix is nearly singular (condition {figure(condition)}), so the frequencies are rough",)
    )
    total = shares.sum()
    return Frequencies(shares / total if total > 0 else source, 0, bool(total > 0), doubts)


def _least_squares(C: Array, mean: Array) -> Array:
    """The ω ≥ 0 of least |Cω − mean|²."""
    H, c = C.T @ C, C.T @ mean
    scale = float(c.max())
    if scale <= 0:  # no class of the target was ever predicted in the source
        return np.zeros(len(c))
    H, c = H / scale, c / scale
    optimum = minimize_nonnegative(
        lambda x: float(x @ H @ x) / 2 - float(c @ x), lambda x: (H @ x - c, H), np.ones(len(c))
    )
    return optimum.x


ESTIMATES: dict[str, Callable[[Array, Array, Array, Array], Frequencies]] = {
    "em": likeliest,
    "bbse": unmixed,
    "bbse-soft": unmixed_softly,
}
How = Annotated[str, OneOf(tuple(ESTIMATES))]
