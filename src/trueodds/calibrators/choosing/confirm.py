"""Does the fix help, or was it luck? Judged on rows that neither fitted nor chose it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from trueodds.calibrators.choosing.folds import units
from trueodds.calibrators.choosing.gain import accuracy, flips, losses, mean_and_error, mixed, mixing
from trueodds.tally.likelihood import softmax_linear

Array = NDArray[Any]

_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The gain in mean log loss on untouched rows, and whether chance alone would do."""

    confirmed: bool
    gain: float  # nats per row; positive is better
    se: float
    low: float  # the gain is at least this, with confidence 1 − alpha
    pvalue: float  # one-sided
    detectable: float  # the gain that would have been confirmed four times in five
    log_loss_before: float
    log_loss_after: float
    accuracy_before: float
    accuracy_after: float
    label_flips: int
    mixing: float


def confirm(
    P: Array,
    Q: Array,
    Y: Array,
    w: Array,
    *,
    n_fit: int,
    alpha: float = 0.05,
    cluster: Array | None = None,
) -> Confirmation:
    r"""Whether Q, recalibrated from P, has the smaller log loss on rows its fit on `n_fit` others has not seen.

    One-sided paired test of the mean gain, by Student's t with as many degrees of freedom as rows (clusters) less
    one. The same share 1/(n_fit + 1) of the uniform is mixed into both sides, so that neither can be infinite.
    The standard error is the larger of two: that of the gains seen, and that which they would have if the truth lay
    between P and Q where the gain is nil (one-hot labels only): thirty right answers said with .9 show no spread at
    all and yet prove little.
    P, Q, Y are (n, K), w (n,) > 0. Cost: O(nK).

    >>> P, Y = np.array([[0.1, 0.9]] * 200), np.eye(2)[[1, 1, 1, 0] * 50]
    >>> found = confirm(P, np.array([[0.25, 0.75]] * 200), Y, np.ones(200), n_fit=500)
    >>> found.confirmed, round(found.gain, 2)
    (True, 0.09)
    """
    share = mixing(n_fit)
    before, after = mixed(P, share), mixed(Q, share)
    loss_before, loss_after = losses(before, Y)[0], losses(after, Y)[0]
    gain, se = mean_and_error(loss_before - loss_after, w, cluster)
    if ((Y == 0) | (Y == 1)).all():
        se = max(se, _error_if_useless(before, after, w))
    df = units(len(P), cluster) - 1
    if df < 1 or not np.isfinite(se):
        pvalue, low, detectable = 1.0, -np.inf, np.inf
    else:
        quantile = float(stdtrit(df, 1 - alpha))
        low, detectable = gain - quantile * se, (quantile + float(stdtrit(df, _POWER))) * se
        pvalue = float(stdtr(df, -gain / se)) if se > 0 else 1.0  # no spread on either account: nothing was changed
    return Confirmation(
        confirmed=pvalue <= alpha,
        gain=gain,
        se=se,
        low=low,
        pvalue=pvalue,
        detectable=detectable,
        log_loss_before=float(w @ loss_before / w.sum()),
        log_loss_after=float(w @ loss_after / w.sum()),
        accuracy_before=accuracy(P, Y, w),
        accuracy_after=accuracy(Q, Y, w),
        label_flips=flips(P, Q),
        mixing=share,
    )


def _error_if_useless(before: Array, after: Array, w: Array) -> float:
    """The standard error of the mean gain at the truth ∝ before^(1−s) after^s that makes the expected gain nil."""
    said = np.log(before)
    gains = np.log(after) - said  # of each class, should it come
    nothing, unit = np.zeros_like(said), w / w.max()  # without outcomes the gradient is the expected gain
    low, high, s = 0.0, 1.0, 0.5
    for _ in range(12):
        at = softmax_linear(gains[:, :, None], nothing, unit, np.array([s]), said)
        expected, spread = float(at.gradient[0]), float(at.hessian[0, 0])
        low, high = (low, s) if expected > 0 else (s, high)
        step = -expected / spread if spread > 0 else 0.0
        s = s + step if low <= s + step <= high else (low + high) / 2
        if abs(step) < 1e-3:
            break
    variance = softmax_linear(gains[:, :, None], nothing, unit * unit, np.array([s]), said).hessian[0, 0]
    return float(np.sqrt(variance) / unit.sum())
