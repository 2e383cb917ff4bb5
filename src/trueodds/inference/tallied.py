"""The same answers from a tally: cells instead of rows, draws that cost cells, and what cannot be had so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError, Note
from trueodds.core.kernels.cells import EDGES
from trueodds.core.results import Estimate
from trueodds.estimators.base import Estimator, ProperScore
from trueodds.estimators.binned import BinnedError
from trueodds.inference import intervals
from trueodds.inference.asked import Asked
from trueodds.inference.estimate import Sureness, estimate_from_cells, parts_of
from trueodds.inference.redraw_cells import cell_draws
from trueodds.problem.lens import Classwise, Lens
from trueodds.problem.partition import Bins, Uniform
from trueodds.tally.tally import Tally

Array = NDArray[Any]


def estimate(
    tally: Tally,
    estimator: Estimator,
    lens: Lens,
    aggregate: str,
    sure: Sureness,
    redraws: int,
    rng: np.random.Generator,
) -> Estimate:
    """One estimator through one lens of a tally, with interval and noise floor where cells suffice for them."""
    if isinstance(estimator, ProperScore) and tally_scores(tally, lens):
        return score_estimate(tally, estimator, lens, sure)
    asked = asked_of(tally, estimator, lens, aggregate)
    null = (
        None
        if sure.interval is None or isinstance(estimator, ProperScore)
        else null_draws(tally, asked, redraws, rng)[0]
    )
    theirs = None
    if null is not None and asked.judge is not asked:
        theirs = null_draws(tally, asked.judge, redraws, rng)[0]
    return estimate_from_cells(asked, sure, rng, null, notes_of(tally, asked), theirs)


def asked_of(tally: Tally, estimator: Estimator, lens: Lens, aggregate: str = "mean") -> Asked:
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
    return Asked(estimator, lens, tally.views(lens), aggregate)


def notes_of(tally: Tally, asked: Asked) -> list[Note]:
    """The tally's own notes, its resolution, and a word where bins do not fall on cell edges."""
    notes = [*tally.notes(asked.lens), Note("TN405", f"Made from a {tally.resolution}.")]
    partition = getattr(asked.estimator, "partition", None)
    if partition is not None and not asked.views[0].joint:
        cells = partition.freeze(asked.views[0])
        if isinstance(cells, Bins) and not np.isin(cells.edges, EDGES).all():
            notes.append(Note("TN404", "Some bin edges are no cell edges; the nearest cell edges were used."))
    return [*notes, *(asked.estimator.notes(asked.views[0]) if len(asked.views) == 1 else [])]


def tally_scores(tally: Tally, lens: Lens) -> bool:
    """Whether the tally's score sums are those of this lens: the whole prediction."""
    whole = {"classes": ["canonical"], "confidence": ["confidence"], "multilabel": ["classwise"]}[tally.kind]
    return lens.name in (["canonical", "positive"] if tally.kind == "classes" and tally.k == 2 else whole)


def score_estimate(tally: Tally, estimator: Estimator, lens: Lens, sure: Sureness) -> Estimate:
    """A proper score from its sums, with the normal interval of a mean."""
    if getattr(estimator, "floor", 0.0):
        raise InputError(
            "TO403", "A floor needs the rows; the tally keeps the unfloored score.", "floor", "Use mode='exact'."
        )
    if sure.interval not in ("auto", None):
        raise InputError(
            "TO205",
            f"The {sure.interval} interval of a score needs the rows.",
            "a tally",
            "Use interval='auto', or mode='exact'.",
        )
    sums = tally.score(estimator.name)
    value = sums["mean"]
    notes = [*tally.notes(lens), Note("TN405", f"Made from a {tally.resolution}.")]
    interval = None
    if sure.interval is not None and np.isfinite(value):
        interval = intervals.normal(value, sums["standard_error"], sure.level)
    settings = {"interval": "normal", "level": sure.level} if interval else {}
    floor = None
    if estimator.name == "log_loss" and sure.interval is not None:
        notes.append(Note("TN406", "A tally keeps no entropy, so log loss has no noise floor here."))
    if estimator.name == "brier" and sure.interval is not None and tally.kind != "confidence":
        views = tally.views("positive" if tally.kind == "classes" and tally.k == 2 else "classwise")
        spread = [float((view.w * view.p - view.sums("wpp")).sum() / view.total) for view in views]
        floor = float(np.mean(spread) if tally.kind == "multilabel" else np.sum(spread))
    parts = {}
    if getattr(estimator, "decomposition", None):
        asked = asked_of(tally, estimator, lens)
        parts = {} if sure.interval is None else parts_of(asked)
        settings = estimator.said(asked.views[0]) | settings
        notes = notes_of(tally, asked)
    return Estimate(
        estimator.name, str(lens), value, tally.n, interval, floor, parts=parts, settings=settings, notes=tuple(notes)
    )


def null_draws(tally: Tally, asked: Asked, redraws: int, rng: np.random.Generator) -> tuple[Array, bool]:
    """The null draws of each view, and whether the views are drawn jointly."""
    voted = tally.counts.voted > 0
    together = isinstance(asked.lens, Classwise) and _on_report_cells(tally, asked) and not voted
    covariance = tally.null_covariance if together else None
    joint = covariance is not None or len(asked.views) == 1
    return cell_draws(asked, redraws, rng, covariance, voted=voted), joint


def _on_report_cells(tally: Tally, asked: Asked) -> bool:
    """Whether the error's bins are the ones whose null covariance the tally keeps."""
    if not isinstance(asked.estimator, BinnedError):
        return False
    partition = asked.estimator.partition or Uniform()
    return isinstance(partition, Uniform) and partition.bins == tally.bins and partition.range is None
