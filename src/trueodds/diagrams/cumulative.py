"""The cumulative diagram: residuals summed by increasing score, with a simultaneous band, ECCE-MAD and ECCE-R."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from trueodds.core.arithmetic import decreasing_order, weighted_sum
from trueodds.core.errors import Note
from trueodds.core.settings import Level
from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import (
    TALLY_NOTE,
    bias_words,
    format_level,
    format_pvalue,
    format_range,
    merge_notes,
)
from trueodds.diagrams._style.marks import AxisStrip, Band, HLine, Line, Mark, PanelSize, Points, Text
from trueodds.diagrams._style.styling import AXIS_STRIP_HEIGHT, MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import Recipe, lens_name, panel_limit_notes
from trueodds.diagrams.table_columns import Columns, part_rows, select_part, stack_tables
from trueodds.estimators.cumulative import CumulativeError, CumulativeRange
from trueodds.estimators.distinct_scores import DistinctScores
from trueodds.hypotests.cumulative import ECCE, brownian_maximum_tail, brownian_range_tail
from trueodds.lenses.view import View, view_title

# Scores for ticks, in order of priority: if two labels overlap, the first is shown.
SCORE_TICKS = np.array(
    [0.5, 0.1, 0.9, 0.01, 0.99, 0.2, 0.8, 0.7, 0.3, 0.6, 0.4, 0.95, 0.05, 0.999, 0.001, 0.9999, 0.0001]
)
_COLUMN_NAMES = ("view", "part", "share_low", "share_high", "score_low", "score_high", "difference", "slope")


@dataclass(frozen=True)
class Cumulative(Recipe):
    r"""Cumulative residuals by increasing score, with a simultaneous band, ECCE-MAD and ECCE-R.

    The curve falls where the model overpredicts and rises where it underpredicts. It needs neither bins nor
    smoothing. ECCE-MAD, its maximum absolute deviation from 0, and ECCE-R, its range, are the estimated cumulative
    calibration errors.

    Parameters
    ----------
    level : float, default=0.95
        The probability with which the band contains the whole curve of a calibrated model.

    See Also
    --------
    ecce : The test of the same differences.

    Notes
    -----
    Over the share of rows with scores up to s, :math:`F(s) = \tfrac1w \sum_{p_i \le s} w_i`, the curve is

    .. math:: C(s) = \tfrac1w \sum_{p_i \le s} w_i (y_i - p_i) .

    Its slope over a segment of scores is the mean of observed minus predicted there. Equal scores form one step. If the
    model is calibrated, C is asymptotically a Brownian motion with final variance :math:`\sigma^2 = \sum w^2 p (1 - p)
    / w^2`. It stays inside the band ±q σ with probability `level`, where P[max |W| > q] = 1 − level. The band tests
    ECCE-MAD = max |C|. ECCE-MAD and ECCE-R = max C − min C have the p-values of the tests `ks` with `start="below"` and
    `ecce`.

    With the same probability C changes by at most r σ over every segment, where P[max W − min W > r] = 1 − level. The
    steepest segment has the largest :math:`(|\Delta C| - r \sigma) / \Delta F`, a lower bound of its slope. It exists
    if and only if ECCE-R is significant at that level.

    Views: binary, one panel each, ordered by the range in standard errors; curves only for the panels that are drawn.
    Rows, or cells of a tally at their mean prediction. Weights are importance weights. For shares of votes the variance
    is Σw²(y − p)²/w². Beyond 2,000 scores the curve is drawn through the first, lowest, highest and last point of each
    of 499 shares of rows, which preserves the extremes (note TN261).

    Units: probability; the picture shows percentage points. Cost: O(n log n).

    Columns of `table`: view part share_low share_high score_low score_high difference slope. The values of `part` are
    `curve` (C at a share of rows, and the score there), `extreme` (its minimum and maximum), `segment` (the steepest,
    from score_low to score_high, with the change of C over it and its slope) and `tick` (the share of rows with scores
    up to a round one). Columns that a part does not use are NaN. `panels` holds errors, p-values and `band`, q σ.

    References
    ----------
    .. [1] Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu (2022), JMLR 23.

    Examples
    --------
    >>> import trueodds as to
    >>> diagram = to.draw([1, 0] * 50, [0.9] * 60 + [0.5] * 40, "cumulative")
    >>> diagram.finding.replace("\u00a0", " ")
    'Steepest segment at 90 %: overpredicts by 40 points (slope −0.4). ECCE-MAD 24 points (p < 0.001).'
    """

    name: ClassVar[str] = "cumulative"
    level: Level = 0.95

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        all_residuals = [CumulativeResiduals(view, self.level) for view in views]
        residuals_by_view = [
            all_residuals[i] for i in decreasing_order(curve.standardized_range for curve in all_residuals)
        ]
        drawn_residuals = residuals_by_view[:MAX_PANELS]
        low = min(min(float(residuals.residual_path.min()), -residuals.null_bound) for residuals in drawn_residuals)
        high = max(max(float(residuals.residual_path.max()), residuals.null_bound) for residuals in drawn_residuals)
        low, high = (low, high) if high > low else (-0.01, 0.01)
        # A single panel has a line of numbers above the curve.
        low, high = low - 0.06 * (high - low), high + (0.15 if len(views) == 1 else 0.06) * (high - low)
        limits = {"y_low": low, "y_high": high}
        rows = [
            _panel_row(residuals, len(views), is_drawn=residuals in drawn_residuals) | limits
            for residuals in residuals_by_view
        ]
        tables, notes = [_table_columns(residuals) for residuals in drawn_residuals], _collect_notes(residuals_by_view)
        return self.build_diagram(CumulativeResidualsPlot, lens_name(views), tables, rows, self._settings, notes)


def _panel_row(residuals: CumulativeResiduals, n_views: int, *, is_drawn: bool) -> dict[str, Any]:
    title = view_title(residuals.view.name)
    p_mad, p_r = residuals.pvalues
    text = _describe_finding(residuals) if is_drawn else ""
    segment = residuals.significant_segment if is_drawn else None
    return {
        "view": residuals.view.name,
        "title": title,
        "aside": f"{_format_points(residuals.residual_range)}, {format_pvalue(p_r)}",
        "finding": f"{title}: {text[0].lower()}{text[1:]}" if n_views > 1 and text else text,
        "n": residuals.view.n_rows,
        "weight": residuals.view.total,
        "ecce_mad": residuals.max_residual,
        "pvalue_mad": p_mad,
        "ecce_r": residuals.residual_range,
        "pvalue_r": p_r,
        "null_standard_error": residuals.null_standard_error,
        "band": residuals.null_bound,
        "slope": np.nan if segment is None else residuals.segment_slope(segment),
    }


def _describe_finding(residuals: CumulativeResiduals) -> str:
    """Describe the steepest significant segment, and ECCE-MAD or ECCE-R, whichever detects it."""
    p_mad, p_r = (format_pvalue(p) for p in residuals.pvalues)
    words, segment = bias_words(residuals.view.name), residuals.significant_segment
    if segment is None:
        if residuals.max_residual > residuals.null_bound:
            bias = words[int(residuals.residual_path.min() < -residuals.null_bound)]
            verb = "is " if residuals.view.name == "confidence" else ""
            error = f"ECCE-MAD {_format_points(residuals.max_residual)} ({p_mad})"
            return f"The model {verb}{bias} overall: {error}, without a significant segment."
        return f"Consistent with calibration: ECCE-MAD {_format_points(residuals.max_residual)} ({p_mad})."
    slope = residuals.segment_slope(segment)
    range_text = format_range(
        float(residuals.scores[segment.start + 1]),
        float(residuals.scores[segment.stop]),
        "between {}\u00a0% and {}",
    )
    bias = words[int(slope < 0)]
    slope_text = f"{slope:+.2g}".replace("-", "−")
    text = f"Steepest segment {range_text}: {bias} by {_format_points(abs(slope))} (slope\u00a0{slope_text})."
    if residuals.max_residual > residuals.null_bound:
        return f"{text} ECCE-MAD {_format_points(residuals.max_residual)} ({p_mad})."
    return f"{text} ECCE-R {_format_points(residuals.residual_range)} ({p_r})."


def _format_points(x: float) -> str:
    text = f"{100 * x:.2g}" if x < 0.00995 else f"{100 * x:.1f}" if x < 0.0995 else f"{100 * x:.0f}"
    return f"{text} point{'' if text == '1' else 's'}"


def _table_columns(residuals: CumulativeResiduals) -> Columns:
    """The rows of the table for one view: curve, extremes, steepest segment and ticks of the score."""
    row_share, scores, path = residuals.row_share, residuals.scores, residuals.residual_path

    def points(part: str, share: Array, score: Array, difference: Array | float = np.nan) -> dict[str, Any]:
        """Points of the diagram, at which the two ends of a segment are equal."""
        ends = {"share_low": share, "share_high": share, "score_low": score, "score_high": score}
        return {"part": part, **ends, "difference": difference}

    parts = [
        points(part, row_share[vertices], scores[vertices], path[vertices])
        for part, vertices in (("curve", residuals.drawn_vertices), ("extreme", np.array(residuals.extremes)))
    ]
    if (segment := residuals.significant_segment) is not None:
        start, stop = segment
        shares = {"share_low": row_share[start], "share_high": row_share[stop]}
        ends = shares | {"score_low": scores[start + 1], "score_high": scores[stop]}
        slope = residuals.segment_slope(segment)
        parts.append({"part": "segment", **ends, "difference": path[stop] - path[start], "slope": slope})
    # Rounding may put the mean of a tally's cell above its only score.
    tick_share = row_share[np.searchsorted(scores[1:], SCORE_TICKS * (1 + 1e-9), "right")]
    is_inside = (tick_share > 0) & (tick_share < 1)
    parts.append(points("tick", tick_share[is_inside], SCORE_TICKS[is_inside]))
    return stack_tables([part_rows(_COLUMN_NAMES, {"view": residuals.view.name} | part) for part in parts])


def _collect_notes(residuals_by_view: Sequence[CumulativeResiduals]) -> list[Note]:
    notes = merge_notes([(residuals.view.name, residuals.null_distribution_notes()) for residuals in residuals_by_view])
    n_scores = max(len(residuals.residual_path) - 1 for residuals in residuals_by_view[:MAX_PANELS])
    if n_scores >= MAX_VERTICES:
        text = (
            f"The curve shows at most {MAX_VERTICES:,} points of {n_scores:,} scores. Extremes, errors and p-values use"
            " all scores."
        )
        notes.append(Note("TN261", text))
    if any(residuals.has_vote_shares for residuals in residuals_by_view):
        text = "Outcomes are shares of votes; band and p-values use the variance Σw²(y−p)²/(Σw)²."
        notes.append(Note("TN243", text))
    order = CumulativeResidualsPlot.view_order
    notes += panel_limit_notes(len(residuals_by_view), order, "panels holds the errors of all.")
    if not all(residuals.view.is_rows for residuals in residuals_by_view):
        notes.append(TALLY_NOTE)
    return notes


class ResidualSegment(NamedTuple):
    """A segment of the path of cumulative residuals, given by the indices of its first and last vertex."""

    start: int
    stop: int


def steepest_segment(x: Array, y: Array, null_change: float) -> ResidualSegment | None:
    r"""The a < b with the largest :math:`(|y_b - y_a| - c) / (x_b - x_a)`, or None if none is positive.

    c is `null_change`. If it bounds the change over every segment under calibration with high probability, the result
    is the largest significant slope. Dinkelbach's method: for a slope s, one pass finds the segment that maximizes
    :math:`|y_b - y_a| - c - s (x_b - x_a)`, which gives the next s. x must increase.
    Cost: O(m) per pass, about 5 passes. Source: Dinkelbach (1967), Management Science 13.

    >>> steepest_segment(np.array([0, 0.4, 0.7, 1]), np.array([0, 0, -0.3, -0.31]), 0.1)
    ResidualSegment(start=1, stop=2)
    >>> steepest_segment(np.array([0, 0.5, 1]), np.array([0, 0.1, 0]), 0.1)
    """
    segment, slope = None, 0.0
    for sign in (1.0, -1.0):  # rising segments, then falling ones that are steeper
        signed_path = sign * y
        for _ in range(100):
            tilted_path = signed_path - slope * x
            running_minimum = np.minimum.accumulate(tilted_path)
            stop = int(np.argmax(tilted_path - running_minimum))
            if tilted_path[stop] - running_minimum[stop] - null_change <= 1e-12:
                break
            # The last of equal minima gives the shortest segment.
            start = stop - int(np.argmax(tilted_path[stop::-1] == running_minimum[stop]))
            segment = ResidualSegment(start, stop)
            slope = float((signed_path[stop] - signed_path[start] - null_change) / (x[stop] - x[start]))
    return segment


MAX_VERTICES = 2000  # largest number of points that are drawn: as many as a picture can resolve
_N_SHARE_INTERVALS = (MAX_VERTICES - 2) // 4  # intervals of the share of rows, of each of which four points are drawn


class CumulativeResiduals:
    """Cumulative residuals of one view over the share of rows, by increasing score; equal scores are one step.

    Attributes
    ----------
    scores : ndarray (m + 1,)
        The m distinct scores, increasing, after a copy of the first one for the start of the path.
    row_share : ndarray (m + 1,)
        The share of the weight of the rows with scores up to each of them, from 0 to 1.
    residual_path : ndarray (m + 1,)
        The cumulative residual C there.
    max_residual, residual_range : float
        ECCE-MAD, the maximum of |C|, and ECCE-R, the range of C.
    ecce_result : ViewResult
        The result of the test `ecce`.
    """

    def __init__(self, view: View, level: float) -> None:
        self.view, self.level = view, level
        s, w, wp, wy = DistinctScores(CumulativeError(), view).shares()
        self.scores = np.concatenate((s[:1], s))  # the point before the first step has the first score
        self.row_share = np.concatenate(([0.0], np.cumsum(w[:-1]), [1.0]))
        self.residual_path = np.concatenate(([0.0], np.cumsum(wy - wp)))
        self.max_residual = CumulativeError().value(view)
        self.residual_range = CumulativeRange().value(view)
        self.ecce_result = ECCE().evaluate(view)

    @cached_property
    def has_vote_shares(self) -> bool:
        """Whether outcomes are shares of votes, which no single label draw can give."""
        return not np.isclose(self.view.sums("wyy").sum(), weighted_sum(self.view.w, self.view.y), rtol=1e-9, atol=0)

    @cached_property
    def null_standard_error(self) -> float:
        """The standard error of the final value under calibration; 0 if every probability is 0 or 1."""
        if self.has_vote_shares:
            return float(np.sqrt(self.view.sums("wwr").sum()) / self.view.total)
        return 0.0 if self.ecce_result.notes else ECCE().cell_statistic(self.view).std_error

    @property
    def null_bound(self) -> float:
        """The bound of |C| that holds under calibration with probability `level`."""
        return _null_quantile(brownian_maximum_tail, self.level) * self.null_standard_error

    @cached_property
    def standardized_range(self) -> float:
        """The range in standard errors; infinite or 0 if there is no randomness under calibration."""
        if self.null_standard_error:
            return self.residual_range / self.null_standard_error
        return np.inf if self.residual_range > 0 else 0.0

    @property
    def pvalues(self) -> tuple[float, float]:
        """The p-values of ECCE-MAD and ECCE-R."""
        if not self.null_standard_error:
            return float(self.max_residual == 0), float(self.residual_range == 0)
        pvalue_mad = brownian_maximum_tail(self.max_residual / self.null_standard_error)
        return pvalue_mad, brownian_range_tail(self.standardized_range)

    @property
    def extremes(self) -> tuple[int, int]:
        """Indices of the minimum and the maximum."""
        return int(np.argmin(self.residual_path)), int(np.argmax(self.residual_path))

    @cached_property
    def drawn_vertices(self) -> Array:
        """Indices of the points drawn; of many, the first, lowest, highest and last of each of 499 shares of rows."""
        m = len(self.residual_path)
        if m <= MAX_VERTICES:
            return np.arange(m)
        edges = np.unique(np.searchsorted(self.row_share, np.arange(_N_SHARE_INTERVALS + 1) / _N_SHARE_INTERVALS))
        indices = [0, m - 1, *self.extremes]
        for start, stop in zip(edges, [*edges[1:], m], strict=True):
            part = self.residual_path[start:stop]
            if len(part):
                indices += [start, stop - 1, start + int(part.argmin()), start + int(part.argmax())]
        return np.unique(indices)

    @cached_property
    def significant_segment(self) -> ResidualSegment | None:
        """The steepest segment after subtracting the change that chance explains; None if chance explains every change.

        Under calibration no segment changes by more than the quantile of the range, with probability `level`.
        """
        null_change = _null_quantile(brownian_range_tail, self.level) * self.null_standard_error
        segment = steepest_segment(
            self.row_share[self.drawn_vertices], self.residual_path[self.drawn_vertices], null_change
        )
        return None if segment is None else ResidualSegment(*(int(self.drawn_vertices[end]) for end in segment))

    def segment_slope(self, segment: ResidualSegment) -> float:
        """Mean of observed minus predicted over a segment."""
        change = self.residual_path[segment.stop] - self.residual_path[segment.start]
        return float(change / (self.row_share[segment.stop] - self.row_share[segment.start]))

    def null_distribution_notes(self) -> list[Note]:
        """Notes on why the asymptotic distribution may be inaccurate, or why there is no randomness."""
        return [*self.ecce_result.notes, *(Note("TN260", warning) for warning in self.ecce_result.asymptotic_warnings)]


@cache
def _null_quantile(survival_function: Callable[[float], float], level: float) -> float:
    low, high = 0.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if survival_function(middle) <= 1 - level else (middle, high)
    return high


class CumulativeResidualsPlot(Diagram):
    """The cumulative diagram: curve, band, extremes, steepest segment, and a strip with the scores."""

    layers = ("band", "curve", "extremes", "segment", "ticks", "numbers")
    row_noun = "parts"
    view_order = "most significant range"
    figure_size = (6.4, 4.8)

    @property
    def strip_height(self) -> float:  # type: ignore[override]
        return AXIS_STRIP_HEIGHT if self.has("ticks") else 0.0

    def default_title(self) -> str:
        if self.lens == "confidence":
            return "Where does confidence deviate from accuracy?"
        return "Where do predictions deviate from outcomes?"

    def axis_labels(self) -> tuple[str, str]:
        order = "least confident first" if self.lens == "confidence" else "lowest score first"
        return f"Share of predictions, {order}", "Cumulative residual"

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        styling.style_axes(ax, size.font_size)
        styling.set_probability_axis(ax)
        low, high = float(self.panels["y_low"][panel]), float(self.panels["y_high"][panel])
        styling.set_limits_above_strip(ax, low, high, self.strip_height)
        ticks = styling.round_ticks(ax, low, high, (7, 5, 3), [1, 2, 2.5, 5, 10])
        ax.set_yticks([tick for tick in ticks if tick >= low + 0.05 * (high - low)])  # others would overlap the strip
        ax.yaxis.set_major_formatter(_format_signed_points)

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        curve, extremes, ticks = (select_part(rows, part) for part in ("curve", "extreme", "tick"))
        x, y, band = curve["share_low"], curve["difference"], float(panel_row["band"])
        segment = select_part(rows, "segment")  # at most one
        in_segment = np.zeros(len(x), dtype=bool)
        for first, last in zip(segment["share_low"], segment["share_high"], strict=True):
            in_segment |= (x >= first) & (x <= last)
        slopes = self.panels["slope"]
        slope_text = f" (slope {slopes[0]:+.2g})".replace("-", "−") if len(slopes) == 1 else ""
        band_style: dict[str, Any] = {"color": styling.INSIDE_BAR_COLOR, "alpha": 0.55, "linewidth": 0, "zorder": 1}
        curve_style: dict[str, Any] = {"linewidth": 1.6 if size.is_wide else 1.2, "color": styling.INSIDE_COLOR}
        segment_style: dict[str, Any] = {"linewidth": 3 if size.is_wide else 2, "color": styling.OUTSIDE_COLOR}
        dots: dict[str, Any] = {"marker": "o", "markersize": 5 if size.is_wide else 3.5, "color": styling.TEXT_COLOR}
        marks = [
            HLine(0.0, color=styling.MUTED_COLOR, linewidth=1, zorder=1.5),
            Band((0, 1), -band, band, layer="band", label=f"simultaneous band ({self.level_text})", **band_style),
            Line(x, y, layer="curve", label="cumulative residual", zorder=3, **curve_style),
            Line(
                x[in_segment],
                y[in_segment],
                layer="segment",
                label=f"steepest segment{slope_text}",
                zorder=3.1,
                **segment_style,
            ),
            Points(
                extremes["share_low"],
                extremes["difference"],
                layer="extremes",
                label="minimum, maximum",
                zorder=4,
                **dots,
            ),
            AxisStrip(
                ticks["share_low"],
                [format_level(score) for score in ticks["score_low"]],
                title="score:",
                layer="ticks",
                gid="score",
            ),
        ]
        return marks if len(slopes) > 1 else [*marks, _error_text(panel_row, size)]


def _error_text(panel_row: Mapping[str, Any], size: PanelSize) -> Mark:
    """Both errors and their p-values above the curve, if they fit."""
    text = (
        f"ECCE-MAD {100 * panel_row['ecce_mad']:.2f} points, {format_pvalue(panel_row['pvalue_mad'])}  ·  "
        f"ECCE-R {100 * panel_row['ecce_r']:.2f} points, {format_pvalue(panel_row['pvalue_r'])}"
    )
    if styling.text_width(text, size.font_size - 1) > styling.POINTS_PER_INCH * size.width * 0.95:
        text = ""
    style: dict[str, Any] = {"fontsize": size.font_size - 1, "ha": "right", "va": "top", "gid": "numbers"}
    return Text(1.0, float(panel_row["y_high"]), text, layer="numbers", zorder=3.5, **style)


def _format_signed_points(value: float, _: Any = None) -> str:
    if abs(value) < 1e-12:
        return "0"
    return f"{100 * value:+.3g}\u00a0pt".replace("-", "−")
