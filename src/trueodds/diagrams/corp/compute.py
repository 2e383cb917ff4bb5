"""The CORP reliability diagram: isotonic recalibrated event rates with a band, and the decomposition into MCB, DSC and UNC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount, Level, OneOf
from trueodds.diagrams._style import layout, styling
from trueodds.diagrams._style.formatting import format_range, format_score, join_words
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import freedman_diaconis_bins, stack_tables
from trueodds.diagrams.corp import bands, honest_band
from trueodds.diagrams.corp.bands import Segment, find_segments
from trueodds.diagrams.corp.curve import CorpCurve, CorpPanel
from trueodds.diagrams.corp.plot import CorpDiagram
from trueodds.diagrams.recipe import IMPORTANCE, BandDraws, Recipe, lens_of
from trueodds.estimators.corp import SCORES
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Corp(Recipe):
    r"""The best rates that never fall with the score, a band around diagonal or curve, and MCB, DSC and UNC.

    Answers: when it says 70 %, does it come true 70 % of the time, without the arbitrary choice of bins? The curve is
    the isotonic fit of outcomes to scores, equal scores pooled,

    .. math:: \hat r = \arg\min_{r_1 \le \dots \le r_m} \sum_j w_j (\bar y_j - r_j)^2,

    drawn as straight lines through :math:`(x_{min}, \hat r)` and :math:`(x_{max}, \hat r)` of successive blocks of
    equal rate. With it go :math:`S(p) = \text{MCB} - \text{DSC} + \text{UNC}` (see the estimator `corp`): what the
    relabeling p → r̂ would save, what the order of the scores is worth, and what is left to explain at all.

    Views: binary, one panel each, the largest MCB first; rows and cells of tallies, where a cell counts with its mean.
    Weights are importance weights, kept with their rows in every draw: a weight of two is two rows for curve and
    scores, not for bands. Where the outcomes are shares of votes, draws keep each residual's size and draw its sign.
    Units: probability. Bands are made for the panels that are drawn.

    Bands, simulated at `level=0.9` with uniform and arcsine scores and three truths, for 100 / 1,000 / 10,000 rows: the
    share of scores at which a calibrated model's curve lies within the consistency band is 92–94 / 90–91 / 89–90 %
    whether predictions are kept fixed or redrawn. The share at which the truth lies within the confidence band is
    45–86 / 65–93 / 79–96 %, lowest where true rates come near 0 or 1: labels drawn from the curve vary too little. The
    honest band holds all true rates in 99.5–100 % of data sets. Chernoff's law holds 83–91 % of such scores; of VGG16's
    sharp confidences (n = 10,000), which the paper's rule takes for dense, only 30 %, and redraws 94 %.

    Cost: O(n log n) for the curve; bands as in `monotone.bands` and `monotone.honest`.
    Raises TO203 for an unknown setting, TO205 for a joint view, TO403 for an honest band from a tally of rows that
    weigh differently. Source: Dimitriadis, Gneiting & Jordan (2021), PNAS 118; the honest band Dimitriadis, Dümbgen,
    Henzi, Puke & Ziegel (2023), Biometrika 110.

    Parameters
    ----------
    band : str or None
        `consistency`: around the diagonal, where the curve falls if the model is calibrated. `confidence`: around the
        curve, where curves fall whose truth is the curve. Both hold at each score by itself. `honest`: at all scores
        at once, for any number of rows, where the true rate lies if it never falls with the score.
    level : float
        The probability of what the band says.
    style : str
        `miscalibration`: curve and band, numbers, and below it the share of rows by score. `discrimination`: also the
        share of rows by recalibrated rate at the right, the mean score as a vertical and the outcome rate as a
        horizontal line.
    score : str
        `brier` or `log_loss`, for MCB, DSC and UNC.
    how : str
        How bands that hold score by score are got. `auto`: by redrawing labels, on 1,024 groups of neighboring scores
        beyond so many. `discrete`: normal limits. `continuous`: Chernoff's law, around the diagonal. `paper`: redraws
        up to max(1000, min(5000, 50 m)) rows with m distinct scores and for confidence and votes; beyond, discrete from
        8 m² rows on, else continuous. It is not the default: see the coverage above.
    redraw : str
        `labels`: predictions are kept fixed. `both`: rows are drawn with replacement first, as in the paper.
    resamples : int
        How many draws.
    bins : int, optional
        Of the strip; by Freedman & Diaconis's rule, 5 to 40, if not said.

    Columns of `table`: view part x_low x_high rate low high n weight share outside. `part` says what a row is: `block`
    (rate at the scores x_low to x_high), `band` (its limits low and high there), `outside` (stated scores where the
    curve is outside the band of consistency, the diagonal outside the others; low is 0 where too much was said, 1
    where too little), `strip` (share of rows by score) and `rates` (share of rows with recalibrated rates from low to
    high). What a part does not have is NaN.

    >>> diagram = Corp(band=None)([View(p=[0.2, 0.4, 0.8], y=[1, 0, 1], name="positive")])
    >>> block = diagram.table["part"] == "block"
    >>> diagram.table["x_high"][block].tolist(), diagram.table["rate"][block].tolist()
    ([0.4, 0.8], [0.5, 1.0])
    >>> diagram.panels["mcb"].round(4).tolist()
    [0.1133]
    """

    name: ClassVar[str] = "corp"
    exempt: ClassVar[dict[str, str]] = IMPORTANCE
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
            problem = "how is for bands that hold score by score."
            raise InputError("TO203", problem, f"how={self.how!r}, band={self.band!r}", "Leave how out.")
        if self.how == "continuous" and self.band == "confidence":
            problem = "Chernoff's law needs the slope of the truth, which only a calibrated model tells."
            raise InputError("TO203", problem, "how='continuous', band='confidence'", "Leave how out.")

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of binary views."""
        curves = sorted((CorpCurve(view, self.score) for view in views), key=lambda curve: -curve.numbers["mcb"])
        shown = curves[: layout.MAX_PANELS]
        count = self.bins or freedman_diaconis_bins(shown[0].scores)
        parts = [self._parts(curve, count, rng if curve in shown else None) for curve in curves]
        return CorpDiagram(
            name=self.name,
            lens=lens_of(views),
            table=stack_tables([part.table() for part in parts]),
            panels=stack_tables([self._panels(parts)]),
            settings={name: getattr(self, name) for name in self.accepts()} | {"bins": count},
            notes=tuple(self._notes(parts, len(views))),
        )

    def _parts(self, curve: CorpCurve, count: int, rng: np.random.Generator | None) -> CorpPanel:
        scores, crossed = curve.scores, False
        if self.band is None or rng is None:
            return CorpPanel(curve, count, self.style)
        how = bands.choose_band_method(scores, self.band) if self.how == "paper" else self.how
        band: bands.Band
        if self.band == "honest":
            honest_band.check_weights(scores, curve.view.is_rows)
            limits = honest_band.simultaneous_limits(scores, self.level)
            band, crossed = limits.band(), limits.crossed
        elif how in ("auto", "resampling"):  # the latter by the paper's rule
            band = bands.resampled_band(scores, self.band, self.level, self.resamples, self.redraw, rng)
        elif how == "discrete":
            band = bands.discrete_band(scores, self.band, self.level)
        else:
            band = bands.continuous_band(scores, self.level)
        out = find_segments(band, scores.at, scores.w, curve.fit if self.band == "consistency" else None)
        return CorpPanel(curve, count, self.style, band.within(scores.at[0], scores.at[-1]), out, crossed)

    def _panels(self, parts: Sequence[CorpPanel]) -> dict[str, Any]:
        drawn = parts[: layout.MAX_PANELS]
        tallest = max(float(part.strip["share"].max()) for part in drawn)
        rows = [
            {
                **part.panel(),
                "finding": describe_finding(part, self, len(parts), largest=part is parts[0]),
                "tallest": tallest,
                "tallest_rate": max(float(part.rates["share"].max()) for part in drawn),
            }
            for part in parts
        ]
        words = {"view", "title", "aside", "finding", "law", "corner"}
        return {
            name: np.array([row[name] for row in rows], dtype=object if name in words else None) for name in rows[0]
        }

    def _notes(self, parts: Sequence[CorpPanel], views: int) -> list[Note]:
        notes = [note for part in parts[: layout.MAX_PANELS] for note in part.curve.notes()][:1]
        if views > layout.MAX_PANELS:
            text = f"Drawn, and given a band, are the {layout.MAX_PANELS} largest MCB of {views} views; the table holds the curves of all."
            notes.append(Note("TN245", text))
        if self.band in ("consistency", "confidence"):
            whose = "a calibrated model's curve" if self.band == "consistency" else "a true curve"
            methods = ", ".join(dict.fromkeys(part.band.method for part in parts if part.band))
            text = f"The band holds at each score by itself: at {styling.percent(1 - self.level)} of the scores {whose} is expected outside. It was got by {methods}."
            if self.band == "confidence":
                text += " Labels drawn from the curve vary too little where rates are near 0 or 1: in simulations of 100 to 1,000 rows it held 45 to 93 % of the true rates at a level of 90 %."
            notes.append(Note("TN255", text))
        if self.band == "confidence" and any(part.curve.certain for part in parts[: layout.MAX_PANELS]):
            text = "The curve says 0 or 1 at an end; labels drawn from it cannot differ there, and the band has no width. band='honest' has."
            notes.append(Note("TN256", text))
        crossed = [part.curve.title for part in parts if part.crossed]
        if crossed:
            text = f"No rates that never fall lie within the honest limits of {', '.join(crossed[:5])}: the true rate falls somewhere with the score, or a rare draw misleads."
            notes.append(Note("TN257", text))
        if not all(part.curve.view.is_rows for part in parts):
            notes.append(
                Note("TN244", "Rows were tallied: those of one fine cell count with the cell's mean prediction.")
            )
        return notes


MAX_SEGMENTS = 3  # stretches that are told one by one: those that hold most rows,
MIN_SEGMENT_SHARE = 0.01  # and not less than this share of them


def describe_finding(parts: CorpPanel, recipe: Corp, views: int, *, largest: bool) -> str:
    """Where too much or too little was said, and what recalibration would save."""
    text = (
        f"{_describe_segments(parts, recipe)} {_describe_miscalibration(parts, recipe)}"
        if parts.band
        else _describe_miscalibration(parts, recipe)
    )
    if views > 1:
        text = f"{'Largest miscalibration: ' if largest else ''}{parts.curve.title}. {text}"
    return text


def _describe_segments(parts: CorpPanel, recipe: Corp) -> str:
    confidence_text = f"with {100 * recipe.level:.4g}\u00a0% confidence"
    if not parts.out:
        return {
            "honest": f"Nowhere is it off {confidence_text} at all scores together.",
            "consistency": "The curve is nowhere beyond the band.",
            "confidence": "The diagonal is nowhere beyond the band.",
        }[str(recipe.band)]
    many = [segment for segment in parts.out if segment.share >= MIN_SEGMENT_SHARE] or list(parts.out)
    shown = sorted(sorted(many, key=lambda segment: -segment.share)[:MAX_SEGMENTS])
    confident = parts.curve.view.name == "confidence"
    much, little = ("is too sure", "is too modest") if confident else ("says too much", "says too little")
    phrases = [
        f"{verb} {_segment_ranges([segment for segment in shown if segment.too_much is too_much], alone=len(shown) == 1)}"
        for verb, too_much in ((much, True), (little, False))
        if any(segment.too_much is too_much for segment in shown)
    ]
    more = len(parts.out) - len(shown)
    rest = f", and is off on {more} shorter {'stretch' if more == 1 else 'stretches'}" if more else ""
    where = f", {confidence_text}" if recipe.band == "honest" else ", beyond the band"
    return f"It {join_words(phrases)}{rest}{where}."


def _describe_miscalibration(parts: CorpPanel, recipe: Corp) -> str:
    numbers = parts.curve.numbers
    name = {"brier": "Brier score", "log_loss": "log loss"}[recipe.score]
    if numbers["score"] == float("inf"):
        return f"The {name} is infinite: an outcome came that had probability 0."
    return (
        f"Recalibration could take {format_score(numbers['mcb'])} off the {name} of {format_score(numbers['score'])}."
    )


def _segment_ranges(segments: list[Segment], *, alone: bool) -> str:
    if alone:
        return format_range(segments[0].low, segments[0].high, "between {}\u00a0% and {}")
    return "at " + join_words(
        [format_range(segment.low, segment.high, "{}–{}").removeprefix("at ") for segment in segments]
    )
