"""Which weights can be summed, and which of them count rows?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.binning.equal_mass import EqualMass, FixedMass, Sweep
from trueodds.data.weights import are_counts
from trueodds.kernels.bins import find_bins
from trueodds.lenses.view import View

P, Y = [0.2, 0.7, 0.9, 0.4], [0, 1, 1, 0]


@pytest.mark.parametrize("weight", [1e300, 1e-300, 1e-321, 1.1e30, 0.9e-30])
def test_weights_whose_powers_cannot_be_summed_are_refused(weight: float) -> None:
    for weights in ([weight] * 4, [weight, 0, 0, weight / 2]):
        with refused("TO110", f"{weight:g}", fix="Divide all weights by the largest"):
            Predictions(Y, P, weight=weights)


@pytest.mark.parametrize("smallest", [0.9e-30, 1e-100, 5e-324])
def test_weights_that_vanish_beside_the_largest_are_refused(smallest: float) -> None:
    with refused("TO110", f"{smallest:g} and 1", fix="to 0"):
        Predictions(Y, P, weight=[1, 1, 1, smallest])


def test_zeros_and_the_whole_range_beside_them_are_kept() -> None:
    weights = [1e30, 2.0, 0, 1e30]
    stored = Predictions(Y, P, weight=weights).weight
    assert stored is not None
    assert stored.tolist() == weights


@pytest.mark.parametrize(
    ("weights", "counts"),
    [
        ([1, 2, 3], True),
        ([0, 0, 2**53], True),
        ([1, 2.5], False),
        ([2.0**52, 2.0**52, 2.0], False),
        ([3e18, 3e18], False),
    ],
)
def test_integers_count_rows_where_a_float_holds_their_sum(weights: list[float], counts: bool) -> None:
    assert are_counts(np.array(weights, dtype=float)) is counts


@pytest.mark.parametrize("weight", [1e17, 3e18, 2.0**62, 1e25])
@pytest.mark.parametrize("partition", [EqualMass(3), EqualMass(3, cut="floor"), Sweep(), FixedMass(100)], ids=str)
def test_weights_beyond_counts_are_cut_like_fractions(partition: Any, weight: float) -> None:
    """Cuts in 64-bit integers would wrap around."""
    rng = np.random.default_rng(0)
    p, w = rng.random(40), rng.random(40) + 0.5
    y = rng.random(40) < p
    edges, scaled = (partition.fit(View(p, y, of)).edges for of in (w, w * weight))
    np.testing.assert_array_equal(edges, scaled)


def test_large_counts_are_cut_as_integers_beyond_64_bits_would_be() -> None:
    # Ten rows that count 9e14 each, in 7 groups: group i ends after ⌊i 9e15 / 7⌋ rows, within row ⌈10 i / 7⌉.
    p, w = np.arange(10) / 10, np.full(10, 9e14)
    edges = EqualMass(7, cut="floor").fit(View(p, p > 0.5, w)).edges
    last = [-(-10 * i // 7) for i in range(1, 7)]
    np.testing.assert_allclose(edges[1:-1], [p[i - 1] for i in last], rtol=1e-12)


def test_groups_of_few_rows_under_large_counts_are_the_rows_themselves() -> None:
    """So many groups as the counts hold would not fit into memory. The bins of the other groups are empty."""
    p, w = np.arange(1, 9) / 10, np.full(8, 1e15)
    bins = FixedMass(100).fit(View(p, p > 0.5, w))
    assert len(np.unique(find_bins(p, bins.edges, bins.closed))) == len(p)
    assert bins.size <= 2 * len(p)


def test_frequency_weights_that_no_memory_holds_are_refused() -> None:
    with refused("TO110", "4e+15", fix="importance"):
        to.measure(Predictions(Y, P, weight=[1e15] * 4), "ece", weight_kind="frequency", mode="exact")


def test_frequency_weights_that_cannot_be_counted_exactly_are_refused() -> None:
    with refused("TO110", "4e+16", fix="importance"):
        to.measure(Predictions(Y, P, weight=[1e16] * 4), "ece", weight_kind="frequency")


@pytest.mark.parametrize("unit", [3e18, 0.3, 1e-20, 7e24])
@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        ("ece", {"partition": "equal-mass"}),
        ("ece", {"partition": "mass:7"}),
        ("ece", {"partition": "sweep"}),
        ("ece_linear", {}),
        ("ici", {}),
    ],
    ids=str,
)
def test_weights_that_are_all_equal_give_the_numbers_of_rows_without_weights(
    estimator: str, settings: dict[str, Any], unit: float
) -> None:
    rng = np.random.default_rng(0)
    p = np.round(rng.random(47), 2)
    y = rng.random(47) < p
    known = to.measure(Predictions(y, p), estimator, resamples=50, **settings)
    estimate = to.measure(Predictions(y, p, weight=np.full(47, unit)), estimator, resamples=50, **settings)
    assert [estimate.value, estimate.noise_floor] == pytest.approx([known.value, known.noise_floor], rel=1e-12)
    assert (estimate.interval is None) == (known.interval is None) == (settings.get("partition") == "sweep")
    if estimate.interval and known.interval:
        ends = [known.interval.low, known.interval.high]
        assert [estimate.interval.low, estimate.interval.high] == pytest.approx(ends, rel=1e-9)


@pytest.mark.parametrize("cut", ["floor", "first"])
def test_weights_of_the_same_ratios_are_cut_at_the_same_rows(cut: Any) -> None:
    rng = np.random.default_rng(0)
    p, w = rng.random(40), rng.integers(1, 4, 40).astype(float)
    edges, scaled = (EqualMass(7, cut=cut).fit(View(p, p > 0.5, of)).edges for of in (w, w * 3e18))
    np.testing.assert_array_equal(edges, scaled)
