"""Adjust probabilities and errors to other class frequencies (prior shift)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from trueodds.calibrators import saved_parameters
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, Term
from trueodds.calibrators.fitted_calibrator import check_prob_matrix, prob_columns
from trueodds.calibrators.label_shift import ESTIMATES, Frequencies, FrequencyMethod
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import format_number
from trueodds.core.settings import OWN
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array
from trueodds.data.predictions import Predictions

Priors = Sequence[float] | Mapping[int, float] | str

_WIDE = 1e100


@dataclass(frozen=True, eq=False)
class PriorShiftMap(CalibrationMap):
    """Rows proportional to p times a ratio per class."""

    name: ClassVar[str] = "prior_shift"
    ratios: Array  # (K,) target frequency over source frequency
    n_passes: int = 0
    converged: bool = True
    doubts: tuple[str, ...] = ()  # of the estimate; the notes of the fit say them, and they are not saved

    def apply(self, P: Array) -> Array:
        """The products over their sums; a row that only had classes that no longer come is even over the others."""
        q = P * self.ratios
        total = q.sum(axis=1, keepdims=True)
        left = (self.ratios > 0) / np.count_nonzero(self.ratios)
        return np.divide(q, total, out=np.tile(left, (len(q), 1)), where=total > 0)

    def terms(self, k: int) -> tuple[Term, ...]:
        """Shifts by the logs of the ratios."""
        with np.errstate(divide="ignore"):
            return (Term(1.0, np.eye(k), np.log(self.ratios)),)

    def describe(self) -> str:
        """The ratios, or their range."""
        if len(self.ratios) <= 4:
            return "ratios " + " ".join(map(format_number, self.ratios.tolist()))
        return f"ratios {format_number(self.ratios.min())} to {format_number(self.ratios.max())}"

    def to_dict(self) -> dict[str, Any]:
        """The ratios, the passes that estimating them took, and 1 if they were found exactly."""
        return {"ratios": self.ratios.tolist(), "n_passes": self.n_passes, "converged": int(self.converged)}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> PriorShiftMap:
        """A ratio for each class, of which one is positive."""
        saved_parameters.check_keys(parameters, ("ratios", "n_passes", "converged"), "parameters")
        ratios = saved_parameters.read_vector(parameters, "ratios", 0, _WIDE, size=k)
        if not ratios.any():
            raise InputError(
                "TO505",
                "In a saved calibrator a ratio must be positive.",
                "zeros only",
                "Fit it again and save it with .save(path).",
            )
        return cls(
            ratios,
            saved_parameters.read_count(parameters, "n_passes"),
            bool(saved_parameters.read_count(parameters, "converged")),
        )


@dataclass(frozen=True, eq=False)
class PriorShiftSpec(CalibratorSpec):
    r"""The same model where the classes have other frequencies: known ones, or those of unlabelled predictions.

    .. math:: q_k \propto p_k \, \frac{\pi^{\text{target}}_k}{\pi^{\text{source}}_k}

    Exact where only the frequencies of the classes change (label shift) and the probabilities are calibrated for the
    source; calibrate first, best with `bias_corrected_temperature` (Alexandari et al. 2020). Source frequencies are
    the weighted shares of the labels. The target's are `priors`, one number per class in their order, a table from
    class index to number, or `"uniform"`; or they are estimated from `target`, the model's predictions (m, K), or
    (m,) for two classes, of rows without labels: `how="em"` maximizes their likelihood (Saerens et al. 2002), which
    is concave, by Newton's method; `"bbse"` solves the confusion matrix of
    labels and predicted classes without negative weights (Lipton et al. 2018), which needs no calibration but more
    rows, and `"bbse-soft"` that of labels and probabilities. A class that never came in the source keeps its
    probabilities. The fitted map holds the K ratios, not the target's rows. Labels change. Cost: O(nK), and O(mK²) per
    pass, about ten passes; the confusion matrix takes one. Source: Saerens, Latinne & Decaestecker (2002).

    >>> P, Y = np.array([[0.8, 0.2], [0.2, 0.8]] * 5), np.eye(2)[[0, 1] * 5]
    >>> fitted = PriorShiftSpec(priors=[0.9, 0.1]).fit(P, Y, np.ones(10))
    >>> fitted.apply(np.array([[0.5, 0.5]])).round(4).tolist()
    [[0.9, 0.1]]
    """

    name: ClassVar[str] = "prior_shift"
    complexity: ClassVar[int] = 17
    keeps_argmax: ClassVar[bool] = False
    map_type: ClassVar[type[CalibrationMap] | None] = PriorShiftMap
    candidate: ClassVar[bool] = False
    priors: Sequence[float] | Mapping[Any, Any] | Literal["uniform"] | None = None
    target: Annotated[ArrayLike | None, OWN] = None
    how: FrequencyMethod = "em"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.priors is not None and self.target is not None:
            raise InputError(
                "TO205", "Frequencies are given or estimated.", "priors and target", "Leave one of them out."
            )
        if self.target is not None:
            as_array(self.target, "target")

    def settings(self) -> dict[str, Any]:
        """The settings, with the target's size in place of its rows."""
        own_settings: dict[str, Any] = {"priors": self.priors, "target": None, "how": self.how}
        if isinstance(self.priors, Mapping):
            own_settings["priors"] = {str(key): float(value) for key, value in self.priors.items()}
        elif self.priors is not None and not isinstance(self.priors, str):
            own_settings["priors"] = [float(value) for value in np.asarray(self.priors).ravel()]
        if self.target is not None:
            own_settings["target"] = f"{len(np.asarray(self.target)):,} predictions"
        return own_settings

    def fit(self, P: Array, Y: Array, w: Array) -> PriorShiftMap:
        """The ratios of the target's class frequencies to those of these rows."""
        source, frequencies = (w @ Y) / w.sum(), self._target(P, Y, w)
        doubts = frequencies.doubts
        if lost := int(((source == 0) & (frequencies.shares > 0)).sum()):
            which = "1 class" if lost == 1 else f"{lost:,} classes"
            doubts = (*doubts, f"{which} never came in the source, so there is no ratio, and 1 stands for it")
        ratios = np.divide(frequencies.shares, source, out=np.ones(len(source)), where=source > 0)
        return PriorShiftMap(ratios, frequencies.n_passes, frequencies.converged, doubts)

    def _target(self, P: Array, Y: Array, w: Array) -> Frequencies:
        if self.target is not None:
            _no_frequencies(self.target, P.shape[1])
            return ESTIMATES[self.how](P, Y, w, prob_columns(check_prob_matrix(self.target, P.shape[1])))
        if self.priors is None:
            raise InputError(
                "TO203",
                "A shift of class frequencies needs the target's.",
                "neither priors nor target",
                "Pass priors=[...], one number per class, or target= with predictions of unlabelled rows.",
            )
        return Frequencies(_numbers(self.priors, P.shape[1]))

    def notes(self, calibration_map: CalibrationMap, P: Array, Y: Array, w: Array) -> list[Note]:
        """Both frequencies, and what is doubtful about them."""
        assert isinstance(calibration_map, PriorShiftMap)
        source = (w @ Y) / w.sum()
        text = f"Class frequencies: {_format_shares(source)} in the source, {_format_shares(calibration_map.ratios * source)} in the target."
        return [Note("TN519", text), *(Note("TN520", f"{doubt}.") for doubt in calibration_map.doubts)]


def class_weights(
    source_prob: ArrayLike,
    source_true: ArrayLike,
    target_prob: ArrayLike,
    how: FrequencyMethod = "bbse-soft",
    *,
    weight: ArrayLike | None = None,
) -> Array:
    r"""The weight of each class, (K,), with which labelled source rows tell the target's calibration error.

    .. math:: \mathrm{E}_{\text{target}}[f(X, Y)] = \mathrm{E}_{\text{source}}[\omega_Y\, f(X, Y)], \qquad
        \omega_k = \frac{\pi^{\text{target}}_k}{\pi^{\text{source}}_k}

    It holds where only the class frequencies differ, whatever the error f. Weigh the labelled rows, and measure:
    `to.measure(to.Predictions(y, p, weight=class_weights(p, y, p_target)[y]), "ece")`. `how` is that of
    `prior_shift`. The confusion matrix holds for any model; "em" takes the model at its word, and where it is too sure
    the weights are wrong. Source: Popordanoska, Radevski, Tuytelaars & Blaschko (2024), LaSCal.

    >>> source, labels = [0.2] * 5 + [0.8] * 5, [0, 0, 0, 0, 1, 0, 1, 1, 1, 1]
    >>> class_weights(source, labels, [0.2] * 7 + [0.8] * 3, how="bbse").round(2).tolist()
    [1.67, 0.33]
    """
    preds = Predictions(source_true, source_prob, weight=weight)
    spec = PriorShiftSpec(target=as_array(target_prob, "target_prob"), how=how)
    return spec.fit(prob_columns(preds.p), preds.Y, preds.w).ratios


def _numbers(priors: Priors, k: int) -> Array:
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
    if shares.shape != (k,) or not (shares >= 0).all() or not abs(shares.sum() - 1) <= 1e-6:
        raise InputError(
            "TO203",
            f"priors must be {k} frequencies, one per class in the order of the columns, that sum to 1.",
            describe(priors),
            "Divide counts by their sum.",
        )
    return shares / shares.sum()


def _format_shares(shares: Array) -> str:
    first = " ".join(map(format_number, shares[:5].tolist()))
    return first + (f" and {len(shares) - 5:,} more" if len(shares) > 5 else "")


def _no_frequencies(target: Any, k: int) -> None:
    """Refuse what is one number per class that sum to 1: shares of the classes, not predictions of rows."""
    rows = np.asarray(target)
    if rows.ndim == 1 and len(rows) == k and rows.dtype.kind in "fiu" and abs(float(rows.sum()) - 1) < 1e-6:
        raise InputError(
            "TO203",
            "target holds the predictions of unlabelled rows, and these look like the shares of the classes.",
            describe(rows.tolist()),
            "Pass them as priors=.",
        )
