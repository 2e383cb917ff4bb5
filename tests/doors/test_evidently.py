"""Does the metric of the page give its value in a report of Evidently?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from tests.doors.page import example

pytest.importorskip("evidently")
pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_report_has_the_error():
    from evidently import Dataset, Report
    from evidently.core.metric_types import SingleValueCalculation, SingleValueMetric

    names = {"SingleValueCalculation": SingleValueCalculation, "SingleValueMetric": SingleValueMetric, "to": to}
    exec(example("Evidently"), names)
    rng = np.random.default_rng(0)
    p = rng.random(500)
    frame = pd.DataFrame({"label": (rng.random(500) < p**2).astype(int), "p": p})
    report = Report([names["CalibrationError"](target="label", probability="p")])
    snapshot = report.run(Dataset.from_pandas(frame), None)
    (metric,) = snapshot.dict()["metrics"]
    assert metric["value"] == pytest.approx(to.measure(frame["label"], p, "ece", interval=None).value)
