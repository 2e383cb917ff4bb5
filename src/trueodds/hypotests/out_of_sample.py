"""One-sided tests of whether a cross-fitted recalibration lowers a loss or a decision's regret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import stdtr

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.registry import settings_of
from trueodds.estimators._decision.out_of_sample import OutOfSample
from trueodds.estimators.base import Estimator
from trueodds.estimators.cross_fitted import CrossFitted
from trueodds.estimators.decision_regret import CostRegret
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import ViewResult
from trueodds.lenses.view import View

FEWEST = 20  # rows with a term of its own, below which the mean of so skewed terms is not near normal


@dataclass(frozen=True)
class CrossFittedTest(ViewTest):
    r"""Whether an out-of-sample calibrator recovers a calibration error, or wins back a score: one-sided.

    Null hypothesis: in expectation no row gains anything by a fit that has not seen it, as holds of a calibrated model.

    .. math:: t = \frac{\sum_i w_i g_i}{\sqrt{\max(S, S_0)}}, \quad
        S = \tfrac{n}{n-1} \sum_i w_i^2 (g_i - \bar g)^2, \quad S_0 = \sum_i w_i^2 \operatorname{Var}_{y \sim p_i} g_i

    with g_i what the estimator `cross_fitted` recovers of row i by a fit on earlier blocks only, so that each term is
    new given those before it and the rows' own spread S is that of the mean (a plain cross-fit rejects 11 to 13 % at
    5 %). S₀ is what a calibrated model's would be: of rare outcomes that never came the rows seen show no spread. Student's t with n − 1 degrees of freedom; a large t speaks against the null.

    Shapes: as the estimator's. Statistic: t. Effect: the mean of g, in the estimator's units. Where fewer than 20 rows
    have a term that differs from 0, note TN212 says so; where all have the same, nothing can be judged (note TN234): p is 1 if they
    gain nothing, else undefined (NaN).
    Cost: `folds` fits. Order of rows decides the blocks. Raises TO203 for fit_on="others", TO205 as the estimator.
    Source: Student's test on martingale differences; the errors after Berta et al. (2026).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> CrossFittedTest().on(View(p=p, y=rng.random(500) < p**2)).pvalue < 0.001
    True
    """

    name: ClassVar[str] = "cross_fitted"
    vectors: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = True
    nulls: ClassVar[tuple[str, ...]] = ("asymptotic",)
    asymptotic_null: ClassVar[str] = "the mean of what each row gains over its standard error is Student's t"
    exempt: ClassVar[dict[str, str]] = {
        "row order": "which rows share a block depends on their order",
        "weight two": "the copies of a row fall into different blocks",
        "cells": "a fit on other rows needs single rows",
    }
    statistic: OutOfSample = field(default_factory=CrossFitted)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.statistic, OutOfSample) or self.statistic.fit_on != "earlier":
            raise InputError(
                "TO203",
                "The test is of a fit on earlier rows, whose terms are new given what came before.",
                describe(self.statistic),
                "Leave fit_on out.",
            )

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return ("null", *CrossFitted.accepts())

    @classmethod
    def from_settings(cls, _name: str, null: str = "asymptotic", **settings: Any) -> CrossFittedTest:
        """The test of the estimator of the same name with these settings."""
        return cls(null, statistic=CrossFitted.from_settings(cls.name, **settings))

    def error(self) -> Estimator | None:
        """What is recovered."""
        return self.statistic

    def on(self, view: View) -> ViewResult:
        """t, its one-sided p, and the mean that is recovered."""
        out_of_sample = self.statistic.out_of_fold(view)
        w, by_outcome = view.w[out_of_sample.row], self.statistic.by_outcome(out_of_sample, view)
        gained = (by_outcome * out_of_sample.Y).sum(axis=1)
        expected = (by_outcome * out_of_sample.P).sum(axis=1)
        null = float((w * w) @ np.maximum((by_outcome**2 * out_of_sample.P).sum(axis=1) - expected**2, 0.0))
        settings, effect = self.statistic.settings_used(view), self.statistic.value(view)
        parts = {"error": self.statistic.parts(view)}
        n = len(gained)
        mean = float(w @ gained / w.sum()) if n else 0.0
        std_error = float(np.sqrt(max(n / (n - 1) * ((w * (gained - mean)) ** 2).sum(), null))) if n > 1 else 0.0
        if std_error == 0:
            text = "No two rows gain or lose differently by a fit on the others, so there is no spread to judge by."
            p = 1.0 if mean <= 0 else float("nan")
            return ViewResult(0.0 if mean == 0 else float("nan"), p, effect, parts, settings, (Note("TN234", text),))
        t = float(w @ gained) / std_error
        moved = int((gained != 0).sum())
        doubt = f"Only {moved:,} rows gain or lose anything, too few for the mean to be near normal."
        return ViewResult(
            t, float(stdtr(n - 1, -t)), effect, parts, settings, doubts=(doubt,) if moved < FEWEST else ()
        )


@dataclass(frozen=True)
class DecisionRegretTest(CrossFittedTest):
    r"""Whether acting on the stated probabilities costs more than acting on recalibrated ones, at given costs.

    Null hypothesis: in expectation no row's costs fall by choosing its action by a fit on earlier rows, as holds of a
    calibrated model, whose stated probabilities call for the best action already. The statistic is that of
    `cross_fitted`, with g_i = c(a(p_i), y_i) − c(a(r̂(p_i)), y_i) in the costs' own units. One-sided.

    Shapes: a binary view or a joint one; the lens is `canonical` if not said. Effect: the regret. Without `cost` every
    wrong class costs 1. Cost and errors: as for `cross_fitted`.
    Source: the decision form of the cross-fitted test; regret after Hu & Wu (2024).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> costly = CostRegret(cost=[[0, 4], [1, 0]])
    >>> DecisionRegretTest(statistic=costly).on(View(p=p, y=rng.random(4000) < p**2)).pvalue < 0.001
    True
    """

    name: ClassVar[str] = "decision_regret"
    statistic: OutOfSample = field(default_factory=CostRegret)

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return ("null", *settings_of(CostRegret))

    @classmethod
    def from_settings(cls, _name: str, null: str = "asymptotic", **settings: Any) -> DecisionRegretTest:
        """The test of the regret with these settings."""
        return cls(null, statistic=CostRegret(**settings))
