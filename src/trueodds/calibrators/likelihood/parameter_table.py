"""What do shift and slope of each class's log odds say, in numbers and in words?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.calibrators.likelihood.certainty import Certainty
from trueodds.calibrators.likelihood.parameter_words import chance, describe_slope, digits, ends_of, footing, spoken
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
    certainty: Certainty | None
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
        return text_lines + footing(self.certainty, self.method)

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
        delta = np.exp(np.minimum(ends_of(self.tau, errors[:, 0], within), _HIGHEST))
        return delta, ends_of(self.gamma, errors[:, 1], within)

    def _name(self, j: int) -> str:
        class_name = self.classes[j]
        name = printable(class_name) if isinstance(class_name, str) else f"class {class_name}"
        name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
        return name if len(self.classes) > 2 else f"{name} ({('other', 'event')[j]})"

    def _row(self, i: int) -> list[str]:
        delta = math.exp(min(self.tau[i], _HIGHEST))
        if self.errors is None:
            return [digits(delta), "–", "–", digits(self.gamma[i]), *["–"] * 4]
        of_delta, of_gamma = (_within(ends[i]) for ends in self.intervals())
        p, adjusted = (chance(values[i]) for values in (self.pvalues, holm(self.pvalues.tolist())))
        se_tau, se_gamma = map(digits, self.errors[i])
        return [digits(delta), of_delta, se_tau, digits(self.gamma[i]), of_gamma, se_gamma, p, adjusted]

    def _sentence(self, i: int, name: str) -> str:
        """What a reader who knows no statistics takes from the row."""
        delta, gamma = math.exp(min(self.tau[i], _HIGHEST)), float(self.gamma[i])
        of_delta, of_gamma = (ends[i] for ends in self.intervals())
        shift = f"where the model calls both equally likely, {name} comes {spoken(delta, of_delta, '×')} as often as {self._name(self.baseline)}"
        if of_delta[0] <= 1 <= of_delta[1]:
            shift += ", which may be chance"
        if self.certainty is not None and self.certainty.even is not None and not self.certainty.even[i]:
            shift += " (an extrapolation: it never calls them equally likely)"
        text = f"{shift}; {describe_slope(gamma, of_gamma)}, γ = {spoken(gamma, of_gamma)}"
        by_chance = of_delta[0] <= 1 <= of_delta[1] and of_gamma[0] <= 1 <= of_gamma[1]
        if by_chance and (p := float(holm(self.pvalues.tolist())[i])) <= 0.05:
            text += f"; of both together chance is no explanation, p = {chance(p)}"
        return text + "."


def _within(ends: Array) -> str:
    return f"[{digits(ends[0])}, {digits(ends[1])}]"
