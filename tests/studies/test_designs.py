"""Are the simulated worlds what they say: calibration functions, known errors, rows that follow them?"""

import numpy as np
import pytest
from scipy.special import betaln

from tests import reference
from trueodds.lenses.lens_by_name import as_lens
from trueodds_studies.common.simulated_worlds import (
    BINARY_WORLDS,
    MULTICLASS_WORLDS,
    VOTE_WORLDS,
    GaussianMixtureWorld,
    NoisyDirichletWorld,
    VoteWorld,
)


def total_variation(world, lens="positive"):
    (view,) = as_lens(lens).views(world.population())
    gap = np.abs(view.y - view.p)
    return float(view.w @ (gap if gap.ndim == 1 else gap.sum(axis=1) / 2) / view.total)


@pytest.mark.parametrize(
    "world", [w for w in (*BINARY_WORLDS, *MULTICLASS_WORLDS) if w.calibrated], ids=lambda w: w.name
)
def test_a_calibrated_world_has_no_error(world):
    assert total_variation(world, "canonical") < 1e-12


def test_the_gaussian_mixture_has_the_error_of_the_paper():
    # The paper prints 0.56; quadrature by another program gives 0.5637511404884765.
    assert total_variation(GaussianMixtureWorld("mixture")) == pytest.approx(
        0.5637511404884765, abs=1e-6
    )  # a step of 0.005 across the kink of |r − p|
    assert total_variation(GaussianMixtureWorld("true", 0.0, -2.0)) < 1e-12
    known = reference.estimators()["d.eta_tv.beta(1,1)_g1_is_class_minus1"]["value"]
    assert total_variation(GaussianMixtureWorld("mixture")) == pytest.approx(known, abs=1e-6)


@pytest.mark.parametrize(("k", "alpha"), [(3, 1.0), (10, 0.1)])
def test_the_dirichlet_model_has_its_closed_form(k, alpha):
    # Labels uniform in all rows: ECE = exp(a ((m−1) log(m−1) − m log m) − log B(a, (m−1) a)) / a.
    world = NoisyDirichletWorld("uniform", k, alpha, noise=1.0)
    power = alpha * ((k - 1) * np.log(k - 1) - k * np.log(k)) - betaln(alpha, (k - 1) * alpha)
    exact = float(np.exp(power) / alpha)
    (view,) = as_lens("canonical").views(world.population())
    gap = np.abs(view.y - view.p).sum(axis=1) / 2
    # 200,000 vectors: the mean stays within four standard errors.
    assert abs(gap.mean() - exact) < 4 * gap.std() / np.sqrt(len(gap))


@pytest.mark.parametrize("world", BINARY_WORLDS, ids=lambda w: w.name)
def test_rows_follow_the_whole_world(world):
    rows, population = world.rows(np.random.default_rng(0), 200_000), world.population()
    (view,) = as_lens("positive").views(population)
    mean_p, mean_y = view.w @ view.p / view.total, view.w @ view.y / view.total
    # Means of 200,000 values in [0, 1] have a standard error of at most 0.5/sqrt(n).
    assert abs(rows.p.mean() - mean_p) < 4 * 0.5 / np.sqrt(rows.n)
    assert abs(rows.y.mean() - mean_y) < 4 * 0.5 / np.sqrt(rows.n)


def test_a_crowd_votes_as_its_probabilities_say():
    rows = VoteWorld("crowd", noise=0.0).rows(np.random.default_rng(0), 20_000)
    gap = rows.votes - rows.P
    # Every vote share scatters around its probability: the mean of 20,000 gaps is within four standard errors.
    assert (np.abs(gap.mean(axis=0)) < 4 * gap.std(axis=0) / np.sqrt(rows.n)).all()
    assert {world.calibrated for world in VOTE_WORLDS} == {True, False}
