"""Which weights of the logs make what came most likely? The fits behind every map that is linear in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from trueodds.calibrators.likelihood.descent import descent
from trueodds.calibrators.likelihood.fit_data import FitData
from trueodds.calibrators.likelihood.log_linear import levels
from trueodds.calibrators.likelihood.logs import LogProbabilities, floored, softmax
from trueodds.calibrators.likelihood.newton import Minimum, Ridge, minimum
from trueodds.calibrators.likelihood.row_sums import RowSums
from trueodds.calibrators.likelihood.steepness import HIGHEST, LOWEST
from trueodds.calibrators.temperature import TemperatureSpec
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_softmax
from trueodds.tallies.by_class import by_class
from trueodds.tallies.likelihood import Likelihood

MANY = 1000  # parameters from which on their curvature takes longer than going without
SLIGHT = 1e-3  # nats over all rows per squared parameter: what decides where the rows alone do not

_SOON = 1e-2  # nats left to gain over all rows where that is said: it need not be nearer to infinity


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that have weight, laid out for the sums: each column in one piece."""

    x: Array  # (n, K) logs of probabilities, or logits
    Y: Array  # (n, K)
    w: Array  # (n,)


def laid_out(data: FitData, *, relative: bool = False) -> Rows:
    """Floored logs of P, or P itself where it holds logits; `relative` to each row's largest, which keeps digits."""
    x = levels(data.P, data.min_prob) if data.logits else floored(data.P, data.min_prob)
    if relative:
        x -= x.max(axis=1, keepdims=True)
    Y, w = np.asfortranarray(data.Y, dtype=np.float64), data.w.astype(np.float64, copy=False)
    return Rows(np.asfortranarray(x), Y, w)


def initial_beta(data: RowSums, min_prob: float, logits: bool = False) -> float:
    """Where the search begins: β = 1/T of temperature scaling, from where Newton's steps need no shortening."""
    beta = TemperatureSpec(min_prob=min_prob).fit_data(data.prepared(_as_stated) if logits else data).beta
    return 1.0 if beta >= HIGHEST else 0.0 if beta <= LOWEST else beta


def _as_stated(data: FitData) -> FitData:
    """The log-probabilities of logits."""
    return replace(data, P=LogProbabilities(log_softmax(data.P)), logits=False)


def fit_log_linear(
    data: RowSums, strength: Array, target: Array, start: Array, *, shared: bool, ties: Array | None = None
) -> Minimum:
    r"""The parameters of least mean loss per row plus Σ strength (θ − target)², from passes over `Rows`.

    θ are the weights of each class and its bias, (K, d + 1): of the class's own log (d = 1), or, `shared`, of every
    class's (d = K). `ties` T says θ = Tφ; then strength, target and start are those of φ. What a softmax cannot tell
    apart, the same number added to all classes' biases or to a column of W, is that of the target. Where no finite
    parameters are best, a slight ridge about the target decides, and `converged` is False.
    """
    optimum = _minimize(data, strength, target, start, shared, ties, nothing=_SOON)
    if optimum.converged:
        return optimum
    slight = _minimize(data, strength + SLIGHT / data.facts.mass, target, start, shared, ties, nothing=0.0)
    return Minimum(slight.theta, slight.at, optimum.n_passes + slight.n_passes, False, slight.slope)


def _minimize(
    data: RowSums, strength: Array, target: Array, start: Array, shared: bool, ties: Array | None, *, nothing: float
) -> Minimum:
    k = data.facts.k
    a, c, begin = strength.reshape(-1), target.reshape(-1), start.reshape(-1)

    def step(theta: Array, *, curved: bool = True) -> Callable[[Rows], Likelihood]:
        return partial(likelihood, theta=theta, shared=shared, ties=ties, curved=curved)

    if max(a.size, k * (k + 1 if shared else 2)) <= MANY:
        ridge = Ridge(_pinned(a, k, shared, ties), c)
        return minimum(
            lambda theta: data.sum(step(theta)), begin, ridge, nothing=nothing,
            several=lambda places: data.sums(map(step, places)),
        )  # fmt: skip
    curvature = data.sum(partial(_curvature, shared=shared)) / data.facts.mass
    curvature = curvature.reshape(-1) if ties is None else ties.T**2 @ curvature.reshape(-1)
    scale = 1 / np.sqrt(curvature + 2 * a + 1e-9 * curvature.max())
    return descent(lambda theta: data.sum(step(theta, curved=False)), begin, Ridge(a, c), scale)


def likelihood(rows: Rows, theta: Array, shared: bool, ties: Array | None, curved: bool = True) -> Likelihood:
    """What rows add to the likelihood of θ and its derivatives."""
    F = rows.x if shared else rows.x[:, :, None]
    return by_class(F, rows.Y, rows.w, theta, ties=ties, curved=curved)


def _pinned(a: Array, k: int, shared: bool, ties: Array | None) -> Array:
    """The penalty and, for columns that it leaves free, the mean over the classes, on which no probability depends.

    That leaves the minimum where it is, and gives every direction a curvature.
    """
    full: Array = np.diag(a)
    if ties is not None:
        full[1:, 1:] += 1 / k
        return full
    columns = a.reshape(k, -1)
    for j in range(0 if shared else 1, columns.shape[1]):  # the weights of one class each are told apart
        if not columns[:, j].any():
            at = np.arange(k) * columns.shape[1] + j
            full[np.ix_(at, at)] += 1 / k
    return full


def _curvature(rows: Rows, shared: bool) -> Array:
    """What rows add to the curvature by each parameter at the identity, (K, d + 1)."""
    q, F = softmax(rows.x), rows.x if shared else rows.x[:, :, None]
    v = rows.w[:, None] * q * (1 - q)
    own = v.T @ F**2 if F.ndim == 2 else np.einsum("nk,nkd->kd", v, F**2)
    return np.concatenate([own, v.sum(axis=0)[:, None]], axis=1)


def unfinished(calibration_map: Any) -> list[Note]:
    """That no finite parameters fit best, where that is so."""
    if calibration_map.converged:
        return []
    return [
        Note(
            "TN532",
            "No finite parameters fit best: some classes never came, or the probabilities separate them without an error. A slight pull to the map that changes nothing decided; set a penalty to say how strong it shall be.",
        )
    ]


def small_sample_notes(rows: int, parameters: int) -> list[Note]:
    """That there are few rows for so many parameters without a penalty."""
    if rows >= 10 * parameters:
        return []
    return [
        Note(
            "TN535",
            f"{rows:,} rows for {parameters:,} parameters without a penalty: with fewer than ten each, the fit may be worse than none. Set a penalty, or use a simpler calibrator.",
        )
    ]


def wrong_way(slopes: Array) -> list[Note]:
    """That some class's probability falls where the model's rises."""
    if (slopes >= 0).all():
        return []
    return [
        Note(
            "TN533",
            f"{int((slopes < 0).sum()):,} of {len(slopes):,} slopes are below 0, so that what the model calls likely is called unlikely: check the order of the classes, or set a penalty.",
        )
    ]
