"""Multicategory linear in log odds (MCLLO): a shift and a slope of each class's log odds against a baseline class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from trueodds.calibrators import saved_parameters
from trueodds.calibrators._glm.baseline_logits import (
    baseline_index,
    check_baseline,
    fit_contrasts,
    resolve_class_name,
)
from trueodds.calibrators._glm.fit_data import FitData
from trueodds.calibrators._glm.log_linear import (
    MAX_PARAMETER,
    LogLinearRows,
    negative_slope_notes,
    not_converged_notes,
    prepare_rows,
    small_sample_notes,
)
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    floored_logs,
    logs_of,
    softmax,
)
from trueodds.calibrators._glm.parameter_table import ParameterTable
from trueodds.calibrators._glm.parameter_uncertainty import (
    ParameterUncertainty,
    read_uncertainty,
    uncertainty_to_dict,
)
from trueodds.calibrators._glm.row_sums import RowSums
from trueodds.calibrators.base import CalibrationMap, SummedSpec, Term
from trueodds.calibrators.saved_parameters import read_flag
from trueodds.core.errors import Note
from trueodds.core.settings import Integer, NonNegative
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_sum_exp

_KEYS = ("tau", "gamma", "baseline", "min_prob", "n_passes", "converged")


@dataclass(frozen=True, eq=False)
class MclloMap(CalibrationMap):
    """log odds of each class against the baseline → τ + γ times them.

    With γ > 0 an exact zero stays zero, γ = 0 makes it 1, and γ < 0 takes the row. A baseline of exactly zero has no
    odds: where all slopes are equal it is not needed, else the floor stands in for it.
    """

    name: ClassVar[str] = "mcllo"
    takes_logs: ClassVar[bool] = True
    tau: Array  # (K - 1,) log δ of the other classes in their order
    gamma: Array  # (K - 1,)
    baseline: int
    min_prob: float
    n_passes: int = 0
    converged: bool = True
    certainty: ParameterUncertainty | None = None  # of τ and γ, on the rows of the fit

    def apply(self, P: Probabilities) -> Array:
        """In logs, so that small probabilities keep their digits."""
        logs = logs_of(P)
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes, base = self._with_baseline(self.gamma, self.gamma[0]), np.zeros((1, 1))
            if (slopes != slopes[0]).any():
                slopes[self.baseline] = 0.0
                c = logs[:, [self.baseline]]
                base = np.where(np.isneginf(c), np.log(self.min_prob), c)
            return softmax(np.where(slopes == 0, 0.0, slopes * (logs - base)) + self._with_baseline(self.tau, 0.0))

    def _with_baseline(self, others: Array, own: float) -> Array:
        """The parameters of the other classes with the baseline's own among them, (K,)."""
        return np.insert(others, self.baseline, own)

    def terms(self, k: int) -> tuple[Term, ...]:
        """γ on the diagonal and −γ in the baseline's column; of an exact zero the log is that of the floor."""
        if (self.gamma == self.gamma[0]).all():
            return (Term(1.0, self.gamma[0] * np.eye(k), self._with_baseline(self.tau, 0.0)),)
        slopes = self._with_baseline(self.gamma, 0.0)
        W = np.diag(slopes)
        W[:, self.baseline] -= slopes
        return (Term(1.0, W, self._with_baseline(self.tau, 0.0), self.min_prob),)

    def describe(self) -> str:
        """`δ 0.916 to 1.28, γ 0.453 to 0.596, against class 3`."""
        delta = np.exp(np.minimum(self.tau, 700.0))
        return f"δ {_range(delta)}, γ {_range(self.gamma)}, against class {self.baseline}"

    def table(self, classes: tuple[Any, ...]) -> list[str]:
        """A row and a sentence for each class but the baseline, and the evidence against no change."""
        return ParameterTable(classes, self.baseline, self.tau, self.gamma, self.certainty).lines()

    def to_dict(self) -> dict[str, Any]:
        """τ and γ, the baseline and the floor, how the fit went, and how sure it is."""
        return {
            "tau": self.tau.tolist(),
            "gamma": self.gamma.tolist(),
            "baseline": self.baseline,
            "min_prob": self.min_prob,
            "n_passes": self.n_passes,
            "converged": self.converged,
            **uncertainty_to_dict(self.certainty),
        }

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> MclloMap:
        """K − 1 finite numbers each, and a class."""
        certainty = read_uncertainty(parameters, _KEYS, k)
        saved_parameters.read_number(parameters, "baseline", 0, k - 1)
        return cls(
            saved_parameters.read_vector(parameters, "tau", -MAX_PARAMETER, MAX_PARAMETER, size=k - 1),
            saved_parameters.read_vector(parameters, "gamma", -MAX_PARAMETER, MAX_PARAMETER, size=k - 1),
            saved_parameters.read_count(parameters, "baseline"),
            saved_parameters.read_number(parameters, "min_prob", np.nextafter(0, 1), 0.5),
            saved_parameters.read_count(parameters, "n_passes"),
            read_flag(parameters, "converged"),
            certainty,
        )


@dataclass(frozen=True)
class MclloSpec(SummedSpec):
    r"""A shift τ = log δ and a slope γ of each class's log odds against a baseline class, by maximum likelihood.

    .. math:: \log\frac{q_j}{q_c} = \tau_j + \gamma_j \log\frac{p_j}{p_c}, \qquad
        \min_{\tau, \gamma} -\sum_i w_i \sum_k y_{ik} \log q_{ik} + \lambda \sum_{j \ne c} [\tau_j^2 + (\gamma_j - 1)^2]

    δ_j > 1: class j was said too seldom, compared with the baseline c; γ_j < 1: too surely, γ_j < 0: the wrong way.
    δ = γ = 1 changes nothing. For two classes it is `llo`; with equal slopes `bias_corrected_temperature`, and then
    the baseline does not matter. Otherwise it does: `baseline` is its number, negative ones counted from the last, or
    `class:cat`; left out it is the last, of two classes the first, which is not the event.
    Where the baseline is all but ruled out, differing slopes throw the row to the class with the largest one,
    whatever the model said of the others (note TN542); so take a class that is seldom tiny, and mind that the floor
    is part of the model. Labels may change.

    λ = `penalty` in nats over all rows; 0.5 says that shifts lie about 0 and slopes about 1 with a standard deviation
    of 1. Without it, as published, a fit needs many rows: of twelve fits to 396 rows of seven classes three had no
    finite optimum (six with sharper probabilities), and the loss on other rows fell from .502 nats per row to .428 by
    them, to .423 with the penalty (a forest's votes, docs/studies/obesity.md). Without it a class that never came keeps
    its odds against the baseline (note TN540), and where outcomes are separated a slight pull decides; both are not
    `converged`. Convex in τ and γ, though not in δ. Fits take log(max(p, `min_prob`)); outcomes of probability 0 are
    counted in a note (TN541), as then the floor decides.

    `summary()` of the fit prints the parameters with 95 % intervals (those of δ are the ends of τ's exponentiated),
    Wald's tests, the likelihood ratio against no change, and each in words; all on the rows of the fit. With unequal
    weights standard errors are those of the sandwich with the model's variance, with votes or clusters those of rows or
    clusters left out one by one; then there is no ratio, nor with a penalty; without finite parameters there are no
    errors. Weights never are numbers of rows here: for those use `weight_kind="frequency"`.
    Cost: O(nK²) per pass, about 6 passes.
    Source: Vennos, Xing & Franck (2026).

    >>> P = np.array([[0.6, 0.3, 0.1]] * 4 + [[0.1, 0.3, 0.6]] * 4)
    >>> Y = np.eye(3)[[0, 0, 1, 2, 0, 1, 2, 2]]
    >>> m = MclloSpec().fit(P, Y, np.ones(8))
    >>> m.apply(P[:1]).round(6).tolist()
    [[0.5, 0.25, 0.25]]
    """

    name: ClassVar[str] = "mcllo"
    complexity: ClassVar[int] = 11
    keeps_argmax: ClassVar[bool] = False
    candidate: ClassVar[bool] = False
    takes_logs: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = MclloMap
    exempt: ClassVar[Mapping[str, str]] = {
        "class order": "the baseline is part of the model, and the default is the last class, of two the first"
    }
    baseline: Integer | str | None = None
    penalty: NonNegative = 0.0
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        check_baseline(self.baseline)

    def of_classes(self, classes: Sequence[Any]) -> MclloSpec:
        """The same with the baseline's number for its name."""
        return replace(self, baseline=resolve_class_name(self.baseline, classes))

    def fit_data(self, data: RowSums) -> MclloMap:
        """Shifts and slopes of these rows."""
        k = data.facts.k
        c = baseline_index(self.baseline, k)
        # Without a penalty what never came would go to minus infinity, so there the other classes are fitted alone.
        fitted_classes = np.ones(k, dtype=bool) if self.penalty else data.facts.class_totals > 0
        complete = bool(fitted_classes.all())
        live = fitted_classes[np.delete(np.arange(k), c)]
        tau, gamma = np.zeros(k - 1), np.ones(k - 1)
        odds = data.prepared(prepare_rows).prepared(
            partial(_against, baseline=c, fitted_classes=None if complete else fitted_classes)
        )
        contrast_fit = fit_contrasts(odds, np.flatnonzero(fitted_classes) != c, self.penalty)
        tau[live], gamma[live] = contrast_fit.shifts, contrast_fit.slopes
        certainty = contrast_fit.certainty() if complete else ParameterUncertainty("absent")
        done = contrast_fit.optimum.converged and complete
        return MclloMap(tau, gamma, c, self.min_prob, contrast_fit.optimum.n_passes, done, certainty)

    def fit_notes(self, calibration_map: CalibrationMap, data: RowSums) -> list[Note]:
        """Floored values, what cannot be told, slopes below 0, a baseline that is too small, and few rows."""
        assert isinstance(calibration_map, MclloMap)
        facts = data.facts
        absent, floored = [] if self.penalty else np.flatnonzero(facts.class_totals == 0).tolist(), facts.floored
        return [
            *floored.notes(),
            *zero_probability_notes(floored.impossible),
            *absent_class_notes(absent, calibration_map.baseline),
            *([] if absent else not_converged_notes(calibration_map)),
            *negative_slope_notes(calibration_map.gamma),
            *small_baseline_notes(calibration_map.gamma, calibration_map.baseline, data),
            *([] if self.penalty else small_sample_notes(facts.n, 2 * (facts.k - 1))),
        ]


def _against(rows: LogLinearRows, baseline: int, fitted_classes: Array | None) -> LogLinearRows:
    """Log odds against the baseline, of the classes that are fitted."""
    x = rows.x - rows.x[:, [baseline]]
    return (
        LogLinearRows(x, rows.Y, rows.w)
        if fitted_classes is None
        else LogLinearRows(x[:, fitted_classes], rows.Y[:, fitted_classes], rows.w)
    )


def _range(x: Array) -> str:
    low, high = f"{x.min():.3g}", f"{x.max():.3g}"
    return low if low == high else f"{low} to {high}"


_MAX_ODDS_CHANGE = (
    1000.0  # times that differing slopes and a tiny baseline may move the odds of two other classes, unsaid
)


def zero_probability_notes(count: int) -> list[Note]:
    """That so many outcomes came that had probability 0."""
    if not count:
        return []
    text = f"{count:,} outcomes came that had probability 0, which no calibrated model has: evidence of its own. How far they bend this map is decided by the floor; fit with another one to see."
    return [Note("TN541", text)]


def absent_class_notes(absent: list[int], baseline: int) -> list[Note]:
    """That classes never came, and what their odds are then."""
    if not absent:
        return []
    which = f"Class {absent[0]}" if len(absent) == 1 else f"{len(absent):,} classes"
    consequence = (
        "the mean shift against it, the baseline, stays 0"
        if baseline in absent
        else "the odds against the baseline stay as they were said"
    )
    text = f"{which} never came, so no finite shift fits; {consequence}, and the classes that came are fitted among themselves. Set a penalty for an estimate."
    return [Note("TN540", text)]


def small_baseline_notes(gamma: Array, baseline: int, data: RowSums) -> list[Note]:
    """That differing slopes decide rows in which the baseline is tiny, from passes over rows `FitData`."""
    slope_range = float(np.ptp(gamma))
    count = (
        data.sum(partial(_count_small_baseline, baseline=baseline, slope_range=slope_range)) if slope_range > 0 else 0
    )
    if not count:
        return []
    safer = (
        baseline
        if data.rows is None
        else int(np.argmax(np.quantile(floored_logs(data.rows.P, data.rows.min_prob), 0.05, axis=0)))
    )
    text = f"In {count:,} of {data.facts.n:,} rows class {baseline}, the baseline, is so small that slopes which differ by {slope_range:.3g} alone move the odds of two other classes more than {_MAX_ODDS_CHANGE:,.0f} times"
    better = "." if safer == baseline else f"; class {safer} is seldom so small: baseline={safer}."
    return [Note("TN542", text + better)]


def _count_small_baseline(data: FitData, baseline: int, slope_range: float) -> int:
    logs = logs_of(data.P)
    small = log_sum_exp(logs) - logs[:, baseline]
    return int((slope_range * np.minimum(small, -np.log(data.min_prob)) > np.log(_MAX_ODDS_CHANGE)).sum())
