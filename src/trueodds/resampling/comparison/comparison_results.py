"""The results of comparing models: the difference of two models (`Comparison`), or a `Ranking` of several models."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from trueodds.core.errors import Note
from trueodds.core.formatting import format_lens_and_settings, format_number, format_percent
from trueodds.core.printable import to_printable
from trueodds.core.results import Estimate, Interval, Result, noise_floor_label

_PAIR_KEYS = ("names", "difference", "interval", "pvalue", "paired", "better")  # of the JSON of a pair in a ranking
MAX_LISTED_PAIRS = 6  # pairs named in one line; `pairs` has all comparisons


class ComparisonResult(Result):
    """A result of comparing models, which a page can show."""

    __slots__ = ()

    def to_html(self, models: Any, path: str | Path | None = None) -> str:
        """Return the result as one self-contained HTML page.

        Parameters
        ----------
        models : mapping of str to data, or sequence
            The compared data: a mapping by model name, or a sequence in the same order.
        path : str or Path, optional
            File to which the page is written.

        Returns
        -------
        str
            The HTML text. The page loads nothing and sends nothing. It has the reliability diagrams of the models, the
            differences, and the main measures with the level, the number of bins and the seed of this result.

        Raises
        ------
        InputError
            TO205 if the models have other names or numbers of rows than those that were compared, TO702 if jinja2 is
            not installed, TO703 if the file cannot be written.
        """
        # Imported by name when it is called, because reports import the results.
        page: str = importlib.import_module("trueodds.reports.html.comparison_page").comparison_page(self, models, path)
        return page


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(ComparisonResult):
    """The difference of the errors of two models, the first minus the second, with its interval and p-value.

    A measure with a target, such as `o_e` with the target 1 or `calibration_in_the_large` with 0, can be too high or
    too low. Its error is the distance from the target, which `settings` contain as `distance_from`.

    Attributes
    ----------
    estimator, lens : str
        Name of the estimator and of the lens.
    difference : float
        The estimate of the first model minus the estimate of the second. For a measure with a target (`o_e`: 1), the
        difference of the two distances from it. ``float(comparison)`` returns it.
    n : int
        Number of rows that were compared: those of both models together if they were evaluated on different rows.
    paired : bool
        Whether both models were evaluated on the same rows.
    models : mapping of str to Estimate
        The estimates of the first and of the second model, by name.
    null : str
        The null hypothesis in words.
    interval : Interval or None
        Confidence interval of the difference.
    pvalue : float or None
        Two-sided p-value of equal errors; None if it is undefined.
    min_pvalue : float or None
        Smallest p-value that the resamples can give.
    settings : mapping
        All settings used.
    notes : tuple of Note
        Facts to report with the difference.
    """

    json_schema: ClassVar[str] = "trueodds.comparison/1"
    number_fields: ClassVar[tuple[str, ...]] = ("difference", "pvalue")
    json_keys: ClassVar[tuple[str, ...]] = (
        "estimator", "lens", *_PAIR_KEYS, "min_pvalue", "null", "models", "n", "settings", "notes",
    )  # fmt: skip

    estimator: str
    lens: str
    difference: float
    n: int
    paired: bool
    models: Mapping[str, Estimate]
    null: str
    interval: Interval | None = None
    pvalue: float | None = None
    min_pvalue: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        if math.isnan(self.difference):
            object.__setattr__(self, "pvalue", None)
        Result.__post_init__(self)

    def __float__(self) -> float:
        return float(self.difference)

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two models."""
        first, second = self.models
        return first, second

    @property
    def better(self) -> str | None:
        """The model whose error is closer to the best value if the interval excludes 0, else None.

        None also if the interval is based on too few rows, which the note TN273 reports, and if the estimates lie on
        both sides of the best value.
        """
        if self.interval is None or self.interval.low <= 0 <= self.interval.high:
            return None
        if any(note.code == "TN273" for note in self.notes):
            return None
        first, second = self.names
        best_value = float(self.settings.get("best_value", -math.inf))
        values = [estimate.value for estimate in self.models.values()]
        lower, higher = (second, first) if self.interval.low > 0 else (first, second)
        if all(value >= best_value for value in values):
            return lower
        return higher if all(value <= best_value for value in values) else None

    def describe(self) -> str:
        """Describe the difference with its interval and p-value, and both models, in one line."""
        first, second = self.names
        target = self.settings.get("distance_from")
        label = self.estimator if target is None else f"{self.estimator}, distance from {format_number(target)},"
        pieces = [f"{label} {first} − {second} {format_number(self.difference)}"]
        if self.interval is not None:
            pieces[0] += f" {self.interval}"
        if self.pvalue is not None:
            min_pvalue = (
                f" (smallest possible: {format_number(self.min_pvalue)})" if self.min_pvalue is not None else ""
            )
            pieces.append(f"p={format_number(self.pvalue)}{min_pvalue}")
        pieces.append(", ".join(_format_estimate(name, estimate) for name, estimate in self.models.items()))
        pieces.append(f"n={self.n:,} {'paired' if self.paired else 'unpaired'}")
        pieces.append(format_lens_and_settings(self.lens, self.settings))
        return to_printable(" · ".join(pieces))

    def pair(self) -> dict[str, Any]:
        """Return the difference without the estimates of the two models, as a ranking lists it."""
        return self.json_values(_PAIR_KEYS)


@dataclass(frozen=True, slots=True, repr=False)
class Ranking(ComparisonResult):
    """Several models ordered by their errors, with simultaneous intervals of all pairwise differences.

    Attributes
    ----------
    estimator, lens : str
        Name of the estimator and of the lens.
    order : tuple of str
        The names of the models, the error closest to the best value first.
    models : mapping of str to Estimate
        The estimate of each model, by name.
    pairs : tuple of Comparison
        The comparison of every two models. Their intervals hold simultaneously, and their p-values are adjusted.
    n : int
        Number of rows.
    level : float
        Simultaneous confidence level of all intervals.
    null : str
        The null hypothesis in words.
    settings : mapping
        All settings used.
    notes : tuple of Note
        Facts to report with the ranking.
    """

    json_schema: ClassVar[str] = "trueodds.ranking/1"
    json_keys: ClassVar[tuple[str, ...]] = (
        "estimator", "lens", "order", "settled", "unsettled", "pairs=_pairs_without_estimates", "models", "n", "level",
        "null", "settings", "notes",
    )  # fmt: skip

    estimator: str
    lens: str
    order: tuple[str, ...]
    models: Mapping[str, Estimate]
    pairs: tuple[Comparison, ...]
    n: int
    level: float
    null: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def _pairs_without_estimates(self) -> list[dict[str, Any]]:
        return [comparison.pair() for comparison in self.pairs]

    @property
    def settled(self) -> tuple[tuple[str, str], ...]:
        """The pairs (better, worse) that differ significantly, at a joint level."""
        settled_pairs = []
        for comparison in self.pairs:
            if (better := comparison.better) is not None:
                first, second = comparison.names
                settled_pairs.append((better, second if better == first else first))
        return tuple(settled_pairs)

    @property
    def unsettled(self) -> tuple[tuple[str, str], ...]:
        """The pairs whose order is not settled by the intervals, each with the better model first."""
        rank = self.order.index
        open_pairs = [sorted(comparison.names, key=rank) for comparison in self.pairs if comparison.better is None]
        return tuple((first, second) for first, second in open_pairs)

    def describe(self) -> str:
        """Describe the order and which parts of it are settled, in one line."""
        order = ", ".join(f"{name} {format_number(self.models[name].value)}" for name in self.order)
        pieces = [f"{self.estimator} {order}"]
        pieces.append(self._describe_significance())
        pieces.append(f"{format_percent(self.level)} jointly")
        pieces.append(f"n={self.n:,} {self.settings.get('rows', '')}".rstrip())
        pieces.append(format_lens_and_settings(self.lens, self.settings))
        return to_printable(" · ".join(pieces))

    def _describe_significance(self) -> str:
        """Describe which pairs differ significantly, the better model first, which do not, and undefined models."""
        names = [name for name in self.order if math.isnan(self.models[name].value)]
        undefined = f"; undefined: {', '.join(names)}" if names else ""
        unsettled = [pair for pair in self.unsettled if not set(pair) & set(names)]
        if not self.settled:
            return f"{'no significant difference' if unsettled else 'no pair was compared'}{undefined}"
        significant = f"significant: {_list_pairs(self.settled, ' < ', ', ')}"
        if not unsettled:
            return f"{significant}{undefined or ' (all pairs)'}"
        return f"{significant}; not significant: {_list_pairs(unsettled, ', ', '; ')}{undefined}"


def _format_estimate(name: str, estimate: Estimate) -> str:
    """Format the estimate of a model with its name and its noise floor."""
    label = noise_floor_label(estimate.estimator)
    noise_floor = "" if estimate.noise_floor is None else f" ({label} {format_number(estimate.noise_floor)})"
    return f"{name} {format_number(estimate.value)}{noise_floor}"


def _list_pairs(pairs: Sequence[tuple[str, str]], pair_separator: str, separator: str) -> str:
    """Format at most six pairs of names, joined by `pair_separator` within a pair and by `separator` between pairs."""
    pair_texts = [f"{first}{pair_separator}{second}" for first, second in pairs[:MAX_LISTED_PAIRS]]
    more = [f"{len(pairs) - MAX_LISTED_PAIRS} more"] if len(pairs) > MAX_LISTED_PAIRS else []
    return separator.join([*pair_texts, *more])
