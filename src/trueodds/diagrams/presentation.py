"""Presentation options of any diagram: title, figure size, resolution and legend."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from trueodds.core.errors import InputError

SIDE_LIMITS = 1.5, 50.0  # smallest and largest side of a figure in inches; smaller ones have no room for axes
DPI_LIMITS = 10.0, 1200.0  # smallest and largest resolution
MAX_SIDE_PIXELS = 20_000  # largest side: a picture of 20,000 by 20,000 pixels takes 1.6 GB


@dataclass(frozen=True, slots=True)
class Presentation:
    """Title, size, resolution and legend of a picture; None selects the default of the diagram.

    Parameters
    ----------
    title : str or bool, optional
        A string replaces the headline. False or "" removes headline and finding, and True restores them.
    figsize : pair of float, optional
        Width and height in inches of a figure of its own.
    dpi : float, optional
        Pixels per inch of a figure of its own.
    legend : bool, optional
        Whether to draw a legend. By default given axes get one if it covers no data.
    side_header : bool, default=False
        Whether title, finding and legend stand at the left of a single panel, as on a slide, and not above it.

    Raises
    ------
    InputError
        TO203 for an invalid value.

    Examples
    --------
    >>> Presentation(title="Validation set").heading("Is it calibrated?")
    'Validation set'
    """

    title: str | bool | None = None
    figsize: tuple[float, float] | None = None
    dpi: float | None = None
    legend: bool | None = None
    side_header: bool = False

    def __post_init__(self) -> None:
        if self.title is not None and not isinstance(self.title, (str, bool)):
            fix = "Pass a string, or False for no title."
            raise InputError("TO203", "title must be a string, a bool or None.", repr(self.title), fix)
        if self.figsize is not None:
            object.__setattr__(self, "figsize", _parse_figsize(self.figsize))
        if self.dpi is not None and not _is_within(self.dpi, DPI_LIMITS):
            problem = f"dpi must be a number from {DPI_LIMITS[0]:g} to {DPI_LIMITS[1]:g}."
            raise InputError("TO203", problem, repr(self.dpi), "For instance ⟨dpi=300⟩.")
        if self.figsize is not None and self.dpi is not None and max(self.figsize) * self.dpi > MAX_SIDE_PIXELS:
            got = f"{self.figsize[0] * self.dpi:,.0f} by {self.figsize[1] * self.dpi:,.0f} pixels"
            problem = f"A picture can have at most {MAX_SIDE_PIXELS:,} pixels along a side."
            raise InputError("TO203", problem, got, "Use a smaller figsize or dpi.")
        if self.legend is not None and not isinstance(self.legend, bool):
            raise InputError(
                "TO203", "legend must be True, False or None.", repr(self.legend), "Omit it for the default."
            )

    def with_changes(self, **changes: Any) -> Self:
        """Return a copy with every change that is not None."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    @property
    def has_title(self) -> bool:
        """Whether there is a title."""
        return self.title is not False and self.title != ""

    def heading(self, default: str) -> str:
        """The title: the caller's own, none, or else the default."""
        if isinstance(self.title, str):
            return self.title
        return "" if self.title is False else default


def _parse_figsize(figsize: Any) -> tuple[float, float]:
    """Return width and height in inches, or raise TO203."""
    sides = tuple(figsize) if isinstance(figsize, Iterable) and not isinstance(figsize, str) else ()
    if len(sides) != 2 or not all(_is_within(side, SIDE_LIMITS) for side in sides):
        problem = f"figsize must be a width and a height, each from {SIDE_LIMITS[0]:g} to {SIDE_LIMITS[1]:g} inches."
        raise InputError("TO203", problem, repr(figsize), "For instance ⟨figsize=(5, 4)⟩.")
    return float(sides[0]), float(sides[1])


def _is_within(value: Any, limits: tuple[float, float]) -> bool:
    """Whether the value is a number within both limits. A NumPy scalar is one, a Boolean is not."""
    if isinstance(value, (bool, str)):
        return False
    try:
        return math.isfinite(value) and limits[0] <= value <= limits[1]
    except TypeError:
        return False
