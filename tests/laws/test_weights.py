"""Do the ratios of weights alone matter, for every estimator, test, calibrator and diagram, at any scale that is taken?

Equal-mass cuts are made at whole rows where weights are counts, so the weights here are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.calibrators.rows import REQUIRED_SETTINGS
from trueodds import InputError, Predictions
from trueodds.api.by_group import by_group
from trueodds.calibrators import CALIBRATORS
from trueodds.diagrams import DIAGRAMS, PREDICTION_DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS

RNG = np.random.default_rng(3)
N = 40
P = RNG.dirichlet([1, 1, 1], N)
Y = np.array([RNG.choice(3, p=p) for p in P])
W = RNG.random(N) + 0.5
SCALES = (3e18, 2.0**62, 1e9, 1e-9, 1e28, 1e-28)
ABSOLUTE = {"weight", "expected", "observed", "settings", "notes", "w"}  # sums of weights, and what tells them


def two(scale: float) -> Predictions:
    return Predictions(Y > 0, P[:, 1] + P[:, 2], weight=W * scale, group=np.arange(N) % 2)


def three(scale: float) -> Predictions:
    return Predictions(Y, P, weight=W * scale)


def four(scale: float) -> Predictions:
    P = np.random.default_rng(4).dirichlet(np.ones(4), N)
    return Predictions(np.random.default_rng(5).integers(0, 4, N), P, weight=W * scale)


def votes(scale: float) -> Predictions:
    return Predictions(np.random.default_rng(0).multinomial(7, P), P, weight=W * scale)


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number of a result by its place, but sums of weights."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name not in ABSOLUTE:
                yield from numbers(item, f"{path}/{name}")
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for i, item in enumerate(value):
            yield from numbers(item, f"{path}/{i}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, float(value)


def answer(ask: Any, preds: Predictions) -> Any:
    try:
        return dict(numbers(ask(preds)))
    except InputError as refusal:
        return refusal.code


def assert_the_same(ask: Any, *kinds: Any) -> None:
    answered = 0
    for kind in kinds:
        known = answer(ask, kind(1.0))
        answered += isinstance(known, dict)
        for scale in SCALES:
            actual = answer(ask, kind(scale))
            if isinstance(known, str) or isinstance(actual, str):
                assert actual == known, f"{kind.__name__} times {scale:g}"
                continue
            assert actual.keys() == known.keys()
            for place, number in known.items():
                same = number == actual[place] or (math.isnan(number) and math.isnan(actual[place]))
                # A debiased number may be the root of a difference of equal numbers: rounding of 1e-16 becomes 1e-8.
                close = math.isclose(number, actual[place], rel_tol=1e-9, abs_tol=1e-7 if "debiased" in place else 1e-9)
                assert same or close, f"{kind.__name__} times {scale:g}: {place} {number} {actual[place]}"
    assert answered


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_an_estimator_reads_the_ratios_of_weights(name: str) -> None:
    assert_the_same(lambda preds: to.measure(preds, name, resamples=20).to_dict(), two, three, votes)


@pytest.mark.parametrize("name", TESTS.names())
def test_a_test_reads_the_ratios_of_weights(name: str) -> None:
    options = {"resamples": 19} if TESTS.has_setting(name, "resamples") else {}
    assert_the_same(lambda preds: to.test(preds, name, **options).to_dict(), two, three)


@pytest.mark.parametrize("name", [name for name in CALIBRATORS.names() if name not in ("auto", "evidential")])
def test_a_calibrator_reads_the_ratios_of_weights(name: str) -> None:
    at, own = np.linspace(0.05, 0.95, 7), REQUIRED_SETTINGS.get(name, {}) if name != "boldness" else {}

    def mapped(preds: Predictions) -> Any:
        return to.fit(preds, name, **own).predict_proba(at if preds.k == 2 else P[:7]).tolist()

    assert_the_same(mapped, two, three)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PREDICTION_DIAGRAMS if name not in ("training", "comparison")])
def test_a_diagram_reads_the_ratios_of_weights(name: str) -> None:
    options = {"resamples": 99} if DIAGRAMS.has_setting(name, "resamples") else {}
    assert_the_same(lambda preds: to.draw(preds, name, **options).to_dict(), two, three, four)


@pytest.mark.parametrize("name", ["ece", "brier"])
def test_comparisons_groups_and_tallies_read_the_ratios_of_weights(name: str) -> None:
    assert_the_same(lambda preds: to.compare(preds, preds[::-1], name, resamples=20).to_dict(), two)
    assert_the_same(lambda preds: by_group(preds, name, resamples=20).to_dict(), two)
    assert_the_same(lambda preds: to.measure(preds, name, mode="tally", interval=None).to_dict(), two, three)


@pytest.mark.slow
def test_plans_and_audits_read_the_ratios_of_weights() -> None:
    assert_the_same(lambda preds: to.power(preds, "spiegelhalter", simulations=20).to_dict(), two)
    assert_the_same(lambda preds: to.audit(preds, resamples=39).to_dict(), two)
