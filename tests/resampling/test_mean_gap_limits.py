"""No interval of an error is below that of the absolute mean gap (calibration-in-the-large), which the error bounds."""

import numpy as np
import pytest

import trueodds as to
from trueodds.binning.equal_mass import EqualMass
from trueodds.estimators.binned import AverageError, BinnedError
from trueodds.lenses.view import View

ERRORS = ("ece", "sce", "ace", "rmsce", "mce", "debiased_l1", "ece_linear", "smece", "ks", "ecce_r")


def shifted(seed, n, shift=0.3, **settings):
    """Overpredicted rows: log odds shifted by a constant, so that the error is the absolute mean gap."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 1.3, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-(logit - shift)))).astype(int)
    settings = {name: make(rng, n) for name, make in settings.items()}
    return to.Predictions(y, 1 / (1 + np.exp(-logit)), **settings)


def limits_of_mean_gap(data, **settings):
    """Limits of the absolute mean gap."""
    interval = to.measure(data, "calibration_in_the_large", lens="positive", **settings).interval
    return max(0.0, interval.low, -interval.high), max(-interval.low, interval.high)


@pytest.mark.slow
@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_no_interval_is_below_that_of_the_mean_gap(name, level):
    n_above_zero = 0
    for seed in range(6):
        data = shifted(seed, 400)
        low, high = limits_of_mean_gap(data, level=level, resamples=400)
        estimate = to.measure(data, name, lens="positive", level=level, resamples=400)
        n_above_zero += low > 0
        if name == "ace":  # 400 rows in 15 ranges: the largest have 27 rows, of 26.7 on average
            low, high = low * 400 / 15 / 27, high * 400 / 15 / 27
        # The interval contains a debiased estimate, and that of rmsce uses the normal limits of the mean gap.
        tolerance = 0.15 * (high - low) if name == "rmsce" else 1e-12
        assert estimate.interval.low >= min(low, estimate.value) - tolerance
        assert estimate.interval.high >= high - tolerance
    assert n_above_zero >= 3


@pytest.mark.parametrize(
    "settings",
    [
        {"weight": lambda rng, n: rng.integers(1, 4, n).astype(float)},
        {"cluster": lambda _rng, n: np.arange(n) // 4},
        {"cluster": lambda _rng, n: np.arange(n) % 3},
    ],
    ids=["weights", "clusters", "three clusters"],
)
def test_weights_and_clusters_keep_the_order_of_the_limits(settings):
    data = shifted(3, 800, **settings)
    low, high = limits_of_mean_gap(data)
    interval = to.measure(data, "ece", lens="positive").interval
    assert 0 < low <= interval.low + 1e-12
    assert high <= interval.high + 1e-12


def test_tallies_keep_the_order_of_the_limits():
    for seed in range(4):
        tally = to.tally(shifted(seed, 600))
        low, high = limits_of_mean_gap(tally)
        interval = to.measure(tally, "ece", lens="positive").interval
        assert low <= interval.low + 1e-12
        assert high <= interval.high + 1e-12


def test_groups_keep_the_order_of_the_limits():
    rows = shifted(5, 900, group=lambda rng, n: rng.choice(["a", "b"], n))
    errors, gaps = (to.by_group(rows, name, lens="positive") for name in ("ece", "calibration_in_the_large"))
    for error, gap in zip(errors.groups, gaps.groups, strict=True):
        low = max(0.0, gap.estimate.interval.low, -gap.estimate.interval.high)
        assert error.estimate.interval.low >= low - 1e-12


@pytest.mark.slow
def test_an_audit_keeps_the_order_of_the_limits_where_no_test_rejects():
    # The mean gap excludes 0 in some of these sets although the test does not reject. There the interval of the error
    # was extended to 0.
    n_without_rejection = 0
    for seed in range(12):
        data = shifted(seed, 250, shift=0.28)
        audit = to.audit(data).to_dict()
        low, _ = limits_of_mean_gap(data)
        (ece,) = (measure for measure in audit["measures"] if measure["estimator"] == "ece")
        assert ece["interval"]["low"] >= low - 1e-12
        n_without_rejection += low > 0 and not audit["verdict"]["rejected"]
    assert n_without_rejection >= 1


def test_only_errors_in_which_nothing_cancels_are_bounded():
    # Scores .1 and .9 and event rates 1/2: gaps .4 and −.4 of equal weight, and mean gap 0.
    view = View([0.1, 0.1, 0.9, 0.9], [0, 1, 0, 1])
    assert BinnedError().mean_gap_share(view) == 1
    assert BinnedError(distance="sq-euclidean").mean_gap_share(view) == 0  # a square can be below the gap
    assert BinnedError(order=np.inf, min_count=3).mean_gap_share(view) == 0  # the bins with the gap may not count
    # Bins of 1 and 3 rows that weigh 1/2 each: a row of the large bin has 2/3 of its weight in the mean gap. With the
    # gaps 0 and −.9 of the bins, the error is .45, 2/3 of the absolute mean gap of .675.
    uneven = View([0.1, 0.9, 0.9, 0.9], [0.1, 0, 0, 0])
    assert AverageError().mean_gap_share(uneven) == pytest.approx(2 / 3)
    assert float(AverageError()(uneven)) == pytest.approx(2 / 3 * 0.675)
    even = View(np.linspace(0.01, 0.99, 30), np.tile([0, 1], 15))
    assert AverageError(EqualMass(15)).mean_gap_share(even) == 1
    # Two rows in each of 14 bins and 3 in the last, of 31 rows: (31/15) / 3.
    one_more = View(np.linspace(0.01, 0.99, 31), np.tile([0, 1], 16)[:31])
    assert AverageError(EqualMass(15)).mean_gap_share(one_more) == pytest.approx(31 / 45)
