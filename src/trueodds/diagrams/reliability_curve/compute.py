"""The kernel-smoothed reliability curve, without bins, with pointwise or simultaneous bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from trueodds.calibrators.kernel import KernelSpec
from trueodds.core.errors import Note
from trueodds.core.ordering import decreasing_order
from trueodds.core.settings import BinCount, Level
from trueodds.core.typing import Array
from trueodds.diagrams._style.panel_grid import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import freedman_diaconis_bin_count, score_histogram
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums
from trueodds.diagrams.recipe import BandDraws, Recipe, lens_name
from trueodds.diagrams.reliability_curve.bands import SmoothedRates
from trueodds.diagrams.reliability_curve.plot import ReliabilityCurveDiagram
from trueodds.diagrams.reliability_curve.smoother import (
    CurveSmoother,
    RangeSetting,
    correct_smoothing_bias,
    smooth_view,
)
from trueodds.diagrams.reliability_curve.text import CurveSegment, describe_finding, find_segments_outside
from trueodds.diagrams.table_columns import rows_to_columns, stack_tables
from trueodds.lenses.view import View

COUNT_COLUMNS = ("low", "high", "probability_low", "probability_high", "effective", "n", "outside")


@dataclass(frozen=True)
class ReliabilityCurve(Recipe):
    r"""Reliability curve by Gaussian kernel smoothing, without bins, with a pointwise or simultaneous band.

    `at` of the diagram returns the recalibrated probability of a single prediction.

    Parameters
    ----------
    band : {"confidence", "consistency"} or None, default="confidence"
        `confidence` is an interval around the curve, for the effective sample size near a score, (Σwk)²/Σw²k².
        `consistency` is the range around the reference in which the curve of a calibrated model lies.
    level : float, default=0.9
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
    band in low and high, the effective sample size near it) and `strip` (share of predictions from x_low to x_high).
    Points lie within h of a score; those of one `piece` follow each other without a gap. `outside`: the reference is
    outside the confidence band, or the curve outside the consistency band. Columns that a part does not use are NaN.

    References
    ----------
    .. [1] Posocco & Bonnefoy (2021).
    .. [2] Silverman (1986).
    .. [3] Clopper & Pearson (1934), for the limits.

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [0, 1, 1, 0, 0, 1, 1, 1] * 10, [0.5, 0.9] * 40
    >>> diagram = to.draw(y, p, "reliability_curve", bandwidth=0.05, scale="probability")
    >>> diagram.finding.replace("\u00a0", " ")
    'Overpredicts between 85 % and 95 %: observed 75 % [61 %, 86 %] at 90 %. Mean local error 7.5 points.'
    """

    name: ClassVar[str] = "reliability_curve"
    count_columns: ClassVar[tuple[str, ...]] = COUNT_COLUMNS
    band: Literal["confidence", "consistency"] | None = "confidence"
    level: Level = 0.9
    simultaneous: bool = False
    bandwidth: float | str = "silverman"
    scale: str = "logit"
    range: Literal["auto", "1/K"] | None = "auto"
    resamples: BandDraws = 200
    bins: BinCount | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        KernelSpec(bandwidth=self.bandwidth, scale=self.scale)  # validates the two settings

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """Compute the diagram of binary views."""
        panels = [CurvePanel.from_view(view, self.bandwidth, self.scale, self.range) for view in views]
        panels = [panels[i] for i in decreasing_order(panel.mean_local_error for panel in panels)]
        drawn_panels = panels[:MAX_PANELS]
        if self.band is not None:
            drawn_panels = [
                panel.with_band(self.band, self.level, self.resamples, rng if self.simultaneous else None)
                for panel in drawn_panels
            ]
            panels[:MAX_PANELS] = drawn_panels
        n_bins = self.bins or drawn_panels[0].strip_bin_count
        strips = [score_histogram(panel.view, n_bins) for panel in panels]
        max_share = max(float(shares["share"].max()) for shares in strips[:MAX_PANELS])
        rows = [panel.panel_row(len(panels), self.band, max_share, is_first=panel is panels[0]) for panel in panels]
        return ReliabilityCurveDiagram(
            name=self.name,
            lens=lens_name(views),
            table=stack_tables([panel.table_columns(shares) for panel, shares in zip(panels, strips, strict=True)]),
            panels=rows_to_columns(rows),
            settings={name: getattr(self, name) for name in self.setting_names()} | {"bins": n_bins},
            notes=tuple(self._collect_notes(panels)),
        )

    def _collect_notes(self, panels: Sequence[CurvePanel]) -> list[Note]:
        """Notes on the bandwidth, the band and views that are not drawn."""
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
        text = (
            "The curve averages over neighboring scores: it hides variation within a bandwidth, and where predictions"
            " lie mostly on one side, the curve of a calibrated model leaves the diagonal as well."
        )
        if self.band == "confidence":
            text += " The band covers the smoothed true event rates, not the true rates themselves."
        if self.band is not None and not self.simultaneous:
            text += (
                f" It is pointwise and expected to fail at {100 * (1 - self.level):.3g}\u00a0% of the scores. Pass"
                " simultaneous=True for a simultaneous band."
            )
        notes.append(Note("TN259", text))
        if len(panels) > MAX_PANELS:
            text = (
                f"Only the {MAX_PANELS} views with the largest local error of {len(panels)} are drawn, with a"
                " band. The table contains the curves of all."
            )
            notes.append(Note("TN245", text))
        if self.band is not None and any(panel.score_sums.has_vote_shares for panel in drawn_panels):
            notes.append(
                Note("TN243", "Outcomes are shares of votes; limits use their observed variance around the curve.")
            )
        if not all(panel.view.is_rows for panel in panels):
            notes.append(
                Note("TN244", "The data are a tally: the mean prediction of each fine cell represents its rows.")
            )
        return notes


NUMBER_COLUMNS = [
    "score",
    "rate",
    "low",
    "high",
    "reference",
    "error",
    "probability",
    "probability_low",
    "probability_high",
    "effective",
    "x_low",
    "x_high",
    "n",
    "weight",
    "share",
]


@dataclass(frozen=True)
class CurvePanel:
    """The curve, band and texts of one view."""

    view: View
    score_sums: DistinctScoreSums
    smoother: CurveSmoother
    columns: dict[str, Array]  # (points,) each: those of `smooth_view`, and of the band if there is one

    @classmethod
    def from_view(cls, view: View, bandwidth: float | str, scale: str, range_setting: RangeSetting | None) -> Self:
        """Compute the curve of a view, without a band."""
        return cls(view, *smooth_view(view, bandwidth, scale, range_setting))

    def with_band(self, band: str, level: float, n_draws: int, rng: np.random.Generator | None) -> Self:
        """Return the curve with a band, simultaneous if `rng` is not None."""
        columns = self.columns
        score, reference = columns["score"], columns["reference"]
        rates = SmoothedRates.from_curve(self.score_sums, self.smoother, columns)
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
            "outside": (compared_curve < low - tolerance) | (compared_curve > high + tolerance),
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
        """The name of the view in the picture."""
        return self.view.name.removeprefix("class:")

    @cached_property
    def mean_local_error(self) -> float:
        """The mean local error: the mean distance of the curve from the reference over the predictions."""
        error = np.abs(np.interp(self.score_sums.score, self.columns["score"], self.columns["error"]))
        return float(self.score_sums.w @ error / self.score_sums.w.sum())

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
            replace(self.score_sums, n=self.score_sums.w * (self.view.n_represented / self.view.total))
        )

    def table_columns(self, strip: dict[str, Array]) -> dict[str, Array]:
        """The rows of the table; columns that a part does not use are NaN."""
        n_points, n_bins = len(self.columns["score"]), len(strip["share"])
        table = {
            "view": np.full(n_points + n_bins, self.view.name, dtype=object),
            "part": np.repeat(np.array(["curve", "strip"], dtype=object), (n_points, n_bins)),
            "piece": np.concatenate([self.columns["piece"], np.full(n_bins, -1)]),
        }
        for name in NUMBER_COLUMNS:
            parts = [
                np.asarray(part.get(name, np.full(size, np.nan)), dtype=np.float64)
                for part, size in ((self.columns, n_points), (strip, n_bins))
            ]
            table[name] = np.concatenate(parts)
        outside = self.columns.get("outside", np.zeros(n_points, dtype=bool))
        return table | {"outside": np.concatenate([outside, np.zeros(n_bins, dtype=bool)])}

    def panel_row(self, n_views: int, band: str | None, max_share: float, *, is_first: bool) -> dict[str, Any]:
        """The numbers and texts of the panel."""
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
            "mean_prediction": float(self.score_sums.w @ self.score_sums.score / total),
            "outcome_rate": float(self.score_sums.wy.sum() / total),
            "local_error": self.mean_local_error,
            "scale": self.smoother.scale,
            "bandwidth": self.smoother.bandwidth,
            "range_low": self.smoother.low,
            "share_outside": sum(segment.share for segment in self.miscalibrated_segments),
            "tallest": max_share,
        }
