"""Tables of displayed figures, and numbers, percentages and p-values formatted as text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueodds.core.formatting import format_number

NAMES, DETAIL = False, True


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and whether what stands below it are numbers."""

    name: str
    numeric: bool = True
    detail: bool = False  # too much for a terminal's width; the page and the JSON have it


@dataclass(frozen=True, slots=True)
class Mark:
    """The numbers of a row that can be drawn: an error, its interval, its noise floor."""

    value: float | None
    low: float | None = None
    high: float | None = None
    noise_floor: float | None = None

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max((x for x in (self.value, self.high, self.noise_floor) if x is not None), default=0.0)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under headings."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    intro: str = ""
    keys: tuple[str, ...] = ()  # the class behind each row, where there is one
    marks: tuple[Mark, ...] = ()
    rest: int = 0  # rows left out

    def first(self, max_rows: int) -> Table:
        """At most so many rows, and how many were left out."""
        if len(self.rows) <= max_rows:
            return self
        return replace(
            self,
            rows=self.rows[:max_rows],
            keys=self.keys[:max_rows],
            marks=self.marks[:max_rows],
            rest=len(self.rows) - max_rows,
        )

    def brief(self) -> Table:
        """Without the columns of detail."""
        keep = [i for i, column in enumerate(self.columns) if not column.detail]
        return self._columns(keep)

    def filled(self) -> Table:
        """Without columns in which nothing stands; the first stays."""
        keep = [i for i in range(len(self.columns)) if i == 0 or any(row[i] not in ("", "–") for row in self.rows)]
        return self._columns(keep)

    def _columns(self, keep: Sequence[int]) -> Table:
        columns = tuple(self.columns[i] for i in keep)
        return replace(self, columns=columns, rows=tuple(tuple(row[i] for i in keep) for row in self.rows))


def yes_no(value: Any) -> str:
    """A fact that holds or not."""
    return "yes" if value else "no"


def count_text(n: int | None) -> str:
    """A count, with its thousands apart."""
    return "–" if n is None else f"{n:,}"


def value_text(value: Any) -> str:
    """A setting or a cell as it is read."""
    if isinstance(value, bool):
        return yes_no(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return digits(value) if abs(value) >= 1000 else format_number(value)
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in one line."""
    return ", ".join(f"{name.replace('_', ' ')} {value_text(value)}" for name, value in settings.items()) or "–"


_CLAIMS = {
    "confidence": "the class it picks",
    "classwise": "each class for itself",
    "canonical": "all probabilities together",
    "family": "all claims at once",
}


def claim(lens: str, data: Mapping[str, Any]) -> str:
    """What a lens claims, in words; of two classes the one that is predicted is named.

    >>> claim("positive", {"classes": ["no", "rain"]}), claim("canonical", {})
    ('P(rain)', 'all probabilities together')
    """
    if lens == "positive" and len(data.get("classes") or ()) == 2:
        return f"P({data['classes'][1]})"
    return _CLAIMS.get(lens, "")


def keep_together(text: str) -> str:
    """The text with no-break spaces where a line must not end: 100 %, p ≤ 0.001.

    >>> keep_together("right 70 % (p ≤ 0.001)").replace("\u00a0", "~")
    'right 70~% (p~≤~0.001)'
    """
    text = re.sub(r"(?<=\d) (?=%)", "\u00a0", text)
    return re.sub(r"\b(p|T|ECE) ([≤=<]) (?=\d)", "\\1\u00a0\\2\u00a0", text)


def share(x: float | None) -> str:
    """A probability as people say it.

    >>> share(0.9611), share(0.0004), share(None)
    ('96.1 %', '0.04 %', '–')
    """
    if x is None:
        return "–"
    return f"{100 * x:.1f} %" if x == 0 or abs(x) >= 0.001 else f"{100 * x:.2g} %"


def points(x: float | None) -> str:
    """An error or a difference of probabilities, in percentage points.

    >>> points(0.241), points(0.0004), points(0.0), points(None)
    ('24.1 points', '0.04 points', '0 points', '–')
    """
    return "–" if x is None else f"{hundredths(x)} points"


def hundredths(x: float) -> str:
    """A hundred times as much, to a tenth; of less than a tenth its first digit."""
    if abs(x) < 1e-9:
        return "0"
    return f"{100 * x:.1f}" if abs(x) >= 0.001 else f"{100 * x:.1g}"


def pvalue(p: float | None, min_pvalue: float | None = None) -> str:
    """A p-value in a table; at the floor of its draws it could be smaller still.

    >>> pvalue(0.001, 0.001), pvalue(0.42, 0.001), pvalue(1.74e-15), pvalue(None)
    ('≤ 0.001', '0.42', '< 0.0001', '–')
    """
    if p is None:
        return "–"
    if min_pvalue is not None and p <= min_pvalue * (1 + 1e-9):
        return f"≤ {format_number(p)}"
    return "< 0.0001" if p < 0.0001 else format_number(p)


def chance(p: float | None, min_pvalue: float | None = None) -> str:
    """A p-value in a sentence.

    >>> chance(0.001, 0.001), chance(0.42, 0.001), chance(1e-9), chance(None)
    ('p ≤ 0.001', 'p = 0.42', 'p < 0.0001', 'p –')
    """
    text = pvalue(p, min_pvalue)
    return f"p {text}" if text[0] in "≤<–" else f"p = {text}"


def count(n: int | None, one: str, many: str | None = None) -> str:
    """A number of things.

    >>> count(1, "row"), count(12345, "row"), count(2, "class", "classes")
    ('1 row', '12,345 rows', '2 classes')
    """
    return "–" if n is None else f"{n:,} {one if n == 1 else many or one + 's'}"


def digits(x: float | None, places: int = 4) -> str:
    """A figure with all its decimals; what rounding left of a zero is a zero.

    >>> digits(0.062), digits(-1.1e-16), digits(7480.0), digits(None)
    ('0.0620', '0.0000', '7,480', '–')
    """
    if x is None or not math.isfinite(x):
        return format_number(x)
    if abs(x) >= 10:
        return f"{x:,.0f}" if abs(x) >= 1000 or x == round(x) else f"{x:,.1f}"
    text = f"{x:.{places}f}"
    return text if float(text) else text.removeprefix("-")


def align_digits(column: Sequence[float | None]) -> list[str]:
    """A column of figures with the same decimals throughout: four, or more where all of them are tiny.

    >>> align_digits([0.25, 0.000793, 0.0]), aligned([0.0004, 0.00012])
    (['0.2500', '0.0008', '0.0000'], ['0.00040', '0.00012'])
    """
    places = _places(column)
    return [digits(x, places) for x in column]


def _places(column: Sequence[float | None]) -> int:
    largest = max((abs(x) for x in column if x is not None and math.isfinite(x)), default=0.0)
    return 4 if largest < 1e-12 else min(max(4, 1 - math.floor(math.log10(largest))), 9)


def interval_texts(intervals: Sequence[Mapping[str, Any] | None]) -> list[str]:
    """A column of intervals with the same decimals throughout."""
    places = _places([end for interval in intervals if interval for end in (interval["low"], interval["high"])])
    return [
        f"[{digits(interval['low'], places)}, {digits(interval['high'], places)}]" if interval else "–"
        for interval in intervals
    ]


def size(data: Mapping[str, Any]) -> str:
    """How many rows and classes."""
    nouns = {"multilabel": ("label", "labels"), "confidence": ("outcome", "outcomes")}
    return f"{count(data['n'], 'row')} · {count(data['k'], *nouns.get(data['kind'], ('class', 'classes')))}"


def sample_size(data: Mapping[str, Any]) -> str:
    """How many independent pieces of evidence there are: clusters, or rows.

    >>> sample_size({"n": 900, "clusters": 4}), sample_size({"n": 12, "clusters": None})
    ('4 clusters', '12 rows')
    """
    clusters = data.get("clusters")
    return count(data["n"], "row") if clusters is None else count(clusters, "cluster")


def boundless(low: float, high: float) -> bool:
    """Whether an interval of an error says nothing, being all that an error can be."""
    return low <= 0 and high >= 1


def entity(data: Mapping[str, Any]) -> str:
    """The second of two classes in a sentence; a number is said to be a class.

    >>> entity({"classes": ["0", "1"]}), entity({"classes": ["dry", "rain"]})
    ('class 1', 'rain')
    """
    name = data["classes"][1]
    return f"class {name}" if name.replace(".", "", 1).isdigit() else name


def is_binary(data: Mapping[str, Any]) -> bool:
    """Whether one probability is predicted, of the second of two classes."""
    return data.get("event_rate") is not None
