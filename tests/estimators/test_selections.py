"""Does an estimator say the same of many selections of rows as of each by itself?"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.data.refused import refused
from trueodds import InputError, Predictions
from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.partition import Partition
from trueodds.binning.sorted_scores import RowSelections
from trueodds.binning.uniform import FixedEdges, Uniform
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.adaptive import AdaptiveError
from trueodds.estimators.base import Estimator
from trueodds.estimators.binned import AverageError, BinnedError, MaxError, RootMeanSquareError
from trueodds.estimators.ece_kde import MIN_BANDWIDTH, KernelDensityError, silverman_bandwidth, silverman_bandwidths
from trueodds.estimators.linear_binning import LinearBinError
from trueodds.kernels.smoothing import triweight_transform, triweight_transform_of_multiples
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

# Sums in another order differ by rounding: of a residual, 1e-16 of terms of at most 1, whatever is left of them.
ROUNDING: Any = {"rtol": 1e-12, "atol": 1e-14}


def loop(estimator: Estimator, of: RowSelections) -> Array:
    return np.array([estimator.value(of.view.take(np.asarray(rows))) for rows in of.rows])


def agree(estimator: Estimator, of: RowSelections, **within: Any) -> None:
    np.testing.assert_allclose(estimator.evaluate_selections(of), loop(estimator, of), **(within or ROUNDING))


def rows(n: int, selections: int, m: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, n, (selections, m))


def decimals(n: int = 40, seed: int = 0) -> View:
    """Scores in twentieths: ties, exact 0 and 1, scores on edges and centers."""
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 21, n) / 20
    return View(p, rng.random(n) < p, name="positive")


def scores(n: int = 300, seed: int = 1, low: float = 0.0) -> View:
    """Half of the scores in tenths, a cluster that differs by rounding, the rest anywhere from `low` to 1."""
    rng = np.random.default_rng(seed)
    p = low + (1 - low) * rng.random(n)
    p[: n // 2] = np.round(p[: n // 2], 1)
    p[n // 2 : n // 2 + 20] = 0.6 + 1e-16 * rng.integers(-3, 4, 20)
    p = np.maximum(p, low)
    return View(p, rng.random(n) < p**1.3, name="confidence", classes=4)


# The law, for every member


@pytest.mark.parametrize("name", ESTIMATORS.names())
@pytest.mark.parametrize("weighted", [False, True])
def test_each_is_the_value_of_every_selection(name: str, weighted: bool) -> None:
    estimator, view = ESTIMATORS.make(name, {}), decimals()
    if weighted:
        view = View(view.p, view.y, np.random.default_rng(3).integers(0, 3, len(view)), name=view.name)
    try:
        estimator.value(view)
    except InputError as refusal:
        if refusal.code not in ("TO204", "TO205"):
            raise
        pytest.skip(str(refusal))
    for m in (40, 25, 60):
        agree(estimator, RowSelections(view, rows(40, 3, m, seed=m)))
    agree(estimator, RowSelections(view, rows(40, 1, 40)))
    agree(estimator, RowSelections(view, [np.arange(40), np.arange(30), np.arange(39, 4, -1)]))  # of unequal length


@pytest.mark.parametrize("name", ["ece", "brier", "skce"])
def test_each_of_a_joint_view_is_the_value_of_every_selection(name: str) -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 50)
    (view,) = as_lens("canonical").views(Predictions([rng.choice(3, p=p) for p in P], P))
    agree(ESTIMATORS.make(name, {}), RowSelections(view, rows(50, 3, 45)))


# Side by side


def test_three_selections_by_hand() -> None:
    # Bins (0, .5] and (.5, 1]: .4 came (.6 off), .9 did not (.9 off). Twice the first; the first and the last; all.
    view, of = View([0.4, 0.9, 0.7], [1, 0, 1]), BinnedError(Uniform(2))
    some = RowSelections(view, np.array([[0, 0], [0, 1], [1, 2]]))
    assert of.evaluate_selections(some) == pytest.approx([0.6, (0.6 + 0.9) / 2, abs(1.6 - 1) / 2])
    # Linear bins with centers .25 and .75: .4 counts .7 and .3, .7 a tenth and nine tenths, .9 all in the upper one.
    shared = [0.6, (0.42 + abs(0.18 - 0.9)) / 2, (0.03 + abs(0.27 - 0.9)) / 2]
    assert LinearBinError(2).evaluate_selections(some) == pytest.approx(shared)


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize(
    "partition_type",
    [
        lambda closed: Uniform(10, closed),
        lambda closed: Uniform("sqrt", closed),
        lambda closed: Uniform("auto", closed),
        lambda closed: Uniform(7, closed, "1/K"),
        lambda closed: FixedEdges((0.0, 0.05, 0.6, 1.0), closed),
        lambda closed: EqualMass(10, closed),
        lambda closed: EqualMass("sqrt", closed),
        lambda closed: EqualMass(30, closed, "floor"),
        lambda closed: EqualMass(200, closed),
    ],
)
def test_bins_are_cut_anew_from_each_selection(partition_type: Any, closed: str) -> None:
    partition: Partition = partition_type(closed)
    for view in (scores(), decimals(), scores(low=0.25)):
        if getattr(partition, "range", None) and view.classes != 4:
            continue
        for m in (1, 2, 57):
            of = RowSelections(view, rows(len(view), 12, m))
            for error in (BinnedError, MaxError, RootMeanSquareError, AverageError, AdaptiveError):
                agree(error(partition), of)
            agree(BinnedError(partition, distance="kl"), of)
            agree(BinnedError(partition, order=3), of)
            agree(MaxError(partition, min_count=5), of)


@pytest.mark.slow
@pytest.mark.parametrize("bins", [1, 10, 30, 200, "sqrt", "auto"])
@pytest.mark.parametrize("base", ["uniform", "equal-mass"])
def test_linear_bins_are_cut_anew_from_each_selection(bins: Any, base: str) -> None:
    for view, span in itertools.product((scores(), decimals(), scores(low=0.25)), (None, "1/K")):
        if span and view.classes != 4:
            continue
        for m, closed, weights in itertools.product((1, 2, 115), ("left", "right"), ("linear", "swapped")):
            of = RowSelections(view, rows(len(view), 8, m))
            agree(LinearBinError(bins, base, span, closed=closed, weights=weights), of)  # type: ignore[arg-type]
            if weights == "linear":
                agree(LinearBinError(bins, base, span, "one-bin", closed), of)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", ["silverman", 0.1, 0.033, MIN_BANDWIDTH])
@pytest.mark.parametrize("kernel", ["triweight", "gaussian", "epanechnikov"])
def test_kernels_see_each_selection_on_the_grid_of_its_own_value(kernel: str, bandwidth: Any) -> None:
    # One grid, so only rounding tells them apart; higher orders divide it by a share of the scores of at least .001.
    views = [(scores(), None), (scores(low=0.25), "1/K"), (decimals(), None), (View([0.3] * 50, [1, 0] * 25), None)]
    for view, span in views:
        for m in (1, 57):
            of = RowSelections(view, rows(len(view), 4, m))
            agree(KernelDensityError(bandwidth, kernel, span), of, rtol=1e-11, atol=1e-13)
            for order in (2.0, np.inf):
                agree(KernelDensityError(bandwidth, kernel, span, order), of, rtol=1e-9, atol=1e-9)


def test_a_bandwidth_that_is_chosen_anew_may_ask_for_another_grid() -> None:
    # RowSelections of one score and of two that lie close need finer grids than the first.
    p = np.concatenate([np.linspace(0, 1, 50), np.full(50, 0.5), np.linspace(0.49, 0.51, 50)])
    view = View(p, np.arange(150) % 2)
    of = RowSelections(view, np.arange(150).reshape(3, 50))
    widths = silverman_bandwidths(of)
    assert widths == pytest.approx([silverman_bandwidth(view) for view in of.views()], rel=1e-12)
    assert widths[0] > 0.1
    assert widths[1] == MIN_BANDWIDTH
    agree(KernelDensityError(), of)


def test_a_score_below_the_range_is_refused_in_any_selection() -> None:
    view = View([0.9, 0.6, 0.1], [1, 0, 1], classes=2)
    with refused("TO205"):
        KernelDensityError(range="1/K").evaluate_selections(RowSelections(view, np.array([[0, 1], [0, 2]])))
    assert (
        len(KernelDensityError(range="1/K").evaluate_selections(RowSelections(view, np.array([[0, 1], [1, 1]])))) == 2
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_scores_of_any_precision_and_fractional_outcomes(dtype: Any) -> None:
    rng = np.random.default_rng(5)
    p = (rng.integers(0, 101, 80) / 100).astype(dtype)  # a float32 of .3 lies above the edge .3
    of = RowSelections(View(p, rng.random(80)), rows(80, 6, 80))
    estimators = (BinnedError(Uniform(10)), BinnedError(EqualMass(7)), LinearBinError(10), KernelDensityError(0.05))
    for estimator in estimators:
        agree(estimator, of)


@pytest.mark.parametrize(
    "estimator",
    [BinnedError(), AdaptiveError(), LinearBinError(), LinearBinError(5, "equal-mass"), KernelDensityError()],
)
def test_selections_that_are_alike_are_not_taken_one_by_one(
    estimator: Estimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = RowSelections(decimals(), rows(40, 5, 30))
    expected = loop(estimator, of)
    monkeypatch.setattr(type(estimator), "value", None)
    np.testing.assert_allclose(estimator.evaluate_selections(of), expected, **ROUNDING)


def test_no_selections_have_no_values() -> None:
    for estimator in (BinnedError(), LinearBinError(), KernelDensityError()):
        assert estimator.evaluate_selections(RowSelections(decimals(), np.empty((0, 5), dtype=np.int64))).shape == (0,)


# The selections themselves, and the waves of a triweight


def test_selections_are_alike_if_they_hold_as_many_rows_of_weight_one() -> None:
    plain = decimals()
    assert RowSelections(plain, rows(40, 3, 7)).is_vectorizable
    assert RowSelections(plain, [[1, 2], [3, 3]]).is_vectorizable
    assert not RowSelections(plain, [[1, 2], [3]]).is_vectorizable
    assert not RowSelections(plain, [[], []]).is_vectorizable
    assert not RowSelections(View(plain.p, plain.y, np.ones(40)), rows(40, 3, 7)).is_vectorizable
    assert not RowSelections(View([[0.5, 0.5]], [[1, 0]]), [[0], [0]]).is_vectorizable


def test_sums_lie_between_the_edges_of_each_selection() -> None:
    view = View([0.1, 0.5, 0.7], [0, 1, 1])
    of = RowSelections(view, [[2, 0], [1, 1]])
    n, wp, wy = of.sums_by_bin(np.array([[0.5, 0.6]]), "right")
    assert n.tolist() == [[1, 0, 1], [2, 0, 0]]
    assert wp.tolist() == [[0.1, 0, 0.7], [1.0, 0, 0]]
    assert wy.tolist() == [[0, 0, 1], [2, 0, 0]]
    assert of.sums_by_bin(np.array([[0.5, 0.6]]), "left")[0].tolist() == [[1, 0, 1], [0, 2, 0]]
    assert of.sums_by_bin(np.array([[0.5], [np.inf]]), "left")[0].tolist() == [[1, 1], [2, 0]]


def test_the_transform_of_a_triweight_is_a_mean_of_cosines() -> None:
    # ∫ 35/32 (1 − u²)³ cos(zu) by the midpoint rule of a function with three derivatives at its ends.
    u = (np.arange(200_000) + 0.5) / 100_000 - 1
    for z in (0.0, 1e-3, 1.999, 2.001, 9.0, 70.0):
        mean = float((35 / 32 * (1 - u**2) ** 3 * np.cos(z * u)).sum() / 100_000)
        assert triweight_transform(np.array(z)) == pytest.approx(mean, abs=1e-13)
    steps = np.array([0.0, 1e-4, 0.3, 2.5])
    many = triweight_transform_of_multiples(steps, 1024)
    assert many == pytest.approx(triweight_transform(np.multiply.outer(steps, np.arange(1025))), abs=2e-14)
