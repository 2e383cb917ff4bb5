"""Fit a calibrator (post-hoc recalibration) to predictions and their outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.api.arguments import max_probabilities_in_memory, resolve_for_fit, resolve_method
from trueodds.api.array_arguments import accept_separate_arrays
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, check
from trueodds.lenses.lens_by_name import as_lens

if TYPE_CHECKING:
    from trueodds.calibrators.fitted_calibrator import FittedCalibrator


@accept_separate_arrays
def fit(
    data: Any,
    method: Any = "auto",
    *,
    lens: Any = None,
    level: float = 0.95,
    mode: str | None = None,
    weight_kind: str | None = None,
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> FittedCalibrator:
    """Fit a calibrator (post-hoc recalibration) to predictions and their outcomes.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or Tally
        Predictions with their outcomes. The two arrays may also be passed separately, as in
        ``fit(y_true, y_prob)``. Whatever `read` accepts (a path, a data frame) is read first.
    method : str, CalibratorSpec or estimator, default="auto"
        Name of a calibrator (``trueodds list calibrators`` prints them), or ``"auto"``, which selects one and confirms
        it on held-out rows. An instance with its settings is accepted too. ``"auto"`` selects by cross-fitted log loss
        with the one-standard-error rule. It confirms the gain on rows that were used for neither fit nor selection, and
        is the identity if the gain is not confirmed.
    lens : str, Lens or callable, optional
        Without effect, because a calibrator maps all probabilities. It is accepted, as `level` is, so that the same
        settings can be passed to `measure`, `test` and `fit`.
    level : float, default=0.95
        Without effect, because a fit has no intervals.
    mode : {"exact", "tally"}, optional
        ``"exact"`` collects all rows in memory, ``"tally"`` never does. See Notes for the default.
    weight_kind : {"importance", "frequency"}, optional
        Whether a row of weight 2 is one row that counts double (``"importance"``, the default) or two observed rows
        (``"frequency"``). If it is not given and the weights are whole numbers, note TN286 describes the difference.
    rng : as in `as_generator`
    **settings
        Settings of the calibrator.

    Returns
    -------
    FittedCalibrator
        The fitted calibrator, with `predict_proba`, `summary` and `save`.

    Raises
    ------
    InputError
        As for `measure`. Also TO502 for independent labels, TO507 for too few rows to select a calibrator, TO509 if the
        calibrator needs logits, TO511 for a binary calibrator with more than two classes.

    See Also
    --------
    load : Load a saved calibrator.

    Notes
    -----
    Rows that do not fit into memory, or that lie on the workers of an engine, are not collected. Calibrators for which
    sums are sufficient are fitted in several passes over the rows. The others, including ``"auto"``, are fitted to a
    random sample, and a note reports it. A `Tally` suffices for `histogram` and `isotonic`.

    Examples
    --------
    >>> import trueodds as to
    >>> preds = to.Predictions([0, 1, 1, 0] * 25, [0.1, 0.8, 0.7, 0.3] * 25)
    >>> to.fit(preds, "identity").predict_proba([0.25]).tolist()
    [[0.75, 0.25]]
    """
    from trueodds.calibrators import CALIBRATORS
    from trueodds.calibrators.base import CalibratorSpec
    from trueodds.calibrators.fitting import fit_any_source

    check("level", level, Level, 0.95)
    as_generator(rng)
    if lens is not None:
        as_lens(lens)
    if hasattr(method, "make_spec") and not isinstance(method, (CalibratorSpec, type)):
        method = method.make_spec()  # Temperature() and the like, of scikit-learn's kind
    if isinstance(method, str) and method == "auto":
        settings.setdefault("rng", rng)
    spec = resolve_method(CALIBRATORS, CalibratorSpec, method, settings)
    rows = resolve_for_fit(data, mode, weight_kind, max_probabilities_in_memory())
    return fit_any_source(spec, rows, weight_kind)
