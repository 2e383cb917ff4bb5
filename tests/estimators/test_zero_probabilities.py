"""A predicted probability of 0 whose outcome was not observed yet is noted beside a finite log loss."""

import numpy as np
import pytest

import trueodds as to

P_JOINT = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]] * 20)
Y_JOINT = [0, 2, 0] * 20


def noted(preds, **settings):
    estimate = to.measure(preds, "log_loss", resamples=20, **settings)
    return [note.text for note in estimate.notes if note.code == "TN168"]


@pytest.mark.parametrize(
    "preds",
    [
        to.Predictions([0, 1, 1] * 20, [0.0, 0.7, 1.0] * 20),
        to.Predictions(Y_JOINT, P_JOINT),
        to.Predictions.from_confidence([0.0, 0.7, 1.0] * 20, [0, 1, 1] * 20),
    ],
    ids=["probability", "classes", "confidence"],
)
def test_rows_with_a_zero_that_was_not_observed_are_counted(preds):
    (text,) = noted(preds)
    assert text.startswith("40 rows have a predicted probability of exactly 0")
    assert noted(preds, min_prob=1e-6) == []


def test_an_observed_impossible_outcome_has_its_own_note():
    estimate = to.measure(to.Predictions([1, 1, 1] * 20, [0.0, 0.7, 1.0] * 20), "log_loss", resamples=20)
    codes = [note.code for note in estimate.notes]
    assert "TN104" in codes
    assert "TN168" not in codes


def test_logits_that_round_to_zero_are_no_zeros():
    assert noted(to.Predictions.from_logits([0, 1] * 30, [-800.0, 800.0] * 30)) == []
    assert noted(to.Predictions([0, 1] * 30, [0.01, 0.9] * 30)) == []
