"""How often does it come true at each stated score, seen through a Gaussian, and how sure is that?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from trueodds.calibrators.kernel import KernelSpec
from trueodds.core.errors import Note
from trueodds.core.settings import BinCount, Level
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.binned.bins import stacked
from trueodds.diagrams.curves.draws import BandDraws
from trueodds.diagrams.curves.parts import Parts
from trueodds.diagrams.curves.picture import ReliabilityCurveDiagram
from trueodds.diagrams.drawing import layout
from trueodds.diagrams.monotone.strip import strip
from trueodds.diagrams.recipe import Recipe, lens_of
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
    the curve, low and high its band, effective the rows near it) or `strip` (share of rows stated from x_low to x_high).
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
        parts = [Parts.of(view, self.bandwidth, self.scale, self.range) for view in views]
        parts.sort(key=lambda part: -part.local)
        drawn = parts[: layout.PANELS]
        if self.band is not None:
            drawn = [
                part.banded(self.band, self.level, self.resamples, rng if self.simultaneous else None) for part in drawn
            ]
            parts[: layout.PANELS] = drawn
        count = self.bins or drawn[0].bins
        strips = [strip(part.view, count) for part in parts]
        tallest = max(float(shares["share"].max()) for shares in strips[: layout.PANELS])
        rows = [part.panel(len(parts), self.band, tallest, first=part is parts[0]) for part in parts]
        words = {"view", "title", "aside", "finding", "scale"}
        return ReliabilityCurveDiagram(
            name=self.name,
            lens=lens_of(views),
            table=stacked([part.table(shares) for part, shares in zip(parts, strips, strict=True)]),
            panels=stacked(
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

    def _notes(self, parts: Sequence[Parts]) -> list[Note]:
        notes = []
        drawn = parts[: layout.PANELS]
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
        if len(parts) > layout.PANELS:
            text = f"Drawn, and given a band, are the {layout.PANELS} largest local errors of {len(parts)} views; the table holds the curves of all."
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
