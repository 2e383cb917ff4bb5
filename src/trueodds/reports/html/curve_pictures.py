"""Draw calibration belts, decision curves and confidence histograms as SVG elements of an HTML page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from trueodds.core.formatting import with_minus_signs
from trueodds.reports.html.reliability_svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Bin,
    Scale,
    axis_title,
    draw_axes,
    draw_shares,
    format_coordinate,
    svg_element,
    upper_limit,
)

_MAX_STEPS = 6  # steps from tick to tick
_TICK_SHARES = (0.1, 0.2, 0.25, 0.5, 1.0, 2.0)  # steps as shares of the power of ten of the range
_HEIGHT_WITHOUT_HISTOGRAM = BOTTOM + 40


def belt_svg(table: Mapping[str, Sequence[Any]], label: str) -> str:
    """Draw the widest band of a calibration belt, its curve, and the histogram of the predictions.

    `table` is that of the diagram; `label` is the alternative text.
    """
    curve, belt, strip = (_rows(table, part) for part in ("curve", "belt", "strip"))
    widest = max(row["level"] for row in belt)
    band = [row for row in belt if row["level"] == widest]
    points = [{"mean_prediction": row["x_low"], "outcome_rate": row["rate"]} for row in curve]
    limit = upper_limit([*points, *({"mean_prediction": row["x_low"], "outcome_rate": row["high"]} for row in band)])
    scale = Scale(limit)
    # The heights are relative to the largest one, so that shares serve as counts.
    bins: list[Bin] = [{"n": row["rate"], "low": row["x_low"], "high": row["x_high"]} for row in strip]
    upper = [f"{scale.x(row['x_low'])},{scale.y(row['high'])}" for row in band]
    lower = [f"{scale.x(row['x_low'])},{scale.y(row['low'])}" for row in reversed(band)]
    line = " ".join(f"{scale.x(row['x_low'])},{scale.y(row['rate'])}" for row in curve)
    return svg_element(
        f"{draw_axes(scale, ('predicted', 'observed'), under=_polygon(upper + lower))}{draw_shares(bins, scale)}"
        f'<polyline class="curve" points="{line}"/>',
        label,
    )


def decision_svg(table: Mapping[str, Sequence[Any]], limits: Mapping[str, float], label: str) -> str:
    """Draw the net benefit of the predictions with its band, of treating everyone, and of treating no one.

    `limits` are those of the axes, as in `panels` of the diagram.
    """
    rows = _rows(table, "curve")
    low, high = max(limits["y_low"], -0.25 * limits["y_high"]), limits["y_high"]
    frame = _Frame((0.0, max(limits["x_high"], 1e-9)), (low, high))
    banded = [row for row in rows if row["low"] is not None]
    upper = [frame.point(row["threshold"], row["high"]) for row in banded]
    lower = [frame.point(row["threshold"], row["low"]) for row in reversed(banded)]
    visible = [row for row in rows if row["treat_all"] >= low]
    lines = (
        _polyline("alternative", [frame.point(row["threshold"], row["treat_all"]) for row in visible]),
        _polyline("zero", [frame.point(0.0, 0.0), frame.point(limits["x_high"], 0.0)]),
        _polyline("curve", [frame.point(row["threshold"], row["net_benefit"]) for row in rows]),
    )
    drawn = f"{frame.axes(('Threshold probability', 'Net benefit'))}{_polygon(upper + lower)}{''.join(lines)}"
    return svg_element(drawn, label, _HEIGHT_WITHOUT_HISTOGRAM)


def histogram_svg(
    table: Mapping[str, Sequence[Any]], totals: Mapping[str, float | None], names: tuple[str, str], label: str
) -> str:
    """Draw the histogram of the predictions, and their mean beside the observed rate with its consistency range.

    `totals` is the row of `panels` of the diagram, and `names` are those of the axes of the reliability diagram.
    """
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    rows = [row for row in rows if None not in (row["low"], row["high"], row["share"])]  # a bin that is not known
    largest = totals["top"] or 1.0
    frame = _Frame((0.0, 1.0), (0.0, largest), is_percent=True)
    bars = []
    for row in rows:
        left, right = frame.x(row["low"]), frame.x(row["high"])
        top = frame.y(row["share"])
        size = f'width="{format_coordinate(max(right - left - 1, 1))}" height="{format_coordinate(BOTTOM - top)}"'
        bars.append(f'<rect x="{format_coordinate(left)}" y="{format_coordinate(top)}" {size}/>')
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
    return svg_element(f"{drawn}{span}{''.join(lines)}", label, _HEIGHT_WITHOUT_HISTOGRAM)


def _rows(table: Mapping[str, Sequence[Any]], part: str) -> list[dict[str, Any]]:
    rows = (dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True))
    return [row for row in rows if row["part"] == part]


def _polyline(kind: str, points: Sequence[str]) -> str:
    return f'<polyline class="{kind}" points="{" ".join(points)}"/>'


def _polygon(points: Sequence[str]) -> str:
    return f'<polygon class="band" points="{" ".join(points)}"/>' if points else ""


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
        left, right, top, bottom = (format_coordinate(x) for x in (LEFT, RIGHT, TOP, BOTTOM))
        grid = "".join(f"M{format_coordinate(self.x(x))} {top}V{bottom}" for x in x_ticks)
        grid += "".join(f"M{left} {format_coordinate(self.y(y))}H{right}" for y in y_ticks)
        x_texts = "".join(
            f'<text x="{format_coordinate(self.x(x))}" y="{format_coordinate(BOTTOM + 14)}">{100 * x:.3g} %</text>'
            for x in x_ticks
        )
        y_texts = "".join(
            f'<text x="{format_coordinate(LEFT - 5)}" y="{format_coordinate(self.y(y) + 4)}">{self._text(y)}</text>'
            for y in y_ticks
        )
        middle, center = format_coordinate((LEFT + RIGHT) / 2), format_coordinate((TOP + BOTTOM) / 2)
        return (
            f'<path class="grid" d="{grid}"/><g class="ticks" aria-hidden="true"><g text-anchor="middle">{x_texts}'
            f'<text class="name" x="{middle}" y="{format_coordinate(BOTTOM + 31)}">{escape(names[0])}</text>'
            f'<text class="name" transform="translate(12 {center}) rotate(-90)">{escape(names[1])}</text></g>'
            f'<g text-anchor="end">{y_texts}</g></g>'
        )

    def _text(self, y: float) -> str:
        return f"{100 * y:.3g} %" if self.is_percent else with_minus_signs(f"{y:.3g}")
