"""A penalized matrix of weights: matrix scaling, Dirichlet calibration, and structured scaling after a temperature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.calibrators._glm.fit_data import FitData, SummableRows
from trueodds.calibrators._glm.log_linear import (
    MAX_NEWTON_PARAMETERS,
    Biases,
    LogLinearMap,
    LogLinearSpec,
    Weights,
    fit_log_linear,
    initial_beta,
    not_converged_notes,
    odir_penalty,
    prepare_rows,
    ridge_penalty,
    scaled_penalty,
)
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb, Probabilities
from trueodds.calibrators._glm.newton import Minimum
from trueodds.calibrators.base import SoftmaxTerm, SummedSpec
from trueodds.calibrators.saved_parameters import NOT_SAVED, PassCount
from trueodds.calibrators.temperature import TemperatureMap, TemperatureSpec, TemperedMap
from trueodds.calibrators.uniform_mixture import uniform_share
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import NonNegative, Range
from trueodds.core.typing import Array

PENALTY_GRID = (10.0, 3.0, 1.0, 0.3, 0.1)  # times the scaled penalty; a weaker one overfits small samples


class FullMatrixMap(LogLinearMap):
    """Rows softmax(W log p + b), with a full matrix W."""

    penalty_factor: Annotated[float | None, NOT_SAVED] = None  # selected by penalty="auto"; a note reports it


class FullMatrixSpec(LogLinearSpec):
    """Settings of a full matrix on the log-probabilities, penalized towards the identity: `dirichlet` and `matrix`.

    Parameters
    ----------
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit takes log(max(p, `min_prob`)), and so does the map, because
        every log-probability enters every class. Where log-probabilities are known (`Predictions.from_logits`), the
        default applies to exact zeros only.
    """

    penalty: NonNegative | Literal["scaled", "auto"] = "scaled"
    bias_penalty: NonNegative | None = None
    shrink: Literal["odir", "l2"] = "odir"
    target: Literal["identity", "zero"] = "identity"
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.penalty, str) and (self.bias_penalty, self.shrink, self.target) != (
            None,
            "odir",
            "identity",
        ):
            raise InputError(
                "TO203",
                f"penalty={self.penalty!r} cannot be combined with other penalty settings.",
                f"bias_penalty={self.bias_penalty!r}, shrink={self.shrink!r}, target={self.target!r}",
                "Leave these out, or pass a number as penalty.",
            )

    def check_classes(self, k: int) -> None:
        """Raise TO522 if the Hessian that a search of the penalty needs is too large."""
        super().check_classes(k)
        if self.penalty == "auto" and k * (k + 1) > MAX_NEWTON_PARAMETERS:
            raise InputError(
                "TO522",
                "penalty='auto' needs the Hessian of all parameters, which is limited to 31 classes.",
                f"{k} classes",
                "Leave penalty out.",
            )

    def fit_from_sums(self, data: SummableRows) -> Any:
        k = data.summary.k
        self.check_classes(k)
        target = np.eye(k, k + 1) if self.target == "identity" else np.zeros((k, k + 1))
        start = np.eye(k, k + 1) * initial_beta(data, self.min_prob, self.logits)
        rows = data.map_rows(prepare_rows)
        if self.penalty == "auto":
            optimum, penalty_factor = _fit_by_aic(rows, target, start)
        else:
            strength = self._penalty_strengths(k, rows.summary.total_weight)
            optimum, penalty_factor = fit_log_linear(rows, strength, target, start, shared_features=True), None
        theta = optimum.theta.reshape(k, k + 1)
        weights, bias = theta[:, :k].copy(), theta[:, k].copy()
        if self.penalty == 0 or self.bias_penalty == 0:
            bias -= bias.mean()
        map_type: Any = self.map_type
        return map_type(
            weights, bias, self.min_prob, logits=self.logits, n_passes=optimum.n_passes,
            converged=optimum.converged, penalty_factor=penalty_factor,
        )  # fmt: skip

    def _penalty_strengths(self, k: int, total_weight: float) -> Array:
        """Penalty strengths per row of weights and biases, (K, K + 1)."""
        if isinstance(self.penalty, str):
            return scaled_penalty(k, total_weight)
        bias_penalty = self.penalty if self.bias_penalty is None else self.bias_penalty
        penalty_form = odir_penalty if self.shrink == "odir" else ridge_penalty
        return penalty_form(k, self.penalty, bias_penalty)

    def n_parameters(self, k: int) -> int:
        return (k - 1) * (k + 1)

    def notes_from_sums(self, calibration_map: FullMatrixMap, data: SummableRows) -> list[Note]:
        notes = super().notes_from_sums(calibration_map, data)
        if (factor := calibration_map.penalty_factor) is not None:
            notes.append(Note("TN534", f"penalty='auto' selected {factor:g} times the scaled penalty."))
        return notes


def _fit_by_aic(data: SummableRows, target: Array, start: Array) -> tuple[Minimum, float]:
    """The fit of smallest AIC on the grid of penalties, and its factor of the scaled penalty.

    `target` (K, K + 1) is the matrix and the biases towards which the penalty shrinks. Each fit starts from the
    previous optimum, the first one from `start` (K, K + 1).
    """
    min_criterion, selected, n_passes = np.inf, None, 0
    for factor in PENALTY_GRID:
        strength = scaled_penalty(len(target), data.summary.total_weight, factor)
        optimum = fit_log_linear(data, strength, target, start, shared_features=True)
        start, n_passes = optimum.theta, n_passes + optimum.n_passes
        hessian = optimum.likelihood.hessian
        penalized_hessian = hessian + 2 * data.summary.total_weight * np.diag(strength.reshape(-1))
        effective_parameters = float(np.trace(np.linalg.solve(penalized_hessian, hessian)))
        criterion = optimum.likelihood.value + effective_parameters  # half of AIC
        if selected is None or criterion < min_criterion:
            min_criterion, selected = criterion, (optimum, factor)
    assert selected is not None
    optimum, factor = selected
    return Minimum(optimum.theta, optimum.likelihood, n_passes, optimum.converged, optimum.max_gradient), factor


class MatrixMap(FullMatrixMap):
    """Rows softmax(W x + b) of logits, or of log probabilities."""


class MatrixSpec(FullMatrixSpec):
    r"""Matrix scaling: a full matrix on the logits, or on the log-probabilities, and a bias for each class.

    Without `logits` it is Dirichlet calibration. Predicted classes may change.

    Parameters
    ----------
    penalty : float or {"scaled", "auto"}, default="scaled"
        Penalty of the matrix and the biases, as for `dirichlet`.
    bias_penalty : float, optional
        Penalty of the biases, as for `dirichlet`.
    shrink : {"odir", "l2"}, default="odir"
        Form of a penalty that is a number, as for `dirichlet`.
    target : {"identity", "zero"}, default="identity"
        Target of `"l2"` for the matrix, as for `dirichlet`.
    logits : bool, default=False
        Whether the inputs x are logits instead of log-probabilities. The constant that each row of logits has is then
        part of the model.

    See Also
    --------
    dirichlet : The same map of log-probabilities; it explains the penalties.

    Notes
    -----
    .. math:: q_i = \mathrm{softmax}(W x_i + b), \quad
        \min_{W, b} \tfrac1w \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i] + \mathrm{penalty}(W, b)

    Of the K² + K parameters K² − 1 are identifiable: without a penalty thousands of rows are needed.

    Cost: O(nK⁴/4) per pass, about 5 passes; beyond 31 classes O(nK²), some hundred passes.

    References
    ----------
    .. [1] Guo et al. (2017).
    .. [2] Kull et al. (2019), for the penalty.

    Examples
    --------
    >>> z = np.array([[2.0, 0.0], [0.0, 1.0]] * 50)
    >>> m = MatrixSpec(logits=True).fit(z, np.eye(2)[[0, 1] * 50], np.ones(100))
    >>> m.logits, m.weights.shape
    (True, (2, 2))
    """

    name, map_type = "matrix", MatrixMap
    candidate = False
    logits: bool = False


_MAX_CLASSES = 30  # classes up to which `auto` tries it by default


class DirichletMap(FullMatrixMap):
    """Rows softmax(W log p + b)."""


class DirichletSpec(FullMatrixSpec):
    r"""Dirichlet calibration: a full matrix on the log-probabilities and a bias for each class.

    The map is exact if the predictions within each class follow a Dirichlet distribution. Predicted classes may change.

    Parameters
    ----------
    penalty : float or {"scaled", "auto"}, default="scaled"
        Penalty of the matrix and the biases. `"scaled"` is K(K−1) W_ij² for each pair, K b_j² and (W_jj − 1)²/2, in
        nats over all rows, so that it matters less with more rows. `"auto"` takes 10, 3, 1, 0.3 or 0.1 times that
        penalty, selected by AIC, for up to 31 classes; it is too weak on a few hundred rows and a little better than
        `"scaled"` from a few thousand on. A number λ is in nats per row; 0 is maximum likelihood.
    bias_penalty : float, optional
        Penalty μ of the biases, with a number as `penalty`. By default the same number.
    shrink : {"odir", "l2"}, default="odir"
        Form of a penalty λ. `"odir"` is the published λ/(K(K−1)) Σ_{i≠j} W_ij² + μ/K Σ b_j², which leaves the diagonal
        free. `"l2"` is λ Σ (W_ij − target)² + μ Σ b_j².
    target : {"identity", "zero"}, default="identity"
        Target of `"l2"` for the matrix. With the identity, the map that changes nothing has no penalty.

    Notes
    -----
    .. math:: q_i = \mathrm{softmax}(W \log p_i + b), \quad
        \min_{W, b} \tfrac1w \sum_i w_i\,[\mathrm{lse}(\eta_i) - y_i\cdot\eta_i] + \mathrm{penalty}(W, b)

    No penalty depends on the order of the classes. AIC uses tr H(H + 2A)⁻¹ effective parameters, where H is the Hessian
    without the penalty A. Biased towards the identity.

    Cost: O(nK⁴/4) per pass, about 5 passes; beyond 31 classes O(nK²), some hundred passes.

    References
    ----------
    .. [1] Kull et al. (2019).
    .. [2] Berta et al. (2025), for the scaled penalty.

    Examples
    --------
    >>> P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]] * 50)
    >>> DirichletSpec().fit(P, P, np.ones(150)).apply(P[:1]).round(6).tolist()
    [[0.7, 0.2, 0.1]]
    """

    name, map_type = "dirichlet", DirichletMap

    def is_suitable(self, n: int, k: int) -> bool:
        return super().is_suitable(n, k) and k <= _MAX_CLASSES


_MAX_MATRIX_CLASSES = 30  # classes up to which form="auto" is a matrix
_MIN_MIXED_PROB = float(np.finfo(np.float64).tiny)  # `min_prob` after mixing, which leaves no probability so small


class StructuredMap(TemperedMap):
    """A temperature, a small share of the uniform distribution, then softmax(W log p + b)."""

    symbols: ClassVar[Mapping[str, str]] = {"T": "temperature", "W": "weights", "b": "bias"}
    share: Annotated[float, Range(0, 1, closed="right")]  # of the uniform, so that no probability is zero
    weights: Weights
    bias: Biases
    n_passes: PassCount = 0  # in both fits
    converged: bool = True  # whether both fits have a finite optimum

    def apply(self, P: Probabilities) -> Array:
        """Temper the rows of P, mix them with the uniform distribution, and apply softmax(W log p + b)."""
        return self._linear_step().apply(temper_and_mix(P, self.beta, self.share))

    def _linear_step(self) -> LogLinearMap:
        return LogLinearMap(self.weights, self.bias, _MIN_MIXED_PROB)

    def mixture_stages(self, k: int) -> tuple[tuple[SoftmaxTerm, ...], ...]:
        tempered = SoftmaxTerm(1 - self.share, np.full(k, self.beta), np.zeros(k))
        uniform = SoftmaxTerm(self.share, np.zeros(k), np.zeros(k))
        return (tempered, uniform), self._linear_step().mixture_terms(k)

    def describe(self) -> str:
        """The parameters, such as `T = 2.03, then slopes 0.91 to 1.25, biases -0.22 to 0.49`."""
        return f"{TemperatureMap(self.beta).describe()}, then {self._linear_step().describe()}"


class StructuredSpec(SummedSpec):
    r"""Structured scaling: temperature scaling followed by a strongly penalized vector or matrix.

    Known as structured vector scaling (SVS) and structured matrix scaling (SMS), here with ridge penalties. The penalty
    towards the identity is strong enough for small samples. No probability becomes 0. Predicted classes may change.

    Parameters
    ----------
    form : {"auto", "vector", "matrix"}, default="auto"
        Form of the second step. `"auto"` is a matrix up to 30 classes, else a vector.
    penalty : float, default=1.0
        Strength of the ridge penalty, a factor of the penalty in Notes.
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit of T takes log(max(p, `min_prob`)). Where log-probabilities
        are known (`Predictions.from_logits`), the default applies to exact zeros only.

    Notes
    -----
    .. math:: p' \propto p^{1/T}, \quad
        p'' = \tfrac{n}{n+1}\,p' + \tfrac{1}{n+1}\tfrac1K, \quad q = \mathrm{softmax}((I + D + M) \log p'' + b)

    T is that of temperature scaling. D (diagonal), M (zero diagonal, only with a matrix) and b minimize the mean log
    loss + `penalty`/n · (K Σ D_j² + K Σ b_j² + K(K−1) Σ M_ij²), where n is the total weight. Fitted to 300 to 1,000
    rows of real classifiers with three to ten classes, the matrix was on average 0.006 nats per row behind the best
    method of each, the vector 0.016 and the temperature alone 0.051. Biased towards the temperature.

    Cost: O(nK⁴/4) per pass for a matrix, O(nK²) for a vector, about 6 passes.

    References
    ----------
    .. [1] Berta, Holzmüller, Jordan & Bach (2025).

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.1, 0.9]] * 4)
    >>> StructuredSpec().fit(P, np.eye(2)[[0, 1, 0, 1, 0, 1, 1, 0]], np.ones(8)).describe().split(",")[0]
    'T = 2.00'
    """

    name, map_type = "structured", StructuredMap
    form: Literal["auto", "vector", "matrix"] = "auto"
    penalty: NonNegative = 1.0
    min_prob: MinProb = MIN_PROB

    def fit_from_sums(self, data: SummableRows) -> StructuredMap:
        k, total_weight = data.summary.k, data.summary.total_weight
        temperature_map = TemperatureSpec(min_prob=self.min_prob).fit_from_sums(data)
        share = uniform_share(total_weight)
        rows = data.map_rows(partial(_tempered_fit_data, beta=temperature_map.beta, share=share)).map_rows(prepare_rows)
        is_matrix = self.form == "matrix" or (self.form == "auto" and k <= _MAX_MATRIX_CLASSES)
        # Penalty and target of the matrix W and the biases, (K, K + 1).
        strength = self.penalty * scaled_penalty(k, total_weight, diagonal=k)
        target = np.eye(k, k + 1)
        if not is_matrix:  # only the diagonal of W and the biases, (K, 2)
            strength, target = _diagonal_and_bias(strength), _diagonal_and_bias(target)
        optimum = fit_log_linear(rows, strength, target, target, shared_features=is_matrix)
        theta = optimum.theta.reshape(k, -1)
        weights, bias = theta[:, :k] if is_matrix else theta[:, 0], theta[:, -1]
        converged = optimum.converged and temperature_map.converged
        return StructuredMap(
            temperature_map.beta,
            share,
            weights.copy(),
            bias.copy(),
            temperature_map.n_passes + optimum.n_passes,
            converged,
        )

    def notes_from_sums(self, calibration_map: StructuredMap, data: SummableRows) -> list[Note]:
        temperature_map = TemperatureMap(calibration_map.beta)
        notes = TemperatureSpec(min_prob=self.min_prob).notes_from_sums(temperature_map, data)
        return notes + (not_converged_notes(self, calibration_map) if temperature_map.converged else [])


def _diagonal_and_bias(matrix: Array) -> Array:
    """The diagonal and the last column of a matrix (K, K + 1), as columns (K, 2)."""
    k = len(matrix)
    return np.stack([matrix[np.arange(k), np.arange(k)], matrix[:, k]], axis=1)


def _tempered_fit_data(data: FitData, beta: float, share: float) -> FitData:
    """The rows after temperature scaling and mixing, to which the linear map is fitted; no probability is 0."""
    return replace(data, P=temper_and_mix(data.P, beta, share), min_prob=_MIN_MIXED_PROB)


def temper_and_mix(P: Probabilities, beta: float, share: float) -> Array:
    """Rows p^β divided by their sums and mixed with a share of the uniform distribution."""
    return (1 - share) * TemperatureMap(beta).apply(P) + share / P.shape[1]
