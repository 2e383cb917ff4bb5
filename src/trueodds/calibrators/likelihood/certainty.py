"""How sure are shift and slope of each class's log odds, and how much likelier are they than no change?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from trueodds.calibrators import wire
from trueodds.calibrators.likelihood.log_linear import flag
from trueodds.calibrators.likelihood.null_distributions import beyond, within
from trueodds.core.errors import InputError
from trueodds.core.typing import Array

STD_ERROR_METHODS = (
    "curvature",
    "weights",
    "votes",
    "clusters",
)  # how standard errors were made: the last three by the sandwich
NO_STD_ERROR_REASONS = ("infinite", "absent", "untold", "many", "few", "far")  # or why there are none

PAIR = 2  # numbers of each class, τ and γ: from so few units, or fewer, nothing is told of them

_CORRELATION_MARGIN = 1e-10  # by which a correlation stays off 1: closer, rounding decides what Wald's test says
_WIDEST = 1e60  # of a saved variance
_KEYS = ("errors", "covariance", "ratio", "rank", "n", "penalized")
_LATER = ("units", "even")  # files from before there were any lack them


@dataclass(frozen=True, slots=True, eq=False)
class Certainty:
    """What the rows of a fit say about τ = log δ and γ of each class but the baseline."""

    errors: str  # of STD_ERROR_METHODS or NO_STD_ERROR_REASONS
    covariance: Array | None = None  # (K − 1, 2, 2) of (τ, γ) of each class; with another class's they are not kept
    ratio: float | None = None  # twice the gain in log-likelihood over δ = γ = 1, where χ² can judge it
    rank: int = 0  # its degrees of freedom: in so many directions the rows say something
    n: float = 0.0  # independent rows
    penalized: bool = False
    units: float | None = None  # as many equal rows or clusters as the covariance rests on, where these made it
    even: Array | None = None  # (K − 1,) whether the rows held log odds on both sides of 0; None where not known

    @property
    def pvalue(self) -> float:
        """How often χ² is as large as the ratio; NaN where there is none."""
        return math.nan if self.ratio is None else beyond(self.ratio, self.rank)

    @property
    def posterior(self) -> float:
        """The probability that nothing had to be changed, by BIC from even odds; NaN where there is no ratio."""
        if self.ratio is None or not self.rank:
            return math.nan
        return float(expit((self.rank * math.log(self.n) - self.ratio) / 2))

    @property
    def within(self) -> float:
        """Standard errors to the ends of a 95 % interval."""
        return within(self.units)

    def beyond(self, statistic: float) -> float:
        """How often chance is as large as Wald's statistic of a class."""
        return beyond(statistic, PAIR, self.units)

    def to_dict(self) -> dict[str, Any]:
        """Every field as JSON holds it; what is not known is left out."""
        V = None if self.covariance is None else self.covariance.tolist()
        fields = dict(zip(_KEYS, (self.errors, V, self.ratio, self.rank, self.n, self.penalized), strict=True))
        later = {"units": self.units, "even": None if self.even is None else self.even.tolist()}
        return fields | {key: value for key, value in later.items() if value is not None}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> Certainty:
        """K − 1 covariances exactly where the errors are known, and a ratio only where one can be."""
        wire.keys(parameters, _KEYS + tuple(key for key in _LATER if key in parameters), "certainty")
        errors, V, ratio, rank = (
            parameters["errors"],
            parameters["covariance"],
            parameters["ratio"],
            wire.count(parameters, "rank"),
        )
        if not isinstance(errors, str) or errors not in STD_ERROR_METHODS + NO_STD_ERROR_REASONS:
            raise _refused("errors", f"one of {', '.join(STD_ERROR_METHODS + NO_STD_ERROR_REASONS)}", errors)
        if (V is not None) != (errors in STD_ERROR_METHODS):
            raise _refused("covariance", "there exactly where the standard errors are known", V)
        if rank > 2 * (k - 1):
            raise _refused("rank", f"at most {2 * (k - 1)}", rank)
        penalized, n = flag(parameters, "penalized"), wire.number(parameters, "n", 0, 1e18)
        if ratio is not None:
            ratio = wire.number(parameters, "ratio", 0, 1e300)
            if penalized or errors not in ("curvature", "untold") or not rank or n < 1:
                raise _refused("ratio", "null where χ² cannot judge it", ratio)
        units, even = parameters.get("units"), parameters.get("even")
        if units is not None:
            units = wire.number(parameters, "units", PAIR, 1e18)
            if errors not in ("votes", "clusters") or units == PAIR:
                raise _refused("units", f"more than {PAIR}, and only where rows or clusters made the errors", units)
        if even is not None and (V is None or not _flags(even, k - 1)):
            raise _refused("even", f"{k - 1} times true or false beside the covariance", even)
        covariance = None if V is None else _covariance(V, k)
        return cls(errors, covariance, ratio, rank, n, penalized, units, None if even is None else np.array(even))


def saved(certainty: Certainty | None) -> dict[str, Any]:
    """What a map adds to its parameters; nothing where it has none, as maps that were saved before there were any."""
    return {} if certainty is None else {"certainty": certainty.to_dict()}


def read_certainty(parameters: Mapping[str, Any], keys: tuple[str, ...], k: int) -> Certainty | None:
    """The certainty among saved parameters, which hold these keys beside it."""
    extra = ("certainty",) if "certainty" in parameters else ()
    wire.keys(parameters, keys + extra, "parameters")
    return Certainty.from_dict(wire.table(parameters, "certainty"), k) if extra else None


def _covariance(V: Any, k: int) -> Array:
    """K − 1 symmetric matrices of two variances above 0."""
    if (
        not isinstance(V, list)
        or len(V) != k - 1
        or not all(isinstance(matrix, list) and len(matrix) == 2 for matrix in V)
    ):
        raise _refused("covariance", f"{k - 1} times 2 rows of 2 numbers", V)
    rows = [
        [wire.vector({"covariance": row}, "covariance", -_WIDEST, _WIDEST, size=2) for row in matrix] for matrix in V
    ]
    covariance: Array = np.array(rows)
    if (covariance[:, 0, 1] != covariance[:, 1, 0]).any() or not proper(covariance):
        raise _refused("covariance", "of variances above 0 and a correlation between −1 and 1", V)
    return covariance


def proper(V: Array) -> bool:
    """Whether these are covariances of two numbers; products of variances could overflow or vanish, roots do not."""
    variances, across = V.diagonal(axis1=1, axis2=2), V[:, 0, 1]
    if not ((variances > 1 / _WIDEST) & (variances < _WIDEST)).all():
        return False
    return bool((np.abs(across) / np.sqrt(variances[:, 0]) / np.sqrt(variances[:, 1]) < 1 - _CORRELATION_MARGIN).all())


def _flags(values: Any, size: int) -> bool:
    return isinstance(values, list) and len(values) == size and all(isinstance(value, bool) for value in values)


def _refused(key: str, expected: str, got: Any) -> InputError:
    text = f"In a saved calibrator {key} must be {expected}."
    return InputError("TO505", text, repr(got)[:60], "Fit it again and save it with .save(path).")
