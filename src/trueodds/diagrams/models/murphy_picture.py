"""How are Murphy curves drawn? One line for each model, underlaid where it differs from the first beyond chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.drawing import styling
from trueodds.diagrams.models import below
from trueodds.diagrams.models.lineup import COLORS, DASHES, MARKS, called, in_legend
from trueodds.diagrams.models.wording import number, range_of

PARTS = {"mcb": (0, (4, 1.5)), "dsc": (0, (1.2, 1.2)), "unc": (0, (6, 1.5, 1.2, 1.5))}
BEYOND: dict[str, Any] = {"linewidth": 4.5, "alpha": 0.3, "solid_capstyle": "butt"}
POINTS = 20  # thresholds that were given, up to which each has a mark: of one alone a line is nothing
PART_LABELS = {"mcb": "miscalibration", "dsc": "discrimination", "unc": "uncertainty"}


class MurphyDiagram(Diagram):
    """Curves with bands, strips and numbers."""

    layers = ("curves", "band", "beyond", "parts", "strip", "numbers")
    unit = "rows"
    ranked = "largest miscalibration"

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        """Numbers take a line for each model."""
        return 6.4, below.height(
            self, 6.4, 4.7, self.strip_height, below.lines(len(self.names)) if self._shows_numbers else 0.0
        )

    @property
    def strip_height(self) -> float:  # type: ignore[override]
        """The strips' part of the height."""
        return below.strip_height_of(len(self.names)) if self.has("strip") else 0.0

    @property
    def names(self) -> list[str]:
        """The models in their order."""
        return list(self.settings["models"])

    @property
    def _shows_numbers(self) -> bool:
        return self.has("numbers") and len(self.names) > 1 and len(self.panels["view"]) == 1

    @property
    def _banded(self) -> bool:
        return self.settings["banded"] and self.has("band") and bool((self.table["part"] == "band").any())

    @property
    def _parted(self) -> bool:
        return bool(self.settings["parts"]) and self.has("parts")

    @property
    def _shows_difference(self) -> bool:
        return self.has("beyond") and bool((np.abs(self.table["beyond"][self.table["part"] == "band"]) == 1).any())

    @property
    def _at_points(self) -> bool:
        thresholds = self.settings["thresholds"]
        return isinstance(thresholds, list) and len(thresholds) <= POINTS

    def headline(self) -> str:
        """The question, in plain words."""
        if len(self.names) == 1:
            return "What do decisions by these probabilities cost?"
        return "For whose decisions is which model the better one?"

    def axis_labels(self) -> tuple[str, str]:
        """The threshold along x, the cost along y."""
        return "threshold above which one acts", "mean cost of decisions"

    def legend(self) -> list[tuple[Any, str]]:
        """The models, and what else is drawn."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        alone = len(self.names) == 1
        entries: list[tuple[Any, str]] = []
        if self.has("curves"):
            for i, name in enumerate(self.names):
                mark: dict[str, Any] = {"marker": MARKS[i], "markersize": 4} if self._at_points else {}
                line = Line2D([], [], color=COLORS[i], linestyle=DASHES[i], linewidth=1.6, **mark)
                entries.append((line, "cost" if alone else in_legend(name)))
        if self._banded:
            level = f"{100 * self.settings['level']:.4g}\u00a0% interval"
            entries.append((Patch(facecolor=COLORS[0] if alone else styling.FAINT, alpha=0.22), level))
        if self._parted:
            for part, dashes in PARTS.items():
                color = styling.FAINT if part == "unc" or not alone else COLORS[0]
                entries.append((Line2D([], [], color=color, linestyle=dashes, linewidth=1.3), PART_LABELS[part]))
        if self._shows_difference:
            thick = Line2D([], [], color=styling.FAINT, **BEYOND)
            level = f"{100 * self.settings['level']:.4g}\u00a0%"
            entries.append((thick, f"differs from {in_legend(self.names[0])} ({level})"))
        if self.has("strip"):
            entries.append((Patch(facecolor=COLORS[0] if alone else styling.FAINT, alpha=0.55), "predictions"))
        return entries

    def paint(self, ax: Any, panel: int) -> None:
        """One view."""
        rows, view = self.rows(panel), {name: column[panel] for name, column in self.panels.items()}
        size = styling.type_size(ax)
        styling.dress(ax, size)
        styling.probability_axis(ax)
        high = float(view["y_high"])
        styling.above(ax, 0.0, high, self.strip_height)
        _ticked(ax, high)
        small = styling.inches(ax)[0] < 3.4
        for i, name in enumerate(self.names):
            self._model(ax, i, {part: _of(rows, name, part) for part in ("curve", "band")}, small=small)
        if self._parted:
            curve = _of(rows, self.names[0], "curve")
            style: dict[str, Any] = {"color": styling.FAINT, "linestyle": PARTS["unc"], "label": "unc", "zorder": 2.4}
            ax.plot(curve["threshold"], curve["unc"], linewidth=1.1, **style)
        if self.has("strip"):
            tables = [_of(rows, name, "strip") for name in self.names]
            below.strips(ax, tables, self.strip_height, float(view["tallest"]))
        if self._shows_numbers and below.fit(ax, len(self.names)):
            self._numbers(ax, rows, size - 0.5)

    def _model(self, ax: Any, i: int, parts: Mapping[str, Mapping[str, Array]], *, small: bool) -> None:
        curve, band = parts["curve"], parts["band"]
        x, color = curve["threshold"], COLORS[i]
        if self._banded and len(band["threshold"]):
            limits = band["threshold"], band["low"], band["high"]
            if self._at_points:
                ax.vlines(*limits, color=color, alpha=0.35, linewidth=3, zorder=2, label="band")
            else:
                ax.fill_between(*limits, color=color, alpha=0.2, linewidth=0, zorder=2, label="band")
        if self.has("curves"):
            wide = 1.1 if small else 1.6
            mark = {"marker": MARKS[i], "markersize": 3 if small else 4} if self._at_points else {}
            style: dict[str, Any] = {"linestyle": DASHES[i], "linewidth": wide, "zorder": 3.2, "label": "curve"}
            ax.plot(x, curve["score"], color=color, **style, **mark)
        if self.has("beyond") and len(band["threshold"]):
            at = np.where(np.abs(band["beyond"]) == 1, band["score"], np.nan)
            if np.isfinite(at).any():
                # Behind all curves, pale and cut off square: seven such strokes must not hide what they judge.
                under = BEYOND | ({"linewidth": 3.0} if small else {}) | ({"marker": "o"} if self._at_points else {})
                ax.plot(band["threshold"], at, color=color, zorder=2.5, label="beyond", markersize=10, **under)
        if self._parted:
            for part in ("mcb", "dsc"):
                style = {"linestyle": PARTS[part], "linewidth": 0.9 if small else 1.2, "label": part}
                ax.plot(x, curve[part], color=color, marker="." if self._at_points else None, **style)

    def _numbers(self, ax: Any, rows: Mapping[str, Array], size: float) -> None:
        tables = [_of(rows, name, "model") for name in self.names]
        score = {"brier": "Brier", "log_loss": "log loss"}[self.settings["score"]]
        below.numbers(ax, self.names, columns_of(tables, self.names[0], score, size), size)


def columns_of(tables: list[dict[str, Array]], first: str, score: str, size: float) -> list[tuple[str, list[str]]]:
    """Score, its parts and the difference to the first model, in words for the small table."""
    rows = [{name: float(values[0]) for name, values in table.items() if values.dtype.kind == "f"} for table in tables]
    differ = [
        "–" if i == 0 else number(row["difference"]) + range_of(row["difference_low"], row["difference_high"])
        for i, row in enumerate(rows)
    ]
    return [
        (score, [number(row["score"]) for row in rows]),
        ("MCB", [number(row["mcb"]) for row in rows]),
        ("DSC", [number(row["dsc"]) for row in rows]),
        (f"minus {styling.shortened(called(first), 60, size)}", differ),
    ]


def _of(rows: Mapping[str, Array], name: str, part: str) -> dict[str, Array]:
    mask = (rows["model"] == name) & (rows["part"] == part)
    return {column: values[mask] for column, values in rows.items()}


def _ticked(ax: Any, high: float) -> None:
    from matplotlib.ticker import MaxNLocator

    room = styling.inches(ax)[1]
    ticks = MaxNLocator(6 if room > 2.5 else 4 if room > 1 else 2).tick_values(0.0, high)
    ax.set_yticks([float(tick) for tick in ticks if 0 <= tick <= high])
