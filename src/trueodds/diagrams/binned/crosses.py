"""How is a reliability diagram drawn? Crosses, bars, and the strip that shows where the predictions are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.diagrams.base import Array, Diagram
from trueodds.diagrams.drawing import ink, layout


class ReliabilityDiagram(Diagram):
    """Crosses, bars and the strip of predictions."""

    layers = ("bars", "crosses", "strip", "gaps", "sides")

    @property
    def foot(self) -> float:  # type: ignore[override]
        """The strip's part of the height."""
        return ink.STRIP if self.has("strip") else 0.0

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
        """Bars, crosses, gaps and predictions, as far as they are drawn."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        found: list[tuple[Any, str]] = []
        kind = self.settings["bars"]
        level = f"{100 * self.settings['level']:.4g}\u00a0%{', all at once' if self.settings['simultaneous'] else ''}"
        crosses, bars = self.has("crosses"), self.has("bars") and kind is not None
        if bars and kind == "consistency":
            # Of the color that is drawn: where every cross is outside, no bar is gray.
            color = ink.OUTSIDE_BAR if self._sides_drawn() == (False, True) else ink.INSIDE_BAR
            bar = Line2D([], [], color=color, linewidth=7, solid_capstyle="butt")
            found.append((bar, f"range if calibrated ({level})"))
        elif bars and not crosses:
            found.append((Line2D([], [], color=ink.INSIDE, linewidth=1.3), f"interval of what was seen ({level})"))
        if crosses:
            # Without the bars their level stands beside the crosses that they judged.
            inside, outside = {
                (None, False): ("seen", ""),
                ("consistency", True): ("seen, inside", "seen, outside"),
                ("consistency", False): (f"seen, inside the range if calibrated ({level})", "seen, outside"),
                ("confidence", True): (f"seen ({level} interval)", "misses what was stated"),
                ("confidence", False): (f"seen, its interval holds what was stated ({level})", "misses it"),
            }[kind, bars]
            stays, strays = self._sides_drawn()
            if not stays and kind is not None:  # the level stands beside the one that is drawn
                outside = {
                    ("consistency", True): outside,
                    ("consistency", False): f"seen, outside the range if calibrated ({level})",
                    ("confidence", True): f"misses what was stated ({level} interval)",
                    ("confidence", False): f"seen, its interval misses what was stated ({level})",
                }[kind, bars]
            both = ((ink.INSIDE, _INSIDE, inside, stays), (ink.OUTSIDE, _OUTSIDE, outside, strays))
            for color, style, words, some in both:
                if words and some:
                    found.append((Line2D([], [], linestyle="none", color=color, **style), words))
        if self.settings["style"] == "classic" and self.has("gaps"):
            found.append((Patch(facecolor=ink.GAP), "gap"))
        if self.has("strip"):
            found.append((Patch(facecolor=ink.ROWS), "predictions"))
        return found or [(Line2D([], [], color=ink.FAINT, linewidth=1), "came as stated")]

    def _sides_drawn(self) -> tuple[bool, bool]:
        """Whether a cross of the panels drawn lies inside its range, and whether one lies outside."""
        if "bins_outside" not in self.panels:
            return True, False
        bins, outside = (self.panels[name][: layout.PANELS] for name in ("bins", "bins_outside"))
        return bool((bins > outside).any()), bool(outside.sum())

    def paint(self, ax: Any, panel: int) -> None:
        """One view."""
        rows, view = self.rows(panel), {name: column[panel] for name, column in self.panels.items()}
        size = ink.type_size(ax)
        deviation = self.settings["style"] == "deviation"
        ink.dress(ax, size)
        ink.probability_axis(ax)
        ticks = _ticks(ax, view["y_low"], view["y_high"], deviation)
        if self.has("strip"):
            ink.above_strip(ax, view["y_low"], view["y_high"], ticks)
        else:
            ax.set_ylim(view["y_low"], view["y_high"])
            ax.set_yticks([tick for tick in ticks if view["y_low"] <= tick <= view["y_high"]])
        ax.yaxis.set_major_formatter(_signed if deviation else _plain)
        if deviation:
            ax.axhline(0, color=ink.FAINT, linewidth=1, zorder=1.5)
        else:
            ax.plot([0, 1], [0, 1], color=ink.FAINT, linewidth=1, zorder=1.5)
        if not deviation and self.has("gaps"):
            _gaps(ax, rows)
        if self.settings["bars"] is not None and self.has("bars"):
            _cut(ax, rows, view["y_low"], view["y_high"])
            thick = ink.bar_width(ax, len(rows["low"]))
            _bars(ax, rows, thick, around_zero=self.settings["bars"] == "consistency")
        wide = ink.inches(ax)[0] > 3.4
        if self.has("crosses"):
            _crosses(ax, rows, "deviation" if deviation else "outcome_rate", wide=wide)
        if self.has("strip"):
            ink.strip(ax, *_shares(rows, view), view["tallest"], size, label=wide)
        if wide and deviation and self.has("sides"):
            _sides(ax, size, view["y_low"], view["y_high"], confident=self.lens == "confidence")


def reach(tables: Sequence[Mapping[str, Array]]) -> tuple[float, float]:
    """Of deviations: all crosses, and the bars of bins that hold at least one row in a hundred."""
    low, high = [-0.02], [0.02]
    for table in tables:
        low.append(float(table["deviation"].min()))
        high.append(float(table["deviation"].max()))
        if "outside" in table:
            many = table["share"] >= 0.01
            low.append(float(table["bar_low"][many].min(initial=0)))
            high.append(float(table["bar_high"][many].max(initial=0)))
    margin = 0.08 * (max(high) - min(low))
    return min(low) - margin, max(high) + margin


_INSIDE: dict[str, Any] = {"marker": "x", "markersize": 7.0, "markeredgewidth": 1.8}
_OUTSIDE: dict[str, Any] = {"marker": "X", "markersize": 8.5, "markeredgecolor": "white", "markeredgewidth": 0.6}


def _shares(rows: Mapping[str, Array], view: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Edges and shares of the strip: those of the bins, unless they differ in width, so that heights would mislead."""
    if "strip" not in view:
        return rows["low"], rows["high"], rows["share"]
    held = np.flatnonzero(view["strip"])
    count = len(view["strip"])
    return held / count, (held + 1) / count, view["strip"][held]


def _gaps(ax: Any, rows: Mapping[str, Array]) -> None:
    style = {"facecolor": ink.GAP, "edgecolor": "none", "zorder": 1.2, "label": "gap"}
    ink.boxes(ax, rows["low"], rows["high"], rows["mean_prediction"], rows["outcome_rate"], **style)


def _crosses(ax: Any, rows: Mapping[str, Array], height: str, *, wide: bool) -> None:
    x, y = rows["mean_prediction"], rows[height]
    outside = rows.get("outside", np.zeros(len(x), dtype=bool))
    scale = 1.0 if wide and len(x) <= 30 else 0.7
    for which, color, mark in ((~outside, ink.INSIDE, _INSIDE), (outside, ink.OUTSIDE, _OUTSIDE)):
        sizes = {name: mark[name] * scale for name in ("markersize", "markeredgewidth")}
        ax.plot(x[which], y[which], linestyle="none", color=color, zorder=4, label="crosses", **(mark | sizes))


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
