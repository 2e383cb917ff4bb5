"""The calibrated mean embedding (CME) test: kernel-weighted mean residuals at a few test locations on the simplex.

A test location is a probability vector and one outcome. Residuals of rows with similar predictions are averaged there,
and the test statistic Q is the quadratic form of these means in their inverse covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtrc

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import BinCount
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array, as_float_array
from trueodds.estimators._pairwise import similarity_kernels
from trueodds.estimators._pairwise.similarity_kernels import (
    Bandwidth,
    KernelName,
    Similarity,
    SimilarityKernel,
    hashed_order,
    positions_by_weight,
    prediction_matrix,
)
from trueodds.estimators.base import CellStatistic
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import ViewResult
from trueodds.kernels import map_blocks
from trueodds.lenses.view import View

ROWS_PER_LOCATION = 10  # minimum number of rows per default location: a J × J covariance needs more than J rows


@dataclass(frozen=True)
class TestLocations:
    """Test locations of one view: points of the simplex, each with one outcome."""

    points: Array  # (J, m), or (J, 1) for a binary view
    outcome: Array  # (J,) index of the outcome of each location

    def residuals(self, r: Array) -> Array:
        """Residual of the outcome of each location, (…, J), from residuals r of joint (…, m) or binary (…) views."""
        if self.points.shape[1] > 1:
            return r[..., self.outcome]
        return r[..., None] * np.where(self.outcome == 1, 1.0, -1.0)  # outcome 0 is the complement of the event


def choose_locations(view: View, n_locations: int) -> TestLocations:
    """Return the default locations: predictions spread evenly over the rows, and outcomes spread evenly.

    The rows are put in an order that depends on their predictions only (`hashed_order`), so that the locations depend
    neither on the order of the rows nor on the labels. The j-th outcome is the (j + ½) / J quantile of the predicted
    distribution at its location. Duplicates are dropped.
    """
    mask = view.w > 0
    P, w = prediction_matrix(view)[mask], view.w[mask]
    n_locations = max(1, min(n_locations, len(P) // ROWS_PER_LOCATION))
    order = hashed_order(P)
    points = P[order[positions_by_weight(w[order], n_locations)]]
    outcome = np.ones(n_locations, dtype=np.int64)
    if view.joint:
        quantile_levels = (np.arange(n_locations) + 0.5) / n_locations
        outcome = np.minimum((np.cumsum(points, axis=1) <= quantile_levels[:, None]).sum(axis=1), points.shape[1] - 1)
    _, first_of_duplicates = np.unique(np.column_stack([points, outcome]), axis=0, return_index=True)
    return TestLocations(points[np.sort(first_of_duplicates)], outcome[np.sort(first_of_duplicates)])


def validate_locations(view: View, locations: Any) -> TestLocations:
    """Return the locations that the user passed: a pair of the points T, (J, m) or (J,), and their outcomes s, (J,).

    Raises InputError for values outside [0, 1], invalid outcomes, and shapes that do not fit the view.
    """
    user_points, user_outcomes = locations
    points, outcome = as_array(user_points, "the locations T"), as_array(user_outcomes, "the outcomes s")
    m = view.p.shape[1] if view.joint else 1
    if not view.joint and points.ndim == 2 and points.shape[1] == 2:
        points = points[:, 1]
    points = as_float_array(points.reshape(len(points), -1), "the locations T").astype(np.float64)
    if points.ndim != 2 or not len(points) or points.shape[1] != m or outcome.shape != (len(points),):
        raise InputError(
            "TO205",
            "The shape of the locations does not fit the view.",
            f"T {points.shape} and s {outcome.shape} for {max(m, 2)} outcomes",
            f"Pass T {'(J, ' + str(m) + ')' if view.joint else '(J,)'} and s (J,).",
        )
    if not (np.isfinite(points).all() and (points >= 0).all() and (points <= 1).all()):
        raise InputError(
            "TO203", "Locations T must lie in [0, 1].", "a value outside [0, 1]", "Pass points of the simplex."
        )
    if outcome.dtype.kind not in "iu" or (outcome < 0).any() or (outcome >= max(m, 2)).any():
        raise InputError(
            "TO203", "Outcomes s must be column indices.", describe(outcome.tolist()), f"Use 0 to {max(m, 2) - 1}."
        )
    return TestLocations(points, outcome.astype(np.int64))


EIGENVALUE_TOLERANCE = 1e-9  # relative to the largest eigenvalue of a correlation matrix: smaller ones count as 0
MIN_RELATIVE_VARIANCE = 1e-12  # variance relative to the mean square: a smaller one counts as 0
MAX_RESIDUALS_IN_MEMORY = 2**20  # residuals at locations in memory at once


@dataclass(frozen=True)
class QuadraticForm:
    """The statistic Q, the rank of its covariance, and the mean residuals, for each draw."""

    q: Array  # (draws,) the statistic
    rank: Array  # (draws,) rank of the covariance of the mean residuals
    mean: Array  # (draws, J) mean residual at each location


class EmbeddingResiduals(CellStatistic):
    """The statistic Q from the kernel-weighted residuals of each row at the locations, as a function of the outcomes.

    Every row is a cell. `kernel_values` (n, J) are the values k(p_i, t_j) of the kernel for each row and location.
    """

    def __init__(self, view: View, locations: TestLocations, kernel_values: Array) -> None:
        self.view, self.locations, self.kernel_values = view, locations, kernel_values
        self.index, self.size = np.arange(len(view)), len(view)

    def quadratic_form(self) -> QuadraticForm:
        """Quadratic form of the observed outcomes."""
        view = self.view
        w = view.w[:, None] if view.joint else view.w
        return self._quadratic_form(self.locations.residuals((w * (view.y - view.p))[None]))

    def value(self) -> float:
        return float(self.quadratic_form().q[0])

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        def quadratic_forms(start: int, stop: int) -> Array:
            """Q of the draws from start to stop − 1."""
            return self._quadratic_form(self.locations.residuals(wy[start:stop] - wp)).q

        return np.concatenate([np.empty(0), *map_blocks(quadratic_forms, len(wy), self._draws_per_block)])

    @property
    def statistic_from_labels(self) -> Callable[[Array], Array] | None:
        return self._q_from_labels if self.view.joint else None

    def _q_from_labels(self, labels: Array) -> Array:
        w, predicted = self.view.w[:, None], self.view.p[:, self.locations.outcome].astype(np.float64)

        def quadratic_forms(start: int, stop: int) -> Array:
            """Q of the draws from start to stop − 1."""
            is_observed = labels.T[start:stop, :, None] == self.locations.outcome
            return self._quadratic_form(w * (is_observed - predicted)).q

        return np.concatenate([np.empty(0), *map_blocks(quadratic_forms, labels.shape[1], self._draws_per_block)])

    @property
    def _draws_per_block(self) -> int:
        """Number of draws whose residuals fit into memory at once."""
        return max(1, MAX_RESIDUALS_IN_MEMORY // max(1, self.kernel_values.size))

    def effective_n(self) -> float:
        """Effective sample size of Q under the null: rank² / Σ_i E|a_i|⁴ for the whitened residuals a_i of the rows.

        It is small if a linear combination of locations depends on a few rows with rare outcomes alone, and χ² is then
        inaccurate.
        """
        view, outcome = self.view, self.locations.outcome
        P = view.P
        tested_outcomes = np.unique(outcome)
        other_probability = np.maximum(1 - P[:, tested_outcomes].sum(axis=1), 0.0)
        # The outcomes of a row that differ at the locations: their probability (n,), and which locations observe them.
        cases = [(P[:, c], outcome == c) for c in tested_outcomes]
        cases.append((other_probability, np.zeros(len(outcome), dtype=bool)))
        kernel_weights, predicted = view.w[:, None] * self.kernel_values, P[:, outcome]
        covariance = np.zeros((len(outcome), len(outcome)))
        for probability, observed in cases:
            residuals = kernel_weights * (observed - predicted)
            covariance += (probability[:, None] * residuals).T @ residuals
        has_variance = np.diag(covariance) > 0
        scale = np.where(has_variance, 1 / np.sqrt(np.where(has_variance, np.diag(covariance), 1.0)), 0.0)
        values, vectors = np.linalg.eigh(covariance * scale[:, None] * scale)
        mask = values > EIGENVALUE_TOLERANCE * max(values[-1], EIGENVALUE_TOLERANCE)
        whitening = (scale[:, None] * vectors)[:, mask] / np.sqrt(values[mask])
        fourth_moment = 0.0
        for probability, observed in cases:
            squared_norms = (((kernel_weights * (observed - predicted)) @ whitening) ** 2).sum(axis=1)
            fourth_moment += float(probability @ squared_norms**2)
        return float(mask.sum() ** 2 / fourth_moment) if fourth_moment > 0 else 0.0

    def _quadratic_form(self, residuals: Array) -> QuadraticForm:
        """Quadratic form from w (y − p) of the outcome of each location, (draws, n, J)."""
        weighted_residuals = residuals * self.kernel_values
        w, n = self.view.w, float((self.view.w > 0).sum())
        mean = weighted_residuals.sum(axis=1) / w.sum()  # (draws, J)
        if n < 2:  # the covariance of one row is undefined
            return QuadraticForm(
                np.full(len(weighted_residuals), np.nan), np.zeros(len(weighted_residuals), dtype=np.int64), mean
            )
        squares = np.swapaxes(weighted_residuals, 1, 2) @ weighted_residuals
        cross = np.einsum("i,bij->bj", w, weighted_residuals)[:, :, None] * mean[:, None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            centered_squares = (
                squares - cross - np.swapaxes(cross, 1, 2) + weighted_sum(w, w) * mean[:, :, None] * mean[:, None, :]
            )
            covariance = centered_squares * (n / (n - 1)) / w.sum() ** 2
        return _standardized_quadratic_form(mean, covariance, np.einsum("bjj->bj", squares) / w.sum() ** 2)


def _standardized_quadratic_form(mean: Array, covariance: Array, mean_squares: Array) -> QuadraticForm:
    """Q = μ' S⁺ μ and the rank of S, with the pseudo-inverse of the correlation matrix; infinite without variance.

    `mean` μ (draws, J) and `covariance` S (draws, J, J) are those of the residuals at the locations, and `mean_squares`
    (draws, J) their sums of squares on the scale of S. Q is infinite if a residual differs from 0 but does not vary.
    """
    variance = np.einsum("bjj->bj", covariance)
    has_variance = variance > MIN_RELATIVE_VARIANCE * mean_squares
    scale = np.where(has_variance, 1 / np.sqrt(np.where(has_variance, variance, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(np.nan_to_num(covariance) * scale[:, :, None] * scale[:, None, :])
    is_positive = values > EIGENVALUE_TOLERANCE * np.maximum(values[:, -1:], EIGENVALUE_TOLERANCE)
    projections = np.einsum("bjk,bj->bk", vectors, mean * scale)
    q = (projections**2 / np.where(is_positive, values, np.inf)).sum(axis=1)
    is_infinite = ((mean_squares > 0) & ~has_variance).any(axis=1)
    return QuadraticForm(q=np.where(is_infinite, np.inf, q), rank=is_positive.sum(axis=1), mean=mean)


MIN_ROWS_PER_LOCATION = 60  # effective number of rows per location from which the size of the χ² test is about nominal


@dataclass(frozen=True, kw_only=True)
class MeanEmbedding(ViewTest):
    r"""Calibrated mean embedding (CME) test: mean residuals at test locations.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"redraw", "asymptotic"}, default="redraw"
        Null distribution: labels drawn from the predicted probabilities (exact), or χ².
    locations : int or (array, array), default=5
        Number of test locations, or the locations (T, s): T (J, m), or (J,) for a binary view, and the outcome s (J,)
        of each.
    kernel : {"exponential", "gaussian", "tv-exponential"} or callable, default="exponential"
        Kernel, as for the estimator `skce`.
    bandwidth : float or "median", default="median"
        Bandwidth of the kernel, as for the estimator `skce`.

    Raises
    ------
    InputError
        TO203 for invalid locations, kernel or bandwidth. TO205 for locations whose shape does not fit the view.

    Notes
    -----
    .. math:: D_{ij} = k(p_i, t_j)\,(y_i - p_i)_{s_j}, \quad Q = n\, \mu^\top S^{-1} \mu

    with the mean μ and the sample covariance S (n − 1) of the rows of D. Q is χ² with J degrees of freedom. A location
    is a point t of the simplex and the index s of an outcome. The test costs O(nJ) where the SKCE costs O(n²). It has
    power only against errors near its locations.

    Locations must not depend on the labels. By default they are five predictions, spread evenly over the rows (with
    fewer than 50 rows one per ten rows), in an order determined by their values. The outcome of each location is spread
    evenly over its predicted probabilities.

    Statistic: Q ≥ 0, one-sided. Effect: UCME, the root mean square of μ_j: a kernel-weighted mean residual, in
    probability units within [0, 1]. The χ² distribution rejects too often with few rows, and if some combination of
    locations depends on a few rare outcomes: 8 to 9 % of calibrated data sets at 5 % with 250 rows of three classes, 20
    % with 250 binary scores, up to 90 % with 100 rows of rare events. A note reports an effective sample size below 60
    rows per location. If locations are redundant, S is singular: its pseudo-inverse is used, and its rank is the
    degrees of freedom (note TN220). A nonzero residual without variance makes Q infinite.

    Shapes: binary and joint views. Weights are importance weights: μ is the weighted mean, and S grows with the squares
    of the weights. Requires rows, not a tally. Cost: O(nJ² + nJm); with redraws as much per draw.

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah (2021).
    .. [2] Jitkrittum et al. (2016).

    Examples
    --------
    >>> import trueodds as to
    >>> locations = ([[1.0, 0.0], [0.0, 1.0]], [0, 0])
    >>> preds = to.Predictions([1, 0], [[1.0, 0.0], [0.0, 1.0]])  # both wrong
    >>> round(to.test(preds, "cme", locations=locations, kernel="gaussian", bandwidth=1.0).effect, 4)  # (1 − 1/e) / 2
    0.3161
    """

    name: ClassVar[str] = "cme"
    lens: ClassVar[str | None] = "canonical"
    accepts_joint_views: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = True
    asymptotic_null: ClassVar[str] = "Q is χ² with the rank of the covariance as degrees of freedom"
    exemptions: ClassVar[dict[str, str]] = {"weight two": "importance weights: the variance grows with their squares"}
    null: str = "redraw"
    locations: BinCount | tuple[Any, ...] = 5
    kernel: KernelName | Similarity = "exponential"
    bandwidth: Bandwidth = "median"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.locations, (tuple, list)) and len(self.locations) != 2:
            raise InputError(
                "TO203",
                "locations must be an integer of at least 1, or two arrays.",
                f"{len(self.locations)} values",
                "For example 5, or (T, s) with points T (J, m) and outcome indices s (J,).",
            )

    def evaluate(self, view: View) -> ViewResult:
        """Q, its χ² p-value, and the mean residual at the locations."""
        residuals = self.cell_statistic(view)
        form, n_locations = residuals.quadratic_form(), len(residuals.locations.outcome)
        q, rank = float(form.q[0]), int(form.rank[0])
        if rank > 0:
            p = float(chdtrc(rank, q))
        else:  # Q is 0, infinite or undefined
            p = float("nan") if np.isnan(q) else float(q == 0)
        squared_ucme = float((form.mean[0] ** 2).mean())
        notes, warnings = [], []
        if np.isnan(q):
            notes.append(Note("TN118", "Q is undefined for a single row."))
        elif rank < n_locations:
            text = f"The covariance at {n_locations} test locations has rank {rank}, which is the degrees of freedom."
            notes.append(Note("TN220", text))
        if (
            self.null == "asymptotic"
            and (rows_per_location := residuals.effective_n() / n_locations) < MIN_ROWS_PER_LOCATION
        ):
            warnings.append(
                f"The effective sample size per test location is {rows_per_location:.2g} rows, and χ² rejects too"
                " often."
            )
        return ViewResult(
            statistic=q,
            pvalue=p,
            effect=float(np.sqrt(squared_ucme)),
            parts={"ucme": {"squared": squared_ucme, "df": float(rank)}},
            settings_used=self._settings_used(view, n_locations),
            notes=tuple(notes),
            asymptotic_warnings=tuple(warnings),
        )

    def cell_statistic(self, view: View) -> EmbeddingResiduals:
        locations = (
            choose_locations(view, self.locations)
            if isinstance(self.locations, int)
            else validate_locations(view, self.locations)
        )
        return EmbeddingResiduals(
            view, locations, self._similarity(view).gram_matrix(prediction_matrix(view), locations.points)
        )

    def _similarity(self, view: View) -> SimilarityKernel:
        """The kernel with its bandwidth, cached for the view."""
        key = ("kernel", self.kernel, self.bandwidth)
        return view.cached(key, lambda: similarity_kernels.kernel_for_view(self.kernel, self.bandwidth, view))

    def _settings_used(self, view: View, n_locations: int) -> dict[str, Any]:
        kernel_name = self.kernel if isinstance(self.kernel, str) else getattr(self.kernel, "__name__", "given")
        bandwidth_setting = {"bandwidth": self._similarity(view).bandwidth} if isinstance(self.kernel, str) else {}
        return {"locations": n_locations, "kernel": kernel_name, **bandwidth_setting}
