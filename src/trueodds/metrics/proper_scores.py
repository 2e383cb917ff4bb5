"""Proper scores of two arrays."""

from __future__ import annotations

from numpy.typing import ArrayLike

from trueodds.core.signatures import checks_arguments
from trueodds.metrics.arguments import Label, evaluate_metric


@checks_arguments
def brier_score_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Brier score: mean squared distance between probabilities and outcome.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The score, in [0, 1] for two classes and in [0, 2] for more; 0 is best.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i (p_i - y_i)^2 \quad\text{or}\quad \tfrac1w \sum_i w_i \sum_k (p_{ik} - y_{ik})^2

    for two and for more classes, as `sklearn.metrics.brier_score_loss` has it by default. Bias: none. A calibrated
    model scores the mean of p(1 − p).

    References
    ----------
    .. [1] Brier (1950).

    Examples
    --------
    >>> from trueodds.metrics import brier_score_loss
    >>> brier_score_loss([1, 1], [0.5, 1.0])
    0.125
    """
    return evaluate_metric("brier", y_true, y_prob, sample_weight, pos_label, labels)


@checks_arguments
def log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    min_prob: float = 0.0,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Log loss (cross-entropy): mean negative log-probability of the outcome, in nats.

    Parameters
    ----------
    y_true, y_prob, sample_weight : as in `evaluate_metric`
    min_prob : float, default=0.0
        Smallest probability inside the logarithm. `sklearn.metrics.log_loss` has the machine epsilon of the dtype of
        the probabilities.
    pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The loss, in [0, ∞]; 0 is best. Infinite, with a warning, if an outcome of probability 0 was observed.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    .. math:: -\tfrac1w \sum_i w_i \sum_k y_{ik} \log p_{ik}

    Bias: none. A calibrated model scores the mean entropy of its predictions.

    References
    ----------
    .. [1] Good (1952).

    Examples
    --------
    >>> from trueodds.metrics import log_loss
    >>> round(log_loss([1, 1], [0.5, 1.0]), 4)
    0.3466
    """
    return evaluate_metric("log_loss", y_true, y_prob, sample_weight, pos_label, labels, min_prob=min_prob)


@checks_arguments
def ranked_probability_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> float:
    r"""Ranked probability score (RPS), for classes in the order of their columns.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label, labels : as in `evaluate_metric`

    Returns
    -------
    float
        The score, in [0, K − 1]; 0 is best.

    Raises
    ------
    InputError : as in `evaluate_metric`

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i \sum_{k<K} (F_{ik} - O_{ik})^2

    with the cumulative predicted probabilities F and outcomes O. Bias: none.

    References
    ----------
    .. [1] Epstein (1969).

    Examples
    --------
    >>> from trueodds.metrics import ranked_probability_score
    >>> [ranked_probability_score([0], P) for P in ([[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]])]
    [1.0, 2.0]
    """
    return evaluate_metric("rps", y_true, y_prob, sample_weight, pos_label, labels)
