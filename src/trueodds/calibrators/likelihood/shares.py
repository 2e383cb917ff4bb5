"""In what shares should a few forecasts be mixed? The shares that are best, and no more forecasts than it takes."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from trueodds.core.typing import Array

_CLOSE = 1e-10  # of the whole weight, what another forecast must promise to be let in
_STEPS = 100


def likeliest(A: Array, w: Array) -> Array:
    r"""Shares v (m,) ≥ 0 with sum 1 of the largest :math:`\sum_r w_r \log(A_r v)`, A (r, m) ≥ 0.

    The likelihood is concave, so they are best once no other forecast gains: Σ w a/(A v) ≤ Σ w for each. Forecasts
    are tried alone, then in pairs, and so on; where several shares are best, those of the first fewest.

    >>> likeliest(np.array([[0.9, 0.5], [0.9, 0.5], [0.1, 0.5]]), np.ones(3)).round(6).tolist()
    [0.416667, 0.583333]
    """
    live = w > 0
    A, w = A[live], w[live]
    total = float(w.sum())
    closest, optimal = np.inf, np.full(A.shape[1], 1 / A.shape[1])
    for face in _faces(A.shape[1]):
        shares = _inside(A[:, face], w)
        q = A[:, face] @ shares
        if not (q > 0).all():
            continue
        short = float(((w / q) @ A).max(initial=total)) / total - 1
        if short < closest:
            closest, optimal = short, _embed(shares, face, A.shape[1])
        if short <= _CLOSE:
            break
    return optimal


def nearest(G: Array, c: Array) -> Array:
    r"""Shares v (m,) ≥ 0 with sum 1 of the least :math:`v^\top G v - 2c^\top v`, G (m, m) positive semidefinite.

    >>> nearest(np.eye(2), np.array([0.7, 0.5])).round(6).tolist()
    [0.6, 0.4]
    """
    size = max(float(np.abs(G).max()), float(np.abs(c).max()))
    closest, optimal = np.inf, np.full(len(c), 1 / len(c))
    for face in _faces(len(c)):
        m = len(face)
        bordered = np.ones((m + 1, m + 1))
        bordered[:m, :m], bordered[m, m] = G[np.ix_(face, face)], 0.0
        shares = np.linalg.lstsq(bordered, np.append(c[face], 1.0), rcond=1e-14)[0][:m]
        if (shares < 0).any():
            continue
        v = _embed(shares / shares.sum(), face, len(c))
        slope = G @ v - c
        short = (float(slope[face].min()) - float(slope.min())) / size if size else 0.0
        if short < closest:
            closest, optimal = short, v
        if short <= _CLOSE:
            break
    return optimal


def _faces(m: int) -> list[list[int]]:
    return [list(face) for size in range(1, m + 1) for face in combinations(range(m), size)]


def _embed(shares: Array, face: list[int], m: int) -> Array:
    v = np.zeros(m)
    v[face] = shares
    return v


def _inside(A: Array, w: Array) -> Array:
    """The best shares of all the forecasts by Newton's method; it stays inside, where every share is positive."""
    m = A.shape[1]
    v = np.full(m, 1 / m)
    along = np.eye(m)[:, :-1] - np.eye(m)[:, -1:]  # directions in which the sum stays 1
    if m == 1:
        return v
    q = A @ v
    if not (q > 0).all():
        return v
    value = float(w @ np.log(q))
    for _ in range(_STEPS):
        slope = ((w / q) @ A) @ along
        if np.abs(slope).max() <= 1e-13 * w.sum():
            break
        tilt = (np.sqrt(w) / q)[:, None] * (A @ along)
        step = along @ np.linalg.lstsq(tilt.T @ tilt, slope, rcond=1e-15)[0]
        falling = step < 0
        length = min(1.0, 0.99 * float((v[falling] / -step[falling]).min(initial=np.inf)))
        while length > 1e-12:
            there = v + length * step
            reached = float(w @ np.log(A @ there))
            if reached >= value - 1e-15 * abs(value):
                break
            length /= 2
        else:
            break
        if np.abs(there - v).max() <= 1e-16:
            break
        v, q, value = there / there.sum(), A @ there, reached
    return v
