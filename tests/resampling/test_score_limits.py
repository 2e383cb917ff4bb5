"""The limits of mean gaps and O:E ratios near their best values, which calibrated models exclude in 5 % of samples."""

import numpy as np
import pytest
from scipy.stats import binom

import trueodds as to
from tests.rates import rate_is_at_level
from tests.slow_parameters import slow_except

Z = 1.959963984540054


def constant(n, p, events):
    """Rows with one prediction."""
    return to.Predictions((np.arange(n) < events).astype(int), np.full(n, p))


def limits(rows, name, **settings):
    interval = to.measure(rows, name, lens="positive", **settings).interval
    return interval.low, interval.high


def test_too_few_rare_events_are_compared_with_their_number_in_a_calibrated_model():
    # 4 events where 10 were expected: the rate is .012 too low, and z = −.012 / √(.02 · .98 / 500) = −1.92, which is
    # not significant. The resamples, from 4 events, have only .64 times this standard error, so their interval
    # excludes 0.
    rows = constant(500, 0.02, 4)
    assert limits(rows, "calibration_in_the_large")[1] == 0
    assert limits(rows, "o_e")[1] == 1
    assert limits(rows, "ece")[0] == 0
    assert limits(rows, "calibration_in_the_large", interval="bca")[1] < 0  # the method by name is the plain one


def test_the_limit_is_the_value_less_the_margin_of_a_calibrated_model():
    # 18 events where 30 were expected, z = −2.21, just above 1.96: the limit of the gap −.012 is −.012 + 1.96 √(.03 ·
    # .97 / 1,000) = −.00143 at most, and that of the ratio .6 is .6 + 1.96 √(.97 / 30) = .9524 at least. Of the
    # reduction a share of (1.3 − 2.21 / 1.96) / .15 > 1 is made, so all of it.
    rows = constant(1000, 0.03, 18)
    margin = Z * np.sqrt(0.03 * 0.97 / 1000)
    assert limits(rows, "calibration_in_the_large")[1] == pytest.approx(-0.012 + margin, rel=1e-9)
    assert limits(rows, "o_e")[1] == pytest.approx(0.6 + margin / 0.03, rel=1e-9)


def test_votes_do_not_have_the_variance_of_single_labels():
    # Shares of 100 votes vary less than labels: gaps of .02 in 100 rows, where 1.96 √(.25 / 100) = .098
    rng = np.random.default_rng(0)
    rows = to.Predictions(rng.multinomial(100, [0.48, 0.52], 100), np.full((100, 2), 0.5))
    assert limits(rows, "calibration_in_the_large")[0] > 0


@pytest.mark.parametrize(("n", "p"), [(200, 0.5), (500, 0.02), (1000, 0.004), (300, 0.95)])
@pytest.mark.parametrize("name", slow_except(["calibration_in_the_large", "ece", "rmsce"], ["ece"]))
def test_intervals_of_a_calibrated_constant_contain_the_truth_in_93_percent_by_enumeration(n, p, name):
    # The interval depends on the number of events only. Those outside the 99.99 % range have a probability of 1e-4.
    covers = 0.0
    for events in range(int(binom.ppf(5e-5, n, p)), int(binom.ppf(1 - 5e-5, n, p)) + 1):
        interval = to.measure(constant(n, p, events), name, lens="positive", resamples=1000).interval
        if interval is None or interval.low <= 1e-12:
            covers += (interval is None or interval.high >= -1e-12) * binom.pmf(events, n, p)
    assert covers >= 0.93


@pytest.mark.parametrize(("name", "earlier"), [("rmsce", 0.113), ("ece", 0.11)])
def test_an_error_of_calibrated_rare_events_excludes_0_in_at_most_6_percent(name, earlier):
    # Of 300 to 400 sets as many as 6 % allow by the 99.9 % quantile.
    def excludes_0(seed):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(4 - rng.normal(size=500)))
        rows = to.Predictions((rng.random(500) < p).astype(int), p)
        return to.measure(rows, name, lens="positive", resamples=400).interval.low > 1e-12

    assert rate_is_at_level(map(excludes_0, range(600)), 0.06, excluded=earlier)
