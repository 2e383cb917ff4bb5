"""Calibration belt and decision curve of two classes, from cells that an audit keeps until its page is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trueodds.binning.uniform import Uniform
from trueodds.data.predictions import Predictions
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import BinnedView
from trueodds.diagrams.calibration_belt import STRIP_BINS, CalibrationBelt
from trueodds.diagrams.decision_curve import DecisionCurve
from trueodds.diagrams.recipe import Recipe
from trueodds.estimators._glm.logits import Logits
from trueodds.hypotests._glm.calibration_belt import condense_view
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.view import SUMS, View
from trueodds.tallies.tally import Tally, lens_views

# Cells of equal width in the predicted probability, whose edges include the default thresholds of a decision curve.
N_CELLS = 5000


@dataclass(frozen=True)
class PageCells:
    """Sums of rows of two classes by predicted probability."""

    belt: View | None  # cells that preserve the likelihood of the belt; None without log odds, or with clusters
    thresholds: View  # cells between thresholds
    level: float  # confidence level of the bands
    has_clusters: bool = False  # whether bands for independent rows would be too narrow

    @classmethod
    def of(cls, rows: Predictions | Tally, level: float) -> PageCells | None:
        """Return the cells of two classes; None for other data, or without weight."""
        if rows.kind != "classes" or rows.k != 2:
            return None
        lens = default_lens(rows)
        (view,) = lens_views(rows, lens)
        if not view.total > 0:
            return None
        has_clusters = rows.cluster is not None
        edges = np.arange(N_CELLS) / N_CELLS  # i/k is the float that a decimal threshold parses to
        index = np.searchsorted(edges, view.p.astype(np.float64, copy=False), "right") - 1
        has_log_odds = not ((view.w > 0) & ((view.p <= 0) | (view.q <= 0))).any()
        belt = condense_view(view, Logits.from_view(view, 0.0, "audit")) if has_log_odds and not has_clusters else None
        cells = view.pool(index, N_CELLS)
        # The sums as arrays: those of a pooled view are computed from its rows when they are needed.
        sums = {name: cells.sums(name) for name in SUMS}
        thresholds = View(cells.p, cells.y, cells.w, n=cells.n, sums=sums, name=view.name)
        return cls(belt, thresholds, level, has_clusters)

    def diagrams(self) -> tuple[Diagram, ...]:
        """Return the belt, if there is one, and the decision curve."""
        rng = np.random.default_rng(0)
        curve = DecisionCurve(level=self.level, band=None if self.has_clusters else "auto")
        recipes: list[tuple[Recipe, View | None]] = [
            (CalibrationBelt(levels=(self.level,)), self.belt),
            (curve, self.thresholds),
        ]
        made = (recipe.compute((view,), rng) for recipe, view in recipes if view is not None)
        return tuple(self._with_strip(diagram) if diagram.name == "calibration_belt" else diagram for diagram in made)

    def _with_strip(self, belt: Diagram) -> Diagram:
        """Return the belt with the histogram of all rows, because its own cells preserve likelihoods, not counts."""
        strip = BinnedView(self.thresholds, Uniform(STRIP_BINS)).columns
        other_parts, size = belt.table["part"] != "strip", len(strip["low"])
        ends = {"x_low": strip["low"], "x_high": strip["high"], "rate": strip["share"]}
        texts = {"view": np.full(size, belt.table["view"][0], object), "part": np.full(size, "strip", object)}
        texts["side"] = np.full(size, "", object)
        columns = {name: (ends | texts).get(name, np.full(size, np.nan)) for name in belt.table}
        table = {name: np.concatenate([belt.table[name][other_parts], added]) for name, added in columns.items()}
        return replace(belt, table=table)

    @property
    def explanation(self) -> str:
        """What the curves and bands are, and why one is missing."""
        has_belt = self.belt is not None
        text = "Belt: polynomial of the predicted log odds with a simultaneous band. " if has_belt else ""
        text += "Net benefit: true positives per row minus false positives weighted by the odds of the threshold"
        if self.has_clusters:
            return (
                f"{text}. Rows are clustered: there is no belt and no band, because those for independent rows would be"
                " too narrow."
            )
        text += ", with a pointwise band from resampled counts."
        if not has_belt:
            text += " Probabilities of 0 or 1 have no log odds, so that there is no belt."
        return text
