"""Is the onset of an error dated where it is, and not stated where the evidence does not date it?"""

import re

import numpy as np
import pytest
from scipy.special import expit, logit

import trueodds as to

CHANGE, COHORTS, ROWS = 12, 40, 2000
DRIFTS = {
    "level": lambda p: expit(logit(p) + 0.2),
    "slope": lambda p: expit(0.7 * logit(p)),
    "wave": lambda p: p + 0.09 * np.sin(6 * np.pi * p),  # errors that cancel on average
}


def report_of(drift, seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, (COHORTS, ROWS))
    truth = np.where(np.arange(COHORTS)[:, None] < CHANGE, p, drift(p)).clip(0, 1)
    y = rng.random(p.shape) < truth
    monitor = to.Monitor(horizon=0, unit="integer")
    time = np.repeat(np.arange(COHORTS), ROWS)
    return monitor.update(to.Predictions(y.ravel(), p.ravel()), time, as_of=COHORTS).report()


@pytest.mark.parametrize("name", DRIFTS)
def test_a_sudden_change_is_in_the_region_of_its_onset(name):
    # The region covers the cohort of a sudden change in at least 95 % of streams: three or more misses of ten have a
    # probability of 1 %.
    onsets = [report_of(DRIFTS[name], seed).onset for seed in range(10)]
    assert all(abs(int(onset.since) - CHANGE) <= 6 for onset in onsets)
    misses = [not int(onset.earliest) <= CHANGE <= int(onset.latest) for onset in onsets]
    assert sum(misses) <= 2


def test_an_alarm_by_one_impossible_outcome_has_no_onset():
    p = np.tile([0.0, 0.5, 0.5, 0.5], 50)
    y = np.tile([0, 0, 1, 1, 0, 0, 0, 1], 25)
    y[8] = 1
    monitor = to.Monitor(horizon=0, unit="integer")
    report = monitor.update(to.Predictions(y, p), np.arange(200) // 20, as_of=10).report()
    assert report.alarm
    assert report.onset is report.since is None
    assert report.error.rows == 200  # of the epoch
    assert "Onset: not known" in report.describe()
    assert "predicted probability 0" in report.advice.text


def test_the_report_states_shares_of_evidence_and_rows_with_few_digits():
    text = report_of(DRIFTS["level"], 0).describe()
    assert re.search(r"Largest part of the evidence \(\d+ %\)", text)
    assert re.search(r"; \d+\.\d % of the rows moved", text)
