"""The risk-coverage curve: error rate among the most confident predictions, by coverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.formatting import format_number, format_range
from trueodds.core.rng import as_generator
from trueodds.core.settings import Count, Level
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_percent
from trueodds.diagrams._style.marks import AxisStrip, Band, Line, Mark, PanelSize, Segments
from trueodds.diagrams._style.styling import AXIS_STRIP_HEIGHT
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import BandDraws, Models, Recipe
from trueodds.lenses.base import Lens
from trueodds.lenses.selective_risk import SelectiveRisk, selective_risk_of_view
from trueodds.lenses.view import View
from trueodds.tallies.tally import lens_views


@dataclass(frozen=True)
class RiskCoverage(Recipe):
    r"""Risk-coverage curve: error rate among the most confident predictions, by the share of cases they cover.

    The diagram shows how many errors remain if the model abstains from its least confident predictions, and how many
    cases it still answers. At the coverage c the curve shows the selective risk, the error rate of the most confident
    share c of all cases. Confidence thresholds are shown below the axis. The flat line is the error rate of all
    answers, which is the expected risk of a random order.

    Parameters
    ----------
    n_queries : int, optional
        The number of cases, if some received no answer. The default is the number of rows.
    level : float, default=0.95
        Confidence level of band and interval.
    resamples : int, default=1000
        The number of bootstrap resamples.

    Raises
    ------
    InputError
        TO203 for a setting out of range; TO205 for a lens other than ``confidence``.

    Notes
    -----
    Equal confidences are ordered at random, and the curve shows the expected error rate. A threshold answers all of
    them or none, so ``threshold`` is NaN at coverages inside a tie, and the axis shows thresholds at the coverages that
    they attain. In the other rows, coverage and risk are those of answering if the confidence is at least the
    threshold. AURC is the mean of the risk over all attained coverages. It is reported with its percentile bootstrap
    interval.

    The band is pointwise: percentiles of resampled rows, or of resampled clusters if there are any. For a tally, the
    rows that it counts are resampled. If none or all of the most confident answers are wrong, resamples cannot vary,
    and the exact binomial limit is used. On 500 data sets of 400 answers with calibrated confidences, the nominal 95 %
    band covered the true risk at coverages of 0.2, 0.5, 0.8 and 1 in 95 to 97 % of them for confidences uniform on
    [0.5, 1], and in 91 to 97 % for confidences of 0.6, 0.7, 0.8, 0.9 or 1.

    Views: the confidence in the predicted class, for predictions of any kind. A weight of two counts as two rows.
    Units: probability, 0 is best.

    Columns of ``table``: ``view coverage threshold risk low high``, by coverage. ``panels`` contains aurc, aurc_low,
    aurc_high, random, ideal (the same errors all last), answered, n_queries and coverage (the share of cases that are
    answered).

    Cost: O(n log n), and O(n) for each resample.

    References
    ----------
    .. [1] El-Yaniv & Wiener (2010), JMLR 11.
    .. [2] Geifman & El-Yaniv (2017).

    Examples
    --------
    >>> import trueodds as to
    >>> correct = [1] * 45 + [0] * 5 + [1, 0] * 25
    >>> answers = to.Predictions.from_confidence([0.9] * 50 + [0.6] * 50, correct)
    >>> diagram = to.draw(answers, "selective_risk", n_queries=125)
    >>> diagram.finding.replace("\u00a0", " ").split("; ")[0]
    'The error rate is 30.0 % over all predictions and 18.0 % at a coverage of 50 %'
    """

    name: ClassVar[str] = "selective_risk"
    lens: ClassVar[str | None] = "confidence"
    supports_clusters: ClassVar[bool] = True
    random_columns: ClassVar[tuple[str, ...]] = ("low", "high")
    exemptions: ClassVar[dict[str, str]] = {
        "class order": "it depends on the predicted class only, whichever class that is"
    }
    n_queries: Count | None = None
    level: Level = 0.95
    resamples: BandDraws = 1000

    def draw_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
        """The diagram of one model, with the clusters of its rows."""
        if len(models) != 1:
            return super().draw_models(models, lens, rng)  # raises an error
        (data,) = models.values()
        # The notes of answers say that some cases were not evaluated; their number is not in the predictions.
        notes = data.notes if isinstance(data, Predictions) else data.notes()
        omits_unanswered = self.n_queries is None and any(note.code in ("TN146", "TN183") for note in notes)
        return self._diagram_of_view(lens_views(data, lens), data.cluster, as_generator(rng), omits_unanswered)

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of a view whose rows are assumed independent."""
        return self._diagram_of_view(views, None, rng)

    def _diagram_of_view(
        self, views: tuple[View, ...], cluster: Array | None, rng: np.random.Generator, omits_unanswered: bool = False
    ) -> Diagram:
        """Compute the curve of the only view, with resampled clusters if there are any.

        `omits_unanswered` is whether there are cases without a prediction that are not counted.
        """
        if len(views) != 1 or views[0].joint or views[0].name != "confidence":
            got = views[0].name if len(views) == 1 else f"{len(views)} views"
            problem = f"The diagram {self.name} requires the confidence in the predicted class."
            raise InputError("TO205", problem, f"lens {got!r}", "Use ⟨lens='confidence'⟩ or omit it.")
        (view,) = views
        curve = selective_risk_of_view(
            view, cluster, n_queries=self.n_queries, at=None, resamples=self.resamples, level=self.level, rng=rng
        )  # fmt: skip
        table = {"view": np.full(len(curve.at["coverage"]), view.name, dtype=object), **curve.at}
        settings = self._settings | {"n_queries": curve.n_queries, "band": "pointwise"}
        row = _panel_row(view, curve, omits_unanswered)
        return self.build_diagram(RiskCoveragePlot, view.name, [table], [row], settings)


# Limits of the risk determine the scale of y only from this share of the largest coverage on: at lower coverage few
# predictions are answered, and the upper limits are near 1.
MIN_SCALED_COVERAGE = 0.1


def _panel_row(view: View, curve: SelectiveRisk, omits_unanswered: bool) -> dict[str, Any]:
    assert curve.interval is not None
    has_enough_answers = curve.at["coverage"] >= MIN_SCALED_COVERAGE * curve.at["coverage"][-1]
    max_risk = max(float(curve.at["high"][has_enough_answers].max()), float(curve.at["risk"].max()), curve.random, 0.01)
    return {
        "view": view.name,
        "title": view.name,
        "aside": f"AURC {format_number(curve.aurc)}, random order {format_number(curve.random)}",
        "finding": _describe_finding(view, curve, omits_unanswered),
        "n": view.n_rows,
        "weight": view.total,
        "aurc": curve.aurc,
        "aurc_low": curve.interval.low,
        "aurc_high": curve.interval.high,
        "random": curve.random,
        "ideal": curve.ideal,
        "answered": curve.answered,
        "n_queries": curve.n_queries,
        "coverage": curve.answered / curve.n_queries,
        "y_high": min(1.08 * max_risk, 1.02),
    }


def _describe_finding(view: View, curve: SelectiveRisk, omits_unanswered: bool) -> str:
    """State the error rate, that at half of the coverage axis if the curve reaches it, and AURC with its interval."""
    assert curve.interval is not None
    risk_at_half = selective_risk_of_view(view, n_queries=curve.n_queries, at=[0.5], resamples=0).at["risk"][0]
    text = f"The error rate is {format_percent(curve.random)} over all predictions"
    if not np.isnan(risk_at_half):
        where = "over the more confident half" if curve.n_queries == curve.answered else "at a coverage of 50\u00a0%"
        text += f" and {format_percent(float(risk_at_half))} {where}"
    if curve.n_queries > curve.answered:
        text += f"; {curve.n_queries - curve.answered:,} of {curve.n_queries:,} cases have no prediction"
    elif omits_unanswered:
        text += "; cases without a prediction are not counted"
    limits = format_range(curve.interval.low, curve.interval.high)
    if curve.gain is not None and curve.gain.low > 0:
        verdict = "better than random order"
    elif curve.gain is not None and curve.gain.high < 0:
        verdict = "worse than random order: more confident predictions are wrong more often"
    else:
        verdict = "not significantly better than random order"
    return f"{text}. AURC\u00a0{format_number(curve.aurc)} ({limits}), {verdict}."


class RiskCoveragePlot(Diagram):
    """The risk-coverage curve with its band, the line of random order, unanswered cases, and confidence thresholds."""

    question = "If only the most confident predictions are kept, how many are wrong?"
    labels = "Coverage (most confident first)", "Selective risk (error rate)"
    layers = ("band", "curve", "random", "unanswered", "thresholds")
    row_noun = "coverages"
    figure_size = (6.4, 4.6)

    @property
    def strip_height(self) -> float:  # type: ignore[override]
        """The fraction of the height that the axis strip takes."""
        return AXIS_STRIP_HEIGHT if self.has("thresholds") else 0.0

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        """Coverage along x, risk along y above the strip of confidences."""
        high = float(self.panels["y_high"][panel])
        styling.style_axes(ax, size.font_size)
        styling.set_probability_axis(ax)
        styling.set_limits_above_strip(ax, 0.0, high, self.strip_height)
        ax.set_yticks(styling.round_ticks(ax, 0, high, steps=[1, 2, 2.5, 5, 10]))
        ax.yaxis.set_major_formatter(styling.format_percent_tick)

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        """The curve, its band, the risk of a random order, the cases without a prediction, and the confidences."""
        rows, totals = self.rows(panel), self.panel_values(panel)
        x, max_coverage, high = rows["coverage"], float(totals["coverage"]), float(totals["y_high"])
        rates = {format_percent(float(rate)) for rate in self.panels["random"]}
        random_label = f"random order: {rates.pop()}" if len(rates) == 1 else "random order"  # panels share the legend
        band_label = f"{self.level_text} band{', pointwise' if self.has_long_labels else ''}"
        dashed: dict[str, Any] = {"color": styling.OUTSIDE_COLOR, "linewidth": 1.6, "linestyle": (0, (4, 1.5))}
        hatched: dict[str, Any] = {"facecolor": styling.GRID_COLOR, "edgecolor": "#C0C0C0", "hatch": "///"}
        band: dict[str, Any] = {"color": styling.STRIP_COLOR, "alpha": 0.45, "linewidth": 0, "zorder": 1}
        curve: dict[str, Any] = {"color": styling.INSIDE_COLOR, "linewidth": 1.8, "zorder": 3}
        unanswered = [max_coverage, 1.0] if max_coverage < 1 else []
        steps = _labeled_steps(x, rows["threshold"])
        confidences = [_format_confidence(float(rows["threshold"][step])) for step in steps]
        strip: dict[str, Any] = {"title": "confidence:", "layer": "thresholds", "gid": "threshold", "omits_ticks": True}
        return [
            Line(x, rows["risk"], layer="curve", label="most confident first", **curve),
            Band(x, rows["low"], rows["high"], layer="band", label=band_label, **band),
            Segments(0, max_coverage, *2 * [totals["random"]], layer="random", label=random_label, zorder=2, **dashed),
            Band(unanswered, 0, high, layer="unanswered", label="no prediction", linewidth=0, zorder=0.6, **hatched),
            AxisStrip(x[steps], confidences, **strip),
        ]


def _labeled_steps(coverage: Array, threshold: Array) -> list[int]:
    """Indices of the thresholds whose coverages are nearest to multiples of 10 %; inside ties there is no threshold."""
    steps = np.flatnonzero(~np.isnan(threshold))
    return sorted({int(steps[np.abs(coverage[steps] - tick).argmin()]) for tick in np.arange(1, 11) / 10})


def _format_confidence(confidence: float) -> str:
    """A confidence as a percentage in few characters; values below 1 are never rounded to 100 %."""
    if confidence >= 1:
        return "100\u00a0%"
    for n_digits in (3, 4, 5):
        text = f"{100 * confidence:.{n_digits}g}"
        if text != "100":
            return f"{text}\u00a0%"
    return ">99.999\u00a0%"
