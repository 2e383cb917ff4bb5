"""The result of a power analysis, `Power`: the detectable error, the power, or the required number of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trueodds.core.errors import Note
from trueodds.core.formatting import format_lens, format_lens_and_settings, format_number, format_percent_in_text
from trueodds.core.printable import to_printable
from trueodds.core.results import Interval, Result


@dataclass(frozen=True, slots=True, repr=False)
class Power(Result):
    """The result of `power`: a detectable effect, a power or a required number of rows; `question` says which.

    `question="effect"`: `effect` is the smallest error that the test detects with power `target` in n rows.
    `question="rows"`: `power` is the power against an error of `effect` in n rows, and `required` is the number of rows
    for power `target`. `question="width"`: `required` is the number of rows for an interval of width `target`.

    Attributes
    ----------
    name : str
        Name of the test, or of the estimator or coefficient whose interval is planned.
    question : {"effect", "rows", "width"}
        The quantity that was requested.
    lens : str
        Name of the lens.
    n : int
        Number of rows of the data set.
    alpha : float
        Significance level of the test; 1 − alpha is the confidence level of the interval.
    target : float
        The power, or the width, that is to be reached.
    power : float or None
        Power of the test in n rows.
    effect : float or None
        Mean absolute difference of true and predicted probabilities through the lens.
    required : int or None
        Number of rows that reach the target; None if it was not requested, or is larger than could be tried.
    limits : Interval or None
        Simulation interval of the power, or of the mean width in `required` rows; None if nothing was simulated.
    settings : mapping
        All settings used.
    notes : tuple of Note
        Facts to report with the result.
    """

    json_schema: ClassVar[str] = "trueodds.power/1"

    name: str
    question: str
    lens: str
    n: int
    alpha: float
    target: float
    power: float | None = None
    effect: float | None = None
    required: int | None = None
    limits: Interval | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __float__(self) -> float:
        """Return the detectable effect, or the required number of rows."""
        answer = self.effect if self.question == "effect" else self.required
        return float("nan") if answer is None else float(answer)

    def describe(self) -> str:
        return to_printable(self._describe_result())

    def _describe_result(self) -> str:
        """Describe the result with the lens and the level, or for a width the binning."""
        if self.question == "width":
            return f"{self._describe_width()} · {format_lens_and_settings(self.lens, self.settings)}"
        lens_text = format_lens(self.lens, self.settings)
        return f"{self._describe_detection()} · {lens_text} · alpha {format_number(self.alpha)}"

    def _describe_detection(self) -> str:
        """Describe the detectable error, or the power and the required number of rows."""
        target = f"{format_percent_in_text(self.target)} power"
        if self.question == "rows":
            required = (
                "more rows than could be tried"
                if self.required is None
                else f"{self._approximation_word()}{self.required:,} rows"
            )
            return (
                f"If the probabilities{self._describe_shifted_class()} are {self._describe_direction()} by"
                f" {format_number(self.effect)} on average, the {self.name} test rejects in {self._describe_power()} of"
                f" data sets of {self.n:,} rows; {target} requires {required}"
            )
        if self.settings.get("reached", True):
            simulated = "" if self.limits is None else f" (simulated: {self._describe_power()})"
            return (
                f"Smallest detectable error: with {self.n:,} rows, the {self.name} test detects"
                f" {self._describe_error()} with {target}{simulated}"
            )
        return (
            f"Even the largest error of this kind, {self._describe_error()}, is detected by the {self.name} test in"
            f" only {self._describe_power()} of data sets of {self.n:,} rows,"
            f" not in {format_percent_in_text(self.target)}"
        )

    def _describe_width(self) -> str:
        """Describe the number of rows that an interval of the target width requires."""
        width_text = format_number(self.settings.get("width_now"))
        return (
            f"A {format_percent_in_text(1 - self.alpha)} interval for {self.name} of width {format_number(self.target)}"
            f" requires {self._approximation_word()}{self.required or 0:,} rows"
            f" (with {self.n:,} rows its width is {width_text})"
        )

    def _describe_power(self) -> str:
        """Describe the power with the limits of its simulation."""
        limits = f" [{_format_share(self.limits.low)}, {_format_share(self.limits.high)}]" if self.limits else ""
        return f"{_format_share(self.power or 0.0)}{limits}"

    def _approximation_word(self) -> str:
        """Return the word before a number of rows that was simulated and not computed."""
        return "" if self.limits is None else "about "

    def _describe_shifted_class(self) -> str:
        """Name the class whose probability is shifted, if there is one."""
        return f" of the {self.settings['shifted']}" if "shifted" in self.settings else ""

    def _describe_direction(self) -> str:
        """Describe in which direction the simulated probabilities are wrong."""
        shift, overstated = self.settings.get("distortion") == "shift", self.settings.get("direction") != "under"
        if shift:
            return "too high" if overstated else "too low"
        return "overconfident" if overstated else "underconfident"

    def _describe_error(self) -> str:
        """Describe the detectable error with its direction."""
        size_text = f"{format_number(self.effect)} on average"
        if self.settings.get("distortion") == "shift":
            return f"probabilities{self._describe_shifted_class()} that are {self._describe_direction()} by {size_text}"
        return f"{self._describe_direction().replace('confident', 'confidence')} of {size_text}"


def _format_share(share: float) -> str:
    """Format a share as a percentage with one decimal."""
    return f"{100 * share:.1f} %"
