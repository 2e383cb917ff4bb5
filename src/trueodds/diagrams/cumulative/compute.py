"""The cumulative diagram: residuals summed by increasing score, with a simultaneous band, ECCE-MAD and ECCE-R."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import Level
from trueodds.diagrams._style import layout
from trueodds.diagrams._style.formatting import bias_phrases, format_pvalue, format_range, merge_notes
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import stack_tables
from trueodds.diagrams.cumulative.cumulative_residuals import MAX_VERTICES, CumulativeResiduals
from trueodds.diagrams.cumulative.plot import CumulativeResidualsPlot
from trueodds.diagrams.recipe import Recipe, lens_of
from trueodds.lenses.view import View

# Scores that may be ticked; where two would meet the one that stands first is.
SCORE_TICKS = (0.5, 0.1, 0.9, 0.01, 0.99, 0.2, 0.8, 0.7, 0.3, 0.6, 0.4, 0.95, 0.05, 0.999, 0.001, 0.9999, 0.0001)
_NUMBERS = ("share_low", "share_high", "score_low", "score_high", "difference", "slope")


@dataclass(frozen=True)
class Cumulative(Recipe):
    r"""What came minus what was said, added up from the lowest score on, with the band in which chance keeps it.

    Answers: over which scores does it say too much or too little, without bins and without smoothing? Over the share of
    rows with scores up to s, :math:`F(s) = \tfrac1w \sum_{p_i \le s} w_i`, stands

    .. math:: C(s) = \tfrac1w \sum_{p_i \le s} w_i (y_i - p_i)

    whose slope over any stretch of scores is what came minus what was said there, on average: level where it is
    calibrated, falling where it says too much. Equal scores are one step. If the model is calibrated C is Brownian
    motion of variance :math:`\sigma^2 = \sum w^2 p (1 - p) / w^2` at its end, and stays within the band ±q σ as a whole
    with probability `level`, where P[max |W| > q] = 1 − level. ECCE-MAD = max |C|, which the band judges, and
    ECCE-R = max C − min C have the p of the tests `ks` with `start="below"` and `ecce`.

    With the same probability no stretch of it changes by more than r σ, where P[max W − min W > r] = 1 − level. The
    steepest stretch is the one with the largest :math:`(|\Delta C| - r \sigma) / \Delta F`, the slope that is certain; there
    is one if, and only if, ECCE-R is beyond chance at that level.

    Views: binary, one panel each, most surprising range first; lines for those that are drawn. Rows, or cells of a tally
    at their mean prediction. Weights are importance weights. Where outcomes are shares of votes the variance is
    Σw²(y − p)²/w². Beyond 2,000 scores the line goes through the first, lowest, highest and last point of each of 499
    shares of rows, and no extreme is lost (note TN261). Units: probability; the picture says points, of 0.01.
    Cost: O(n log n). Raises TO203 for an unknown setting, TO205 for a joint view.
    Source: Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu (2022), JMLR 23.

    Parameters
    ----------
    level : float
        The probability with which all of a calibrated model's line lies in the band.

    Columns of `table`: view part share_low share_high score_low score_high difference slope. `part` says what a row is:
    `curve` (C at a share of rows, and the score there), `extreme` (its lowest and highest point), `stretch` (the
    steepest, from the scores score_low to score_high, with the change of C over it and its slope) and `tick` (the share
    of rows with scores up to a round one). What a part does not have is NaN. Errors, p-values and `band`, q σ, stand in
    `panels`.

    >>> diagram = Cumulative()([View([0.9] * 60 + [0.5] * 40, [1, 0] * 50, name="positive")])
    >>> diagram.finding.replace("\u00a0", " ")
    'Steepest at 90 %: it says too much there, by 40 points (slope −0.4). The total strays 24 points (ECCE-MAD; p < 0.001).'
    """

    name: ClassVar[str] = "cumulative"
    level: Level = 0.95

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The walks of binary views."""
        residuals_by_view = sorted(
            (CumulativeResiduals(view, self.level) for view in views),
            key=lambda cumulative_residuals: -cumulative_residuals.surprise,
        )
        drawn = residuals_by_view[: layout.MAX_PANELS]
        low = min(
            min(float(cumulative_residuals.path.min()), -cumulative_residuals.half) for cumulative_residuals in drawn
        )
        high = max(
            max(float(cumulative_residuals.path.max()), cumulative_residuals.half) for cumulative_residuals in drawn
        )
        low, high = (low, high) if high > low else (-0.01, 0.01)
        # A single panel has a line of numbers above everything else.
        low, high = low - 0.06 * (high - low), high + (0.15 if len(views) == 1 else 0.06) * (high - low)
        rows = [
            _panel(cumulative_residuals, len(views), drawn=cumulative_residuals in drawn)
            | {"y_low": low, "y_high": high}
            for cumulative_residuals in residuals_by_view
        ]
        words = {"view", "title", "aside", "finding"}
        return CumulativeResidualsPlot(
            name=self.name,
            lens=lens_of(views),
            table=stack_tables([_table(cumulative_residuals) for cumulative_residuals in drawn]),
            panels=stack_tables(
                [{key: np.array([row[key] for row in rows], dtype=object if key in words else None) for key in rows[0]}]
            ),
            settings={"level": self.level},
            notes=tuple(_notes(residuals_by_view)),
        )


def _panel(cumulative_residuals: CumulativeResiduals, views: int, *, drawn: bool) -> dict[str, Any]:
    title = cumulative_residuals.view.name.removeprefix("class:")
    p_mad, p_r = cumulative_residuals.pvalues
    text = _finding(cumulative_residuals) if drawn else ""
    steepest = cumulative_residuals.steepest if drawn else None
    return {
        "view": cumulative_residuals.view.name,
        "title": title,
        "aside": f"{_points(cumulative_residuals.range)}, {format_pvalue(p_r)}",
        "finding": f"{title}: {text[0].lower()}{text[1:]}" if views > 1 and text else text,
        "n": cumulative_residuals.view.n_rows,
        "weight": cumulative_residuals.view.total,
        "ecce_mad": cumulative_residuals.farthest,
        "pvalue_mad": p_mad,
        "ecce_r": cumulative_residuals.range,
        "pvalue_r": p_r,
        "unit": cumulative_residuals.unit,
        "band": cumulative_residuals.half,
        "slope": np.nan if steepest is None else cumulative_residuals.slope(steepest),
    }


def _finding(cumulative_residuals: CumulativeResiduals) -> str:
    p_mad, p_r = (format_pvalue(p) for p in cumulative_residuals.pvalues)
    steepest = cumulative_residuals.steepest
    if steepest is None:
        if cumulative_residuals.farthest > cumulative_residuals.half:
            does = bias_phrases(cumulative_residuals.view.name)[
                int(cumulative_residuals.path.min() < -cumulative_residuals.half)
            ]
            return f"In all it {does}: the total strays {_points(cumulative_residuals.farthest)} (ECCE-MAD; {p_mad}), over no stretch in particular."
        return f"Chance explains it all: the total strays {_points(cumulative_residuals.farthest)} (ECCE-MAD; {p_mad})."
    slope = cumulative_residuals.slope(steepest)
    ends = format_range(
        float(cumulative_residuals.scores[steepest.start + 1]),
        float(cumulative_residuals.scores[steepest.stop]),
        "between {}\u00a0% and {}",
    )
    does = bias_phrases(cumulative_residuals.view.name)[int(slope < 0)]
    slope_text = f"{slope:+.2g}".replace("-", "−")
    text = f"Steepest {ends}: it {does} there, by {_points(abs(slope))} (slope\u00a0{slope_text})."
    if cumulative_residuals.farthest > cumulative_residuals.half:
        return f"{text} The total strays {_points(cumulative_residuals.farthest)} (ECCE-MAD; {p_mad})."
    return f"{text} The total strays {_points(cumulative_residuals.range)} from lowest to highest (ECCE-R; {p_r})."


def _points(x: float) -> str:
    text = f"{100 * x:.2g}" if x < 0.00995 else f"{100 * x:.1f}" if x < 0.0995 else f"{100 * x:.0f}"
    return f"{text} point{'' if text == '1' else 's'}"


def _table(cumulative_residuals: CumulativeResiduals) -> dict[str, Any]:
    nan = np.nan
    curve = [
        (
            cumulative_residuals.share[i],
            cumulative_residuals.share[i],
            cumulative_residuals.scores[i],
            cumulative_residuals.scores[i],
            cumulative_residuals.path[i],
            nan,
        )
        for i in cumulative_residuals.vertices
    ]
    extremes = [
        (
            cumulative_residuals.share[i],
            cumulative_residuals.share[i],
            cumulative_residuals.scores[i],
            cumulative_residuals.scores[i],
            cumulative_residuals.path[i],
            nan,
        )
        for i in cumulative_residuals.extremes
    ]
    segments = []
    if (steepest := cumulative_residuals.steepest) is not None:
        start, stop = steepest
        ends = (
            cumulative_residuals.share[start],
            cumulative_residuals.share[stop],
            cumulative_residuals.scores[start + 1],
            cumulative_residuals.scores[stop],
        )
        segments.append(
            (
                *ends,
                cumulative_residuals.path[stop] - cumulative_residuals.path[start],
                cumulative_residuals.slope(steepest),
            )
        )
    ticks = []
    for score in SCORE_TICKS:
        # The mean of a tally's cell may miss its only score by a rounding.
        share = cumulative_residuals.share[
            np.searchsorted(cumulative_residuals.scores[1:], score * (1 + 1e-9), "right")
        ]
        if 0 < share < 1:
            ticks.append((share, share, score, score, nan, nan))
    parts = {"curve": curve, "extreme": extremes, "stretch": segments, "tick": ticks}
    sizes = [len(rows) for rows in parts.values()]
    numbers = np.concatenate([np.array(rows, dtype=np.float64).reshape(-1, len(_NUMBERS)) for rows in parts.values()])
    return {
        "view": np.full(len(numbers), cumulative_residuals.view.name, dtype=object),
        "part": np.repeat(np.array(list(parts), dtype=object), sizes),
        **dict(zip(_NUMBERS, numbers.T.copy(), strict=True)),
    }


def _notes(residuals_by_view: Sequence[CumulativeResiduals]) -> list[Note]:
    notes = merge_notes(
        [(cumulative_residuals.view.name, cumulative_residuals.doubts()) for cumulative_residuals in residuals_by_view]
    )
    n_scores = max(
        len(cumulative_residuals.path) - 1 for cumulative_residuals in residuals_by_view[: layout.MAX_PANELS]
    )
    if n_scores >= MAX_VERTICES:
        text = f"The line goes through at most {MAX_VERTICES:,} points of {n_scores:,} scores; its extremes, errors and p-values are those of all."
        notes.append(Note("TN261", text))
    if any(cumulative_residuals.voted for cumulative_residuals in residuals_by_view):
        text = "Outcomes are shares of votes; band and p-values take the variance Σw²(y−p)²/(Σw)²."
        notes.append(Note("TN243", text))
    if len(residuals_by_view) > layout.MAX_PANELS:
        text = f"Drawn are the {layout.MAX_PANELS} most surprising ranges of {len(residuals_by_view)} views; the errors of all stand in panels."
        notes.append(Note("TN245", text))
    if not all(cumulative_residuals.view.is_rows for cumulative_residuals in residuals_by_view):
        notes.append(Note("TN244", "Rows were tallied: those of one fine cell count with the cell's mean prediction."))
    return notes
