"""Is the path what plain loops find, what the conditions of a minimum demand, and isotonic at its end?"""

import itertools

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, lsq_linear

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels.isotonic import average_levels, near_isotonic_path


def levels(path, model):
    """The level of every value in one model."""
    blocks, level = path.levels(model)
    values = np.empty(len(path.initial_block))
    for i, at in enumerate(path.initial_block):
        while at not in blocks:
            at = path.parent[at]
        values[i] = level[np.flatnonzero(blocks == at)[0]]
    return values


def by_loops(mass, events):
    """Every distinct λ with the levels there, all meetings looked through again after each."""
    blocks = [[m, c, [i]] for i, (m, c) in enumerate(zip(mass, events, strict=True))]
    now, path = 0.0, []

    def slopes():
        rates = [c / m for m, c, _ in blocks]
        falls = [0, *(int(a > b + 1e-12) for a, b in itertools.pairwise(rates)), 0]
        return [(falls[i] - falls[i + 1]) / block[0] for i, block in enumerate(blocks)]

    while True:
        i = 0
        while i + 1 < len(blocks):  # what is equal is one
            (m, c, of), (m2, c2, of2) = blocks[i : i + 2]
            if abs(c / m - c2 / m2) < 1e-10:
                blocks[i : i + 2] = [[m + m2, c + c2, of + of2]]
            else:
                i += 1
        path.append((now, np.concatenate([np.full(len(of), c / m) for m, c, of in blocks]), len(blocks)))
        rates, slope = [c / m for m, c, _ in blocks], slopes()
        meetings = [
            (rates[i + 1] - rates[i]) / (slope[i] - slope[i + 1])
            for i in range(len(blocks) - 1)
            if abs(slope[i] - slope[i + 1]) > 1e-12
        ]
        ahead = min((meeting for meeting in meetings if meeting > 1e-12), default=None)
        if ahead is None:
            return path
        now += ahead
        for block, block_slope in zip(blocks, slope, strict=True):
            block[1] += block[0] * block_slope * ahead


def rows(m, seed, integer_weights=True):
    rng = np.random.default_rng([m, seed])
    mass = rng.integers(1, 4, m).astype(float) if integer_weights else rng.random(m) + 0.01
    return mass, mass * (rng.integers(0, 3, m) / 2 if integer_weights else rng.random(m))


def test_a_fall_that_meets_a_third_level_on_its_way():
    # Levels .2, .8, .5, .6, ten rows each. The fall .8 > .5 closes by λ/10 from both sides; .5 + λ/10 meets .6 at
    # λ = 1, where the second is at .7. Then .8 − λ/10 = (11 + λ)/20 at λ = 5/3: all three at 19/30, isotonic.
    path = near_isotonic_path(np.full(4, 10.0), np.array([2.0, 8.0, 5.0, 6.0]))
    assert path.lambdas == pytest.approx([0, 1, 5 / 3])
    assert path.n_blocks.tolist() == [4, 3, 2]
    assert levels(path, 1) == pytest.approx([0.2, 0.7, 0.6, 0.6])
    assert levels(path, 2) == pytest.approx([0.2, 19 / 30, 19 / 30, 19 / 30])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("integer_weights", [True, False])
def test_plain_loops_find_the_same_path(seed, integer_weights):
    mass, events = rows(int(2 + 3 * seed), seed, integer_weights)
    path, want = near_isotonic_path(mass, events), by_loops(mass, events)
    assert path.lambdas == pytest.approx([lam for lam, _, _ in want], abs=1e-9)
    assert path.n_blocks.tolist() == [size for _, _, size in want]
    for model, (_, level, _) in enumerate(want):
        assert levels(path, model) == pytest.approx(level, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_every_model_is_the_minimum_that_a_solver_of_the_dual_finds(seed):
    # With u in [0, λ] the multipliers of the falls, f_i = y_i − (u_i − u_{i−1})/w_i: least squares within bounds.
    mass, events = rows(14, seed, integer_weights=False)
    path = near_isotonic_path(mass, events)
    root = np.sqrt(mass)
    D = (np.eye(14, 13) - np.eye(14, 13, -1)) / root[:, None]
    for model in range(1, len(path.lambdas)):
        u = lsq_linear(D, events / root, (0, path.lambdas[model]), method="bvls", tol=1e-14).x
        assert levels(path, model) == pytest.approx((events / root - D @ u) / root, abs=1e-8)


@pytest.mark.parametrize("m", [1, 2, 50, 3000])
def test_it_ends_at_isotonic_regression(m):
    mass, events = rows(m, 0, integer_weights=False)
    path = near_isotonic_path(mass, events)
    want = isotonic_regression(events / mass, weights=mass).x
    assert average_levels(path, np.eye(len(path.lambdas))[-1]) == pytest.approx(want, abs=1e-12)


def test_the_mean_of_models_is_that_of_their_levels():
    mass, events = rows(40, 1)
    path = near_isotonic_path(mass, events)
    weights = np.random.default_rng(0).dirichlet(np.ones(len(path.lambdas)))
    want = sum(weight * levels(path, model) for model, weight in enumerate(weights))
    assert average_levels(path, weights) == pytest.approx(want, abs=1e-12)


def test_what_rises_already_is_one_model():
    path = near_isotonic_path(np.ones(3), np.array([0.1, 0.1, 0.7]))
    assert path.lambdas.tolist() == [0.0]
    assert path.n_blocks.tolist() == [2]


def test_levels_that_happen_to_meet_at_once_are_one_block():
    # 1 and 0 meet at 1/2 (λ = 1/2), where a third has been lying all the time; by itself it does not move.
    path = near_isotonic_path(np.ones(3), np.array([1.0, 0.0, 0.5]))
    assert path.lambdas == pytest.approx([0, 0.5])
    assert path.n_blocks.tolist() == [3, 1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_gives_the_same(layout):
    mass, events = rows(30, 2)
    path, other = near_isotonic_path(mass, events), near_isotonic_path(layout(mass), layout(events))
    assert (path.lambdas == other.lambdas).all()
    assert (path.parent == other.parent).all()
