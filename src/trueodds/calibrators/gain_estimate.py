"""Estimate the gain in log loss of recalibrated probabilities, and its standard errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.calibrators._glm.log_probabilities import Probabilities, to_logs, to_probabilities
from trueodds.calibrators.cross_validation import mean_and_standard_error
from trueodds.calibrators.uniform_mixture import logs_floored_at_share
from trueodds.core.typing import Array
from trueodds.tallies.proper_score_sums import log_loss_from_logs


class GainEstimate(NamedTuple):
    """The estimated gain in log loss, with the quantities from which it is tested; all per row."""

    gain: float  # nats, with the unmodified probabilities where their loss is finite
    se: float  # standard error of the gain
    se_if_calibrated: float  # the same, at least that implied by P
    excess_gain: float  # nats above the mean of the null distribution, with limited logarithms
    null_std_error: float  # standard error of the excess if the folds were independent
    design_effect: float  # ratio of its variance to that of independent rows; 1 without clusters
    is_positive: bool  # whether the gain with limited logarithms is above 0
    log_loss_before: float
    log_loss_after: float


def estimate_gain(
    P: Probabilities, logs: Array, Y: Array, w: Array, uniform_share: Array, cluster: Array | None
) -> GainEstimate:
    """Estimate the gain of the log-probabilities `logs` over P, and its excess over the null distribution."""
    p = to_probabilities(P)
    log_ratios = logs - logs_floored_at_share(p, uniform_share)
    p = p / p.sum(axis=1, keepdims=True)
    expected = (p * log_ratios).sum(axis=1)  # gain of each row if P is calibrated
    variance = np.maximum((p * log_ratios * log_ratios).sum(axis=1) - expected**2, 0.0)
    gains = (Y * log_ratios).sum(axis=1)
    excess_gain, null_std_error = mean_and_standard_error(gains - expected, w, cluster)
    design_effect = 1.0
    if cluster is not None and null_std_error > 0:
        design_effect = max(1.0, (null_std_error / mean_and_standard_error(gains - expected, w)[1]) ** 2)
    loss_before, loss_after = log_loss_from_logs(to_logs(P), Y), log_loss_from_logs(logs, Y)
    gain, se = mean_and_standard_error(
        loss_before - loss_after if np.isfinite(loss_before).all() else gains, w, cluster
    )
    # Thirty correct predictions at 0.9 have no empirical variance: use at least that implied for single labels, by P if
    # it may be calibrated, else by the recalibrated probabilities.
    se_if_calibrated = se
    if ((Y == 0) | (Y == 1)).all():
        implied_std_error = float(np.sqrt(w * w @ variance) / w.sum())
        se_if_calibrated, null_std_error = max(se, implied_std_error), max(null_std_error, implied_std_error)
        q = np.exp(logs)
        variance_after = np.maximum((q * log_ratios**2).sum(axis=1) - (q * log_ratios).sum(axis=1) ** 2, 0.0)
        se = max(se, float(np.sqrt(w * w @ variance_after) / w.sum()))
    return GainEstimate(
        gain=gain,
        se=se,
        se_if_calibrated=se_if_calibrated,
        excess_gain=excess_gain,
        null_std_error=null_std_error,
        design_effect=design_effect,
        is_positive=float(w @ gains) > 0,
        log_loss_before=float(w @ loss_before / w.sum()),
        log_loss_after=float(w @ loss_after / w.sum()),
    )
