"""Is no recalibration confirmed, and no gain stated, on rows that the model was probably fitted to (TN163)?"""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import trueodds as to
from trueodds.calibrators import RecalibratedClassifier
from trueodds.reports.audit import Audit


def moderate_rows(n=600, seed=3):
    """Labels, and about 70 % for the observed class in 99 % of the rows, as a forest predicts on its own rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    is_right = rng.random(n) >= 0.01
    return y, np.where((y == 1) == is_right, 0.7, 0.3) + rng.normal(0, 0.03, n)


@pytest.fixture(scope="module")
def report() -> Audit:
    return to.audit(*moderate_rows(), resamples=199)


@pytest.mark.slow
def test_auto_applies_nothing_and_says_that_no_recalibration_can_be_judged():
    calibrator = to.fit(to.Predictions(*moderate_rows()), "auto")
    assert calibrator.method == "identity"
    assert {"TN163", "TN545"} <= {note.code for note in calibrator.notes}
    assert not {"TN509", "TN543", "TN510"} & {note.code for note in calibrator.notes}
    for text in (str(calibrator), str(calibrator.report)):
        assert "no recalibration judged" in text
        assert "confirmed" not in text
    assert calibrator.report.outcome == "not judged"


@pytest.mark.slow
def test_the_verdict_states_no_gain_and_asks_for_held_out_rows(report):
    sentence, details = report.verdict["sentence"], report.verdict["details"]
    assert sentence.startswith("The model may have been fitted to these rows; then nothing here holds for new ones.")
    assert "log loss" not in sentence
    assert "No recalibration can be judged on rows that the model was trained on: pass held-out rows." in details


@pytest.mark.slow
def test_no_form_of_the_report_confirms_a_recalibration(report):
    page = re.sub("<(script|style).*?</\\1>", "", report.to_html(), flags=re.DOTALL)
    for text in (str(report), report.brief(), page, report._repr_html_()):
        assert "onfirmed" not in text
        assert "reduce" not in text
    assert "should be recalibrated" not in str(report)


def test_the_json_keeps_the_numbers_of_a_recalibration_that_was_not_judged(report):
    recalibration = report.to_dict()["recalibration"]
    assert (recalibration["confirmed"], recalibration["applied"]) == (False, "identity")
    assert recalibration["outcome"] == "not judged"
    assert recalibration["gain"] > 0.2
    assert recalibration["gain_low"] > 0.2
    assert recalibration["diagrams"] is None


def test_an_error_that_is_far_too_small_leaves_a_recalibration_without_judgment_as_well():
    # Histogram binning is calibrated in every bin on the rows that it was fitted to.
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < p**2).astype(int)
    recalibrated = to.fit(to.Predictions(y, p), "histogram", bins=15).predict_proba(p)[:, 1]
    audit = to.audit(y, recalibrated, resamples=199)
    assert "TN163" in [note.code for note in audit.notes]
    assert audit.to_dict()["recalibration"]["outcome"] == "not judged"
    assert audit.verdict["sentence"].endswith("Pass held-out rows.")


class Moderate(ClassifierMixin, BaseEstimator):
    """A classifier whose probability is its only feature, whatever it is fitted to."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.c_[1 - X[:, 0], X[:, 0]]


@pytest.mark.slow
def test_predictions_that_were_cross_validated_are_recalibrated_however_moderate_they_are():
    y, p = moderate_rows()
    model = RecalibratedClassifier(Moderate(), "auto").fit(p[:, None], y)
    assert model.report_.confirmed
    frozen = RecalibratedClassifier(Moderate().fit(p[:, None], y), "auto", mode="frozen").fit(p[:, None], y)
    assert frozen.report_.outcome == "not judged"
