"""From the models of each view to a Murphy diagram or a plane of miscalibration and discrimination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.binned.bins import stacked
from trueodds.diagrams.drawing import layout, styling
from trueodds.diagrams.models import decision_words as words
from trueodds.diagrams.models.decision_rows import Columns, Model, bands
from trueodds.diagrams.models.elementary import grid, turning_points
from trueodds.diagrams.models.model_results import UNKNOWN, ModelResult
from trueodds.diagrams.models.murphy_picture import MurphyDiagram
from trueodds.diagrams.models.plane_picture import PlaneDiagram, isolines
from trueodds.diagrams.models.wording import verdict
from trueodds.diagrams.recipe import lens_of

if TYPE_CHECKING:
    from trueodds.diagrams.murphy import Murphy

BAND = 100  # even thresholds of a band, beside those by the predictions
TEXT = ("view", "title", "aside", "finding")
BY_ITSELF = "Bands and differences hold at each threshold by itself: at {share} of the thresholds a true cost is expected outside."
NO_SCORE = ModelResult()


class Drawing:
    """All rows of the table and panels, view by view; the largest miscalibration first."""

    def __init__(
        self,
        recipe: Murphy,
        thresholds: Array | None,
        panels: Sequence[Sequence[Model]],
        sources: Mapping[str, Any],
        rng: np.random.Generator,
    ) -> None:
        self.recipe, self.panels, self.sources = recipe, panels, sources
        self.names = [model.name for model in panels[0]]
        self.coarse = 0
        self.curves: list[list[Columns]] = []
        self.bands: list[list[Columns]] = []
        if recipe.style == "plane":
            self._equal_outcomes()
            return
        for i, models in enumerate(panels):
            decisions = [model.decisions for model in models]
            exact = turning_points(decisions) if thresholds is None else None
            at = grid(decisions) if exact is None and thresholds is None else thresholds if exact is None else exact
            assert at is not None
            if exact is None and thresholds is None:
                self.coarse = max(self.coarse, len(at))
            self.curves.append([model.curve(at, exact=exact is not None) for model in models])
            drawn = i < layout.PANELS and recipe.band is not None and min(len(model.view) for model in models) > 1
            rows = grid(decisions, BAND) if thresholds is None else thresholds
            self.bands.append(
                bands(models, sources, rows, recipe.level, recipe.resamples, rng, recipe.paired) if drawn else []
            )

    def made(self, scores: Mapping[str, ModelResult], mcb: Mapping[str, ModelResult], notes: Sequence[Note]) -> Diagram:
        """The diagram, with each model's standing over all views."""
        recipe, alone = self.recipe, len(self.panels) == 1
        # What a calibrated model would score is no error to be subtracted.
        scores = {name: replace(one, noise_floor=UNKNOWN) for name, one in scores.items()}
        lens = lens_of([models[0].view for models in self.panels])
        table: list[Columns] = []
        for i, models in enumerate(self.panels):
            if recipe.style == "murphy":
                table += [*self.curves[i], *self.bands[i], *(model.strip() for model in models)]
            table += [
                model.score_row(*((scores.get(model.name), mcb.get(model.name)) if alone else (None, None)))
                for model in models
            ]
        if not alone and scores:
            table += [
                self._aggregate_row(lens, model, scores[model.name], mcb.get(model.name)) for model in self.panels[0]
            ]
        kind = MurphyDiagram if recipe.style == "murphy" else PlaneDiagram
        thresholds = recipe.thresholds
        return kind(
            name=recipe.name,
            lens=lens,
            table=stacked(table),
            panels=stacked([self._panels(scores, mcb)]),
            settings={
                **{name: getattr(recipe, name) for name in recipe.accepts()},
                "thresholds": thresholds if thresholds is None else np.asarray(thresholds).tolist(),
                "parts": self.parted,
                "banded": self.banded,
                "models": list(self.names),
            },
            notes=tuple(dict.fromkeys([*notes, *self._notes()])),
        )

    @property
    def parted(self) -> bool:
        """Whether the parts of the cost are drawn."""
        return len(self.names) == 1 if self.recipe.parts is None else self.recipe.parts

    @property
    def banded(self) -> bool:
        """Whether bands are drawn."""
        return self.recipe.band == "bootstrap" or (self.recipe.band == "auto" and len(self.names) <= 2)

    def _aggregate_row(self, lens: str, model: Model, score: ModelResult, mcb: ModelResult | None) -> Columns:
        terms = {
            key: float(np.mean([self._of(models, model.name).numbers[key] for models in self.panels]))
            for key in model.numbers
        }
        differences = {key: getattr(score, key) for key in ("difference", "difference_low", "difference_high")}
        row = model.rows("model", 1, terms | differences)
        if mcb is not None:
            row |= {"low": np.array([mcb.error_low]), "high": np.array([mcb.error_high])}
        row["view"][:] = lens
        row["beyond"][:] = score.settled
        return row

    @staticmethod
    def _of(models: Sequence[Model], name: str) -> Model:
        return next(model for model in models if model.name == name)

    def _panels(self, scores: Mapping[str, ModelResult], mcb: Mapping[str, ModelResult]) -> Columns:
        drawn = self.panels[: layout.PANELS]
        if self.recipe.style == "murphy":
            shown = ["score", *(["unc", "dsc"] if self.parted else [])]
            curves = [curve for curves in self.curves[: layout.PANELS] for curve in curves]
            highest = max(float(curve[part].max()) for curve in curves for part in shown)
            if self.banded:
                limits = [float(band["high"].max()) for view in self.bands for band in view]
                highest = max([highest, *limits])
            tallest = max(float(model.strip()["share"].max()) for models in drawn for model in models)
            ends = {"y_low": 0.0, "y_high": 1.04 * max(highest, 0.01), "tallest": tallest}
        else:
            ends = isolines(drawn, mcb if len(self.panels) == 1 else {})
        rows = [
            {
                "view": models[0].view.name,
                "title": models[0].view.name.removeprefix("class:"),
                "aside": _aside(models),
                "finding": self._finding(i, scores),
                "n": max(model.view.n_rows for model in models),
                **ends,
            }
            for i, models in enumerate(self.panels)
        ]
        if len(rows) > 1:
            mean_text = f"Mean over {len(rows)} views: {verdict(self.names, self._ordered_results(scores), words.SCORES[self.recipe.score])} "
            largest = f"Largest miscalibration: {rows[0]['title']}"
            text = f"{mean_text}{largest}." if scores else f"{largest}. {rows[0]['finding']}"
            rows[0]["finding"] = text
        return {name: np.array([row[name] for row in rows], dtype=object if name in TEXT else None) for name in rows[0]}

    def _ordered_results(self, scores: Mapping[str, ModelResult]) -> list[ModelResult]:
        return [scores.get(name, NO_SCORE) for name in self.names]

    def _finding(self, i: int, scores: Mapping[str, ModelResult]) -> str:
        models = self.panels[i]
        results = [ModelResult(model.numbers["score"]) for model in models]
        if scores and len(self.panels) == 1:
            results = self._ordered_results(scores)
        if self.recipe.style == "plane":
            return words.of_plane(models, results)
        fixed_thresholds = self.recipe.thresholds is not None
        return words.of_curves(models, self.curves[i], self.bands[i], results, fixed_thresholds=fixed_thresholds)

    def _equal_outcomes(self) -> None:
        for models in self.panels:
            unc = [model.numbers["unc"] for model in models]
            if not np.allclose(unc, unc[0], rtol=1e-9, atol=1e-12):
                raise InputError(
                    "TO205",
                    "Lines of equal score hold for models that speak of the same outcomes.",
                    f"uncertainty {', '.join(f'{name} {u:.4f}' for name, u in zip(self.names, unc, strict=True))}",
                    "Use lens='class:NAME' or 'classwise', whose outcome is the same for all models, or style='murphy'.",
                )

    def _notes(self) -> list[Note]:
        notes = [note for models in self.panels[: layout.PANELS] for model in models for note in _infinite(model)][:1]
        if self.recipe.style == "murphy":
            sentences = []
            if any(self.bands):
                sentences.append(BY_ITSELF.format(share=styling.percent(1 - self.recipe.level)))
            if self.coarse:
                sentences.append(
                    f"Curves are drawn at {self.coarse:,} thresholds, exact at each; jumps between them are slopes."
                )
            if sentences:
                notes.append(Note("TN264", " ".join(sentences)))
            if any(not _alike(models) for models in self.panels):
                text = "The models' outcomes differ: a curve is lower also for a model whose outcome is easier to say. Through lens='class:NAME' the outcome is the same for all."
                notes.append(Note("TN263", text))
        if len(self.panels) > layout.PANELS:
            text = f"Drawn are the {layout.PANELS} largest miscalibrations of {len(self.panels)} views; the table holds them all, bands of those that are drawn."
            notes.append(Note("TN245", text))
        if not all(model.view.is_rows for models in self.panels for model in models):
            notes.append(
                Note("TN244", "Rows were tallied: those of one fine cell count with the cell's mean prediction.")
            )
        return notes


def _alike(models: Sequence[Model]) -> bool:
    return bool(
        np.allclose([model.decisions.rate for model in models], models[0].decisions.rate, rtol=1e-9, atol=1e-12)
    )


def _infinite(model: Model) -> list[Note]:
    from trueodds.estimators.corp import Corp

    return Corp(model.score).notes(model.view)


def _aside(models: Sequence[Model]) -> str:
    scores = [model.numbers["score"] for model in models]
    low, high = min(scores), max(scores)
    return f"score {low:.3f}" if len(scores) == 1 else f"score {low:.3f}–{high:.3f}"
