"""What does the diagram of reliability curves draw of one view? The curve at its places, limits, and shares of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams.curves.finding import Segment, find_segments, finding
from trueodds.diagrams.curves.limits import Limits
from trueodds.diagrams.curves.smoother import Smoother, Span, freed, smooth_view
from trueodds.diagrams.monotone.scores import Scores
from trueodds.diagrams.monotone.strip import bins_for
from trueodds.lenses.view import View

NUMBERS = [
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
class Parts:
    """All that is drawn of one view."""

    view: View
    scores: Scores
    smoother: Smoother
    columns: dict[str, Array]  # of the curve, by place

    @classmethod
    def of(cls, view: View, bandwidth: float | str, scale: str, range: Span | None) -> Self:
        """The curve without limits."""
        return cls(view, *smooth_view(view, bandwidth, scale, range))

    def banded(self, band: str, level: float, draws: int, rng: np.random.Generator | None) -> Self:
        """The same with limits, together at all places if rng is given."""
        own, limits = self.columns, Limits.of(self.scores, self.smoother, self.columns)
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
            low, high = (freed(end, score, own["reference"]) for end in ends)
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
        return bins_for(replace(self.scores, n=self.scores.w * (self.view.counted / self.view.total)))

    def table(self, strip: dict[str, Array]) -> dict[str, Array]:
        """The rows of the table: NaN where a part has no such number."""
        k, bins = len(self.columns["score"]), len(strip["share"])
        table = {
            "view": np.full(k + bins, self.view.name, dtype=object),
            "part": np.repeat(np.array(["curve", "strip"], dtype=object), (k, bins)),
            "piece": np.concatenate([self.columns["piece"], np.full(bins, -1)]),
        }
        for name in NUMBERS:
            parts = [
                np.asarray(part.get(name, np.full(size, np.nan)), dtype=np.float64)
                for part, size in ((self.columns, k), (strip, bins))
            ]
            table[name] = np.concatenate(parts)
        outside = self.columns.get("outside", np.zeros(k, dtype=bool))
        return table | {"outside": np.concatenate([outside, np.zeros(bins, dtype=bool)])}

    def panel(self, views: int, band: str | None, tallest: float, *, first: bool) -> dict[str, Any]:
        """The numbers and words of the panel."""
        total, text = self.scores.w.sum(), finding(self.columns, self.out, self.local, self.view.name, band)
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
