"""The CORP curve of one view: isotonic blocks, score decomposition, and the table of everything that is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.diagrams._style.formatting import format_score
from trueodds.diagrams.bins import score_histogram
from trueodds.diagrams.corp.bands import Band, BandSegment
from trueodds.diagrams.distinct_score_sums import sum_by_score
from trueodds.diagrams.table_columns import stack_tables
from trueodds.estimators.corp import Corp
from trueodds.kernels.isotonic import isotonic_means
from trueodds.lenses.view import View


class CorpCurve:
    """The CORP curve of one view: blocks of scores with equal rate, and the score decomposition.

    Parameters
    ----------
    view : View
        Rows, or cells of a tally.
    score_name : {"brier", "log_loss"}
        The proper score that is decomposed.

    Attributes
    ----------
    score_sums : DistinctScoreSums
        Sums at each of the m distinct predicted probabilities (scores).
    fit : ndarray (m,)
        The isotonic event rate at each of them.
    decomposition : dict of str to float
        The mean of the proper score, `score`, and its parts `mcb`, `dsc` and `unc`.
    mean_prediction, outcome_rate : float
        The weighted means over all rows.
    """

    def __init__(self, view: View, score_name: str) -> None:
        self.view, self.estimator = view, Corp(score_name)
        self.score_sums = sum_by_score(view, by_rank=True)
        self.fit = np.clip(isotonic_means(self.score_sums.w, self.score_sums.wy), 0.0, 1.0)
        self.decomposition = self.estimator.parts(view)
        # Sums by score do not depend on the order of rows, not even by rounding.
        w = self.score_sums.w.sum()
        self.mean_prediction = float((self.score_sums.w * self.score_sums.score).sum() / w)
        self.outcome_rate = float(self.score_sums.wy.sum() / w)

    @property
    def title(self) -> str:
        """The name of the view in the picture."""
        return self.view.name.removeprefix("class:")

    @cached_property
    def blocks(self) -> dict[str, Array]:
        """Blocks of scores with equal rate: x_low, x_high, rate, and the n and weight of their rows."""
        first = np.flatnonzero(np.diff(self.fit, prepend=-1.0) > 0)  # index of the first score of each block
        last = np.append(first[1:], len(self.fit)) - 1
        return {
            "x_low": self.score_sums.score[first],
            "x_high": self.score_sums.score[last],
            "rate": self.fit[first],
            "n": np.add.reduceat(self.score_sums.n, first),
            "weight": np.add.reduceat(self.score_sums.w, first),
        }

    @property
    def has_certain_ends(self) -> bool:
        """Whether the curve starts at 0 or ends at 1, where labels drawn from it cannot vary."""
        return bool(self.fit[0] == 0 or self.fit[-1] == 1)

    def notes(self) -> list[Note]:
        """A note if the score is infinite."""
        return self.estimator.notes(self.view)


NUMBER_COLUMNS = ("x_low", "x_high", "rate", "low", "high", "n", "weight", "share")


@dataclass(frozen=True)
class CorpPanel:
    """The curve, band, segments and texts of one view."""

    curve: CorpCurve
    n_bins: int  # of the histograms of scores and of recalibrated rates
    style: str  # setting of the diagram
    band: Band | None = None  # None if no band is drawn
    segments_outside: tuple[BandSegment, ...] = ()  # where the band rejects calibration
    limits_cross: bool = False  # whether no increasing curve lies within the limits of an honest band

    @cached_property
    def score_histogram(self) -> dict[str, Array]:
        """The share of rows in bins of their score."""
        return score_histogram(self.curve.view, self.n_bins)

    @cached_property
    def rate_histogram(self) -> dict[str, Array]:
        """The share of rows in bins of their recalibrated rate."""
        blocks, edges = self.curve.blocks, np.arange(self.n_bins + 1) / self.n_bins
        index = np.clip(np.searchsorted(edges, blocks["rate"], "left") - 1, 0, None)  # right-closed, the first at 0
        n, weight = (np.bincount(index, blocks[name], self.n_bins) for name in ("n", "weight"))
        occupied = np.flatnonzero(weight > 0)
        share = weight[occupied] / weight.sum()
        return {
            "low": edges[occupied],
            "high": edges[occupied + 1],
            "n": n[occupied],
            "weight": weight[occupied],
            "share": share,
        }

    def table_columns(self) -> dict[str, Array]:
        """The rows of the table: the blocks, the band, the segments outside it, and the histograms."""
        blocks = self.curve.blocks
        is_outside = np.zeros(len(blocks["rate"]), dtype=bool)
        for segment in self.segments_outside:
            is_outside |= (blocks["x_low"] <= segment.high) & (blocks["x_high"] >= segment.low)
        block_shares = blocks["weight"] / blocks["weight"].sum()
        parts = [self._part_rows("block", {**blocks, "share": block_shares}, outside=is_outside)]
        if self.band is not None:
            band_columns = {name: getattr(self.band, name) for name in ("x_low", "x_high", "low", "high")}
            segment_columns = {
                "x_low": np.array([segment.low for segment in self.segments_outside]),
                "x_high": np.array([segment.high for segment in self.segments_outside]),
                "low": np.array([float(not segment.overpredicts) for segment in self.segments_outside]),
                "share": np.array([segment.share for segment in self.segments_outside]),
            }
            parts.append(self._part_rows("band", band_columns))
            parts.append(self._part_rows("outside", segment_columns, outside=True))
        parts.append(self._part_rows("strip", self.score_histogram))
        if self.style == "discrimination":
            parts.append(self._part_rows("rates", self.rate_histogram))
        return stack_tables(parts)

    def _part_rows(self, part: str, columns: dict[str, Array], *, outside: Array | bool = False) -> dict[str, Array]:
        """The rows of one part of the table; columns that it does not use are NaN."""
        size = len(next(iter(columns.values())))
        rows = {
            "view": np.full(size, self.curve.view.name, dtype=object),
            "part": np.full(size, part, dtype=object),
        }
        for name in NUMBER_COLUMNS:
            rows[name] = np.asarray(columns.get(name, np.full(size, np.nan)), dtype=np.float64)
        return rows | {"outside": np.full(size, outside)}

    def panel_row(self) -> dict[str, Any]:
        """The numbers and texts of the panel."""
        curve = self.curve
        return {
            "view": curve.view.name,
            "title": curve.title,
            "aside": f"MCB {format_score(curve.decomposition['mcb'])}",
            "n": curve.view.n_rows,
            "weight": curve.view.total,
            **curve.decomposition,
            "mean_prediction": curve.mean_prediction,
            "outcome_rate": curve.outcome_rate,
            "scores": len(curve.score_sums.score),
            "blocks": len(curve.blocks["rate"]),
            "band_method": "" if self.band is None else self.band.method,
            "share_outside": math.fsum(segment.share for segment in self.segments_outside),
            # The corner into which the numbers are written. An increasing curve cannot pass through both corners, and
            # one that is at most 0.6 in the middle leaves enough room in the upper left one.
            "corner": "upper left" if np.interp(0.5, curve.score_sums.score, curve.fit) <= 0.6 else "lower right",
        }
