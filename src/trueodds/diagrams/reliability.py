"""The reliability diagram: observed event rate against mean prediction in each bin, with consistency bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import bdtrc

from trueodds.binning.uniform import Uniform
from trueodds.core.arithmetic import decreasing_order
from trueodds.core.errors import Note
from trueodds.core.formatting import format_count
from trueodds.core.settings import OneOf, Resamples
from trueodds.core.typing import Array
from trueodds.diagrams import bins
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import bias_words, capitalize_first, format_percent
from trueodds.diagrams._style.marks import Boxes, Mark, PanelSize, Points, Segments, Text
from trueodds.diagrams._style.reliability_plots import BINNED_STYLES, BinnedPlot, y_limits
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import BinnedView
from trueodds.diagrams.recipe import BinnedRecipe, lens_name, panel_limit_notes
from trueodds.diagrams.table_columns import Columns
from trueodds.kernels import map_items
from trueodds.lenses.view import View, count_views, view_title


@dataclass(frozen=True)
class Reliability(BinnedRecipe):
    r"""Reliability diagram (calibration plot): observed event rate against mean predicted probability in each bin.

    Bars show the range of the event rate if the model is calibrated, or a confidence interval.

    Parameters
    ----------
    level : float, default=0.95
        The coverage of each bar. Its ends are the quantiles (1 ± level)/2.
    style : {"diagonal", "deviation"}, default="diagonal"
        Whether the event rate is drawn, or its difference from the mean prediction. The table is the same.
    bars : {"consistency", "confidence"} or None, default="consistency"
        `consistency` is the range of the event rate if the model is calibrated. `confidence` is an interval for the
        true event rate, around the observed one. Weights are importance weights in both: a weight of two counts as two
        rows for the rates, not for the bars.
    by : {"exact", "redraw"}, default="exact"
        How consistency bars are computed: from the exact distribution of each bin's event count (Poisson-binomial), or
        from labels drawn with the predicted probabilities. The latter also covers bins of few rows with unequal
        weights.
    resamples : int, default=999
        Number of resamples for `by="redraw"`.
    interval : {"wilson", "clopper-pearson"}, default="wilson"
        The confidence interval. `clopper-pearson` is wider; its coverage is at least `level` for rows of equal weight.
        With weights both use the effective sample size (Σw)²/Σw².
    simultaneous : bool, default=False
        Bonferroni correction over all bars of the diagram, so that all of them hold jointly with probability `level`.

    See Also
    --------
    reliability_curve : The same without bins, by kernel smoothing.
    corp : The same with isotonic regression.

    Notes
    -----
    In bin b a cross is drawn at :math:`(\bar p_b, \bar y_b)` with

    .. math:: \bar p_b = \sum_i w_i p_i / \sum_i w_i, \quad \bar y_b = \sum_i w_i y_i / \sum_i w_i ,

    and consistency bars around the diagonal. The style `deviation` draws :math:`\bar y_b - \bar p_b` with the same bars
    around 0, which enlarges small errors. Below is the share of rows in each bin or, if the bins differ in width, in
    each of 30 equal cells (`strip` of `panels`). Empty bins are omitted.

    The finding names the segments of neighboring bins that lie outside on the same side. It gives only the number of
    bins outside if a calibrated model has at least as many with probability 5 % or more, and no bin lies outside its
    Bonferroni bar.

    Views: binary, one panel each. Units: probability. Cost: O(n log k), and per bin the distribution of its event
    count.

    Columns of `table`: view bin low high n weight share mean_prediction outcome_rate deviation, and with bars bar_low
    bar_high (event rates in both styles) and outside.

    References
    ----------
    .. [1] Vaicenavicius et al. (2019), figure 4.
    .. [2] Bröcker & Smith (2007).

    Examples
    --------
    >>> import trueodds as to
    >>> diagram = to.draw([0, 1, 1], [0.5, 0.5, 0.9], "reliability")
    >>> diagram.table["bar_low"].tolist(), diagram.table["bar_high"].tolist(), diagram.table["outside"].tolist()
    ([0.0, 0.0], [1.0, 1.0], [False, False])
    """

    name: ClassVar[str] = "reliability"
    count_columns: ClassVar[tuple[str, ...]] = ("n", "bar_low", "bar_high", "outside")
    style: Annotated[str, OneOf(BINNED_STYLES)] = "diagonal"
    bars: Literal["consistency", "confidence"] | None = "consistency"
    by: Literal["exact", "redraw"] = "exact"
    resamples: Resamples = 999
    interval: Literal["wilson", "clopper-pearson"] = "wilson"
    simultaneous: bool = False

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        binned = map_items(lambda view: bins.BinnedView(view, self.partition), views)
        binned = [binned[i] for i in decreasing_order(view_bins.calibration_error for view_bins in binned)]
        n_bars = sum(len(view_bins.columns["bin"]) for view_bins in binned)
        joint_level = 1 - (1 - self.level) / n_bars  # Bonferroni
        level = joint_level if self.simultaneous else self.level
        # Random draws are made for one view after the other, so that they do not depend on the threads.
        add_bars = partial(self._add_bars, level=level, joint_level=joint_level, rng=rng)
        with_bars = (
            [add_bars(view_bins) for view_bins in binned] if self._resamples_labels else map_items(add_bars, binned)
        )
        methods = [method for bars in with_bars for method in bars.methods]
        partition = binned[0].partition
        tables, rows = [bars.columns for bars in with_bars], _panel_rows(binned, with_bars, self)
        settings = {
            "partition": str(partition),
            "style": self.style,
            "bars": self.bars,
            **({"by": self.by} if self.bars == "consistency" else {}),
            **({"resamples": self.resamples} if self._resamples_labels else {}),
            **({"interval": self.interval} if self.bars == "confidence" else {}),
            "level": self.level,
            "simultaneous": self.simultaneous,
            "level_of_each_bar": level,
        }
        notes = bins.collect_bar_notes(methods, views, partition, "bins")
        notes += self._collect_notes(binned, level, "flipped" in methods)
        return self.build_diagram(ReliabilityDiagram, lens_name(views), tables, rows, settings, notes)

    @property
    def _resamples_labels(self) -> bool:
        return self.bars == "consistency" and self.by == "redraw"

    def _select_bar_function(self, rng: np.random.Generator) -> bins.BarFunction:
        if self._resamples_labels:
            return partial(bins.resampled_consistency_bars, resamples=self.resamples, rng=rng)
        if self.bars == "consistency":
            return bins.consistency_bars_at_levels
        interval_function = _INTERVAL_FUNCTIONS[self.interval]
        return lambda view, index, size, levels: tuple(interval_function(view, index, size, level) for level in levels)

    def _add_bars(
        self, binned: bins.BinnedView, level: float, joint_level: float, rng: np.random.Generator
    ) -> BinsWithBars:
        """The bins of a view with their bars, if there are any.

        `level` is that of the drawn bars, and `joint_level` that of the Bonferroni bars.
        """
        columns = binned.columns
        if self.bars is None:
            return BinsWithBars(columns)
        bars, joint_bars = binned.intervals_by_level(self._select_bar_function(rng), (level, joint_level))
        binned.view.release()  # the columns of all views together take a multiple of the data
        # Consistency bars should contain the observed rate, and confidence intervals the prediction. Rates are
        # compared, not differences: equal counts must compare as equal in any order of summation.
        compared_rates = columns["outcome_rate"] if self.bars == "consistency" else columns["mean_prediction"]
        columns = {
            **columns, "bar_low": bars.low, "bar_high": bars.high, "outside": bars.excludes(compared_rates)
        }  # fmt: skip
        return BinsWithBars(columns, bool(joint_bars.excludes(compared_rates).any()), bars.method)

    def _collect_notes(self, binned: list[bins.BinnedView], level: float, has_flipped_residuals: bool) -> list[Note]:
        n_views = len(binned)
        notes = panel_limit_notes(n_views, ReliabilityDiagram.view_order)
        n_crowded = sum(_is_crowded(view_bins) for view_bins in binned)
        if n_crowded:
            count = f"In {n_crowded} of {count_views([view_bins.view for view_bins in binned])}"
            subject = "All predictions lie" if n_views == 1 else f"{count} all predictions lie"
            text = f"{subject} in one or two bins, which hide the differences between them"
            notes.append(Note("TN267", f'{text}. partition="equal-mass" separates them.'))
        if self.bars == "consistency" and not self.simultaneous:
            notes.append(
                Note(
                    "TN246",
                    f"Bars are pointwise: for a calibrated model up to {format_percent(1 - self.level)} of the"
                    " crosses are expected outside. Pass ⟨simultaneous=True⟩ for simultaneous bars.",
                )
            )
        if self._resamples_labels:
            draws_beyond_limit = self.resamples * (1 - level) / 2
            text = (
                f"The bars are quantiles of {self.resamples:,} resamples of the labels; {draws_beyond_limit:.3g} lie"
                " beyond each end"
            )
            text += (
                "."
                if draws_beyond_limit >= _MIN_DRAWS_BEYOND_LIMIT
                else ", too few for stable ends: increase resamples."
            )
            if has_flipped_residuals:
                text += " For shares of votes the signs of residuals were flipped, which is approximate."
            notes.append(Note("TN266", text))
        return notes


class BinsWithBars(NamedTuple):
    """The bins of a view, and what follows from their bars."""

    columns: Columns  # of the table: the bins, and `bar_low`, `bar_high` and `outside` unless there are no bars
    is_jointly_outside: bool = False  # whether a bin lies outside its Bonferroni bar
    methods: tuple[str, ...] = ()  # of each bar


_INTERVAL_FUNCTIONS = {
    "wilson": bins.wilson_intervals,
    "clopper-pearson": bins.clopper_pearson_intervals,
}
_MIN_CROWDED_PREDICTIONS = 20  # distinct predictions, which more bins would separate
_MIN_DRAWS_BEYOND_LIMIT = 10  # resamples beyond a limit; 10 determine its distance from a normal mean to a tenth


def _is_crowded(binned: bins.BinnedView) -> bool:
    """Whether bins of equal width put many distinct predictions into one or two bins, as for a rare event."""
    if not isinstance(binned.partition, Uniform) or binned.n_bins <= 2 or len(binned.columns["bin"]) > 2:
        return False
    return len(np.unique(binned.view.partition_values[binned.view.w > 0])) >= _MIN_CROWDED_PREDICTIONS


def _panel_rows(
    binned: list[bins.BinnedView], with_bars: Sequence[BinsWithBars], recipe: Reliability
) -> list[dict[str, Any]]:
    """The rows of `panels`, one per view; the range of y is shared, so that panels can be compared."""
    tables = [bars.columns for bars in with_bars]
    low, high = y_limits(recipe.style, tables[:MAX_PANELS])
    rows: list[dict[str, Any]] = []
    has_equal_widths = all(view_bins.has_equal_widths for view_bins in binned)
    strips = [
        table["share"] if has_equal_widths else view_bins.strip_shares
        for view_bins, table in zip(binned, tables, strict=True)
    ]
    max_share = max(float(strip.max()) for strip in strips[:MAX_PANELS])
    totals = map_items(lambda view_bins: bins.pool_rows(view_bins.view), binned)
    for view_bins, total, bars, strip in zip(binned, totals, with_bars, strips, strict=True):
        table = bars.columns
        n_bins = len(table["bin"])
        n_outside = int(table["outside"].sum()) if "outside" in table else None
        segment_text = ""
        if n_outside is not None:
            segment_text = describe_outside_bins(
                table,
                n_outside,
                bars.is_jointly_outside,
                recipe.level,
                simultaneous=recipe.simultaneous,
                is_confidence_interval=recipe.bars == "confidence",
                view_name=view_bins.view.name,
            )
        rows.append(
            {
                "view": view_bins.view.name,
                "title": view_title(view_bins.view.name),
                "aside": f"{n_bins} bins" if n_outside is None else f"{n_outside} of {n_bins} outside",
                "finding": describe_finding(view_bins, total, segment_text, n_views=len(binned), is_largest=not rows),
                "n": int(total.n[0]),
                "weight": float(total.w[0]),
                "mean_prediction": float(total.p[0]),
                "outcome_rate": float(total.y[0]),
                "error": view_bins.calibration_error,
                "bins": n_bins,
                "y_low": low,
                "y_high": high,
                "tallest": max_share,
            }
        )
        if not has_equal_widths:
            rows[-1]["strip"] = strip
        if n_outside is not None:
            rows[-1]["bins_outside"] = n_outside
            rows[-1]["bins_by_chance"] = (1 - recipe.level) * (1 if recipe.simultaneous else n_bins)
    return rows


class ReliabilityDiagram(BinnedPlot):
    """The reliability diagram: crosses, bars and the strip of predictions."""

    layers = ("bars", "crosses", "strip", "gaps", "sides")

    def _caption_result(self) -> str:
        if "bins_outside" not in self.panels:
            return super()._caption_result()
        n_outside, n_bins = int(self.panels["bins_outside"][0]), int(self.panels["bins"][0])
        if self.settings["bars"] == "confidence":
            verb = "excludes" if n_outside == 1 else "exclude"
            return f"{n_outside} of {format_count(n_bins, 'interval')} {verb} the mean prediction"
        return f"{n_outside} of {format_count(n_bins, 'bin')} outside their bars"

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Inches of the figure; the unit square needs room for the header above it."""
        return (6.4, 4.6) if self.shows_deviation else (5.2, 6.7)

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        rows, panel_row, bar_kind = self.rows(panel), self.panel_values(panel), self.settings["bars"]
        marks = [*self._bar_marks(panel, rows, size), *self._cross_marks(rows, size)]
        # Beside consistency bars, gaps would mark the same distance twice.
        if bar_kind != "consistency" and not self.shows_deviation:
            edges = rows["low"], rows["high"], rows["mean_prediction"], rows["outcome_rate"]
            gap: dict[str, Any] = {"facecolor": styling.GAP_COLOR, "edgecolor": "none", "zorder": 1.2}
            marks.append(Boxes(*edges, layer="gaps", name="gap", label="gap", **gap))
        marks.append(self.calibration_line())
        marks.append(self.strip(*_strip_edges_and_shares(rows, panel_row), float(panel_row["tallest"]), size))
        if size.is_wide and self.shows_deviation:
            marks += _side_labels(size, *self.y_limits(panel), self.lens)
        return marks

    def _bar_marks(self, panel: int, rows: Mapping[str, Array], size: PanelSize) -> list[Mark]:
        """The bar of each bin, thick for consistency bars and with caps for intervals, with arrows where it is cut."""
        if self.settings["bars"] is None:
            return []
        _, low, high = self.marker_positions(rows)
        x, is_consistency = rows["mean_prediction"], self.settings["bars"] == "consistency"
        thick = styling.bar_line_width(size.width, len(x))
        if is_consistency:
            colors = styling.INSIDE_BAR_COLOR, styling.OUTSIDE_BAR_COLOR
            label, width, cap, zorder = (
                f"{self._level_phrase} consistency{' bar' if self.has_long_labels else ''}",
                thick,
                thick + 2,
                2.0,
            )
        else:
            colors = styling.INSIDE_COLOR, styling.OUTSIDE_COLOR
            label = "" if self.has("crosses") else f"{self._level_phrase} confidence interval"
            width, cap, zorder = 1.3, 0.6 * thick + 3, 3.0
        marks: list[Mark] = []
        for mask, color in zip((~rows["outside"], rows["outside"]), colors, strict=True):
            bar: dict[str, Any] = {"layer": "bars", "color": color, "zorder": zorder}
            marks.append(Segments(x[mask], x[mask], low[mask], high[mask], label=label, linewidth=width, **bar))
            # The ends also show a bar of length zero, as at predictions of 0 and 1.
            ends: dict[str, Any] = {"marker": "_", "markersize": cap, "markeredgewidth": min(width, 1.3)}
            marks.append(Points(np.tile(x[mask], 2), np.r_[low[mask], high[mask]], name="ends", **bar, **ends))
        y_low, y_high = self.y_limits(panel)
        cut: dict[str, Any] = {"color": styling.MUTED_COLOR, "markersize": 3.7, "clip_on": False, "zorder": 3.5}
        for edge, marker, is_cut in ((y_high, "^", high > y_high), (y_low, "v", low < y_low)):
            marks.append(Points(x[is_cut], edge, layer="bars", name="cut", marker=marker, **cut))
        return marks

    def _cross_marks(self, rows: Mapping[str, Array], size: PanelSize) -> list[Mark]:
        """A cross at the rate of each bin, in a color of its own if it is outside of its bar."""
        x, y = rows["mean_prediction"], self.marker_positions(rows)[0]
        is_outside = rows.get("outside", np.zeros(len(x), dtype=bool))
        scale = 1.0 if size.is_wide and len(x) <= 30 else 0.7
        labels = self._cross_labels()
        inside: dict[str, Any] = {"marker": "x", "color": styling.INSIDE_COLOR}
        outside: dict[str, Any] = {"marker": "X", "color": styling.OUTSIDE_COLOR, "markeredgecolor": "white"}
        inside |= {"markersize": 7.0 * scale, "markeredgewidth": 1.8 * scale, "layer": "crosses", "zorder": 4}
        outside |= {"markersize": 8.5 * scale, "markeredgewidth": 0.6 * scale, "layer": "crosses", "zorder": 4}
        return [
            Points(x[~is_outside], y[~is_outside], label=labels[0], **inside),
            Points(x[is_outside], y[is_outside], label=labels[1], **outside),
        ]

    @property
    def _level_phrase(self) -> str:
        return f"{self.level_text} simultaneous" if self.settings["simultaneous"] else self.level_text

    def _cross_labels(self) -> tuple[str, str]:
        """Labels of the crosses inside and outside; they name the level if no bar does."""
        bar_kind, level, shows_bars = self.settings["bars"], self._level_phrase, self.has("bars")
        if bar_kind is None:
            return "observed", ""
        if not self.has_long_labels:
            suffix = "" if bar_kind == "consistency" and shows_bars else f" ({level})"
            return f"inside{suffix}", f"outside{suffix}"
        if bar_kind == "consistency":
            bar = "the bar" if shows_bars else f"the {level} consistency bar"
            return f"observed, within {bar}", f"observed, outside {bar}"
        if shows_bars:
            return f"observed ({level} interval)", f"{level} interval excludes predicted"
        return f"observed, {level} interval includes predicted", f"observed, {level} interval excludes predicted"


def _strip_edges_and_shares(rows: Mapping[str, Array], panel_row: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Edges and shares of the strip: the bins, or equal cells where the bins differ in width."""
    if "strip" not in panel_row:
        return rows["low"], rows["high"], rows["share"]
    occupied = np.flatnonzero(panel_row["strip"])
    n_cells = len(panel_row["strip"])
    return occupied / n_cells, (occupied + 1) / n_cells, panel_row["strip"][occupied]


def _side_labels(size: PanelSize, low: float, high: float, view_name: str) -> list[Mark]:
    """What values above and below zero mean, along the right edge, if there is room."""
    underpredicts, overpredicts = bias_words(view_name)
    font_size = size.font_size - 1.5
    # Title and labels take about a fifth of the height.
    points_per_unit = styling.POINTS_PER_INCH * size.height * 0.8 * (1 - styling.STRIP_HEIGHT) / (high - low)
    style: dict[str, Any] = {"fontsize": font_size, "color": styling.MUTED_COLOR, "rotation": 90, "ha": "left"}
    style |= {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "gid": styling.SIDE_TEXT_GID}
    return [
        Text(1.015, 0, text, layer="sides", xytext=(0, 5 * sign), va=alignment, **style)
        for text, height, sign, alignment in (
            (f"{underpredicts} →", high, 1, "bottom"),
            (f"← {overpredicts}", -low, -1, "top"),
        )
        if styling.text_width(text, font_size) < points_per_unit * height
    ]


_MIN_ERROR_SHARE = 0.1  # smallest share of the error outside the bars for which a segment is named
_CHANCE_ALPHA = 0.05  # with a larger probability of as many bins outside under calibration, only their number is given


@dataclass(frozen=True, slots=True)
class BinSegment:
    """Neighboring bins that all lie outside on the same side."""

    first: int
    last: int
    above: bool  # whether the event rate exceeds the prediction
    error_contribution: float  # Σ share · |deviation|


def find_segments(deviation: Array, share: Array, is_outside: Array) -> list[BinSegment]:
    """Return the runs of neighboring bins that lie outside on the same side, those with the largest error first.

    >>> deviation, outside = np.array([0.1, -0.1, -0.2, 0.0]), np.array([True, True, True, False])
    >>> segments = find_segments(deviation, np.full(4, 0.25), outside)
    >>> [(segment.first, segment.last, segment.above, round(segment.error_contribution, 3)) for segment in segments]
    [(1, 2, False, 0.075), (0, 0, True, 0.025)]
    """
    side = np.where(is_outside, np.where(deviation > 0, 1, -1), 0)
    starts = np.flatnonzero(np.diff(side, prepend=0) != 0)
    last_bins = np.append(starts[1:], len(side)) - 1
    segments = [
        BinSegment(int(a), int(b), bool(side[a] > 0), float(share[a : b + 1] @ np.abs(deviation[a : b + 1])))
        for a, b in zip(starts, last_bins, strict=True)
        if side[a]
    ]
    return sorted(segments, key=lambda segment: -segment.error_contribution)


def largest_segments(table: Mapping[str, Array]) -> list[BinSegment]:
    """Return at most two segments of bins, those with the largest error, lowest first."""
    segments = find_segments(table["deviation"], table["share"], table["outside"])
    total = sum(segment.error_contribution for segment in segments)
    largest = [segment for segment in segments[:2] if segment.error_contribution >= _MIN_ERROR_SHARE * total]
    return sorted(largest, key=lambda segment: segment.first)


def describe_segments(table: Mapping[str, Array], view_name: str) -> str:
    """Describe the segments with the largest error, such as `overconfident above 60 %`.

    Edges are those of the bins. The first and last occupied bin count as reaching to 0 and 1.

    >>> columns = {"low": [0.0, 0.5, 0.6], "high": [0.5, 0.6, 1.0], "deviation": [0.0, -0.1, -0.1]}
    >>> columns |= {"share": [0.2, 0.4, 0.4], "outside": [False, True, True]}
    >>> table = {name: np.array(column) for name, column in columns.items()}
    >>> describe_segments(table, "confidence").replace("\u00a0", " ")
    'overconfident above 50 %'
    """
    bias_verbs = bias_words(view_name)
    ordered = largest_segments(table)
    phrases: list[str] = []
    for i, current in enumerate(ordered):
        verb = bias_verbs[0] if current.above else bias_verbs[1]
        if i and current.above == ordered[i - 1].above:
            verb = ""  # overconfident below 10 % and above 70 %
        phrases.append(f"{verb} {_segment_range(table, current)}".strip())
    return " and ".join(phrases)


def _named_bins_phrase(table: Mapping[str, Array], n_outside: int) -> str:
    """State how many of the bins outside their bars lie in the described segments, and elsewhere; empty if none do."""
    segments = largest_segments(table)
    n_named = sum(segment.last - segment.first + 1 for segment in segments)
    if n_named == n_outside:
        return ""
    return (
        f", {n_named} in {'this range' if len(segments) == 1 else 'these ranges'} and {n_outside - n_named} elsewhere"
    )


def is_explained_by_chance(n_bins: int, n_outside: int, level: float) -> bool:
    """Whether a calibrated model has as many bins outside, or more, with a probability of at least 5 %.

    Each bin of a calibrated model lies outside with probability 1 − level or less, independently of the others.

    >>> is_explained_by_chance(11, 1, 0.9), is_explained_by_chance(11, 6, 0.9)
    (True, False)
    """
    return n_outside == 0 or float(bdtrc(n_outside - 1, n_bins, 1 - level)) >= _CHANCE_ALPHA


def expected_outside_text(n_bins: int, level: float) -> str:
    """The expected number of bins outside for a calibrated model, as text.

    >>> expected_outside_text(11, 0.9), expected_outside_text(3, 0.9)
    ('about 1', 'about 0.3')
    """
    expected_count = (1 - level) * n_bins
    return f"about {expected_count:.0f}" if expected_count >= 0.95 else f"about {expected_count:.1g}"


def _segment_range(table: Mapping[str, Array], segment: BinSegment) -> str:
    """The scores that a segment of bins spans, as a phrase such as `below 20 %`."""
    low, high = format_edge(float(table["low"][segment.first])), format_edge(float(table["high"][segment.last]))
    first, last = segment.first == 0, segment.last == len(table["low"]) - 1
    if first and last:
        return "throughout"
    if last:
        return f"above {low}"
    return f"below {high}" if first else f"between {low} and {high}"


def format_edge(x: float) -> str:
    """Format a probability with enough digits to tell it from 0 and from 1.

    >>> [format_edge(x).replace("\u00a0", " ") for x in (0.6, 2 / 3, 0.99987, 1 - 1e-7, 2e-5, 1.0)]
    ['60 %', '66.7 %', '99.99 %', '99.99999 %', '0.002 %', '100 %']
    """
    digits = 1
    while digits < 14 and 0 < x < 1 and round(100 * x, digits) in (0.0, 100.0):
        digits += 1
    if 0 < min(x, 1 - x) < 0.005:
        digits = max(digits, 2)
    return f"{100 * x:.{digits}f}".rstrip("0").rstrip(".") + "\u00a0%"


def describe_outside_bins(
    table: Mapping[str, Array],
    n_outside: int,
    jointly_outside: bool,
    level: float,
    *,
    simultaneous: bool,
    is_confidence_interval: bool,
    view_name: str,
) -> str:
    """Describe how many bins lie outside, and where; `jointly_outside` means outside a Bonferroni bar.

    With `is_confidence_interval` the bars are confidence intervals of the observed rate, otherwise consistency bars.
    """
    n_bins = len(table["low"])
    if n_outside == 0:
        return _all_inside_text(n_bins, is_confidence_interval=is_confidence_interval)
    count_text, verb = f"{n_outside} of {_bins_phrase(n_bins)}", "lies" if n_outside == 1 else "lie"
    text = (
        f"in {count_text} the interval excludes the mean prediction"
        if is_confidence_interval
        else f"{count_text} {verb} outside"
    )
    expected_text = f"{expected_outside_text(n_bins, level)} expected if calibrated"
    is_significant = jointly_outside or simultaneous
    if not is_significant and is_explained_by_chance(n_bins, n_outside, level):
        return f"{capitalize_first(text)} ({expected_text})."
    named_text = _named_bins_phrase(table, n_outside)
    segment_text = capitalize_first(describe_segments(table, view_name))
    if not is_significant:
        return f"{segment_text}: {text}{named_text} ({expected_text})."
    if is_confidence_interval:
        return f"{segment_text}: {text}{named_text}."
    bars = "its consistency bar" if n_outside == 1 else "their consistency bars"
    return f"{segment_text}: {count_text} {verb} outside {bars}{named_text}."


def _bins_phrase(n_bins: int) -> str:
    return f"{n_bins} {'bins' if n_bins != 1 else 'bin'}"


def _all_inside_text(n_bins: int, *, is_confidence_interval: bool) -> str:
    if is_confidence_interval:
        bins_text = "the only bin" if n_bins == 1 else f"all {_bins_phrase(n_bins)}"
        return f"In {bins_text} the interval contains the mean prediction."
    if n_bins == 1:
        return "The only bin lies inside its consistency bar."
    return f"All {_bins_phrase(n_bins)} lie inside their consistency bars."


def describe_finding(
    binned: BinnedView, pooled_view: View, segment_text: str, *, n_views: int, is_largest: bool
) -> str:
    """Describe where the view is miscalibrated, and its mean prediction and event rate."""
    view_name = binned.view.name
    predicted, observed = ("confidence", "accuracy") if view_name == "confidence" else ("predicted", "observed")
    mean_prediction, event_rate = format_percent(float(pooled_view.p[0])), format_percent(float(pooled_view.y[0]))
    text = f"Mean {predicted} {mean_prediction}, {observed} {event_rate}."
    text = f"{segment_text} {text}" if segment_text else text
    if n_views == 1:
        return text
    name = f"class {view_title(view_name)}" if view_name.startswith("class:") else view_name
    title = f"Largest error: {name}" if is_largest else capitalize_first(name)
    return f"{title} (ECE\u00a0{binned.calibration_error:.4f}). {text}"
