"""Evidential calibration: belief and plausibility of each class from the likelihood of the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np

from trueodds.calibrators._credal.belief_functions import Beliefs, ShiftSlopeBeliefs, SlopeBeliefs
from trueodds.calibrators._credal.likelihood_contour import LikelihoodSurface, group_by_score
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    floored_logs,
    log_ratio,
    logs_for_slopes,
    replacement_notes,
    to_logs,
    to_probabilities,
)
from trueodds.calibrators._glm.logistic_regression import (
    fit_smoothed,
    intercept_and_score,
    nonincreasing_curve_notes,
    smoothed_targets,
)
from trueodds.calibrators._glm.newton import minimize_newton
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, PassCount, invalid_value_error
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_linear

_SCORE_KINDS = ("log p", "probabilities")
_OUTPUT_KINDS = ("pignistic", "plausibility", "point")


@dataclass(frozen=True, eq=False)
class EvidentialMap(CalibrationMap):
    """The likelihood contour of the parameters, and the kind of probabilities made of it."""

    name: ClassVar[str] = "evidential"
    takes_logs: ClassVar[bool] = True
    on: Annotated[str, OneOf(_SCORE_KINDS)]
    output: Annotated[str, OneOf(_OUTPUT_KINDS)]
    n_passes: PassCount
    # Smallest probability of the fit on log p; used if the slope is negative.
    min_prob: Annotated[MinProb, OMIT_DEFAULT] = MIN_PROB
    # Of one parameter, or of shift and slope for two classes.
    contour: SlopeBeliefs | ShiftSlopeBeliefs = field(kw_only=True)

    def __post_init__(self) -> None:
        if not self.slope < 0:  # then `min_prob` is not used, nor saved
            object.__setattr__(self, "min_prob", MIN_PROB)

    @property
    def slope(self) -> float:
        """The estimate of the slope."""
        return float(self.contour.theta if isinstance(self.contour, SlopeBeliefs) else self.contour.theta[1])

    def apply(self, P: Probabilities) -> Array:
        """Pignistic probabilities, normalized plausibilities, or the probabilities of the point estimate."""
        scores = self._to_scores(P)
        if self.output == "point":
            return self.contour.plug_in_probabilities(scores)
        beliefs = self.contour.beliefs(scores)
        q = beliefs.pignistic if self.output == "pignistic" else beliefs.plausibility
        return q / q.sum(axis=1, keepdims=True)

    def interval(self, P: Probabilities) -> tuple[Array, Array]:
        """Belief and plausibility of each class."""
        beliefs = self.beliefs(P)
        return beliefs.belief, beliefs.plausibility

    def beliefs(self, P: Probabilities) -> Beliefs:
        """Belief, plausibility and pignistic probability of each row, (n, K) each."""
        return self.contour.beliefs(self._to_scores(P))

    def _to_scores(self, P: Probabilities) -> Array:
        """The scores (n, K) of a contour of one parameter, or (n,) of one with shift and slope."""
        if self.on == "probabilities":
            p = to_probabilities(P).astype(np.float64, copy=False)
            return p[:, 1] if isinstance(self.contour, ShiftSlopeBeliefs) else p
        logs = logs_for_slopes(to_logs(P), self.slope, self.min_prob)
        return logs[:, 1] - logs[:, 0] if isinstance(self.contour, ShiftSlopeBeliefs) else logs

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...] | None:
        """The mixture of the point estimate; the other outputs have none."""
        if self.output != "point" or self.on != "log p":
            return None
        shift = 0.0 if isinstance(self.contour, SlopeBeliefs) else float(self.contour.theta[0])
        bias = np.zeros(k)
        bias[1] = shift
        return (SoftmaxTerm(1.0, np.full(k, self.slope), bias, self.min_prob),)

    def describe(self) -> str:
        """The parameter, such as `θ = 0.45`, or slope and intercept."""
        if isinstance(self.contour, SlopeBeliefs):
            return f"θ = {format_number(self.contour.theta)}"
        tau, gamma = self.contour.theta.tolist()
        return f"slope {format_number(gamma)}, intercept {format_number(tau)}"

    def check_saved(self, k: int) -> None:
        """Check that the contour is one for K classes."""
        if k != 2 and isinstance(self.contour, ShiftSlopeBeliefs):
            raise invalid_value_error("contour", f"of one parameter for {k} classes", "a shift and a slope")


@dataclass(frozen=True)
class EvidentialSpec(CalibratorSpec):
    r"""Evidential calibration: belief and plausibility of each class from the likelihood of the parameters.

    All parameter values that fit nearly as well as the best one contribute. The interval from belief to plausibility
    shows how precisely the rows determine the recalibrated probability, and shrinks as rows are added. The method does
    not aim at more accurate probabilities. For several classes it is a reconstruction (see Notes).

    Parameters
    ----------
    on : {"log p", "probabilities"}, default="log p"
        Scores s: log-probabilities, which make a temperature that nearly includes the identity, or probabilities,
        which cannot leave them unchanged.
    output : {"pignistic", "plausibility", "point"}, default="pignistic"
        Probabilities that the map returns: mass of sets of classes split evenly, which lies between belief and
        plausibility; plausibilities divided by their sum; or the probabilities of the maximum likelihood estimate.
    parameters : {1, 2}, optional
        1 is a temperature. 2 is a shift and a slope of the log odds (or of p) for two classes, the contour of Platt's
        sigmoid. By default 2 for two classes, else 1.
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit takes log(max(p, `min_prob`)). Where log-probabilities are
        known (`Predictions.from_logits`), the default applies to exact zeros only.

    Notes
    -----
    .. math:: q = \mathrm{softmax}(\theta s), \qquad pl(\theta) = L(\theta) / L(\hat\theta), \qquad
        A(\gamma, Z) = \{j : F_{j-1}(\theta) \le Z < F_j(\theta)
        \text{ for a } \theta \text{ with } pl(\theta) \ge \gamma\}

    L is the likelihood of smoothed targets, (n_y + 1)/(n_y + K) for the observed class y and 1/(n_y + K) for the
    others. γ and Z are uniform, F are cumulative probabilities, and A is the random set of classes that remain
    possible. Belief is P(A = {j}), plausibility P(j ∈ A).

    The text of the multiclass paper was not available: the form with one parameter is a reading of its abstract and
    of the binary paper, and may differ from the authors'. Through F, beliefs depend on the order of the classes, by .03
    with 60 rows. With two parameters the contour of more than 2,048 distinct scores is that of as many groups of
    neighbors.

    Cost: O(nK) for each of some 25 passes; to apply, O(nK log K) times 32.

    References
    ----------
    .. [1] Xu, Davoine & Denœux (2015).
    .. [2] Xu, Davoine, Zha & Denœux (2016).

    Examples
    --------
    >>> P = np.array([[0.1, 0.9]] * 4)
    >>> fitted = EvidentialSpec(parameters=1).fit(P, np.eye(2)[[1, 1, 1, 0]], np.ones(4))
    >>> [end[0, 1].round(2).tolist() for end in fitted.interval(P)]
    [0.39, 0.89]
    """

    name: ClassVar[str] = "evidential"
    keeps_argmax: ClassVar[bool] = False
    takes_logs: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = EvidentialMap
    candidate: ClassVar[bool] = False
    exemptions: ClassVar[Mapping[str, str]] = {
        "class order": "sets of classes are made from cumulative probabilities, so neighboring classes share mass"
    }
    on: Annotated[str, OneOf(_SCORE_KINDS)] = "log p"
    output: Annotated[str, OneOf(_OUTPUT_KINDS)] = "pignistic"
    parameters: Literal[1, 2] | None = None
    min_prob: MinProb = MIN_PROB

    def fit(self, P: Probabilities, Y: Array, w: Array) -> EvidentialMap:
        """Fit the likelihood contour."""
        k = P.shape[1]
        if self.parameters == 2 and k > 2:
            raise InputError("TO203", "parameters=2 needs two classes.", f"{k} classes", "Leave parameters out.")
        contour, n_passes = (
            self._fit_slope(P, Y, w) if k > 2 or self.parameters == 1 else self._fit_shift_and_slope(P, Y[:, 1], w)
        )
        return EvidentialMap(self.on, self.output, n_passes, self.min_prob, contour=contour)

    def _fit_slope(self, P: Probabilities, Y: Array, w: Array) -> tuple[SlopeBeliefs, int]:
        """The contour of one parameter θ, and the number of passes."""
        S = floored_logs(P, self.min_prob) if self.on == "log p" else to_probabilities(P).astype(np.float64)
        S -= S.max(axis=1, keepdims=True)
        shares, features = Y @ _class_smoothed_targets(w @ Y), S[:, :, None]

        def likelihood_at_theta(theta: float) -> Likelihood:
            """Likelihood of θ and its derivatives."""
            return softmax_linear(features, shares, w, np.array([theta]))

        # Every row is uniform, so that the likelihood is constant. (The largest score of each row is 0.)
        if not (w * S.min(axis=1)).any():
            return SlopeBeliefs.from_single_theta(1.0), 0
        optimum = minimize_newton(lambda theta: likelihood_at_theta(float(theta[0])), np.zeros(1))
        contour, n_passes = SlopeBeliefs.from_likelihood(float(optimum.theta[0]), likelihood_at_theta)
        return contour, n_passes + optimum.n_passes

    def _fit_shift_and_slope(self, P: Probabilities, y: Array, w: Array) -> tuple[ShiftSlopeBeliefs, int]:
        """The contour of shift and slope for two classes, and the number of passes; y (n,) are shares."""
        x = log_ratio(P, self.min_prob) if self.on == "log p" else to_probabilities(P)[:, 1].astype(np.float64)
        optimum = fit_smoothed(intercept_and_score(x), y, w, np.zeros(2))
        score_groups = group_by_score(x, smoothed_targets(y, w), w).pool_neighbors()
        surface = LikelihoodSurface.around_minimum(score_groups, optimum.theta)
        return ShiftSlopeBeliefs.from_surface(surface), optimum.n_passes

    def notes(self, calibration_map: CalibrationMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        """Notes on probabilities replaced by `min_prob`, and on uninformative scores."""
        assert isinstance(calibration_map, EvidentialMap)
        fit_notes = replacement_notes(P, Y, self.min_prob) if self.on == "log p" else []
        contour = calibration_map.contour
        if isinstance(contour, SlopeBeliefs):
            is_undetermined = contour.low[-1] == contour.theta
            is_nonincreasing = contour.theta <= 0 or is_undetermined
        else:
            is_nonincreasing = contour.theta[1] <= 0
        return [*fit_notes, *nonincreasing_curve_notes(int(is_nonincreasing))]


def _class_smoothed_targets(n_events: Array) -> Array:
    """The smoothed target shares (K, K) for each observed class, given its number of events."""
    k = len(n_events)
    return (1 + np.diag(n_events)) / (n_events + k)[:, None]
