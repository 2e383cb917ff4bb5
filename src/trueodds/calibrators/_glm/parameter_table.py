"""Table of fitted shifts and slopes with confidence intervals, tests and their interpretation in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.calibrators._glm.log_linear import MANY
from trueodds.calibrators._glm.parameter_uncertainty import STD_ERROR_METHODS, ParameterUncertainty
from trueodds.core.formatting import format_number
from trueodds.core.printable import printable
from trueodds.core.typing import Array
from trueodds.kernels.holm import holm

SHOWN = 20  # classes; of more, those that are least likely to be right as they were said
_LONGEST = 24  # of a name
_HIGHEST = 700.0  # of a log whose exponential is still a number

_HEAD = ("δ", "95 %", "s.e. log δ", "γ", "95 %", "s.e. γ", "p (δ = γ = 1)", "Holm's p")


@dataclass(frozen=True, eq=False)
class ParameterTable:
    """δ = exp τ and γ of each class but the baseline, with 95 % intervals, tests, and what they mean.

    The ends of δ are those of τ exponentiated: about δ itself they are not symmetric. Wald's test of a class is that
    of τ = 0 and γ = 1 together, χ² with 2 degrees of freedom; Holm's p allows for all classes. Where rows or clusters
    made the standard errors the laws are t and Hotelling's, as in the test.
    """

    classes: tuple[Any, ...]
    baseline: int
    tau: Array  # (K − 1,)
    gamma: Array  # (K − 1,)
    certainty: ParameterUncertainty | None
    method: str = "mcllo"

    def lines(self) -> list[str]:
        """The table, a sentence for each of its rows, and where the numbers come from."""
        others = [j for j in range(len(self.classes)) if j != self.baseline]
        order = list(range(len(others)))
        if len(order) > SHOWN:
            order = sorted(np.argsort(np.nan_to_num(self.pvalues, nan=2.0), kind="stable")[:SHOWN].tolist())
        corner, names = f"against {self._name(self.baseline)}", [self._name(others[i]) for i in order]
        cells = [(corner, *_HEAD), *((name, *self._row(i)) for name, i in zip(names, order, strict=True))]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        text_lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells
        ]
        if len(order) < len(others):
            larger = "" if self.errors is None else ", of larger p"
            text_lines.append(f"… and {len(others) - SHOWN:,} more classes{larger}.")
        if self.errors is not None:
            text_lines += [f"{name} {corner}: {self._sentence(i, name)}" for name, i in zip(names, order, strict=True)]
        return text_lines + describe_uncertainty(self.certainty, self.method)

    @property
    def errors(self) -> Array | None:
        """Standard errors of τ and γ, (K − 1, 2)."""
        V = None if self.certainty is None else self.certainty.covariance
        return None if V is None else np.sqrt(V.diagonal(axis1=1, axis2=2))

    @property
    def pvalues(self) -> Array:
        """Of Wald's test that a class needs no change, (K − 1,)."""
        if self.certainty is None or self.certainty.covariance is None:
            return np.full(len(self.tau), np.nan)
        V, errors = self.certainty.covariance, np.sqrt(self.certainty.covariance.diagonal(axis1=1, axis2=2))
        # In standard errors: there is no pivot to vanish, however different they are.
        z, other = self.tau / errors[:, 0], (self.gamma - 1) / errors[:, 1]
        r = V[:, 0, 1] / errors[:, 0] / errors[:, 1]
        statistic = (z**2 - 2 * r * z * other + other**2) / ((1 - r) * (1 + r))
        return np.array([self.certainty.beyond(float(value)) for value in statistic])

    def intervals(self) -> tuple[Array, Array]:
        """The ends for δ and for γ, each (K − 1, 2)."""
        errors = np.full((len(self.tau), 2), np.nan) if self.errors is None else self.errors
        within = math.nan if self.certainty is None else self.certainty.within
        delta = np.exp(np.minimum(confidence_limits(self.tau, errors[:, 0], within), _HIGHEST))
        return delta, confidence_limits(self.gamma, errors[:, 1], within)

    def _name(self, j: int) -> str:
        class_name = self.classes[j]
        name = printable(class_name) if isinstance(class_name, str) else f"class {class_name}"
        name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
        return name if len(self.classes) > 2 else f"{name} ({('other', 'event')[j]})"

    def _row(self, i: int) -> list[str]:
        delta = math.exp(min(self.tau[i], _HIGHEST))
        if self.errors is None:
            return [format_parameter(delta), "–", "–", format_parameter(self.gamma[i]), *["–"] * 4]
        of_delta, of_gamma = (_format_interval(ends[i]) for ends in self.intervals())
        p, adjusted = (format_pvalue(values[i]) for values in (self.pvalues, holm(self.pvalues.tolist())))
        se_tau, se_gamma = map(format_parameter, self.errors[i])
        return [
            format_parameter(delta),
            of_delta,
            se_tau,
            format_parameter(self.gamma[i]),
            of_gamma,
            se_gamma,
            p,
            adjusted,
        ]

    def _sentence(self, i: int, name: str) -> str:
        """What a reader who knows no statistics takes from the row."""
        delta, gamma = math.exp(min(self.tau[i], _HIGHEST)), float(self.gamma[i])
        of_delta, of_gamma = (ends[i] for ends in self.intervals())
        shift = f"where the model calls both equally likely, {name} comes {format_estimate(delta, of_delta, '×')} as often as {self._name(self.baseline)}"
        if of_delta[0] <= 1 <= of_delta[1]:
            shift += ", which may be chance"
        if self.certainty is not None and self.certainty.even is not None and not self.certainty.even[i]:
            shift += " (an extrapolation: it never calls them equally likely)"
        text = f"{shift}; {describe_slope(gamma, of_gamma)}, γ = {format_estimate(gamma, of_gamma)}"
        by_chance = of_delta[0] <= 1 <= of_delta[1] and of_gamma[0] <= 1 <= of_gamma[1]
        if by_chance and (p := float(holm(self.pvalues.tolist())[i])) <= 0.05:
            text += f"; of both together chance is no explanation, p = {format_pvalue(p)}"
        return text + "."


def _format_interval(ends: Array) -> str:
    return f"[{format_parameter(ends[0])}, {format_parameter(ends[1])}]"


MIN_UNITS = 10  # equal units for each number of a class, below which their number is said

_WITHHELD = {
    "infinite": "no finite δ and γ fit best, so something slight decided them.",
    "absent": "some classes never came.",
    "untold": "the rows take too few values to tell every shift from its slope.",
    "many": f"beyond {MANY // 2 + 1} classes the fit does without the curvature that gives them.",
    "few": "there are no more independent rows, or clusters, than parameters, or a few of them tell nearly all. Bring more of them.",
    "far": "with votes or clusters they need rows or clusters left out one by one, which sums over a source do not tell. Fit rows in memory for them.",
}
_CURABLE = ("infinite", "absent", "untold")  # by a penalty
_SANDWICH = {
    "weights": "With weights standard errors are those of the sandwich, and no likelihood ratio is shown: weights say which rows matter, not how many there are.",
    "votes": "With votes standard errors are those of rows left out one by one, and no likelihood ratio is shown: how many people stand behind a share is not known.",
    "clusters": "With clusters standard errors are those of clusters left out one by one, and no likelihood ratio is shown: rows of a cluster do not count one by one.",
}


def describe_slope(gamma: float, ends: Array) -> str:
    """Whether the odds are too extreme or too timid, as far as the interval tells."""
    low, high = ends
    if high <= 0:
        return "the model points the wrong way: what it calls likelier came less often"
    if low > 1:
        return "the model is underconfident (its odds are too timid)"
    if high < 1 and low > 0:
        return "the model is overconfident (its odds are too extreme)"
    if high < 1:
        known = "tells the two apart no better than chance would" if gamma > 0 else "points the wrong way"
        return f"the model is overconfident, and perhaps {known}"
    if low <= 0:
        return "its confidence may be just right (γ = 1) or worth nothing (γ = 0): these rows cannot tell"
    return "chance may explain that its confidence is not exactly right"


def format_estimate(value: float, ends: Array, times: str = "") -> str:
    """`0.68 [0.63, 0.74]`, with more decimals where an end would else read as 1."""
    numbers = (value, *ends)
    decimals = next(
        (d for d in range(2, 6) if not any(round(x, d) == 1 and abs(x - 1) > 1e-9 for x in ends)),
        6,
    )
    shown = [f"{x:.{decimals}f}" if 0.1 <= abs(x) < 1000 else f"{x:.2g}" for x in numbers]
    return f"{shown[0]}{times} [{shown[1]}, {shown[2]}]"


def format_parameter(x: float) -> str:
    """Three decimals, or three digits of what is tiny or huge."""
    return f"{x:.3f}" if 0.01 <= abs(x) < 1000 else f"{x:#.3g}"


def format_pvalue(p: float) -> str:
    """A p-value."""
    return format_number(p) if not p < 1e-300 else "<1e-300"


def format_probability(p: float) -> str:
    """A probability that is never quite 0 or 1."""
    return ">0.9999" if p > 0.9999 else "<0.0001" if p < 0.0001 else format_number(p)


def describe_uncertainty(certainty: ParameterUncertainty | None, method: str) -> list[str]:
    """How sure the numbers are made, and the evidence against no change."""
    if certainty is None:
        return ["No standard errors are kept with this map. Fit it again for them."]
    if certainty.errors not in STD_ERROR_METHODS:
        sentences = [f"No standard errors: {_WITHHELD[certainty.errors]}{_remedy(certainty, method)}"]
    else:
        sentences = [
            "Each interval is for one number by itself, on the rows of the fit; Holm's p allows for all classes."
        ]
    if certainty.errors in _SANDWICH:
        sentences.append(_SANDWICH[certainty.errors])
    if certainty.units is not None and certainty.units < MIN_UNITS * 2 * _count_classes(certainty):
        kind = "clusters" if certainty.errors == "clusters" else "rows"
        sentences.append(
            f"They rest on as much as {certainty.units:.3g} equal {kind} would tell, which is little: intervals and tests are by t and F with so few, and are wide for it."
        )
    if certainty.penalized and certainty.errors in STD_ERROR_METHODS:
        inside = "" if certainty.errors == "curvature" else ", in the sandwich too"
        sentences.append(
            f"With a penalty standard errors are by the penalized curvature{inside}, about parameters that are drawn towards no change; no likelihood ratio is shown, as χ² is no law for it."
        )
    if certainty.ratio is not None:
        sentences.append(
            f"Against no change (every δ = γ = 1), on the rows of the fit: likelihood ratio {format_number(certainty.ratio)}, χ² with {certainty.rank:,} degrees of freedom, p = {format_pvalue(certainty.pvalue)}; posterior probability of calibration {format_probability(certainty.posterior)} by BIC, from even odds. Whether the map holds, other rows must tell."
        )
    return sentences


def _count_classes(certainty: ParameterUncertainty) -> int:
    return 0 if certainty.covariance is None else len(certainty.covariance)


def _remedy(certainty: ParameterUncertainty, method: str) -> str:
    """What gives standard errors: a penalty where there was none and it can."""
    if certainty.errors not in _CURABLE:
        return ""
    if certainty.penalized:
        return " Bring rows with other predictions."
    same = "" if method == "mcllo" else ", the same map with a penalty,"
    return f' to.fit(preds, "mcllo", penalty=0.5){same} has finite parameters, with standard errors.'


def confidence_limits(value: Array, errors: Array, within: float) -> Array:
    """Both ends of each interval, (K − 1, 2)."""
    return np.asarray(value[:, None] + np.array([-within, within]) * errors[:, None])
