"""Is one more row's isotonic mean the one that a fit with it finds?"""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels.isotonic import added_row_means


def cells(m, kind, seed):
    rng = np.random.default_rng([seed, m])
    mass = {"rows": np.ones(m), "counts": rng.integers(1, 5, m).astype(float), "weights": rng.random(m) * 4 + 0.01}[
        kind
    ]
    share = rng.integers(0, 2, m) if kind == "rows" else rng.integers(0, 5, m) / 4
    return mass, np.rint(mass * share) if kind == "counts" else mass * share


def refitted(mass, events, at, outcome):
    """The mean at `at` after one more row there: at j with score j, at j − 1/2 between j − 1 and j."""
    scores = np.arange(len(mass), dtype=float)
    x, where = np.unique(np.append(scores, at), return_inverse=True)
    m, s = np.bincount(where, np.append(mass, 1.0)), np.bincount(where, np.append(events, outcome))
    return isotonic_regression(s / m, weights=m).x[np.searchsorted(x, at)]


@pytest.mark.parametrize("kind", ["rows", "counts", "weights"])
@pytest.mark.parametrize("m", [1, 2, 3, 8, 40])
def test_means_are_those_of_a_fit_with_the_row(m, kind):
    for seed in range(4):
        mass, events = cells(m, kind, seed)
        low, high = added_row_means(mass, events)
        for j in range(m):
            for offset in (0.0, 0.5):  # at the score, and on the side where the mean holds on
                assert low[j] == pytest.approx(refitted(mass, events, j + offset, 0.0), abs=1e-12)
                assert high[j] == pytest.approx(refitted(mass, events, j - offset, 1.0), abs=1e-12)


def test_means_of_separated_rows_are_exact():
    # 0 0 1 1: a 0 at the third joins it, 1/2; at the fourth it joins both, 2/3. Mirrored for a 1.
    low, high = added_row_means(np.ones(4), np.array([0.0, 0.0, 1.0, 1.0]))
    assert low == pytest.approx([0.0, 0.0, 1 / 2, 2 / 3])
    assert high == pytest.approx([1 / 3, 1 / 2, 1.0, 1.0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_lie_in_memory_as_they_like(layout):
    mass, events = cells(30, "weights", 0)
    for one, other in zip(added_row_means(layout(mass), layout(events)), added_row_means(mass, events), strict=True):
        assert (one == other).all()


def test_no_scores_have_no_means():
    assert [len(means) for means in added_row_means(np.empty(0), np.empty(0))] == [0, 0]


@pytest.mark.parametrize("kind", ["rows", "weights"])
def test_means_rise_and_do_not_cross(kind):
    low, high = added_row_means(*cells(3000, kind, 1))
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    assert (low <= high).all()


def test_weights_that_swallow_the_row_leave_numbers():
    low, high = added_row_means(np.full(5, 1e18), np.array([0.0, 1e18, 0.0, 1e18, 1e18]))
    assert ((low >= 0) & (high <= 1)).all()
