"""Is each distance the one of its name, and the binary form the same number as the 2-vector form?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trueodds as to
from tests.data.refused import refused
from trueodds.binning.distance import DISTANCES, Distance, as_distance, power_mean
from trueodds.core.errors import InputError
from trueodds.core.typing import Array

PREDICTED, OBSERVED = np.array([0.2, 0.3, 0.5]), np.array([0.1, 0.6, 0.3])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # differences .1, −.3, .2
        ("tv", 0.3),
        ("l1", 0.6),
        ("l2", math.sqrt(0.14)),
        ("sq-euclidean", 0.14),
        ("max", 0.3),
        ("lp:3", 0.036 ** (1 / 3)),
        ("lp:inf", 0.3),
        ("lp:1", 0.6),
        # KL(seen ‖ said) = .1 log(1/2) + .6 log 2 + .3 log(3/5)
        ("kl", 0.5 * math.log(2) + 0.3 * math.log(0.6)),
    ],
)
def test_a_distance_by_hand(name: str, value: float) -> None:
    assert float(as_distance(name).vector_distance(PREDICTED, OBSERVED)) == pytest.approx(value, rel=1e-14)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from([*DISTANCES, "lp:1", "lp:2", "lp:3.5", "lp:inf"]))
def test_the_binary_form_is_the_distance_between_two_vectors(p: float, y: float, name: str) -> None:
    d = as_distance(name)
    two = float(d.vector_distance(np.array([1 - p, p]), np.array([1 - y, y])))
    # 1 − p rounds by up to 2^-54, which the 1/q-th power of a difference passes on in full
    assert float(d.score_distance(np.array(p), np.array(y))) == pytest.approx(two, rel=1e-9, abs=1e-15)


def test_kl_is_infinite_where_the_impossible_occurred_and_zero_where_nothing_did() -> None:
    kl = as_distance("kl")
    assert kl.vector_distance(np.array([0.0, 1.0]), np.array([0.5, 0.5])) == np.inf
    assert kl.vector_distance(np.array([0.5, 0.5]), np.array([0.0, 1.0])) == pytest.approx(math.log(2))
    assert kl.score_distance(np.array([0.0, 1.0, 0.0]), np.array([0.1, 0.9, 0.0])).tolist() == [np.inf, np.inf, 0]


def test_kl_of_a_value_above_one_by_rounding_is_that_of_one() -> None:
    kl = as_distance("kl")
    above = np.array([1 + 2**-52])
    assert kl.score_distance(above, np.array([0.9])).tolist() == [np.inf]
    assert abs(float(kl.score_distance(above, np.array([1.0]))[0])) < 1e-15


def test_lp_alone_takes_its_power_from_order() -> None:
    assert as_distance("lp").name == "lp:1"
    assert as_distance("lp", order=3).name == "lp:3"
    assert as_distance("lp:4", order=3).name == "lp:4"
    assert as_distance("lp", order=float("inf")).name == "max"


def test_a_callable_is_called_cell_by_cell() -> None:
    def first(predicted: Array, observed: Array) -> float:
        return abs(predicted[0] - observed[0])

    d = as_distance(first)
    assert d.name == "first"
    assert not d.is_norm
    predicted = np.array([[PREDICTED, OBSERVED]])
    assert d.vector_distance(predicted, np.array([[OBSERVED, OBSERVED]])) == pytest.approx(np.array([[0.1, 0.0]]))
    assert d.score_distance(np.array([0.2, 0.5]), np.array([0.3, 0.5])) == pytest.approx([0.1, 0.0])


def test_a_callable_may_return_ints() -> None:
    d = as_distance(lambda predicted, observed: int((predicted != observed).any()))
    assert d.score_distance(np.array([0.2, 0.5]), np.array([0.3, 0.5])).tolist() == [1.0, 0.0]


def test_a_distance_is_zero_only_between_equals() -> None:
    for d in DISTANCES.values():
        assert float(d.vector_distance(PREDICTED, PREDICTED)) == pytest.approx(0, abs=1e-16)
        assert float(d.vector_distance(PREDICTED, OBSERVED)) > 0


@pytest.mark.parametrize("name", ["euclid", "lp:0", "lp:0.5", "lp:x", "", None, 2, ["tv"]])
def test_a_distance_that_is_none_is_refused(name: Any) -> None:
    with refused("TO203"):
        as_distance(name)


def test_a_misspelt_distance_gets_the_near_ones() -> None:
    with refused("TO203", "'sq-euclid'", fix="sq-euclidean"):
        as_distance("sq-euclid")


@pytest.mark.parametrize("name", [*DISTANCES, "lp:1", "lp:3"])
def test_a_distance_is_a_norm_if_it_is_proportional_to_the_difference(name: str) -> None:
    distance = as_distance(name)
    near, far = (distance.vector_distance(PREDICTED, PREDICTED + t * (OBSERVED - PREDICTED)) for t in (0.5, 1.0))
    assert distance.is_norm == (abs(far - 2 * near) < 1e-12)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_a_power_mean_is_of_the_last_axis_and_keeps_zero_and_infinity(power: float) -> None:
    # Weights 1/4 and 3/4 of 0.2 and 0.4: (0.05 + 0.3), √(0.01 + 0.12), ∛(0.002 + 0.048)
    weights, by_hand = np.array([0.25, 0.75]), {1.0: 0.35, 2.0: math.sqrt(0.13), 3.0: 0.05 ** (1 / 3)}[power]
    sizes = np.array([[0.2, 0.4], [0.0, 0.0], [0.2, np.inf], [np.inf, np.inf]])
    assert power_mean(weights, sizes, power) == pytest.approx(np.array([by_hand, 0.0, np.inf, np.inf]), rel=1e-14)


def test_a_distance_is_itself() -> None:
    own = Distance("own", DISTANCES["tv"].vector_distance, DISTANCES["tv"].score_distance)
    assert as_distance(own) is own
    assert str(own) == "own"


def test_an_own_distance_serves_draws_as_well_as_the_value():
    # the draws have one axis more on the side of what was seen; the named and the own form must agree throughout
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 60)
    preds = to.Predictions(rng.integers(0, 3, 60), P)

    def half_l1(predicted, observed):
        return np.abs(predicted - observed).sum() / 2

    for lens in ("confidence", "classwise", "canonical"):
        named, own = (to.test(preds, "consistency", lens=lens, distance=d, resamples=19) for d in ("tv", half_l1))
        assert own.statistic == pytest.approx(named.statistic, rel=1e-12)
        assert own.pvalue == named.pvalue
    # two sets of 999 draws whose sd is a quarter of their mean: 3.3 · .25 · √(2/999) = 4 %
    floors = [to.measure(preds, "ece", distance=d).noise_floor for d in ("tv", half_l1)]
    assert floors[0] == pytest.approx(floors[1], rel=0.04)


def test_an_own_distance_must_give_a_number():
    with pytest.raises(InputError, match="TO203"):
        to.measure(to.Predictions([0, 1], [0.2, 0.7]), "ece", distance=lambda predicted, observed: "far", interval=None)
