"""Does each bin hold so many rows, and is the calibration error of language model benchmarks made of all of them?"""

from __future__ import annotations

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.binning.equal_mass import FixedMass
from trueodds.binning.partition_by_name import as_partition
from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.lenses.view import View


def blocks(c: Array, z: Array, size: int = 100) -> list[float]:
    """Per block of consecutive rows by rising confidence, the last with what is left: share times squared gap."""
    order = np.argsort(c, kind="stable")
    starts = list(range(0, max(1, len(c) // size) * size, size))
    ends = [*starts[1:], len(c)]
    c, z = c[order], z[order]
    return [(b - a) / len(c) * (c[a:b].mean() - z[a:b].mean()) ** 2 for a, b in zip(starts, ends, strict=True)]


def world(n: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.3, 1, n)
    return c, (rng.random(n) < c**3).astype(float)


def test_by_hand() -> None:
    # bins {.1, .2} and {.4, .5, .9}: the last takes the row left over. (2/5 · (.15 − 0)² + 3/5 · (.6 − 2/3)²)^½
    preds = to.Predictions.from_confidence([0.5, 0.1, 0.9, 0.4, 0.2], [0, 0, 1, 1, 0])
    estimate = to.measure(preds, "rmsce", partition="mass:2", interval=None)
    assert estimate.value == pytest.approx((0.4 * 0.15**2 + 0.6 * (1.8 / 3 - 2 / 3) ** 2) ** 0.5, rel=1e-12)
    assert (estimate.settings["partition"], estimate.settings["occupied_bins"]) == ("mass 2", 2)


@pytest.mark.parametrize("n", [40, 100, 199, 200, 1000, 1090])
def test_rms_error_in_blocks_of_100(n: int) -> None:
    c, z = world(n)
    estimate = to.measure(to.Predictions.from_confidence(c, z), "rmsce", partition="mass:100", interval=None)
    expected = blocks(c, z)
    assert estimate.value == pytest.approx(sum(expected) ** 0.5, rel=1e-10)
    assert estimate.settings["occupied_bins"] == max(1, n // 100)


def test_the_bin_of_the_surest_answers_counts() -> None:
    """Code that benchmarks share loops over all bins but the last, where the overconfident answers are.

    Of 1,090 rows the last bin holds 190; without it a model whose only fault are its surest answers has none.
    """
    c = np.concatenate([np.linspace(0.3, 0.7, 900), np.linspace(0.98, 0.999, 190)])
    z = np.concatenate([np.tile([0.0, 1.0], 450), np.zeros(190)])
    terms = blocks(c, z)
    value = to.measure(to.Predictions.from_confidence(c, z), "rmsce", partition="mass:100", interval=None).value
    assert value == pytest.approx(sum(terms) ** 0.5, rel=1e-10)
    assert value > 3 * sum(terms[:-1]) ** 0.5


def test_the_order_of_rows_with_equal_confidence_does_not_matter() -> None:
    """Stated confidences are multiples of 5 %: blocks cut through ties, and their error follows the order of rows."""
    rng = np.random.default_rng(0)
    c = rng.integers(10, 21, 1000) / 20
    z = (rng.random(1000) < c).astype(float)
    ours, cut = set(), set()
    for _ in range(5):
        rows = rng.permutation(1000)
        preds = to.Predictions.from_confidence(c[rows], z[rows])
        ours.add(round(to.measure(preds, "rmsce", partition="mass:100", interval=None).value, 12))
        cut.add(round(sum(blocks(c[rows], z[rows])) ** 0.5, 12))
    assert (len(ours), len(cut)) == (1, 5)


def test_it_comes_with_an_interval_and_a_noise_floor_that_is_the_mean_of_calibrated_data() -> None:
    # The floor is a mean of 999 redraws, the mean over 200 data sets has sd/√200 more: 4 standard errors of both.
    c, _ = world(1000)
    rng = np.random.default_rng(3)
    draws = [
        to.measure(
            to.Predictions.from_confidence(c, rng.random(1000) < c), "rmsce", partition="mass:100", interval=None
        ).value
        for _ in range(200)
    ]
    estimate = to.measure(to.Predictions.from_confidence(c, rng.random(1000) < c), "rmsce", partition="mass:100")
    assert estimate.interval is not None
    assert estimate.interval.method == "sun"
    assert estimate.noise_floor == pytest.approx(np.mean(draws), abs=4 * np.std(draws) * (1 / 200 + 1 / 999) ** 0.5)


def test_a_weight_of_two_is_two_rows_and_weights_are_cut_by_their_effective_n() -> None:
    c, z = world(300)
    two = View(c, z, np.full(300, 2.0))
    twice = View(np.repeat(c, 2), np.repeat(z, 2))
    assert FixedMass(100).fit(two).edges.tolist() == FixedMass(100).fit(twice).edges.tolist()
    survey = View(c, z, np.full(300, 250.5))  # as many rows as without weights
    assert FixedMass(100).fit(survey).edges.tolist() == FixedMass(100).fit(View(c, z)).edges.tolist()


def test_counts_of_many_rows_are_cut_as_these_rows() -> None:
    # 12 scores of up to 30 rows each: more groups of 5 rows than scores, which end within a score and at its end.
    # Regression: the last group that ends within a score was left out if the score also completed the last group.
    rng = np.random.default_rng(0)
    for _ in range(20):
        c, w = np.sort(rng.integers(1, 40, 12)) / 40, rng.integers(0, 4, 12) * rng.integers(1, 10, 12) + 1
        rows, z = np.repeat(np.arange(12), w), np.zeros(12)
        for partition in (FixedMass(5), FixedMass(5, "left"), FixedMass(60)):
            counted, listed = partition.fit(View(c, z, w)), partition.fit(View(c[rows], z[rows]))
            assert counted.edges.tolist() == listed.edges.tolist()


def test_its_name_is_read_and_misspelt_ones_are_refused() -> None:
    assert as_partition("mass:50", closed="left") == FixedMass(50, "left")
    assert str(as_partition("mass:50")) == "mass 50"
    for name in ("mass:", "mass:ten", "mass:1.5", "mass:0", "mass:-1"):
        with refused("TO203"):
            as_partition(name)
    with refused("TO202"):
        as_partition("mass:50", bins=4)
    with refused("TO205"):
        FixedMass().fit(View(np.full((3, 3), 1 / 3), np.eye(3)))
    assert Uniform() != FixedMass()
