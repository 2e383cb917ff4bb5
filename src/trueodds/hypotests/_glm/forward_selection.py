"""Forward selection of the degree of the GiViTI curve, the null distribution after it, and the selected curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from scipy.special import chdtri, erfcx, expit

from trueodds.core.typing import Array
from trueodds.estimators._glm.logistic import LogitRegressionFit, logistic_statistics
from trueodds.estimators._glm.logits import LogitPolynomials, Logits

SELECTION_LEVEL = 0.95  # confidence level of the test of each additional degree
SELECTION_THRESHOLD = float(chdtri(1, 1 - SELECTION_LEVEL))  # minimum gain in the statistic by one more degree, 3.84
N_BISECTIONS = 50  # number of bisections of the line to an infinite maximum, nearly to double precision
_INTEGRATION_END = 40.0  # largest √(x − n_selected · SELECTION_THRESHOLD), beyond which the tail underflows
_LEGENDRE_NODES, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(96)
_CHEBYSHEV_DEGREE = 160  # degree at which the interpolation of G is exact to rounding


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
    scaled_tail: Callable[[Array], Array]  # G as a function of z in [0, _INTEGRATION_END]

    def upper_tail(self, x: Any) -> Any:
        """P(D > x), the p-value of the statistic x."""
        return np.exp(-self.negative_log_pvalue(x))

    def negative_log_pvalue(self, x: Any) -> Any:
        """−log P(D > x), which orders values whose probability is too small for a float."""
        excess = np.asarray(x, dtype=np.float64) - self.n_selected * SELECTION_THRESHOLD
        z = np.sqrt(np.clip(excess, 0.0, _INTEGRATION_END**2))
        return np.where(excess <= 0, 0.0, np.maximum(np.asarray(x) / 2 - np.log(self.scaled_tail(z)), 0.0))

    def quantile(self, level: float) -> float:
        """Quantile of D at this level, by bisection."""
        low, high = 0.0, self.n_selected * SELECTION_THRESHOLD + _INTEGRATION_END**2
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.upper_tail(middle) <= 1 - level else (middle, high)
            if middle in (low, high) and np.nextafter(low, high) >= high:
                break
        return (low + high) / 2


@cache
def forward_null_distribution(base_df: int, n_selected: int) -> SelectionNullDistribution:
    """Return the null distribution after `n_selected` selection steps from `base_df` degrees of freedom."""
    if n_selected == 0:
        return SelectionNullDistribution(base_df, 0, np.ones_like if base_df == 2 else _scaled_half_normal_tail)
    previous_tail, alpha = forward_null_distribution(base_df, n_selected - 1).scaled_tail, 1 - SELECTION_LEVEL

    def next_tail(z: Array) -> Array:
        """G of one more selection step, at z (k,)."""
        radius = np.sqrt(SELECTION_THRESHOLD + z**2)
        half_angle = np.arctan(z / np.sqrt(SELECTION_THRESHOLD)) / 2
        angles = half_angle[..., None] * (1 + _LEGENDRE_NODES)
        previous_z = np.minimum(radius[..., None] * np.sin(angles), _INTEGRATION_END)
        integral = half_angle * ((previous_tail(previous_z) * previous_z) @ _LEGENDRE_WEIGHTS)
        return (
            2 * integral / np.sqrt(2 * np.pi)
            + np.exp((n_selected - 1) * SELECTION_THRESHOLD / 2) * erfcx(radius / np.sqrt(2))
        ) / alpha

    tail = Chebyshev.interpolate(next_tail, _CHEBYSHEV_DEGREE, domain=[0.0, _INTEGRATION_END])
    return SelectionNullDistribution(base_df, n_selected, tail)


def _scaled_half_normal_tail(z: Array) -> Array:
    """G of χ² with one degree of freedom: e^{z²/2} P(χ² > z²)."""
    return erfcx(z / np.sqrt(2))


def select_degree(logits: Logits, powers: LogitPolynomials, wy: Array, start: int, form: str) -> tuple[Array, Array]:
    """Return the selected degree and its statistic, (draws,) each, for many weighted outcome vectors `wy` (draws, n).

    Beginning at `start`, the degree increases as long as the statistic gains at least SELECTION_THRESHOLD. `form` is
    that of `logistic_statistics`.
    """
    score_statistics = None
    if form == "score":  # one pass computes the scores of all degrees
        score_statistics = np.cumsum(powers.scores(wy - logits.w * logits.p)[1], axis=1)

    def statistics_of_degree(degree: int, draws: Array) -> Array:
        """Statistics of a degree for the draws with these indices."""
        if score_statistics is not None:
            return score_statistics[draws, degree]
        return logistic_statistics(logits, powers, wy[draws], degree, form)

    degrees, active = np.full(len(wy), start), np.arange(len(wy))
    statistics = statistics_of_degree(start, active)
    for next_degree in range(start + 1, powers.degree + 1):
        higher_statistics = statistics_of_degree(next_degree, active)
        continues = higher_statistics - statistics[active] >= SELECTION_THRESHOLD
        active = active[continues]
        if not len(active):
            break
        degrees[active], statistics[active] = next_degree, higher_statistics[continues]
    return degrees, statistics


@dataclass(frozen=True, eq=False, slots=True)
class CalibrationCurve:
    """Polynomial of the predicted log odds selected by forward selection."""

    logits: Logits  # predicted log odds of each row
    powers: LogitPolynomials  # polynomials of these log odds
    fit: LogitRegressionFit  # maximum likelihood fit of the selected degree
    degree: int  # selected degree
    wy: Array  # (n,) weighted outcomes
    statistic: float  # D
    null_distribution: SelectionNullDistribution | None  # null distribution of D given the degree

    @property
    def probabilities(self) -> Array:
        """Fitted probability of each row, (n,)."""
        return self.fit.probabilities(self.powers.columns, self.logits.x)

    @property
    def parts(self) -> dict[str, dict[str, float]]:
        """The degree and the coefficients of 1, x, x², …, which are NaN if no finite estimate exists."""
        b = self.powers.coefficients(self.fit.beta[0])
        if not self.fit.has_maximum[0]:
            b = np.full(len(b), np.nan)
        return {
            "curve": {"degree": float(self.degree), **{f"b{j}": float(coefficient) for j, coefficient in enumerate(b)}}
        }

    def likelihood(self, beta: Array) -> tuple[Array, Array, Array]:
        """Log-likelihood (draws,) minus that of β = 0, its gradient (draws, m) and negative Hessian at β (draws, m)."""
        columns, logits = self.powers.columns[:, : beta.shape[1]], self.logits
        eta_change = beta @ columns.T
        q = expit(logits.x + eta_change)
        loss = np.logaddexp(0.0, logits.x + eta_change) - np.logaddexp(0.0, logits.x)
        value = eta_change @ self.wy - loss @ logits.w
        hessian = np.einsum("dn,ni,nj->dij", logits.w * q * (1 - q), columns, columns, optimize=True)
        return value, (self.wy - logits.w * q) @ columns, hessian

    def bounded_maximum(self, drop: float) -> Array:
        """The β of maximum likelihood, (m,), or a finite one near the supremum if it is infinite.

        It is then the first β on the line to the last iterate whose log-likelihood is within `drop` of the supremum.
        """
        maximum = self.fit.beta[0]
        if self.fit.has_maximum[0]:
            return maximum
        low, high = 0.0, 1.0
        for _ in range(N_BISECTIONS):
            middle = (low + high) / 2
            value, _, _ = self.likelihood(middle * maximum[None])
            is_within = self.fit.gain[0] - value[0] <= drop
            low, high = (low, middle) if is_within else (middle, high)
        return high * maximum

    def sandwich_ratio(self, directions: Array) -> Array:
        """Sandwich variance of a·β̂ over its information-based variance for each a of `directions` (k, m), (k,)."""
        beta = self.fit.beta
        columns, logits = self.powers.columns[:, : beta.shape[1]], self.logits
        q = self.fit.probabilities(columns, logits.x)
        information, score_variance = (
            columns.T @ ((q * (1 - q) * weight)[:, None] * columns) for weight in (logits.w, logits.ww)
        )
        solved = np.linalg.solve(information, directions.T)
        return np.einsum("mg,mk,kg->g", solved, score_variance, solved) / (directions.T * solved).sum(0)
