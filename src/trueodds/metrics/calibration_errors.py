"""Calibration errors of two arrays: over bins, and without them."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from trueodds.core.settings import check
from trueodds.core.signatures import checks_arguments
from trueodds.metrics.arguments import (
    BinNumber,
    Label,
    Norm,
    Strategy,
    bin_settings,
    error_of_norm,
    evaluate_metric,
    require_columns,
)

Summary = Literal["ici", "e50", "e90", "emax"]


@checks_arguments
def expected_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: BinNumber = 15,
    strategy: Strategy = "uniform",
    norm: Norm = "l1",
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Expected calibration error (ECE): mean distance between predicted and observed rates over bins.

    Of more than two classes, the error of the confidence: the largest probability, and whether that class was observed.

    Parameters
    ----------
    y_true, y_prob, sample_weight : as in `evaluate_metric`
    n_bins, strategy : as in `bin_settings`
    norm : as in `error_of_norm`
    pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The error, in [0, 1]; 0 is best.

    Raises
    ------
    InputError : as in `evaluate_metric`

    See Also
    --------
    trueodds.measure : The same value, with an interval, a noise floor, and notes.

    Notes
    -----
    .. math:: \Big(\sum_b \tfrac{w_b}{w}\, |\bar p_b - \bar y_b|^{q}\Big)^{1/q}

    with q = 1, 2 or ∞. Bias: upward. A calibrated model with k bins and n rows has at most about 0.4 sqrt(k/n).

    References
    ----------
    .. [1] Naeini, Cooper & Hauskrecht (2015).

    Examples
    --------
    >>> from trueodds.metrics import expected_calibration_error
    >>> expected_calibration_error([1, 0], [0.9, 0.8], n_bins=5)
    0.45
    >>> expected_calibration_error(["spam", "ham"], [0.9, 0.8], pos_label="spam", n_bins=5)
    0.45
    """
    name, bins = error_of_norm(norm), bin_settings(n_bins, strategy)
    return evaluate_metric(name, y_true, y_prob, sample_weight, pos_label, labels, **bins)


@checks_arguments
def maximum_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: BinNumber = 15,
    strategy: Strategy = "uniform",
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Maximum calibration error (MCE): the largest distance between predicted and observed rates over bins.

    Parameters
    ----------
    y_true, y_prob, sample_weight : as in `evaluate_metric`
    n_bins, strategy : as in `bin_settings`
    pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The error, in [0, 1]; 0 is best.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    .. math:: \max_b |\bar p_b - \bar y_b|

    Bias: strongly upward, because the smallest bin often determines the maximum.

    References
    ----------
    .. [1] Naeini, Cooper & Hauskrecht (2015).

    Examples
    --------
    >>> from trueodds.metrics import maximum_calibration_error
    >>> maximum_calibration_error([1, 0], [0.9, 0.8])
    0.8
    """
    bins = bin_settings(n_bins, strategy)
    return evaluate_metric("mce", y_true, y_prob, sample_weight, pos_label, labels, **bins)


@checks_arguments
def classwise_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: BinNumber = 15,
    strategy: Strategy = "uniform",
    norm: Norm = "l1",
    labels: ArrayLike | None = None,
) -> float:
    r"""Classwise calibration error: the error of each class against the rest, averaged over the classes.

    Parameters
    ----------
    y_true : as in `evaluate_metric`
    y_prob : array-like of shape (n, K)
        Predicted probability of each class, with the columns in the order of the sorted labels.
    sample_weight : as in `evaluate_metric`
    n_bins, strategy : as in `bin_settings`
    norm : as in `error_of_norm`
    labels : as in `evaluate_metric`

    Returns
    -------
    float
        The error, in [0, 1]; 0 is best.

    Raises
    ------
    InputError
        As for `expected_calibration_error`, and TO101 for one probability per row.

    Notes
    -----
    .. math:: \frac1K \sum_k \Big(\sum_b \tfrac{w_b}{w}\, |\bar p_{kb} - \bar y_{kb}|^{q}\Big)^{1/q}

    Bias: upward. Many classes with tiny probabilities make the mean small: see `adaptive_calibration_error`.

    References
    ----------
    .. [1] Kull et al. (2019).

    Examples
    --------
    >>> from trueodds.metrics import classwise_calibration_error
    >>> round(classwise_calibration_error([0, 1], [[0.9, 0.1], [0.2, 0.8]]), 4)
    0.15
    """
    require_columns(y_prob, "classwise_calibration_error")
    name, bins = error_of_norm(norm), bin_settings(n_bins, strategy)
    return evaluate_metric(name, y_true, y_prob, sample_weight, None, labels, lens="classwise", **bins)


@checks_arguments
def adaptive_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: BinNumber = 15,
    labels: ArrayLike | None = None,
) -> float:
    r"""Adaptive calibration error (ACE): classwise error over ranges of equally many rows with equal weights.

    Parameters
    ----------
    y_true : as in `evaluate_metric`
    y_prob : array-like of shape (n, K)
        Predicted probability of each class, with the columns in the order of the sorted labels.
    sample_weight : as in `evaluate_metric`
    n_bins : as in `bin_settings`
    labels : as in `evaluate_metric`

    Returns
    -------
    float
        The error, in [0, 1]; 0 is best.

    Raises
    ------
    InputError
        As for `expected_calibration_error`, and TO101 for one probability per row.

    Notes
    -----
    .. math:: \frac{1}{KR} \sum_k \sum_r |\bar p_{kr} - \bar y_{kr}|

    over R ranges r of the predictions of class k. Bias: upward, as for the expected calibration error.

    References
    ----------
    .. [1] Nixon et al. (2019).

    Examples
    --------
    >>> from trueodds.metrics import adaptive_calibration_error
    >>> round(adaptive_calibration_error([0, 1], [[0.9, 0.1], [0.2, 0.8]]), 4)
    0.15
    """
    require_columns(y_prob, "adaptive_calibration_error")
    bins = bin_settings(n_bins, "quantile")
    return evaluate_metric("ace", y_true, y_prob, sample_weight, None, labels, **bins)


@checks_arguments
def debiased_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: BinNumber = "auto",
    strategy: Strategy = "quantile",
    norm: Literal["l1", "l2"] = "l2",
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Debiased calibration error: the error over bins without the part that noise is expected to add.

    Parameters
    ----------
    y_true, y_prob, sample_weight : as in `evaluate_metric`
    n_bins : int or "auto", default="auto", as in `bin_settings`
    strategy : {"uniform", "quantile"}, default="quantile", as in `bin_settings`
    norm : {"l1", "l2"}, default="l2"
        Whether the mean distance or the root mean square distance is estimated.
    pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The error, at most 1; 0 is best. With ``norm="l1"`` it can be negative. NaN, with a warning, if no bin has two
        rows.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    With ``norm="l2"``, the square is estimated from the pairs of different rows of a bin and is unbiased:

    .. math:: \theta = \sum_b \tfrac{w_b}{w}
        \frac{(\sum w u)^2 - \sum w^2 u^2}{(\sum w)^2 - \sum w^2}, \quad u = y - p, \qquad \sqrt{\max(0, \theta)}

    With ``norm="l1"``, an estimate of the bias is subtracted from the expected calibration error, which removes about
    two fifths of that of a calibrated model.

    References
    ----------
    .. [1] Kumar, Liang & Ma (2019).
    .. [2] Lee et al. (2023).

    Examples
    --------
    >>> from trueodds.metrics import debiased_calibration_error
    >>> round(debiased_calibration_error([0, 0, 1], [0.6, 0.8, 0.8], n_bins=1), 4)
    0.2582
    """
    name = {"l1": "debiased_l1", "l2": "debiased_l2"}[check("norm", norm, Literal["l1", "l2"], "l2")]
    bins = bin_settings(n_bins, strategy)
    return evaluate_metric(name, y_true, y_prob, sample_weight, pos_label, labels, **bins)


@checks_arguments
def smooth_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Smooth calibration error (smECE): mean absolute residual after smoothing, without bins.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The error, in [0, 1]; 0 is best.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    .. math:: N_\sigma = \int_0^1 \Big|\tfrac1w \sum_i w_i (y_i - p_i)\, K_\sigma(t, p_i)\Big|\, dt

    at the bandwidth σ for which :math:`N_\sigma = \sigma`. Bias: upward, up to 0.56 (mean p(1 − p)/n)^(1/3) for a
    calibrated model.

    References
    ----------
    .. [1] Błasiok & Nakkiran (2024).

    Examples
    --------
    >>> from trueodds.metrics import smooth_calibration_error
    >>> round(smooth_calibration_error([1], [0.8]), 4)
    0.2
    """
    return evaluate_metric("smece", y_true, y_prob, sample_weight, pos_label, labels)


@checks_arguments
def kernel_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Squared kernel calibration error (SKCE) of whole probability vectors, estimated without bias.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The squared error, at most 2; 0 is best. It can be negative.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    .. math:: \frac{1}{n(n-1)} \sum_{i \ne j} k(p_i, p_j)\,(y_i - p_i)\cdot(y_j - p_j)

    with an exponential kernel, whose bandwidth is the median distance of the predictions, and one-hot outcomes y.
    Beyond 5,000 rows (200,000 for one probability per row), only pairs within blocks of consecutive rows are used.

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah (2019).

    Examples
    --------
    >>> from trueodds.metrics import kernel_calibration_error
    >>> round(kernel_calibration_error([1, 0, 1], [0.9, 0.9, 0.9]), 4)  # 2 · (2 · (.1)(−.9) + (.1)²) / 3
    -0.1133
    """
    return evaluate_metric("skce", y_true, y_prob, sample_weight, pos_label, labels)


@checks_arguments
def integrated_calibration_index(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    summary: Summary = "ici",
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Integrated calibration index (ICI), E50, E90 or Emax: distance of a smooth calibration curve from the diagonal.

    Parameters
    ----------
    y_true, y_prob, sample_weight : as in `evaluate_metric`
    summary : {"ici", "e50", "e90", "emax"}, default="ici"
        Mean, median, 90th percentile, or maximum of the distances of the rows.
    pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The distance, in [0, 1]; 0 is best.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i\, |\hat r(p_i) - p_i|

    with the loess curve :math:`\hat r`, whose span is 0.75. Bias: upward, about 1.6 sqrt(mean p(1 − p) / n) for a
    calibrated model, and more for "e90" and "emax".

    References
    ----------
    .. [1] Austin & Steyerberg (2019).

    Examples
    --------
    >>> from trueodds.metrics import integrated_calibration_index
    >>> round(integrated_calibration_index([0, 1], [0.2, 0.7]), 4)
    0.25
    >>> round(integrated_calibration_index([0, 1], [0.2, 0.7], summary="emax"), 4)
    0.3
    """
    name = check("summary", summary, Summary, "ici")
    return evaluate_metric(name, y_true, y_prob, sample_weight, pos_label, labels)
