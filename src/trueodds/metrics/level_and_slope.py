"""Level and slope of predictions: coefficients of the log odds, and observed against expected events."""

from __future__ import annotations

from numpy.typing import ArrayLike

from trueodds.core.signatures import checks_arguments
from trueodds.metrics.arguments import Label, evaluate_metric


@checks_arguments
def calibration_slope(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    min_prob: float = 0.0,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Calibration slope: the factor of the log odds that fits best, with any intercept.

    Below 1 the predictions are too extreme, above 1 they are too moderate. Of more than two classes, the exponent of
    the probabilities, 1/T with the temperature T.

    Parameters
    ----------
    y_true, y_prob, sample_weight : as in `evaluate_metric`
    min_prob : float, default=0.0
        Smaller probabilities are replaced by `min_prob`, and those above 1 − min_prob by that. 0 replaces nothing.
    pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The slope; 1 is best. NaN, with a warning, if it is undefined: if a probability is exactly 0 or 1, for
        instance, or if the predictions separate the outcomes.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    The coefficient b that maximizes the likelihood of

    .. math:: \mathrm{logit}\,P(y = 1) = a + b\,\mathrm{logit}\,p

    Bias: none to first order.

    References
    ----------
    .. [1] Cox (1958).
    .. [2] Van Calster et al. (2016).

    Examples
    --------
    >>> from trueodds.metrics import calibration_slope
    >>> round(calibration_slope([0, 0, 0, 1, 0, 1, 1, 1], [0.1] * 4 + [0.9] * 4), 4)  # log 3 / log 9
    0.5
    """
    return evaluate_metric("calibration_slope", y_true, y_prob, sample_weight, pos_label, labels, min_prob=min_prob)


@checks_arguments
def calibration_intercept(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    min_prob: float = 0.0,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Calibration intercept: the shift of the log odds that fits best, with the slope fixed at 1.

    Above 0 the model underpredicts on average, below 0 it overpredicts. Of more than two classes, the intercept of the
    confidence.

    Parameters
    ----------
    y_true, y_prob, sample_weight : as in `evaluate_metric`
    min_prob : as in `calibration_slope`
    pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The intercept, in log odds; 0 is best. NaN, with a warning, if it is undefined: if a probability is exactly 0
        or 1, or if all outcomes are equal.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    The coefficient a that maximizes the likelihood of

    .. math:: \mathrm{logit}\,P(y = 1) = a + \mathrm{logit}\,p

    Bias: none to first order.

    References
    ----------
    .. [1] Cox (1958).
    .. [2] Van Calster et al. (2016).

    Examples
    --------
    >>> from trueodds.metrics import calibration_intercept
    >>> round(calibration_intercept([0, 1, 0, 1], [0.25] * 4), 4)  # log 3
    1.0986
    """
    return evaluate_metric("calibration_intercept", y_true, y_prob, sample_weight, pos_label, labels, min_prob=min_prob)


@checks_arguments
def calibration_in_the_large(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Calibration-in-the-large: observed event rate minus mean predicted probability.

    Of more than two classes, the accuracy minus the mean confidence.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The difference, in [−1, 1]; 0 is best. Above 0 the model underpredicts, below 0 it overpredicts.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i (y_i - p_i)

    Bias: none.

    References
    ----------
    .. [1] Van Calster et al. (2016).

    Examples
    --------
    >>> from trueodds.metrics import calibration_in_the_large
    >>> round(calibration_in_the_large([1, 0], [0.5, 0.7]), 4)
    -0.1
    """
    return evaluate_metric("calibration_in_the_large", y_true, y_prob, sample_weight, pos_label, labels)


@checks_arguments
def observed_expected_ratio(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""O:E ratio: observed divided by expected events.

    Of more than two classes, the accuracy divided by the mean confidence.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The ratio, in [0, ∞]; 1 is best. Above 1 the model underpredicts, below 1 it overpredicts.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    .. math:: \frac{\sum_i w_i y_i}{\sum_i w_i p_i}

    Bias: none.

    References
    ----------
    .. [1] Van Calster et al. (2016).

    Examples
    --------
    >>> from trueodds.metrics import observed_expected_ratio
    >>> round(observed_expected_ratio([1, 0], [0.5, 0.75]), 4)
    0.8
    """
    return evaluate_metric("o_e", y_true, y_prob, sample_weight, pos_label, labels)
