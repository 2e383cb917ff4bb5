"""The results of estimators and tests, `Estimate` and `Verdict`, with confidence intervals, notes and a JSON form."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import (
    format_count,
    format_lens,
    format_lens_and_settings,
    format_number,
    format_percent,
    format_pvalue_relation,
)
from trueodds.core.json_files import JsonObject
from trueodds.core.printable import to_printable
from trueodds.core.registry import trait_of_estimator
from trueodds.core.table import to_data_frame

_NULL_DETAILS = re.compile(r", so that |; ")  # separates the null hypothesis from its details, which one line omits
DECISION_LEVEL = 0.05  # significance level at which the text of a test says that its null hypothesis is rejected


def noise_floor_label(estimator: str) -> str:
    """Return what texts call the noise floor of an estimator, its mean value for a calibrated model.

    For an error, this mean is upward bias, hence "noise floor". For a score or a ratio it is not a bias, but the value
    that a calibrated model is expected to have.

    >>> noise_floor_label("ece"), noise_floor_label("brier"), noise_floor_label("o_e")
    ('noise floor', 'expected if calibrated', 'expected if calibrated')
    """
    is_unbiased = estimator == "accuracy" or trait_of_estimator(estimator, "is_unbiased")
    return "expected if calibrated" if is_unbiased or is_score(estimator) else "noise floor"


def is_score(estimator: str) -> bool:
    """Return whether the value of an estimator in the registry is a score, which is not 0 for a calibrated model."""
    return bool(trait_of_estimator(estimator, "is_score"))


class Result(JsonObject):
    """A result with notes: `repr` is one line, `str` and `summary` add the notes."""

    __slots__ = ()
    number_fields: ClassVar[tuple[str, ...]] = ()  # fields that may be NaN; the interval is that of the first one
    notes: tuple[Note, ...]

    def __post_init__(self) -> None:
        """Remove the interval of an undefined value, and add a note on undefined numbers, unless one explains them."""
        if not self.number_fields:
            return
        interval: Interval | None = getattr(self, "interval", None)
        # NaN is the only value that is not equal to itself.
        undefined = [name for name in self.number_fields if (x := getattr(self, name)) != x]
        if interval is not None and (
            self.number_fields[0] in undefined or math.isnan(interval.low) or math.isnan(interval.high)
        ):
            object.__setattr__(self, "interval", None)
            undefined = undefined or ["interval"]
        if not undefined:
            return
        if undefined == [self.number_fields[0]] and any(note.code in EXPLAINED_BY for note in self.notes):
            return
        names = " and ".join("p-value" if name == "pvalue" else name.replace("_", " ") for name in undefined)
        note = undefined_note(f"The {names} {'is' if len(undefined) == 1 else 'are'}")
        if note not in self.notes:
            object.__setattr__(self, "notes", (*self.notes, note))

    def describe(self) -> str:
        """Describe the result in words, without its notes."""
        raise NotImplementedError

    def summary(self) -> str:
        """Describe the result in words, with its notes, as `print` shows it.

        Returns
        -------
        str
            One or several lines.
        """
        return str(self)

    def __str__(self) -> str:
        return with_notes(self.describe(), self.notes)

    def __repr__(self) -> str:
        return self.describe().partition("\n")[0]

    def _repr_html_(self) -> str:
        from trueodds.core.notebook_html import result_html

        return result_html(self.describe(), self.notes)


class NumberResult(Result):
    """A result that is one number: `float` returns its value, and a format specification applies to it.

    >>> f"{Estimate('ece', 'confidence', 0.0414, 100):.3f}"
    '0.041'
    """

    __slots__ = ()
    value: float

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)


@dataclass(frozen=True, slots=True)
class Interval(JsonObject):
    """A confidence interval with its level and the method that computed it.

    Attributes
    ----------
    low, high : float
        The ends.
    level : float
        The confidence level.
    method : str
        The name of the method.
    """

    low: float
    high: float
    level: float
    method: str

    @classmethod
    def from_standard_error(cls, value: float, se: float, level: float, degrees: float | None = None) -> Interval:
        """Return the interval of a value ± its standard error times a quantile: normal, or of Student's t.

        Parameters
        ----------
        value, se, level : float
            The estimate, its standard error, and the confidence level.
        degrees : float, optional
            Degrees of freedom of Student's t. The default is the normal distribution.

        Returns
        -------
        Interval
            The interval, with the method "normal" or "t".
        """
        from scipy.special import ndtri, stdtrit

        quantile = float(ndtri((1 + level) / 2) if degrees is None else stdtrit(degrees, (1 + level) / 2))
        method = "normal" if degrees is None else "t"
        return cls(value - quantile * se, value + quantile * se, level, method)

    def __str__(self) -> str:
        return f"[{format_number(self.low)}, {format_number(self.high)}] {format_percent(self.level)}"


@dataclass(frozen=True, slots=True)
class Coefficient:
    """An estimated coefficient of a regression with its standard error; NaN if no finite estimate exists.

    Attributes
    ----------
    value : float
        The estimate.
    se : float
        The standard error. It is also NaN with too few clusters.
    effective_units : float or None
        Effective number of clusters from which the standard error was estimated; None for independent rows.
    """

    value: float
    se: float
    effective_units: float | None = None

    @property
    def interval(self) -> Interval | None:
        """The 95 % confidence interval: normal, or Student's t with clusters; None if it is undefined."""
        return self.interval_at(0.95)

    def interval_at(self, level: float) -> Interval | None:
        """Return the confidence interval at another level.

        Parameters
        ----------
        level : float
            The confidence level.

        Returns
        -------
        Interval or None
            The interval; None if the coefficient or its standard error is undefined.
        """
        has_interval = math.isfinite(self.value) and math.isfinite(self.se) and self.se > 0
        if not has_interval or (self.effective_units is not None and not self.effective_units > 1):
            return None
        degrees = None if self.effective_units is None else self.effective_units - 1
        return Interval.from_standard_error(self.value, self.se, level, degrees)


# The coefficients of Cox's regression, each with the part of the test `cox` that holds it.
COX_COEFFICIENTS = {"in_the_large": "in-the-large", "intercept": "joint", "slope": "joint"}


def interval_cells(interval: Interval | None) -> dict[str, float | None]:
    """Return the ends of an interval as the cells of a table."""
    return {"low": None if interval is None else interval.low, "high": None if interval is None else interval.high}


def one_row_frame(cells: Mapping[str, Any]) -> Any:
    """Return a data frame with one row; a missing number is NaN, because None would make a column of objects."""
    return to_data_frame({name: [math.nan if cell is None else cell] for name, cell in cells.items()})


EXPLAINED_BY = ("TN125", "TN217", "TN218", "TN268")  # notes that say that a value is undefined, and why


def undefined_note(subject: str) -> Note:
    """Return the note on values that are NaN."""
    return Note("TN155", f"{subject} undefined on these rows (NaN); another note may give the reason.")


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(NumberResult):
    """An estimated error or score, with its interval, its noise floor and the settings used.

    Attributes
    ----------
    estimator, lens : str
        Name of the estimator and of the lens.
    value : float
        The estimate; ``float(estimate)`` returns it.
    n : int
        Number of rows.
    interval : Interval or None
        The confidence interval.
    noise_floor : float or None
        Mean value of the estimator for a perfectly calibrated model with the same predictions.
    debiased : float or None
        The value with its bias removed, if the estimator defines it.
    parts : mapping of str to float
        Components of the value, such as the terms of a decomposition.
    settings : mapping
        All settings used.
    notes : tuple of Note
        Facts to report with the value.
    """

    json_schema: ClassVar[str] = "trueodds.estimate/1"
    number_fields: ClassVar[tuple[str, ...]] = ("value", "noise_floor", "debiased")
    json_keys: ClassVar[tuple[str, ...]] = (
        "estimator", "lens", "value", "interval", "noise_floor", "debiased", "parts", "n", "settings", "notes",
    )  # fmt: skip

    estimator: str
    lens: str
    value: float
    n: int
    interval: Interval | None = None
    noise_floor: float | None = None
    debiased: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def frame(self) -> Any:
        """Return the estimate as a data frame of one row.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or dict
            A pandas data frame, else a Polars one, else a dict of columns, depending on what is installed. A missing
            interval, noise floor or debiased value is NaN.
        """
        return one_row_frame(
            {
                "estimator": self.estimator,
                "lens": self.lens,
                "value": self.value,
                **interval_cells(self.interval),
                "noise_floor": self.noise_floor,
                "debiased": self.debiased,
                "n": self.n,
            }
        )

    def describe(self) -> str:
        """Describe value, interval, noise floor, rows and settings in one line.

        Returns
        -------
        str
            The line.
        """
        pieces = [f"{self.estimator} {format_number(self.value)}" + (f" {self.interval}" if self.interval else "")]
        if self.noise_floor is not None and not math.isnan(self.noise_floor):
            pieces.append(f"{noise_floor_label(self.estimator)} {format_number(self.noise_floor)}")
        pieces.append(f"n={self.n:,}")
        pieces.append(format_lens_and_settings(self.lens, self.settings))
        return to_printable(" · ".join(pieces))


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Result):
    """The result of a test of calibration.

    Attributes
    ----------
    test, lens : str
        Name of the test and of the lens.
    statistic : float
        The test statistic.
    pvalue : float
        The p-value.
    n : int
        Number of rows.
    null : str
        The null hypothesis in words.
    min_pvalue : float or None
        Smallest p-value that the null draws can give.
    family_pvalue : float or None
        The p-value adjusted for several lenses or classes.
    effect : float or None
        Effect size.
    parts : mapping of str to mapping
        Results of the components of the test, such as the single lenses.
    settings : mapping
        All settings used.
    notes : tuple of Note
        Facts to report with the p-value.
    """

    json_schema: ClassVar[str] = "trueodds.verdict/1"
    number_fields: ClassVar[tuple[str, ...]] = ("pvalue", "statistic", "family_pvalue", "effect")
    json_keys: ClassVar[tuple[str, ...]] = (
        "test", "lens", "statistic", "pvalue", "min_pvalue", "family_pvalue", "effect", "parts", "n", "null",
        "settings", "notes",
    )  # fmt: skip

    test: str
    lens: str
    statistic: float
    pvalue: float
    n: int
    null: str
    min_pvalue: float | None = None
    family_pvalue: float | None = None
    effect: float | None = None
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __float__(self) -> float:
        """Raise TO207: `value` is the statistic, but a verdict is usually compared with a level by its p-value."""
        raise InputError(
            "TO207",
            "The result of a test is no single number.",
            f"statistic {format_number(self.statistic)} and p-value {format_number(self.pvalue)}",
            "Use verdict.pvalue or verdict.statistic.",
        )

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    @property
    def value(self) -> float:
        """The test statistic, under the name that the number of every result has."""
        return self.statistic

    @property
    def interval(self) -> None:
        """None: a test has a p-value, and no interval."""
        return None

    def frame(self) -> Any:
        """Return the result of the test as a data frame of one row.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or dict
            A pandas data frame, else a Polars one, else a dict of columns, depending on what is installed. A missing
            p-value or effect is NaN.
        """
        return one_row_frame(
            {
                "test": self.test,
                "lens": self.lens,
                "statistic": self.statistic,
                "pvalue": self.pvalue,
                "min_pvalue": self.min_pvalue,
                "family_pvalue": self.family_pvalue,
                "effect": self.effect,
                "n": self.n,
            }
        )

    @property
    def decision(self) -> str | None:
        """Position of the error relative to the margin: within, beyond or undecided; None without a margin."""
        value: str | None = self.settings.get("decision")
        return value

    @property
    def coefficients(self) -> dict[str, Coefficient]:
        """The coefficients that `cox` estimates, each with its interval; empty for other tests.

        They are `in_the_large` (the intercept for slope 1), `intercept` and `slope`.
        """
        return {
            name: Coefficient(part[name], part[f"{name}_se"], part.get("units"))
            for name, part_name in COX_COEFFICIENTS.items()
            if f"{name}_se" in (part := self.parts.get(part_name, {}))
        }

    @property
    def estimates(self) -> str:
        """The quantities that the test estimates, in words; empty if it estimates none."""
        return str(self.settings.get("summary", ""))

    def describe(self) -> str:
        """Describe the p-value, the decision at the 5 % level, the statistic and the null hypothesis in one line.

        Returns
        -------
        str
            The line.
        """
        family = ""
        if self.family_pvalue is not None and self.lens != "family":
            family = f" · family-wise p {format_pvalue_relation(self.family_pvalue, self.min_pvalue, cutoff=0)}"
        return to_printable(
            f"{self.test} {'family-wise ' if self.lens == 'family' else ''}p"
            f" {format_pvalue_relation(self.pvalue, self.min_pvalue, cutoff=0)}{self._decision_text()}{family} ·"
            f" statistic {format_number(self.statistic)}{self._groups_text()}{self._margin_text()}"
            f"{f' · {self.estimates}' if self.estimates else ''} · n={self.n:,} · {self._lens_text()}"
            f" · null: {_NULL_DETAILS.split(self.null)[0]}"
        )

    def _groups_text(self) -> str:
        """Describe the number of groups of a test and the degrees of freedom; empty without groups."""
        groups, df = self.settings.get("groups"), self.settings.get("df")
        if not isinstance(groups, int) or not isinstance(df, int):
            return ""
        return f" ({format_count(groups, 'group')}, {df} degree{'s' * (df != 1)} of freedom)"

    def _decision_text(self) -> str:
        """Describe whether the null hypothesis is rejected, and the number of draws; only draws if a margin decides."""
        draws = self.settings.get("resamples") if self.min_pvalue is not None else None
        draws_text = "" if draws is None else f" ({draws:,} draws)"
        if self.decision is not None or math.isnan(self.pvalue):
            return draws_text
        hypothesis = "calibration" if self.settings.get("hypothesis") is None else "hypothesis"
        if self.pvalue <= DECISION_LEVEL:
            verb = "rejected"
        else:
            is_possible = self.min_pvalue is None or self.min_pvalue <= DECISION_LEVEL
            verb = "not rejected" if is_possible else "cannot be rejected"
        return f": {hypothesis} {verb} at the {format_percent(DECISION_LEVEL)} level{draws_text}"

    def _lens_text(self) -> str:
        """Name the lens, or the lenses of a family with the p-value of each."""
        if self.lens != "family":
            return format_lens(self.lens, self.settings)
        min_pvalue = None if self.min_pvalue is None else 1 / (1 + self.settings["resamples"])
        texts = [
            f"{lens} (p {format_pvalue_relation(part['pvalue'], min_pvalue, cutoff=0)})"
            for lens, part in self.parts.items()
        ]
        return f"lenses {', '.join(texts)}"

    def _margin_text(self) -> str:
        """Describe the decision about the margin; empty without one."""
        if self.decision is None:
            return ""
        position = "undecided about" if self.decision == "undecided" else self.decision
        return f" · {position} the margin of {format_number(self.settings['margin'])}"


def with_notes(text: str, notes: Sequence[Note]) -> str:
    """Return a description followed by its notes, as `print` shows them."""
    return "\n".join([text, *(f"  {note}" for note in notes)])
