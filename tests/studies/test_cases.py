"""Is each special case of the study of intervals judged in the right worlds, against the right truth?"""

import pytest

from trueodds.estimators import ESTIMATORS
from trueodds_studies.common.estimator_cases import CASES, population_value
from trueodds_studies.common.simulated_worlds import BINARY_WORLDS, MULTICLASS_WORLDS, VOTE_WORLDS


def test_the_distance_from_the_crowd_is_measured_where_people_vote():
    (case,) = CASES["human_distance"]
    assert [world.name for world in (*BINARY_WORLDS, *MULTICLASS_WORLDS, *VOTE_WORLDS) if case.fits(world)] == [
        w.name for w in VOTE_WORLDS
    ]


@pytest.mark.parametrize("world", VOTE_WORLDS, ids=lambda world: world.name)
def test_the_truth_of_the_distance_has_no_noise_of_votes(world):
    # Q = (1 − a) P + a/3, so |P − Q|² = a² |P − 1/3|², and P uniform on the triangle has variances 1/18: a²/6.
    (case,) = CASES["human_distance"]
    value = population_value(case, ESTIMATORS.make("human_distance", {}), world)
    # Per item, d = P − Q of |d|² ≤ 2a²/3: 4 dᵀΣd/m + 2 tr Σ²/(m(m − 1)), Σ of trace at most 2/3,
    # plus the variance of |d|² itself, at most (2a²/3)²/4; 4.9 standard errors of 200,000 items.
    a, m = world.noise, world.people
    variance = 4 * (2 * a**2 / 3) * (2 / 3) / m + 2 * (4 / 9) / (m * (m - 1)) + (2 * a**2 / 3) ** 2 / 4
    assert value == pytest.approx(a**2 / 6, abs=4.9 * (variance / 200_000) ** 0.5)
