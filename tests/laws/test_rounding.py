"""Does the last digit of a probability change a result by more than its own size?

A softmax, a logarithm, or a sum differs in its last digit between processors. Where that chooses a
row, a candidate, or a direction, results differ by far more. The rows are drawn without ties and
clear of edges: a value on an edge is a choice that the data make, not the processor. There are more
of them than the samples in which some members look at rows.
"""

import numpy as np
import pytest

import trueodds as to
from tests.calibrators.rows import GROUP_SETTINGS
from trueodds.calibrators import CALIBRATORS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS

N, CLASSES = 1500, 3
# One digit in 10^16, through the inverse of a curvature whose condition is 10^6 at most here.
SAME = {"rel": 1e-8, "abs": 1e-10}


def rows(k):
    """Labels, and predictions that know something of them."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(k, 0.7), N)
    y = (P.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1).clip(0, k - 1)
    P = P**1.3
    return y, P / P.sum(axis=1, keepdims=True)


def pair(k):
    """The predictions, and the same with another last digit."""
    y, P = rows(k)
    other = P * (1 + np.random.default_rng(1).integers(-1, 2, P.shape) * 2.0**-52)
    return to.Predictions(y, P), to.Predictions(y, other)


def required_settings(name):
    """The settings that a member cannot do without."""
    return {"cost": 1 - np.eye(CLASSES)} if name == "decision_regret" else {}


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_an_estimate_changes_by_no_more_than_the_last_digit(name):
    a, b = (to.measure(preds, name, interval=None, **required_settings(name)) for preds in pair(CLASSES))
    assert b.value == pytest.approx(a.value, **SAME)
    assert dict(b.parts) == pytest.approx(dict(a.parts), **SAME)


@pytest.mark.parametrize("name", TESTS.names())
def test_a_verdict_changes_by_no_more_than_the_last_digit(name):
    options = {"resamples": 99} if TESTS.has_setting(name, "resamples") else {}
    a, b = (to.test(preds, name, **options, **required_settings(name)) for preds in pair(CLASSES))
    assert b.statistic == pytest.approx(a.statistic, **SAME)
    assert b.pvalue == pytest.approx(a.pvalue, **SAME)


@pytest.mark.parametrize("name", CALIBRATORS.names())
def test_a_recalibration_changes_by_no_more_than_the_last_digit(name):
    two = CALIBRATORS.load(name).two_classes
    one, other = pair(2 if two else CLASSES)
    options = {"target": one.P[::2]} if name == "prior_shift" else GROUP_SETTINGS.get(name, {})
    a, b = (to.fit(preds, name, **options) for preds in (one, other))
    assert b.predict_proba(other.P) == pytest.approx(a.predict_proba(one.P), **SAME)
