"""Which degree does forward selection stop at, and what is the null law of its likelihood ratio?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from scipy.special import chdtri, erfcx

from trueodds.core.typing import Array
from trueodds.hypotests.likelihood.logistic import statistics
from trueodds.hypotests.likelihood.logits import Logits, Powers

LEVEL = 0.95
STEP = float(chdtri(1, 1 - LEVEL))  # what one more degree must add to be taken, 3.84
_END = 40.0  # in √(x − terms·STEP): beyond it the tail is below the smallest float
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


@dataclass(frozen=True, eq=False)
class NullDistribution:
    r"""χ² with `base` degrees of freedom plus `terms` independent χ²₁, each given that it exceeds `STEP`.

    With :math:`P(D > x) = e^{-x/2}\,G_j(z)`, :math:`z^2 = x - jk` for j terms, polar coordinates give

    .. math:: G_{j+1}(z) = \frac{2}{\alpha\sqrt{2\pi}} \int_0^{\arctan(z/\sqrt k)} G_j(R\sin\varphi)\,R\sin\varphi\,d\varphi
        + \frac{e^{jk/2}}{\alpha}\,\mathrm{erfcx}\frac{R}{\sqrt 2}, \quad R^2 = k + z^2

    Every G is smooth, so quadrature is exact to rounding and the tail keeps its relative accuracy.
    Source: Nattino, Finazzi & Bertolini (2014), whose closed forms this equals.

    >>> round(float(stepwise_null(2, 0).beyond(4.0)), 6), round(stepwise_null(2, 1).quantile(0.95), 4)
    (0.135335, 12.7919)
    """

    base: int
    terms: int
    smooth: Callable[[Array], Array]  # G of z in [0, _END]

    def beyond(self, x: Any) -> Any:
        """P(D > x)."""
        return np.exp(-self.surprise(x))

    def surprise(self, x: Any) -> Any:
        """−log P(D > x), which orders values whose probability is too small for a float."""
        excess = np.asarray(x, dtype=np.float64) - self.terms * STEP
        z = np.sqrt(np.clip(excess, 0.0, _END**2))
        return np.where(excess <= 0, 0.0, np.maximum(np.asarray(x) / 2 - np.log(self.smooth(z)), 0.0))

    def quantile(self, level: float) -> float:
        """The x that D stays below with probability `level`."""
        low, high = 0.0, self.terms * STEP + _END**2
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.beyond(middle) <= 1 - level else (middle, high)
            if middle in (low, high) and np.nextafter(low, high) >= high:
                break
        return (low + high) / 2


@cache
def stepwise_null(base: int, terms: int) -> NullDistribution:
    """The law after as many steps."""
    if terms == 0:
        return NullDistribution(base, 0, np.ones_like if base == 2 else _half_normal)
    before, done, alpha = stepwise_null(base, terms - 1).smooth, terms - 1, 1 - LEVEL

    def following(z: Array) -> Array:
        radius = np.sqrt(STEP + z**2)
        half = np.arctan(z / np.sqrt(STEP)) / 2
        angles = half[..., None] * (1 + _NODES)
        at = np.minimum(radius[..., None] * np.sin(angles), _END)
        swept = half * ((before(at) * at) @ _WEIGHTS)
        return (2 * swept / np.sqrt(2 * np.pi) + np.exp(done * STEP / 2) * erfcx(radius / np.sqrt(2))) / alpha

    return NullDistribution(base, terms, Chebyshev.interpolate(following, 160, domain=[0.0, _END]))


def _half_normal(z: Array) -> Array:
    """G of χ² with one degree of freedom: e^{z²/2} P(χ² > z²)."""
    return erfcx(z / np.sqrt(2))


def climbed(logits: Logits, powers: Powers, wy: Array, start: int, form: str) -> tuple[Array, Array]:
    """The degree at which each of many outcomes (draws, n) stops, and its statistic there.

    From `start` on a degree is taken as long as it adds at least `STEP` to the statistic.
    """
    ladder = None
    if form == "score":  # the scores of all degrees come from one pass
        ladder = np.cumsum(powers.scores(wy - logits.w * logits.p)[1], axis=1)

    def at(step: int, rows: Array) -> Array:
        return statistics(logits, powers, wy[rows], step, form) if ladder is None else ladder[rows, step]

    degree, going = np.full(len(wy), start), np.arange(len(wy))
    reached = at(start, going)
    for following in range(start + 1, powers.degree + 1):
        higher = at(following, going)
        further = higher - reached[going] >= STEP
        going = going[further]
        if not len(going):
            break
        degree[going], reached[going] = following, higher[further]
    return degree, reached
