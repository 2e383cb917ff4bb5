"""Which numbers does a Murphy diagram draw? Curves, bands, strips and each model's score, as rows of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.diagrams.models.elementary import AFTER, BEFORE, OPEN, Decisions
from trueodds.diagrams.models.model_results import UNKNOWN, ModelResult
from trueodds.diagrams.models.sampled import by_cells, by_rows
from trueodds.estimators.corp import Corp
from trueodds.lenses.view import View
from trueodds.resampling.comparing.sameness import same_rows

Columns = dict[str, Array]
NUMBERS = (
    "threshold",
    "score",
    "mcb",
    "dsc",
    "unc",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
    "beyond",
    "share",
)
SIDES = {"below": BEFORE, "above": AFTER}  # the limits at a jump
BARS = 20  # of the strip


class Model:
    """One model in one view."""

    def __init__(self, name: str, view: View, score: str) -> None:
        self.name, self.view, self.score = name, view, score
        self.decisions = Decisions(view)
        self.numbers = Corp(score).parts(view)

    def rows(self, part: str, size: int, columns: Mapping[str, Any], side: str | Sequence[str] = "") -> Columns:
        """Rows of the table; what they do not have is NaN or empty."""
        words = {"view": self.view.name, "model": self.name, "part": part}
        table = {name: np.full(size, word, dtype=object) for name, word in words.items()}
        table["side"] = np.array([side] * size if isinstance(side, str) else side, dtype=object)
        for name in NUMBERS:
            table[name] = np.broadcast_to(np.asarray(columns.get(name, UNKNOWN), dtype=np.float64), size).copy()
        return table

    def curve(self, thresholds: Array, *, exact: bool) -> Columns:
        """The cost and its parts by threshold; where all turns are there, both limits at each."""
        if not exact:
            parts = self.decisions.parts(thresholds, OPEN)
            return self.rows("curve", len(thresholds), parts | {"threshold": thresholds}, "at")
        both = [self.decisions.parts(thresholds, acting) for acting in SIDES.values()]
        woven = {name: np.stack([part[name] for part in both], axis=1).ravel() for name in both[0]}
        size = 2 * len(thresholds)
        woven["threshold"] = np.repeat(thresholds, 2)
        return self.rows("curve", size, woven, list(SIDES) * len(thresholds))

    def strip(self) -> Columns:
        """Where the predictions are."""
        edges = np.arange(BARS + 1) / BARS
        place = np.clip(np.searchsorted(edges, self.decisions.s, "left") - 1, 0, BARS - 1)
        share = np.bincount(place, self.decisions.w, BARS)
        occupied = share > 0
        return self.rows(
            "strip",
            int(occupied.sum()),
            {"low": edges[:-1][occupied], "high": edges[1:][occupied], "share": share[occupied]},
        )

    def score_row(self, result: ModelResult | None, mcb: ModelResult | None) -> Columns:
        """The score and its parts, with the interval of MCB and the difference of the score to the first model's."""
        more: dict[str, float] = {}
        if result is not None:
            more = {name: getattr(result, name) for name in ("difference", "difference_low", "difference_high")}
            more["beyond"] = result.settled
        if mcb is not None:
            more |= {"low": mcb.error_low, "high": mcb.error_high}
        return self.rows("model", 1, self.numbers | more)

    def band(self, thresholds: Array, draws: Array, first: tuple[Array, Array] | None, level: float) -> Columns:
        """Limits of the cost, and of its difference to the first model's, whose cost and draws are given."""
        score = self.decisions.score(thresholds)
        ends = (1 - level) / 2, (1 + level) / 2
        low, high = np.quantile(draws, ends, axis=0)
        more: dict[str, Array] = {}
        if first is not None:
            limits = np.quantile(draws - first[1], ends, axis=0)
            more = {"difference": score - first[0], "difference_low": limits[0], "difference_high": limits[1]}
            more["beyond"] = (limits[0] > 0).astype(float) - (limits[1] < 0)
        return self.rows(
            "band", len(thresholds), {"threshold": thresholds, "score": score, "low": low, "high": high} | more
        )


def bands(
    models: Sequence[Model],
    sources: Mapping[str, Any],
    thresholds: Array,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    paired: bool | None,
) -> list[Columns]:
    """The bands of all models of a view; those of the first model's rows are drawn on the same resamples."""
    with_it: list[Model] = [models[0]]
    first = sources[models[0].name]
    for model in models[1:]:
        own = sources[model.name]
        if isinstance(first, Predictions) and isinstance(own, Predictions) and same_rows(first, own, paired)[0]:
            with_it.append(model)
    draws_by_model: dict[str, Array] = {}
    cluster = getattr(first, "cluster", None)
    if models[0].view.is_rows:
        joint_draws = by_rows([model.view for model in with_it], cluster, thresholds, resamples, rng)
        draws_by_model = {model.name: draws for model, draws in zip(with_it, joint_draws, strict=True)}
    for model in models:
        if model.name not in draws_by_model:
            own_cluster = getattr(sources[model.name], "cluster", None)
            draws_by_model[model.name] = (
                by_rows([model.view], own_cluster, thresholds, resamples, rng)[0]
                if model.view.is_rows
                else by_cells(model.view, thresholds, resamples, rng)
            )
    tables: list[Columns] = []
    for number, model in enumerate(models):
        # Two tallies may be of the same rows, and how these vary together is not kept.
        comparable = number > 0 and model.view.is_rows and models[0].view.is_rows
        count = min(len(draws_by_model[model.name]), len(draws_by_model[models[0].name]))
        beside = (models[0].decisions.score(thresholds), draws_by_model[models[0].name][:count]) if comparable else None
        tables.append(model.band(thresholds, draws_by_model[model.name][:count], beside, level))
    return tables
