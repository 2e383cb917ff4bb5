"""How is a reliability diagram drawn? Crosses, bars, and the strip that shows where the predictions are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.diagrams import ink
from trueodds.diagrams.base import Array, Diagram


class ReliabilityDiagram(Diagram):
    """Crosses, bars and the strip of predictions."""

    foot = ink.STRIP

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        """The classic style is nearly square."""
        return (6.4, 4.6) if self.settings["style"] == "deviation" else (5.6, 5.6)

    def headline(self) -> str:
        """The question, in plain words."""
        if self.lens == "confidence":
            return "When it says 70\u00a0%, is it right 70\u00a0% of the time?"
        return "Does 70\u00a0% come true 70\u00a0% of the time?"

    def axis_labels(self) -> tuple[str, str]:
        """Stated along x, what came along y."""
        seen = "how often it was right" if self.lens == "confidence" else "how often it came true"
        x = "stated confidence" if self.lens == "confidence" else "stated probability"
        return x, f"{seen} − stated" if self.settings["style"] == "deviation" else seen

    def legend(self) -> list[tuple[Any, str]]:
        """Bars and crosses."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        def mark(color: str, **style: Any) -> Any:
            return Line2D([], [], linestyle="none", color=color, **style)

        extra = [(Patch(facecolor=ink.ROWS), "predictions")]
        if self.settings["style"] == "classic":
            extra.insert(0, (Patch(facecolor=ink.GAP), "gap"))
        if self.settings["bars"] is None:
            return [(mark(ink.INSIDE, **_INSIDE), "seen"), *extra]
        level = f"{100 * self.settings['level']:.4g}\u00a0%"
        together = ", all at once" if self.settings["simultaneous"] else ""
        if self.settings["bars"] == "consistency":
            bar = Line2D([], [], color=ink.INSIDE_BAR, linewidth=7, solid_capstyle="butt")
            return [
                (bar, f"range if calibrated ({level}{together})"),
                (mark(ink.INSIDE, **_INSIDE), "seen, inside"),
                (mark(ink.OUTSIDE, **_OUTSIDE), "seen, outside"),
                *extra,
            ]
        return [
            (mark(ink.INSIDE, **_INSIDE), f"seen ({level} interval{together})"),
            (mark(ink.OUTSIDE, **_OUTSIDE), "misses what was stated"),
            *extra,
        ]

    def paint(self, ax: Any, panel: int) -> None:
        """One view."""
        rows, view = self.rows(panel), {name: column[panel] for name, column in self.panels.items()}
        size = ink.type_size(ax)
        deviation = self.settings["style"] == "deviation"
        ink.dress(ax, size)
        ink.probability_axis(ax)
        ink.above_strip(ax, view["y_low"], view["y_high"], _ticks(ax, view["y_low"], view["y_high"], deviation))
        ax.yaxis.set_major_formatter(_signed if deviation else _plain)
        if deviation:
            ax.axhline(0, color=ink.FAINT, linewidth=1, zorder=1.5)
        else:
            ax.plot([0, 1], [0, 1], color=ink.FAINT, linewidth=1, zorder=1.5)
            ink.boxes(
                ax,
                rows["low"],
                rows["high"],
                rows["mean_prediction"],
                rows["outcome_rate"],
                facecolor=ink.GAP,
                edgecolor="none",
                zorder=1.2,
                label="gap",
            )
        x, y = rows["mean_prediction"], rows["deviation" if deviation else "outcome_rate"]
        outside = rows.get("outside", np.zeros(len(x), dtype=bool))
        thick = ink.bar_width(ax, len(x))
        if self.settings["bars"] is not None:
            _cut(ax, rows, view["y_low"], view["y_high"])
            _bars(ax, rows, thick, around_zero=self.settings["bars"] == "consistency")
        wide = ink.inches(ax)[0] > 3.4
        scale = 1.0 if wide and len(x) <= 30 else 0.7
        for which, color, mark in ((~outside, ink.INSIDE, _INSIDE), (outside, ink.OUTSIDE, _OUTSIDE)):
            style = {
                **mark,
                "markersize": mark["markersize"] * scale,
                "markeredgewidth": mark["markeredgewidth"] * scale,
            }
            ax.plot(x[which], y[which], linestyle="none", color=color, zorder=4, label="crosses", **style)
        ink.strip(ax, rows["low"], rows["high"], rows["share"], view["tallest"], size, label=wide)
        if wide and deviation:
            _sides(ax, size, view["y_low"], view["y_high"], confident=self.lens == "confidence")


_INSIDE: dict[str, Any] = {"marker": "x", "markersize": 7.0, "markeredgewidth": 1.8}
_OUTSIDE: dict[str, Any] = {"marker": "X", "markersize": 8.5, "markeredgecolor": "white", "markeredgewidth": 0.6}


def _bars(ax: Any, rows: Mapping[str, Array], thick: float, *, around_zero: bool) -> None:
    x, low, high, outside = (rows[name] for name in ("mean_prediction", "bar_low", "bar_high", "outside"))
    if around_zero:
        colors = np.where(outside, ink.OUTSIDE_BAR, ink.INSIDE_BAR)
        ax.vlines(x, low, high, colors=colors, linewidth=thick, zorder=2, label="bars")
        # A bar without length, where chance has no say, is still seen by its ends.
        for end in (low, high):
            ax.scatter(x, end, marker="_", s=(thick + 2) ** 2, c=colors, linewidths=1.2, zorder=2.1)
        return
    colors = np.where(outside, ink.OUTSIDE, ink.INSIDE)
    ax.vlines(x, low, high, colors=colors, linewidth=1.3, zorder=3, label="bars")
    for end in (low, high):
        ax.scatter(x, end, marker="_", s=(0.6 * thick + 3) ** 2, c=colors, linewidths=1.3, zorder=3)


def _cut(ax: Any, rows: Mapping[str, Array], low: float, high: float) -> None:
    """Small arrows where a bar goes on beyond the picture."""
    for edge, marker, beyond in ((high, "^", rows["bar_high"] > high), (low, "v", rows["bar_low"] < low)):
        x = rows["mean_prediction"][beyond]
        ax.scatter(x, np.full(len(x), edge), marker=marker, s=14, color=ink.FAINT, zorder=3.5, clip_on=False)


def _sides(ax: Any, size: float, low: float, high: float, *, confident: bool) -> None:
    """What above and below zero mean, along the right edge, where there is room."""
    above, below = ("underconfident →", "← overconfident") if confident else ("said too little →", "← said too much")
    points = 72 * ink.inches(ax)[1] * 0.8 * (1 - ink.STRIP) / (high - low)  # title and labels will take a fifth
    for text, reach, sign, where in ((above, high, 1, "bottom"), (below, -low, -1, "top")):
        if ink.width(text, size - 1.5) < points * reach:
            style = {"fontsize": size - 1.5, "color": ink.FAINT, "rotation": 90, "ha": "left", "va": where}
            ax.annotate(
                text,
                (1.015, 0),
                xycoords=ax.get_yaxis_transform(),
                xytext=(0, 5 * sign),
                textcoords="offset points",
                gid="side",
                **style,
            )


def _ticks(ax: Any, low: float, high: float, deviation: bool) -> list[float]:
    from matplotlib.ticker import MaxNLocator

    room = ink.inches(ax)[1]
    if not deviation:
        return [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] if room > 2 else [0.0, 0.5, 1.0]
    most = 8 if room > 2.5 else 5 if room > 1 else 3
    return [float(tick) for tick in MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)]


def _signed(value: float, _: Any = None) -> str:
    if abs(value) < 1e-9:
        return "0"
    return f"{100 * value:+.3g}\u00a0%".replace("-", "−")


def _plain(value: float, _: Any = None) -> str:
    return f"{100 * value:.3g}\u00a0%"
