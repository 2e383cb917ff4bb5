"""Are rows pooled by the written rule: edges i/k, right-closed, ties whole, weights as repetition?"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from tests import reference
from tests.data.refused import refused
from trueodds import InputError, Predictions
from trueodds.binning.equal_mass import EqualMass, FixedMass, Sweep, cut_weights
from trueodds.binning.median_variance import MedianVariance, PredictedClass, grow_tree
from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import as_partition, default_partition
from trueodds.binning.simplex_grid import Distinct, SimplexGrid
from trueodds.binning.sorted_scores import RowSelections
from trueodds.binning.uniform import FixedEdges, Uniform
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.kernels import partitions
from trueodds.kernels.bins import Bins
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

QUICK = settings(max_examples=60, deadline=None, derandomize=True)
SCORES = st.one_of(st.integers(0, 20).map(lambda i: i / 20), st.floats(0, 1))


def cells(partition: Partition, view: View) -> Array:
    return partition.fit(view).index(view.partition_values)


def blocks(index: Array) -> set[frozenset[int]]:
    """Which rows lie together, whatever the cells are called."""
    return {frozenset(np.flatnonzero(index == cell).tolist()) for cell in np.unique(index)}


def row_view(p: Any, y: Any = None, w: Any = None) -> View:
    p = np.asarray(p, float)
    return View(p, np.zeros_like(p) if y is None else y, w)


@cache
def literal() -> Any:
    return reference.golden("anchors/golden.json")["analytic_and_literal"]["literal_tests"]


# Uniform bins


@pytest.mark.parametrize("k", [1, 2, 3, 7, 10, 15, 30, 3840])
def test_k_bins_are_k_intervals_between_i_over_k(k: int) -> None:
    # dirichletcal and mapie: bins=15 makes 14 bins
    frozen = Uniform(k).fit(row_view([0.5]))
    assert frozen.size == k
    middles = (np.arange(k) + 0.5) / k
    assert frozen.index(middles).tolist() == list(range(k))
    assert isinstance(frozen, Bins)
    assert frozen.edges.tolist() == [i / k for i in range(k + 1)]


@pytest.mark.parametrize("k", [3, 7, 10, 15, 20, 30])
def test_a_score_on_an_edge_is_in_the_bin_that_the_edge_closes(k: int) -> None:
    edges = [i / k for i in range(k + 1)]
    right = Uniform(k).fit(row_view([0.5])).index(np.array(edges))
    assert right.tolist() == [0, *range(k)]  # (lo, hi], the first closed at 0
    left = Uniform(k, closed="left").fit(row_view([0.5])).index(np.array(edges))
    assert left.tolist() == [*range(k), k - 1]  # [lo, hi), the last closed at 1


def test_decimal_scores_fall_on_their_own_edges() -> None:
    # linspace(0, 1, 11)[3] is 0.30000000000000004 and ceil(.7 * 10) is 8: both misplace a decimal.
    truth = reference.estimators()
    right = Uniform(10).fit(row_view([0.5]))
    assert right.index(np.array([0.3, 0.7])).tolist() == [
        truth["edge.boundary_0.3_ew10_bin_index_right"]["value"],
        truth["edge.boundary_0.7_ew10_bin_index_right"]["value"],
    ]
    # The reference has 2 here because it was made with linspace; by the edges i/k it is 3 (its README says so).
    assert truth["edge.boundary_0.3_ew10_bin_index_left"]["value"] == 2
    assert Uniform(10, closed="left").fit(row_view([0.5])).index(np.array([0.3, 0.7])).tolist() == [3, 7]


def test_every_decimal_is_in_the_bin_that_decimal_arithmetic_says() -> None:
    for k in (10, 20, 50, 100):
        i = np.arange(101)
        assert Uniform(k).fit(row_view([0.5])).index(i / 100).tolist() == np.maximum(-(-i * k // 100) - 1, 0).tolist()


def test_one_and_zero_are_in_the_last_and_first_bin() -> None:
    # torchmetrics: p = 1 in a phantom extra bin, .525 for .475; Guo et al.: confidence 0 dropped
    truth = reference.estimators()
    ece = BinnedError(Uniform(10))
    # gap .5 of each half: (.95 + 1)/2 − 1/2 = .475
    assert float(ece(View([0.95, 1.0], [1, 0]))) == pytest.approx(0.475, abs=1e-15)
    assert truth["edge.two_in_last_bin"]["value"] == pytest.approx(0.475)
    for key, p, y in [
        ("single_row_p1_y0", [1.0], [0]),
        ("single_row_p0_y1", [0.0], [1]),
        ("all_perfect", [0.0, 1.0, 1.0], [0, 1, 1]),
        ("constant_half", [0.5] * 4, [0, 1, 0, 1]),
    ]:
        assert float(ece(View(p, y))) == truth[f"edge.{key}"]["value"], key


@pytest.mark.parametrize("k", [*range(2, 40), 100, 1000])
def test_a_certain_error_counts_at_every_number_of_bins(k: int) -> None:
    # pycalib: confidence 1.0 dropped for 16 bin counts (0 where 1 is true)
    assert float(BinnedError(Uniform(k))(View([1.0, 0.0], [0, 1]))) == 1.0


def test_bins_on_one_over_k() -> None:
    (view,) = as_lens("confidence").views(Predictions([0, 1], [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]))
    frozen = Uniform(4, range="1/K").fit(view)  # edges 1/3, 1/2, 2/3, 5/6, 1
    assert frozen.index(np.array([0.1, 0.34, 0.5, 0.51, 0.7, 0.9, 1.0])).tolist() == [0, 0, 0, 1, 2, 3, 3]
    for lens in ("class:1", "rank:2", "classwise", "groups:[[0],[1,2]]"):
        for lens_view in as_lens(lens).views(Predictions([0, 1], [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])):
            assert Uniform(4, range="1/K").fit(lens_view).index(lens_view.partition_values).shape == (2,)
    (pos,) = as_lens("positive").views(Predictions([0, 1], [0.2, 0.8]))
    assert Uniform(2, range="1/K").fit(pos).index(np.array([0.2, 0.75, 0.76])).tolist() == [0, 0, 1]


def test_one_over_k_without_a_k_or_for_vectors_is_refused() -> None:
    (view,) = as_lens("confidence").views(Predictions.from_confidence([0.5], [1]))
    with refused("TO205", "1/K", fix="edges"):
        Uniform(4, range="1/K").fit(view)
    (joint,) = as_lens("canonical").views(Predictions([0], [[0.5, 0.3, 0.2]]))
    with refused("TO205", "canonical"):
        Uniform(4, range="1/K").fit(joint)


@pytest.mark.reference
def test_the_literal_indices_of_the_julia_package() -> None:
    # Reference: CalibrationErrors.jl's tests, bins counted from 1, right-closed
    for p, k, number in literal()["uniform_index"]:
        assert Uniform(k).fit(row_view([p])).index(np.array([p])).tolist() == [number - 1]
    one = literal()["uusml_uniform_1d"]
    left = Uniform(one["k"], closed="left").fit(row_view(one["p"]))
    assert left.index(np.array(one["p"])).tolist() == one["binnumbers"]


@pytest.mark.reference
@pytest.mark.parametrize("case", range(3))
def test_the_literal_grids_of_the_julia_package(case: int) -> None:
    example = literal()["uniform"][case]
    for partition in (SimplexGrid(example["k"]), Uniform(example["k"])):
        assert blocks(cells(partition, row_view(example["P"]))) == {frozenset(group) for group in example["groups"]}


@pytest.mark.reference
@pytest.mark.parametrize("case", range(5))
def test_the_literal_trees_of_the_julia_package(case: int) -> None:
    example = literal()["median_variance"][case]
    groups = example.get("groups", example.get("groups_in_order"))
    index = cells(MedianVariance(example["minsize"]), row_view(example["P"]))
    assert blocks(index) == {frozenset(group) for group in groups}


@pytest.mark.reference
@pytest.mark.parametrize("case", range(2))
def test_the_literal_zeros_of_the_julia_package(case: int) -> None:
    example = literal()["ece_zero"][case]
    P, y = np.array(example["P"], float), np.array(example["y"])
    for partition in (SimplexGrid(example["k"]), MedianVariance(1)):
        assert float(BinnedError(partition)(View(P, np.eye(2)[y]))) == 0


@pytest.mark.reference
@pytest.mark.parametrize("net", ["densenet121", "resnet18", "inception_v3", "vgg16_bn"])
def test_the_canonical_error_of_real_nets(net: str) -> None:
    # Reference: Widmann et al. (2019), published table; 1e-9 because their decimal text was stored as float32.
    truth = reference.golden("anchors/golden.json")["cifar10"][net]
    arrays = nets()
    (view,) = as_lens("canonical").views(Predictions(arrays["labels"], arrays[f"probs_{net}"]))
    assert float(BinnedError(SimplexGrid(10))(view)) == pytest.approx(truth["ECE_uniform"], abs=1e-9)
    tree = BinnedError(MedianVariance(100))
    assert tree.bin_sums(view).size == truth["nbins_dynamic"]
    assert tree.value(view) == pytest.approx(truth["ECE_dynamic"], abs=1e-9)


@cache
def nets() -> dict[str, Array]:
    return dict(reference.data("widmann_cifar10_4nets.npz"))


# Given edges


def test_given_edges_are_used_as_they_are() -> None:
    for closed, index in (("right", [0, 0, 0, 1, 2]), ("left", [0, 0, 1, 1, 2])):
        frozen = FixedEdges((0, 0.5, 0.9, 1), closed).fit(row_view([0.1]))  # type: ignore[arg-type]
        assert frozen.index(np.array([0, 0.3, 0.5, 0.7, 0.95])).tolist() == index


@pytest.mark.parametrize(
    "edges",
    [[0.0], [0, 0.5], [0.1, 1], [0, 0.5, 0.5, 1], [0, 0.9, 0.5, 1], [0, np.nan, 1], ["a", "b"], [[0, 1]], [0, None, 1]],
)
def test_edges_that_do_not_rise_from_0_to_1_are_refused(edges: Any) -> None:
    with refused("TO203"):
        FixedEdges(tuple(edges))


# Equal mass


def array_split_edges(p: Array, k: int) -> list[float]:
    """The rule written out: numpy's array_split, edges midway between neighbors of two groups."""
    groups = [g for g in np.array_split(np.sort(p), k) if len(g)]
    return [(a[-1] + b[0]) / 2 for a, b in itertools.pairwise(groups)]


@QUICK
@given(st.lists(SCORES, min_size=1, max_size=40), st.integers(1, 20))
def test_equal_mass_bins_follow_array_split(p: list[float], k: int) -> None:
    x = np.array(p)
    index = cells(EqualMass(k), row_view(x))
    expected = np.searchsorted(np.unique(array_split_edges(x, k)), x, "left")
    assert blocks(index) == blocks(expected)


@pytest.mark.parametrize(("n", "k"), [(10, 3), (10, 10), (7, 15), (1, 15), (2, 2), (100, 7)])
def test_groups_of_unique_scores_differ_by_at_most_one_and_the_larger_come_first(n: int, k: int) -> None:
    x = np.random.default_rng(n).permutation(np.arange(1, n + 1) / (n + 1))
    sizes = np.bincount(cells(EqualMass(k), row_view(x)))
    assert sizes.tolist() == [len(g) for g in np.array_split(np.arange(n), k) if len(g)]


def test_exact_zeros_are_a_bin_of_their_own_where_a_cut_falls_among_them() -> None:
    # A third of real scores can be exact zeros; pooling them with .5 would hide both. Kumar's get_equal_bins agrees.
    # array_split of six rows in two: the cut falls after the third zero, so the edge is 0 and closes a bin there
    assert cells(EqualMass(2), row_view([0.0] * 4 + [0.5, 0.6])).tolist() == [0, 0, 0, 0, 1, 1]
    assert blocks(cells(EqualMass(2), row_view([0.0] * 4))) == {frozenset(range(4))}


@pytest.mark.parametrize(
    "partition",
    [EqualMass(4), EqualMass(4, "left"), Sweep(), Sweep("uniform"), Uniform(4), MedianVariance(3), Distinct()],
)
def test_tied_scores_are_never_split_and_row_order_is_irrelevant(partition: Partition) -> None:
    # torch-uncertainty: adaptive ECE .05 to .37 by row order within ties; scoringrules: the curve depends on it
    rng = np.random.default_rng(0)
    p = rng.integers(0, 8, 60) / 8
    y = (rng.random(60) < p).astype(float)
    index = cells(partition, row_view(p, y))
    for score in np.unique(p):
        assert len(np.unique(index[p == score])) == 1
    order = rng.permutation(60)
    assert blocks(cells(partition, row_view(p[order], y[order]))) == {
        frozenset(np.argsort(order)[list(b)].tolist()) for b in blocks(index)
    }


@pytest.mark.parametrize(
    "partition",
    [
        EqualMass(5),
        Sweep(),
        Sweep("uniform"),
        MedianVariance(4),
        MedianVariance(4, 3),
        Distinct(),
    ],
    ids=str,
)
def test_whole_weights_are_repetition_when_cells_are_chosen(partition: Partition) -> None:
    rng = np.random.default_rng(2)
    p, w = np.round(rng.random(40), 2), rng.integers(0, 4, 40)
    y = (rng.random(40) < p).astype(float)
    once = cells(partition, row_view(p, y, w))[w > 0]
    many = np.repeat(np.arange(40), w)
    repeated = cells(partition, row_view(p[many], y[many]))
    first = np.unique(many, return_index=True)[1]
    assert blocks(once) == blocks(repeated[first])


def test_rows_of_weight_zero_move_no_cell() -> None:
    rng = np.random.default_rng(4)
    p, w = rng.random(50), rng.random(50)
    y = (rng.random(50) < p).astype(float)
    extra = np.concatenate([p, rng.random(30)])
    for partition in (EqualMass(6), EqualMass("sqrt"), Uniform("sqrt"), Sweep(), MedianVariance(5), Distinct()):
        plain = cells(partition, row_view(p, y, w))
        padded = cells(partition, row_view(extra, np.append(y, np.ones(30)), np.append(w, np.zeros(30))))
        assert blocks(plain) == blocks(padded[:50]), str(partition)


def test_left_closed_equal_mass_bins_put_a_tied_cut_above() -> None:
    p = [0.2, 0.5, 0.5, 0.5, 0.9]  # the cut after the third row falls among the .5s
    assert cells(EqualMass(2), row_view(p)).tolist() == [0, 0, 0, 0, 1]
    assert cells(EqualMass(2, "left"), row_view(p)).tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    "partition",
    [
        *(
            partition(k, closed)
            for partition in (Uniform, EqualMass, FixedMass)
            for k in (1, 4)
            for closed in ("left", "right")
        ),
        EqualMass("sqrt"),
        EqualMass(4, cut="floor"),
        Uniform("auto"),
        FixedEdges((0, 0.25, 0.6, 1)),
        FixedEdges((0, 0.25, 0.6, 1), "left"),
    ],
    ids=str,
)
def test_resamples_have_the_same_bins_together_as_one_by_one(partition: Partition) -> None:
    rng = np.random.default_rng(1)
    p, y = rng.integers(0, 5, 9) / 4, rng.integers(0, 2, 9)
    selections = RowSelections(View(p, y), rng.integers(0, 9, (50, 9)))
    together = partition.sums_by_selection(selections)
    assert together is not None
    for sums, view in zip(together.transpose(1, 2, 0), selections.views(), strict=True):
        bins = partition.fit(view)
        index = bins.index(view.p)
        alone = np.stack([np.bincount(index, x, bins.size) for x in (view.w, view.p, view.y)], axis=1)
        assert sums[sums[:, 0] > 0].tolist() == alone[alone[:, 0] > 0].tolist()  # the scores are dyadic: sums are exact


@pytest.mark.parametrize(("n", "k"), [*itertools.product((1, 3, 14, 45), (1, 2, 7, 15)), (2**52 + 12345, 4001)])
def test_groups_end_at_the_rounded_fractions_of_the_rows(n: int, k: int) -> None:
    # With the last n and k, n i is beyond 64 bits.
    view = row_view([0.5], [1.0], [float(n)])
    ends = {
        "floor": [i * n // k for i in range(1, k)],
        "ceil": [-(-i * n // k) for i in range(1, k)],
        "first": [i * (n // k) + min(i, n % k) for i in range(1, k)],
    }
    for rounding, expected in ends.items():
        assert cut_weights(view, k, rounding).tolist() == [float(end) for end in expected]


# The sweep


def test_a_sweep_ends_with_one_row_less_than_rows_if_no_rate_falls() -> None:
    p, y = np.array([0.1, 0.3, 0.6, 0.8]), np.array([0.0, 0.0, 1.0, 1.0])
    for base in ("equal-mass", "uniform"):
        assert Sweep(base).fit(row_view(p, y)).size == 3  # type: ignore[arg-type]
        assert Sweep(base).fit(row_view(p, y, np.zeros(4))).size == 1  # type: ignore[arg-type]


def swept(p: Array, y: Array) -> Array:
    """Roelofs et al. (2022) written out for unique scores: more bins until the rates fall."""
    order = np.argsort(p)
    n, assignment = len(p), np.zeros(len(p), int)
    for k in range(2, n):
        index = np.arange(n) * k // n
        rates = [y[order][index == b].mean() for b in range(k) if (index == b).any()]
        if any(b < a for a, b in itertools.pairwise(rates)):
            break
        assignment[order] = index
    return assignment


@pytest.mark.parametrize("seed", range(25))
def test_the_sweep_is_the_loop_of_its_paper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.permutation(400)[: int(rng.integers(1, 60))] / 400
    y = (rng.random(len(p)) < p**2).astype(float)
    assert blocks(cells(Sweep(), row_view(p, y))) == blocks(swept(p, y))


@pytest.mark.parametrize("seed", range(10))
def test_the_sweep_over_uniform_bins_is_its_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random(50)
    y = (rng.random(50) < p).astype(float)
    n_bins = 1
    for k in range(2, 50):
        index = np.maximum(np.ceil(p * k) - 1, 0).astype(int)
        rates = [y[index == b].mean() for b in np.unique(index)]
        if (np.diff(rates) < 0).any():
            break
        n_bins = k
    assert Sweep("uniform").fit(row_view(p, y)).size == n_bins


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(
    "partition",
    [Sweep(), Sweep("uniform"), EqualMass(15), EqualMass("sqrt"), Uniform("sqrt"), MedianVariance(), Distinct()],
)
def test_one_or_two_rows_are_enough_for_any_rule(partition: Partition, n: int) -> None:
    # torch-uncertainty: n < bins gives NaN; most: n = 1 crashes
    for value in (0.0, 0.3, 1.0):
        view = row_view([value] * n, [1.0] * n)
        assert float(BinnedError(partition)(view)) == pytest.approx(1 - value)


def test_the_sweep_keeps_a_value_above_one_by_rounding() -> None:
    p = np.array([0.1, 0.4, 0.6, 1 + 2**-52])
    index = cells(Sweep("uniform"), row_view(p, [0, 0, 1, 0]))
    assert index[3] == index.max()
    # with the last row the rate of the upper half is .5 > 0; in thirds 0, 0, 1/2: the fourth row must count
    assert float(BinnedError(Sweep("uniform"))(row_view(p, [0, 0, 1, 0]))) > 0


def test_rates_that_differ_only_by_rounding_do_not_stop_a_sweep() -> None:
    p = np.arange(1, 31) / 31
    weights = np.random.default_rng(0).random(30)
    # rates of exactly 0 never fall, so they show where the sweep ends; rates of .3 are .3 up to rounding
    level, zero = (Sweep().fit(row_view(p, np.full(30, rate), weights)) for rate in (0.3, 0.0))
    assert level.size == zero.size


# The tree


@pytest.mark.parametrize("min_size", [1, 5, 10, 33])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_every_leaf_holds_min_size_and_most_rows_are_not_left_in_one(min_size: int, m: int) -> None:
    x = np.random.default_rng(m).dirichlet([0.5] * (m + 1), 300)[:, :m]
    tree = grow_tree(x, np.ones(300), min_size)
    sizes = np.bincount(tree.index(x), minlength=tree.size)
    assert sizes.min() >= min_size
    assert sizes.max() < 4 * max(min_size, 2)  # halving stops between min_size and two of it, ties aside
    assert tree.index(x).tolist() == tree.index(x).tolist()


@pytest.mark.parametrize(
    ("unit", "rows"), [(1.0, {10: [4, 4, 16, 16], 17: [8, 32]}), (0.3, {10: [4, 4, 16, 16], 11: [8, 32]})]
)
def test_min_size_of_a_tree_counts_the_rows_that_weights_represent(unit: float, rows: dict[int, list[int]]) -> None:
    # 8 rows of weight 4 and 32 of weight 1. Whole weights stand for 64 rows: halves of 32, quarters of 16.
    # Other weights are normalized to the 40 rows: halves of 20, quarters of 10.
    p = np.arange(40) / 40
    view = row_view(p, p, unit * np.where(p < 0.2, 4.0, 1.0))
    for min_size, expected in rows.items():
        assert sorted(np.bincount(cells(MedianVariance(min_size), view))) == expected


def test_a_tree_is_the_same_for_the_same_numbers_in_any_float_and_order() -> None:
    x = np.random.default_rng(7).random((200, 3)).astype(np.float32)
    same = blocks(grow_tree(x, np.ones(200), 7).index(x))
    assert blocks(grow_tree(x.astype(np.float64), np.ones(200), 7).index(x.astype(np.float64))) == same
    back = np.arange(200)[::-1]
    mirrored = grow_tree(x[back], np.ones(200), 7).index(x[back])[back]
    assert blocks(mirrored) == same


def test_axes_of_equal_variance_are_ordered_by_their_number_and_not_by_rounding() -> None:
    # Each row comes with its mirror image, so two axes vary alike but for the rounding that the order of rows makes.
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 7))
        P = np.diff(np.sort(rng.integers(0, 21, (n, 2)), axis=1), axis=1, prepend=0, append=20) / 20
        P, w = np.concatenate([P, P[:, [1, 0, 2]]]), np.tile(rng.random(n), 2)
        order = rng.permutation(2 * n)
        moved = np.empty(2 * n, int)
        moved[order] = grow_tree(P[order], w[order], 1).index(P[order])
        assert blocks(moved) == blocks(grow_tree(P, w, 1).index(P))


def test_a_cut_between_neighboring_float32_values_separates_them() -> None:
    low = np.float32(0.3)
    x = np.array([low] * 3 + [np.nextafter(low, np.float32(1))] * 3, np.float32)[:, None]
    assert grow_tree(x, np.ones(6), 3).index(x).tolist() == [0, 0, 0, 1, 1, 1]


def test_constant_predictions_are_one_leaf() -> None:
    for view in (row_view(np.full(50, 0.3)), row_view(np.full((50, 3), 1 / 3))):
        assert MedianVariance(5).fit(view).size == 1


@pytest.mark.parametrize(
    ("n", "bins", "sizes"),
    [
        (1024, None, {64: 16}),
        (1024, 16, {64: 16}),
        (1016, None, {63: 8, 64: 8}),
        (1024, 6, {128: 4, 256: 2}),  # of 8 equal leaves, two pairs are not split
        (1024, 1, {1024: 1}),
        (100, None, {12: 4, 13: 4}),  # 16 leaves would have fewer than 10 rows
        (40, None, {10: 4}),
        (19, None, {19: 1}),
    ],
)
def test_a_tree_has_its_number_of_leaves_of_equal_size(n: int, bins: int | None, sizes: dict[int, int]) -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(4), n)
    leaves = np.bincount(cells(MedianVariance(bins=bins), row_view(p)))
    assert dict(zip(*np.unique(leaves, return_counts=True), strict=True)) == sizes


def test_leaves_count_the_rows_that_weights_represent() -> None:
    # 16 rows of weight 8 and 128 of weight 1 stand for 256 rows, so each of 16 leaves has the weight 16.
    p = np.arange(144) / 144
    w = np.where(np.arange(144) < 16, 8.0, 1.0)
    index = cells(MedianVariance(), row_view(p, p, w))
    assert np.bincount(index, w).tolist() == [16.0] * 16
    assert sorted(np.bincount(index)) == [2] * 8 + [16] * 8


def test_equal_predictions_leave_fewer_leaves_and_none_is_small() -> None:
    for n_few, size in ((11, 1), (12, 2)):  # three fifths of 311 / 16 rows are 11.7, and of 312 / 16 too
        p = np.repeat([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]], [300, n_few], axis=0)
        assert MedianVariance().fit(row_view(p)).size == size
    rng = np.random.default_rng(1)
    p = rng.multinomial(10, [0.4, 0.3, 0.2, 0.1], 800) / 10
    sizes = np.bincount(cells(MedianVariance(), row_view(p)))
    assert 10 <= len(sizes) <= 16
    assert sizes.min() >= 0.6 * 800 / 16


def test_max_bins_keeps_the_widest_cells() -> None:
    x = np.concatenate([np.linspace(0, 1, 50), np.full(50, 2) + np.linspace(0, 1e-3, 50)])[:, None]
    tree = grow_tree(x, np.ones(100), 5, max_bins=3)
    assert tree.size == 3
    assert len(np.unique(tree.index(x[50:]))) == 1  # the second split went to the wide half


# The grid


def test_a_row_in_a_cell_not_met_before_is_refused() -> None:
    frozen = SimplexGrid(2).fit(row_view([[0.2, 0.8, 0.0]]))
    with refused("TO205", "1 such row", "row 1"):
        frozen.index(np.array([[0.2, 0.8, 0.0], [0.8, 0.2, 0.0]]))


def test_the_grid_of_a_binary_view_is_the_line() -> None:
    view = row_view([0.1, 0.3, 0.35])
    assert cells(SimplexGrid(10), view).tolist() == cells(Uniform(10), view).tolist()


# Distinct predictions


def test_each_prediction_is_a_cell_of_its_own() -> None:
    assert cells(Distinct(), row_view([0.3, 0.1, 0.3, 1.0, 0.1])).tolist() == [1, 0, 1, 2, 0]
    joint = row_view([[0.2, 0.8, 0.0], [0.8, 0.2, 0.0], [0.2, 0.8, 0.0], [0.2, 0.0, 0.8]])
    assert blocks(cells(Distinct(), joint)) == {frozenset({0, 2}), frozenset({1}), frozenset({3})}


@pytest.mark.parametrize("shape", [(300,), (300, 3)])
def test_distinct_cells_are_those_of_a_dictionary_in_any_float_type(shape: tuple[int, ...]) -> None:
    x = (np.random.default_rng(0).integers(0, 4, shape) / 4).astype(np.float16)
    x[:2], x[2:4] = 0.0, -0.0  # one prediction, whatever its sign
    by_value: dict[Any, set[int]] = {}
    for i, row in enumerate(x.reshape(300, -1)):
        by_value.setdefault(tuple(float(value) for value in row), set()).add(i)
    expected = {frozenset(rows) for rows in by_value.values()}
    for dtype in (np.float16, np.float32, np.float64):
        view = View(x.astype(dtype), np.zeros(shape))
        assert blocks(cells(Distinct(), view)) == expected
    assert blocks(Distinct().fit(View(x, x)).index(x.astype(np.float64))) == expected


def test_scores_that_differ_in_the_last_bit_are_two() -> None:
    assert Distinct().fit(row_view([0.3, np.nextafter(0.3, 1)])).size == 2


def test_the_error_over_distinct_scores_by_hand() -> None:
    # .3 came 1 of 2, gap .2, weight 2/3; .8 came 1 of 1, gap .2
    assert float(BinnedError(Distinct())(View([0.3, 0.3, 0.8], [0, 1, 1]))) == pytest.approx(0.2, rel=1e-14)


def test_a_prediction_not_met_before_is_refused() -> None:
    with refused("TO205", "1 such row", "row 1"):
        Distinct().fit(row_view([0.2, 0.4])).index(np.array([0.2, 0.3]))


# Words


def test_words_become_partitions() -> None:
    assert as_partition() is None
    assert as_partition(bins=10) == Uniform(10)
    assert as_partition("uniform", bins="sqrt", closed="left", range="1/K") == Uniform("sqrt", "left", "1/K")
    assert as_partition("equal-mass", bins=np.int64(7)) == EqualMass(7)
    assert as_partition("sweep") == Sweep()
    assert as_partition("distinct") == Distinct()
    assert as_partition(min_size=20) == MedianVariance(20)
    assert as_partition("median-variance") == MedianVariance()
    assert as_partition("median-variance", bins=8) == MedianVariance(bins=8)
    assert as_partition("median-variance", bins=8, min_size=20) == MedianVariance(20, 8)
    assert as_partition("simplex-grid", bins=4) == SimplexGrid(4)
    for edges in ([0, 0.5, 1], (0, 0.5, 1), np.array([0, 0.5, 1])):
        assert as_partition(bins=edges) == as_partition("edges", bins=edges) == FixedEdges((0, 0.5, 1))  # type: ignore[arg-type]
    assert as_partition(EqualMass(3)) == EqualMass(3)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"partition": "equalmass"}, "TO203"),
        ({"partition": 15}, "TO203"),
        ({"partition": ["uniform"]}, "TO203"),
        ({"partition": "edges"}, "TO203"),
        ({"partition": "edges", "bins": 5}, "TO203"),
        ({"partition": "equal-mass", "bins": [0, 0.5, 1]}, "TO203"),
        ({"bins": 0}, "TO203"),
        ({"bins": -3}, "TO203"),
        ({"bins": 15.0}, "TO203"),
        ({"bins": True}, "TO203"),
        ({"bins": "many"}, "TO203"),
        ({"bins": [0.2, 0.5, 1]}, "TO203"),
        ({"closed": "both"}, "TO203"),
        ({"range": "0-1"}, "TO203"),
        ({"min_size": 0}, "TO203"),
        ({"partition": "sweep", "bins": 15}, "TO202"),
        ({"partition": "distinct", "bins": 15}, "TO202"),
        ({"partition": "equal-mass", "min_size": 15}, "TO202"),
        ({"partition": "uniform", "min_size": 15}, "TO202"),
        ({"partition": "median-variance", "bins": "sqrt"}, "TO203"),
        ({"partition": "median-variance", "bins": [0, 0.5, 1]}, "TO203"),
        ({"partition": "median-variance", "closed": "left"}, "TO202"),
        ({"partition": Uniform(15), "bins": 15}, "TO202"),
    ],
)
def test_words_that_are_none_are_refused(options: dict[str, Any], code: str) -> None:
    with refused(code):
        as_partition(**options)


def test_cells_by_predicted_class_have_one_predicted_class_and_a_sixteenth_of_the_rows() -> None:
    p = np.random.default_rng(5).dirichlet(np.ones(10), 3000)
    view, predicted = row_view(p), p.argmax(axis=1)
    index = cells(PredictedClass(), view)
    assert PredictedClass().fit(view).size == 20  # 16 / 10, rounded, in each class
    assert all(len(np.unique(predicted[index == cell])) == 1 for cell in range(20))
    for c in range(10):
        n = np.bincount(index[predicted == c])
        assert n[n > 0].min() >= 0.6 * (predicted == c).sum() / 2
    # A hundred classes have a hundredth of the rows each, less than a 32nd: the cells are those of one tree.
    many = np.random.default_rng(5).dirichlet(np.ones(100), 3000)
    assert blocks(cells(PredictedClass(), row_view(many))) == blocks(cells(MedianVariance(), row_view(many)))


def test_classes_that_are_predicted_in_few_rows_are_combined() -> None:
    p = np.repeat(np.eye(5) * 0.6 + 0.08, [30, 9, 10, 1, 0], axis=0)
    fitted = PredictedClass().fit(row_view(p))
    index, (new,) = fitted.index(p), fitted.index(np.array([[0.1, 0.1, 0.1, 0.1, 0.6]]))
    assert blocks(index) == {frozenset(range(30)), frozenset({*range(30, 39), 49}), frozenset(range(39, 49))}
    assert new == index[49]
    in_all = PredictedClass().fit(row_view(p[:30]))
    assert (in_all.size, in_all.index(p).tolist()) == (1, [0] * 50)
    for n, n_cells in ((320, 3), (321, 2)):  # 10 rows are a 32nd of 320
        rare = np.repeat(np.eye(4)[:3] * 0.6 + 0.1, [n - 20, 10, 10], axis=0)
        assert len(blocks(cells(PredictedClass(), row_view(rare)))) == n_cells


def test_cells_by_predicted_class_follow_weights_and_not_the_order_of_rows() -> None:
    rng = np.random.default_rng(7)
    p, w = rng.dirichlet(np.ones(6), 300), rng.integers(0, 4, 300)
    index = cells(PredictedClass(), row_view(p, p, w))
    many = np.repeat(np.arange(300), w)
    repeated = cells(PredictedClass(), row_view(p[many], p[many]))
    assert blocks(index[w > 0]) == blocks(repeated[np.unique(many, return_index=True)[1]])
    order = rng.permutation(300)
    moved = cells(PredictedClass(), row_view(p[order], p[order], w[order]))
    assert blocks(index[order]) == blocks(moved)


def test_scores_are_refused_by_cells_by_predicted_class() -> None:
    with refused("TO205", fix="equal-mass"):
        PredictedClass().fit(row_view([0.2, 0.8]))


def test_overconfidence_cancels_in_leaves_of_a_tree_and_not_in_cells_by_predicted_class() -> None:
    rng = np.random.default_rng(0)
    logits = 3 * rng.standard_normal((20_000, 10))
    true, predicted = (softmax(t * logits, axis=1) for t in (1.0, 1.5))
    view = row_view(predicted, true)  # labels are their expected shares, so that no noise remains
    error = float(np.abs(predicted - true).sum(axis=1).mean() / 2)
    by_class, tree = (float(BinnedError(partition)(view)) for partition in (PredictedClass(), MedianVariance()))
    assert by_class > 0.9 * error
    assert tree < 0.5 * error


def test_a_misspelt_partition_gets_the_near_ones() -> None:
    with refused("TO203", "'equalmass'", fix="equal-mass"):
        as_partition("equalmass")


@pytest.mark.parametrize("partition", [EqualMass(5), Sweep(), FixedEdges((0, 0.5, 1))])
def test_bins_of_one_score_refuse_vectors(partition: Partition) -> None:
    with refused("TO205", fix="median-variance"):
        partition.fit(row_view([[0.2, 0.8, 0.0]]))


def test_the_default_is_15_bins_a_tree_of_16_leaves_or_cells_by_predicted_class() -> None:
    assert default_partition(row_view([0.5])) == Uniform(15)
    assert default_partition(row_view([[0.5, 0.5, 0.0]])) == MedianVariance()
    assert default_partition(row_view([[0.5, 0.5, 0.0, 0.0]])) == as_partition("predicted-class") == PredictedClass()
    assert str(MedianVariance()) == str(MedianVariance(bins=16)) == "median-variance 16"


def test_a_partition_says_all_that_changes_it() -> None:
    partitions = [
        Uniform(7),
        Uniform(7, "left"),
        Uniform(7, range="1/K"),
        EqualMass(7),
        EqualMass(7, "left"),
        FixedMass(7),
        FixedMass(7, "left"),
        SimplexGrid(7),
        SimplexGrid(7, "left"),
        Sweep(),
        Sweep("uniform"),
        MedianVariance(),
        MedianVariance(10),
        MedianVariance(10, 5),
        MedianVariance(bins=5),
        Distinct(),
        FixedEdges((0, 1 / 3, 1)),
        FixedEdges((0, 0.333333, 1)),
        FixedEdges((0, 0.333333, 1), "left"),
    ]
    assert len({str(partition) for partition in partitions}) == len(partitions)


@pytest.mark.parametrize("n", [1, 3, 4, 31, 32, 33, 242, 243, 244, 1024, 3125])
def test_bin_rules_are_the_root_and_the_power_of_two_fifths_in_whole_numbers(n: int) -> None:
    view = row_view(np.full(n, 0.5))
    assert Uniform("sqrt").fit(view).size == next(k for k in range(n, 0, -1) if k**2 <= n)
    assert Uniform("auto").fit(view).size == next(k for k in range(1, n + 1) if k**5 >= n**2)
    for rule in ("sqrt", "auto"):
        assert Uniform(rule).fit(row_view([0.5], [1.0], [0.0])).size == 1


@pytest.mark.parametrize(("bin_rule", "bins"), [("sqrt", 20), ("auto", 11)])
def test_bin_rules_use_the_effective_n_of_weights(bin_rule: str, bins: int) -> None:
    # √400 = 20 and 400^(2/5) = 10.99; weights of 300 each are no more rows, half of them at 0 are 200: √200 = 14.1.
    p = np.linspace(0, 1, 400)
    for weight in (1.0, 0.3, 300.0):
        view = row_view(p, p, np.full(400, weight))
        assert Uniform(bin_rule).fit(view).size == EqualMass(bin_rule).fit(view).size == bins
    half = row_view(p, p, np.arange(400) % 2 * 7.0)
    assert Uniform("sqrt").fit(half).size == 14


@pytest.mark.parametrize("max_bins", [None, 20])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tree_does_not_depend_on_the_size_of_subtrees_that_are_grown_separately(weighted, max_bins, monkeypatch):
    rng = np.random.default_rng(4)
    x = np.round(rng.dirichlet(np.ones(4), 700), 2)
    w = rng.integers(1, 4, 700).astype(float) if weighted else np.ones(700)
    trees = []
    for max_rows in (10**6, 300, 40, 1):
        monkeypatch.setattr(partitions, "_MAX_SUBTREE_ROWS", max_rows)
        tree = grow_tree(x, w, 5, max_bins)
        trees.append((tree.axis, tree.cut, tree.low, tree.high))
    assert len(trees[0][0]) > 30
    assert all(tree == trees[0] for tree in trees)


def test_rows_beyond_the_first_block_are_found_in_their_own_leaves() -> None:
    rng = np.random.default_rng(0)
    view = View(rng.dirichlet(np.ones(3), 3_000), rng.multinomial(1, [1 / 3] * 3, 3_000))
    tree = MedianVariance().fit(view)
    many = np.tile(view.p, (25, 1))  # more than are looked up at a time
    assert tree.index(many).tolist() == np.tile(tree.index(view.p), 25).tolist()


def test_a_text_names_the_side_that_a_grid_closes() -> None:
    assert (str(SimplexGrid(4)), str(SimplexGrid(4, closed="left"))) == (
        "simplex-grid 4", "simplex-grid 4, left-closed",
    )  # fmt: skip


def test_bins_of_fixed_mass_hold_a_hundred_rows_by_default() -> None:
    assert str(FixedMass()) == "mass 100"
    scores = np.arange(1_000) / 1_000
    assert np.bincount(cells(FixedMass(), row_view(scores))).tolist() == [100] * 10


def test_a_setting_of_another_partition_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError) as caught:
        as_partition("distinct", bins=4)
    assert caught.value.problem == "Partition distinct takes no bins."


@pytest.mark.parametrize("edges", [(0.0, 0.5, 1.5), (0.0, 0.5, 0.9), (-0.5, 0.5, 1.0), (0.2, 0.5, 1.0), (1.0,)])
def test_edges_end_at_0_and_1_exactly(edges: tuple[float, ...]) -> None:
    with refused("TO203"):
        FixedEdges(edges)
    assert FixedEdges((0.0, 1.0)).fit(row_view([0.3])).size == 1


def test_cells_by_predicted_class_have_the_same_rows_with_weights_of_any_unit() -> None:
    rng = np.random.default_rng(4)
    P, y, w = rng.dirichlet(np.ones(4), 2_000), rng.multinomial(1, [0.25] * 4, 2_000), rng.integers(1, 4, 2_000)
    in_rows = PredictedClass().fit(View(P, y, w.astype(float))).index(P)
    in_halves = PredictedClass().fit(View(P, y, w / 2)).index(P)
    assert in_halves.tolist() == in_rows.tolist()
