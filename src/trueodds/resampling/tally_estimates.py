"""Estimates from a tally instead of rows, with interval, noise floor and null draws from its cells, or from either."""

from __future__ import annotations

import copy

import numpy as np

from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError, Note
from trueodds.core.results import Estimate
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator, Mean, ProperScore
from trueodds.estimators.binned import BinnedError
from trueodds.kernels.bins import Bins
from trueodds.kernels.fine_grid import CELL_EDGES
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Classwise
from trueodds.resampling.cell_bootstrap import bootstrap_cells
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import build_estimate, estimate_all, evaluate_parts
from trueodds.resampling.intervals.closed_form import normal_interval
from trueodds.resampling.intervals.method import (
    CONSTANT_OUTCOMES_TEXT,
    RESAMPLING_METHODS,
    IntervalSpec,
    estimate_interval,
    resolve_method,
)
from trueodds.resampling.null_distribution import DEFAULT_REDRAWS, noise_floor_draws
from trueodds.resampling.null_draws_by_bin import draw_bin_statistics
from trueodds.tallies.tally import Tally

CELL_DRAWS_TEXT = "Outcomes were drawn for cells of the tally, not for rows; the family-wise p-value is that of Holm."


def estimate_from_tally(
    tally: Tally,
    estimator: Estimator,
    lens: Lens,
    aggregate: str,
    interval_spec: IntervalSpec,
    redraws: int,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate an error from a tally, with interval and noise floor if its cells are sufficient."""
    if isinstance(estimator, ProperScore) and has_score_sums(tally, lens):
        return estimate_score_from_tally(tally, estimator, lens, interval_spec)
    estimand = tally_estimand(tally, estimator, lens, aggregate)
    null_draws, reported_null_draws = None, None
    resampling_rng = copy.deepcopy(rng)  # so that the resamples of all estimators have the same key
    if interval_spec.interval is not None and not isinstance(estimator, ProperScore):
        null_draws, _ = tally_null_draws(tally, estimand, redraws, rng)
        if estimand.reported_estimand is not estimand:
            reported_null_draws, _ = tally_null_draws(tally, estimand.reported_estimand, redraws, rng)
    notes = tally_notes(tally, estimand)
    return estimate_from_cells(estimand, interval_spec, resampling_rng, null_draws, notes, reported_null_draws)


def value_from_tally(tally: Tally, estimator: Estimator, lens: Lens, aggregate: str) -> float:
    if isinstance(estimator, ProperScore) and has_score_sums(tally, lens):
        return estimate_score_from_tally(tally, estimator, lens, IntervalSpec(interval=None)).value
    estimand = tally_estimand(tally, estimator, lens, aggregate)
    return float(estimand.combine_views(estimand.values))


def tally_estimand(tally: Tally, estimator: Estimator, lens: Lens, aggregate: str = "mean") -> Estimand:
    """Return the estimand on the cells of a tally; raise InputError if it requires rows or left-closed bins."""
    if estimator.needs_rows:
        raise InputError(
            "TO403",
            f"{estimator.name} through {lens} requires the rows.",
            "a tally",
            "Use its default lens, or the rows: ⟨mode='exact'⟩.",
        )
    if getattr(getattr(estimator, "partition", None), "closed", "right") == "left":
        raise InputError(
            "TO406", "The cells of a tally are right-closed.", "⟨closed='left'⟩", "Omit it, or use ⟨mode='exact'⟩."
        )
    return Estimand(estimator, lens, tally.views(lens), aggregate)


def tally_notes(tally: Tally, estimand: Estimand) -> list[Note]:
    """Return the notes of the tally, on its resolution, and on bins that do not match cell edges."""
    notes = [*tally.notes(estimand.lens), Note("TN405", f"Computed from a {tally.resolution}.")]
    partition = getattr(estimand.estimator, "partition", None)
    if partition is not None and not estimand.views[0].joint:
        cells = partition.fit(estimand.views[0])
        if isinstance(cells, Bins) and not np.isin(cells.edges, CELL_EDGES).all():
            notes.append(Note("TN404", "Some bin edges are not cell edges; the nearest cell edges were used."))
    return [*notes, *(estimand.estimator.notes(estimand.views[0]) if len(estimand.views) == 1 else [])]


def has_score_sums(tally: Tally, lens: Lens) -> bool:
    """Whether the sums of proper scores in the tally apply to this lens: they are those of the complete prediction."""
    lens_names = {"classes": ["canonical"], "confidence": ["confidence"], "multilabel": ["classwise"]}[tally.kind]
    if tally.kind == "classes" and tally.k == 2:
        lens_names = ["canonical", "positive"]
    return lens.name in lens_names


def _has_constant_outcomes(tally: Tally) -> bool:
    """Return whether all rows have the same outcome, so that the losses of the others are unknown."""
    name = "confidence" if tally.kind == "confidence" else "classwise"
    return all(np.ptp(view.y[view.w > 0]) == 0 for view in tally.views(name))


def estimate_score_from_tally(tally: Tally, estimator: Estimator, lens: Lens, interval_spec: IntervalSpec) -> Estimate:
    """Estimate a proper score from the sums of the score in the tally, with the normal interval of a mean.

    The noise floor of the Brier score is the mean of p(1 − p) over the rows, summed over the classes or averaged over
    independent labels. Of two classes, only the second counts. The parts of a decomposed score are those of its bins.
    """
    if getattr(estimator, "min_prob", 0.0):
        raise InputError(
            "TO403",
            "⟨min_prob⟩ requires the rows; the tally stores the unclipped score.",
            "min_prob",
            "Use ⟨mode='exact'⟩.",
        )
    if interval_spec.interval not in ("auto", None):
        raise InputError(
            "TO205",
            f"The {interval_spec.interval} interval of a score requires the rows.",
            "a tally",
            "Use ⟨interval='auto'⟩, or ⟨mode='exact'⟩.",
        )
    sums = tally.score(estimator.name)
    value = sums["mean"]
    notes = [*tally.notes(lens), Note("TN405", f"Computed from a {tally.resolution}.")]
    interval = None
    if interval_spec.interval is not None and np.isfinite(value):
        if _has_constant_outcomes(tally):
            notes.append(Note("TN201", f"No interval: {CONSTANT_OUTCOMES_TEXT}."))
        else:
            interval = normal_interval(value, sums["standard_error"], interval_spec.level)
    settings = {"interval": "normal", "level": interval_spec.level} if interval else {}
    noise_floor = None
    if estimator.name == "log_loss" and interval_spec.interval is not None:
        notes.append(Note("TN406", "A tally does not store the entropy, so log loss has no noise floor."))
    if estimator.name == "brier" and interval_spec.interval is not None and tally.kind != "confidence":
        views = tally.views("positive" if tally.kind == "classes" and tally.k == 2 else "classwise")
        variances = [float((view.w * view.p - view.sums("wpp")).sum() / view.total) for view in views]
        noise_floor = float(np.mean(variances) if tally.kind == "multilabel" else np.sum(variances))
    parts = {}
    if getattr(estimator, "decomposition", None):
        estimand = tally_estimand(tally, estimator, lens)
        parts = {} if interval_spec.interval is None else evaluate_parts(estimand)
        settings = estimator.settings_used(estimand.views[0]) | settings
        notes = tally_notes(tally, estimand)
    return Estimate(
        estimator=estimator.name,
        lens=str(lens),
        value=value,
        n=tally.n,
        interval=interval,
        noise_floor=noise_floor,
        parts=parts,
        settings=settings,
        notes=tuple(notes),
    )


def tally_null_draws(tally: Tally, estimand: Estimand, redraws: int, rng: np.random.Generator) -> tuple[Array, bool]:
    """Return the null draws (views, draws), and whether the views are drawn jointly.

    Classes are drawn jointly if the tally stores the null covariance of the bins, and otherwise independently.
    """
    has_votes = tally.counts.voted > 0
    is_classwise = isinstance(estimand.lens, Classwise)
    has_covariance = is_classwise and not has_votes and _has_bins_of_covariance(tally, estimand)
    covariance = tally.null_covariance if has_covariance else None
    is_joint = covariance is not None or len(estimand.views) == 1
    return draw_bin_statistics(estimand, redraws, rng, covariance, flips_signs=has_votes), is_joint


def _has_bins_of_covariance(tally: Tally, estimand: Estimand) -> bool:
    """Whether the bins of the error are those whose null covariance is stored in the tally."""
    if not isinstance(estimand.estimator, BinnedError):
        return False
    partition = estimand.estimator.partition or Uniform()
    return isinstance(partition, Uniform) and partition.bins == tally.bins and partition.range is None


def reason_without_cell_interval(estimand: Estimand) -> str:
    """Return the reason why the cells of a tally do not provide an interval; empty if they do."""
    if len(estimand.views) > 1:
        return "a tally does not store the joint distribution of several views"
    if estimand.views[0].joint:
        return "a tally does not store the covariance of the residuals of a probability vector"
    if isinstance(estimand.estimator, Mean):
        return "a tally stores the variance of the complete score only, not for this lens"
    return ""


def estimate_from_cells(
    estimand: Estimand,
    interval_spec: IntervalSpec,
    rng: np.random.Generator,
    null_draws: Array | None,
    notes: list[Note],
    reported_null_draws: Array | None = None,
) -> Estimate:
    """Estimate from the cells of a tally; aggregates over classes have no interval."""
    if interval_spec.resample == "rows":
        raise InputError(
            "TO205", "⟨resample='rows'⟩ requires the rows.", "a tally", "Omit resample, or use ⟨mode='exact'⟩."
        )
    reported = estimand.reported_estimand
    method = resolve_method(reported, interval_spec, clustered=False, cells=True)
    resampled, interval, no_interval_reason = None, None, ""
    if interval_spec.interval is not None and len(estimand.views) > 1:
        text = (
            "An aggregate over classes from a tally has no interval: the joint distribution of the classes is not"
            " stored."
        )
        notes = [*notes, Note("TN402", text)]
    elif interval_spec.interval is not None:
        no_interval_reason = reason_without_cell_interval(estimand)
        if not no_interval_reason:
            if method in RESAMPLING_METHODS:
                resampled = bootstrap_cells(reported, interval_spec.resamples, rng)
            method_null_draws = null_draws if reported is estimand else reported_null_draws
            interval, no_interval_reason = estimate_interval(
                None, reported, method, interval_spec, resampled, method_null_draws, rng
            )
    return build_estimate(
        estimand,
        interval,
        no_interval_reason,
        null_draws,
        interval_spec,
        resampled.resampled_units if resampled else None,
        notes=notes,
    )


def estimate_error(
    data: Predictions | Tally,
    error: Estimator,
    lens: Lens,
    aggregate: str,
    interval_spec: IntervalSpec,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate an error through a lens; `aggregate` is how the values of several views are combined."""
    if isinstance(data, Tally):
        return estimate_from_tally(data, error, lens, aggregate, interval_spec, DEFAULT_REDRAWS, rng)
    estimands = [Estimand.from_predictions(error, lens, data, aggregate)]
    (estimate,) = estimate_all(
        data, estimands, interval_spec, rng, lambda simulated: noise_floor_draws(data, simulated, rng)
    )
    return estimate
