"""One-sided tests of whether recalibration improves predictions on rows that it was not fitted on.

`CrossFittedTest` tests the gain in a loss, and `DecisionRegretTest` the gain in the cost of decisions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import stdtr

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.registry import dataclass_settings
from trueodds.estimators.base import Estimator
from trueodds.estimators.cross_fitted import CrossFitted
from trueodds.estimators.decision_regret import CostRegret
from trueodds.estimators.out_of_sample import OutOfSampleGain
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import ViewResult
from trueodds.lenses.view import View

MIN_NONZERO_GAINS = 20  # rows with a nonzero gain below which their mean is too skewed for Student's t


@dataclass(frozen=True, kw_only=True)
class CrossFittedTest(ViewTest):
    r"""One-sided test of whether cross-fitted recalibration improves a loss.

    Null hypothesis: the expected gain of every row under a calibrator fitted without it is at most 0, as for a
    calibrated model.

    Parameters
    ----------
    null : {"asymptotic"}, default="asymptotic"
        Null distribution: Student's t.
    redraw : {"labels"}, default="labels"
        Not used: the null distribution needs no draws.
    resamples : int, default=999
        Not used: the null distribution needs no draws.
    statistic : Estimator, optional
        Cross-fitted estimator with ``fit_on="earlier"``. Default: `cross_fitted` with its default settings.

    Raises
    ------
    InputError
        TO203 for ``fit_on="others"``. TO205 as for the estimator.

    Notes
    -----
    .. math:: t = \frac{\sum_i w_i g_i}{\sqrt{\max(S, S_0)}}, \quad
        S = \tfrac{n}{n-1} \sum_i w_i^2 (g_i - \bar g)^2, \quad S_0 = \sum_i w_i^2 \operatorname{Var}_{y \sim p_i} g_i

    where g_i is what the estimator `cross_fitted` recovers for row i with a fit on earlier blocks only. The terms are
    martingale differences, so S estimates the variance of their sum (plain cross-fitting rejects 11 to 13 % at 5 %). S₀
    is the variance under calibration: if rare outcomes were not observed, the sample variance underestimates it. The
    null distribution is Student's t with n − 1 degrees of freedom, one-sided for large t.

    Statistic: t. Effect: the mean of g, in the units of the estimator. Note TN212 reports fewer than 20 rows with a
    nonzero term. If all terms are equal, the variance is 0 (note TN234): p is 1 without a gain, and otherwise undefined
    (NaN).

    Shapes: as for the estimator. The order of the rows determines the blocks. Requires rows, not a tally.
    Cost: `folds` fits.

    References
    ----------
    .. [1] Berta et al. (2026). The errors; Student's test is applied to their martingale differences.

    Examples
    --------
    >>> import numpy as np
    >>> import trueodds as to
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> to.test(rng.random(500) < p**2, p, "cross_fitted").pvalue < 0.001
    True
    """

    name: ClassVar[str] = "cross_fitted"
    accepts_joint_views: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = True
    null_distributions: ClassVar[tuple[str, ...]] = ("asymptotic",)
    asymptotic_null: ClassVar[str] = "the mean gain per row over its standard error is Student's t"
    exemptions: ClassVar[dict[str, str]] = {
        "row order": "which rows share a block depends on their order",
        "weight two": "the copies of a row fall into different blocks",
        "cells": "a fit on other rows needs single rows",
    }
    statistic: OutOfSampleGain = field(default_factory=CrossFitted)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.statistic, OutOfSampleGain) or self.statistic.fit_on != "earlier":
            raise InputError(
                "TO203",
                "The test requires fit_on='earlier', whose terms are martingale differences.",
                describe(self.statistic),
                "Omit fit_on.",
            )

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        return ("null", *CrossFitted.setting_names())

    @classmethod
    def from_settings(cls, _name: str, null: str = "asymptotic", **settings: Any) -> CrossFittedTest:
        return cls(null=null, statistic=CrossFitted.from_settings(cls.name, **settings))

    def error_estimator(self) -> Estimator | None:
        return self.statistic

    def evaluate(self, view: View) -> ViewResult:
        """t, its one-sided p-value, and the mean gain."""
        out_of_fold = self.statistic.out_of_fold(view)
        w = view.w[out_of_fold.row]
        gain_by_outcome = self.statistic.values_by_outcome(out_of_fold, view)
        gain = (gain_by_outcome * out_of_fold.Y).sum(axis=1)
        expected_gain = (gain_by_outcome * out_of_fold.P).sum(axis=1)
        expected_square = (gain_by_outcome**2 * out_of_fold.P).sum(axis=1)
        null_variance = float(weighted_sum(w * w, np.maximum(expected_square - expected_gain**2, 0.0)))
        settings, effect = self.statistic.settings_used(view), self.statistic.value(view)
        parts = {"error": self.statistic.parts(view)}
        n = len(gain)
        mean = float(weighted_sum(w, gain) / w.sum()) if n else 0.0
        std_error = 0.0
        if n > 1:
            sample_variance = n / (n - 1) * ((w * (gain - mean)) ** 2).sum()
            std_error = float(np.sqrt(max(sample_variance, null_variance)))
        if std_error == 0:
            text = "All rows have the same gain from the cross-fitted calibrator, so the standard error is 0."
            p = 1.0 if mean <= 0 else float("nan")
            return ViewResult(0.0 if mean == 0 else float("nan"), p, effect, parts, settings, (Note("TN234", text),))
        t = float(weighted_sum(w, gain)) / std_error
        n_nonzero = int((gain != 0).sum())
        warnings: tuple[str, ...] = ()
        if n_nonzero < MIN_NONZERO_GAINS:
            text = f"Only {n_nonzero:,} rows have a nonzero gain, too few for the mean to be approximately normal."
            warnings = (text,)
        return ViewResult(
            statistic=t,
            pvalue=float(stdtr(n - 1, -t)),
            effect=effect,
            parts=parts,
            settings_used=settings,
            asymptotic_warnings=warnings,
        )


@dataclass(frozen=True, kw_only=True)
class DecisionRegretTest(CrossFittedTest):
    r"""One-sided test of whether decisions based on recalibrated probabilities have lower cost.

    Null hypothesis: choosing the action of a row with a calibrator fitted on earlier rows does not lower its expected
    cost, as for a calibrated model, whose predicted probabilities already select the best action.

    Parameters
    ----------
    statistic : Estimator, optional
        Decision regret with its costs. Default: `decision_regret` with a cost of 1 for every wrong class.

    Raises
    ------
    InputError
        TO203 and TO205 as for the test `cross_fitted`.

    Notes
    -----
    The statistic is that of `cross_fitted` with

    .. math:: g_i = c(a(p_i), y_i) - c(a(\hat r(p_i)), y_i)

    in the units of the costs, where a selects the action with the lowest expected cost and r̂ is the calibrator.
    Effect: the decision regret.

    Shapes: a binary or a joint view. The default lens is `canonical`. Requires rows, not a tally.
    Cost: `folds` fits, as for `cross_fitted`.

    References
    ----------
    .. [1] Hu & Wu (2024). Decision regret; this test is its cross-fitted form.

    Examples
    --------
    >>> import numpy as np
    >>> import trueodds as to
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> to.test(rng.random(4000) < p**2, p, "decision_regret", cost=[[0, 4], [1, 0]]).pvalue < 0.001
    True
    """

    name: ClassVar[str] = "decision_regret"
    statistic: OutOfSampleGain = field(default_factory=CostRegret)

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        return ("null", *dataclass_settings(CostRegret))

    @classmethod
    def from_settings(cls, _name: str, null: str = "asymptotic", **settings: Any) -> DecisionRegretTest:
        return cls(null=null, statistic=CostRegret(**settings))
