"""The MCLLO test: whether each class's log odds against a baseline class have shift 0 and slope 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from trueodds.calibrators._glm.parameter_covariance import IndependentUnits
from trueodds.calibrators.mcllo import check_baseline, resolve_class_name
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError
from trueodds.core.results import Verdict
from trueodds.core.settings import Integer, OneOf, Probability
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators._glm.logits import MinProb
from trueodds.hypotests._glm.mcllo_checks import (
    asymptotic_warnings,
    compare_baselines,
    compare_min_probs,
    describe_degrees_of_freedom,
    in_sample_notes,
    mcllo_notes,
    refuse_in_sample,
)
from trueodds.hypotests._glm.mcllo_likelihood import (
    FORMS,
    MclloModel,
    class_parameters,
    effective_unit_count,
    likelihood_ratio_statistic,
    mcllo_statistics,
    parameter_tests,
    tail_probability,
)
from trueodds.hypotests.base import FractionProgress, clustered_redraw_note
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally

VARIANCES = ("model", "empirical")
DEFAULT_PRIOR = 0.5  # default prior probability of calibration


@dataclass(frozen=True, kw_only=True)
class Mcllo(ViewTest):
    r"""Multicategory linear log odds (MCLLO) test of calibration for probability vectors.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"asymptotic", "redraw"}, default="asymptotic"
        Null distribution: χ² (Hotelling's T² if the variance is estimated), or labels drawn from the predicted
        probabilities, with the score statistic. "redraw" is exact at any n and needs no fit per draw.
    form : {"likelihood-ratio", "wald", "score"}, optional
        Default: the likelihood ratio with the asymptotic null; the Wald statistic if the variance is estimated from
        rows or clusters, finite estimates exist and there are enough units; otherwise the score statistic, also with
        redrawn labels.
    baseline : int or str, optional
        Baseline class c by index (negative ones count from the end) or by name, such as "class:cat". Default: the last
        class. For a binary view it is always the complement of the event.
    min_prob : float, default=0.0
        Lower limit of the probabilities. A note counts the clipped rows. 0 clips nothing.
    variance : {"model", "empirical"}, optional
        Variance of the scores: from the predicted probabilities, or estimated from the rows, which is also valid under
        over- or underdispersion. With clusters it is estimated from them, and this setting must be left out.
    baselines : bool, default=False
        Whether the parts `baseline:j` report the test with each class j as the baseline, with the largest and the mean
        change of a fitted probability. Note TN236 states their range.
    prior : float, default=0.5
        Prior probability of calibration for the posterior. With weights, clusters or the empirical variance there is no
        posterior, and any other value than .5 is refused.

    Raises
    ------
    InputError
        TO203 for unknown settings. TO205 for a probability of 0 without `min_prob`, for another form or variance with
        ``null="redraw"``, for `variance` with clusters, and for a `prior` without effect. TO206 for predictions fitted
        to these outcomes. TO403 for the empirical variance of a tally.

    Notes
    -----
    The model is

    .. math:: \log\frac{q_j}{q_c} = \tau_j + \gamma_j \log\frac{p_j}{p_c}, \qquad j \ne c

    with the baseline class c. Under the null every τ = log δ is 0 and every γ is 1. δ_j > 1 means that class j is
    underpredicted relative to c, γ_j < 1 that its odds against c are too extreme, γ_j > 1 that they are not extreme
    enough.

    Statistic: χ² ≥ 0 with 2(K − 1) degrees of freedom. Two classes give Cox's regression. Effect, in probability units:
    the mean total variation between the predictions and the fitted map. Parts, with asymptotic p-values: `joint` with
    all three statistics and, for the model variance without weights, the posterior probability of calibration by BIC;
    each class with τ and γ, standard errors and 95 % limits (those of δ are those of τ exponentiated) and the Wald test
    of both, with Holm's p-value; Wald tests that all τ are 0 (`shift`), all γ are 1 (`scale`) and all γ are equal
    (`equal-scales`, in which case the baseline does not matter). If no finite estimates exist (note TN217), they and
    their tests are undefined and the likelihood ratio is its limit.

    Rows on which a calibrator was fitted cannot test it. If the statistic is 0 by construction, as after a maximum
    likelihood fit with the same baseline, the test is refused (TO206). If such a small statistic has probability below
    10⁻⁶, note TN238 reports it (as for fits that were rounded or tallied, binning or isotonic regression of two
    classes, and logistic regression). Penalized fits of two classes, fits with another baseline, and other maps are not
    detected.

    The alternative, and therefore p, depends on the baseline (`baselines=True` shows by how much) and on `min_prob`.
    The test has power against linear maps of the log odds only, so a large p-value does not prove calibration. With
    `min_prob` the parts contain the statistic at a tenth and at ten times its value, if it clipped anything. Outcomes
    of predicted probability 0 are evidence of their own (note TN235).

    Shapes: binary and joint views. With weights the likelihood ratio is adjusted, and score and Wald statistics use the
    sandwich of the model variance. With `cluster=` and the asymptotic null only clusters are independent: the
    covariance of the estimates is the jackknife's, leaving out one cluster at a time, and the null distribution is
    Hotelling's T² with the effective number of clusters (`units` in `joint`). ``variance="empirical"`` does the same
    with rows as clusters. The Wald form, the default there, rejected calibrated predictions in 0 to 8 % of simulated
    samples at the 5 % level, with equal clusters (20 of 5 rows: 0 to 4 %) and unequal ones (one of 200 with forty of 5:
    0 to 4 %; Zipf-distributed sizes: 0 to 8 %; three of 300 with 300 of 3: 0 to 5 %). With few clusters, or a few
    dominating ones, it has little power. If the effective number of clusters does not exceed the degrees of freedom,
    the score statistic is used with T² of all clusters (2 to 4 % there). From a tally p is the mean of its cell. Cost:
    O(nK²) per Newton step, about 6 steps, K times that for all baselines; redraws O(nK) per draw; the jackknife of G
    clusters O(nK²) and at most 2K steps of O(nK + GK²).

    References
    ----------
    .. [1] Vennos, Xing & Franck (2026).

    Examples
    --------
    >>> import trueodds as to
    >>> preds = to.Predictions([0, 1, 1, 2], [[0.6, 0.3, 0.1], [0.1, 0.6, 0.3]] * 2)
    >>> verdict = to.test(preds, "mcllo", form="score")
    >>> verdict.settings["form"], verdict.parts["joint"]["df"]
    ('score', 4.0)
    """

    name: ClassVar[str] = "mcllo"
    lens: ClassVar[str | None] = "canonical"
    accepts_joint_views: ClassVar[bool] = True
    clustered_null: ClassVar[str] = "the statistic is Hotelling's T² of clusters"
    estimates_by_cluster: ClassVar[bool] = True
    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "importance weights: the variance grows with their squares",
        "one statistic": "redraws use the score statistic, which needs no fit per draw",
    }

    form: Annotated[str, OneOf(FORMS)] | None = None
    baseline: Integer | str | None = None
    min_prob: MinProb = 0.0
    variance: Annotated[str, OneOf(VARIANCES)] | None = None
    baselines: bool = False
    prior: Probability = DEFAULT_PRIOR

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.null == "redraw" and (self.form not in (None, "score") or self.variance == "empirical"):
            raise InputError(
                "TO205",
                "⟨null='redraw'⟩ uses the score statistic with the model variance.",
                f"form={self.form!r}, variance={self.variance!r}",
                "Omit both.",
            )
        check_baseline(self.baseline)

    @property
    def asymptotic_null(self) -> str:  # type: ignore[override]
        """χ², or Hotelling's T² if the variance is estimated."""
        distribution = "Hotelling's T² of rows" if self.variance == "empirical" else "χ²"
        return f"the statistic is {distribution}"

    def describe_null(self, results: Sequence[Sequence[ViewResult]], *, clustered: bool) -> str:
        """Description of the asymptotic distribution, with its degrees of freedom if they are equal for all views."""
        df = {float(result.parts["joint"]["df"]) for lens_results in results for result in lens_results}
        is_hotelling = clustered or self.variance == "empirical"
        return describe_degrees_of_freedom(
            self.clustered_null if clustered else self.asymptotic_null,
            df,
            "dimension" if is_hotelling else "degree of freedom",
        )

    @property
    def recommended_alternative(self) -> str:
        return "⟨null='redraw'⟩" + (" without variance" if self.variance == "empirical" else "")

    def __call__(
        self,
        preds: Predictions,
        lenses: Sequence[Lens],
        rng: np.random.Generator,
        progress: FractionProgress | None = None,
    ) -> Verdict:
        """Test one lens, or a family of several lenses; a baseline name is resolved to its index."""
        if isinstance(self.baseline, str):
            test = replace(self, baseline=resolve_class_name(self.baseline, preds.classes))
            return test(preds, lenses, rng, progress)
        return super().__call__(preds, lenses, rng, progress)

    def from_tally(self, tally: Tally, lenses: Sequence[Lens], rng: np.random.Generator) -> Verdict:
        """Test the cells of a tally; a baseline name is resolved to its index."""
        if isinstance(self.baseline, str):
            test = replace(self, baseline=resolve_class_name(self.baseline, tally.classes))
            return test.from_tally(tally, lenses, rng)
        return super().from_tally(tally, lenses, rng)

    def evaluate(self, view: View) -> ViewResult:
        """The statistic, the estimates, and tests of subsets of the parameters."""
        units = _rows_as_units(view, self.name) if self.variance == "empirical" else None
        return self._evaluate_with_units(view, units, {"variance": self.variance or "model"})

    def evaluate_with_clusters(self, view: View, cluster: Array) -> ViewResult:
        """The result of `evaluate` with the variance estimated from the score sums of each cluster.

        With redrawn labels the statistic of the test has the model variance, as those of the draws have, and only the
        parts use the variance of clusters.
        """
        if self.null == "redraw":
            by_cluster = replace(self, null="asymptotic", redraw="labels", form=None, variance=None)
            parts = by_cluster.evaluate_with_clusters(view, cluster).parts
            result = self.evaluate(view)
            return replace(result, parts=parts, notes=(*result.notes, clustered_redraw_note()))
        if self.variance is not None:
            raise InputError(
                "TO205",
                f"The {self.variance} variance assumes independent rows, and these rows are clustered.",
                f"⟨cluster=⟩ with variance={self.variance!r}",
                "Omit variance to estimate it from the clusters.",
            )
        units = IndependentUnits.from_clusters(view.w, cluster)
        return self._evaluate_with_units(view, units, {"variance": "clusters", "clusters": units.n_units})

    def degrees_of_freedom(self, view: View) -> int | None:
        """Number of identified parameters, at most two per class but the baseline; None for other forms."""
        if self.form not in (None, "likelihood-ratio") or self.null == "redraw" or self.variance == "empirical":
            return None
        return MclloModel.from_view(view, self.baseline, self.min_prob, self.name).n_identified or None

    def cell_statistic(self, view: View) -> CellFunction:
        model = MclloModel.from_view(view, self.baseline, self.min_prob, self.name)

        def statistics_of_draws(w: Array, _wp: Array, wy: Array) -> Array:
            """Score statistic of each draw, (draws,)."""
            return model.score_statistics(wy if view.joint else np.stack([w - wy, wy], axis=-1))

        return CellFunction.from_rows(view, statistics_of_draws)

    def _evaluate_with_units(
        self, view: View, units: IndependentUnits | None, variance_settings: dict[str, Any]
    ) -> ViewResult:
        """The result with the model variance, or that of independent `units`; raises TO206 for fits to these rows.

        `variance_settings` are the reported settings of the variance.
        """
        model = MclloModel.from_view(view, self.baseline, self.min_prob, self.name, units)
        refuse_in_sample(model, view, self.name)
        if self.prior != DEFAULT_PRIOR and not (model.has_unit_weights and units is None):
            reason = "weights" if units is None else str(variance_settings["variance"])
            raise InputError(
                "TO205", "There is no posterior probability with weights, clusters or the empirical variance.",
                f"prior={self.prior!r} with {reason}", "Omit prior.",
            )  # fmt: skip
        form, all_statistics = self._form_used(model), mcllo_statistics(model)
        df = model.n_identified if form == "likelihood-ratio" else model.rank
        joint_part = self._joint_part(model, all_statistics, form, df)
        model_with_baseline = partial(MclloModel.from_view, view, min_prob=self.min_prob, name=self.name, units=units)
        model_with_min_prob = partial(MclloModel.from_view, view, self.baseline, name=self.name, units=units)
        baseline_parts, range_notes = (
            compare_baselines(model, model_with_baseline, form) if self.baselines and view.joint else ({}, ())
        )
        parts = {
            "joint": joint_part, **parameter_tests(model), **class_parameters(model, is_joint_view=view.joint),
            **compare_min_probs(model, model_with_min_prob, self.min_prob, form), **baseline_parts,
        }  # fmt: skip
        effect = float(weighted_sum(model.w, np.abs(model.fitted_probs - view.P).sum(axis=1))) / (
            2 * float(model.w.sum())
        )
        fit_notes = in_sample_notes(model, all_statistics[form], df, effective_unit_count(model, form))
        settings = {
            "form": form,
            "baseline": model.baseline,
            "min_prob": self.min_prob,
            **variance_settings,
            "prior": self.prior,
        }
        return ViewResult(
            statistic=joint_part["statistic"],
            pvalue=joint_part["pvalue"],
            effect=effect,
            parts=parts,
            settings_used=settings | {"baselines": self.baselines},
            notes=(*mcllo_notes(model, view, self.min_prob, form), *fit_notes, *range_notes),
            asymptotic_warnings=asymptotic_warnings(model, form),
        )

    def _joint_part(self, model: MclloModel, all_statistics: dict[str, float], form: str, df: int) -> dict[str, float]:
        """The test of all parameters: its statistic, all three forms, and the posterior probability if it exists.

        The posterior is that of calibration, with the Bayes factor approximated by BIC.
        """
        joint_part = {
            "statistic": all_statistics[form],
            "df": float(df),
            "pvalue": tail_probability(model, df, all_statistics[form], form),
        }
        joint_part |= {name.replace("-", "_"): value for name, value in all_statistics.items()}
        if model.estimate_covariance is not None and model.estimate_covariance.effective_units is not None:
            joint_part["units"] = model.estimate_covariance.effective_units
        if model.has_unit_weights and model.units is None:
            bic_difference = df * np.log(max(model.n.sum(), 1)) - likelihood_ratio_statistic(model)
            joint_part["posterior"] = float(expit(bic_difference / 2 + logit(self.prior)))
        return joint_part

    def _form_used(self, model: MclloModel) -> str:
        """The requested form, or the one whose size is closest to the nominal level."""
        if self.form is not None or self.null == "redraw":
            return self.form or "score"
        if model.units is None or not model.mle.converged:
            return "likelihood-ratio"
        n_units = effective_unit_count(model, "wald")
        has_wald_test = model.covariance is not None and n_units is not None and n_units > model.rank
        return "wald" if has_wald_test else "score"


def _rows_as_units(view: View, name: str) -> IndependentUnits:
    """Each row as an independent unit; raises InputError for cells of several rows. `name` is that of the test."""
    if not view.is_rows and (view.n > 1).any():
        raise InputError(
            "TO403",
            f"The empirical variance of {name} requires the rows.",
            f"{len(view):,} cells of {view.n_rows:,} rows",
            "Use ⟨mode='exact'⟩, or variance='model'.",
        )
    return IndependentUnits.from_rows(view.w)
