"""Is a view by rising score the rows in order, whoever asks and however they are weighted?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueodds.binning import sorted_scores as module
from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.sorted_scores import (
    SortedScores,
    group_starts,
    sort_by_partition_value,
    sort_by_score,
    weighted_quantiles,
    weighted_std,
)
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View


def drawn(n: int, dtype: Any = float, seed: int = 0, *, ties: bool = True) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    p = (rng.integers(0, 21, n) / 20 if ties else rng.random(n)).astype(dtype)
    return p, (rng.random(n) < p).astype(float)


def row_by_row(view: View, k: int) -> list[float]:
    """Equal-mass edges by counting rows: larger groups first, ties whole, edges midway between neighbors."""
    s = sorted(x for x, w in zip(view.p.astype(float).tolist(), view.w.tolist(), strict=True) for _ in range(round(w)))
    ends = [j * (len(s) // k) + min(j, len(s) % k) for j in range(1, k)]
    inner = {(s[max(end - 1, 0)] + s[min(end, len(s) - 1)]) / 2 for end in ends}
    return [0.0, *sorted(e for e in inner if e < 1), 1.0]


@pytest.fixture(params=[1, module.MIN_ROWS_FOR_COUNTING], ids=["counted", "sorted"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """From how many rows on few bins are counted."""
    monkeypatch.setattr(module, "MIN_ROWS_FOR_COUNTING", request.param)
    return int(request.param)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("n", [1, 3, 14, 200])
def test_equal_mass_edges_are_those_of_counted_rows_bit_by_bit(n: int, ties: bool, dtype: Any) -> None:
    p, y = drawn(n, dtype, ties=ties)
    w = np.random.default_rng(1).integers(0, 3, n).astype(float)
    w[0] = 1.0
    for view in (View(p, y), View(p, y, w), View(p, y / 2 + 0.25)):
        for k in (1, 2, 7, 15):
            frozen = EqualMass(k).fit(view)
            assert isinstance(frozen, Bins)
            assert frozen.edges.tolist() == row_by_row(view, k)


def test_a_view_is_sorted_once_and_cells_lie_where_they_are_placed() -> None:
    p, y = drawn(50)
    view = View(p, y)
    assert sort_by_score(view) is sort_by_score(view) is sort_by_partition_value(view)
    cells = View([0.2, 0.4], [0, 1], [3, 4], n=[3, 4], sums={}, partition_values=[0.7, 0.6])
    assert sort_by_score(cells).sums_by_score()[0].tolist() == [0.2, 0.4]
    assert [x.tolist() for x in sort_by_partition_value(cells).sums_by_score()] == [[0.6, 0.7], [4, 3], [4, 0]]


def test_rows_without_weight_are_absent_and_even_weights_are_none() -> None:
    p, y = np.array([0.9, 0.1, 0.4, 0.4]), np.array([1.0, 1.0, 0.0, 1.0])
    sums = SortedScores(p, y, np.array([1.0, 0.0, 2.0, 0.5])).sums_by_score()
    assert [x.tolist() for x in sums] == [[0.4, 0.9], [2.5, 1.0], [0.5, 1.0]]
    for one, other in zip(
        SortedScores(p, y).sums_by_score(), SortedScores(p, y, np.ones(4)).sums_by_score(), strict=True
    ):
        assert one.tolist() == other.tolist()
    assert [len(x) for x in SortedScores(p, y, np.zeros(4)).sums_by_score()] == [0, 0, 0]
    for none in (SortedScores(p, y, np.zeros(4)), SortedScores(p[:0], y[:0])):
        assert [len(x) for x in none.scores_at_weight(np.array([0.0]))] == [0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["spread", "ties", "sure", "alike", "one cell"])
def test_many_rows_are_cut_where_sorting_cuts_them(kind: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, n = np.random.default_rng(5), 30_001
    monkeypatch.setattr(module, "MIN_ROWS_FOR_COUNTING", n)
    p = {
        "spread": rng.random(n),
        "ties": rng.integers(0, 21, n) / 20,
        "sure": np.where(rng.random(n) < 0.6, 1.0, rng.random(n)),
        "alike": np.full(n, 0.7),
        "one cell": np.append(0.5 + rng.random(n - 1) * 1e-6, 0.0),
    }[kind].astype(dtype)
    y = rng.random(n) < p
    for cut in ("first", "floor"):
        for closed in ("left", "right"):
            for k in (1, 2, 15, 64, 65):
                partition, view, presorted = EqualMass(k, closed, cut), View(p, y), View(p, y)  # type: ignore[arg-type]
                sort_by_score(presorted).sums_by_score()  # whoever needs sums has the rows sorted
                cells = partition.fit(view)
                assert isinstance(cells, Bins)
                assert cells.edges.tolist() == partition.fit(presorted).edges.tolist()  # type: ignore[attr-defined]
                binned, expected = view.binned(cells), presorted.binned(cells)
                assert binned.bin_index.tolist() == expected.bin_index.tolist()  # type: ignore[union-attr]
                for name in ("n", "w", "p", "y"):
                    np.testing.assert_allclose(getattr(binned, name), getattr(expected, name), rtol=1e-12)


def test_counting_and_sorting_may_follow_each_other(many: int) -> None:
    p, y = drawn(300)
    sorted_scores, bins, mass = SortedScores(p, y), Bins(np.arange(8) / 7), np.array([10.0, 200.5, 300.0])
    once = sorted_scores.scores_at_weight(mass), sorted_scores.sums_in_bins(bins)
    sorted_scores.sums_by_score()
    second = sorted_scores.scores_at_weight(mass), sorted_scores.sums_in_bins(bins)
    assert [x.tolist() for x in once[0]] == [x.tolist() for x in second[0]]
    assert once[1] is not None
    assert second[1] is not None
    for name, value in once[1].items():
        assert value == pytest.approx(second[1][name], rel=1e-12)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("closed", ["left", "right"])
def test_bins_hold_the_sums_of_their_rows(closed: Any) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        p, y = drawn(400, dtype)
        bins = Bins(np.arange(8) / 7, closed)
        sums, index = sort_by_score(View(p, y)).sums_in_bins(bins), bins.index(p)
        assert sums is not None
        x = p.astype(float)
        for name, weights in {"n": np.ones(400), "wp": x, "wy": y, "wpy": x * y, "wpp": x * x}.items():
            assert sums[name] == pytest.approx(np.bincount(index, weights, 7), rel=1e-12)
    assert sort_by_score(View(p, y, y + 1)).sums_in_bins(bins) is None


def test_groups_have_equal_weight_and_few_scores_stay_separate() -> None:
    assert group_starts(np.ones(4), 4).tolist() == [0, 1, 2, 3]
    assert group_starts(np.array([1.0, 1.0, 8.0]), 4).tolist() == [0, 1, 2]
    assert group_starts(np.ones(12), 4).tolist() == [0, 3, 6, 9]
    # middles .25 | .55 .65 | .75 .85 .95: a score belongs to the quarter of all weight in which the middle
    # of its own weight lies
    assert group_starts(np.array([5.0, 1, 1, 1, 1, 1]), 4).tolist() == [0, 1, 3]


@pytest.mark.parametrize("seed", range(5))
def test_weighted_quantiles_and_standard_deviations_are_those_of_repeated_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = rng.integers(1, 5, 6)
    s = np.sort(rng.random((2, 6)), axis=1)
    repeated = np.repeat(s, w, axis=1)
    levels = (0.0, 0.1, 0.25, 0.5, 0.77, 1.0)
    quantiles = np.stack(weighted_quantiles(s, w.astype(float), levels))
    np.testing.assert_allclose(quantiles, np.quantile(repeated, levels, axis=1), rtol=1e-13)
    np.testing.assert_allclose(weighted_std(s, w.astype(float)), repeated.std(axis=1), rtol=1e-13)
    np.testing.assert_allclose(weighted_std(s[0], w / 7), repeated[0].std(), rtol=1e-13)
