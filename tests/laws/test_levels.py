"""Does every test keep its level, or say that it does not, and do p-values of redrawn labels mean what they say?

The number of data sets is small; `trueodds study level` and `trueodds study uniform` measure the same on many.
"""

import numpy as np
import pytest
from scipy import stats

from trueodds.hypotests import TESTS
from trueodds_studies.common.simulated_worlds import CALIBRATED_WORLDS
from trueodds_studies.level import Plan, hypothesis_forms, simulate_pvalues
from trueodds_studies.uniform import kolmogorov_pvalue, randomize_pvalues, uniform_distances

FORMS = [form for name in TESTS.names() for form in hypothesis_forms(name) if form.null != "both"]
HARD = (("rare", 30), ("sure", 100), ("sharp 3", 30))  # where χ² and normal laws fail first
PLAN = Plan(resamples=39)  # p ≤ 0.05 is then 2 of 40
CHANCE = 1e-4  # of a false alarm, for one form in one world
# Most forms are judged by a part of the data sets: the others are simulated where that part rejects more often than is
# likely at 5 %. A test that rejects 12 % is passed by the part alone with a probability of 14 % in one world.
FIRST_SETS, SUSPICION = 80, 0.15
FAST_METHODS = {"spiegelhalter", "ks"}  # whose simulations take half a second


def world(name):
    return next(candidate for candidate in CALIBRATED_WORLDS if candidate.name == name)


def max_rejections(sets):
    # Rejections at 5 % are Binomial(sets, 0.05) at most; more than this come with probability CHANCE.
    return stats.binom.isf(CHANCE, sets, 0.05)


def simulate_until_clear(form, where, n, sets):
    part = simulate_pvalues(form, where, n, FIRST_SETS, PLAN)
    if part.count_rejections(0.05) <= stats.binom.isf(SUSPICION, FIRST_SETS, 0.05):
        return FIRST_SETS, part
    return sets, simulate_pvalues(form, where, n, sets, PLAN)


def with_marks(form):
    marks = [] if form.name in FAST_METHODS else [pytest.mark.slow]
    return pytest.param(form, id=f"{form.label} {form.null}", marks=marks)


@pytest.mark.claim(
    "docs/level.md",
    "A test at the 5 % level should reject a calibrated model in at most 5 % of data sets.",
    "level",
)
@pytest.mark.parametrize("form", [with_marks(form) for form in FORMS])
def test_a_test_keeps_its_level_or_says_that_it_may_not(form):
    rejected = tested_sets = 0
    for name, n in HARD:
        if not form.fits(world(name).k, n):
            continue
        sets, result = simulate_until_clear(form, world(name), n, 200 if form.makes_draws else 400)
        hits, silent = result.count_rejections(0.05), ~result.doubted
        if form.null != "redraw" and hits > max_rejections(sets):
            unsaid = result.count_rejections(0.05, silent)
            assert 2 * unsaid < hits, f"{name}, n = {n}: {hits} of {sets} rejected, {unsaid} without the note TN212"
            hits, among = unsaid, int(silent.sum())
        else:
            among = sets
        assert hits <= max_rejections(among), f"{name}, n = {n}: {hits} of {among} rejected"
        rejected, tested_sets = rejected + hits, tested_sets + among
    assert rejected <= max_rejections(tested_sets), f"{rejected} of {tested_sets} rejected, over all worlds"


@pytest.mark.slow
@pytest.mark.parametrize("form", [form for form in FORMS if form.null == "redraw"], ids=lambda form: form.label)
def test_p_values_of_resampled_labels_are_uniform(form):
    # Kolmogorov's test of p-values, made continuous by a uniform step of their grid of 1/100: of 150, and of 400 where
    # these are suspicious: 150 at a distance of 0.080 from the uniform distribution, while 400 fail at 0.107.
    where = world("logit-normal" if form.fits(2, 40) else "dirichlet 3")
    for sets, chance in ((150, SUSPICION), (400, CHANCE)):
        p = simulate_pvalues(form, where, 40, sets, Plan(resamples=99)).pvalues
        assert np.isfinite(p).mean() > 0.95
        values = randomize_pvalues(p[np.isfinite(p)], 99, np.random.default_rng(0))
        above, below = uniform_distances(values)
        too_often = kolmogorov_pvalue(len(values), above, sides=1)
        too_seldom = kolmogorov_pvalue(len(values), below, sides=1)
        if "uniform p-values" in TESTS.load(form.name).exemptions:
            too_seldom = 1.0  # ties of a discrete statistic make p-values larger
        if min(too_often, too_seldom) > chance:
            break
    assert too_often > CHANCE, f"rejects too often: {above:.3f} above the uniform law"
    assert too_seldom > CHANCE, f"rejects too seldom: {below:.3f} below the uniform law"
