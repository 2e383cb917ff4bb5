"""How far does isotonic regression stray where scores lie dense? Quantiles of Chernoff's distribution."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import airy

from trueodds.core.typing import Array

FARTHEST = 3.0  # beyond which less than 1e-8 of the probability lies


def quantile(q: float) -> float:
    r"""The quantile of :math:`\arg\max_t W(t) - t^2`, W two-sided Brownian motion, for ½ ≤ q < 1.

    Its density is :math:`g(z) g(-z) / 2`, where g has the Fourier transform
    :math:`2^{1/3} / \text{Ai}(i\, 2^{-1/3} λ)`. Accurate to 1e-6 for q up to 0.9999.
    Source: Groeneboom & Wellner (2001).

    >>> round(quantile(0.95), 5), round(quantile(0.975), 5)
    (0.84508, 0.99818)
    """
    z, reached = _tabulate_cdf()
    return float(np.interp(q, reached, z))


@lru_cache(maxsize=1)
def _tabulate_cdf() -> tuple[Array, Array]:
    wave = np.linspace(0, 25, 601)  # 1/|Ai| is below 1e-17 beyond
    step = wave[1]
    transform = 2 ** (1 / 3) / airy(1j * 2 ** (-1 / 3) * wave)[0]
    transform[0] /= 2  # the trapezoidal rule, exact to rounding for so smooth a function
    z = np.linspace(0, FARTHEST, 3001)
    turn = np.outer(z, wave)
    even, odd = np.cos(turn) @ transform.real, np.sin(turn) @ transform.imag
    density = (even + odd) * (even - odd) * (step / np.pi) ** 2 / 2
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return z, 0.5 + 0.5 * area / area[-1]
