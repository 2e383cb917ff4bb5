"""Draw the calibration belt: nested confidence regions, the fitted curve and the ranges off the diagonal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.reliability_plots import UnitSquarePlot
from trueodds.diagrams.table_columns import select_part

BAND_SHADES = (
    "#E1E6EB",
    "#BCC6D0",
    "#96A3B0",
    "#73818F",
)  # from the widest band, the lightest, inward; distinct in gray
OUTLINE_COLOR = "#75828F"  # outline of the widest band, which keeps it visible where it is hardly wider than the next


class CalibrationBeltPlot(UnitSquarePlot):
    """The calibration belt: nested bands, curve, diagonal and the strip of predictions."""

    layers = ("belt", "curve", "diagonal", "ranges", "strip")
    view_order = "smallest p"
    figure_size = (5.2, 6.4)

    def ranges(self) -> dict[str, Array]:
        """Return the ranges over which each band excludes the diagonal.

        Returns
        -------
        dict of str to ndarray
            view, level, side (`above` or `below` the diagonal), start and stop; one entry per range.
        """
        mask = self.table["part"] == "range"
        names = {"view": "view", "level": "level", "side": "side", "start": "x_low", "stop": "x_high"}
        return {name: self.table[column][mask] for name, column in names.items()}

    def legend(self) -> list[tuple[Any, str]]:
        """Bands with their levels, curve and diagonal."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        if self.has("belt"):
            band_shades = self._shades_by_level()
            if self.has_long_labels:
                entries += [
                    (
                        Patch(facecolor=shade, edgecolor=_outline_color(i), linewidth=0.8),
                        f"{100 * level:.4g}\u00a0% simultaneous band",
                    )
                    for i, (level, shade) in enumerate(band_shades)
                ]
            else:
                band_entries = [
                    Line2D([], [], color=shade, linewidth=3.6 / i, solid_capstyle="butt")
                    for i, (_, shade) in enumerate(band_shades[1:], 1)
                ]
                levels = ", ".join(f"{100 * level:.4g}" for level, _ in band_shades)
                entries.append(
                    (
                        (Patch(facecolor=band_shades[0][1], edgecolor=OUTLINE_COLOR, linewidth=0.8), *band_entries),
                        f"bands, {levels}\u00a0%",
                    )
                )
        if self.has("curve"):
            degrees = self.panels["degree"]
            degree_text = f", degree {degrees[0]}" if len(degrees) == 1 and self.has_long_labels else ""
            entries.append((Line2D([], [], color=styling.INSIDE_COLOR, linewidth=1.8), f"fitted curve{degree_text}"))
        shared_entries = self.shared_legend_entries()
        if self.has("ranges") and self._outside_mask(self.table).any():
            widest = f"{100 * self.settings['levels'][-1]:.4g}\u00a0%"
            label = f"diagonal outside the {widest} band" if self.has_long_labels else "outside"
            shared_entries.insert(
                int(self.has("diagonal")), (Line2D([], [], color=styling.OUTSIDE_COLOR, linewidth=3), label)
            )
        return entries + shared_entries

    def _shades_by_level(self) -> list[tuple[float, str]]:
        """The levels, widest band first, and their colors."""
        levels = self.settings["levels"][::-1]
        return list(zip(levels, BAND_SHADES[::2] if len(levels) == 2 else BAND_SHADES, strict=False))

    def _outside_mask(self, rows: Mapping[str, Array]) -> Array:
        """The rows with the ranges over which the widest band excludes the diagonal."""
        return np.asarray((rows["part"] == "range") & (rows["level"] == self.settings["levels"][-1]))

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        rows, size = self.rows(panel), styling.font_size(ax)
        is_wide = self.draw_axes(ax, size)
        if self.has("strip"):
            shares, max_share = select_part(rows, "strip"), float(self.panels["tallest"][panel])
            styling.draw_strip(
                ax, shares["x_low"], shares["x_high"], shares["rate"], max_share, size, shows_max_share=is_wide
            )
        if self.has("belt"):
            for i, (level, shade) in enumerate(self._shades_by_level()):
                mask = (rows["part"] == "belt") & (rows["level"] == level)
                x, low, high = (rows[name][mask] for name in ("x_low", "low", "high"))
                style: dict[str, Any] = {"zorder": 1.3 + i / 100, "label": f"belt {level:g}"}
                ax.fill_between(
                    x, low, high, facecolor=shade, edgecolor=_outline_color(i), linewidth=0 if i else 0.8, **style
                )
                if len(x) == 1:  # a single predicted probability: draw the band as a line
                    ax.vlines(x, low, high, colors=shade, linewidth=7, **style)
        if self.has("ranges"):
            outside_mask = self._outside_mask(rows)
            for low, high in zip(rows["x_low"][outside_mask], rows["x_high"][outside_mask], strict=True):
                style = {"marker": "s", "markersize": 4} if low == high else {"solid_capstyle": "butt"}
                ax.plot(
                    [low, high],
                    [low, high],
                    color=styling.OUTSIDE_COLOR,
                    linewidth=3,
                    zorder=2.5,
                    label="range",
                    **style,
                )
        if self.has("curve"):
            mask = rows["part"] == "curve"
            point_style = {"marker": "o", "markersize": 4} if mask.sum() == 1 else {}
            x, y = rows["x_low"][mask], rows["rate"][mask]
            ax.plot(
                x,
                y,
                color=styling.INSIDE_COLOR,
                linewidth=1.8 if is_wide else 1.3,
                zorder=3,
                label="curve",
                **point_style,
            )


def _outline_color(band_index: int) -> str:
    """Return the color of the outline of a band: only the widest, the first, has one."""
    return "none" if band_index else OUTLINE_COLOR
