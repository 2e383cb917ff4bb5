"""Adjust probabilities, or estimates of errors, to other class frequencies (prior shift, also called label shift).

The frequencies of unlabeled rows are estimated by maximum likelihood (EM), BBSE or soft BBSE. Each estimator minimizes
a convex function of nonnegative frequencies, by `minimize_nonnegative`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dposv

from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm
from trueodds.calibrators.calibrator_predictions import check_prob_matrix
from trueodds.calibrators.saved_parameters import NOT_SAVED, Numbers, PassCount, ZeroOrOne, invalid_value_error
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import format_number
from trueodds.core.settings import CHECKED_BY_CLASS, OneOf
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import prob_columns

_ROWS_PER_BLOCK = 4096  # so that temporaries stay in cache
_MAX_CONDITION_NUMBER = 100.0  # above it, a confusion matrix is nearly singular

# Of `minimize_nonnegative`:
GRADIENT_TOLERANCE = 1e-12  # of the gradient, which the caller scales to about 1
MAX_EVALUATIONS = 200  # of the function and its derivatives together
_CURVATURE_DAMPING = 1e-8  # share of its curvature that is added to each diagonal entry
_MIN_STEP_FRACTION = 2.0**-40  # fraction of a step below which no decrease is expected
_MIN_DECREASE_SHARE = 1e-4  # share of the predicted decrease that a step must attain (Armijo's rule)
_VALUE_ROUNDING = 1e-14  # rounding error of a value, relative to 1 + its size
_MAX_BLOCK_EXCHANGES = 3  # block exchanges without progress before single exchanges


@dataclass(frozen=True, slots=True, eq=False)
class ClassFrequencies:
    """Estimated class frequencies of the target rows, and why they may be unreliable."""

    shares: Array  # (K,) summing to 1
    n_passes: int = 0  # over the target rows
    converged: bool = True  # whether the estimate is a solution
    doubts: tuple[str, ...] = ()  # reasons why the estimate may be unreliable, each a sentence without its full stop


def maximum_likelihood_frequencies(P: Array, Y: Array, w: Array, T: Array) -> ClassFrequencies:  # noqa: ARG001 - the signature that all estimators share
    r"""Class frequencies that maximize the likelihood of the target's predictions T (m, K).

    P (n, K), Y (n, K) and w (n,) are predictions, outcome shares and weights of the labeled source rows.

    .. math:: \max_\pi \frac1m \sum_i \log \sum_k \frac{p_{ik}}{\pi^s_k} \pi_k

    EM multiplies :math:`\pi_k` by :math:`d_k = \frac1m \sum_i \frac{p_{ik} / \pi^s_k}{\sum_l
    (p_{il} / \pi^s_l) \pi_l}` until these are 1, in hundreds of passes if the classes are hard to distinguish. The
    likelihood is concave, so Newton's method finds the same frequencies, in about ten passes and to the last digits; a
    class that vanished has frequency 0. Source: Saerens, Latinne & Decaestecker (2002).
    """
    source_shares = weighted_sum(w, Y) / w.sum()
    observed = source_shares > 0
    R = T[:, observed] / source_shares[observed]
    is_possible = R.sum(axis=1) > 0
    n_impossible = int(np.count_nonzero(~is_possible))
    doubts = (
        [f"{n_impossible:,} target rows predict only classes that were never observed in the source, and were left out"]
        if n_impossible
        else []
    )
    if n_impossible == len(T):
        return ClassFrequencies(source_shares, 0, False, tuple(doubts))
    optimum = _maximize_mixture_likelihood(R[is_possible], source_shares[observed])
    n_passes = optimum.n_evaluations
    if not optimum.converged:
        doubts.append(f"The likelihood still increases after {n_passes:,} passes: the classes are hard to distinguish")
    shares = np.zeros(len(source_shares))
    shares[observed] = optimum.x / optimum.x.sum()
    return ClassFrequencies(shares, n_passes, optimum.converged, tuple(doubts))


def _maximize_mixture_likelihood(R: Array, start: Array) -> NonnegativeMinimum:
    """Frequencies π (k,) that maximize mean log(Rπ), as the minimum of −mean log(Rπ) + Σπ, where Σπ = 1.

    R (m, k) are the predicted probabilities of the target rows divided by the source frequencies.
    """

    def negative_log_likelihood(pi: Array) -> float:
        """−mean log(Rπ) + Σπ; infinite where a row is impossible."""
        likelihoods = R @ pi
        return float(pi.sum() - np.log(likelihoods).mean()) if likelihoods.min() > 0 else np.inf

    def derivatives(pi: Array) -> tuple[Array, Array]:
        """Gradient (k,) and Hessian (k, k) of the negative log-likelihood."""
        likelihoods, k = R @ pi, len(pi)
        gradient, hessian = np.ones(k), np.zeros((k, k))
        for start in range(0, len(R), _ROWS_PER_BLOCK):
            block = slice(start, start + _ROWS_PER_BLOCK)
            ratio = R[block] / likelihoods[block, None]
            gradient -= ratio.sum(axis=0) / len(R)
            hessian += ratio.T @ ratio / len(R)
        return gradient, hessian

    return minimize_nonnegative(negative_log_likelihood, derivatives, start, max_evaluations=MAX_EVALUATIONS)


def bbse_frequencies(P: Array, Y: Array, w: Array, T: Array) -> ClassFrequencies:
    r"""Class frequencies that solve the confusion matrix for the target's frequencies of predicted classes (BBSE).

    .. math:: \min_{\omega \ge 0} \lVert C\omega - \mu \rVert, \quad C_{ij} = P_s(\hat y = i, y = j), \quad
        \mu_i = P_t(\hat y = i), \quad \pi_k = \pi^s_k \omega_k

    Source: Lipton, Wang & Smola (2018), without their negative weights.
    """
    k = P.shape[1]
    return _solve_confusion_matrix(np.eye(k)[P.argmax(axis=1)], Y, w, np.eye(k)[T.argmax(axis=1)])


def soft_bbse_frequencies(P: Array, Y: Array, w: Array, T: Array) -> ClassFrequencies:
    """BBSE with probabilities instead of predicted classes, which uses more of their information."""
    return _solve_confusion_matrix(P, Y, w, T)


def _solve_confusion_matrix(predicted: Array, Y: Array, w: Array, target_predicted: Array) -> ClassFrequencies:
    """Solve C ω = μ for ω ≥ 0, and return the frequencies π = π^s ω, as `bbse_frequencies` defines these.

    `predicted` (n, K) and `target_predicted` (m, K) are predicted probabilities or one-hot predicted classes of the
    source and the target.
    """
    C = (predicted * w[:, None]).T @ Y / w.sum()
    source_shares = C.sum(axis=0)
    observed = source_shares > 0
    shares = np.zeros(len(source_shares))
    shares[observed] = (
        _nonnegative_least_squares(C[:, observed], target_predicted.mean(axis=0)) * source_shares[observed]
    )
    condition = float(np.linalg.cond(C[:, observed] / source_shares[observed]))
    doubts = []
    if not condition < _MAX_CONDITION_NUMBER:
        doubts.append(
            f"The confusion matrix is nearly singular (condition {format_number(condition)}), so the frequencies are"
            " imprecise"
        )
    total = shares.sum()
    return ClassFrequencies(shares / total if total > 0 else source_shares, 0, bool(total > 0), tuple(doubts))


def _nonnegative_least_squares(C: Array, mu: Array) -> Array:
    """The ω ≥ 0 that minimizes |Cω − μ|²."""
    H, c = C.T @ C, C.T @ mu
    scale = float(c.max())
    if scale <= 0:  # no class of the target was predicted in the source
        return np.zeros(len(c))
    H, c = H / scale, c / scale
    optimum = minimize_nonnegative(
        lambda x: float(x @ H @ x) / 2 - float(c @ x), lambda x: (H @ x - c, H), np.ones(len(c))
    )
    return optimum.x


FREQUENCY_ESTIMATORS: dict[str, Callable[[Array, Array, Array, Array], ClassFrequencies]] = {
    "em": maximum_likelihood_frequencies,
    "bbse": bbse_frequencies,
    "bbse-soft": soft_bbse_frequencies,
}
FrequencyMethod = Annotated[str, OneOf(tuple(FREQUENCY_ESTIMATORS))]


@dataclass(frozen=True, slots=True, eq=False)
class NonnegativeMinimum:
    """Result of Newton's method under nonnegativity bounds."""

    x: Array  # (m,) ≥ 0
    n_evaluations: int  # of the function, and of its derivatives
    converged: bool  # whether the optimality conditions hold


def minimize_nonnegative(
    value: Callable[[Array], float],
    derivatives: Callable[[Array], tuple[Array, Array]],
    start: Array,
    *,
    max_evaluations: int = MAX_EVALUATIONS,
) -> NonnegativeMinimum:
    r"""Minimize f(x) over x ≥ 0, given its values and its derivatives :math:`(\nabla f, \nabla^2 f)`.

    Projected Newton's method: each step minimizes the local quadratic approximation over x ≥ 0 and is halved until f
    decreases. A slight damping keeps directions without curvature at their start. Convergence is quadratic and its
    limit does not depend on the path, so rounding affects only the last digits. The search has converged if no entry
    of the gradient is negative and none is positive at a positive entry of x, up to `GRADIENT_TOLERANCE`.

    >>> A, b = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0])
    >>> f, df = lambda x: x @ A @ x / 2 - b @ x, lambda x: (A @ x - b, A)
    >>> minimize_nonnegative(f, df, np.ones(2)).x.round(9).tolist()
    [0.5, 0.0]
    """
    x = np.array(start, dtype=np.float64)
    current_value, n_evaluations = value(x), 1
    while True:
        gradient, hessian = derivatives(x)
        n_evaluations += 1
        violation = float(np.abs(x - np.maximum(x - gradient, 0.0)).max(initial=0.0))
        if violation <= GRADIENT_TOLERANCE or n_evaluations >= max_evaluations:
            break
        curvature = hessian.diagonal()
        damped_hessian = hessian + np.diag(np.where(curvature > 0, _CURVATURE_DAMPING * curvature, 1.0))
        step = minimize_quadratic(damped_hessian, damped_hessian @ x - gradient, x > 0) - x
        decrease, length = -float(gradient @ step), 1.0
        while length >= _MIN_STEP_FRACTION and n_evaluations < max_evaluations:
            candidate = x + length * step
            candidate_value = value(candidate)
            n_evaluations += 1
            # A difference within rounding error counts as a decrease.
            if candidate_value <= (
                current_value - _MIN_DECREASE_SHARE * length * decrease + _VALUE_ROUNDING * (1 + abs(current_value))
            ):
                x, current_value = candidate, candidate_value
                break
            length /= 2
        else:
            break
    # A search that stopped at the rounding error has converged too.
    return NonnegativeMinimum(x, n_evaluations, violation <= 100 * GRADIENT_TOLERANCE)


def minimize_quadratic(H: Array, c: Array, is_positive: Array) -> Array:
    r"""Minimize :math:`x^\top H x / 2 - c^\top x` over x ≥ 0, H positive definite.

    Block principal pivoting: solve for the entries that are taken to be positive, then exchange all entries that
    violate their optimality condition between the positive ones and the zeros. Where this makes no progress, exchange
    only the last of them (Murty's rule), which always terminates. `is_positive` (m,) is the first guess. Source: Júdice
    & Pires (1994); Murty (1974).
    """
    scale = 1 / np.sqrt(H.diagonal())
    H, c, is_positive = H * scale[:, None] * scale, c * scale, is_positive.copy()
    tolerance = 1e-15 * float(np.abs(c).max(initial=0.0))
    fewest_violations, exchanges_left = len(c) + 1, _MAX_BLOCK_EXCHANGES
    for _ in range(100 + 10 * len(c)):
        x, indices = np.zeros(len(c)), np.flatnonzero(is_positive)
        if len(indices):
            x[indices] = dposv(H[np.ix_(indices, indices)], c[indices])[1]
        violations = np.flatnonzero(np.where(is_positive, x < 0, H @ x - c < -tolerance))
        if not len(violations):
            break
        if len(violations) < fewest_violations:
            fewest_violations, exchanges_left = len(violations), _MAX_BLOCK_EXCHANGES
        elif exchanges_left:
            exchanges_left -= 1
        else:
            violations = violations[-1:]
        is_positive[violations] = ~is_positive[violations]
    return np.maximum(x, 0.0) * scale


_SUM_TOLERANCE = 1e-6  # deviation from 1 of the sum of class frequencies
_MAX_RATIO = 1e100  # largest ratio that can be saved; its products with probabilities stay finite


class PriorShiftMap(CalibrationMap):
    """Rows proportional to p times a ratio per class."""

    symbols: ClassVar[Mapping[str, str]] = {"w": "ratios"}
    ratios: Annotated[Array, Numbers(0, _MAX_RATIO, ("k",))]  # target frequency over source frequency
    n_passes: PassCount = 0  # over the target rows, in the estimation of their frequencies
    converged: ZeroOrOne = True  # whether that estimation converged
    # Why the ratios may be unreliable, and target frequencies (K,): for notes of the fit.
    doubts: Annotated[tuple[str, ...], NOT_SAVED] = ()
    target_shares: Annotated[Array | None, NOT_SAVED] = None

    def apply(self, P: Array) -> Array:
        """Normalized products; a row with only classes of ratio 0 becomes uniform over the other classes."""
        q = P * self.ratios
        row_sums = q.sum(axis=1, keepdims=True)
        uniform_row = (self.ratios > 0) / np.count_nonzero(self.ratios)
        return np.divide(q, row_sums, out=np.tile(uniform_row, (len(q), 1)), where=row_sums > 0)

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...]:
        with np.errstate(divide="ignore"):
            return (SoftmaxTerm(1.0, np.ones(k), np.log(self.ratios)),)

    def describe(self) -> str:
        """The ratios, or their range."""
        if len(self.ratios) <= 4:
            return "ratios " + " ".join(map(format_number, self.ratios.tolist()))
        return f"ratios {format_number(self.ratios.min())} to {format_number(self.ratios.max())}"

    def check_saved(self, k: int) -> None:
        if not self.ratios.any():
            raise invalid_value_error("ratios", "nonnegative numbers, at least one positive", "zeros only")


class PriorShiftSpec(CalibratorSpec, eq=False):
    r"""Adjust probabilities to other class frequencies (label shift), known or estimated from unlabeled predictions.

    The adjustment is exact if only the class frequencies change and the probabilities are calibrated for the source.
    Calibrate first, best with `bias_corrected_temperature`. Predicted classes may change.

    Parameters
    ----------
    priors : sequence of float, mapping or {"uniform"}, optional
        Class frequencies of the target: one number per class in the order of the classes, a mapping from class index to
        number, or `"uniform"`.
    target : array-like of shape (m, K) or (m,), optional
        Predictions of the model for rows without labels, from which the frequencies are estimated.
    how : {"em", "bbse", "bbse-soft"}, default="em"
        Estimator of the frequencies from `target`, ignored with `priors`. `"em"` maximizes the likelihood, which is
        concave, by Newton's method. `"bbse"` solves the confusion matrix of labels and predicted classes without
        negative weights; it needs no calibration but more rows. `"bbse-soft"` uses the probabilities instead of
        predicted classes.

    Notes
    -----
    .. math:: q_k \propto p_k \, \frac{\pi^{\text{target}}_k}{\pi^{\text{source}}_k}

    Source frequencies are the weighted shares of the labels. A class that is never observed in the source has the
    ratio 1. The fitted map holds the K ratios, not the rows of the target.

    Cost: O(nK), and O(mK²) per pass, about ten passes; the confusion matrix takes one.

    References
    ----------
    .. [1] Saerens, Latinne & Decaestecker (2002).
    .. [2] Lipton et al. (2018), for `"bbse"`.
    .. [3] Alexandari et al. (2020), on calibrating first.

    Examples
    --------
    >>> P, Y = np.array([[0.8, 0.2], [0.2, 0.8]] * 5), np.eye(2)[[0, 1] * 5]
    >>> fitted = PriorShiftSpec(priors=[0.9, 0.1]).fit(P, Y, np.ones(10))
    >>> fitted.apply(np.array([[0.5, 0.5]])).round(4).tolist()
    [[0.9, 0.1]]
    """

    name, map_type = "prior_shift", PriorShiftMap
    example_settings = "priors=[0.7, 0.3]"
    candidate = False
    priors: Sequence[float] | Mapping[Any, Any] | Literal["uniform"] | None = None
    target: Annotated[ArrayLike | None, CHECKED_BY_CLASS] = None
    how: FrequencyMethod = "em"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.priors is not None and self.target is not None:
            raise InputError(
                "TO205",
                "Class frequencies are either given (priors) or estimated (target).",
                "priors and target",
                "Leave one of them out.",
            )
        if self.target is not None:
            as_array(self.target, "target")

    def settings(self) -> dict[str, Any]:
        """The settings as JSON values, with the target's size instead of its rows."""
        own_settings: dict[str, Any] = {"priors": self.priors, "target": None, "how": self.how}
        if isinstance(self.priors, Mapping):
            own_settings["priors"] = {str(key): float(value) for key, value in self.priors.items()}
        elif self.priors is not None and not isinstance(self.priors, str):
            own_settings["priors"] = [float(value) for value in np.asarray(self.priors).ravel()]
        if self.target is not None:
            own_settings["target"] = f"{len(np.asarray(self.target)):,} predictions"
        return own_settings

    def fit(self, P: Array, Y: Array, w: Array) -> PriorShiftMap:
        """Estimate the ratios of the target's class frequencies to those of these rows."""
        source_shares, frequencies = weighted_sum(w, Y) / w.sum(), self._target_frequencies(P, Y, w)
        doubts = frequencies.doubts
        if n_unobserved := int(((source_shares == 0) & (frequencies.shares > 0)).sum()):
            which = "1 class was" if n_unobserved == 1 else f"{n_unobserved:,} classes were"
            doubts = (*doubts, f"{which} never observed in the source, so the ratio is unknown and 1 is used")
        ratios = np.divide(frequencies.shares, source_shares, out=np.ones(len(source_shares)), where=source_shares > 0)
        return PriorShiftMap(ratios, frequencies.n_passes, frequencies.converged, doubts, frequencies.shares)

    def _target_frequencies(self, P: Array, Y: Array, w: Array) -> ClassFrequencies:
        """Class frequencies of the target, as given by `priors` or estimated from `target`."""
        if self.target is not None:
            _reject_frequencies(self.target, P.shape[1])
            return FREQUENCY_ESTIMATORS[self.how](P, Y, w, prob_columns(check_prob_matrix(self.target, P.shape[1])))
        if self.priors is None:
            raise InputError(
                "TO203",
                "The class frequencies of the target are needed.",
                "neither priors nor target",
                "Pass priors=[...], one number per class, or target= with predictions of unlabeled rows.",
            )
        return ClassFrequencies(_read_priors(self.priors, P.shape[1]))

    def notes(self, calibration_map: PriorShiftMap, P: Array, Y: Array, w: Array) -> list[Note]:
        assert calibration_map.target_shares is not None
        text = (
            f"Class frequencies: {_format_shares(weighted_sum(w, Y) / w.sum())} in the source,"
            f" {_format_shares(calibration_map.target_shares)} in the target."
        )
        return [Note("TN519", text), *(Note("TN520", f"{doubt}.") for doubt in calibration_map.doubts)]


def class_weights(
    source_prob: ArrayLike,
    source_true: ArrayLike,
    target_prob: ArrayLike,
    how: FrequencyMethod = "bbse-soft",
    *,
    weight: ArrayLike | None = None,
) -> Array:
    r"""Weights with which labeled source rows estimate errors on a target with other class frequencies.

    They are valid if only the class frequencies differ (label shift), for any error f.

    Parameters
    ----------
    source_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities of labeled source rows.
    source_true : array-like of shape (n,)
        Labels of the source rows.
    target_prob : array-like of shape (m, K) or (m,)
        Predicted probabilities of target rows.
    how : {"em", "bbse", "bbse-soft"}, default="bbse-soft"
        Estimator of the target's class frequencies, as for `prior_shift`. The confusion matrix suits any model. `"em"`
        assumes a calibrated model: if it is overconfident, the weights are wrong.
    weight : array-like of shape (n,), optional
        Weights of the source rows.

    Returns
    -------
    ndarray of shape (K,)
        The weight of each class.

    Raises
    ------
    InputError
        TO1xx for invalid data; TO203 for an unknown `how` or a `target_prob` that looks like class frequencies.

    Notes
    -----
    .. math:: \mathrm{E}_{\text{target}}[f(X, Y)] = \mathrm{E}_{\text{source}}[\omega_Y\, f(X, Y)], \qquad
        \omega_k = \frac{\pi^{\text{target}}_k}{\pi^{\text{source}}_k}

    Weight the labeled rows and measure:
    `to.measure(to.Predictions(y, p, weight=class_weights(p, y, p_target)[y]), "ece")`.

    References
    ----------
    .. [1] Popordanoska, Radevski, Tuytelaars & Blaschko (2024), LaSCal.

    Examples
    --------
    >>> source, labels = [0.2] * 5 + [0.8] * 5, [0, 0, 0, 0, 1, 0, 1, 1, 1, 1]
    >>> class_weights(source, labels, [0.2] * 7 + [0.8] * 3, how="bbse").round(2).tolist()
    [1.67, 0.33]
    """
    preds = Predictions(source_true, source_prob, weight=weight, copy=False)
    spec = PriorShiftSpec(target=as_array(target_prob, "target_prob"), how=how)
    return spec.fit(prob_columns(preds.p), preds.Y, preds.w).ratios


def _read_priors(priors: Sequence[float] | Mapping[int, float] | str, k: int) -> Array:
    """Class frequencies (K,) from the setting `priors`; raises TO203 if they are invalid."""
    if isinstance(priors, str):
        return np.full(k, 1 / k)
    if isinstance(priors, Mapping):
        values: list[Any] = [priors.get(c) for c in range(k)] if set(priors) == set(range(k)) else []
    else:
        values = list(priors)
    try:
        shares = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        shares = np.empty(0)
    if shares.shape != (k,) or not (shares >= 0).all() or not abs(shares.sum() - 1) <= _SUM_TOLERANCE:
        raise InputError(
            "TO203",
            f"priors must be {k} frequencies, one per class in the order of the columns, that sum to 1.",
            describe(priors),
            "Divide counts by their sum.",
        )
    return shares / shares.sum()


def _format_shares(shares: Array) -> str:
    """The first five shares, and how many more there are."""
    shown = " ".join(map(format_number, shares[:5].tolist()))
    return shown + (f" and {len(shares) - 5:,} more" if len(shares) > 5 else "")


def _reject_frequencies(target: Any, k: int) -> None:
    """Raise TO203 if `target` looks like class frequencies instead of predictions of rows."""
    rows = np.asarray(target)
    if rows.ndim == 1 and len(rows) == k and rows.dtype.kind in "fiu" and abs(float(rows.sum()) - 1) < _SUM_TOLERANCE:
        raise InputError(
            "TO203",
            "target must hold predictions of unlabeled rows; these numbers look like class frequencies.",
            describe(rows.tolist()),
            "Pass them as priors=.",
        )
