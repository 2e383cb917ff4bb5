"""Is the onset of an error dated where it is, and not stated where the evidence does not date it?"""

import re

import numpy as np
import pytest
from scipy.special import expit, logit

import trueodds as to
from trueodds.monitoring.capital import uninvested
from trueodds.monitoring.evidence import EVENTS, EXPECTED, N_TOTALS, VARIANCE
from trueodds.monitoring.evidence import ROWS as ROWS_KNOWN
from trueodds.monitoring.judgment import JudgedSums
from trueodds.monitoring.onset import estimate_error

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


@pytest.mark.slow
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


def test_the_interval_of_the_error_allows_for_the_choice_of_onset_and_group():
    # The half-width by hand: (V + 50)(2 ln(1/(alpha s)) + ln(1 + V/50)), with the share s of the start and the group.
    rng = np.random.default_rng(0)
    rows = COHORTS * ROWS
    p, region = np.full(rows, 0.3), np.tile(["north", "south"], rows // 2)
    cohort = np.repeat(np.arange(COHORTS), ROWS)
    y = rng.random(rows) < np.where((cohort >= CHANGE) & (region == "south"), 0.36, p)
    monitor = to.Monitor(horizon=0, unit="integer", group="region")
    error = monitor.update(to.Predictions(y, p, group={"region": region}), cohort, as_of=COHORTS).report().error
    assert (error.group, error.rows) == ("region=south", (COHORTS - CHANGE) * ROWS / 2)
    share = 0.25 / 2 * ((1 + CHANGE / 20) ** -0.5 - (1 + (CHANGE + 1) / 20) ** -0.5)
    variance = error.rows * y[(cohort >= CHANGE) & (region == "south")].var()
    half = np.sqrt((variance + 50) * (2 * np.log(20 / share) + np.log(1 + variance / 50))) / error.rows
    np.testing.assert_allclose([error.interval.low, error.interval.high], [error.value - half, error.value + half])
    assert error.interval.level == 0.95


def test_the_intervals_of_all_starts_and_groups_cover_at_once():
    # The rows of a calibrated model, of which the start and the group are chosen whose sum deviates most. With a share
    # for each choice, the interval misses with a probability of at most 5 %; without, in a fifth of the streams.
    streams, cohorts, groups, rows, p = 200, 60, 20, 100, 0.3
    shares = 0.25 / groups * -np.diff([uninvested(t) for t in range(cohorts + 1)])
    variance = rows * p * (1 - p)
    misses = {"chosen": 0, "fixed": 0}
    for seed in range(streams):
        events = np.random.default_rng(seed).binomial(rows, p, (cohorts, groups))
        deviation = np.abs(np.cumsum(events[::-1] - rows * p, axis=0)[::-1])
        later = variance * np.arange(cohorts, 0, -1)
        half = np.sqrt((later + 50) * (2 * np.log(20 / shares) + np.log1p(later / 50)))
        start, group = np.unravel_index(np.argmax(deviation / half[:, None]), deviation.shape)
        history = [
            judged_sums(cohort, n, rows, p) for cohort, n in enumerate(events[start:, group].tolist(), int(start))
        ]
        for name, share in (("chosen", shares[start]), ("fixed", 1.0)):
            error = estimate_error(history, "g", 0, "positive", 0.05, share)
            misses[name] += not error.interval.low <= 0 <= error.interval.high
    assert misses["chosen"] <= 18  # binomial limit of 1 %
    assert misses["fixed"] > 18


def judged_sums(cohort, events, rows, p):
    totals = np.zeros((1, N_TOTALS))
    totals[0, [ROWS_KNOWN, EVENTS, EXPECTED, VARIANCE]] = rows, events, rows * p, rows * p * (1 - p)
    return JudgedSums(cohort, cohort, 0, 1, {"g": totals}, {}, np.zeros((1, 14)))
