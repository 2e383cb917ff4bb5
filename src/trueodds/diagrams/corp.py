"""The CORP reliability diagram: isotonic event rates with a band, and the decomposition into MCB, DSC and UNC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.arithmetic import decreasing_order
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount, Level, OneOf
from trueodds.core.typing import Array
from trueodds.diagrams import corp_curve
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import (
    SCORE_NAMES,
    TALLY_NOTE,
    bias_words,
    capitalize_first,
    format_percent,
    format_range,
    format_score,
    join_words,
)
from trueodds.diagrams._style.marks import Band, Boxes, Line, Mark, PanelSize, Points, Segments, Text, draw_marks
from trueodds.diagrams._style.reliability_plots import UnitSquarePlot
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import freedman_diaconis_bin_count
from trueodds.diagrams.corp_curve import BandSegment, CorpCurve, CorpPanel, find_segments_outside
from trueodds.diagrams.recipe import IMPORTANCE_WEIGHT_EXEMPTION, BandDraws, Recipe, lens_name, panel_limit_notes
from trueodds.diagrams.table_columns import select_part
from trueodds.estimators.corp import SCORES
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Corp(Recipe):
    r"""CORP reliability diagram: isotonic event rates with a band, and the score decomposition into MCB, DSC and UNC.

    Isotonic regression replaces the choice of bins.

    Parameters
    ----------
    band : {"consistency", "confidence", "honest"} or None, default="consistency"
        `consistency` is the range around the diagonal in which the curve of a calibrated model lies. `confidence` is
        the range in which curves lie if the fitted curve is the truth. Both are pointwise. `honest` covers the true
        event rates at all scores simultaneously, for any number of rows, if they never decrease with the score.
    level : float, default=0.95
        Coverage of the band.
    style : {"miscalibration", "discrimination"}, default="miscalibration"
        `miscalibration` shows curve, band, scores and the share of rows by score. `discrimination` adds the share of
        rows by recalibrated rate at the right, the mean prediction as a vertical and the event rate as a horizontal
        line.
    score : {"brier", "log_loss"}, default="brier"
        The score that is decomposed.
    how : {"auto", "paper", "discrete", "continuous"}, default="auto"
        How pointwise bands are computed. `auto` resamples labels, on 1,024 groups of neighboring scores if there are
        more scores. `discrete` uses normal limits. `continuous` uses Chernoff's distribution, around the diagonal.
        `paper` resamples up to max(1000, min(5000, 50 m)) rows with m distinct scores, and for confidence bands and
        votes; beyond, it is discrete from 8 m² rows on, else continuous. It is not the default because of the coverage
        below.
    redraw : {"labels", "both"}, default="labels"
        `labels` keeps the predictions fixed. `both` first draws rows with replacement, as in [1]_.
    resamples : int, default=999
        Number of draws.
    bins : int, optional
        Bins of the strip. By default Freedman and Diaconis's rule, from 5 to 40.

    Raises
    ------
    InputError
        TO203 for an invalid setting. TO205 for a joint view. TO403 for an honest band from a tally of rows with unequal
        weights.

    See Also
    --------
    reliability : The same with bins.
    reliability_curve : The same with kernel smoothing.

    Notes
    -----
    The curve is the isotonic regression of outcomes on scores, with equal scores pooled,

    .. math:: \hat r = \arg\min_{r_1 \le \dots \le r_m} \sum_j w_j (\bar y_j - r_j)^2,

    drawn as straight lines through :math:`(x_{min}, \hat r)` and :math:`(x_{max}, \hat r)` of successive blocks of
    equal rate. The mean score is decomposed into :math:`S(p) = \text{MCB} - \text{DSC} + \text{UNC}` (see the estimator
    `corp`): the gain of recalibrating p → r̂, the gain of the ranking over a constant prediction, and the score of a
    constant one.

    Views: binary, one panel each, largest MCB first. Rows, or cells of tallies at their mean. Weights are importance
    weights and stay with their rows in every draw: a weight of two is two rows for curve and scores, not for bands. For
    shares of votes, draws keep the size of each residual and draw its sign. Bands only for the panels that are drawn.

    In simulations at `level=0.9` with uniform and arcsine scores and three truths, for 100 / 1,000 / 10,000 rows, the
    consistency band covers a calibrated model's curve at 92–94 / 90–91 / 89–90 % of the scores, with fixed and with
    resampled predictions. The confidence band covers the truth at 45–86 / 65–93 / 79–96 %, least where true rates are
    near 0 or 1, because labels drawn from the curve vary too little. The honest band covers all true rates in 99.5–100
    % of data sets. Chernoff's distribution covers 83–91 % of such scores, but only 30 % of VGG16's sharp confidences (n
    = 10,000), which the rule of [1]_ treats as continuous; resampling covers 94 %.

    Units: probability. Cost: O(n log n) for the curve, plus the band (see `corp_curve`).

    Columns of `table`: view part x_low x_high rate low high n weight share outside. The values of `part` are `block`
    (rate at the scores x_low to x_high), `band` (its limits low and high there), `outside` (scores where the curve is
    outside the consistency band, or the diagonal outside the other bands; low is 0 where the model overpredicts, 1
    where it underpredicts), `strip` (share of rows by score) and `rates` (share of rows with recalibrated rates from
    low to high). Columns that a part does not use are NaN. `panels` holds the mean score with its MCB, DSC and UNC, and
    how the band was computed in `band_method`. For the picture it also holds the largest share of rows in a bin of the
    strip (`tallest`) and of the recalibrated rates (`tallest_rate`), and the `corner` that the curve leaves free.

    References
    ----------
    .. [1] Dimitriadis, Gneiting & Jordan (2021), PNAS 118.
    .. [2] Dimitriadis, Dümbgen, Henzi, Puke & Ziegel (2023), Biometrika 110, for the honest band.

    Examples
    --------
    >>> import trueodds as to
    >>> diagram = to.draw([1, 0, 1], [0.2, 0.4, 0.8], "corp", band=None)
    >>> block = diagram.table["part"] == "block"
    >>> diagram.table["x_high"][block].tolist(), diagram.table["rate"][block].tolist()
    ([0.4, 0.8], [0.5, 1.0])
    >>> diagram.panels["mcb"].round(4).tolist()
    [0.1133]
    """

    name: ClassVar[str] = "corp"
    exemptions: ClassVar[dict[str, str]] = IMPORTANCE_WEIGHT_EXEMPTION
    band: Literal["consistency", "confidence", "honest"] | None = "consistency"
    level: Level = 0.95
    style: Literal["miscalibration", "discrimination"] = "miscalibration"
    score: Annotated[str, OneOf(tuple(SCORES))] = "brier"
    how: Literal["auto", "paper", "discrete", "continuous"] = "auto"
    redraw: Literal["labels", "both"] = "labels"
    resamples: BandDraws = 999
    bins: BinCount | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.how != "auto" and self.band not in ("consistency", "confidence"):
            problem = "how applies only to pointwise bands."
            raise InputError("TO203", problem, f"how={self.how!r}, band={self.band!r}", "Omit how.")
        if self.how == "continuous" and self.band == "confidence":
            problem = (
                "Chernoff's distribution needs the slope of the true curve, which is known only under calibration."
            )
            raise InputError("TO203", problem, "how='continuous', band='confidence'", "Omit how.")

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        curves = [CorpCurve(view, self.score) for view in views]
        curves = [curves[i] for i in decreasing_order(curve.decomposition["mcb"] for curve in curves)]
        drawn_curves = curves[:MAX_PANELS]
        n_bins = self.bins or freedman_diaconis_bin_count(drawn_curves[0].score_sums)
        panels = [self._evaluate_panel(curve, n_bins, rng if curve in drawn_curves else None) for curve in curves]
        tables, notes = [panel.table_columns() for panel in panels], self._collect_notes(panels, len(views))
        settings = self._settings | {"bins": n_bins}
        return self.build_diagram(CorpDiagram, lens_name(views), tables, self._panel_rows(panels), settings, notes)

    def _evaluate_panel(self, curve: CorpCurve, n_bins: int, rng: np.random.Generator | None) -> CorpPanel:
        """Compute the band of one curve, and where it rejects calibration.

        Without `rng` there is no band, because the panel is not drawn.
        """
        score_sums, limits_cross = curve.score_sums, False
        if self.band is None or rng is None:
            return CorpPanel(curve, n_bins, self.style)
        band_method = corp_curve.choose_band_method(score_sums, self.band) if self.how == "paper" else self.how
        band: corp_curve.CurveBand
        if self.band == "honest":
            corp_curve.require_known_max_weight(score_sums, curve.view.is_rows)
            limits = corp_curve.simultaneous_limits(score_sums, self.level)
            band, limits_cross = limits.band(), limits.limits_cross
        elif band_method in ("auto", "resampling"):  # the latter by the rule of the paper
            band = corp_curve.resampled_band(score_sums, self.band, self.level, self.resamples, self.redraw, rng)
        elif band_method == "discrete":
            band = corp_curve.discrete_band(score_sums, self.band, self.level)
        else:
            band = corp_curve.continuous_band(score_sums, self.level)
        # The consistency band is around the diagonal, the other bands around the curve.
        fit = curve.fit if self.band == "consistency" else None
        segments = find_segments_outside(band, score_sums.score, score_sums.w, fit)
        return CorpPanel(
            curve,
            n_bins,
            self.style,
            band.restrict_to_range(score_sums.score[0], score_sums.score[-1]),
            segments,
            limits_cross,
        )

    def _panel_rows(self, panels: Sequence[CorpPanel]) -> list[dict[str, Any]]:
        """The rows of `panels`; the drawn panels share the scale of their strips."""
        drawn_panels = panels[:MAX_PANELS]
        max_share = max(float(panel.score_histogram["share"].max()) for panel in drawn_panels)
        return [
            {
                **panel.panel_row(),
                "finding": describe_finding(
                    panel, self.band, self.level, self.score, len(panels), is_largest=panel is panels[0]
                ),
                "tallest": max_share,
                "tallest_rate": max(float(panel.rate_histogram["share"].max()) for panel in drawn_panels),
            }
            for panel in panels
        ]

    def _collect_notes(self, panels: Sequence[CorpPanel], n_views: int) -> list[Note]:
        notes = [note for panel in panels[:MAX_PANELS] for note in panel.curve.notes()][:1]
        table_content = "The table contains the curves of all of them, but bands only of those drawn."
        notes += panel_limit_notes(n_views, CorpDiagram.view_order, table_content)
        if self.band in ("consistency", "confidence"):
            covered_curve = "a calibrated model's curve" if self.band == "consistency" else "a true curve"
            methods = ", ".join(dict.fromkeys(panel.band.method for panel in panels if panel.band))
            text = (
                f"The band is pointwise: at {format_percent(1 - self.level)} of the scores {covered_curve} is"
                f" expected outside. Method: {methods}."
            )
            if self.band == "confidence":
                text += (
                    " Labels drawn from the curve vary too little where rates are near 0 or 1: in simulations with 100"
                    " to 1,000 rows it covered 45 to 93 % of the true rates at a level of 90 %."
                )
            notes.append(Note("TN255", text))
        if self.band == "confidence" and any(panel.curve.has_certain_ends for panel in panels[:MAX_PANELS]):
            text = (
                "The curve is 0 or 1 at an end, where labels drawn from it cannot vary and the band has zero width. Use"
                " band='honest'."
            )
            notes.append(Note("TN256", text))
        crossed = [panel.curve.title for panel in panels if panel.limits_cross]
        if crossed:
            text = (
                f"No increasing curve lies within the honest limits of {', '.join(crossed[:5])}: the true event rate"
                " decreases somewhere with the score, or the sample is unusual."
            )
            notes.append(Note("TN257", text))
        if not all(panel.curve.view.is_rows for panel in panels):
            notes.append(TALLY_NOTE)
        return notes


MAX_SEGMENTS = 3  # largest number of segments that are named: those with most rows
MIN_SEGMENT_SHARE = 0.01  # smallest share of rows of a named segment
_TEXTS_WITHOUT_SEGMENTS = {
    "honest": "The diagonal lies inside the simultaneous band.",
    "consistency": "The curve lies inside the consistency band.",
    "confidence": "The diagonal lies inside the confidence band.",
}


def describe_finding(
    panel: CorpPanel, band: str | None, level: float, score: str, n_views: int, *, is_largest: bool
) -> str:
    """Describe where the model over- or underpredicts, and the gain of recalibration.

    `band`, `level` and `score` are the settings of the diagram. Of `n_views` views, that with the largest
    miscalibration (`is_largest`) is introduced as such.
    """
    text = _describe_miscalibration(panel, score)
    if band is not None and panel.band is not None:
        text = f"{_describe_segments(panel, band, level)} {text}"
    if n_views > 1:
        text = f"{'Largest miscalibration: ' if is_largest else ''}{panel.curve.title}. {text}"
    return text


def _describe_segments(panel: CorpPanel, band: str, level: float) -> str:
    """Name the longest segments outside the band and the direction of their error."""
    segments = panel.segments_outside
    if not segments:
        return _TEXTS_WITHOUT_SEGMENTS[band]
    candidates = [segment for segment in segments if segment.share >= MIN_SEGMENT_SHARE] or list(segments)
    longest = sorted(candidates, key=lambda segment: -segment.share)[:MAX_SEGMENTS]
    shown_segments = sorted(longest)  # by score
    overpredicted = [segment for segment in shown_segments if segment.overpredicts]
    underpredicted = [segment for segment in shown_segments if not segment.overpredicts]
    underpredicts, overpredicts = bias_words(panel.curve.view.name)
    phrases = [
        f"{verb} {_format_segments(deviating, is_only_segment=len(shown_segments) == 1)}"
        for verb, deviating in ((overpredicts, overpredicted), (underpredicts, underpredicted))
        if deviating
    ]
    n_omitted = len(segments) - len(shown_segments)
    if n_omitted:
        phrases.append(f"deviates in {n_omitted} shorter {'segment' if n_omitted == 1 else 'segments'}")
    body = _join_phrases(phrases)
    band_name = "simultaneous" if band == "honest" else band
    return f"{capitalize_first(body)} (outside the {100 * level:.4g}\u00a0% {band_name} band)."


def _join_phrases(phrases: Sequence[str]) -> str:
    """Join one to three phrases; a comma separates phrases that contain an "and" of their own."""
    if len(phrases) == 1:
        return phrases[0]
    if len(phrases) == 2 and " and " not in phrases[0]:
        return join_words(phrases)
    return f"{', '.join(phrases[:-1])}, and {phrases[-1]}"


def _format_segments(segments: Sequence[BandSegment], *, is_only_segment: bool) -> str:
    """Format the scores that these segments span, as a phrase such as `at 10–20 % and 40–60 %`."""
    if is_only_segment:
        return format_range(segments[0].low, segments[0].high, "between {}\u00a0% and {}")
    return "at " + join_words(
        [format_range(segment.low, segment.high, "{}–{}").removeprefix("at ") for segment in segments]
    )


def _describe_miscalibration(panel: CorpPanel, score: str) -> str:
    """State how much recalibration could reduce the score."""
    decomposition = panel.curve.decomposition
    score_name = SCORE_NAMES[score]
    if decomposition["score"] == float("inf"):
        return f"The {score_name} is infinite: an observed outcome had predicted probability 0."
    mean_score, mcb = (format_score(decomposition[key]) for key in ("score", "mcb"))
    return f"Recalibration could reduce the {score_name} of {mean_score} by {mcb}."


MAX_BLOCKS_WITH_LARGE_MARKS = 60  # number of blocks beyond which their marks shrink
HALF_MARK_WIDTH = 0.005  # half of the width of a mark along x


class CorpDiagram(UnitSquarePlot):
    """The CORP reliability diagram: isotonic curve, band, histogram strips and score decomposition."""

    layers = ("band", "curve", "marks", "strip", "numbers", "diagonal", "means")
    view_order = "largest MCB"

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Inches of the figure, with room for the strip below and, in the style `discrimination`, at the right."""
        return (6.0, 6.7) if self._shows_rate_strip else (5.2, 6.7)

    @property
    def aspect_ratio(self) -> float:  # type: ignore[override]
        """The height of the axes relative to their width, which the strip at the right enlarges."""
        return super().aspect_ratio * (1 - styling.STRIP_HEIGHT * self._shows_rate_strip)

    @property
    def _shows_rate_strip(self) -> bool:
        """Whether the histogram of the recalibrated rates is drawn along the right edge."""
        return self.settings["style"] == "discrimination" and self.has("strip")

    def default_title(self) -> str:
        if self.settings["style"] == "discrimination":
            return "How well do predictions separate events from non-events?"
        return super().default_title()

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        super().set_axes(ax, panel, size)
        if self._shows_rate_strip:
            left, right = ax.get_xlim()
            ax.set_xlim(left, left + (right - left) / (1 - styling.STRIP_HEIGHT))

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        marks = [*_curve_marks(rows, size, self._curve_labels()), *self._band_marks(rows), self.diagonal()]
        if self.settings["style"] == "discrimination":
            label = "means: predicted |, observed —" if self.has_long_labels else "means"
            mean: dict[str, Any] = {"layer": "means", "label": label, "color": styling.TEXT_COLOR, "linewidth": 1.2}
            mean |= {"linestyle": (0, (4, 2.5)), "zorder": 2.2}
            marks.append(Line(panel_row["mean_prediction"], (0, 1), name="mean predicted", **mean))
            marks.append(Line((0, 1), panel_row["outcome_rate"], name="mean observed", **mean))
            marks.append(_RateStrip(select_part(rows, "rates"), panel_row["tallest_rate"]))
        strip = select_part(rows, "strip")
        marks.append(self.strip(strip["x_low"], strip["x_high"], strip["share"], panel_row["tallest"], size))
        if min(size.width, size.height) > 2.2:
            marks.append(_decomposition_text(panel_row, self.settings["score"], size.font_size))
        return marks

    def _curve_labels(self) -> tuple[str, str]:
        if not self.has_long_labels:
            return "observed", "outside"
        is_consistency_band = self.settings["band"] == "consistency"
        return "observed, isotonic", "outside the band" if is_consistency_band else "diagonal outside the band"

    def _band_marks(self, rows: Mapping[str, Array]) -> list[Mark]:
        """The band, which is constant between `x_low` and `x_high` of each row."""
        if not self.settings["band"]:
            return []
        band = select_part(rows, "band")
        x = np.stack([band["x_low"], band["x_high"]], axis=1).ravel()
        low, high = np.repeat(band["low"], 2), np.repeat(band["high"], 2)
        style: dict[str, Any] = {"layer": "band", "label": self._band_label(), "color": styling.INSIDE_BAR_COLOR}
        if len(x) == 2 and x[0] == x[1]:  # a single score
            return [Segments(x[:1], x[:1], low[:1], high[:1], linewidth=7, zorder=1.4, **style)]
        return [Band(x, low, high, alpha=0.55, linewidth=0, zorder=1.4, **style)]

    def _band_label(self) -> str:
        level = self.level_text
        if not self.has_long_labels:
            return f"{level} {'consistency' if self.settings['band'] == 'consistency' else 'interval'}"
        return {
            "consistency": f"{level} consistency band (pointwise)",
            "confidence": f"{level} pointwise band",
            "honest": f"{level} simultaneous band",
        }[self.settings["band"]]


def _curve_marks(rows: Mapping[str, Array], size: PanelSize, labels: tuple[str, str]) -> list[Mark]:
    """The curve and its points, and both in the color of segments outside the band."""
    blocks, outside = select_part(rows, "block"), select_part(rows, "outside")
    x, y = np.stack([blocks["x_low"], blocks["x_high"]], axis=1).ravel(), np.repeat(blocks["rate"], 2)
    limits = list(zip(outside["x_low"], outside["x_high"], strict=True))
    is_outside = np.zeros(len(x), dtype=bool)
    for low, high in limits:
        is_outside |= (x >= low - 1e-12) & (x <= high + 1e-12)
    pieces = [np.empty((2, 0)), *(piece for low, high in limits for piece in (_cut_curve(x, y, low, high), _GAP))]
    segments = np.concatenate(pieces, axis=1)
    width = 1.8 if size.is_wide else 1.3
    marker_size = (4.2 if size.is_wide else 2.6) * (1.0 if len(blocks["rate"]) <= MAX_BLOCKS_WITH_LARGE_MARKS else 0.6)
    inside_style: dict[str, Any] = {"color": styling.INSIDE_COLOR, "label": labels[0], "zorder": 3}
    outside_style: dict[str, Any] = {"color": styling.OUTSIDE_COLOR, "label": labels[1], "zorder": 3.1}
    thick: dict[str, Any] = {"linewidth": 1.8 * width, "solid_capstyle": "butt" if x[-1] > x[0] else "projecting"}
    dots: dict[str, Any] = {"layer": "marks", "marker": "o", "markersize": marker_size, "markeredgewidth": 0}
    return [
        Line(x, y, layer="curve", linewidth=width, **inside_style),
        Points(x, y, **dots, **inside_style),
        Line(*segments, layer="curve", name="curve outside", **thick, **outside_style),
        Points(x[is_outside], y[is_outside], name="marks outside", **dots, **outside_style),
    ]


_GAP = np.full((2, 1), np.nan)  # between two segments of a line


def _cut_curve(x: Array, y: Array, low: float, high: float) -> Array:
    """The points (2, k) of the curve between two scores, and half a mark beyond."""
    limits = np.clip([low - HALF_MARK_WIDTH, high + HALF_MARK_WIDTH], x[0], x[-1])
    is_within = (x > limits[0]) & (x < limits[1])
    first, last = np.interp(limits, x, y)
    return np.array([[limits[0], *x[is_within], limits[1]], [first, *y[is_within], last]])


class _RateStrip(Mark):
    """The share of rows by recalibrated rate along the right edge, above the strip of the predictions."""

    def __init__(self, rates: Mapping[str, Array], max_share: float) -> None:
        super().__init__(rates["low"], rates["high"], rates["share"], layer="strip")
        self.max_share = max_share

    def draw(self, ax: Any) -> Iterable[Any]:
        # In data coordinates, since a legend may still extend the y axis.
        bottom, top = styling.RATE_LIMITS
        box = 1 - styling.STRIP_HEIGHT, bottom, styling.STRIP_HEIGHT, top - bottom
        strip = ax.inset_axes(box, transform=ax.get_yaxis_transform(), zorder=3)
        strip.set_label("strip")
        strip.set_xlim(0, self.max_share * 1.12)
        strip.set_ylim(bottom, top)
        low, high, share = self.coordinates
        style: dict[str, Any] = {"facecolor": styling.STRIP_COLOR, "edgecolor": "white", "linewidth": 0.5}
        draw_marks(strip, [Boxes(0.0, share, low, high, name="share", **style)])
        strip.set_xticks([])
        strip.set_yticks([])
        for name, spine in strip.spines.items():
            spine.set_visible(name == "left")
            spine.set_color(styling.AXIS_LINE_COLOR)
            spine.set_linewidth(0.8)
        strip.set_facecolor(styling.STRIP_BACKGROUND_COLOR)
        return []


def _decomposition_text(panel_row: Mapping[str, Any], score: str, size: float) -> Mark:
    """Score, MCB, DSC and UNC in the corner of the axes that the curve leaves free."""
    lines = [
        f"{SCORE_NAMES[score]} {format_score(panel_row['score'])}",
        f"miscalibration MCB {format_score(panel_row['mcb'])}",
        f"discrimination DSC {format_score(panel_row['dsc'])}",
        f"uncertainty UNC {format_score(panel_row['unc'])}",
    ]
    is_upper_left = panel_row["corner"] == "upper left"
    x, y, horizontal, vertical = (0.0, 1.0, "left", "top") if is_upper_left else (1.0, 0.0, "right", "bottom")
    style: dict[str, Any] = {"ha": horizontal, "va": vertical, "fontsize": size - 1, "linespacing": 1.35, "zorder": 3.5}
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2}
    return Text(x, y, "\n".join(lines), layer="numbers", gid="numbers", bbox=box, **style)
