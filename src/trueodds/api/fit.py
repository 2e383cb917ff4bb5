"""Fit a calibrator (post-hoc recalibration), and load a saved calibrator or tally."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.api.arguments import pairs_arrays, resolve_method
from trueodds.api.collect_or_tally import IN_MEMORY, resolve_for_passes
from trueodds.core.json_files import read_schema_family
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, check
from trueodds.lenses.lens import as_lens
from trueodds.tallies.tally import Tally

if TYPE_CHECKING:
    from trueodds.calibrators.fitted_calibrator import FittedCalibrator


@pairs_arrays
def fit(
    data: Any,
    method: Any = "auto",
    *,
    lens: Any = None,
    level: float = 0.95,
    mode: str | None = None,
    weight_kind: str = "importance",
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> FittedCalibrator:
    """What fixes the probabilities: a fitted calibrator with `predict_proba`, `summary` and `save`.

    `auto` chooses by cross-fitted log loss with the one-standard-error rule, confirms by the gain on rows that neither
    fit nor choice has seen, and is the identity where nothing is confirmed. A map is of all probabilities, so `lens` and
    `level`, which every call takes, change nothing here.

    Rows that do not fit into memory, or lie on workers, are fitted in passes over them by the methods that sums are
    enough for, and by the others, `auto` too, to a random sample of them, as a note says; `mode="exact"` collects them,
    `mode="tally"` never does. A Tally fits `histogram` and `isotonic`.

    >>> preds = Predictions([0, 1, 1, 0] * 25, [0.1, 0.8, 0.7, 0.3] * 25)
    >>> fit(preds, "identity").predict_proba([0.25]).tolist()
    [[0.75, 0.25]]
    """
    from trueodds.calibrators import CALIBRATORS
    from trueodds.calibrators.base import CalibratorSpec
    from trueodds.calibrators.fitting import fit_any_source

    check("level", level, Level, 0.95)
    as_generator(rng)
    if lens is not None:
        as_lens(lens)
    if hasattr(method, "made") and not isinstance(method, (CalibratorSpec, type)):
        method = method.made()  # Temperature() and the like, of scikit-learn's kind
    if isinstance(method, str) and method == "auto":
        settings.setdefault("rng", rng)
    spec = resolve_method(CALIBRATORS, CalibratorSpec, method, settings)
    rows = resolve_for_passes(data, mode, weight_kind, IN_MEMORY)
    return fit_any_source(spec, rows, repeated=weight_kind == "frequency")


def load(path: Any) -> FittedCalibrator | Tally:
    """A calibrator or a tally saved by `save`, checked on the way in; no pickle is ever read."""
    from trueodds.calibrators import fitted_calibrator
    from trueodds.tallies import serialization

    check("path", path, str | os.PathLike)
    return serialization.load(path) if read_schema_family(path) == "trueodds.tally" else fitted_calibrator.load(path)
