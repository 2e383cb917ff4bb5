"""The CORP reliability diagram: isotonic event rates with a band, and the decomposition into MCB, DSC and UNC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.ordering import decreasing_order
from trueodds.core.settings import BinCount, Level, OneOf
from trueodds.diagrams._style.formatting import format_percent
from trueodds.diagrams._style.panel_grid import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import freedman_diaconis_bin_count
from trueodds.diagrams.corp import bands, honest_band
from trueodds.diagrams.corp.bands import find_segments_outside
from trueodds.diagrams.corp.curve import CorpCurve, CorpPanel
from trueodds.diagrams.corp.plot import CorpDiagram
from trueodds.diagrams.corp.text import describe_finding
from trueodds.diagrams.recipe import IMPORTANCE_WEIGHT_EXEMPTION, BandDraws, Recipe, lens_name
from trueodds.diagrams.table_columns import rows_to_columns, stack_tables
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
    level : float, default=0.9
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

    Units: probability. Cost: O(n log n) for the curve, plus the band (see `corp.bands` and `corp.honest_band`).

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
    level: Level = 0.9
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
        """Compute the diagram of binary views."""
        curves = [CorpCurve(view, self.score) for view in views]
        curves = [curves[i] for i in decreasing_order(curve.decomposition["mcb"] for curve in curves)]
        drawn_curves = curves[:MAX_PANELS]
        n_bins = self.bins or freedman_diaconis_bin_count(drawn_curves[0].score_sums)
        panels = [self._evaluate_panel(curve, n_bins, rng if curve in drawn_curves else None) for curve in curves]
        return CorpDiagram(
            name=self.name,
            lens=lens_name(views),
            table=stack_tables([panel.table_columns() for panel in panels]),
            panels=self._panel_columns(panels),
            settings={name: getattr(self, name) for name in self.setting_names()} | {"bins": n_bins},
            notes=tuple(self._collect_notes(panels, len(views))),
        )

    def _evaluate_panel(self, curve: CorpCurve, n_bins: int, rng: np.random.Generator | None) -> CorpPanel:
        """Compute the band of one curve, and where it rejects calibration.

        Without `rng` there is no band, because the panel is not drawn.
        """
        score_sums, limits_cross = curve.score_sums, False
        if self.band is None or rng is None:
            return CorpPanel(curve, n_bins, self.style)
        band_method = bands.choose_band_method(score_sums, self.band) if self.how == "paper" else self.how
        band: bands.Band
        if self.band == "honest":
            honest_band.require_known_max_weight(score_sums, curve.view.is_rows)
            limits = honest_band.simultaneous_limits(score_sums, self.level)
            band, limits_cross = limits.band(), limits.limits_cross
        elif band_method in ("auto", "resampling"):  # the latter by the rule of the paper
            band = bands.resampled_band(score_sums, self.band, self.level, self.resamples, self.redraw, rng)
        elif band_method == "discrete":
            band = bands.discrete_band(score_sums, self.band, self.level)
        else:
            band = bands.continuous_band(score_sums, self.level)
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

    def _panel_columns(self, panels: Sequence[CorpPanel]) -> dict[str, Any]:
        """The rows of `panels` as columns; the drawn panels share the scale of their strips."""
        drawn_panels = panels[:MAX_PANELS]
        max_share = max(float(panel.score_histogram["share"].max()) for panel in drawn_panels)
        rows = [
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
        return rows_to_columns(rows)

    def _collect_notes(self, panels: Sequence[CorpPanel], n_views: int) -> list[Note]:
        """Notes on the curves, the band and the panels that are not drawn."""
        notes = [note for panel in panels[:MAX_PANELS] for note in panel.curve.notes()][:1]
        if n_views > MAX_PANELS:
            text = (
                f"Only the {MAX_PANELS} views with the largest MCB of {n_views} are drawn, with a band. The"
                " table contains the curves of all."
            )
            notes.append(Note("TN245", text))
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
            notes.append(
                Note("TN244", "The data are a tally: the mean prediction of each fine cell represents its rows.")
            )
        return notes
