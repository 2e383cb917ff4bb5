"""What does a CORP diagram draw of one view? Blocks, band, stretches outside it, and the shares of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams.monotone.bands import Band
from trueodds.diagrams.monotone.beyond import Segment
from trueodds.diagrams.monotone.curve import Curve
from trueodds.diagrams.monotone.strip import strip

NUMBERS = ("x_low", "x_high", "rate", "low", "high", "n", "weight", "share")


@dataclass(frozen=True)
class Parts:
    """All that is drawn of one view."""

    curve: Curve
    bins: int
    style: str
    band: Band | None = None
    out: tuple[Segment, ...] = ()
    crossed: bool = False

    @cached_property
    def strip(self) -> dict[str, Array]:
        """The share of rows in bins of their score."""
        return strip(self.curve.view, self.bins)

    @cached_property
    def rates(self) -> dict[str, Array]:
        """The share of rows in bins of their recalibrated rate."""
        blocks, edges = self.curve.blocks, np.arange(self.bins + 1) / self.bins
        index = np.clip(np.searchsorted(edges, blocks["rate"], "left") - 1, 0, None)  # right-closed, the first at 0
        n, weight = (np.bincount(index, blocks[name], self.bins) for name in ("n", "weight"))
        some = np.flatnonzero(weight > 0)
        share = weight[some] / weight.sum()
        return {"low": edges[some], "high": edges[some + 1], "n": n[some], "weight": weight[some], "share": share}

    def table(self) -> dict[str, Array]:
        """The rows of the table: NaN where a part has no such number."""
        blocks = self.curve.blocks
        share = blocks["weight"] / blocks["weight"].sum()
        beyond = np.zeros(len(share), dtype=bool)
        for segment in self.out:
            beyond |= (blocks["x_low"] <= segment.high) & (blocks["x_high"] >= segment.low)
        parts: list[tuple[str, dict[str, Array], Array | bool]] = [("block", {**blocks, "share": share}, beyond)]
        if self.band is not None:
            ends = {name: getattr(self.band, name) for name in ("x_low", "x_high", "low", "high")}
            parts.append(("band", ends, False))
            out = np.array(
                [(segment.low, segment.high, not segment.too_much, segment.share) for segment in self.out]
            ).reshape(-1, 4)
            names = ("x_low", "x_high", "low", "share")
            parts.append(("outside", dict(zip(names, out.T, strict=True)), True))
        parts.append(("strip", self.strip, False))
        if self.style == "discrimination":
            parts.append(("rates", self.rates, False))
        sizes = [len(next(iter(columns.values()))) for _, columns, _ in parts]
        table = {
            "view": np.full(sum(sizes), self.curve.view.name, dtype=object),
            "part": np.repeat(np.array([part for part, _, _ in parts], dtype=object), sizes),
        }
        for name in NUMBERS:
            arrays = [
                np.asarray(columns.get(name, np.full(size, np.nan)), dtype=np.float64)
                for (_, columns, _), size in zip(parts, sizes, strict=True)
            ]
            table[name] = np.concatenate(arrays)
        flags = [np.broadcast_to(flag, size) for (_, _, flag), size in zip(parts, sizes, strict=True)]
        return table | {"outside": np.concatenate(flags)}

    def panel(self) -> dict[str, Any]:
        """The numbers and words of the panel."""
        curve = self.curve
        return {
            "view": curve.view.name,
            "title": curve.title,
            "aside": f"MCB {number(curve.numbers['mcb'])}",
            "n": curve.view.n_rows,
            "weight": curve.view.total,
            **curve.numbers,
            "mean_prediction": curve.mean_prediction,
            "outcome_rate": curve.outcome_rate,
            "scores": len(curve.scores.at),
            "blocks": len(curve.blocks["rate"]),
            "law": "" if self.band is None else self.band.method,
            "share_outside": math.fsum(segment.share for segment in self.out),
            # A curve that never falls cannot pass through both corners.
            "corner": "upper left" if np.interp(0.5, curve.scores.at, curve.fit) <= 0.6 else "lower right",
        }


def number(value: float) -> str:
    """A score with four decimals, with three digits where these are few, or that it is infinite.

    >>> [number(x) for x in (0.28, 0.0032, 0.0000123, 1.2e-10, 1e-17, float("inf"))]
    ['0.2800', '0.00320', '0.0000123', '1.20e-10', '0', '∞']
    """
    if not math.isfinite(value):
        return "∞"
    if abs(value) < 1e-12:  # of a score of order 1: roundings
        return "0"
    if abs(value) < 1e-6:
        return f"{value:.2e}"
    return f"{value:.{max(4, 2 - math.floor(math.log10(abs(value))))}f}"
