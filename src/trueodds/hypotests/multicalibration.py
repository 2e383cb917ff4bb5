"""The multicalibration error: the largest cumulative calibration error of any subgroup, in standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.formatting import format_number, format_pvalue_relation
from trueodds.core.json_files import strict_json
from trueodds.core.printable import to_printable
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.cumulative import CumulativeRange
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.pvalues import pvalue

ALL_ROWS = "all rows"


@dataclass(frozen=True, slots=True)
class MulticalibrationError:
    r"""Multicalibration error: the largest standardized cumulative residual of any subgroup.

    .. math:: \mathrm{MCE} = \sigma_0 \max_g \frac{\mathrm{ECCE}_g}{\sigma_g}, \quad
        \sigma_g = \frac{\sqrt{\sum_{i \in g} w_i^2 p_i (1 - p_i)}}{\sum_{i \in g} w_i}

    with ECCE-R of the rows of each group (see `ecce_r`), and all rows as group 0. Since σ decreases with the square
    root of the number of rows, ECCE/σ weights every group by its signal-to-noise ratio: by ECCE-R times the square root
    of the group's share, divided by the standard deviation of one outcome. Units: `value` in probability, ≥ 0,
    comparable with the ECCE-R of all rows, which is a lower bound; `sigma` in standard errors. 0 is best. Bias: upward,
    increasing with the number of groups; `noise_floor` is its mean for a calibrated model.

    Source: Guy et al. (2025), arXiv:2506.11251, as implemented and documented by the authors in MCGrad (the text of the
    paper was not available): ECCE-R, σ, the maximum including all rows as a group, and the factor σ₀. Without ties
    `value` and `sigma` agree with MCGrad 0.1.5 to its seven digits. This project's own: the p-value, which is that of
    the maximum over all groups in joint redraws of labels (MCGrad's is that of the worst group, unadjusted); equal
    scores form one step, so ties do not depend on row order; one vote is drawn per row. With clusters σ still assumes
    independent rows, while the p-value accounts for the clusters.
    """

    value: float  # in probability
    sigma: float  # in standard errors
    pvalue: float  # of the maximum over all groups
    # Label of the group with the largest standardized cumulative error. It can be another group than the one with the
    # strongest evidence of another error, which a result by group calls `worst`.
    worst: str
    noise_floor: float  # mean value of a calibrated model, in probability
    groups: Mapping[str, float]  # ECCE/σ of each, in standard errors
    min_pvalue: float = 0.0  # the smallest p-value that the number of redraws allows

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        p = format_pvalue_relation(self.pvalue, self.min_pvalue, cutoff=0)
        return to_printable(
            f"multicalibration error {format_number(self.value)} · p {p} · noise floor "
            f"{format_number(self.noise_floor)} · largest for {self.worst}, {self.sigma:.3g} standard errors"
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert the error to a dictionary that can be serialized as JSON."""
        return {
            "value": strict_json(self.value),
            "sigma": strict_json(self.sigma),
            "pvalue": strict_json(self.pvalue),
            "worst": self.worst,
            "noise_floor": strict_json(self.noise_floor),
            "groups": strict_json(self.groups),
        }


def cumulative_error_estimands(preds: Predictions, lens: Lens, rows_by_group: Sequence[Array]) -> list[Estimand]:
    """ECCE-R of all rows, and of the rows of each group, as estimands.

    The list is empty if the lens has several views, or vectors.
    """
    overall = Estimand.from_predictions(CumulativeRange(), lens, preds)
    if len(overall.views) > 1 or overall.views[0].joint:
        return []
    return [
        overall,
        *(Estimand.from_predictions(CumulativeRange(), lens, preds, rows=rows) for rows in rows_by_group),
    ]


def multicalibration_error(
    estimands: Sequence[Estimand], draws_by_null: Sequence[Sequence[Array]], labels: Sequence[str]
) -> MulticalibrationError:
    """Return the multicalibration error from the estimands of `cumulative_error_estimands` and their null draws.

    `draws_by_null` has, for each null distribution, the draws (1, B) of every estimand; the larger p-value of several
    null distributions is reported, and the noise floor of the first. `labels` are those of the groups.
    """
    std_errors = np.array([null_standard_deviation(estimand.views[0]) for estimand in estimands])
    observed = _standardize_errors(np.array([estimand.values[0] for estimand in estimands]), std_errors)
    maxima_by_null = []  # largest standardized error of each draw, (B,)
    for draws in draws_by_null:
        group_draws = np.array([view_draws[0] for view_draws in draws])
        maxima_by_null.append(_standardize_errors(group_draws, std_errors[:, None]).max(axis=0))
    worst = int(np.argmax(observed))
    error_by_group = dict(zip([ALL_ROWS, *labels], map(float, observed), strict=True))
    return MulticalibrationError(
        value=_to_probability(float(observed[worst]), float(std_errors[0])),
        sigma=float(observed[worst]),
        pvalue=max(pvalue(float(observed[worst]), null_maxima) for null_maxima in maxima_by_null),
        worst=list(error_by_group)[worst],
        noise_floor=_to_probability(float(maxima_by_null[0].mean()), float(std_errors[0])),
        groups=error_by_group,
        min_pvalue=1 / (1 + min(len(null_maxima) for null_maxima in maxima_by_null)),
    )


def null_standard_deviation(view: View) -> float:
    """Null standard deviation σ of the mean residual of a view.

    >>> round(null_standard_deviation(View(p=[0.2, 0.8], y=[1, 0])), 4)
    0.2828
    """
    return math.sqrt(max(float(view.sums("wwv").sum()), 0.0)) / view.total


def _standardize_errors(errors: Array, std_errors: Array) -> Array:
    """Divide errors by their null standard errors (groups,) or (groups, 1); a positive error over 0 is infinite."""
    has_variance = np.broadcast_to(std_errors > 0, errors.shape)
    without_variance = np.where(errors > 1e-12, np.inf, 0.0)  # smaller errors are rounding errors
    standardized = np.divide(errors, std_errors, out=np.zeros_like(errors), where=has_variance)
    return np.where(has_variance, standardized, without_variance)


def _to_probability(sigma: float, std_error: float) -> float:
    """Convert an error of `sigma` standard errors to probability; infinity is kept."""
    return sigma if math.isinf(sigma) else sigma * std_error
