"""Are the labels and probabilities of scikit-learn's metrics read by its rules, and is everything else refused?"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss as sklearn_brier_score_loss

from trueodds import InputError, metrics

p = np.array([0.2, 0.7, 0.6, 0.4])
y = np.array([0, 1, 1, 0])
P = np.stack([1 - p, p], axis=1)
NAMES = np.array(["no", "yes"])[y]
THREE = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])


@pytest.mark.parametrize(
    ("code", "remedy", "arguments", "keywords"),
    [
        ("TO106", "Pass pos_label='yes' if y_prob is the probability of this class.", (NAMES, p), {}),
        ("TO105", "Pass pos_label=2 if y_prob is the probability of this class.", (y + 1, p), {}),
        ("TO105", "They are ['no', 'yes'].", (NAMES, p), {"pos_label": "yess"}),
        ("TO105", "They are ['no', 'yes'].", (NAMES, p), {"pos_label": 1}),
        ("TO105", "They are [0].", ([0, 0], p[:2]), {"pos_label": "yes"}),
        ("TO105", "They are ['no', 'yes'].", (NAMES, P), {"pos_label": "y"}),
        ("TO105", "Pass the probabilities of all classes, one column each.", ([0, 1, 2], p[:3]), {}),
        ("TO105", "Pass the probabilities of all classes, one column each.", ([0, 1, 2], p[:3]), {"pos_label": 2}),
        ("TO105", "Pass labels=range(3) if labels count from 0", ([1, 1, 2], THREE), {}),
        ("TO105", "pass labels=", ([0, 0, 3], THREE), {}),
        ("TO105", "The classes are ['a', 'b', 'c']", (["a", "b", "d"], THREE), {"labels": ["a", "b", "c"]}),
        ("TO106", "Pass labels=", (["a", "b", "a"], THREE), {}),
        ("TO106", "Pass labels=", (["1", "1"], P[:2]), {}),
        ("TO105", "Pass labels=[0, 2]", ([0, 2], P[:2]), {"labels": [0, 1]}),
        ("TO113", "Pass labels=['no', 'yes'], with the columns", (NAMES, P), {"labels": ["yes", "no"]}),
        ("TO113", "one name per column", (["a", "b", "c"], THREE), {"labels": ["a", "b"]}),
        ("TO101", "one value per row", (NAMES, P), {"labels": 2}),
        ("TO203", "Leave it out", (y, p), {"pos_label": [1]}),
        ("TO205", "Pass pos_label", (NAMES, p), {"labels": ["no", "yes"]}),
        ("TO205", "pass y_true == pos_label", ([0, 1, 2], THREE), {"pos_label": 1}),
        ("TO205", "Leave it out", ([[1, 0], [0, 1]], P[:2]), {"pos_label": 1}),
        ("TO203", "n_bins=15", (y, p), {"n_bins": 0}),
        ("TO203", "n_bins=15", (y, p), {"n_bins": 2.5}),
        ("TO203", "quantile, uniform", (y, p), {"strategy": "kmeans"}),
        ("TO203", "l1, l2, max", (y, p), {"norm": "l3"}),
        ("TO202", "n_bins", (y, p), {"bins": 3}),
        ("TO202", "sample_weight", (y, p), {"weight": y}),
        ("TO202", "y_true, y_prob", (y,), {}),
        ("TO202", "by name", (y, p, y), {}),
        ("TO101", "Pass an array.", (None, p), {}),
        ("TO101", "Pass an array.", (y, None), {}),
        ("TO101", "y_prob[:, 0]", (y, p[:, None]), {}),
        ("TO101", "y_true[:, 0]", (y[:, None], p), {}),
        ("TO102", "scipy.special.expit(logits)", (y, 3 * p - 2), {}),
        ("TO103", "Fill or remove", ([0, None, 1, 1], p), {}),
        ("TO103", "Fill or remove", (["no", None, "yes", "yes"], p), {}),
        ("TO103", "Fill or remove", ([0.0, np.nan, 1.0, 1.0], P), {"pos_label": 1}),
        ("TO104", "divide each row by its sum", (y, 1.01 * P), {}),
        ("TO106", "votes or soft labels", ([0, 0.5, 1, 1], p), {}),
        ("TO107", "Align the rows", (y, p[:3]), {}),
        ("TO107", "Align it first", (y, p), {"sample_weight": [1, 2]}),
        ("TO108", "at least one row", ([], []), {}),
        ("TO109", "Metrics take (y_true, y_prob): swap the two arguments.", (p, y), {}),
        ("TO110", "Correct those rows", (y, p), {"sample_weight": [-1, 1, 1, 1]}),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_a_remedy(
    code: str, remedy: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    with pytest.raises(InputError) as refusal:
        metrics.expected_calibration_error(*arguments, **keywords)
    assert refusal.value.code == code
    assert remedy in refusal.value.fix
    for argument in ("classes=", "sum_tolerance", "from_logits", "logits=True"):  # which a metric does not have
        assert argument not in str(refusal.value)


@pytest.mark.parametrize(
    ("metric", "keywords"),
    [
        (metrics.debiased_calibration_error, {"norm": "max"}),
        (metrics.debiased_calibration_error, {"n_bins": 0}),
        (metrics.integrated_calibration_index, {"summary": "mean"}),
        (metrics.log_loss, {"min_prob": -1}),
        (metrics.calibration_slope, {"min_prob": 0.5}),
    ],
)
def test_invalid_settings_are_refused(metric: Any, keywords: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refusal:
        metric(y, p, **keywords)
    assert refusal.value.code == "TO203"


@pytest.mark.parametrize("metric", [metrics.adaptive_calibration_error, metrics.classwise_calibration_error])
def test_errors_of_classes_need_their_columns(metric: Any) -> None:
    with pytest.raises(InputError, match=r"TO101.*predict_proba") as refusal:
        metric(y, p)
    assert refusal.value.code == "TO101"


def test_the_remedy_of_an_argument_that_has_another_name_is_the_one_of_the_metric() -> None:
    with pytest.raises(InputError, match="sample_weight must have one value per row"):
        metrics.brier_score_loss(y, p, sample_weight=[1])
    with pytest.raises(InputError, match="labels must name every column"):
        metrics.brier_score_loss(["a", "b", "c"], THREE, labels=["a", "b"])


def test_labels_without_rows_of_a_class_count_from_zero_if_zero_is_one_of_them() -> None:
    # 1/3 · [(.25 + .09 + .04) + (.01 + .36 + .49) + (.04 + .04 + .16)]: labels 0, 2, 2 of three columns
    assert metrics.brier_score_loss([0, 2, 2], THREE) == pytest.approx((0.38 + 0.86 + 0.24) / 3)
    assert metrics.brier_score_loss([0, 0], P[:2]) == pytest.approx((0.04 + 0.49) / 2)
    assert metrics.brier_score_loss([True, True], P[:2]) == pytest.approx((0.64 + 0.09) / 2)
    assert metrics.brier_score_loss([-1, -1], P[:2]) == pytest.approx((0.04 + 0.49) / 2)
    assert metrics.brier_score_loss([-1, -1], p[:2]) == pytest.approx((0.04 + 0.49) / 2)


@pytest.mark.parametrize("keywords", [{}, {"pos_label": 1}])
@pytest.mark.parametrize("label", [1, 1.0, 2])
def test_a_label_that_could_be_that_of_either_column_is_refused(label: float, keywords: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"\[TO105\] Some classes have no row") as refusal:
        metrics.brier_score_loss([label, label], P[:2], **keywords)
    assert "Pass labels=range(2) if labels count from 0" in refusal.value.fix


def test_labels_say_which_column_a_single_label_has() -> None:
    first, second = (0.04 + 0.49) / 2, (0.64 + 0.09) / 2  # p is 0.2 and 0.7
    for labels, value in (([0, 1], second), ([-1, 1], second), ([1, 2], first), ([1.0, 2.0], first)):
        assert metrics.brier_score_loss([1, 1], P[:2], labels=labels) == pytest.approx(value), labels
    assert metrics.brier_score_loss([1, 2], P[:2]) == pytest.approx((0.04 + 0.09) / 2)  # both are observed
    assert metrics.brier_score_loss([-1, 1], P[:2]) == pytest.approx((0.04 + 0.09) / 2)


def test_one_column_has_the_event_of_scikit_learn_for_each_pair_of_labels() -> None:
    for observed, pair in itertools.product(([0], [1], [-1]), ([0, 1], [-1, 1])):
        if set(observed) <= set(pair):
            expected = sklearn_brier_score_loss(observed, p[:1])  # with its default of pos_label
            assert metrics.brier_score_loss(observed, p[:1]) == pytest.approx(expected)
    assert metrics.brier_score_loss([-1, 1], p[:2]) == pytest.approx(sklearn_brier_score_loss([-1, 1], p[:2]))


def test_no_rows_of_two_columns_are_a_coded_error() -> None:
    with pytest.raises(InputError) as refusal:
        metrics.brier_score_loss([], np.empty((0, 2)))
    assert refusal.value.code == "TO108"


def test_votes_are_outcomes_too() -> None:
    one_hot = np.eye(3)[[0, 1, 2]]
    for name in ("expected_calibration_error", "log_loss", "classwise_calibration_error"):
        metric = getattr(metrics, name)
        assert metric(one_hot, THREE) == pytest.approx(metric([0, 1, 2], THREE))
