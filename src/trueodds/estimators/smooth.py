"""How far said is from seen after smoothing both over neighboring scores, with no bins: smECE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.estimators.scored import Reader, ScoredError, Scores
from trueodds.estimators.smoothing.reflected import NARROWEST, WIDEST, fixed_point, from_moments, smoothed_norms
from trueodds.kernels.moments import moments, residuals
from trueodds.lenses.view import View

MANY, CELLS = 2**15, 4096  # rows beyond which they are not sorted, and the cells of the grid on which they are spread


@dataclass(frozen=True)
class SmoothError(ScoredError):
    r"""Mean absolute residual after smoothing it over neighboring scores (smooth ECE).

    Answers: how far, on average, are stated probabilities from the frequencies that came, without the choice of bins?
    Residuals y − p of neighboring scores are averaged with Gaussian weights of standard deviation σ (scores beyond
    0 and 1 are reflected), and what does not cancel is added up:

    .. math:: N_\sigma = \int_0^1 \Big|\tfrac1w \sum_i w_i (y_i - p_i)\, K_\sigma(t, p_i)\Big|\, dt, \quad
        \mathrm{smECE} = N_{\sigma^*} \text{ where } N_{\sigma^*} = \sigma^*

    Wider smoothing cancels more, so :math:`N_\sigma` falls as σ grows and the fixed point is unique: the smoothing is
    as wide as the error it finds. smECE is within constant factors of the distance to the nearest calibrated
    predictions, and moves little where predictions move little.

    Shapes: a binary view (n,). Units: probability, in [0, 1]; 0 is best; never below the absolute mean gap nor above
    the ECE over distinct scores. Bias: upward, a calibrated model scores up to 0.56 (mean p(1-p)/n)^(1/3), 0.03 at
    n = 1,000, which `noise_floor` reports. Cost: O(n) time for many rows, O(n log n) for few or where σ is under 0.0004;
    draws tell 4,096 scores apart. From a tally it is the value at the tally's resolution.
    Raises TO203 for a bandwidth that is none, TO205 for a lens with a vector per row.
    Source: Błasiok & Nakkiran (2024), with all images of the reflection and exact to 1e-6.

    Parameters
    ----------
    bandwidth : "auto" or float
        The fixed point, which is given beside the value, or a fixed σ of at least 1e-5: then the value is
        :math:`N_\sigma`.

    One row said .8 and came: the residual .2 cancels with nothing at any bandwidth.

    >>> round(float(SmoothError()(View(p=[0.8], y=[1]))), 4)
    0.2
    """

    # Subadditive though it is a fixed point. N_σ is a seminorm of the residuals at each σ, and falls in σ because
    # reflected Gaussians form a semigroup of contractions of L1. With a = smECE(μ) and b = smECE(ν),
    #   N_{a+b}(μ + ν) ≤ N_{a+b}(μ) + N_{a+b}(ν) ≤ N_a(μ) + N_b(ν) = a + b,
    # and where N at a + b is at most a + b, the fixed point is too: smECE(μ + ν) ≤ a + b. So the triangle inequality
    # holds, which is all that the interval uses.
    name: ClassVar[str] = "smece"
    exempt: ClassVar[dict[str, str]] = {"cells": "scores of one cell count as one score, so a tally has its resolution"}
    bandwidth: Annotated[float, Range(NARROWEST, WIDEST)] | Literal["auto"] = "auto"

    def scores(self, view: View) -> GriddedScores:
        """The same, for draws: at most 4,096 groups of equal or neighboring scores."""
        return GriddedScores(self, view)

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The smoothed residuals' absolute integral, at the fixed point or the given bandwidth."""

        def reader(_w: Array, wp: Array, wy: Array) -> Array:
            residual = wy - wp
            rows = residual.reshape(-1, len(s))
            values = (
                fixed_point(s, rows) if self.bandwidth == "auto" else smoothed_norms(s, rows, float(self.bandwidth))
            )
            return values.reshape(residual.shape[:-1])

        return reader

    def settings_used(self, view: View) -> dict[str, Any]:
        """The bandwidth as asked."""
        return {"bandwidth": self.bandwidth}

    def parts(self, view: View) -> dict[str, float]:
        """The bandwidth that was found: the fixed point, so up to rounding the value itself."""
        return {"bandwidth": self.value(view)} if self.bandwidth == "auto" else {}


class GriddedScores(Scores):
    """One view's scores; many rows are spread over a grid as they come, which needs no order."""

    error: SmoothError

    def value(self) -> float:
        """The error of the view itself, from sorted scores where they are few or the error so small that it takes more."""
        view = self.view
        if view.is_rows and len(view) > MANY:
            bandwidth = self.error.bandwidth
            error = from_moments(self._moments() / view.total, None if bandwidth == "auto" else float(bandwidth))
            if error is not None:
                return error
        return super().value()

    def _moments(self) -> Array:
        """Σw(y − p)u^k in each cell."""
        view = self.view
        if view.rows is not None and not view.read:
            return view.rows.moments(CELLS, 4)
        return moments(view.p, residuals(view.p, view.outcomes, None if view.plain else view.w), CELLS, 4)
