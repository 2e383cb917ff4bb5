"""Stratified folds that keep clusters whole, losses of held-out rows, and the test whether a recalibration gains."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from trueodds.calibrators._glm.log_probabilities import Probabilities, to_logs, to_probabilities
from trueodds.calibrators.uniform_mixture import original_logs
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.typing import Array
from trueodds.kernels.bootstrap import argsort_bins
from trueodds.tallies import proper_score_sums
from trueodds.tallies.proper_score_sums import log_loss_from_logs


def stratified_folds(Y: Array, folds: int, cluster: Array | None, rng: np.random.Generator) -> Array:
    """The fold of each row (n,), 0 to folds − 1, with sizes and class counts as equal as possible.

    The class of a row is that of its largest entry in Y (n, K). `cluster` (n,) labels rows that share a fold.

    >>> rng = np.random.default_rng(0)
    >>> np.bincount(stratified_folds(np.eye(2)[[0, 1] * 5], 5, None, rng)).tolist()
    [2, 2, 2, 2, 2]
    """
    return _stratified_positions(Y, cluster, rng) % folds


def stratified_holdout(Y: Array, share: float, cluster: Array | None, rng: np.random.Generator) -> Array:
    """Mask (n,) of the rows that are held out: a `share` of the units, equal in every class.

    The class of a row is that of its largest entry in Y (n, K). `cluster` (n,) labels rows that stay together.

    >>> int(stratified_holdout(np.eye(2)[[0, 1] * 50], 0.3, None, np.random.default_rng(0)).sum())
    30
    """
    positions = _stratified_positions(Y, cluster, rng)
    # Every 1/share-th position; the tolerance keeps rounding errors of the products from moving one.
    held_out = np.floor((positions + 1) * share + 1e-9) > np.floor(positions * share + 1e-9)
    # Both parts have at least one unit.
    if not held_out.any():
        return positions == positions.max()
    return positions != 0 if held_out.all() else held_out


def count_units(n: int, cluster: Array | None) -> int:
    """Number of independent units: the clusters if there are any, else the n rows."""
    return n if cluster is None else len(np.unique(cluster))


def _stratified_positions(Y: Array, cluster: Array | None, rng: np.random.Generator) -> Array:
    """Position of each row's unit when units are ordered by class, in random order within each class.

    Folds that are assigned in this order in turn are stratified. If rows were resampled by a bootstrap, pass the
    original row numbers as `cluster`, so that copies of a row stay together.
    """
    label = Y.argmax(axis=1)
    if cluster is None:
        unit_of_row, stratum = np.arange(len(Y)), label
    else:
        unit_of_row = np.unique(cluster, return_inverse=True)[1].reshape(-1)
        stratum = _majority_label(unit_of_row, label, Y.shape[1])
    shuffled_units = np.empty(len(stratum), dtype=np.int64)
    shuffled_units[rng.permutation(len(stratum))] = np.arange(len(stratum))
    order = shuffled_units[argsort_bins(stratum[shuffled_units], Y.shape[1])]
    position_of_unit = np.empty(len(stratum), dtype=np.int64)
    position_of_unit[order] = np.arange(len(stratum))
    return position_of_unit[unit_of_row]


def _majority_label(unit_of_row: Array, label: Array, k: int) -> Array:
    """The most frequent label of each unit, (units,); the lowest of several."""
    # A pair of unit and label is one number: unit · k + label.
    pairs, counts = np.unique(unit_of_row * k + label, return_counts=True)
    order = np.lexsort((pairs % k, -counts, pairs // k))
    first_of_unit = np.unique(pairs[order] // k, return_index=True)[1]
    return pairs[order][first_of_unit] % k


class RowLosses(NamedTuple):
    """Losses of each row."""

    log_loss: Array  # (n,) nats
    brier: Array  # (n,)


def row_losses(Q: Array, Y: Array) -> RowLosses:
    """Losses of predictions Q (n, K) with outcome shares Y (n, K); two classes are scored as a binary problem."""
    q, y = (Q[:, 1], Y[:, 1]) if Q.shape[1] == 2 else (Q, Y)
    return RowLosses(proper_score_sums.log_loss(Q, Y), proper_score_sums.brier(q, y))


class MeanEstimate(NamedTuple):
    """A weighted mean and its standard error."""

    mean: float
    se: float  # infinite for a single unit


def mean_and_standard_error(differences: Array, w: Array, cluster: Array | None = None) -> MeanEstimate:
    """Weighted mean of a difference per row (n,), and its standard error.

    Rows of one cluster are summed first, because they are not independent.

    >>> mean, se = mean_and_standard_error(np.array([0.0, 2.0]), np.ones(2))
    >>> mean, round(se, 6)
    (1.0, 1.0)
    """
    total_weight = float(w.sum())
    mean = float(weighted_sum(w, differences)) / total_weight
    deviations: Array = w * (differences - mean)
    if cluster is not None:
        deviations = np.bincount(np.unique(cluster, return_inverse=True)[1].reshape(-1), deviations)
    n_units = len(deviations)
    if n_units < 2:
        return MeanEstimate(mean, np.inf)
    return MeanEstimate(
        mean, float(np.sqrt(n_units / (n_units - 1) * weighted_sum(deviations, deviations)) / total_weight)
    )


def accuracy(Q: Array, Y: Array, w: Array) -> float:
    """Weighted share of rows whose predicted class is correct; of tied classes the first is predicted."""
    return float(weighted_sum(w, Y[np.arange(len(Y)), Q.argmax(axis=1)]) / w.sum())


def count_label_flips(P: Array, Q: Array) -> int:
    return int((P.argmax(axis=1) != Q.argmax(axis=1)).sum())


CONFIRMED, NOT_ENOUGH_ROWS, NO_GAIN = "confirmed", "too few rows", "no gain"
GAIN_NOT_ESTABLISHED = "gain not established"  # the miscalibration is confirmed, but the gain may be 0
TRAINING_ROWS = "not judged"  # on rows that the model was trained on
METHOD, PROCEDURE = "method", "procedure"  # whose gain is estimated: one calibrator's, or that of choice and fit

MIN_ROWS = 20  # rows (clusters) below which nothing is confirmed
POWER = 0.8  # for required rows, detectable gains and undetected harm; texts of notes and reports state it as 80 %
_MAX_ROWS_FACTOR = 100  # times the available rows: a gain that needs more counts as none
_MIN_CLUSTERS = 40  # below which the p-value is doubled
# Factor of the variance: two folds test each other's fits, so each product of their scores enters the sum twice.
# With one direction t is skewed; without the doubling, the test rejects in 3.9 % of cases at level 5 % and in 0.8 % at
# level 1 %. With two directions it rejects in 5.7 % and 1.3 %.
_CROSS_FIT_VARIANCE_FACTOR = 2.0


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The cross-fitted gain in mean log loss, and its test."""

    outcome: str  # CONFIRMED, GAIN_NOT_ESTABLISHED, NOT_ENOUGH_ROWS, NO_GAIN or TRAINING_ROWS
    gain: float  # nats per row; positive is better
    se: float  # standard error of the gain
    low: float  # lower confidence limit of the gain, at one-sided level 1 − alpha
    high: float  # upper confidence limit, at the same one-sided level
    pvalue: float  # one-sided
    required_rows: float  # rows that would confirm such a gain with 80 % power; infinite without a gain
    # Gain of one parameter that is detectable with 80 % power on these rows; infinite if no gain can be that large.
    detectable: float
    variance_factor: float  # gain that is detectable by this test, in multiples of `detectable`
    log_loss_before: float  # of the original probabilities; infinite if an observed outcome had probability 0
    log_loss_after: float  # cross-fitted
    mixing: float  # largest share of the uniform distribution in the maps
    alpha: float  # level of the test
    gain_of: str  # METHOD or PROCEDURE; the folds of a procedure may have chosen other calibrators than the applied one

    @property
    def confirmed(self) -> bool:
        """Whether the test is significant, which confirms that P is miscalibrated in the direction of the maps."""
        return self.outcome in (CONFIRMED, GAIN_NOT_ESTABLISHED)

    def with_loss_of_all_rows(self, before: float) -> Confirmation:
        """The result relative to `before`, the log loss of all rows, where the gain was estimated on a sample."""
        after = (
            before - self.gain if math.isfinite(before) and math.isfinite(self.log_loss_before) else self.log_loss_after
        )
        # More rows than this sample are never compared, so that a gain which needs more cannot be confirmed.
        outcome = NO_GAIN if self.outcome == NOT_ENOUGH_ROWS else self.outcome
        return replace(self, outcome=outcome, log_loss_before=before, log_loss_after=after)


def confirm_gain(
    P: Probabilities,
    logs: Array,
    Y: Array,
    w: Array,
    share: Array,
    *,
    alpha: float = 0.05,
    cluster: Array | None = None,
    one_parameter: bool = False,
) -> Confirmation:
    r"""Test whether maps that were fitted and chosen on other rows have a smaller log loss than P.

    P (n, K) are the original probabilities p, or their logarithms. `logs` (n, K) are the logarithms of the held-out
    recalibrated probabilities q, after mixing in a `share` (n, 1) of the uniform distribution; or (m, n, K) and
    (m, n, 1) for m assignments of the rows to folds, over which gains are averaged. Y (n, K) are outcome shares, w (n,)
    weights above 0, and `cluster` (n,) labels of rows that are not independent. `one_parameter` says that the map has
    one parameter and was named in advance; the variance is then not doubled.

    .. math:: g_{ik} = \log q_{ik} - \log p_{ik}, \quad
        t = \frac{\sum_i w_i\,(y_i - p_i) \cdot g_i}{\sqrt{2 \sum_i w_i^2 \operatorname{Var}_{p_i} g_i}}

    Null distribution: the gain Σ w y·g is compared with its distribution under redrawn labels. If P is calibrated, its
    mean is Σ w p·g ≤ 0, and its variance within a fold, whose map was fitted to the other folds, is the sum under the
    root. The sum is doubled because any two folds test each other's maps. Where outcomes vary more than P implies, in
    clusters or votes, their empirical variance is used.

    Test: a one-sided Student t test with one degree of freedom less than there are rows (clusters). A gain is confirmed
    only if it is positive too. With fewer than 40 clusters the p-value is doubled, because for calibrated predictions
    in 20 clusters the test would otherwise reject in 9 % of cases at the 5 % level. By concavity, the mean of t is
    positive exactly if some step from P towards q reduces the log loss.

    Interval: that of the mean paired gain. Unless P is rejected, its variance is at least the one that P implies. If
    every recalibrated predicted class is right, no row shows the loss of an error. Then the lower limit is at most the
    gain with the largest error rate that is compatible with no error in n rows (clusters): 1 − α^(1/n), about 3/n
    (Clopper–Pearson).

    Required rows: the smallest number with which the test rejects and the estimated gain is positive, each with 80 %
    power, if the estimated gain is the true one. A map that is fitted to more rows approaches the best one, whose gain
    is half of the excess Σ w (y − p)·g, so the excess counts as at most twice the gain.

    The test limits the logarithms of p below as mixing would, so that no single row decides; if any p is 0, all rows of
    p are mixed. The reported gain uses these logarithms only if the log loss of p is infinite. Cost: O(nK).

    >>> P, Y, share = np.array([[0.1, 0.9]] * 200), np.eye(2)[[1, 1, 1, 0] * 50], np.full((200, 1), 1e-3)
    >>> confirmation = confirm_gain(P, np.log(np.array([[0.25, 0.75]] * 200)), Y, np.ones(200), share)
    >>> confirmation.outcome, round(confirmation.gain, 2)
    ('confirmed', 0.09)
    """
    estimate = estimate_gain(P, logs, Y, w, share, cluster)
    variance_factor = 1.0 if one_parameter else _CROSS_FIT_VARIANCE_FACTOR
    null_std_error = estimate.null_std_error * math.sqrt(variance_factor)
    df = count_units(len(w), cluster) - 1
    detectable = detectable_gain(len(w) / estimate.design_effect, df, alpha)
    gain, excess_gain = estimate.gain, estimate.excess_gain
    pvalue, low, high, required_rows = 1.0, -np.inf, np.inf, np.inf
    if df >= 1 and null_std_error > 0:  # else the map changes nothing
        pvalue = float(stdtr(df, -excess_gain / null_std_error))
        if cluster is not None and df + 1 < _MIN_CLUSTERS:
            pvalue = min(1.0, 2 * pvalue)
    confirmed = pvalue <= alpha and estimate.is_positive
    se = estimate.se if confirmed else estimate.se_if_calibrated
    if df >= 1 and np.isfinite(se):
        quantile = float(stdtrit(df, 1 - alpha))
        max_error_rate = 1 - alpha ** (1 / min(df + 1, float(w.sum() ** 2 / weighted_sum(w, w))))
        low = gain - max(quantile * se, max_error_rate * estimate.unobserved_loss)
        high = gain + quantile * se
        if estimate.is_positive and excess_gain > 0 and gain > 0:
            power_quantile = float(stdtrit(df, POWER))
            required_rows = len(w) * max(
                ((quantile + power_quantile) * null_std_error / excess_gain) ** 2,
                variance_factor * detectable / gain,
                (power_quantile * se / gain) ** 2,
            )
    if confirmed:
        outcome = CONFIRMED if low > 0 else GAIN_NOT_ESTABLISHED
    else:
        outcome = NOT_ENOUGH_ROWS if required_rows <= _MAX_ROWS_FACTOR * len(w) else NO_GAIN
    return Confirmation(
        outcome=outcome,
        gain=gain,
        se=se,
        low=low,
        high=high,
        pvalue=pvalue,
        required_rows=required_rows,
        detectable=detectable if detectable < estimate.log_loss_before else math.inf,
        variance_factor=variance_factor,
        log_loss_before=estimate.log_loss_before,
        log_loss_after=estimate.log_loss_after,
        mixing=float(share.max()),
        alpha=alpha,
        gain_of=METHOD if one_parameter else PROCEDURE,
    )


def detectable_gain(n: float, df: int, alpha: float) -> float:
    """Gain in nats of a one-parameter map that n independent rows detect with 80 % power: about 3/n at the 5 % level.

    With noncentrality λ the gain is λ/2n and the mean of t is √λ. For clustered rows n is the number of rows divided by
    their design effect, and `df` is the number of clusters minus one.
    """
    if df < 1:
        return math.inf
    return float((stdtrit(df, 1 - alpha) + stdtrit(df, POWER)) ** 2 / (2 * n))


class GainEstimate(NamedTuple):
    """The estimated gain in log loss, with the quantities from which it is tested; all per row."""

    gain: float  # nats, with the unmodified probabilities where their loss is finite
    se: float  # standard error of the gain
    se_if_calibrated: float  # the same, at least that implied by P
    excess_gain: float  # nats above the mean of the null distribution, with limited logarithms
    null_std_error: float  # standard error of the excess if the folds were independent
    design_effect: float  # ratio of its variance to that of independent rows; 1 without clusters
    unobserved_loss: float  # gain minus that of an error of the predicted class if none was observed; otherwise 0
    is_positive: bool  # whether the gain with limited logarithms is above 0
    log_loss_before: float
    log_loss_after: float


def estimate_gain(
    P: Probabilities, logs: Array, Y: Array, w: Array, share: Array, cluster: Array | None
) -> GainEstimate:
    """Estimate the gain of the recalibrated log-probabilities `logs` (n, K) over P, and its excess over the null mean.

    The arguments are those of `confirm_gain`.
    """
    p = to_probabilities(P)
    smallest_log = np.log(share / P.shape[1])
    log_ratios = np.maximum(logs, smallest_log) - np.maximum(original_logs(P, share), smallest_log)
    log_ratios, logs = (array.reshape(-1, *Y.shape).mean(axis=0) for array in (log_ratios, logs))
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
    # The empirical variance of few rows may be far too small: thirty correct predictions at 0.9 have none. For single
    # labels use at least the variance that the probabilities imply: those of P if it may be calibrated, else the
    # recalibrated ones.
    se_if_calibrated = se
    if ((Y == 0) | (Y == 1)).all():
        implied_std_error = float(np.sqrt(weighted_sum(w * w, variance)) / w.sum())
        se_if_calibrated, null_std_error = max(se, implied_std_error), max(null_std_error, implied_std_error)
        q = np.exp(logs)
        variance_after = np.maximum((q * log_ratios**2).sum(axis=1) - (q * log_ratios).sum(axis=1) ** 2, 0.0)
        se = max(se, float(np.sqrt(weighted_sum(w * w, variance_after)) / w.sum()))
    return GainEstimate(
        gain=gain,
        se=se,
        se_if_calibrated=se_if_calibrated,
        excess_gain=excess_gain,
        null_std_error=null_std_error,
        design_effect=design_effect,
        unobserved_loss=_unobserved_loss(gain, logs, log_ratios, p, Y, w),
        is_positive=float(weighted_sum(w, gains)) > 0,
        log_loss_before=float(weighted_sum(w, loss_before) / w.sum()),
        log_loss_after=float(weighted_sum(w, loss_after) / w.sum()),
    )


def _unobserved_loss(gain: float, logs: Array, log_ratios: Array, p: Array, Y: Array, w: Array) -> float:
    """The gain minus its mean over the errors of the predicted classes that p expects; 0 if an error was observed."""
    rows, predicted = np.arange(len(p)), logs.argmax(axis=1)
    if (Y[rows, predicted] < 1).any():
        return 0.0
    errors = w[:, None] * p
    errors[rows, predicted] = 0
    return float(gain - (errors * log_ratios).sum() / errors.sum()) if errors.any() else 0.0
