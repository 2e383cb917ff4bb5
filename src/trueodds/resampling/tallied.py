"""The same answers from a tally: cells instead of rows, draws that cost cells, and what cannot be had so."""

from __future__ import annotations

import numpy as np

from trueodds.binning.partition import Bins, Uniform
from trueodds.core.errors import InputError, Note
from trueodds.core.results import Estimate
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator, ProperScore
from trueodds.estimators.binned import BinnedError
from trueodds.kernels.cells import EDGES
from trueodds.lenses.lens import Classwise, Lens
from trueodds.resampling import intervals
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_from_cells, parts_of
from trueodds.resampling.interval_spec import IntervalSpec
from trueodds.resampling.redraw_cells import cell_draws
from trueodds.tallies.tally import Tally


def estimate(
    tally: Tally,
    estimator: Estimator,
    lens: Lens,
    aggregate: str,
    interval_spec: IntervalSpec,
    redraws: int,
    rng: np.random.Generator,
) -> Estimate:
    """One estimator through one lens of a tally, with interval and noise floor where cells suffice for them."""
    if isinstance(estimator, ProperScore) and tally_scores(tally, lens):
        return score_estimate(tally, estimator, lens, interval_spec)
    estimand = estimand_of(tally, estimator, lens, aggregate)
    null = (
        None
        if interval_spec.interval is None or isinstance(estimator, ProperScore)
        else null_draws(tally, estimand, redraws, rng)[0]
    )
    reported_null = None
    if null is not None and estimand.reported is not estimand:
        reported_null = null_draws(tally, estimand.reported, redraws, rng)[0]
    return estimate_from_cells(estimand, interval_spec, rng, null, notes_of(tally, estimand), reported_null)


def estimand_of(tally: Tally, estimator: Estimator, lens: Lens, aggregate: str = "mean") -> Estimand:
    """The question on the tally's cells; refused where it needs rows or an edge rule that cells lack."""
    if estimator.needs_rows:
        raise InputError(
            "TO403",
            f"{estimator.name} through {lens} needs the rows.",
            "a tally",
            "Use its default lens, or the rows: mode='exact'.",
        )
    if getattr(getattr(estimator, "partition", None), "closed", "right") == "left":
        raise InputError(
            "TO406", "The cells of a tally are right-closed.", "closed='left'", "Leave it out, or use mode='exact'."
        )
    return Estimand(estimator, lens, tally.views(lens), aggregate)


def notes_of(tally: Tally, estimand: Estimand) -> list[Note]:
    """The tally's own notes, its resolution, and a word where bins do not fall on cell edges."""
    notes = [*tally.notes(estimand.lens), Note("TN405", f"Made from a {tally.resolution}.")]
    partition = getattr(estimand.estimator, "partition", None)
    if partition is not None and not estimand.views[0].joint:
        cells = partition.freeze(estimand.views[0])
        if isinstance(cells, Bins) and not np.isin(cells.edges, EDGES).all():
            notes.append(Note("TN404", "Some bin edges are no cell edges; the nearest cell edges were used."))
    return [*notes, *(estimand.estimator.notes(estimand.views[0]) if len(estimand.views) == 1 else [])]


def tally_scores(tally: Tally, lens: Lens) -> bool:
    """Whether the tally's score sums are those of this lens: the whole prediction."""
    lens_names = {"classes": ["canonical"], "confidence": ["confidence"], "multilabel": ["classwise"]}[tally.kind]
    return lens.name in (["canonical", "positive"] if tally.kind == "classes" and tally.k == 2 else lens_names)


def score_estimate(tally: Tally, estimator: Estimator, lens: Lens, interval_spec: IntervalSpec) -> Estimate:
    """A proper score from its sums, with the normal interval of a mean."""
    if getattr(estimator, "min_prob", 0.0):
        raise InputError(
            "TO403", "A floor needs the rows; the tally keeps the unfloored score.", "min_prob", "Use mode='exact'."
        )
    if interval_spec.interval not in ("auto", None):
        raise InputError(
            "TO205",
            f"The {interval_spec.interval} interval of a score needs the rows.",
            "a tally",
            "Use interval='auto', or mode='exact'.",
        )
    sums = tally.score(estimator.name)
    value = sums["mean"]
    notes = [*tally.notes(lens), Note("TN405", f"Made from a {tally.resolution}.")]
    interval = None
    if interval_spec.interval is not None and np.isfinite(value):
        interval = intervals.normal(value, sums["standard_error"], interval_spec.level)
    settings = {"interval": "normal", "level": interval_spec.level} if interval else {}
    noise_floor = None
    if estimator.name == "log_loss" and interval_spec.interval is not None:
        notes.append(Note("TN406", "A tally keeps no entropy, so log loss has no noise floor here."))
    if estimator.name == "brier" and interval_spec.interval is not None and tally.kind != "confidence":
        views = tally.views("positive" if tally.kind == "classes" and tally.k == 2 else "classwise")
        variances = [float((view.w * view.p - view.sums("wpp")).sum() / view.total) for view in views]
        noise_floor = float(np.mean(variances) if tally.kind == "multilabel" else np.sum(variances))
    parts = {}
    if getattr(estimator, "decomposition", None):
        estimand = estimand_of(tally, estimator, lens)
        parts = {} if interval_spec.interval is None else parts_of(estimand)
        settings = estimator.settings_used(estimand.views[0]) | settings
        notes = notes_of(tally, estimand)
    return Estimate(
        estimator.name,
        str(lens),
        value,
        tally.n,
        interval,
        noise_floor,
        parts=parts,
        settings=settings,
        notes=tuple(notes),
    )


def null_draws(tally: Tally, estimands: Estimand, redraws: int, rng: np.random.Generator) -> tuple[Array, bool]:
    """The null draws of each view, and whether the views are drawn jointly."""
    voted = tally.counts.voted > 0
    correlated = isinstance(estimands.lens, Classwise) and _on_report_cells(tally, estimands) and not voted
    covariance = tally.null_covariance if correlated else None
    joint = covariance is not None or len(estimands.views) == 1
    return cell_draws(estimands, redraws, rng, covariance, voted=voted), joint


def _on_report_cells(tally: Tally, estimand: Estimand) -> bool:
    """Whether the error's bins are the ones whose null covariance the tally keeps."""
    if not isinstance(estimand.estimator, BinnedError):
        return False
    partition = estimand.estimator.partition or Uniform()
    return isinstance(partition, Uniform) and partition.bins == tally.bins and partition.range is None
