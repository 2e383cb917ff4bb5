"""Measure and test the calibration of every subgroup, with joint p-values and the differences between subgroups."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from trueodds.api.arguments import (
    add_seed,
    confidence_only_setting,
    data_notes,
    reported_call_settings,
    resolve_all,
    resolve_lens,
    resolve_method,
)
from trueodds.api.array_arguments import accept_separate_arrays
from trueodds.core.errors import InputError
from trueodds.core.progress import Progress, report_progress
from trueodds.core.results import Estimate
from trueodds.core.rng import as_generator, seed_of
from trueodds.core.settings import Level, check
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.hypotests.group_results import ByGroup
from trueodds.hypotests.group_status import (
    analyze_groups,
    check_between,
    check_has_groups,
    group_partitions,
    tally_subgroups,
)
from trueodds.lenses.subgroups import rows_of_groups
from trueodds.resampling.comparison.group_gaps import GroupErrors
from trueodds.resampling.estimate import estimate_error
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally


@accept_separate_arrays
def by_group(
    preds: Any,
    estimator: str | Estimator = "ece",
    *,
    lens: Any = None,
    crossings: bool | int = False,
    max_groups: int | None = None,
    min_effect: float = 0.05,
    against: str = "pairs",
    between: bool = False,
    method: Literal["Nagashima", "HTS"] = "Nagashima",
    interval: str | None = "auto",
    level: float = 0.95,
    resamples: int | None = None,
    aggregate: str | None = None,
    weight_kind: str | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> ByGroup:
    """Estimate and test the calibration error of every subgroup, jointly.

    The null hypothesis for each subgroup is that the labels of its rows are drawn with their predicted probabilities.

    Parameters
    ----------
    preds : Predictions, (y_true, y_prob) or Source
        Predictions with at least one group column, as in ``Predictions(y_true, y_prob, group={"sex": sex})``.
    estimator : str or Estimator, default="ece"
        Name of an estimator (``trueodds list estimators`` prints them). An instance with its settings is accepted too.
    lens : str, Lens or callable, optional
        Which predicted probability is examined: ``"positive"``, ``"confidence"``, ``"classwise"``, ``"class:NAME"``,
        ``"top-label"``, ``"canonical"`` or another one. The default is that of the method if it has one
        (``"canonical"`` for proper scores), else ``"positive"`` for two classes and ``"confidence"`` for more.
    crossings : bool or int, default=False
        How many group columns are combined: 2 (or True) adds the subgroups of every two columns.
    max_groups : int, optional
        Examine only so many subgroups of each column or combination, those whose calibration-in-the-large deviates
        most in standard errors. The others are listed in `unexamined`, and the joint p-values are adjusted for them. By
        default every subgroup is examined.
    min_effect : float, default=0.05
        Equivalence margin, in units of the estimator: a subgroup has the status ``"within"`` if its interval ends below
        it. It is meaningful for errors that are 0 under calibration, and therefore not for proper scores.
    against : {"pairs", "rest"}, default="pairs"
        Whether gaps are computed between every two subgroups of a column, or between every subgroup and the remaining
        rows.
    between : bool, default=False
        Whether to summarize the differences between the groups of a column: mean over groups, standard deviation
        between them, and an interval for a new group. It is available for estimators with a standard error in closed
        form: ``"o_e"``, ``"calibration_slope"``, ``"calibration_intercept"`` and ``"calibration_in_the_large"``.
    method : {"Nagashima", "HTS"}, default="Nagashima"
        Method of the interval for a new group. ``"HTS"`` is that of Higgins, Thompson and Spiegelhalter, which other
        software uses; it is too narrow if the groups differ little.
    interval : {"auto", "percentile", "basic", "bca", "sun", "debiased"} or None, default="auto"
        Method of the confidence intervals, as in `measure`.
    level : float, default=0.95
        Confidence level of the intervals. The family-wise error rate of the tests is 1 − `level`.
    resamples : int, optional
        Number of null draws and of bootstrap resamples. The defaults are 999, or up to 9,999 for many subgroups, and
        2,000.
    aggregate : {"mean", "max", "sum", "prevalence", "weight"}, optional
        How the values of several views, such as the classes of ``"classwise"``, are combined into one number. The
        default is the mean (``"weight"`` for ``"top-label"``).
    weight_kind : as in `resolve_all`
    rng : as in `as_generator`
    progress : as in `report_progress`
    **settings
        Settings of the estimator, such as `bins`, `partition`, `min_size`, `closed`, `range`, `distance`, `order` or
        `min_prob`.

    Returns
    -------
    ByGroup
        The subgroups with their errors, p-values and status, the gaps between them, the overall error and the
        multicalibration error. See Notes.

    Raises
    ------
    InputError
        As for `measure`. Also TO403 for a tally, TO408 for several independent labels, TO409 if there is no group
        column.

    Notes
    -----
    All subgroups are tested on the same null draws of the labels, so rows that two subgroups share have the same labels
    in both. `joint` is the step-down min-p adjusted p-value of Westfall and Young [1]_ over all subgroups. The
    family-wise error rate, the probability that any calibrated subgroup is called miscalibrated, is at most 1 −
    `level`.

    The `status` of a subgroup is ``"miscalibrated"`` if its joint p-value is at most 1 − `level`. Otherwise it is
    ``"within"`` if its interval is closer to the best value than `min_effect`, and ``"undecided"`` if not. Each
    ``"within"`` holds separately, at the level of its interval; the rejections hold jointly. `min_detectable` is the
    smallest observed error that would have been significant, holding the other groups and all null draws fixed. It
    is None if no attainable error would have been. `mean_prob` and `event_rate` are the mean predicted probability and
    the observed event rate; they are None if the lens has several views. With clusters,
    or several votes per row, the p-values and `min_detectable` are the larger ones of two null distributions: signs of
    residuals that are flipped, and labels or votes drawn with their estimated correlation.

    Gaps are differences between subgroups of one column or crossing, which share no row. The intervals of all gaps of a
    column hold simultaneously at `level`. Errors are biased upward, more so in smaller groups, so plain differences are
    misleading; the intervals account for this (MOVER [2]_, as in `compare`). `widest` has for each column the two
    subgroups whose difference is most significant, with an interval for the largest true gap that accounts for the
    selection. The multicalibration error [3]_ is described at
    `trueodds.hypotests.group_tests.MulticalibrationError`.

    With `max_groups`, the family-wise error rate still holds over all subgroups: those that are not examined are never
    called miscalibrated, and the probability that one of them would have had a p-value as small as p is at most their
    number times p, which is added to the joint p-value. So it does not matter how the examined ones were selected.

    With `between`, the true values of the groups are taken as draws from a normal distribution (on the log scale for
    ratios). Their standard errors are those at the value of all groups together, and the ratio and the intercept have
    half an event added, because groups with many events would otherwise have more weight: with 1 % of events, the mean
    of 30 calibrated groups would be 6 % too high. Groups with fewer than two expected events are left out, and for the
    slope those with fewer than ten events or non-events. A new group lies in its prediction interval with probability
    `level`; the interval accounts for the uncertainty of the standard deviation between groups [4]_. Three groups are
    required.

    Cost: O(n) per draw and O(n) memory for each column and crossing if the bins are fixed. Of a column of more than 50
    subgroups, 50 are compared in `gaps` and `widest` (note TN280).

    References
    ----------
    .. [1] Westfall & Young (1993). Step-down min-p adjusted p-values.
    .. [2] Zou & Donner (2008). Confidence limits of a difference (MOVER).
    .. [3] Guy et al. (2025). arXiv:2506.11251.
    .. [4] Nagashima, Noma & Furukawa (2019). Prediction intervals from a confidence distribution.

    Examples
    --------
    >>> import numpy as np
    >>> import trueodds as to
    >>> rng = np.random.default_rng(0)
    >>> p, old = rng.random(2000), rng.random(2000) < 0.5
    >>> y = rng.random(2000) < np.where(old, p**2, p)
    >>> by_age = to.by_group(to.Predictions(y.astype(int), p, group={"age": np.where(old, "old", "young")}))
    >>> [(group.label, group.status) for group in by_age.groups]
    [('age=old', 'miscalibrated'), ('age=young', 'within')]
    >>> by_age.widest[0].first, by_age.widest[0].settled
    ('age=old', True)
    """
    aggregate = check("aggregate", aggregate, Aggregate | None, None)
    against = check("against", against, Literal["pairs", "rest"], "pairs")
    level, progress_context = check("level", level, Level, 0.95), report_progress(progress)
    interval_spec = IntervalSpec(interval, level, 2000 if resamples is None else resamples)
    generator = as_generator(rng)
    made = resolve_method(ESTIMATORS, Estimator, estimator, add_seed(estimator, settings, rng, generator))
    prediction_method = check_between(between, method, made, max_groups)
    all_rows, rows = (preds, preds) if isinstance(preds, Tally) else resolve_all(preds, "exact", weight_kind)
    all_rows, rows = check_has_groups(all_rows), check_has_groups(rows)
    made, rows = made.prepare(rows)
    resolved_lens = resolve_lens(rows, lens, made)
    if prediction_method is not None and len(resolved_lens.views(rows)) > 1:
        fix = "Use a lens such as ⟨lens='class:0'⟩."
        raise InputError("TO205", "The differences between groups need one value per group.", str(resolved_lens), fix)
    seed = seed_of(rng, generator)
    call_settings = reported_call_settings(rng, rows, weight_kind, lens=resolved_lens)
    call_settings |= confidence_only_setting(rows, lens, resolved_lens)
    error_settings = GroupErrors(made, resolved_lens, aggregate or resolved_lens.aggregate, interval_spec, seed)
    with progress_context as report:
        return analyze_groups(
            error_settings, all_rows, rows, crossings=crossings, max_groups=max_groups, min_effect=min_effect,
            resamples=resamples, rng=generator, progress=report, against=against, call_settings=call_settings,
            data_notes=data_notes(rows), between=prediction_method,
        )  # fmt: skip


def estimate_by_group(
    rows: Predictions | Tally, estimator: str, crossings: int, level: float, seed: int, max_groups: int | None = None
) -> dict[str, Estimate]:
    """Return the estimate of every subgroup, by its label, without a test.

    Parameters
    ----------
    rows : Predictions or Tally
        Rows with group columns, or a tally that was made with them.
    estimator : str
        Name of an estimator.
    crossings : int
        How many group columns are combined, as for `by_group`; a tally has no crossings.
    level : float
        Confidence level of the intervals.
    seed : int
        Seed; of rows in memory, values and intervals are those of `by_group` with the same seed.
    max_groups : int, optional
        As for the audit, so that the same subgroups are examined.

    Returns
    -------
    dict of str to Estimate
        The estimates by label, such as ``"age=old"``.
    """
    generator = as_generator(seed)
    method = resolve_method(ESTIMATORS, Estimator, estimator, add_seed(estimator, {}, seed, generator))
    method, rows = method.prepare(rows)
    lens, interval_spec = resolve_lens(rows, None, method), IntervalSpec("auto", level, 2000)
    if isinstance(rows, Tally):
        examined, _ = tally_subgroups(rows, max_groups)
        return {
            f"{column}={value}": estimate_error(tally, method, lens, lens.aggregate, interval_spec, generator)
            for column, value, tally in examined
        }
    error_settings = GroupErrors(method, lens, lens.aggregate, interval_spec, seed)
    groups = [group for partition in group_partitions(rows, crossings, 0.0, max_groups) for group in partition.groups]
    return {
        group.label: error_settings.error_of_group(rows, group, number, rows_of_group).estimate
        for number, (group, rows_of_group) in enumerate(zip(groups, rows_of_groups(rows, groups), strict=True))
    }
