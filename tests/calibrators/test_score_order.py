"""Are the table of candidates, the summary of an audit and the note TN529 one decision on the order of scores?"""

from __future__ import annotations

import re

import numpy as np
import pytest

import trueodds as to
from trueodds.calibrators._curves.one_vs_rest import total_decrease
from trueodds.calibrators._glm.log_probabilities import LogProbabilities, to_probabilities
from trueodds.calibrators.base import CalibrationMap


class Curve(CalibrationMap):
    """A map of two classes by a function of the probability of the second."""

    def __init__(self, function):
        self.function = function

    def apply(self, P):
        q = self.function(to_probabilities(P)[:, 1])
        return np.stack([1 - q, q], axis=1)

    def describe(self):
        return ""

    def to_dict(self):
        return {}

    @classmethod
    def from_dict(cls, parameters, k):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "decrease"),
    [
        (np.square, 0.0),
        (lambda p: np.maximum(p, 0.5), 0.0),
        (lambda p: np.abs(p - 0.5), 0.4),  # from 0.4 at p = 0.1 to 0 at 0.5
        (lambda p: 1 - p, 0.8),
        (lambda p: np.where(p < 0.5, 0.7, 0.2), 0.5),  # one step down
    ],
)
def test_the_decrease_of_a_map_is_summed_over_the_range_of_the_scores(function, decrease):
    p = np.array([0.1, 0.3, 0.9])
    P = np.stack([1 - p, p], axis=1)
    assert total_decrease(Curve(function), P) == pytest.approx(decrease, abs=0.002)
    assert total_decrease(Curve(function), LogProbabilities(np.log(P))) == pytest.approx(decrease, abs=0.002)


def flat_ends(seed, n=1500):
    """Beyond |logit p| = 2 the event rate hardly changes, so that most splines decrease there."""
    rng = np.random.default_rng(seed)
    x = 2 * rng.normal(size=n)
    return to.Predictions((rng.random(n) < 1 / (1 + np.exp(-1.5 * np.tanh(x)))).astype(int), 1 / (1 + np.exp(-x)))


@pytest.mark.parametrize("seed", [0, 1, 2, 5])
@pytest.mark.parametrize("method", ["spline", "histogram", "isotonic"])
def test_the_table_of_candidates_and_the_note_are_one_decision(seed, method):
    preds = flat_ends(seed)
    calibrator = to.fit(preds, "auto", candidates=(method,))
    chosen = next(candidate for candidate in calibrator.report.candidates if candidate["chosen"])
    assert chosen["method"] == method == calibrator.report.applied
    assert chosen["keeps_order"] is all(note.code != "TN529" for note in calibrator.notes)
    q = calibrator.predict_proba(np.linspace(preds.p.min(), preds.p.max(), 20_001))[:, 1]
    assert chosen["keeps_order"] is bool(np.maximum(-np.diff(q), 0).sum() <= 1e-3)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_row_of_an_audit_says_so_exactly_if_there_is_the_note(seed):
    audit = to.audit(flat_ends(seed), resamples=99)
    report = audit.to_dict()
    chosen = next(one for one in report["recalibration"]["candidates"] if one["chosen"])
    is_noted = any(note.code == "TN529" for note in audit.notes)
    assert is_noted is (chosen["keeps_order"] is False)
    assert is_noted is ("some higher scores get lower probabilities (TN529)" in " ".join(str(audit).split()))


def noted_penalty(preds, **settings):
    """The penalty that the note TN529 states, and its text."""
    (note,) = [note for note in to.fit(preds, "spline", **settings).notes if note.code == "TN529"]
    return float(re.search(r"λ = ([\d.e+]+\d)", note.text)[1]), note.text


def test_the_note_on_a_decreasing_spline_states_the_penalty_in_use():
    preds = flat_ends(0)
    penalty, text = noted_penalty(preds)
    assert noted_penalty(preds, penalty=penalty) == (penalty, text)
    # f(x / s) is s³ times less rough than f(x), so that the same curve of s times larger logits has the penalty s³ λ.
    x = np.log(preds.p / (1 - preds.p))
    once, tenfold = (noted_penalty(to.Predictions.from_logits(preds.y, scale * x))[0] for scale in (1, 10))
    assert tenfold == pytest.approx(1000 * once, rel=0.01)  # the text has three digits


def test_the_remedy_for_a_decrease_is_no_larger_penalty():
    from trueodds.core.codes import load_codes

    assert "or a larger" not in load_codes()["TN529"].remedy
    assert "may a larger" not in noted_penalty(flat_ends(0))[1]
