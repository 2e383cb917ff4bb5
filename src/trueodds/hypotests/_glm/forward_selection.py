"""Forward selection of the GiViTI degree, its null distribution and the fitted calibration curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from scipy.special import chdtri, erfcx, expit

from trueodds.core.typing import Array
from trueodds.hypotests._glm.logistic import LogitRegressionFit, logistic_statistics
from trueodds.hypotests._glm.logits import LogitPolynomials, Logits

SELECTION_LEVEL = 0.95
SELECTION_THRESHOLD = float(chdtri(1, 1 - SELECTION_LEVEL))  # minimum gain of one more degree, 3.84
_INTEGRATION_END = 40.0  # in √(x − n_selected · SELECTION_THRESHOLD): beyond it the tail underflows
_LEGENDRE_NODES, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(96)


@dataclass(frozen=True, eq=False)
class SelectionNullDistribution:
    r"""χ² with `base_df` degrees of freedom plus `n_selected` independent χ²₁ that exceed the selection threshold k.

    With :math:`P(D > x) = e^{-x/2}\,G_j(z)`, :math:`z^2 = x - jk` for j terms, polar coordinates give

    .. math:: G_{j+1}(z) = \frac{2}{\alpha\sqrt{2\pi}}
        \int_0^{\arctan(z/\sqrt k)} G_j(R\sin\varphi)\,R\sin\varphi\,d\varphi
        + \frac{e^{jk/2}}{\alpha}\,\mathrm{erfcx}\frac{R}{\sqrt 2}, \quad R^2 = k + z^2

    Every G is smooth, so quadrature is exact to rounding and the tail keeps its relative accuracy.
    Source: Nattino, Finazzi & Bertolini (2014), whose closed forms this equals.

    >>> after_none, after_one = forward_null_distribution(2, 0), forward_null_distribution(2, 1)
    >>> round(float(after_none.upper_tail(4.0)), 6), round(after_one.quantile(0.95), 4)
    (0.135335, 12.7919)
    """

    base_df: int  # 1 or 2: degrees of freedom of the starting model
    n_selected: int  # number of selection steps
    smooth: Callable[[Array], Array]  # G of z in [0, _INTEGRATION_END]

    def upper_tail(self, x: Any) -> Any:
        """P(D > x)."""
        return np.exp(-self.negative_log_pvalue(x))

    def negative_log_pvalue(self, x: Any) -> Any:
        """−log P(D > x), which orders values whose probability is too small for a float."""
        excess = np.asarray(x, dtype=np.float64) - self.n_selected * SELECTION_THRESHOLD
        z = np.sqrt(np.clip(excess, 0.0, _INTEGRATION_END**2))
        return np.where(excess <= 0, 0.0, np.maximum(np.asarray(x) / 2 - np.log(self.smooth(z)), 0.0))

    def quantile(self, level: float) -> float:
        """The `level` quantile of D."""
        low, high = 0.0, self.n_selected * SELECTION_THRESHOLD + _INTEGRATION_END**2
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.upper_tail(middle) <= 1 - level else (middle, high)
            if middle in (low, high) and np.nextafter(low, high) >= high:
                break
        return (low + high) / 2


@cache
def forward_null_distribution(base: int, terms: int) -> SelectionNullDistribution:
    """Null distribution after `terms` selection steps."""
    if terms == 0:
        return SelectionNullDistribution(base, 0, np.ones_like if base == 2 else _scaled_half_normal_tail)
    before, done, alpha = forward_null_distribution(base, terms - 1).smooth, terms - 1, 1 - SELECTION_LEVEL

    def following(z: Array) -> Array:
        radius = np.sqrt(SELECTION_THRESHOLD + z**2)
        half = np.arctan(z / np.sqrt(SELECTION_THRESHOLD)) / 2
        angles = half[..., None] * (1 + _LEGENDRE_NODES)
        at = np.minimum(radius[..., None] * np.sin(angles), _INTEGRATION_END)
        swept = half * ((before(at) * at) @ _LEGENDRE_WEIGHTS)
        return (
            2 * swept / np.sqrt(2 * np.pi) + np.exp(done * SELECTION_THRESHOLD / 2) * erfcx(radius / np.sqrt(2))
        ) / alpha

    return SelectionNullDistribution(base, terms, Chebyshev.interpolate(following, 160, domain=[0.0, _INTEGRATION_END]))


def _scaled_half_normal_tail(z: Array) -> Array:
    """G of χ² with one degree of freedom: e^{z²/2} P(χ² > z²)."""
    return erfcx(z / np.sqrt(2))


def select_degree(logits: Logits, powers: LogitPolynomials, wy: Array, start: int, form: str) -> tuple[Array, Array]:
    """Forward selection for many outcome vectors (draws, n): the selected degree and its statistic.

    Beginning at `start`, the degree increases as long as the statistic gains at least `STEP`.
    """
    ladder = None
    if form == "score":  # one pass computes the scores of all degrees
        ladder = np.cumsum(powers.scores(wy - logits.w * logits.p)[1], axis=1)

    def at(step: int, rows: Array) -> Array:
        return logistic_statistics(logits, powers, wy[rows], step, form) if ladder is None else ladder[rows, step]

    degree, going = np.full(len(wy), start), np.arange(len(wy))
    reached = at(start, going)
    for following in range(start + 1, powers.degree + 1):
        higher = at(following, going)
        further = higher - reached[going] >= SELECTION_THRESHOLD
        going = going[further]
        if not len(going):
            break
        degree[going], reached[going] = following, higher[further]
    return degree, reached


@dataclass(frozen=True, eq=False, slots=True)
class CalibrationCurve:
    """Polynomial of the predicted log odds selected by forward selection."""

    logits: Logits
    powers: LogitPolynomials
    fit: LogitRegressionFit
    degree: int
    wy: Array  # (n,)
    statistic: float  # D
    null_distribution: SelectionNullDistribution | None  # null distribution of D given the degree

    @property
    def probabilities(self) -> Array:
        """Fitted probability of each row."""
        return self.fit.probabilities(self.powers.columns, self.logits.x)

    @property
    def parts(self) -> dict[str, dict[str, float]]:
        """The degree and the coefficients of 1, x, x², …, which are NaN if no finite estimate exists."""
        b = self.powers.coefficients(self.fit.beta[0])
        if not self.fit.finite[0]:
            b = np.full(len(b), np.nan)
        return {
            "curve": {"degree": float(self.degree), **{f"b{j}": float(coefficient) for j, coefficient in enumerate(b)}}
        }

    def likelihood(self, beta: Array) -> tuple[Array, Array, Array]:
        """Log-likelihood (draws,) relative to the null, its gradient and negative Hessian, at each β (draws, m)."""
        columns, logits = self.powers.columns[:, : beta.shape[1]], self.logits
        move = beta @ columns.T
        q = expit(logits.x + move)
        value = move @ self.wy - (np.logaddexp(0.0, logits.x + move) - np.logaddexp(0.0, logits.x)) @ logits.w
        hessian = np.einsum("dn,ni,nj->dij", logits.w * q * (1 - q), columns, columns, optimize=True)
        return value, (self.wy - logits.w * q) @ columns, hessian

    def bounded_maximum(self, drop: float) -> Array:
        """The maximum, or, if it is at infinity, the first β on the line towards it that is within `drop`."""
        maximum, low, high = self.fit.beta[0], 0.0, 1.0
        for _ in range(0 if self.fit.finite[0] else 50):
            middle = (low + high) / 2
            near = self.fit.gain[0] - self.likelihood(middle * maximum[None])[0][0] <= drop
            low, high = (low, middle) if near else (middle, high)
        return high * maximum

    def sandwich_ratio(self, at: Array) -> Array:
        """Sandwich variance of each a·β̂ divided by its information-based variance."""
        beta = self.fit.beta
        columns, logits = self.powers.columns[:, : beta.shape[1]], self.logits
        q = self.fit.probabilities(columns, logits.x)
        bread, meat = (columns.T @ ((q * (1 - q) * weight)[:, None] * columns) for weight in (logits.w, logits.ww))
        turned = np.linalg.solve(bread, at.T)
        return np.einsum("mg,mk,kg->g", turned, meat, turned) / (at.T * turned).sum(0)
