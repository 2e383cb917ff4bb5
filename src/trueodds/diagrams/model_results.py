"""Match the views of several models, and measure their errors and the differences to the error of the first model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Estimate
from trueodds.data.predictions import Predictions
from trueodds.diagrams.model_styles import MAX_MODELS, sentence_name
from trueodds.estimators.base import Estimator
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.resampling.comparison.compared_model import ComparedModel
from trueodds.resampling.comparison.differences import ErrorDifference, SimultaneousDifferences
from trueodds.resampling.comparison.paired_rows import same_rows
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate_error import estimate_error
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally, lens_views

Models = Mapping[str, Predictions | Tally]  # the predictions of each model by its name

MISSING = float("nan")  # value of a number that is not available


def match_views(models: Models, lens: Lens, diagram_name: str) -> dict[str, tuple[View, ...]]:
    """Return the views of each model under the lens: the same binary views in the same order for all models.

    Raises InputError TO705 for too many models, and TO205 for models with different views and for joint views.
    """
    if len(models) > MAX_MODELS:
        raise InputError(
            "TO705",
            f"A diagram can show at most {MAX_MODELS} models.",
            f"{len(models)} models",
            "Draw fewer models; to.compare ranks any number of them.",
        )
    views_by_name = {name: lens_views(data, lens) for name, data in models.items()}
    first_name = next(iter(views_by_name))
    view_names = [view.name for view in views_by_name[first_name]]
    for name, views in views_by_name.items():
        by_view_name = {view.name: view for view in views}
        if set(by_view_name) != set(view_names):
            raise InputError(
                "TO205",
                "All models must have the same views.",
                f"{first_name}: {', '.join(view_names[:5])}; {name}: {', '.join(list(by_view_name)[:5])}",
                "Pass models with the same classes, or a lens that applies to all of them, such as 'confidence'.",
            )
        joint_view = next((view for view in views if view.joint), None)
        if joint_view is not None:
            raise InputError(
                "TO205",
                f"The diagram {diagram_name} requires one probability per row; this lens has a vector per row.",
                f"lens={joint_view.name!r}",
                "Use lens='confidence', 'classwise' or 'class:NAME'.",
            )
        views_by_name[name] = tuple(by_view_name[view_name] for view_name in view_names)
    return views_by_name


@dataclass(frozen=True)
class ModelResult:
    """Error of a model with interval and noise floor, and its difference to the error of the first model.

    A negative difference means that the model is better than the first. Numbers that are not available are NaN.
    """

    error: float = MISSING
    error_low: float = MISSING
    error_high: float = MISSING
    noise_floor: float = MISSING
    difference: float = MISSING
    difference_low: float = MISSING
    difference_high: float = MISSING

    @property
    def significant_sign(self) -> int:
        """Significant sign of the difference: −1 if the model is better than the first, 1 if worse, else 0."""
        return int(self.difference_low > 0) - int(self.difference_high < 0)


def measure_models(
    models: Models, estimator: Estimator, lens: Lens, interval_spec: IntervalSpec, paired: bool | None, seed: int
) -> tuple[list[ModelResult], list[Note]]:
    """Measure the error of each model and its difference to the first one, with simultaneous intervals.

    Models with the same rows are resampled together. Models with different rows are compared as independent samples.
    Tallies do not store rows and are not compared. Notes report these cases.

    Parameters
    ----------
    models : mapping of str to Predictions or Tally
        The models by name.
    estimator : Estimator
        The error.
    lens : Lens
        The lens under which it is estimated.
    interval_spec : IntervalSpec
        Level and resamples of the intervals; those of the differences hold simultaneously.
    paired : bool or None
        Whether the models predict the same rows; None decides by their outcomes.
    seed : int
        Seed of the resamples.

    Returns
    -------
    list of ModelResult
        One result per model.
    list of Note
        How models were compared.
    """
    notes: list[Note] = []
    compared: list[ComparedModel] = []  # the models whose rows are known
    estimates: list[Estimate] = []
    for number, (name, data) in enumerate(models.items()):
        if not isinstance(data, Predictions):
            rng = np.random.default_rng([seed, number])
            estimates.append(estimate_error(data, estimator, lens, lens.aggregate, interval_spec, rng))
            continue
        # Models with equal seeds are evaluated on the same resamples of rows.
        seeds = [seed] if number == 0 else [seed, number]
        if compared:
            first = compared[0]
            has_same_rows, reason = same_rows(first.preds, data, paired)
            seeds = list(first.key) if has_same_rows else seeds
            if reason and not has_same_rows:
                text = (
                    f"{sentence_name(first.name)} and {sentence_name(name)} are compared as independent samples: "
                    f"{reason}. If they contain the same rows, put them in the same order and pass paired=True."
                )
                notes.append(Note("TN263", text))
        estimand = Estimand.from_predictions(estimator, lens, data, lens.aggregate)
        compared.append(ComparedModel(name, data, estimand, interval_spec, seeds))
        estimates.append(compared[-1].estimate)
    results = [_result_without_difference(estimate) for estimate in estimates]
    if len(compared) < len(models):
        if len(models) > 1:
            text = (
                "Differences between models are not available for tallies, which do not store the covariance between "
                "models."
            )
            notes.append(Note("TN263", text))
        return results, notes
    differences = [ErrorDifference(model, compared[0]) for model in compared[1:]]
    level = SimultaneousDifferences(differences).level(interval_spec.level) if differences else interval_spec.level
    results[1:] = [
        _result_with_difference(result, difference, level)
        for result, difference in zip(results[1:], differences, strict=True)
    ]
    return results, notes


def _result_without_difference(estimate: Estimate) -> ModelResult:
    """The error of one model, with its interval and noise floor."""
    interval, noise_floor = estimate.interval, estimate.noise_floor
    low, high = (interval.low, interval.high) if interval else (MISSING, MISSING)
    return ModelResult(estimate.value, low, high, MISSING if noise_floor is None else noise_floor)


def _result_with_difference(result: ModelResult, difference: ErrorDifference, level: float) -> ModelResult:
    """Add the difference from the first model and its interval to a result."""
    interval = difference.interval(level) if math.isfinite(difference.value) else None
    low, high = (interval.low, interval.high) if interval else (MISSING, MISSING)
    return replace(result, difference=difference.value, difference_low=low, difference_high=high)
