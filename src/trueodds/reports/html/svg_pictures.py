"""Draw the pictures of an HTML page as SVG elements: reliability diagrams, belts, decision curves and histograms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from trueodds.core.formatting import format_count, format_share, with_minus_signs
from trueodds.reports.text.diagram_tables import table_rows

# Edges of the plot area in the units of the picture, and the lower edge of the histogram below it.
LEFT, RIGHT, TOP, BOTTOM, HISTOGRAM_BOTTOM = 54.0, 324.0, 10.0, 280.0, 318.0
WIDTH, HEIGHT = 348, 358  # the last tick label, 100 %, is centered at the right end
_HEIGHT_WITHOUT_HISTOGRAM = BOTTOM + 40
_AXIS_LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # upper ends of both axes; the smallest one that fits is used
_MAX_STEPS = 6  # steps from tick to tick
_TICK_SHARES = (0.1, 0.2, 0.25, 0.5, 1.0, 2.0)  # steps as shares of the power of ten of the range
_CURVE_SIZE = 40  # width and height of the curve in the row of a table
_REQUIRED_COLUMNS = ("mean_prediction", "outcome_rate", "n")
# What the axes of the diagrams of the package say, by the words in texts.
_AXIS_TITLES = {"predicted": "Predicted probability", "observed": "Observed frequency"}

Bin = Mapping[str, Any]  # one row of the table of a diagram


def select_bins(table: Mapping[str, Sequence[Any]], view: str | None = None) -> list[Bin]:
    """Return the bins of one view of a diagram, or of all views, from its table; bins without rows are left out.

    >>> select_bins({"view": ["a", "b"], "n": [1, 2], "mean_prediction": [0.1, 0.2], "outcome_rate": [0, 1]}, "b")
    [{'view': 'b', 'n': 2, 'mean_prediction': 0.2, 'outcome_rate': 1}]
    """
    if any(name not in table for name in _REQUIRED_COLUMNS):
        return []
    rows = table_rows({name: values for name, values in table.items() if isinstance(values, (list, tuple))})
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
    """Draw the reliability diagram of the bins of one view, with a histogram of the predictions below.

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
    frame = _Frame.square(upper_limit(bins) if limit is None else limit)
    marks = "".join(_draw_bin(row, frame, axes, is_first=i == 0) for i, row in enumerate(bins))
    curve = _polyline("curve", [frame.point(row["mean_prediction"], row["outcome_rate"]) for row in bins])
    drawn = f"{frame.square_axes(axes)}{curve}{_draw_shares(bins, frame)}{marks}"
    return _svg_element(drawn, label, role="group")


def belt_svg(table: Mapping[str, Sequence[Any]], label: str) -> str:
    """Draw the widest band of a calibration belt, its curve, and the histogram of the predictions.

    `table` is that of the diagram; `label` is the alternative text.
    """
    curve, belt, strip = (_part(table, part) for part in ("curve", "belt", "strip"))
    widest = max(row["level"] for row in belt)
    band = [row for row in belt if row["level"] == widest]
    points = [{"mean_prediction": row["x_low"], "outcome_rate": row["rate"]} for row in curve]
    limit = upper_limit([*points, *({"mean_prediction": row["x_low"], "outcome_rate": row["high"]} for row in band)])
    frame = _Frame.square(limit)
    # The heights are relative to the largest one, so that shares serve as counts.
    bins: list[Bin] = [{"n": row["rate"], "low": row["x_low"], "high": row["x_high"]} for row in strip]
    under = _polygon([(row["x_low"], row["low"], row["high"]) for row in band], frame)
    line = _polyline("curve", [frame.point(row["x_low"], row["rate"]) for row in curve])
    axes = frame.square_axes(("predicted", "observed"), under)
    return _svg_element(f"{axes}{_draw_shares(bins, frame)}{line}", label)


def decision_svg(table: Mapping[str, Sequence[Any]], limits: Mapping[str, float], label: str) -> str:
    """Draw the net benefit of the predictions with its band, of treating everyone, and of treating no one.

    `limits` are those of the axes, as in `panels` of the diagram.
    """
    rows = _part(table, "curve")
    low, high = max(limits["y_low"], -0.25 * limits["y_high"]), limits["y_high"]
    frame = _Frame((0.0, max(limits["x_high"], 1e-9)), (low, high))
    band = _polygon([(row["threshold"], row["low"], row["high"]) for row in rows if row["low"] is not None], frame)
    visible = [row for row in rows if row["treat_all"] >= low]
    lines = (
        _polyline("alternative", [frame.point(row["threshold"], row["treat_all"]) for row in visible]),
        _polyline("zero", [frame.point(0.0, 0.0), frame.point(limits["x_high"], 0.0)]),
        _polyline("curve", [frame.point(row["threshold"], row["net_benefit"]) for row in rows]),
    )
    drawn = f"{frame.axes(('Threshold probability', 'Net benefit'))}{band}{''.join(lines)}"
    return _svg_element(drawn, label, _HEIGHT_WITHOUT_HISTOGRAM)


def histogram_svg(
    table: Mapping[str, Sequence[Any]], totals: Mapping[str, float | None], names: tuple[str, str], label: str
) -> str:
    """Draw the histogram of the predictions, and their mean beside the observed rate with its consistency range.

    `totals` is the row of `panels` of the diagram, and `names` are those of the axes of the reliability diagram.
    """
    # A bin whose numbers are missing is not known.
    rows = [row for row in table_rows(table) if None not in (row["low"], row["high"], row["share"])]
    largest = totals["top"] or 1.0
    frame = _Frame((0.0, 1.0), (0.0, largest), is_percent=True)
    bars = [
        _rect(frame.x(row["low"]), frame.x(row["high"]), (top := frame.y(row["share"])), BOTTOM - top) for row in rows
    ]
    span, bar_low, bar_high = "", totals["bar_low"], totals["bar_high"]
    if bar_low is not None and bar_high is not None:
        low, high = (format_coordinate(frame.x(end)) for end in (bar_low, bar_high))
        width = format_coordinate(max(float(high) - float(low), 1.0))
        span = f'<rect class="range" x="{low}" y="{TOP:g}" width="{width}" height="{BOTTOM - TOP:g}"/>'
    means = (("mean", totals["mean_prediction"]), ("rate", totals["outcome_rate"]))
    lines = [
        _polyline(kind, [frame.point(mean, y) for y in (0.0, largest)]) for kind, mean in means if mean is not None
    ]
    drawn = f'{frame.axes((axis_title(names[0]), "Share of predictions"))}<g class="shares">{"".join(bars)}</g>'
    return _svg_element(f"{drawn}{span}{''.join(lines)}", label, _HEIGHT_WITHOUT_HISTOGRAM)


def curve_svg(bins: Sequence[Bin], limit: float | None = None) -> str:
    """Draw the reliability curve of a view without axes, for the row of a table."""
    if not bins:
        return ""
    limit, size = upper_limit(bins) if limit is None else limit, _CURVE_SIZE
    positions = ((min(row["mean_prediction"] / limit, 1), min(row["outcome_rate"] / limit, 1)) for row in bins)
    points = [f"{format_coordinate(size * x)},{format_coordinate(size * (1 - y))}" for x, y in positions]
    return (
        f'<svg class="mini" viewBox="-2 -2 {size + 4} {size + 4}" aria-hidden="true">'
        f'<path class="diagonal" d="M0 {size}L{size} 0"/>{_polyline("curve", points)}</svg>'
    )


def axis_title(name: str) -> str:
    """Return the title of an axis.

    >>> axis_title("predicted"), axis_title("confidence")
    ('Predicted probability', 'Confidence')
    """
    return _AXIS_TITLES.get(name, name.capitalize())


def bin_label(row: Bin, axes: tuple[str, str]) -> str:
    """Return the numbers of a bin as one line of text.

    >>> row = {"mean_prediction": 0.25, "outcome_rate": 0.5, "n": 4, "bar_low": 0.0, "bar_high": 0.75}
    >>> bin_label(row, ("predicted", "observed"))
    'predicted 25.0 %, observed 50.0 %, 4 rows; 0.0 % to 75.0 % if calibrated: inside'
    """
    text = f"{axes[0]} {format_share(row['mean_prediction'])}, {axes[1]} {format_share(row['outcome_rate'])}, "
    text += format_count(row["n"], "row")
    if row.get("bar_low") is None or row.get("bar_high") is None:
        return text
    bar = f"{format_share(row['bar_low'])} to {format_share(row['bar_high'])}"
    return f"{text}; {bar} if calibrated: {'outside' if row.get('outside') else 'inside'}"


def format_coordinate(x: float) -> str:
    """Return a coordinate as text, with one decimal at most.

    >>> format_coordinate(12.345), format_coordinate(12.0)
    ('12.3', '12')
    """
    return f"{x:.1f}".removesuffix(".0")


def round_ticks(low: float, high: float) -> list[float]:
    """Return at most seven round ticks from `low` to `high`.

    >>> round_ticks(-0.03, 0.21)
    [0.0, 0.05, 0.1, 0.15, 0.2]
    """
    magnitude = 10.0 ** int(f"{high - low:e}".partition("e")[2])
    step = next(magnitude * share for share in _TICK_SHARES if magnitude * share * _MAX_STEPS >= high - low)
    return [round(i * step, 12) for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class _Frame:
    """Positions in the plot area of pairs of numbers, and its axes."""

    def __init__(self, x_limits: tuple[float, float], y_limits: tuple[float, float], *, is_percent: bool = False):
        self.x_limits, self.y_limits, self.is_percent = x_limits, y_limits, is_percent

    @classmethod
    def square(cls, limit: float) -> _Frame:
        """Return the frame of probabilities from 0 to an upper limit on both axes."""
        return cls((0.0, limit), (0.0, limit), is_percent=True)

    def x(self, value: float) -> float:
        """Return the horizontal position of a value."""
        low, high = self.x_limits
        return LEFT + (RIGHT - LEFT) * min(max((value - low) / (high - low), 0.0), 1.0)

    def y(self, value: float) -> float:
        """Return the vertical position of a value."""
        low, high = self.y_limits
        return BOTTOM - (BOTTOM - TOP) * min(max((value - low) / (high - low), 0.0), 1.0)

    def point(self, x: float, y: float) -> str:
        """Return both positions as text."""
        return f"{format_coordinate(self.x(x))},{format_coordinate(self.y(y))}"

    def axes(self, names: tuple[str, str]) -> str:
        """Draw the grid, the ticks and the names of the axes; x is in percent, y as well if `is_percent`."""
        x_ticks, y_ticks = round_ticks(*self.x_limits), round_ticks(*self.y_limits)
        grid = "".join(map(self._vertical, x_ticks)) + "".join(map(self._horizontal, y_ticks))
        return f'<path class="grid" d="{grid}"/>{self._ticks(x_ticks, y_ticks, names, BOTTOM, BOTTOM + 14)}'

    def square_axes(self, axes: tuple[str, str], under: str = "") -> str:
        """Draw the axes of a square frame with a histogram below it, and the diagonal; `under` is drawn below that."""
        ticks = [self.x_limits[1] * i / 5 for i in range(6)]
        grid = "".join(self._vertical(tick) + self._horizontal(tick) for tick in ticks)
        left, right, top, bottom = map(format_coordinate, (LEFT, RIGHT, TOP, BOTTOM))
        diagonal = f'<path class="diagonal" d="M{left} {bottom}L{right} {top}"/>'
        names = axis_title(axes[0]), axis_title(axes[1])
        texts = self._ticks(ticks, ticks, names, HISTOGRAM_BOTTOM, HISTOGRAM_BOTTOM + 13)
        return f'<path class="grid" d="{grid}"/>{under}{diagonal}{texts}'

    def _vertical(self, x: float) -> str:
        return f"M{format_coordinate(self.x(x))} {TOP:g}V{BOTTOM:g}"

    def _horizontal(self, y: float) -> str:
        return f"M{LEFT:g} {format_coordinate(self.y(y))}H{RIGHT:g}"

    def _ticks(
        self, x_ticks: Sequence[float], y_ticks: Sequence[float], names: tuple[str, str], bottom: float, text_y: float
    ) -> str:
        """Return the texts at the ticks, with those of x at `text_y`, and the names of the axes."""
        x_texts = "".join(
            f'<text x="{format_coordinate(self.x(x))}" y="{text_y:g}">{100 * x:.3g} %</text>' for x in x_ticks
        )
        y_texts = "".join(
            f'<text x="{LEFT - 5:g}" y="{format_coordinate(self.y(y) + 4)}">{self._text(y)}</text>' for y in y_ticks
        )
        middle, center = format_coordinate((LEFT + RIGHT) / 2), format_coordinate((TOP + BOTTOM) / 2)
        return (
            f'<g class="ticks" aria-hidden="true"><g text-anchor="middle">{x_texts}'
            f'<text class="name" x="{middle}" y="{bottom + 31:g}">{escape(names[0])}</text>'
            f'<text class="name" transform="translate(12 {center}) rotate(-90)">{escape(names[1])}</text></g>'
            f'<g text-anchor="end">{y_texts}</g></g>'
        )

    def _text(self, y: float) -> str:
        return f"{100 * y:.3g} %" if self.is_percent else with_minus_signs(f"{y:.3g}")


def _svg_element(content: str, label: str, height: float = HEIGHT, role: str = "img") -> str:
    """Return an SVG element of the page with this content and alternative text."""
    text = f'class="rd" viewBox="0 0 {WIDTH} {height:g}" role="{role}" aria-label="{escape(label)}"'
    return f"<svg {text}>{content}</svg>"


def _part(table: Mapping[str, Sequence[Any]], name: str) -> list[dict[str, Any]]:
    """Return the rows of one part of the table of a diagram."""
    return [row for row in table_rows(table) if row["part"] == name]


def _polyline(kind: str, points: Sequence[str]) -> str:
    return f'<polyline class="{kind}" points="{" ".join(points)}"/>'


def _polygon(band: Sequence[tuple[float, float, float]], frame: _Frame) -> str:
    """Return the area of a band, from the position, the lower and the upper limit of each point; empty without any."""
    upper = [frame.point(x, high) for x, _, high in band]
    lower = [frame.point(x, low) for x, low, _ in reversed(band)]
    return f'<polygon class="band" points="{" ".join(upper + lower)}"/>' if band else ""


def _rect(left: float, right: float, top: float, height: float) -> str:
    """Return a bar of a histogram, with a gap to the next one."""
    size = f'width="{format_coordinate(max(right - left - 1, 1))}" height="{format_coordinate(height)}"'
    return f'<rect x="{format_coordinate(left)}" y="{format_coordinate(top)}" {size}/>'


def _draw_shares(bins: Sequence[Bin], frame: _Frame) -> str:
    """Draw the share of rows in each bin as a histogram below the plot; the largest share has the full height."""
    total = sum(row["n"] for row in bins) or 1
    largest = max((row["n"] for row in bins), default=1) / total or 1
    rects = []
    for row in bins:
        if row.get("low") is not None and row.get("high") is not None:
            left, right = (round(frame.x(row[end]), 1) for end in ("low", "high"))
            height = 30 * (row["n"] / total) / largest
            rects.append(_rect(left, right, HISTOGRAM_BOTTOM - height, height))
    return f'<g class="shares">{"".join(rects)}</g>'


def _draw_bin(row: Bin, frame: _Frame, axes: tuple[str, str], *, is_first: bool) -> str:
    """Draw the mark and the consistency bar of a bin, with an invisible area that receives the pointer events."""
    x, y = frame.point(row["mean_prediction"], row["outcome_rate"]).split(",")
    text = escape(bin_label(row, axes))
    bar = ""
    if row.get("bar_low") is not None and row.get("bar_high") is not None:
        off = " off" if row.get("outside") else ""
        low, high = (format_coordinate(frame.y(row[end])) for end in ("bar_low", "bar_high"))
        bar = f'<path class="bar{off}" d="M{x} {low}V{high}"/>'
    # Bins outside their bar differ in shape, not only in color.
    if row.get("outside"):
        mark = f'<path class="outside" d="M{x} {y}m0-5.5l5.5 5.5-5.5 5.5-5.5-5.5z"/>'
    else:
        mark = f'<circle class="inside" cx="{x}" cy="{y}" r="4"/>'
    left, top, height = (format_coordinate(value) for value in (float(x) - 9, TOP, HISTOGRAM_BOTTOM - TOP))
    area = f'<rect class="hit" x="{left}" y="{top}" width="18" height="{height}"/>'
    return f'<g class="bin" role="img" tabindex="{0 if is_first else -1}" aria-label="{text}">{area}{bar}{mark}</g>'
