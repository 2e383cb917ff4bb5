"""What fits that are linear in the logs are compared with: reference rows, the slope that is left, and fair games."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.calibrators.rows import labels, one_hot
from tests.reference import columns, frame
from trueodds.calibrators._glm.log_linear import clip_logits
from trueodds.calibrators._glm.log_probabilities import floored_logs
from trueodds.tallies.softmax_likelihood import softmax_by_class


class Reference(NamedTuple):
    """400 rows of four classes, and twelve to apply a map to."""

    P: np.ndarray
    z: np.ndarray
    Y: np.ndarray
    w: np.ndarray
    test: np.ndarray
    test_z: np.ndarray


def reference() -> Reference:
    """The rows that the reference numbers were made from; skips where they are absent."""
    rows, test = frame("recalibration/multi4.csv"), frame("recalibration/multi4_test.csv")
    return Reference(
        columns(rows), columns(rows, "z"), one_hot(rows["y"], 4), np.ones(400), columns(test), columns(test, "z")
    )


def slope_left(m, P, Y, w, strength, target) -> float:
    """The largest slope per row of loss and penalty Σ strength (θ − target)² at a map's parameters."""
    x = clip_logits(P, m.min_prob) if m.logits else floored_logs(P, m.min_prob)
    theta = np.column_stack([m.weights, m.bias])
    at = softmax_by_class(x if m.weights.ndim == 2 else x[:, :, None], Y, w, theta.reshape(-1))
    return float(np.abs(at.gradient / w.sum() + 2 * (strength * (theta - target)).reshape(-1)).max())


def surplus(spec, n: int, k: int, games: int, seed: int, sharpness: float = 1.5) -> np.ndarray:
    """What a fit to n labels drawn from calibrated predictions costs on others, in nats per row, (games,).

    That is the mean Kullback–Leibler divergence of the map from the truth on 2,000 rows, where the identity's is 0.
    """
    rng, divergences = np.random.default_rng(seed), np.empty(games)
    for game in range(games):
        z = rng.normal(size=(n + 2000, k)) * sharpness
        R = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        m = spec.fit(R[:n], one_hot(labels(R[:n], rng), k), np.ones(n))
        R = R[n:]
        divergences[game] = (R * (np.log(R) - np.log(m.apply(R)))).sum(axis=1).mean()
    return divergences


def effective(strength: np.ndarray, n: int, k: int, seed: int, sharpness: float = 1.5) -> float:
    """The trace of H(H + 2A)⁻¹ at the identity for rows as `surplus` draws them, A = n · strength (K, K + 1)."""
    z = np.random.default_rng(seed).normal(size=(n, k)) * sharpness
    H = softmax_by_class(
        z - np.log(np.exp(z).sum(axis=1, keepdims=True)),
        np.full((n, k), 1 / k),
        np.ones(n),
        np.eye(k, k + 1).reshape(-1),
    ).hessian
    return float(np.trace(np.linalg.solve(H + 2 * n * np.diag(strength.reshape(-1)), H)))


def derived_chance(parameters: float, n: int, games: int) -> float:
    """What the mean surplus of maximum likelihood stays below, but for one time in 30,000.

    2n times the surplus is about chi-squared with as many degrees of freedom as parameters: mean m, variance 2m. With
    a penalty A towards the truth it is a sum of chi-squared variables, each times the square of an eigenvalue of
    H(H + 2A)⁻¹, which is at most 1: m is then at most the trace, the effective number of parameters.
    """
    return (parameters + 4 * np.sqrt(2 * parameters / games)) / (2 * n)
