"""Draw reliability diagrams, with a histogram of the predictions below, as SVG elements of an HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from trueodds.core.formatting import format_count, format_share

# Edges of the plot area in the units of the picture, and the lower edge of the histogram below it.
LEFT, RIGHT, TOP, BOTTOM, HISTOGRAM_BOTTOM = 54.0, 324.0, 10.0, 280.0, 318.0
WIDTH, HEIGHT = 348, 358  # the last tick label, 100 %, is centered at the right end
_AXIS_LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # upper ends of both axes; the smallest one that fits is used
_CURVE_SIZE = 40  # width and height of the curve in the row of a table
_REQUIRED_COLUMNS = ("mean_prediction", "outcome_rate", "n")

Bin = Mapping[str, Any]  # one row of the table of a diagram


def select_bins(table: Mapping[str, Sequence[Any]], view: str | None = None) -> list[Bin]:
    """Return the bins of one view of a diagram, or of all views, from its table; bins without rows are left out.

    >>> select_bins({"view": ["a", "b"], "n": [1, 2], "mean_prediction": [0.1, 0.2], "outcome_rate": [0, 1]}, "b")
    [{'view': 'b', 'n': 2, 'mean_prediction': 0.2, 'outcome_rate': 1}]
    """
    if any(name not in table for name in _REQUIRED_COLUMNS):
        return []
    columns = {name: values for name, values in table.items() if isinstance(values, (list, tuple))}
    rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    return [
        row
        for row in rows
        if (view is None or row.get("view") == view) and None not in [row[name] for name in _REQUIRED_COLUMNS]
    ]


def upper_limit(bins: Sequence[Bin]) -> float:
    """Return the upper end of both axes: 1, or less if all means are small.

    >>> upper_limit([{"mean_prediction": 0.03, "outcome_rate": 0.07}])
    0.1
    """
    largest = max((max(row["mean_prediction"], row["outcome_rate"]) for row in bins), default=1.0)
    return next((limit for limit in _AXIS_LIMITS if largest <= limit), 1.0)


def reliability_svg(
    bins: Sequence[Bin], label: str, axes: tuple[str, str] = ("predicted", "observed"), limit: float | None = None
) -> str:
    """Draw the reliability diagram of the bins of one view.

    Parameters
    ----------
    bins : sequence of mapping
        Rows of the table of a diagram, as `select_bins` returns them.
    label : str
        Alternative text of the picture.
    axes : pair of str, default=("predicted", "observed")
        Names of the axes.
    limit : float, optional
        Upper end of both axes, by default `upper_limit`.

    Returns
    -------
    str
        An SVG element. Each bin can take the focus and has its numbers as accessible name; script.js lets the arrow
        keys move from bin to bin.
    """
    limit = upper_limit(bins) if limit is None else limit
    scale = Scale(limit)
    marks = "".join(_draw_bin(row, scale, axes, is_first=i == 0) for i, row in enumerate(bins))
    path = " ".join(f"{scale.x(row['mean_prediction'])},{scale.y(row['outcome_rate'])}" for row in bins)
    drawn = f'{draw_axes(scale, axes)}<polyline class="curve" points="{path}"/>{draw_shares(bins, scale)}{marks}'
    return svg_element(drawn, label, role="group")


def svg_element(content: str, label: str, height: float = HEIGHT, role: str = "img") -> str:
    """Return an SVG element of the page with this content and alternative text."""
    text = f'class="rd" viewBox="0 0 {WIDTH} {height:g}" role="{role}" aria-label="{escape(label)}"'
    return f"<svg {text}>{content}</svg>"


# What the axes of the diagrams of the package say, by the words in texts.
_AXIS_TITLES = {"predicted": "Predicted probability", "observed": "Observed frequency"}


def axis_title(name: str) -> str:
    """Return the title of an axis.

    >>> axis_title("predicted"), axis_title("confidence")
    ('Predicted probability', 'Confidence')
    """
    return _AXIS_TITLES.get(name, name.capitalize())


def curve_svg(bins: Sequence[Bin], limit: float | None = None) -> str:
    """Draw the reliability curve of a view without axes, for the row of a table."""
    if not bins:
        return ""
    limit, size = upper_limit(bins) if limit is None else limit, _CURVE_SIZE
    positions = ((min(row["mean_prediction"] / limit, 1), min(row["outcome_rate"] / limit, 1)) for row in bins)
    points = " ".join(f"{format_coordinate(size * x)},{format_coordinate(size * (1 - y))}" for x, y in positions)
    return (
        f'<svg class="mini" viewBox="-2 -2 {size + 4} {size + 4}" aria-hidden="true">'
        f'<path class="diagonal" d="M0 {size}L{size} 0"/><polyline class="curve" points="{points}"/></svg>'
    )


def describe_bin(row: Bin, axes: tuple[str, str]) -> str:
    """Return the numbers of a bin as one line of text.

    >>> row = {"mean_prediction": 0.25, "outcome_rate": 0.5, "n": 4, "bar_low": 0.0, "bar_high": 0.75}
    >>> describe_bin(row, ("predicted", "observed"))
    'predicted 25.0 %, observed 50.0 %, 4 rows; 0.0 % to 75.0 % if calibrated: inside'
    """
    text = f"{axes[0]} {format_share(row['mean_prediction'])}, {axes[1]} {format_share(row['outcome_rate'])}, "
    text += format_count(row["n"], "row")
    if row.get("bar_low") is None or row.get("bar_high") is None:
        return text
    bar = f"{format_share(row['bar_low'])} to {format_share(row['bar_high'])}"
    return f"{text}; {bar} if calibrated: {'outside' if row.get('outside') else 'inside'}"


class Scale:
    """Positions in the plot area of probabilities from 0 to an upper limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def x(self, value: float) -> str:
        """Return the horizontal position of a probability."""
        return format_coordinate(LEFT + (RIGHT - LEFT) * min(max(value / self.limit, 0.0), 1.0))

    def y(self, value: float) -> str:
        """Return the vertical position of a probability."""
        return format_coordinate(BOTTOM - (BOTTOM - TOP) * min(max(value / self.limit, 0.0), 1.0))


def format_coordinate(x: float) -> str:
    """Return a coordinate as text, with one decimal at most.

    >>> format_coordinate(12.345), format_coordinate(12.0)
    ('12.3', '12')
    """
    return f"{x:.1f}".removesuffix(".0")


def draw_axes(scale: Scale, axes: tuple[str, str], under: str = "") -> str:
    """Draw the grid, the diagonal, the ticks and the titles of the axes; `under` is drawn below the diagonal."""
    left, right, top, bottom = (format_coordinate(x) for x in (LEFT, RIGHT, TOP, BOTTOM))
    ticks = [scale.limit * i / 5 for i in range(6)]
    texts = [f"{100 * tick:.3g} %" for tick in ticks]
    grid = "".join(f"M{scale.x(t)} {top}V{bottom}M{left} {scale.y(t)}H{right}" for t in ticks)
    label_y = format_coordinate(HISTOGRAM_BOTTOM + 13)
    x_labels = "".join(
        f'<text x="{scale.x(t)}" y="{label_y}">{text}</text>' for t, text in zip(ticks, texts, strict=True)
    )
    y_labels = "".join(
        f'<text x="{format_coordinate(LEFT - 5)}" y="{format_coordinate(float(scale.y(t)) + 4)}">{text}</text>'
        for t, text in zip(ticks, texts, strict=True)
    )
    middle, center = format_coordinate((LEFT + RIGHT) / 2), format_coordinate((TOP + BOTTOM) / 2)
    x_title, y_title = (escape(axis_title(name)) for name in axes)
    return (
        f'<path class="grid" d="{grid}"/>{under}<path class="diagonal" d="M{left} {bottom}L{right} {top}"/>'
        f'<g class="ticks" aria-hidden="true"><g text-anchor="middle">{x_labels}'
        f'<text class="name" x="{middle}" y="{format_coordinate(HISTOGRAM_BOTTOM + 31)}">{x_title}</text>'
        f'<text class="name" transform="translate(12 {center}) rotate(-90)">{y_title}</text></g>'
        f'<g text-anchor="end">{y_labels}</g></g>'
    )


def draw_shares(bins: Sequence[Bin], scale: Scale) -> str:
    """Draw the share of rows in each bin as a histogram below the plot; the largest share has the full height."""
    total = sum(row["n"] for row in bins) or 1
    largest = max((row["n"] for row in bins), default=1) / total or 1
    rects = []
    for row in bins:
        if row.get("low") is None or row.get("high") is None:
            continue
        height = 30 * (row["n"] / total) / largest
        x = float(scale.x(row["low"]))
        width = max(float(scale.x(row["high"])) - x - 1, 1)
        top = format_coordinate(HISTOGRAM_BOTTOM - height)
        size = f'width="{format_coordinate(width)}" height="{format_coordinate(height)}"'
        rects.append(f'<rect x="{format_coordinate(x)}" y="{top}" {size}/>')
    return f'<g class="shares">{"".join(rects)}</g>'


def _draw_bin(row: Bin, scale: Scale, axes: tuple[str, str], *, is_first: bool) -> str:
    """Draw the mark and the consistency bar of a bin, with an invisible area that receives the pointer events."""
    x, y = scale.x(row["mean_prediction"]), scale.y(row["outcome_rate"])
    text = escape(describe_bin(row, axes))
    bar = ""
    if row.get("bar_low") is not None and row.get("bar_high") is not None:
        off = " off" if row.get("outside") else ""
        bar = f'<path class="bar{off}" d="M{x} {scale.y(row["bar_low"])}V{scale.y(row["bar_high"])}"/>'
    # Bins outside their bar differ in shape, not only in color.
    if row.get("outside"):
        mark = f'<path class="outside" d="M{x} {y}m0-5.5l5.5 5.5-5.5 5.5-5.5-5.5z"/>'
    else:
        mark = f'<circle class="inside" cx="{x}" cy="{y}" r="4"/>'
    left, top, height = (format_coordinate(value) for value in (float(x) - 9, TOP, HISTOGRAM_BOTTOM - TOP))
    area = f'<rect class="hit" x="{left}" y="{top}" width="18" height="{height}"/>'
    return f'<g class="bin" role="img" tabindex="{0 if is_first else -1}" aria-label="{text}">{area}{bar}{mark}</g>'
