"""Is the interval method that the user chooses the one that is used, for an error and for a difference?"""

import numpy as np
import pytest

import trueodds as to
from trueodds.resampling.intervals.method import METHOD_NAMES, PLAIN_BOOTSTRAP_METHODS

rng = np.random.default_rng(3)
P = rng.random(400)
Y = (rng.random(400) < P**1.3).astype(int)


@pytest.mark.parametrize("name", [name for name in METHOD_NAMES if name != "auto"])
def test_an_error_has_the_interval_of_the_chosen_method(name: str) -> None:
    interval = to.measure(Y, P, "rmsce", interval=name, resamples=99).interval
    assert interval is not None
    assert interval.method == name


@pytest.mark.parametrize("name", PLAIN_BOOTSTRAP_METHODS)
def test_a_difference_has_the_interval_of_the_chosen_bootstrap(name: str) -> None:
    models = {"a": to.Predictions(Y, P), "b": to.Predictions(Y, P**1.3)}
    interval = to.compare(models, "brier", interval=name, resamples=99).pairs[0].interval
    assert interval is not None
    assert interval.method == name


@pytest.mark.parametrize("name", PLAIN_BOOTSTRAP_METHODS)
def test_outcomes_that_do_not_vary_give_no_bootstrap_interval(name: str) -> None:
    assert to.measure([1] * 5, [0.6, 0.7, 0.8, 0.9, 0.95], "brier", interval=name, resamples=99).interval is None


def test_the_limits_of_differences_by_each_bootstrap_differ() -> None:
    models = {"a": to.Predictions(Y, P), "b": to.Predictions(Y, P**1.3)}
    limits = {
        to.compare(models, "brier", interval=name, resamples=99).pairs[0].interval.low
        for name in PLAIN_BOOTSTRAP_METHODS
    }
    assert len(limits) == len(PLAIN_BOOTSTRAP_METHODS)
