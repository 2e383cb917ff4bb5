"""Estimate from rows or a tally: value, confidence interval, noise floor and debiased value.

Several estimands are estimated from one set of resamples of the rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from trueodds.binning.partition import Partition
from trueodds.binning.uniform import edge_rounding_notes, sample_scores
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.results import Estimate, Interval
from trueodds.core.typing import Array
from trueodds.data.plausibility import training_row_note
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator, ProperScore
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.base import Lens
from trueodds.lenses.effective_sample_size import cluster_count_note, effective_n
from trueodds.lenses.row_sources import sample_rows
from trueodds.resampling.bootstrap import BootstrapResult, bootstrap, bootstrap_cells
from trueodds.resampling.estimand import Estimand, pooled_view
from trueodds.resampling.intervals import squared_error
from trueodds.resampling.intervals.method import (
    CONSTANT_OUTCOMES_TEXT,
    PLAIN_BOOTSTRAP_METHODS,
    RESAMPLING_METHODS,
    UNDEFINED_VALUE_TEXT,
    IntervalSpec,
    estimate_interval,
    needs_requested_row_resamples,
    notes_on_resamples,
    resolve_method,
    uses_resamples,
)
from trueodds.resampling.null_distribution import DEFAULT_REDRAWS, noise_floor_draws, subtract_noise_floor
from trueodds.resampling.tally_estimand import (
    has_constant_outcomes,
    has_score_sums,
    reason_without_cell_interval,
    tally_estimand,
    tally_noise_floor_draws,
    tally_notes,
)
from trueodds.tallies.tally import Tally

# An error below this share of the smallest of B null draws has a probability of at most about 0.1/B under calibration.
IMPLAUSIBLE_SHARE = 0.1
MIN_IMPLAUSIBLE_DRAWS = 199  # number of null draws for which this is rare enough


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


def estimate_all(
    preds: Predictions,
    estimands: Sequence[Estimand],
    interval_spec: IntervalSpec,
    rng: np.random.Generator,
    draw_null: Callable[[Sequence[Estimand]], Sequence[Array | None]],
) -> list[Estimate]:
    """Estimate all estimands from one set of resamples.

    `draw_null` returns the null draws (views, draws) of each of several estimands, or None if they are not needed.
    """
    clustered = preds.cluster is not None
    if interval_spec.interval is None:
        _ = [estimand.values for estimand in estimands]  # an estimator says here which views it does not take
        return [
            build_estimate(
                estimand, None, "", None, interval_spec, None, notes=collect_notes(preds, estimand), clustered=clustered
            )
            for estimand in estimands
        ]
    # A debiased form reports the interval of its plug-in form, see `Estimand.reported_estimand`.
    reported_estimands = [estimand.reported_estimand for estimand in estimands]
    methods = [
        resolve_method(estimand, interval_spec, clustered=clustered, cells=False) for estimand in reported_estimands
    ]
    resampled_by_index = _resample_estimands(preds, reported_estimands, methods, interval_spec, rng)
    null_draws, reported_null_draws = _draw_null_distributions(estimands, reported_estimands, draw_null)
    estimates = []
    for i, estimand in enumerate(estimands):
        resampled = resampled_by_index.get(i)
        interval, no_interval_reason = estimate_interval(
            preds, reported_estimands[i], methods[i], interval_spec, resampled, reported_null_draws[i], rng
        )
        estimates.append(
            build_estimate(
                estimand,
                interval,
                no_interval_reason,
                null_draws[i],
                interval_spec,
                None if resampled is None else resampled.resampled_units,
                notes=collect_notes(preds, estimand),
                clustered=clustered,
            )
        )
    return estimates


def _resample_estimands(
    preds: Predictions,
    estimands: Sequence[Estimand],
    methods: Sequence[str | None],
    interval_spec: IntervalSpec,
    rng: np.random.Generator,
) -> dict[int, BootstrapResult]:
    indices = [
        i
        for i, estimand in enumerate(estimands)
        if uses_resamples(estimand, methods[i]) and not needs_requested_row_resamples(preds, estimand, interval_spec)
    ]
    if not indices:
        return {}
    resampled_estimands = [estimands[i] for i in indices]
    results = bootstrap(preds, resampled_estimands, interval_spec.resamples, rng, interval_spec.resample)
    return dict(zip(indices, results, strict=True))


def _draw_null_distributions(
    estimands: Sequence[Estimand],
    reported_estimands: Sequence[Estimand],
    draw_null: Callable[[Sequence[Estimand]], Sequence[Array | None]],
) -> tuple[list[Array | None], list[Array | None]]:
    """Null draws of each estimand, and of the estimand whose interval it reports."""
    other_indices = [i for i, estimand in enumerate(estimands) if reported_estimands[i] is not estimand]
    all_draws = draw_null([*estimands, *(reported_estimands[i] for i in other_indices)])
    null_draws = list(all_draws[: len(estimands)])
    reported_null_draws = list(null_draws)
    for i, draws in zip(other_indices, all_draws[len(estimands) :], strict=True):
        reported_null_draws[i] = draws
    return null_draws, reported_null_draws


def estimate_from_tally(
    tally: Tally,
    estimator: Estimator,
    lens: Lens,
    aggregate: str,
    interval_spec: IntervalSpec,
    redraws: int,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate an error from a tally, with interval and noise floor if its cells are sufficient.

    Aggregates over classes have no interval.
    """
    if isinstance(estimator, ProperScore) and has_score_sums(tally, lens):
        return estimate_score_from_tally(tally, estimator, lens, interval_spec)
    estimand = tally_estimand(tally, estimator, lens, aggregate)
    resampling_rng = copy.deepcopy(rng)  # so that the resamples of all estimators have the same key
    null_draws: list[Array | None] = [None]
    if interval_spec.interval is not None:
        null_draws = tally_noise_floor_draws(tally, estimand.drawn_estimands, redraws, rng)
    notes = tally_notes(tally, estimand)
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
        notes.append(Note("TN402", text))
    elif interval_spec.interval is not None and not (no_interval_reason := reason_without_cell_interval(estimand)):
        if method in RESAMPLING_METHODS:
            resampled = bootstrap_cells(reported, interval_spec.resamples, resampling_rng)
        interval, no_interval_reason = estimate_interval(
            None, reported, method, interval_spec, resampled, null_draws[-1], resampling_rng
        )
    units = resampled.resampled_units if resampled else None
    return build_estimate(estimand, interval, no_interval_reason, null_draws[0], interval_spec, units, notes=notes)


def value_from_tally(tally: Tally, estimator: Estimator, lens: Lens, aggregate: str) -> float:
    if isinstance(estimator, ProperScore) and has_score_sums(tally, lens):
        return estimate_score_from_tally(tally, estimator, lens, IntervalSpec(interval=None)).value
    estimand = tally_estimand(tally, estimator, lens, aggregate)
    return float(estimand.combine_views(estimand.values))


def estimate_score_from_tally(
    tally: Tally, estimator: ProperScore, lens: Lens, interval_spec: IntervalSpec
) -> Estimate:
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
        if has_constant_outcomes(tally):
            notes.append(Note("TN201", f"No interval: {CONSTANT_OUTCOMES_TEXT}."))
        else:
            interval = Interval.from_standard_error(value, sums["standard_error"], interval_spec.level)
    settings = {"interval": "normal", "level": interval_spec.level} if interval else {}
    noise_floor = None
    if interval_spec.interval is not None and not estimator.has_expectation_of_cells:
        notes.append(Note("TN406", "A tally does not store the entropy, so log loss has no noise floor."))
    elif interval_spec.interval is not None and tally.kind != "confidence":
        views = tally.views("positive" if tally.kind == "classes" and tally.k == 2 else "classwise")
        variances = [estimator.expected_if_calibrated(view) for view in views]
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


def build_estimate(
    estimand: Estimand,
    interval: Interval | None,
    no_interval_reason: str,
    null_draws: Array | None,
    interval_spec: IntervalSpec,
    resampled_units: str | None,
    *,
    notes: list[Note],
    clustered: bool = False,
) -> Estimate:
    estimator, has_no_interval = estimand.estimator, interval_spec.interval is None
    value = float(estimand.combine_views(estimand.values))
    if interval is not None and np.isnan(value):  # a debiased value can be NaN while the plug-in has an interval
        interval, no_interval_reason = None, UNDEFINED_VALUE_TEXT
    settings = estimator.settings_used(estimand.views[0])
    if len(estimand.views) == 1:
        parts = estimator.parts(estimand.views[0])
    else:
        parts = evaluate_parts(estimand)
        # The numbers of bins differ between views.
        settings = {key: setting for key, setting in settings.items() if not key.endswith(("_bins", "_bin"))}
        settings["aggregate"] = estimand.aggregate
    noise_floor = None if has_no_interval else _estimate_noise_floor(estimand, null_draws)
    if interval:
        settings |= {"interval": interval.method, "level": interval_spec.level}
        if estimand.aggregate != "sum":
            interval = clip_interval(interval, estimator.max_value, effective_n(estimand.views[0]))
        if interval_spec.interval not in PLAIN_BOOTSTRAP_METHODS:
            interval = extend_interval(interval, value)
    elif no_interval_reason and not has_no_interval:
        notes = [*notes, Note("TN201", f"No interval: {no_interval_reason}.")]
    if resampled_units:
        settings |= {"resamples": interval_spec.resamples, "resample": resampled_units}
        notes = [*notes, *notes_on_resamples(interval_spec)]
    debiased = None
    if noise_floor is not None or estimand.is_root_mean_square:
        debiased = _debias(estimand, value, noise_floor, clustered=clustered)
    if null_draws is not None:
        settings["redraws"] = null_draws.shape[-1]
        notes = [*notes, *_notes_on_small_error(estimator, value, estimand.combine_views(null_draws))]
    return Estimate(
        estimator=estimator.name,
        lens=estimand.lens.name,
        value=value,
        n=estimand.n_rows,
        interval=interval,
        noise_floor=noise_floor,
        debiased=debiased,
        parts=parts,
        settings=settings,
        notes=tuple(notes),
    )


def _notes_on_small_error(estimator: Estimator, value: float, null_draws: Array) -> list[Note]:
    """Return a note on an error that is far below all errors of a calibrated model."""
    if not estimator.vanishes_if_calibrated or null_draws.size < MIN_IMPLAUSIBLE_DRAWS:
        return []
    smallest = float(null_draws.min())
    if not 0 <= value < IMPLAUSIBLE_SHARE * smallest:
        return []
    fact = (
        f"The error, {format_number(value)}, is far below each of {null_draws.size:,} errors drawn for a calibrated"
        f" model, of which the smallest is {format_number(smallest)}"
    )
    return [training_row_note(fact)]


def evaluate_parts(estimand: Estimand) -> dict[str, float]:
    """Evaluate the parts of an estimate: of a single view, or the values of several views and the terms of a score."""
    if len(estimand.views) == 1:
        return estimand.estimator.parts(estimand.views[0])
    parts = {view.name: float(value) for view, value in zip(estimand.views, estimand.values, strict=True)}
    # With "max" the largest terms may belong to different views, so that they do not add up to the score.
    if isinstance(estimand.estimator, ProperScore) and estimand.aggregate != "max":
        view_terms = [estimand.estimator.parts(view) for view in estimand.views]
        parts |= {
            term: float(estimand.combine_views(np.array([terms[term] for terms in view_terms])))
            for term in view_terms[0]
        }
    return parts


def _estimate_noise_floor(estimand: Estimand, null_draws: Array | None) -> float | None:
    """Mean of the null draws, or the known expectation under calibration."""
    if null_draws is not None:
        return float(estimand.combine_views(null_draws).mean())
    expectations = [estimand.estimator.expected_if_calibrated(view) for view in estimand.views]
    if any(expectation is None for expectation in expectations):
        return None
    return float(estimand.combine_views(np.array(expectations)))


def _debias(estimand: Estimand, value: float, noise_floor: float | None, *, clustered: bool) -> float | None:
    """Return the debiased value; None if the error is debiased already, or far above its noise floor.

    For a root mean square over bins it is the signed root of the unbiased squared error T_mn
    (`debiased_squared_error`), and for other errors that of `subtract_noise_floor`.
    """
    if estimand.is_root_mean_square and not clustered:  # pairs of rows within a cluster are not independent
        assert estimand.cell_statistics is not None
        view, cell_statistic = estimand.views[0], estimand.cell_statistics[0]
        debiased_square, _ = squared_error.debiased_squared_error(pooled_view(view, cell_statistic))
        return float(np.sign(debiased_square) * np.sqrt(abs(debiased_square)))
    # Means have no bias, and debiased estimators need no further correction.
    is_debiased = estimand.estimator.interval in ("bca", "debiased", "wald")
    if is_debiased or not estimand.estimator.vanishes_if_calibrated or noise_floor is None or not 0 <= value:
        return None
    reduced = float(subtract_noise_floor(value, noise_floor, estimand.estimator.norm_power))
    return None if np.isnan(reduced) else reduced


def collect_notes(preds: Predictions, estimand: Estimand) -> list[Note]:
    views, estimator = estimand.views, estimand.estimator
    estimator_notes = estimator.notes(views[0]) if len(views) == 1 else estimator.joint_notes(views)
    cluster_note = None if preds.cluster is None else cluster_count_note(preds.w, preds.cluster)
    cluster_notes = [] if cluster_note is None else [cluster_note]
    edge_notes = notes_on_edges(preds, estimand)
    return [*preds.notes, *estimand.lens.notes(preds), *estimator_notes, *edge_notes, *cluster_notes]


def notes_on_edges(preds: Predictions, estimand: Estimand) -> list[Note]:
    """Return a note if many scores are edges of the bins of an estimator but for their rounding."""
    view, estimator = estimand.views[0], estimand.estimator
    own_partition = getattr(estimator, "partition", None)
    partition = estimator.partition_for(view) if isinstance(estimator, BinnedError) else own_partition
    if view.joint or not isinstance(partition, Partition) or not partition.ignores_scores:
        return []
    if len(estimand.views) > 1:
        P = preds.P
        return edge_rounding_notes(P[sample_rows(*P.shape)].ravel(), lambda: P, partition.fit(view))
    return edge_rounding_notes(sample_scores(view), lambda: view.partition_values, partition.fit(view))


def clip_interval(interval: Interval, upper_bound: float, n: float) -> Interval:
    """Clip an interval at the maximum value; if only the maximum remains, the lower limit is Wilson's.

    >>> interval = clip_interval(Interval(1.0, 1.2, 0.95, "normal"), 1.0, 30)
    >>> round(interval.low, 4), interval.high
    (0.8865, 1.0)
    """
    if interval.low > upper_bound:
        return interval
    z = float(ndtri((1 + interval.level) / 2))
    low = upper_bound * n / (n + z**2) if interval.low == upper_bound < interval.high else interval.low
    return replace(interval, low=low, high=min(interval.high, upper_bound))


def extend_interval(interval: Interval, value: float) -> Interval:
    """Extend the interval to contain the value, which can be outside for a debiased or biased estimate."""
    return replace(interval, low=min(interval.low, value), high=max(interval.high, value))
