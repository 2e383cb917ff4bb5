"""Presentation options of any diagram: title, figure size, resolution and legend."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from trueodds.core.errors import InputError

SIDE = 1.5, 50.0  # inches of a side of a figure: smaller ones have no room for axes
DPI = 10.0, 1200.0
PIXELS = 20_000  # of a side: a picture of 20,000 by 20,000 takes 1.6 GB


@dataclass(frozen=True, slots=True)
class Presentation:
    """How a picture is presented; None stands for the default of the diagram.

    Parameters
    ----------
    title : str or bool, optional
        A string replaces the headline. False or "" leaves headline and finding out, and True brings them back.
    figsize : pair of float, optional
        Width and height in inches of a figure of its own.
    dpi : float, optional
        Pixels per inch of a figure of its own.
    legend : bool, optional
        Of axes that are given: whether there is a legend in them. If not said, there is one where it covers no data.

    >>> Presentation(title="Validation set").heading("Is it calibrated?")
    'Validation set'
    """

    title: str | bool | None = None
    figsize: tuple[float, float] | None = None
    dpi: float | None = None
    legend: bool | None = None

    def __post_init__(self) -> None:
        if self.title is not None and not isinstance(self.title, (str, bool)):
            fix = "Pass a string; False or an empty string leaves the headline out."
            raise InputError("TO203", "title is a string, or False for none.", repr(self.title), fix)
        if self.figsize is not None:
            object.__setattr__(self, "figsize", _sides(self.figsize))
        if self.dpi is not None and not _within(self.dpi, DPI):
            problem = f"dpi is a number from {DPI[0]:g} to {DPI[1]:g}."
            raise InputError("TO203", problem, repr(self.dpi), "For instance dpi=300.")
        if self.figsize is not None and self.dpi is not None and max(self.figsize) * self.dpi > PIXELS:
            got = f"{self.figsize[0] * self.dpi:,.0f} by {self.figsize[1] * self.dpi:,.0f} pixels"
            problem = f"A picture has at most {PIXELS:,} pixels along a side."
            raise InputError("TO203", problem, got, "Take a smaller figsize or dpi.")
        if self.legend is not None and not isinstance(self.legend, bool):
            raise InputError("TO203", "legend is True, False or None.", repr(self.legend), "Leave it out for None.")

    def updated(self, **changes: Any) -> Self:
        """The same presentation with what is not None replaced."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    @property
    def titled(self) -> bool:
        """Whether there is a headline."""
        return self.title is not False and self.title != ""

    def heading(self, default: str) -> str:
        """The headline: the default, the caller's own, or none."""
        if isinstance(self.title, str):
            return self.title
        return "" if self.title is False else default


def _sides(figsize: Any) -> tuple[float, float]:
    sides = tuple(figsize) if isinstance(figsize, Iterable) and not isinstance(figsize, str) else ()
    if len(sides) != 2 or not all(_within(side, SIDE) for side in sides):
        problem = f"figsize is a width and a height, each from {SIDE[0]:g} to {SIDE[1]:g} inches."
        raise InputError("TO203", problem, repr(figsize), "For instance figsize=(5, 4).")
    return float(sides[0]), float(sides[1])


def _within(value: Any, limits: tuple[float, float]) -> bool:
    """Whether it is a number between both limits; a Boolean is none, a NumPy scalar is one."""
    if isinstance(value, (bool, str)):
        return False
    try:
        return math.isfinite(value) and limits[0] <= value <= limits[1]
    except TypeError:
        return False
