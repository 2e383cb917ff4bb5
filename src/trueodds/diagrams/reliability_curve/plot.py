"""Draw the reliability curve with its band and reference curve above a strip of the predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.reliability_plots import UnitSquarePlot
from trueodds.diagrams.table_columns import select_part

MIN_OPAQUE_EFFECTIVE_N = 20  # effective sample size below which the band is drawn fainter


class LocalEstimate(NamedTuple):
    """The recalibrated probability of one prediction, or NaN with the reason."""

    probability: float
    low: float
    high: float
    error: float  # curve minus reference: positive where the model underpredicts
    reason: str = ""


class ReliabilityCurveDiagram(UnitSquarePlot):
    """The reliability curve: curve, band, reference, strip and diagonal."""

    layers = ("band", "curve", "reference", "strip", "diagonal")
    figure_size = (5.2, 6.7)
    view_order = "largest local error"

    def at(self, score: float, view: str | None = None) -> LocalEstimate:
        """Return the recalibrated probability of a prediction, with limits.

        Parameters
        ----------
        score : float
            The predicted probability.
        view : str, optional
            Name of the view. By default that of the first panel.

        Returns
        -------
        LocalEstimate
            Interpolated linearly between the points of the table. The probability is that of the curve without the bias
            of smoothing at the diagonal, so it can differ from the drawn curve. The limits are those of the confidence
            band, and NaN with another band. Everything is NaN if no prediction lies within a bandwidth of the score;
            `reason` then says so.

        Raises
        ------
        InputError
            TO203 for a score that is not a probability, and for an unknown view.

        Examples
        --------
        >>> from trueodds.diagrams.reliability_curve.compute import ReliabilityCurve
        >>> from trueodds.lenses.view import View
        >>> p, y = np.tile([0.5, 0.9], 40), np.tile([0, 1, 1, 0, 0, 1, 1, 1], 10)
        >>> diagram = ReliabilityCurve(bandwidth=0.05, scale="probability")([View(p, y, name="positive")])
        >>> [round(x, 2) for x in diagram.at(0.9)[:4]], diagram.at(0.2).reason
        ([0.75, 0.61, 0.86, -0.15], 'No prediction lies within a bandwidth (0.05) of 0.2.')
        """
        if isinstance(score, bool) or not isinstance(score, (int, float, np.number)) or not 0 <= float(score) <= 1:
            raise InputError("TO203", "score must be a probability.", describe(score), "For instance at(0.9).")
        view_names = self.panels["view"].tolist()
        if view is not None and view not in view_names:
            raise InputError(
                "TO203", "The diagram has no such view.", describe(view), f"Use one of {', '.join(view_names[:8])}."
            )
        panel = 0 if view is None else view_names.index(view)
        rows = select_part(self.rows(panel), "curve")
        x = float(score)
        after = min(int(np.searchsorted(rows["score"], x, "left")), len(rows["score"]) - 1)
        before = after if rows["score"][after] == x else after - 1
        ends = [max(before, 0), after]
        nan = float("nan")
        if before < 0 or x > rows["score"][after] or rows["piece"][ends[0]] != rows["piece"][after]:
            width, scale = self.panels["bandwidth"][panel], self.panels["scale"][panel]
            unit = " of log odds" if scale == "logit" else ""
            return LocalEstimate(
                nan, nan, nan, nan, f"No prediction lies within a bandwidth ({width:.3g}{unit}) of {x:.6g}."
            )
        probability, low, high, error = (
            float(np.interp(x, rows["score"][ends], rows[name][ends]))
            for name in ("probability", "probability_low", "probability_high", "error")
        )
        reason = "" if low == low else "Limits need band='confidence' and a view that is drawn."
        return LocalEstimate(probability, low, high, error, reason)

    def legend(self) -> list[tuple[Any, str]]:
        """The legend entries of the layers that are drawn."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        if self.has("curve"):
            curve_label = "observed, smoothed" if self.has_long_labels else "observed"
            entries.append((Line2D([], [], color=styling.INSIDE_COLOR, linewidth=1.8), curve_label))
            if self.table["outside"].any():
                entries.append((Line2D([], [], color=styling.OUTSIDE_COLOR, linewidth=3.2), self._outside_label()))
        if self.settings["band"] and self.has("band"):
            entries.append((Patch(facecolor=styling.INSIDE_BAR_COLOR), self._band_label()))
        if self.has("reference"):
            entries.append(
                (
                    Line2D([], [], **_REFERENCE_LINE_STYLE),
                    "expected if calibrated" if self.has_long_labels else "if calibrated",
                )
            )
        return entries + self.shared_legend_entries()

    def _outside_label(self) -> str:
        """The label of the marked parts of the curve in the legend."""
        if self.settings["band"] == "confidence":  # the band contains the curve, but not the reference
            return "band excludes calibration" if self.has_long_labels else "significant"
        return "outside the band" if self.has_long_labels else "outside"

    def _band_label(self) -> str:
        """The label of the band in the legend."""
        level = f"{100 * self.settings['level']:.4g}\u00a0%"
        consistent = self.settings["band"] == "consistency"
        if not self.has_long_labels:
            return f"{level} {'consistency' if consistent else 'interval'}"
        scope = "simultaneous" if self.settings["simultaneous"] else "pointwise"
        return f"{level} consistency band ({scope})" if consistent else f"{level} {scope} band"

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        rows, size = self.rows(panel), styling.font_size(ax)
        is_wide = self.draw_axes(ax, size)
        if self.has("strip"):
            shares = select_part(rows, "strip")
            max_share = float(self.panels["tallest"][panel])
            styling.draw_strip(
                ax, shares["x_low"], shares["x_high"], shares["share"], max_share, size, shows_max_share=is_wide
            )
        curve = select_part(rows, "curve")
        for piece in np.unique(curve["piece"]):
            self._draw_piece(
                ax, {name: column[curve["piece"] == piece] for name, column in curve.items()}, is_wide=is_wide
            )

    def _draw_piece(self, ax: Any, rows: Mapping[str, Array], *, is_wide: bool) -> None:
        """Draw one piece of the curve without gaps."""
        x, line_width = rows["score"], 1.8 if is_wide else 1.3
        if self.settings["band"] and self.has("band"):
            # A band based on a row or two must look less certain than one based on thousands.
            strength = min(float(np.nanmax(rows["effective"])) / MIN_OPAQUE_EFFECTIVE_N, 1.0)
            style: dict[str, Any] = {"zorder": 1.4, "label": "band"}
            fill = {"facecolor": styling.INSIDE_BAR_COLOR, "alpha": 0.12 + 0.43 * strength, "linewidth": 0}
            ax.fill_between(x, rows["low"], rows["high"], **fill, **style)
            if x[-1] - x[0] < 0.004:  # keeps a very narrow range visible
                ax.vlines(
                    x[:1],
                    rows["low"][:1],
                    rows["high"][:1],
                    colors=styling.INSIDE_BAR_COLOR,
                    linewidth=(0.7 + 1.3 * strength) * line_width,
                    **style,
                )
        if self.has("reference"):
            ax.plot(x, rows["reference"], zorder=2.5, label="reference", **_REFERENCE_LINE_STYLE)
        if self.has("curve"):
            dot_style = {"marker": "o", "markersize": 2.2 * line_width} if x[-1] - x[0] < 0.004 else {}
            ax.plot(
                x, rows["rate"], color=styling.INSIDE_COLOR, linewidth=line_width, zorder=3, label="curve", **dot_style
            )
            if rows["outside"].any():
                outside_rate = np.where(rows["outside"], rows["rate"], np.nan)
                ax.plot(
                    x,
                    outside_rate,
                    color=styling.OUTSIDE_COLOR,
                    linewidth=1.8 * line_width,
                    zorder=3.1,
                    label="outside",
                    **dot_style,
                )


_REFERENCE_LINE_STYLE: dict[str, Any] = {"color": styling.TEXT_COLOR, "linewidth": 1.2, "linestyle": (0, (4, 2.5))}
