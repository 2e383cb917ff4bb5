"""The cumulative diagram: residuals summed by increasing score, with a simultaneous band, ECCE-MAD and ECCE-R."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.ordering import decreasing_order
from trueodds.core.settings import Level
from trueodds.diagrams._style.formatting import bias_phrases, format_pvalue, format_range, merge_notes
from trueodds.diagrams._style.panel_grid import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.cumulative.cumulative_residuals import MAX_VERTICES, CumulativeResiduals
from trueodds.diagrams.cumulative.plot import CumulativeResidualsPlot
from trueodds.diagrams.recipe import Recipe, lens_name
from trueodds.diagrams.table_columns import rows_to_columns, stack_tables
from trueodds.lenses.view import View

# Scores for ticks, in order of priority: if two labels overlap, the first is shown.
SCORE_TICKS = (0.5, 0.1, 0.9, 0.01, 0.99, 0.2, 0.8, 0.7, 0.3, 0.6, 0.4, 0.95, 0.05, 0.999, 0.001, 0.9999, 0.0001)
_NUMBER_COLUMNS = ("share_low", "share_high", "score_low", "score_high", "difference", "slope")


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

    Raises
    ------
    InputError
        TO203 for an invalid setting, TO205 for a joint view.

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
        """Compute the cumulative residuals of binary views."""
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
        rows = [
            _panel_row(residuals, len(views), is_drawn=residuals in drawn_residuals)
            | {
                "y_low": low,
                "y_high": high,
            }
            for residuals in residuals_by_view
        ]
        return CumulativeResidualsPlot(
            name=self.name,
            lens=lens_name(views),
            table=stack_tables([_table_columns(residuals) for residuals in drawn_residuals]),
            panels=rows_to_columns(rows),
            settings={"level": self.level},
            notes=tuple(_collect_notes(residuals_by_view)),
        )


def _panel_row(residuals: CumulativeResiduals, n_views: int, *, is_drawn: bool) -> dict[str, Any]:
    """The row of `panels` for one view."""
    title = residuals.view.name.removeprefix("class:")
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
        "unit": residuals.null_standard_error,
        "band": residuals.null_bound,
        "slope": np.nan if segment is None else residuals.segment_slope(segment),
    }


def _describe_finding(residuals: CumulativeResiduals) -> str:
    """Describe the steepest significant segment, and ECCE-MAD or ECCE-R, whichever detects it."""
    p_mad, p_r = (format_pvalue(p) for p in residuals.pvalues)
    segment = residuals.significant_segment
    if segment is None:
        if residuals.max_residual > residuals.null_bound:
            bias = bias_phrases(residuals.view.name)[int(residuals.residual_path.min() < -residuals.null_bound)]
            return (
                f"The model {bias} overall: ECCE-MAD {_format_points(residuals.max_residual)} ({p_mad}), without a"
                " significant segment."
            )
        return f"Consistent with calibration: ECCE-MAD {_format_points(residuals.max_residual)} ({p_mad})."
    slope = residuals.segment_slope(segment)
    range_text = format_range(
        float(residuals.scores[segment.start + 1]),
        float(residuals.scores[segment.stop]),
        "between {}\u00a0% and {}",
    )
    bias = bias_phrases(residuals.view.name)[int(slope < 0)].removeprefix("is ")
    slope_text = f"{slope:+.2g}".replace("-", "−")
    text = f"Steepest segment {range_text}: {bias} by {_format_points(abs(slope))} (slope\u00a0{slope_text})."
    if residuals.max_residual > residuals.null_bound:
        return f"{text} ECCE-MAD {_format_points(residuals.max_residual)} ({p_mad})."
    return f"{text} ECCE-R {_format_points(residuals.residual_range)} ({p_r})."


def _format_points(x: float) -> str:
    """Format a difference of probabilities in percentage points."""
    text = f"{100 * x:.2g}" if x < 0.00995 else f"{100 * x:.1f}" if x < 0.0995 else f"{100 * x:.0f}"
    return f"{text} point{'' if text == '1' else 's'}"


def _table_columns(residuals: CumulativeResiduals) -> dict[str, Any]:
    """The rows of the table for one view: curve, extremes, steepest segment and ticks of the score."""
    curve = _vertex_rows(residuals, residuals.drawn_vertices)
    extremes = _vertex_rows(residuals, residuals.extremes)
    segments = []
    if (segment := residuals.significant_segment) is not None:
        start, stop = segment
        segments.append(
            (
                residuals.row_share[start],
                residuals.row_share[stop],
                residuals.scores[start + 1],
                residuals.scores[stop],
                residuals.residual_path[stop] - residuals.residual_path[start],
                residuals.segment_slope(segment),
            )
        )
    ticks = []
    for score in SCORE_TICKS:
        # Rounding may put the mean of a tally's cell above its only score.
        share = residuals.row_share[np.searchsorted(residuals.scores[1:], score * (1 + 1e-9), "right")]
        if 0 < share < 1:
            ticks.append((share, share, score, score, np.nan, np.nan))
    parts: dict[str, list[Any]] = {"curve": curve, "extreme": extremes, "segment": segments, "tick": ticks}
    sizes = [len(rows) for rows in parts.values()]
    numbers = np.concatenate(
        [np.array(rows, dtype=np.float64).reshape(-1, len(_NUMBER_COLUMNS)) for rows in parts.values()]
    )
    return {
        "view": np.full(len(numbers), residuals.view.name, dtype=object),
        "part": np.repeat(np.array(list(parts), dtype=object), sizes),
        **dict(zip(_NUMBER_COLUMNS, numbers.T.copy(), strict=True)),
    }


def _vertex_rows(residuals: CumulativeResiduals, vertices: Any) -> list[tuple[float, ...]]:
    """Rows of the table for vertices of the path, given by their indices, in the order of `_NUMBER_COLUMNS`."""
    return [
        (
            residuals.row_share[i],
            residuals.row_share[i],
            residuals.scores[i],
            residuals.scores[i],
            residuals.residual_path[i],
            np.nan,
        )
        for i in vertices
    ]


def _collect_notes(residuals_by_view: Sequence[CumulativeResiduals]) -> list[Note]:
    """Notes on the null distribution, the curve, votes, tallies and views that are not drawn."""
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
    if len(residuals_by_view) > MAX_PANELS:
        text = (
            f"Only the {MAX_PANELS} views with the most significant range of {len(residuals_by_view)} are drawn."
            " panels holds the errors of all."
        )
        notes.append(Note("TN245", text))
    if not all(residuals.view.is_rows for residuals in residuals_by_view):
        notes.append(Note("TN244", "The data are a tally: the mean prediction of each fine cell represents its rows."))
    return notes
