"""The kernel-smoothed reliability curve, without bins, with pointwise or simultaneous bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from trueodds.calibrators.kernel import KernelSpec
from trueodds.core.arithmetic import decreasing_order, weighted_sum
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import BinCount, Level, OneOf
from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import TALLY_NOTE, bias_words, capitalize_first, format_probabilities
from trueodds.diagrams._style.marks import Band, Line, Mark, PanelSize, Segments
from trueodds.diagrams._style.reliability_plots import UnitSquarePlot
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import freedman_diaconis_bin_count, score_histogram
from trueodds.diagrams.curve_smoother import (
    CURVE_SMOOTHERS,
    CurveSmoother,
    LoessSmoother,
    correct_smoothing_bias,
    is_supported,
    loess_view,
    smooth_view,
)
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums
from trueodds.diagrams.recipe import BandDraws, Recipe, lens_name, panel_limit_notes
from trueodds.diagrams.table_columns import part_rows, select_part, stack_tables
from trueodds.lenses.effective_sample_size import n_represented
from trueodds.lenses.view import View, view_title

KERNEL_SETTINGS = ("bandwidth", "scale", "range")
COUNT_COLUMNS = ("low", "high", "probability_low", "probability_high", "effective", "n", "outside")


@dataclass(frozen=True)
class ReliabilityCurve(Recipe):
    r"""Reliability curve by Gaussian kernel smoothing or loess, without bins, with a pointwise or simultaneous band.

    `at` of the diagram returns the recalibrated probability of a single prediction.

    Parameters
    ----------
    band : {"confidence", "consistency"} or None, default="confidence"
        `confidence` is an interval around the curve, for the effective sample size near a score, (Σwk)²/Σw²k².
        `consistency` is the range around the reference in which the curve of a calibrated model lies.
    level : float, default=0.95
        Coverage of the band.
    simultaneous : bool, default=False
        Whether `level` holds for all scores jointly instead of for each score. Calibrated with the largest deviation in
        standard errors of bootstrap curves (`confidence`), or with the smallest tail probability of curves of resampled
        labels (`consistency`).
    bandwidth : float or {"silverman", "normal"}, default="silverman"
        Standard deviation h of the kernel on `scale`, or a rule based on the scores alone: `silverman` is
        0.9 min(sd, IQR/1.34) n^(−1/5), `normal` is 1.06 sd n^(−1/5).
    scale : {"logit", "probability"}, default="logit"
        `logit` smooths in the log odds, which separates scores near 0 and 1, such as those of networks. `probability`
        smooths in the probabilities, reflected at both ends of their range, as in [1]_.
    range : {"auto", "1/K"} or None, default="auto"
        Range of the reflected probabilities. `auto` is [1/K, 1] for the largest of K probabilities, else [0, 1]. None
        is [0, 1], and `1/K` is [1/K, 1].
    resamples : int, default=200
        Number of draws for a simultaneous band.
    bins : int, optional
        Bins of the strip. By default Freedman and Diaconis's rule, from 5 to 40.
    smoother : {"kernel", "loess"}, default="kernel"
        `kernel` is the Gaussian kernel. `loess` is the local regression of `ici`, the flexible calibration curve of
        clinical reports [4]_: parabolas with tricube weights of the nearest 75 % of the rows, without `bandwidth`,
        `scale` and `range`.

    Raises
    ------
    InputError
        TO203 for an invalid setting. TO205 for a joint view, and for scores below 1/K with `range="1/K"`.

    See Also
    --------
    reliability : The same with bins.
    corp : The same with isotonic regression.

    Notes
    -----
    With a Gaussian K of standard deviation h, the curve and its reference are

    .. math:: \hat r(s) = \frac{\sum_i w_i y_i K_h(s, p_i)}{\sum_i w_i K_h(s, p_i)}, \quad
              \tilde p(s) = \frac{\sum_i w_i p_i K_h(s, p_i)}{\sum_i w_i K_h(s, p_i)} .

    Smoothing is biased at the diagonal: where predictions lie mostly on one side of s, the curve of a calibrated model
    is p̃ and not s. The local error is therefore :math:`\hat r - \tilde p`. The probability at s is :math:`\hat r`
    mapped by the piecewise linear function that fixes 0 and 1 and takes p̃ to s: :math:`\hat r s / \tilde p` up to p̃,
    and :math:`1 - (1 - \hat r)(1 - s)/(1 - \tilde p)` beyond. This removes the bias of smoothing the diagonal, but not
    that of smoothing the error within h. The limits are mapped in the same way. The curve is that of the calibrator
    `kernel` before it is made monotone, except for h if scores are exactly 0 or 1: these are ignored here on the
    log-odds scale.

    A parabola reproduces straight lines, so with `loess` the reference is the diagonal and the probability is the
    curve. Its band is that of the effective sample size of its weights, which are kernel weights of either sign.

    The curve is drawn, and compared with its reference, where the effective sample size is at least 10, or a quarter of
    its largest value if that is less: next to few rows a single event would be a peak. The table contains all points.

    Views: binary, one panel each, ordered by mean local error (biased upward, because noise adds to it). Rows, or cells
    of tallies at their mean. A weight of two is two rows for curve and bandwidth. Bands use importance weights and the
    observed variance of shares of votes. Units: probability.

    Simulations at `level=0.9` used 100, 1,000 and 10,000 rows of uniform, arcsine and sharp scores, three truths and
    200 data sets each. The pointwise confidence band covers the smoothed truth for 91 to 98 % of the rows, the
    simultaneous one in 88 to 98 % of data sets. The limits of `at` cover the true event rate (p, p^1.5 or half the log
    odds; 60 data sets, 12 of 10,000 rows) for 87 to 98 % of the rows on log odds, and for 55 to 97 % on probabilities,
    least for curved truths and many rows. The pointwise consistency band covers a calibrated model's curve for 89 to 92
    %, the simultaneous one in 86 to 98 %. Percentiles of 200 bootstrap curves cover 47 to 91 % and are not used.

    Cost: O(n log n), plus the number of points (about 200) times the groups of scores, 4 per bandwidth, and times
    `resamples` with `simultaneous=True`. 10,000 rows take 0.02 s, 0.1 s if simultaneous; a tally of 10⁷ rows 0.05 and
    0.3 s.

    Columns of `table`: view part piece score rate low high reference error probability probability_low probability_high
    effective x_low x_high n weight share outside. The values of `part` are `curve` (at `score`: the curve in rate, its
    band in low and high, the effective sample size near it) and `strip` (share of predictions from x_low to x_high);
    `ReliabilityCurveDisplay.from_cv_results` adds `fold`, the curve of each fold. Points lie within h of a score; those
    of one `piece` follow each other without a gap. `outside`: the reference is outside the confidence band, or the
    curve outside the consistency band. Columns that a part does not use are NaN.

    References
    ----------
    .. [1] Posocco & Bonnefoy (2021).
    .. [2] Silverman (1986).
    .. [3] Clopper & Pearson (1934), for the limits.
    .. [4] Austin & Steyerberg (2019).

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [0, 1, 1, 0, 0, 1, 1, 1] * 10, [0.5, 0.9] * 40
    >>> diagram = to.draw(y, p, "reliability_curve", bandwidth=0.05, scale="probability")
    >>> diagram.finding.replace("\u00a0", " ")
    'Overpredicts between 85 % and 95 %: observed 75 % [59 %, 87 %] at 90 %. Mean local error 7.5 points.'
    """

    name: ClassVar[str] = "reliability_curve"
    count_columns: ClassVar[tuple[str, ...]] = COUNT_COLUMNS
    band: Literal["confidence", "consistency"] | None = "confidence"
    level: Level = 0.95
    simultaneous: bool = False
    bandwidth: float | str = "silverman"
    scale: str = "logit"
    range: Literal["auto", "1/K"] | None = "auto"
    resamples: BandDraws = 200
    bins: BinCount | None = None
    smoother: Annotated[str, OneOf(CURVE_SMOOTHERS)] = "kernel"

    def __post_init__(self) -> None:
        super().__post_init__()
        KernelSpec(bandwidth=self.bandwidth, scale=self.scale)  # validates the two settings
        changed = [name for name in KERNEL_SETTINGS if getattr(self, name) != getattr(type(self), name)]
        if self.smoother == "loess" and changed:
            raise InputError("TO203", f"The loess curve has no {changed[0]}.", changed[0], f"Leave {changed[0]} out.")

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        if self.smoother == "loess":
            smoothed_views = [loess_view(view) for view in views]
        else:
            smoothed_views = [smooth_view(view, self.bandwidth, self.scale, self.range) for view in views]
        panels = [CurvePanel(view, **smoothed._asdict()) for view, smoothed in zip(views, smoothed_views, strict=True)]
        panels = [panels[i] for i in decreasing_order(panel.mean_local_error for panel in panels)]
        drawn_panels = panels[:MAX_PANELS]
        drawn_panels = [
            panel.with_band(self.band, self.level, self.resamples, rng if self.simultaneous else None)
            for panel in drawn_panels
        ]
        panels[:MAX_PANELS] = drawn_panels
        n_bins = self.bins or drawn_panels[0].strip_bin_count
        strips = [score_histogram(panel.view, n_bins) for panel in panels]
        max_share = max(float(shares["share"].max()) for shares in strips[:MAX_PANELS])
        rows = [panel.panel_row(len(panels), self.band, max_share, is_first=panel is panels[0]) for panel in panels]
        tables = [panel.table_columns(shares) for panel, shares in zip(panels, strips, strict=True)]
        settings, notes = self._settings | {"bins": n_bins}, self._collect_notes(panels)
        return self.build_diagram(ReliabilityCurveDiagram, lens_name(views), tables, rows, settings, notes)

    def _collect_notes(self, panels: Sequence[CurvePanel]) -> list[Note]:
        notes = []
        drawn_panels = panels[:MAX_PANELS]
        narrowest = [
            panel.title for panel in drawn_panels if panel.smoother.is_narrowest and isinstance(self.bandwidth, str)
        ]
        if narrowest:
            text = (
                f"The scores of {', '.join(narrowest[:5])} are so concentrated that the bandwidth is the smallest"
                f" allowed, {drawn_panels[0].smoother.bandwidth:g}. Where scores are sparse, the curve follows single"
                " rows."
            )
            notes.append(Note("TN258", text))
        text = "The curve averages over neighboring scores: it hides variation within "
        if self.smoother == "loess":
            text += "its windows of 75\u00a0% of the rows."
        else:
            text += "a bandwidth, and smoothing bias moves even a calibrated curve off the diagonal (dashed)."
        if self.band == "confidence":
            text += " The band covers the smoothed true event rates, not the true rates themselves."
        if self.band is not None and not self.simultaneous:
            text += (
                f" It is pointwise and expected to fail at {100 * (1 - self.level):.3g}\u00a0% of the scores. Pass"
                " ⟨simultaneous=True⟩ for a simultaneous band."
            )
        if not all(is_supported(panel.columns["effective"]).all() for panel in drawn_panels):
            text += " It is not drawn where few rows contribute."
        notes.append(Note("TN259", text))
        table_content = "The table contains the curves of all of them, but bands only of those drawn."
        notes += panel_limit_notes(len(panels), ReliabilityCurveDiagram.view_order, table_content)
        if self.band is not None and any(panel.score_sums.has_vote_shares for panel in drawn_panels):
            notes.append(
                Note("TN243", "Outcomes are shares of votes; limits use their observed variance around the curve.")
            )
        if not all(panel.view.is_rows for panel in panels):
            notes.append(TALLY_NOTE)
        return notes


CURVE_COLUMNS = ("score", "rate", "low", "high", "reference", "error")
PROBABILITY_COLUMNS = ("probability", "probability_low", "probability_high", "effective")
STRIP_COLUMNS = ("x_low", "x_high", "n", "weight", "share")
COLUMN_NAMES = ("view", "part", "piece", *CURVE_COLUMNS, *PROBABILITY_COLUMNS, *STRIP_COLUMNS)


@dataclass(frozen=True)
class CurvePanel:
    """The curve, band and texts of one view."""

    view: View
    score_sums: DistinctScoreSums
    smoother: CurveSmoother | LoessSmoother
    columns: dict[str, Array]  # (points,) each: those of `SmoothedView`, and of the band if there is one

    def with_band(self, band: str | None, level: float, n_draws: int, rng: np.random.Generator | None) -> Self:
        """Return the curve with its effective sample sizes and a band, simultaneous if `rng` is not None."""
        columns = self.columns
        score, reference = columns["score"], columns["reference"]
        rates = self.smoother.rates(self.score_sums, columns)
        if band is None:
            return replace(self, columns=columns | {"effective": rates.effective_n})
        if band == "confidence":
            low, high = rates.confidence_limits(level, n_draws, rng)
            compared_curve = reference
        else:
            low, high = rates.consistency_limits(level, n_draws, rng)
            compared_curve = columns["rate"]
        tolerance = 1e-12  # equal counts must compare as equal
        band_columns = {
            "low": low,
            "high": high,
            "effective": rates.effective_n,
            "mass": rates.kernel_weight_sum,
            "outside": is_supported(rates.effective_n)
            & ((compared_curve < low - tolerance) | (compared_curve > high + tolerance)),
        }
        if band == "confidence":
            corrected_low = correct_smoothing_bias(low, score, reference)
            corrected_high = correct_smoothing_bias(high, score, reference)
            # At a score of 0 all rates up to the reference map to 0, which must not give limits of zero width.
            band_columns["probability_low"] = np.where(score == 1, np.minimum(corrected_low, low), corrected_low)
            band_columns["probability_high"] = np.where(score == 0, np.maximum(corrected_high, high), corrected_high)
        return replace(self, columns=columns | band_columns)

    @property
    def title(self) -> str:
        return view_title(self.view.name)

    @cached_property
    def mean_local_error(self) -> float:
        """The mean local error: the mean distance of the curve from the reference over the predictions."""
        error = np.abs(np.interp(self.score_sums.score, self.columns["score"], self.columns["error"]))
        return float(weighted_sum(self.score_sums.w, error) / self.score_sums.w.sum())

    @cached_property
    def miscalibrated_segments(self) -> list[CurveSegment]:
        """The segments of scores at which the band rejects calibration; empty without a band."""
        if "outside" not in self.columns:
            return []
        return find_segments_outside(self.columns, self.score_sums.score, self.score_sums.w)

    @property
    def strip_bin_count(self) -> int:
        """The number of bins of the strip that suits the scores; a weight of two is two rows."""
        return freedman_diaconis_bin_count(
            replace(self.score_sums, n=self.score_sums.w * (n_represented(self.view) / self.view.total))
        )

    def table_columns(self, strip: dict[str, Array]) -> dict[str, Array]:
        """The rows of the table; columns that a part does not use are NaN."""
        tables = []
        for part, columns in (("curve", self.columns), ("strip", strip)):
            table = part_rows(COLUMN_NAMES, {"view": self.view.name, "part": part, **columns})
            n_rows = len(table["part"])
            table["piece"] = columns.get("piece", np.full(n_rows, -1))
            table["outside"] = columns.get("outside", np.zeros(n_rows, dtype=bool))
            tables.append(table)
        return stack_tables(tables)

    def panel_row(self, n_views: int, band: str | None, max_share: float, *, is_first: bool) -> dict[str, Any]:
        total = self.score_sums.w.sum()
        text = describe_finding(self.columns, self.miscalibrated_segments, self.mean_local_error, self.view.name, band)
        if n_views > 1:
            text = f"{'Largest local error: ' if is_first else ''}{self.title}. {text}"
        return {
            "view": self.view.name,
            "title": self.title,
            "aside": f"error {100 * self.mean_local_error:.1f} pp",
            "finding": text,
            "n": self.view.n_rows,
            "weight": self.view.total,
            "mean_prediction": float(weighted_sum(self.score_sums.w, self.score_sums.score) / total),
            "outcome_rate": float(self.score_sums.wy.sum() / total),
            "local_error": self.mean_local_error,
            "scale": self.smoother.scale,
            "bandwidth": self.smoother.bandwidth,
            "range_low": self.smoother.low,
            "share_outside": sum(segment.share for segment in self.miscalibrated_segments),
            "tallest": max_share,
        }


MAX_SEGMENTS = 2  # segments named at most: those with the largest local error
MIN_RELATIVE_ERROR = 0.2  # smallest local error of a named segment relative to the largest
MIN_NAMED_WIDTH = 0.001  # smallest width of a segment for which both ends are named


@dataclass(frozen=True)
class CurveSegment:
    """A run of points on one side of the diagonal."""

    low: float
    high: float
    overpredicts: bool  # whether the model overpredicts there
    share: float  # of the weight of all rows
    local_error: float  # contribution to the mean local error
    peak_index: int  # index of the point with the largest weighted error; of whole per cents, if there are any


def find_segments_outside(columns: dict[str, Array], distinct_scores: Array, w: Array) -> list[CurveSegment]:
    """Find the segments outside the band, by increasing score, from the columns of the curve.

    Of the columns (points,) it reads the `score`, the `error`, which is the event rate minus the reference and negative
    where the model overpredicts, the number of the `piece` of the curve, whether the point is `outside` the band, and
    the `mass`, the kernel-weighted weight of the rows around it. The distinct scores (m,) of the rows and their weights
    `w` (m,) determine how much a segment matters.
    """
    score, error, piece = columns["score"], columns["error"], columns["piece"]
    segments = []
    for overpredicts in (True, False):
        is_outside = columns["outside"] & ((error < 0) if overpredicts else (error > 0))
        outside_points = np.flatnonzero(is_outside)
        if not len(outside_points):
            continue
        for segment_points in np.split(
            outside_points, np.flatnonzero((np.diff(outside_points) > 1) | (np.diff(piece[outside_points]) > 0)) + 1
        ):
            low, high = float(score[segment_points[0]]), float(score[segment_points[-1]])
            in_segment = slice(
                np.searchsorted(distinct_scores, low, "left"), np.searchsorted(distinct_scores, high, "right")
            )
            share = w[in_segment] / w.sum()
            local_error = float(share @ np.abs(np.interp(distinct_scores[in_segment], score, error)))
            # Report a round score if possible, 90 % rather than 89.6 %.
            weighted_error = columns["mass"][segment_points] * np.abs(error[segment_points])
            is_round = np.abs(100 * score[segment_points] - np.rint(100 * score[segment_points])) < 1e-6
            peak = segment_points[
                np.argmax(np.where(is_round, weighted_error, 0.0) if is_round.any() else weighted_error)
            ]
            segments.append(CurveSegment(low, high, overpredicts, float(share.sum()), local_error, int(peak)))
    return sorted(segments, key=lambda segment: segment.low)


def describe_finding(
    columns: dict[str, Array], segments: list[CurveSegment], mean_local_error: float, view: str, band: str | None
) -> str:
    """Describe where the model is miscalibrated, the drawn curve at one score there, and the mean local error.

    Of the columns of the curve (points,) it reads `score`, `rate` and, with a confidence band, `low` and `high`. `view`
    is the name of the view, and `band` is "confidence", "consistency" or None.
    """
    observed = "accuracy" if view == "confidence" else "observed"
    mean_text = f"Mean local error {100 * mean_local_error:.1f} points."
    if band is None:
        return mean_text
    if not segments:
        return f"The {'curve' if band == 'consistency' else 'reference curve'} lies inside the {band} band. {mean_text}"
    underpredicts, overpredicts = bias_words(view)
    by_local_error = sorted(segments, key=lambda segment: -segment.local_error)
    shown_segments = sorted(
        (
            segment
            for segment in by_local_error[:MAX_SEGMENTS]
            if segment.local_error >= MIN_RELATIVE_ERROR * by_local_error[0].local_error
        ),
        key=lambda segment: segment.low,
    )
    segment_texts = []
    for segment in shown_segments:
        i = segment.peak_index
        peak = float(columns["score"][i])
        low_text, high_text, peak_text = (format_probabilities(x)[0] for x in (segment.low, segment.high, peak))
        names = ("rate", "low", "high")  # the drawn curve and its band
        rate, *limits = format_probabilities(
            *(float(columns[name][i]) for name in (names if band == "confidence" else names[:1]))
        )
        is_wide = segment.high - segment.low > MIN_NAMED_WIDTH and low_text != high_text
        range_text = f"between {low_text} and {high_text}" if is_wide else f"near {peak_text}"
        text = f"{overpredicts if segment.overpredicts else underpredicts} {range_text}: {observed} {rate}"
        if band == "confidence":
            text += f" [{', '.join(limits)}]"
        segment_texts.append(f"{text} at {peak_text}")
    n_omitted = len(segments) - len(shown_segments)
    rest = f", and {n_omitted} smaller {'error' if n_omitted == 1 else 'errors'} elsewhere" if n_omitted else ""
    body = "; ".join(segment_texts)
    return f"{capitalize_first(body)}{rest}. {mean_text}"


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
        >>> from trueodds.diagrams.reliability_curve import ReliabilityCurve
        >>> from trueodds.lenses.view import View
        >>> p, y = np.tile([0.5, 0.9], 40), np.tile([0, 1, 1, 0, 0, 1, 1, 1], 10)
        >>> diagram = ReliabilityCurve(bandwidth=0.05, scale="probability")([View(p, y, name="positive")])
        >>> [round(x, 2) for x in diagram.at(0.9)[:4]], diagram.at(0.2).reason
        ([0.75, 0.59, 0.87, -0.15], 'No prediction lies within a bandwidth (0.05) of 0.2.')
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
            if self.settings["smoother"] == "loess":
                range_text = " and ".join(f"{end:.6g}" for end in rows["score"][[0, -1]])
                return LocalEstimate(nan, nan, nan, nan, f"All predictions lie between {range_text}.")
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

    def _outside_label(self) -> str:
        if self.settings["band"] == "confidence":  # the band contains the curve, but not the reference
            return "band excludes calibration" if self.has_long_labels else "significant"
        return "outside the band" if self.has_long_labels else "outside"

    def _band_label(self) -> str:
        level = self.level_text
        consistent = self.settings["band"] == "consistency"
        if not self.has_long_labels:
            return f"{level} {'consistency' if consistent else 'interval'}"
        scope = "simultaneous" if self.settings["simultaneous"] else "pointwise"
        return f"{level} consistency band ({scope})" if consistent else f"{level} {scope} band"

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        rows = self.rows(panel)
        curve, strip = select_part(rows, "curve"), select_part(rows, "strip")
        marks: list[Mark] = []
        supported = is_supported(curve["effective"])
        run = np.cumsum((np.diff(curve["piece"], prepend=0) > 0) | np.diff(supported, prepend=False))
        for number in np.unique(run[supported]):
            in_run = run == number
            marks += self._piece_marks({name: column[in_run] for name, column in curve.items()}, size)
        folds = select_part(rows, "fold")
        thin: dict[str, Any] = {"color": styling.INSIDE_COLOR, "linewidth": 0.7, "alpha": 0.6, "zorder": 2}
        for piece in np.unique(folds["piece"]):
            x, rate = (folds[name][folds["piece"] == piece] for name in ("score", "rate"))
            marks.append(Line(x, rate, label="single folds", layer="curve", **thin))
        tallest = float(self.panels["tallest"][panel])
        return [*marks, self.diagonal(), self.strip(strip["x_low"], strip["x_high"], strip["share"], tallest, size)]

    def _piece_marks(self, rows: Mapping[str, Array], size: PanelSize) -> list[Mark]:
        x, width = rows["score"], 1.8 if size.is_wide else 1.3
        is_point = bool(x[-1] - x[0] < 0.004)  # a very narrow range remains visible
        dot: dict[str, Any] = {"marker": "o" if is_point else "", "markersize": 2.2 * width, "key": {"marker": ""}}
        curve: dict[str, Any] = {"layer": "curve", "linewidth": width, "color": styling.INSIDE_COLOR, "zorder": 3}
        outside = curve | {"linewidth": 1.8 * width, "color": styling.OUTSIDE_COLOR, "zorder": 3.1, "name": "outside"}
        outside_rate = np.where(rows["outside"], rows["rate"], np.nan)
        curve_label = "observed, smoothed" if self.has_long_labels else "observed"
        marks: list[Mark] = [
            Line(x, rows["rate"], label=curve_label, **curve, **dot),
            Line(x, outside_rate, label=self._outside_label(), **outside, **dot),
        ]
        if self.settings["band"]:
            # A band based on a row or two must look less certain than one based on thousands.
            strength = min(float(np.nanmax(rows["effective"])) / MIN_OPAQUE_EFFECTIVE_N, 1.0)
            style: dict[str, Any] = {"layer": "band", "color": styling.INSIDE_BAR_COLOR, "zorder": 1.4}
            fill: dict[str, Any] = {"alpha": 0.12 + 0.43 * strength, "linewidth": 0, "key": {"alpha": 0.55}}
            marks.append(Band(x, rows["low"], rows["high"], label=self._band_label(), **fill, **style))
            if is_point:
                low, high = rows["low"][:1], rows["high"][:1]
                marks.append(Segments(x[:1], x[:1], low, high, linewidth=(0.7 + 1.3 * strength) * width, **style))
        label = "expected if calibrated" if self.has_long_labels else "if calibrated"
        dashed: dict[str, Any] = {"color": styling.TEXT_COLOR, "linewidth": 1.2, "linestyle": (0, (4, 2.5))}
        return [*marks, Line(x, rows["reference"], layer="reference", label=label, zorder=2.5, **dashed)]
