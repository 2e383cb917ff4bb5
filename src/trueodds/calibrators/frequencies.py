"""How frequent is each class among rows whose labels are not known? Three estimates under label shift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from trueodds.core.results import figure
from trueodds.core.settings import OneOf

Array = NDArray[Any]

_GAP = 1e-10  # of log-likelihood per row, that better frequencies could gain at most
_PASSES = 2000
_SINGULAR = 100.0  # the condition number above which a confusion matrix tells little


@dataclass(frozen=True, slots=True, eq=False)
class Frequencies:
    """Estimated shares of the classes, and what is doubtful about them."""

    shares: Array  # (K,) summing to 1
    passes: int = 0
    converged: bool = True
    doubts: tuple[str, ...] = ()


def likeliest(P: Array, Y: Array, w: Array, T: Array) -> Frequencies:  # noqa: ARG001 - one shape for all estimates
    r"""Those under which the target's predictions T (m, K) are most likely, by expectation and maximization.

    .. math:: \max_\pi \frac1m \sum_i \log \sum_k \frac{p_{ik}}{\pi^s_k} \pi_k, \qquad
        \pi_k \leftarrow \pi_k d_k, \quad d_k = \frac1m \sum_i \frac{p_{ik} / \pi^s_k}{\sum_l (p_{il} / \pi^s_l) \pi_l}

    Concave, and what is left to gain is at most :math:`\log \max_k d_k`, so it is known when it has converged. Two
    steps are prolonged to a leap where that gains likelihood (SQUAREM), so it never falls. Sources: Saerens, Latinne
    & Decaestecker (2002); Varadhan & Roland (2008).
    """
    source = (w @ Y) / w.sum()
    seen = source > 0
    R = T[:, seen] / source[seen]
    possible = R.sum(axis=1) > 0
    lost = int(np.count_nonzero(~possible))
    doubts = [f"{lost:,} target rows say only classes that never came in the source, and were left out"] if lost else []
    if lost == len(T):
        return Frequencies(source, 0, False, tuple(doubts))
    share, passes, converged = _climbed(R[possible], source[seen])
    if not converged:
        doubts.append(f"The likelihood still rises after {passes:,} passes: the classes are hard to tell apart")
    shares = np.zeros(len(source))
    shares[seen] = share
    return Frequencies(shares, passes, converged, tuple(doubts))


def _climbed(R: Array, share: Array) -> tuple[Array, int, bool]:
    passes = 0
    while passes < _PASSES:
        first, left, _ = _step(R, share)
        passes += 1
        if left <= _GAP:
            return share / share.sum(), passes, True
        second, _, reached = _step(R, first)
        passes += 1
        leap = _leap(share, first, second)
        share = second
        if leap is not None:
            ahead, _, there = _step(R, leap)
            passes += 1
            share = ahead if there >= reached else second
    return share / share.sum(), passes, False


def _step(R: Array, share: Array) -> tuple[Array, float, float]:
    """The next shares, the most that is left to gain, and the mean log-likelihood here."""
    mixed = R @ share
    ratio = (1 / mixed) @ R / len(R)
    # A share that vanishes is kept above 0, since no step could bring it back.
    return np.maximum(share * ratio, 1e-300), float(np.log(ratio.max())), float(np.log(mixed).mean())


def _leap(start: Array, first: Array, second: Array) -> Array | None:
    """Where two steps lead if they go on shrinking as they did; None where that is no further."""
    change = first - start
    bend = (second - first) - change
    size = float(np.linalg.norm(bend))
    far = float(np.linalg.norm(change)) / size if size > 0 else 1.0
    while far > 1.01:
        there = start + 2 * far * change + far**2 * bend
        if (there > 0).all():
            return there / there.sum()
        far = (far + 1) / 2
    return None


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


def _solved(said: Array, Y: Array, w: Array, there: Array) -> Frequencies:
    C = (said * w[:, None]).T @ Y / w.sum()
    source = C.sum(axis=0)
    seen = source > 0
    solved, _ = nnls(C[:, seen], there.mean(axis=0))
    shares = np.zeros(len(source))
    shares[seen] = solved * source[seen]
    condition = float(np.linalg.cond(C[:, seen] / source[seen]))
    doubts = (
        ()
        if condition < _SINGULAR
        else (f"The confusion matrix is nearly singular (condition {figure(condition)}), so the frequencies are rough",)
    )
    total = shares.sum()
    return Frequencies(shares / total if total > 0 else source, 0, bool(total > 0), doubts)


ESTIMATES: dict[str, Callable[[Array, Array, Array, Array], Frequencies]] = {
    "em": likeliest,
    "bbse": unmixed,
    "bbse-soft": unmixed_softly,
}
How = Annotated[str, OneOf(tuple(ESTIMATES))]
