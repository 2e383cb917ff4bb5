"""Build a Murphy diagram or an MCB-DSC plane from the models of each view: table, panels, finding and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.diagrams._style.formatting import format_percent
from trueodds.diagrams._style.panel_grid import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.model_comparison_text import describe_comparison
from trueodds.diagrams.model_results import MISSING, ModelResult
from trueodds.diagrams.murphy.curves import MurphyModel, bootstrap_bands, exact_thresholds, threshold_grid
from trueodds.diagrams.murphy.mcb_dsc_plot import PlaneDiagram, plane_limits
from trueodds.diagrams.murphy.plot import MurphyDiagram
from trueodds.diagrams.murphy.text import SCORE_NAMES, describe_curves, describe_plane, format_score_range
from trueodds.diagrams.recipe import lens_name
from trueodds.diagrams.table_columns import Columns, rows_to_columns, stack_tables
from trueodds.estimators.corp import Corp as CorpError

BAND_THRESHOLDS = 100  # equally spaced thresholds of a band, in addition to quantiles of the predictions
POINTWISE_NOTE = (
    "Bands and differences are pointwise: the true cost is expected to lie outside the band at {share} of the "
    "thresholds."
)


class MurphyBuilder:
    """Computes curves and bands of all models in each view, and builds the diagram from them.

    Parameters
    ----------
    recipe : Murphy
        The settings.
    thresholds : ndarray (t,) or None
        The thresholds that the user chose, increasing; None if the curves determine them.
    panels : sequence of sequences of MurphyModel
        The models of each view, the view with the largest miscalibration first.
    data_by_model : mapping of str to Predictions, Tally or None
        The data of each model by its name; None if only its views are known.
    rng : numpy.random.Generator
        Source of the bootstrap resamples.

    Attributes
    ----------
    names : list of str
        The names of the models, in order.
    curves, bands : list of lists of tables
        The table rows of the curve, and of the band, of each model in each view. The lists are empty in the plane, and
        the list of bands of a view is empty if it has none.
    n_grid_thresholds : int
        The largest number of thresholds of a curve that is evaluated on a grid; 0 if all curves are exact.
    """

    def __init__(
        self,
        recipe: Any,
        thresholds: Array | None,
        panels: Sequence[Sequence[MurphyModel]],
        data_by_model: Mapping[str, Any],
        rng: np.random.Generator,
    ) -> None:
        self.recipe, self.panels = recipe, panels
        self.names = [model.name for model in panels[0]]
        self.n_grid_thresholds = 0
        self.curves: list[list[Columns]] = []
        self.bands: list[list[Columns]] = []
        if recipe.style == "plane":
            self._check_equal_outcomes()
            return
        for i, models in enumerate(panels):
            cost_curves = [model.cost_curve for model in models]
            exact = exact_thresholds(cost_curves) if thresholds is None else None
            curve_thresholds = exact if thresholds is None else thresholds
            if curve_thresholds is None:
                curve_thresholds = threshold_grid(cost_curves)
                self.n_grid_thresholds = max(self.n_grid_thresholds, len(curve_thresholds))
            self.curves.append([model.curve_rows(curve_thresholds, is_exact=exact is not None) for model in models])
            is_drawn, has_several_rows = i < MAX_PANELS, min(len(model.view) for model in models) > 1
            bands: list[Columns] = []
            if recipe.band is not None and is_drawn and has_several_rows:
                band_thresholds = threshold_grid(cost_curves, BAND_THRESHOLDS) if thresholds is None else thresholds
                bands = bootstrap_bands(
                    models, data_by_model, band_thresholds, recipe.level, recipe.resamples, rng, recipe.paired
                )
            self.bands.append(bands)

    def build(
        self, score_results: Mapping[str, ModelResult], mcb_results: Mapping[str, ModelResult], notes: Sequence[Note]
    ) -> Diagram:
        """Build the diagram.

        `score_results` and `mcb_results` hold the measured score and MCB of each model over all views, by its name, and
        are empty if they are not known. `notes` are those of the measurement.
        """
        recipe, has_single_view = self.recipe, len(self.panels) == 1
        # The noise floor of a score is not a bias to be reported.
        score_results = {name: replace(result, noise_floor=MISSING) for name, result in score_results.items()}
        lens = lens_name([models[0].view for models in self.panels])
        table: list[Columns] = []
        for i, models in enumerate(self.panels):
            if recipe.style == "murphy":
                table += [*self.curves[i], *self.bands[i], *(model.strip_rows() for model in models)]
            for model in models:
                # With several views, the results belong to the rows over all views below.
                score_result = score_results.get(model.name) if has_single_view else None
                mcb_result = mcb_results.get(model.name) if has_single_view else None
                table.append(model.score_row(score_result, mcb_result))
        if not has_single_view and score_results:
            table += [
                self._aggregate_row(lens, model, score_results[model.name], mcb_results.get(model.name))
                for model in self.panels[0]
            ]
        diagram_class = MurphyDiagram if recipe.style == "murphy" else PlaneDiagram
        thresholds = recipe.thresholds
        return diagram_class(
            name=recipe.name,
            lens=lens,
            table=stack_tables(table),
            panels=self._panel_columns(score_results, mcb_results),
            settings={
                **{name: getattr(recipe, name) for name in recipe.setting_names()},
                "thresholds": thresholds if thresholds is None else np.asarray(thresholds).tolist(),
                "parts": self.shows_decomposition,
                "banded": self.shows_bands,
                "models": list(self.names),
            },
            notes=tuple(dict.fromkeys([*notes, *self._collect_notes()])),
        )

    @property
    def shows_decomposition(self) -> bool:
        """Whether the parts of the cost are drawn."""
        return len(self.names) == 1 if self.recipe.parts is None else self.recipe.parts

    @property
    def shows_bands(self) -> bool:
        """Whether bands are drawn."""
        return self.recipe.band == "bootstrap" or (self.recipe.band == "auto" and len(self.names) <= 2)

    def _aggregate_row(
        self, lens: str, model: MurphyModel, score_result: ModelResult, mcb_result: ModelResult | None
    ) -> Columns:
        """The table row of one model over all views: means of its decomposition, and its results."""
        i = self.names.index(model.name)
        decompositions = [models[i].decomposition for models in self.panels]
        decomposition = {
            key: float(np.mean([view_decomposition[key] for view_decomposition in decompositions]))
            for key in model.decomposition
        }
        differences = {key: getattr(score_result, key) for key in ("difference", "difference_low", "difference_high")}
        row = model.table_rows("model", 1, decomposition | differences)
        if mcb_result is not None:
            row |= {"low": np.array([mcb_result.error_low]), "high": np.array([mcb_result.error_high])}
        row["view"][:] = lens
        row["beyond"][:] = score_result.significant_sign
        return row

    def _panel_columns(
        self, score_results: Mapping[str, ModelResult], mcb_results: Mapping[str, ModelResult]
    ) -> Columns:
        """The columns of `panels`: one row per view, with its finding and the limits of the axes that all share."""
        drawn_panels = self.panels[:MAX_PANELS]
        if self.recipe.style == "murphy":
            shown_parts = ["score", *(["unc", "dsc"] if self.shows_decomposition else [])]
            curves = [curve for curves in self.curves[:MAX_PANELS] for curve in curves]
            max_cost = max(float(curve[part].max()) for curve in curves for part in shown_parts)
            if self.shows_bands:
                limits = [float(band["high"].max()) for view in self.bands for band in view]
                max_cost = max([max_cost, *limits])
            max_share = max(float(model.strip_rows()["share"].max()) for models in drawn_panels for model in models)
            axis_limits = {"y_low": 0.0, "y_high": 1.04 * max(max_cost, 0.01), "tallest": max_share}
        else:
            axis_limits = plane_limits(drawn_panels, mcb_results if len(self.panels) == 1 else {})
        rows = [
            {
                "view": models[0].view.name,
                "title": models[0].view.name.removeprefix("class:"),
                "aside": format_score_range(models),
                "finding": self._describe_finding(i, score_results),
                "n": max(model.view.n_rows for model in models),
                **axis_limits,
            }
            for i, models in enumerate(self.panels)
        ]
        if len(rows) > 1:
            comparison_text = describe_comparison(
                self.names, self._ordered_results(score_results), SCORE_NAMES[self.recipe.score]
            )
            mean_text = f"Mean over {len(rows)} views: {comparison_text} "
            largest = f"Largest miscalibration: {rows[0]['title']}"
            rows[0]["finding"] = f"{mean_text}{largest}." if score_results else f"{largest}. {rows[0]['finding']}"
        return rows_to_columns(rows)

    def _ordered_results(self, score_results: Mapping[str, ModelResult]) -> list[ModelResult]:
        """The results in the order of the models; the numbers of a model without a result are NaN."""
        return [score_results.get(name, ModelResult()) for name in self.names]

    def _describe_finding(self, i: int, score_results: Mapping[str, ModelResult]) -> str:
        """The finding of view number i."""
        models = self.panels[i]
        results = [ModelResult(model.decomposition["score"]) for model in models]
        if score_results and len(self.panels) == 1:
            results = self._ordered_results(score_results)
        if self.recipe.style == "plane":
            return describe_plane(models, results)
        fixed_thresholds = self.recipe.thresholds is not None
        return describe_curves(models, self.curves[i], self.bands[i], results, fixed_thresholds=fixed_thresholds)

    def _check_equal_outcomes(self) -> None:
        """Raise TO205 if models of a view differ in UNC, as only different outcomes can."""
        for models in self.panels:
            unc = [model.decomposition["unc"] for model in models]
            if not np.allclose(unc, unc[0], rtol=1e-9, atol=1e-12):
                raise InputError(
                    "TO205",
                    "The plane requires models with the same outcomes.",
                    f"uncertainty {', '.join(f'{name} {u:.4f}' for name, u in zip(self.names, unc, strict=True))}",
                    "Use lens='class:NAME' or 'classwise', whose outcome is the same for all models, or"
                    " style='murphy'.",
                )

    def _collect_notes(self) -> list[Note]:
        """Notes on infinite scores, pointwise bands, different outcomes, and views that are not drawn."""
        notes = [
            note
            for models in self.panels[:MAX_PANELS]
            for model in models
            for note in CorpError(model.score_name).notes(model.view)
        ][:1]
        if self.recipe.style == "murphy":
            sentences = []
            if any(self.bands):
                sentences.append(POINTWISE_NOTE.format(share=format_percent(1 - self.recipe.level)))
            if self.n_grid_thresholds:
                sentences.append(
                    f"Curves are evaluated exactly at {self.n_grid_thresholds:,} thresholds. Jumps between them appear"
                    " as slopes."
                )
            if sentences:
                notes.append(Note("TN264", " ".join(sentences)))
            if any(not _same_outcome_rate(models) for models in self.panels):
                text = (
                    "The models have different outcomes. A curve may be lower only because its outcome is easier to "
                    "predict. With lens='class:NAME' all models have the same outcome."
                )
                notes.append(Note("TN263", text))
        if len(self.panels) > MAX_PANELS:
            text = (
                f"Only the {MAX_PANELS} views with the largest miscalibration of {len(self.panels)} are drawn. "
                "The table contains all of them, but bands only of those drawn."
            )
            notes.append(Note("TN245", text))
        if not all(model.view.is_rows for models in self.panels for model in models):
            notes.append(
                Note("TN244", "The data are a tally: the mean prediction of each fine cell represents its rows.")
            )
        return notes


def _same_outcome_rate(models: Sequence[MurphyModel]) -> bool:
    """Whether the models have the same event rate, as they have if they predict the same outcomes."""
    return bool(
        np.allclose([model.cost_curve.rate for model in models], models[0].cost_curve.rate, rtol=1e-9, atol=1e-12)
    )
