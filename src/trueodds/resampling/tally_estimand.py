"""What is estimated from the cells of a tally instead of rows, its notes and null draws, and what cells do not say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator, Mean, ProperScore
from trueodds.estimators.binned import BinnedError
from trueodds.kernels.bins import Bins
from trueodds.kernels.fine_grid import CELL_EDGES
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Classwise
from trueodds.resampling.cell_draws import CellRedraw
from trueodds.resampling.draws import evaluate
from trueodds.resampling.estimand import Estimand, refuse_average
from trueodds.tallies.tally import Tally

CELL_DRAWS_TEXT = "Outcomes were drawn for cells of the tally, not for rows; the family-wise p-value is Holm's."


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
    views = tally.views(lens)
    if len(views) > 1:
        refuse_average(estimator, lens)
    return Estimand(estimator, lens, views, aggregate)


def tally_notes(tally: Tally, estimand: Estimand) -> list[Note]:
    """Return the notes of the tally, on its resolution, and on bins that do not match cell edges."""
    notes = [*tally.notes(estimand.lens), Note("TN405", f"Computed from a {tally.resolution}.")]
    partition = getattr(estimand.estimator, "partition", None)
    if partition is not None and not estimand.views[0].joint:
        cells = partition.fit(estimand.views[0])
        if isinstance(cells, Bins) and not np.isin(cells.edges, CELL_EDGES).all():
            notes.append(Note("TN404", "Some bin edges are not cell edges; the nearest cell edges were used."))
    return [*notes, *(estimand.estimator.notes(estimand.views[0]) if len(estimand.views) == 1 else [])]


def tally_noise_floor_draws(
    tally: Tally, estimands: Sequence[Estimand], redraws: int, rng: np.random.Generator
) -> list[Array | None]:
    """Return the null draws of estimands of one estimator; None if their expectation is known without draws."""
    estimator = estimands[0].estimator
    if isinstance(estimator, ProperScore) or estimator.has_fixed_expectation:
        return [None] * len(estimands)
    return [tally_null_draws(tally, estimand, redraws, rng)[0] for estimand in estimands]


def tally_null_draws(tally: Tally, estimand: Estimand, redraws: int, rng: np.random.Generator) -> tuple[Array, bool]:
    """Return the null draws (views, draws), and whether the views are drawn jointly.

    Classes are drawn jointly if the tally stores the null covariance of the bins, and otherwise independently.
    """
    has_votes = tally.counts.voted > 0
    is_classwise = isinstance(estimand.lens, Classwise)
    has_covariance = is_classwise and not has_votes and _has_bins_of_covariance(tally, estimand)
    covariance = tally.null_covariance if has_covariance else None
    is_joint = covariance is not None or len(estimand.views) == 1
    (draws,) = evaluate([estimand], CellRedraw(redraws, rng, covariance, flips_signs=has_votes))
    return draws, is_joint


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


def has_score_sums(tally: Tally, lens: Lens) -> bool:
    """Whether the sums of proper scores in the tally apply to this lens: they are those of the complete prediction."""
    lens_names = {"classes": ["canonical"], "confidence": ["confidence"], "multilabel": ["classwise"]}[tally.kind]
    if tally.kind == "classes" and tally.k == 2:
        lens_names = ["canonical", "positive"]
    return lens.name in lens_names


def has_constant_outcomes(tally: Tally) -> bool:
    """Return whether all rows have the same outcome, so that the losses of the others are unknown."""
    name = "confidence" if tally.kind == "confidence" else "classwise"
    return all(np.ptp(view.y[view.w > 0]) == 0 for view in tally.views(name))
