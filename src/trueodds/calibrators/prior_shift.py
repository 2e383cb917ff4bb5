"""Adjust probabilities, or estimates of errors, to other class frequencies (prior shift, also called label shift)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm
from trueodds.calibrators.calibrator_predictions import check_prob_matrix
from trueodds.calibrators.label_shift import FREQUENCY_ESTIMATORS, ClassFrequencies, FrequencyMethod
from trueodds.calibrators.saved_parameters import NOT_SAVED, Numbers, PassCount, ZeroOrOne, invalid_value_error
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import format_number
from trueodds.core.settings import CHECKED_BY_CLASS
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import prob_columns

Priors = Sequence[float] | Mapping[int, float] | str

_SUM_TOLERANCE = 1e-6  # deviation from 1 of the sum of class frequencies
_MAX_RATIO = 1e100  # largest ratio that can be saved; its products with probabilities stay finite


@dataclass(frozen=True, eq=False)
class PriorShiftMap(CalibrationMap):
    """Rows proportional to p times a ratio per class."""

    name: ClassVar[str] = "prior_shift"
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
        """Shifts by the logarithms of the ratios."""
        with np.errstate(divide="ignore"):
            return (SoftmaxTerm(1.0, np.ones(k), np.log(self.ratios)),)

    def describe(self) -> str:
        """The ratios, or their range."""
        if len(self.ratios) <= 4:
            return "ratios " + " ".join(map(format_number, self.ratios.tolist()))
        return f"ratios {format_number(self.ratios.min())} to {format_number(self.ratios.max())}"

    def check_saved(self, k: int) -> None:
        """Check that some ratio is positive."""
        if not self.ratios.any():
            raise invalid_value_error("ratios", "numbers of which one is positive", "zeros only")


@dataclass(frozen=True, eq=False)
class PriorShiftSpec(CalibratorSpec):
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
        negative weights; it needs no calibration but more rows. `"bbse-soft"` uses the probabilities in place of
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

    name: ClassVar[str] = "prior_shift"
    keeps_argmax: ClassVar[bool] = False
    map_type: ClassVar[type[CalibrationMap] | None] = PriorShiftMap
    candidate: ClassVar[bool] = False
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
        """The settings as JSON values, with the target's size in place of its rows."""
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
        source_shares, frequencies = (w @ Y) / w.sum(), self._target_frequencies(P, Y, w)
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

    def notes(self, calibration_map: CalibrationMap, P: Array, Y: Array, w: Array) -> list[Note]:
        """Notes with both class frequencies, and on doubts about them."""
        assert isinstance(calibration_map, PriorShiftMap)
        assert calibration_map.target_shares is not None
        text = (
            f"Class frequencies: {_format_shares((w @ Y) / w.sum())} in the source,"
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


def _read_priors(priors: Priors, k: int) -> Array:
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
