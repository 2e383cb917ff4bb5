"""Does the scorer of the page give its value in a report of skore?"""

from __future__ import annotations

import pytest
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

import trueodds as to
from tests.doors.page import example

skore = pytest.importorskip("skore")
pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_report_has_the_error():
    X, y = make_classification(1000, 5, n_informative=3, n_redundant=0, random_state=0)
    model = GaussianNB().fit(X[:500], y[:500])
    X, y = X[500:], y[500:]
    names = {"skore": skore, "to": to, "model": model, "X": X, "y": y}
    *statements, last = example("skore").strip().splitlines()
    exec("\n".join(statements), names)
    frame = eval(last, names)
    error = to.measure(y, model.predict_proba(X)[:, 1], "ece", interval=None).value
    assert abs(float(frame["ece"])) == pytest.approx(error)
