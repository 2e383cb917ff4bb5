"""The kernel-smoothed reliability curve, without bins, with pointwise or simultaneous bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from trueodds.calibrators.kernel import KernelSpec
from trueodds.core.errors import Note
from trueodds.core.settings import BinCount, Level
from trueodds.core.typing import Array
from trueodds.diagrams._style import layout
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import freedman_diaconis_bins, score_histogram, stack_tables
from trueodds.diagrams.recipe import BandDraws, Recipe, lens_of
from trueodds.diagrams.reliability_curve.plot import ReliabilityCurveDiagram
from trueodds.diagrams.reliability_curve.smoother import (
    Smoother,
    SmootherBand,
    Span,
    correct_smoothing_bias,
    smooth_view,
)
from trueodds.diagrams.reliability_curve.text import Segment, describe_finding, find_segments
from trueodds.diagrams.score_sums import ScoreSums
from trueodds.lenses.view import View

BY_COUNT = ("low", "high", "probability_low", "probability_high", "effective", "n", "outside")


@dataclass(frozen=True)
class ReliabilityCurve(Recipe):
    r"""A curve of how often it comes true through a Gaussian, its band, and what a calibrated model's curve would be.

    Answers: when it says 70 %, does it come true 70 % of the time, at any score, without bins? And what is one
    prediction worth (`at`)? With a Gaussian K of standard deviation h the curve and its reference are

    .. math:: \hat r(s) = \frac{\sum_i w_i y_i K_h(s, p_i)}{\sum_i w_i K_h(s, p_i)}, \quad
              \tilde p(s) = \frac{\sum_i w_i p_i K_h(s, p_i)}{\sum_i w_i K_h(s, p_i)} .

    Smoothing bends the diagonal: where predictions lie to one side of s, a calibrated model's curve is p̃, not s. So
    the local error is :math:`\hat r - \tilde p`, and the probability at s is :math:`\hat r` moved along the straight
    lines that keep 0 and 1 and take p̃ to s, :math:`\hat r s / \tilde p` up to p̃ and
    :math:`1 - (1 - \hat r)(1 - s)/(1 - \tilde p)` beyond: free of that bias, though not of what the error itself does
    within h. So are its limits. The curve is that of the calibrator `kernel` before it is made to rise, but for h where
    scores are exactly 0 or 1: here these have no say in log odds.

    Views: binary, one panel each, the largest mean local error first (upward biased, as noise adds to it); rows and
    cells of tallies, where a cell counts with its mean. A weight of two is two rows for curve and bandwidth; in bands
    weights are importance weights, and votes vary as much as they are seen to. Units: probability.

    Simulated at `level=0.9` (100, 1,000 and 10,000 rows of uniform, arcsine and sharp scores, three truths, 200 data
    sets each): at single scores the confidence band holds the smoothed truth for 91 to 98 % of the rows, all at once
    in 88 to 98 % of data sets. The true rate itself (p, p^1.5 or half the log odds; 60 data sets, 12 of 10,000 rows)
    lies within the limits of `at` for 87 to 98 % of the rows on log odds, 55 to 97 % on probabilities, the least where
    truths bend and rows are many. A calibrated model's curve lies in
    the consistency band for 89 to 92 %, all at once in 86 to 98 %. Percentiles of 200 bootstrap curves hold 47 to 91 %
    and are not used.

    Cost: O(n log n), then the places (some 200) times the groups of scores, 4 in a bandwidth, and with
    `simultaneous=True` times `resamples`. 10,000 rows take 0.02 s, 0.1 s all at once; a tally of 10⁷ rows 0.05 and 0.3 s.
    Raises TO203 for an unknown setting, TO205 for a joint view and for scores below 1/K with `range="1/K"`.
    Source: Posocco & Bonnefoy (2021); Silverman (1986); Clopper & Pearson (1934) for the limits.

    Parameters
    ----------
    band : str or None
        `confidence`: around the curve, for as many rows as those near a score are worth, (Σwk)²/Σw²k². `consistency`:
        around the reference, where the curve falls if every outcome comes with its stated probability.
    level : float
        The probability of what the band says, at each score or
    simultaneous : bool
        at all places at once, by the largest deviation in standard errors of bootstrap curves (`confidence`) or the
        least tail probability of curves of redrawn labels (`consistency`).
    bandwidth : float or str
        h on the scale, or a rule that looks at the scores alone: `silverman`, 0.9 min(sd, IQR/1.34) n^(−1/5), or
        `normal`, 1.06 sd n^(−1/5).
    scale : str
        `logit`: of the log odds, on which scores near 0 and 1, such as those of networks, are told apart.
        `probability`: of the probabilities, mirrored at both ends of their range, as in the paper.
    range : str or None
        Of the probabilities that are mirrored: `auto` is [1/K, 1] for the largest of K probabilities, else [0, 1];
        None is [0, 1], `1/K` is [1/K, 1].
    resamples : int
        How many draws.
    bins : int, optional
        Of the strip; by Freedman & Diaconis's rule, 5 to 40, if not said.

    Columns of `table`: view part piece score rate low high reference error probability probability_low
    probability_high effective x_low x_high n weight share outside. `part` is `curve` (the place `score`, where rate is
    the curve, low and high its band, effective the rows near it) or `score_histogram` (share of rows stated from x_low to x_high).
    Places lie within h of some stated score; those of a `piece` follow without a gap. `outside`: the reference is outside
    the confidence band, or the curve outside that of consistency. What a part does not have is NaN.

    >>> p, y = np.tile([0.5, 0.9], 40), np.tile([0, 1, 1, 0, 0, 1, 1, 1], 10)
    >>> diagram = ReliabilityCurve(bandwidth=0.05, scale="probability")([View(p, y, name="positive")])
    >>> diagram.finding.replace("\u00a0", " ")
    'It says too much between 85 % and 95 %: at 90 % it comes true 75 % [61 %, 86 %]. The curve is 7.5 points from a calibrated one on average.'
    """

    name: ClassVar[str] = "reliability_curve"
    by_count: ClassVar[tuple[str, ...]] = BY_COUNT
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
        KernelSpec(bandwidth=self.bandwidth, scale=self.scale)  # the same two settings, refused alike

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of binary views."""
        parts = [CurvePanel.of(view, self.bandwidth, self.scale, self.range) for view in views]
        parts.sort(key=lambda part: -part.local)
        drawn = parts[: layout.MAX_PANELS]
        if self.band is not None:
            drawn = [
                part.banded(self.band, self.level, self.resamples, rng if self.simultaneous else None) for part in drawn
            ]
            parts[: layout.MAX_PANELS] = drawn
        count = self.bins or drawn[0].bins
        strips = [score_histogram(part.view, count) for part in parts]
        tallest = max(float(shares["share"].max()) for shares in strips[: layout.MAX_PANELS])
        rows = [part.panel(len(parts), self.band, tallest, first=part is parts[0]) for part in parts]
        words = {"view", "title", "aside", "finding", "scale"}
        return ReliabilityCurveDiagram(
            name=self.name,
            lens=lens_of(views),
            table=stack_tables([part.table(shares) for part, shares in zip(parts, strips, strict=True)]),
            panels=stack_tables(
                [
                    {
                        name: np.array([row[name] for row in rows], dtype=object if name in words else None)
                        for name in rows[0]
                    }
                ]
            ),
            settings={name: getattr(self, name) for name in self.accepts()} | {"bins": count},
            notes=tuple(self._notes(parts)),
        )

    def _notes(self, parts: Sequence[CurvePanel]) -> list[Note]:
        notes = []
        drawn = parts[: layout.MAX_PANELS]
        narrowest = [part.title for part in drawn if part.smoother.is_narrowest and isinstance(self.bandwidth, str)]
        if narrowest:
            text = f"The scores of {', '.join(narrowest[:5])} lie so close together that the bandwidth is the least, {drawn[0].smoother.bandwidth:g}: places with few scores show what single rows say."
            notes.append(Note("TN258", text))
        text = "The curve sees each score together with its neighbors: what varies within a bandwidth is not seen, and where predictions lie to one side a calibrated model's curve leaves the diagonal, too."
        if self.band == "confidence":
            text += " The band holds the curve that the true rates would give through the same Gaussian, not every true rate."
        if self.band is not None and not self.simultaneous:
            text += f" It holds at each score by itself: at {100 * (1 - self.level):.3g}\u00a0% of the scores it is expected to fail. Pass simultaneous=True for a band that holds at all of them."
        notes.append(Note("TN259", text))
        if len(parts) > layout.MAX_PANELS:
            text = f"Drawn, and given a band, are the {layout.MAX_PANELS} largest local errors of {len(parts)} views; the table holds the curves of all."
            notes.append(Note("TN245", text))
        if self.band is not None and any(part.scores.voted for part in drawn):
            notes.append(
                Note("TN243", "Outcomes are shares of votes; limits follow how far they vary around the curve.")
            )
        if not all(part.view.is_rows for part in parts):
            notes.append(
                Note("TN244", "Rows were tallied: those of one fine cell count with the cell's mean prediction.")
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
    """All that is drawn of one view."""

    view: View
    scores: ScoreSums
    smoother: Smoother
    columns: dict[str, Array]  # of the curve, by place

    @classmethod
    def of(cls, view: View, bandwidth: float | str, scale: str, range: Span | None) -> Self:
        """The curve without limits."""
        return cls(view, *smooth_view(view, bandwidth, scale, range))

    def banded(self, band: str, level: float, draws: int, rng: np.random.Generator | None) -> Self:
        """The same with limits, together at all places if rng is given."""
        own, limits = self.columns, SmootherBand.of(self.scores, self.smoother, self.columns)
        ends = limits.confidence(level, draws, rng) if band == "confidence" else limits.consistency(level, draws, rng)
        tested = own["reference"] if band == "confidence" else own["rate"]
        tolerance = 1e-12  # equal counts must compare as equal
        more = {
            "low": ends[0],
            "high": ends[1],
            "effective": limits.effective,
            "mass": limits.mass,
            "outside": (tested < ends[0] - tolerance) | (tested > ends[1] + tolerance),
        }
        if band == "confidence":
            score = own["score"]
            low, high = (correct_smoothing_bias(end, score, own["reference"]) for end in ends)
            # Where 0 was stated all rates up to the reference become 0, which must not leave the limits without width.
            more["probability_low"] = np.where(score == 1, np.minimum(low, ends[0]), low)
            more["probability_high"] = np.where(score == 0, np.maximum(high, ends[1]), high)
        return replace(self, columns=own | more)

    @property
    def title(self) -> str:
        """What the view is called in the picture."""
        return self.view.name.removeprefix("class:")

    @cached_property
    def local(self) -> float:
        """How far the curve is from a calibrated model's, on average over the predictions."""
        error = np.abs(np.interp(self.scores.at, self.columns["score"], self.columns["error"]))
        return float(self.scores.w @ error / self.scores.w.sum())

    @cached_property
    def out(self) -> list[Segment]:
        """Where it is off."""
        return find_segments(self.columns, self.scores.at, self.scores.w) if "outside" in self.columns else []

    @property
    def bins(self) -> int:
        """How many bins of the strip suit the scores; a weight of two is two rows."""
        return freedman_diaconis_bins(replace(self.scores, n=self.scores.w * (self.view.counted / self.view.total)))

    def table(self, strip: dict[str, Array]) -> dict[str, Array]:
        """The rows of the table: NaN where a part has no such number."""
        k, bins = len(self.columns["score"]), len(strip["share"])
        table = {
            "view": np.full(k + bins, self.view.name, dtype=object),
            "part": np.repeat(np.array(["curve", "strip"], dtype=object), (k, bins)),
            "piece": np.concatenate([self.columns["piece"], np.full(bins, -1)]),
        }
        for name in NUMBER_COLUMNS:
            parts = [
                np.asarray(part.get(name, np.full(size, np.nan)), dtype=np.float64)
                for part, size in ((self.columns, k), (strip, bins))
            ]
            table[name] = np.concatenate(parts)
        outside = self.columns.get("outside", np.zeros(k, dtype=bool))
        return table | {"outside": np.concatenate([outside, np.zeros(bins, dtype=bool)])}

    def panel(self, views: int, band: str | None, tallest: float, *, first: bool) -> dict[str, Any]:
        """The numbers and words of the panel."""
        total, text = self.scores.w.sum(), describe_finding(self.columns, self.out, self.local, self.view.name, band)
        if views > 1:
            text = f"{'Largest local error: ' if first else ''}{self.title}. {text}"
        return {
            "view": self.view.name,
            "title": self.title,
            "aside": f"off {100 * self.local:.1f} points",
            "finding": text,
            "n": self.view.n_rows,
            "weight": self.view.total,
            "mean_prediction": float(self.scores.w @ self.scores.at / total),
            "outcome_rate": float(self.scores.wy.sum() / total),
            "local_error": self.local,
            "scale": self.smoother.scale,
            "bandwidth": self.smoother.bandwidth,
            "range_low": self.smoother.low,
            "share_outside": sum(segment.share for segment in self.out),
            "tallest": tallest,
        }
